/* data/dataset/batches.h - which rows form a clock; for this room only. Loaded blocks: batches.c; a stream:
 * stream.c. */
#ifndef PLI_DATA_BATCHES_H
#define PLI_DATA_BATCHES_H

#include "data/dataset/dataset.h"

typedef struct pli_batches_ops {
    plait_status (*get)(pli_batches *batches, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err);
    void (*destroy)(pli_batches *batches); /* frees all but the pli_batches itself */
} pli_batches_ops;

/* A block that another worker owns and this one takes parts of. */
typedef struct pli_guest {
    pli_rows  rows;
    bool      owned; /* rows are to be freed */
    int64_t   epoch, n_kept;
    uint32_t *kept, *order;
} pli_guest;

/* When a block's rows are taken: in turn `at` of `turns` equal parts of the pass. */
typedef struct pli_turn {
    int32_t at, turns;
} pli_turn;

struct pli_batches {
    const pli_batches_ops *ops;
    pli_dataset           *dataset;
    int64_t                clocks;
    pli_part              *part; /* [own blocks] */
    uint64_t               seed;
    bool                   shuffle, first_in_order; /* the first epoch is not shuffled */
    int64_t                epoch;  /* the epoch that order belongs to; -1: none */
    uint32_t             **kept;   /* [own] rows not skipped; an entry NULL: all */
    int64_t               *n_kept; /* [own] */
    uint32_t             **order;  /* [own] the epoch's permutation of kept rows */
    pli_guest            **guest;  /* [blocks] NULL: no part was taken from it; the array itself is NULL if none was
                                    * taken at all */
    bool (*skip)(void *user, int64_t row);
    void                  *user;
    struct pli_stream     *stream;
    pli_turn              *turn; /* [blocks] in the files' order; NULL: each clock takes rows from all blocks */
    int64_t                turn_clocks; /* those that take rows */
};

/** Does the epoch at hand take rows in their own order? */
static inline bool pli_batches_are_in_order(const pli_batches *s) {
    return !s->shuffle || (s->first_in_order && s->epoch == 0);
}

/** The first row of clock k of C in a block of n rows, floor((n k + phase) / C). Each block has its own phase in [0,
 *  C), which spreads the rows of many short blocks over all clocks. */
static inline int64_t pli_share(int64_t block, int64_t n, int64_t k, int64_t clocks) {
    uint64_t turn = (uint64_t)block * UINT64_C(0x9e3779b97f4a7c15); /* in units of 2^-64: golden section, Weyl's
                                                                     * sequence */
    uint64_t phase = (uint64_t)(((unsigned __int128)turn * (uint64_t)clocks) >> 64);
    return (int64_t)(((unsigned __int128)(uint64_t)n * (uint64_t)k + phase) / (uint64_t)clocks);
}

/* turns.c */
/** The first row of a clock in a block of n rows; n for clock = clocks. */
int64_t pli_batches_share(const pli_batches *batches, int64_t block, int64_t n, int64_t clock);

#endif
