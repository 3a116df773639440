/* data/dataset/stream.h - a stream while it is read; for this room only. stream.c reads sources that are whole, live.c
 * a pipe that is not. */
#ifndef PLI_DATA_STREAM_H
#define PLI_DATA_STREAM_H

#include "data/dataset/batches.h"
#include "data/formats/table/table.h"

/* A place between two rows of a block. */
typedef struct pli_spot {
    int64_t segment, segment_row; /* rows of the segment before it */
    size_t  at;                   /* in the segment's source       */
    int64_t row;                  /* rows of the block before it   */
} pli_spot;

/* How far reading a block has come. Written by the thread that reads the block. */
typedef struct pli_cursor {
    pli_spot now, dropped; /* the pages before `dropped` were given back */
    int64_t  rows;         /* of the block */
} pli_cursor;

/* Memory for parsed rows. */
typedef struct pli_slot {
    pli_rows  rows;
    pli_found found; /* by the parser, which the pass before has found already */
    pli_table_sums sums; /* of the rows that were parsed into it, if the pass adds them up */
} pli_slot;

/* A block that another worker owns, while this one reads its parts. */
typedef struct pli_stream_guest {
    pli_cursor cursor;
    int64_t    clock; /* whose rows are in slot; -1: none */
    pli_slot   slot;
} pli_stream_guest;

/* Rows of a clock that are parsed by one call. */
typedef struct pli_piece {
    int32_t  own; /* block */
    pli_spot from, to;
} pli_piece;

typedef struct pli_stream {
    pli_pool     *pool;
    int32_t       slots;
    pli_cursor   *cursor;                     /* [own] */
    int64_t      *source_row;                 /* [segments] how many rows of the source come before each */
    pli_slot     *held;                       /* [own] the rows of the clocks at hand, for get */
    pli_slot     *slot;                       /* [slots] for part and piece; at least one a thread */
    pli_stream_guest **guest; /* [blocks] NULL: no part was taken from it; the array is NULL if none was at all */
    pli_piece    *piece;                      /* [pieces] of the clock that was cut last  */
    int32_t       pieces;
    int64_t       piece_capacity;
    int64_t       first_clock, clocks, group; /* the clocks at hand; how many clocks to take at once */
    plait_error  *error;                      /* [own] */
    plait_status *status;                     /* [own] */
    /* of a pipe whose rows are taken as they come */
    bool       live, ended;
    const int *stop; /* not 0: no more is waited for; NULL: never */
    int64_t    rows; /* that were taken */
} pli_stream;

/* stream.c */
/** The place behind the last of up to *rows rows from `from` on; *rows becomes the number found. */
size_t pli_end_of_rows(const pli_dataset *d, const pli_source *source, size_t from, size_t to, int64_t *rows);
/** Makes s->stream and what it holds. false: out of memory. */
bool   pli_stream_allocate(pli_batches *s, pli_pool *pool);
void   pli_stream_destroy(pli_batches *s);

void   pli_stream_free_slot(pli_slot *slot);
/** Where a block begins, with its number of rows. */
pli_cursor   pli_stream_cursor(const pli_dataset *d, int32_t block);
/** Replaces the contents of the slot by the block's rows from `from` up to its row `end`, behind the cursor, which
 *  moves there. Rows before `from` are passed over. Errors: EFORMAT, ENOMEM. */
plait_status pli_stream_take(const pli_batches *s, int32_t block, int64_t from, int64_t end, pli_cursor *cursor,
                             pli_slot *slot, plait_error *err);
/** pli_batches_part of an own block: its clocks come in order, but some may be left out. */
plait_status pli_stream_own_part(pli_batches *s, int32_t own, int64_t clock, pli_part *part_out, plait_error *err);

/* stream_guest.c */
/** pli_batches_part of a stream. */
plait_status pli_stream_block_part(pli_batches *s, int32_t block, int64_t clock, pli_part *part_out, plait_error *err);
void         pli_stream_drop_guest(pli_stream *stream, int32_t block);

/* live.c */
/** pli_stream_cut of a live pipe: a clock has the rows that have come. PLAIT_END: as pli_live_next. */
plait_status pli_live_cut(pli_batches *s, int32_t most, int32_t *pieces_out, plait_error *err);

#endif
