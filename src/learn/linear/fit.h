/* learn/linear/fit.h - a run of a linear model: weights in a table w, one row a feature.
 *
 *     linear.h          scores and gradients over rows
 *     linear_learner.c  the learners, what follows from data and options
 *     weights.c         tables, first values, what they hold
 *     steps.c           a batch: the whole table is read, or the rows that it touches
 *     blocks.c          the same block by block: --reduce exact
 *     hogwild.c         row by row, straight on the table: async over local
 *     lbfgs_linear.c    passes for L-BFGS
 *     linear_model.c    the fitted model
 */
#ifndef PLI_LEARN_LINEAR_FIT_H
#define PLI_LEARN_LINEAR_FIT_H

#include "learn/linear/linear.h"
#include "learn/solve/loop.h"
#include "learn/supervised/fitted.h"

/* How the weights lie in their table. The intercepts are the last row, or with PLI_SPARSE a table of their own. */
typedef enum pli_form {
    PLI_DENSE, /* whole gradients are pushed                                */
    PLI_KEYED, /* dense, but a batch pushes the few rows that it touched    */
    PLI_SPARSE /* rows grow by key                                          */
} pli_form;

struct pli_row_worker;

typedef struct pli_linear_fit {
    pli_fit      fit;
    pli_linear   linear;
    pli_form     form;
    bool         rowwise; /* each row is a push of its own (Hogwild) */
    plait_table *w, *b;   /* b: PLI_SPARSE with intercept only */
    pli_gradient gradient;
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
    /* block by block */
    uint32_t *mark; /* [unique]: 1 + the last part that touched the column */
    uint64_t *part_keys;
    float    *part_push;
    int64_t   mark_capacity, part_keys_capacity, part_push_capacity;
    /* row by row */
    struct pli_row_worker *hogwild; /* [threads] */
} pli_linear_fit;

static inline pli_linear_fit *pli_linear_fit_of(const pli_run *run) { return run->state; }

/* --- weights.c ---------------------------------------------------------------------------------------------------- */

plait_status pli_linear_tables(pli_run *run);
/** First values for the table in training's units, [features + intercept, K] of F32 or F64; *initial_out NULL: zeros.
 *  Without a model to start from: zeros, and the mean label for intercept. */
plait_status pli_linear_initial(const pli_run *run, plait_type type, void **initial_out);
/** Penalty factors likewise; NULL: all 1. */
plait_status pli_linear_penalty(const pli_run *run, plait_type type, void **penalty_out);
extern const pli_fit_ops pli_linear_fit_ops;

/* --- steps.c, blocks.c, hogwild.c --------------------------------------------------------------------------------- */

extern const pli_steps pli_linear_steps, pli_hogwild_steps;
plait_status pli_linear_begin(pli_run *run);
void         pli_linear_end(pli_run *run);

/** blocks.c: the gradient of each block's part of the batch by itself, an inc each. Under --reduce exact. */
plait_status pli_blocks_push_dense(pli_run *run, const pli_weights *weights, const pli_batch *batch);
plait_status pli_blocks_push_keyed(pli_run *run, const pli_weights *weights, int64_t unique, const pli_batch *batch);

/* --- L-BFGS ------------------------------------------------------------------------------------------------------- */

struct pli_lbfgs_pass;
extern const struct pli_lbfgs_pass pli_lbfgs_linear;

/* --- the fitted model --------------------------------------------------------------------------------------------- */

typedef struct pli_linear_model {
    pli_fitted fitted;
    pli_linear linear;
} pli_linear_model;

extern const pli_scoring_ops pli_linear_scoring;
extern const pli_model_ops   pli_linear_model_ops;
plait_status pli_linear_open_model(plait_model *model);
plait_status pli_linear_export(const plait_model *model, struct pli_export *to, plait_error *err);

#endif
