/* learn/sgd.h - what the loop over batches and the loop over rows share. */
#ifndef PLI_LEARN_SGD_H
#define PLI_LEARN_SGD_H

#include "learn/run/balance.h"
#include "learn/run/inherit.h"

struct pli_row_worker;
typedef struct pli_keep pli_keep; /* keep.h */
typedef struct pli_net_worker pli_net_worker;

typedef struct pli_sgd {
    pli_run     *run;
    pli_batches *batches;
    pli_batch    batch;   /* of this clock, or of the next one if that is fetched */
    bool         fetched;
    bool         overlaps; /* the next batch is fetched while sums travel          */
    pli_balance  balance; /* of a run that is balanced */
    pli_heir     heir;    /* of one that goes on when a worker dies; part NULL: of another */
    pli_gradient gradient;
    pli_meter    meter;
    bool         sums_need_all; /* no worker may stop by itself */
    double         stopped; /* lent while asked is not NULL: has anybody been asked to stop? */
    plait_request *asked;
    /* dense: weights in the data's units [features, K], if scaled */
    double *raw;
    double *bias;   /* [K] in the data's units          */
    float  *narrow; /* [K] as the table has them        */
    float  *push;   /* values got, then gradients pushed */
    /* keyed */
    uint64_t *keys;
    uint32_t *order, *local;
    int64_t  *local_start; /* [parts] */
    int64_t   unique;      /* columns of the batch */
    int64_t   push_capacity, keys_capacity, order_capacity, local_capacity, start_capacity;
    pli_total    clock; /* losses of the clock at hand, own rows */
    /* block by block */
    uint32_t *mark; /* [unique]: 1 + the last part that touched the column */
    uint64_t *part_keys;
    float    *part_push;
    int64_t   mark_capacity, part_keys_capacity, part_push_capacity;
    /* validation */
    double       best_loss;
    int64_t      best_epoch;
    pli_solution best;
    /* row by row */
    struct pli_row_worker *hogwild; /* [threads] */
    /* a net */
    pli_net_worker *net;
    pli_keep       *keep; /* of a run that writes checkpoints */
} pli_sgd;

/** Row by row over the batch, each row a get and an inc straight on the shared table (Niu et al., "HOGWILD!", NIPS
 *  2011). Only under async over local. */
plait_status pli_hogwild_begin(pli_sgd *sgd);
plait_status pli_hogwild_step(pli_sgd *sgd, const pli_batch *batch, int64_t clock,
                              pli_sums *sums_out); /* batch: NULL in a stream */
void         pli_hogwild_end(pli_sgd *sgd);

/** net_train.c: a table a variable, like the given one in all but names, sizes and values; a batch; what the tables hold. */
plait_status pli_net_create_tables(pli_run *run, const plait_table_opts *like);
plait_status pli_net_begin(pli_sgd *sgd);
void         pli_net_end(pli_sgd *sgd);
plait_status pli_net_step(pli_sgd *sgd, const pli_batch *batch, pli_sums *sums_out);
plait_status pli_net_extract(pli_run *run, pli_solution *solution_out);

/** blocks.c: the gradient of each block's part of the batch by itself, an inc each. Under --reduce exact. */
plait_status pli_blocks_push_dense(pli_sgd *sgd, const pli_weights *weights, const pli_batch *batch);
plait_status pli_blocks_push_keyed(pli_sgd *sgd, const pli_weights *weights, int64_t unique, const pli_batch *batch);
void         pli_blocks_end(pli_sgd *sgd);

#endif
