/* data/dataset/dataset.h - a data set while it is read: sources, pieces, segments, blocks; for this room only.
 *
 * Think of the sources as one text without their headers. Piece i of P ends behind the newline at or behind byte i/P
 * of that text; a *segment* is the part of one piece that lies in one source. Each block is one piece. Block b is piece
 * b, or, if the data set is dealt (deal.c), the piece that lies at block b's place in the deal. All of this depends on
 * the sources alone. */
#ifndef PLI_DATA_DATASET_H
#define PLI_DATA_DATASET_H

#include "data/formats/libsvm.h"
#include "data/schema/schema.h"
#include "data/source/source.h"

typedef struct pli_segment {
    int32_t piece, source;
    size_t  from, to; /* places in the source; behind newlines, or at its ends */
} pli_segment;

/* Where every PLI_MARK rows of a segment end, as the scan found them: a stream need not look for all lines again. */
#define PLI_MARK 64
typedef struct pli_marks {
    size_t *at; /* [n] */
    int64_t n, capacity;
} pli_marks;

/* A format: how text becomes rows. rules belong to the reader, which makes them at opening. */
typedef struct pli_reader {
    const char *name;
    plait_status (*parse)(const void *rules, const unsigned char *from, const unsigned char *to, pli_rows *rows,
                          pli_found *found, pli_bad *bad);
    /** The first byte of the row that begins at or behind `from`; `to` if there is none. NULL: the data set has
     *  row_bytes. */
    const unsigned char *(*row)(const unsigned char *from, const unsigned char *to);
    /** Looks at the row [line, end) in the pass before a stream: its label, and what else it needs to know of all rows.
     *  NULL: that pass parses. false: out of memory. PLI_PARSE_PAD bytes behind `end` need not be readable. */
    bool (*look)(const void *rules, const unsigned char *line, const unsigned char *end, pli_found *found);
} pli_reader;

extern const pli_reader pli_libsvm_reader, pli_table_reader;

struct pli_dataset {
    pli_sources               *sources; /* NULL: the rows are in memory */
    const pli_reader          *reader;
    const void                *rules; /* one of the six below */
    pli_libsvm_rules           libsvm;
    struct pli_table_rules    *table;
    struct pli_idx            *idx;
    struct pli_npy            *npy; /* table says what its columns are */
    struct pli_chars          *chars;
    struct pli_vw_rules       *vw;
    size_t                     row_bytes; /* bytes of each row (a source's last may have fewer); 0: rows are lines */
    size_t                    *begin;   /* [sources] where the rows begin: behind a header */
    pli_segment               *segment; /* [segments] in order */
    pli_marks                 *marks;   /* [segments], of a scanned data set; else NULL */
    int64_t                    segments;
    int64_t                   *piece_segment; /* [blocks + 1]: first segment of each piece */
    int32_t                   *piece;         /* [blocks]: the piece of each block; NULL: they have the same numbers */
    int32_t                    blocks, first, own, worker, workers;
    int32_t                    asked; /* the option blocks; 0: blocks follow from the bytes */
    pli_rows                  *rows; /* [own]; the arrays are borrowed if of_memory */
    bool                       loaded, scanned, agreed, of_memory, is_fixed, has_weights;
    bool                       by_query; /* blocks are cut between queries */
    bool                       dealt; /* blocks are dealt over the files */
    bool                       may_live; /* of a pipe its front is enough */
    bool                       adds_means; /* the pass adds up the means of columns: no number is missing */
    bool                       unlabelled; /* asked for, or because the model is: rows are read without labels */
    pli_schema                *schema; /* first what the own blocks held, then what was agreed; the rows' keys belong
                                        * to it */
    uint64_t                   options_hash;
    pli_text                   notes;
    const plait_log           *log;
    const struct pli_dataset  *whole;  /* of_memory: the data set with all blocks */
    struct pli_datacache_wish *wish;   /* NULL: no cache */
    struct pli_datacache      *cached; /* NULL: the rows lie in memory of their own */
};

/** Parses bytes [from, to) of a segment (whole rows) and adds them to rows. Errors: "file:line: ...". Any thread. */
plait_status pli_parse_bytes(const pli_dataset *dataset, const pli_segment *segment, size_t from, size_t to,
                             pli_rows *rows, pli_found *found, plait_error *err);
/** The same for a whole block. */
plait_status pli_parse_block(const pli_dataset *dataset, int32_t block, pli_rows *rows, pli_found *found,
                             int64_t *segment_rows, plait_error *err);
/** Joins what was found in blocks into dataset->schema, which has the number of rows of each segment already. */
plait_status pli_dataset_join_found(pli_dataset *dataset, pli_found *found, int64_t n, plait_error *err);
/** Any block of the whole data set, loaded and agreed, also another worker's. Own blocks, and blocks of a cache or
 *  in memory, are borrowed from the data set (*owned_out false: do not free them); any other is parsed once more.
 *  Any thread. */
plait_status pli_dataset_fetch(const pli_dataset *dataset, int32_t block, pli_rows *rows, bool *owned_out,
                               plait_error *err);
/** of_memory: any block, borrowed from the data set with all blocks. */
pli_block pli_memory_block(const pli_dataset *d, int32_t block);
/** Adds a line to the notes and to the log. */
void pli_dataset_note(pli_dataset *dataset, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Opens text in memory [bytes], which must stay until the data set is destroyed, as the rows of one worker. */
plait_status pli_dataset_open_bytes(const plait_data_opts *opts, const pli_schema *fixed, const char *name,
                                    const char *text, size_t bytes, pli_dataset **dataset_out, plait_error *err);

/* memory.c, given.c */
struct plait_data {
    pli_dataset *dataset;
    bool         lent; /* columns and values of its rows are the caller's, or those below */
    uint32_t    *own_column; /* of an Arrow table's rows; NULL: none */
    float       *own_value;
};
/** Gives back what the caller has lent, so that it is not freed with the rows. */
void pli_given_back(struct plait_data *data);

/* given_columns.c */
struct plait_memory_opts;
struct plait_memory_column;
/** EINVAL: columns[at] has no name, or its texts do not increase. */
plait_status pli_given_check_column(const struct plait_memory_column *column, int64_t at, plait_error *err);
/** Copies the column's texts into an empty dictionary. false: no memory. */
bool pli_given_copy_texts(const struct plait_memory_column *from, pli_dict *dict);
/** EINVAL: opts->columns are not what the rows' features are. */
plait_status pli_given_check_columns(const struct plait_memory_opts *opts, plait_error *err);
/** Puts opts->columns and the means of their numbers into the schema of a data set whose rows are there. */
plait_status pli_given_columns(const struct plait_memory_opts *opts, pli_dataset *d, plait_error *err);

/* format.c */
/** The format that opts names; else the format judged by content; with `fixed` it must be the model's. Errors: ENAME
 *  no such format, EINVAL not the model's format, EFORMAT a file of another program. */
plait_status pli_format_choose(const plait_data_opts *opts, const pli_sources *sources, const pli_schema *fixed,
                               pli_data_format *format_out, plait_error *err);
const char *pli_format_text(pli_data_format format);

/* deal.c */
/** Sets which piece each block is; the number of blocks is known. Errors: ENOMEM. */
plait_status pli_dataset_deal(pli_dataset *d, plait_error *err);
/** The number of the piece of the files that a block is. */
static inline int32_t pli_piece_of(const pli_dataset *d, int32_t block) {
    return d->piece != NULL ? d->piece[block] : block;
}
/** The segments of a block are from .. to - 1, in the files' order. */
typedef struct pli_run_of_segments {
    int64_t from, to;
} pli_run_of_segments;
static inline pli_run_of_segments pli_segments_of(const pli_dataset *d, int32_t block) {
    const int32_t piece = pli_piece_of(d, block);
    return (pli_run_of_segments){ d->piece_segment[piece], d->piece_segment[piece + 1] };
}

/* numbers.c; segment_rows [segments] says how many rows each segment has */
/** The number, in the data set, of a block's first row. */
int64_t pli_first_row_of(const pli_dataset *d, int32_t block, const int64_t *segment_rows);
/** The number, in its source, of a segment's first row. */
int64_t pli_source_row_of(const pli_dataset *d, int64_t segment, const int64_t *segment_rows);
/** Sets the weights of FILE.weight for rows [first, first + n) of `rows`; the first is row `row` of the source. */
plait_status pli_weigh_rows(pli_rows *rows, int64_t first, int64_t n, const pli_source *source, int64_t row,
                            plait_error *err);
/** The same for all rows of a block. */
plait_status pli_weigh_block(const pli_dataset *d, int32_t block, pli_rows *rows, const int64_t *segment_rows,
                             plait_error *err);
/** Now that the rows of all segments are known: sets the number of each own block's first row and, if asked to, the
 *  weights. Errors: EFORMAT a file of weights does not fit, or there are no rows at all. */
plait_status pli_number_rows(pli_dataset *d, const int64_t *segment_rows, bool weights, plait_error *err);

/* queries.c */
/** Moves a cut at the byte `at` of a source, where a line begins, behind the rows of the query that it would part. */
size_t pli_query_end(const pli_source *source, size_t begin, size_t at);

/* take.c */
/** Copies rows [n] of a loaded data set, by their numbers from 0, into a data set of their own. Errors: ENOMEM. */
plait_status pli_dataset_take(const pli_dataset *whole, const int64_t *rows, int64_t n, pli_dataset **dataset_out,
                              plait_error *err);

/* cut.c */
/** P of so many bytes of data. */
int32_t      pli_blocks_for(uint64_t bytes);
/** Sets which blocks belong to this worker. */
void         pli_dataset_own(pli_dataset *d);
plait_status pli_dataset_cut(pli_dataset *dataset, plait_error *err);

#endif
