/* data/batches.h - which rows form a clock; inside the room. Loaded blocks: batches.c; a stream: stream.c. */
#ifndef PLI_DATA_BATCHES_H
#define PLI_DATA_BATCHES_H

#include "data/dataset.h"

typedef struct pli_batches_ops {
    plait_status (*get)(pli_batches *batches, int64_t epoch, int64_t clock, pli_batch *batch_out, plait_error *err);
    void (*destroy)(pli_batches *batches); /* all but the batches itself */
} pli_batches_ops;

struct pli_batches {
    const pli_batches_ops *ops;
    pli_dataset           *dataset;
    int64_t                clocks;
    pli_part              *part; /* [own blocks] */
    uint64_t               seed;
    bool                   shuffle;
    int64_t                epoch;  /* that the order is of; -1: none */
    uint32_t             **kept;   /* [own] rows not skipped; an entry NULL: all */
    int64_t               *n_kept; /* [own] */
    uint32_t             **order;  /* [own] the epoch's permutation of kept rows */
    struct pli_stream     *stream;
};

/** Row k/C of n. */
static inline int64_t pli_share(int64_t n, int64_t k, int64_t clocks) {
    return (int64_t)((unsigned __int128)(uint64_t)n * (uint64_t)k / (uint64_t)clocks);
}

#endif
