/* learn/linear/fit.h - a run of a linear model: weights in a table w, one row for each feature.
 *
 *     linear.h          scores and gradients over rows
 *     linear_learner.c  the learners; decisions that follow from data and options
 *     weights.c         creates the tables, and reads the solution from them
 *     steps.c           a batch: reads the whole table, or the rows that the batch touches
 *     blocks.c          a batch block by block: --reduce exact
 *     hogwild.c         a batch row by row, straight on the table: async over local
 *     lbfgs_linear.c    passes for L-BFGS
 *     online.h          row by row, in one pass
 *     newton.h          sums of quadratic models: few weights, any staleness
 *     dual.h            hinge by its dual problem, row by row
 *     coordinates.h     squared and logistic losses with --l1, coordinate by coordinate
 *     smoothing.c       a loss with a kink, made smooth for solvers
 *     gap.c             how far a model lies above the optimum
 *     linear_model.c    the fitted model
 */
#ifndef PLI_LEARN_LINEAR_FIT_H
#define PLI_LEARN_LINEAR_FIT_H

#include "learn/linear/linear.h"
#include "learn/solve/loop.h"
#include "learn/supervised/fitted.h"

/* The layout of the weights. The intercepts are the last row of w; with PLI_SPARSE they have a table of their own. */
typedef enum pli_form {
    PLI_DENSE, /* whole gradients are pushed                                */
    PLI_KEYED, /* the table is dense; a batch pushes the few rows it touched */
    PLI_SPARSE /* rows grow by key                                          */
} pli_form;

struct pli_row_worker;
typedef struct pli_newton pli_newton;   /* newton.c */
typedef struct pli_limited pli_limited; /* newton_limited.c */
typedef struct pli_online pli_online;   /* online.h */
typedef struct pli_dual pli_dual;       /* dual.c */
struct pli_coordinates;                 /* coordinates.h */

typedef struct pli_linear_fit {
    pli_fit      fit;
    pli_linear   linear;
    pli_form     form;
    bool         rowwise; /* each row is a push of its own (Hogwild) */
    plait_table *w, *b;   /* b: only for PLI_SPARSE with intercept */
    pli_gradient gradient;
    /* dense */
    double *raw;    /* [features, K] weights in the data's units, if scaled */
    double *bias;   /* [K] in the data's units          */
    float  *narrow; /* [K] intercepts as in the table   */
    float  *push;   /* first values got, then gradients to push */
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
    pli_newton  *newton;  /* by sums of quadratic models */
    pli_limited *limited; /* the same for many weights   */
    pli_online  *online;  /* row by row, in one pass     */
    pli_dual    *dual;    /* by the dual problem         */
    struct pli_coordinates *coordinates; /* coordinate by coordinate */
    int64_t   updates;    /* of them, when training is over */
    /* row by row */
    struct pli_row_worker *hogwild; /* [threads] */
} pli_linear_fit;

static inline pli_linear_fit *pli_linear_fit_of(const pli_run *run) { return run->state; }

/* --- weights.c ---------------------------------------------------------------------------------------------------- */

plait_status pli_linear_tables(pli_run *run);
/** First values for the table in training's units, [features + intercept, K] of F32 or F64; NULL: all zeros. They come
 *  from the model to start from; without one they are zeros, and the intercept is the mean label. The caller frees
 *  them.
 */
plait_status pli_linear_initial(const pli_run *run, plait_type type, void **initial_out);
/** online.c: the weights that the table's sums mean. */
plait_status pli_online_extract(pli_run *run, pli_solution *solution_out);
/** Penalty factors of the same shape; NULL: all 1. The caller frees them. */
plait_status pli_linear_penalty(const pli_run *run, plait_type type, void **penalty_out);
extern const pli_fit_ops pli_linear_fit_ops;

/** linear_learner.c: sets the defaults that follow from the number of rows, when it was not known before. */
void pli_linear_count_again(pli_run *run);

/* --- steps.c, blocks.c, hogwild.c --------------------------------------------------------------------------------- */

extern const pli_steps pli_linear_steps, pli_hogwild_steps, pli_newton_steps, pli_limited_steps, pli_dual_steps,
    pli_online_steps, pli_online_steps_in_place;
plait_status pli_linear_begin(pli_run *run);
void         pli_linear_end(pli_run *run);

/** blocks.c, for --reduce exact: computes the gradient of each block's part of the batch by itself, and pushes each. */
plait_status pli_blocks_push_dense(pli_run *run, const pli_weights *weights, const pli_batch *batch);
plait_status pli_blocks_push_keyed(pli_run *run, const pli_weights *weights, int64_t unique, const pli_batch *batch);

/* --- smoothing.c -------------------------------------------------------------------------------------------------- */

/** Takes the smooth loss in place of one with a kink, at its first width. A smooth loss stays. */
void pli_linear_soften(pli_linear *linear);
/** Gives a smoothed loss its first width again. */
void pli_linear_blunt(pli_linear *linear);
/** Shrinks the width of a smoothed loss by a stage. Returns the new width as a share of the old one; 1: it is as small
 *  as it gets, or the loss is no smoothed one. */
double pli_linear_sharpen(pli_linear *linear);
static inline bool pli_linear_is_soft(const pli_linear *linear) { return linear->goal.loss->excess != NULL; }

/* --- gap.c -------------------------------------------------------------------------------------------------------- */

plait_status pli_linear_gap(pli_run *run, const pli_solution *solution, double *gap_out);

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
