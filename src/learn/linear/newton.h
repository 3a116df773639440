/* learn/linear/newton.h - training by sums of quadratic models: incremental Newton (Rodomanov and Kropotov, "A
 * superlinearly-convergent proximal Newton-type method for the optimization of finite sums", ICML 2016).
 *
 * The mean loss f is a sum of the workers' parts f_i. At a point v_i of its own each worker has the quadratic model
 *
 *     f_i(t) ~ f_i(v_i) + g_i (t - v_i) + (t - v_i) H_i (t - v_i) / 2  =  t H_i t / 2 - (H_i v_i - g_i) t + ...
 *
 * It adds H_i to table h and H_i v_i - g_i to table w. When it moves to another point it adds the difference, so the
 * tables always hold one model of each worker, the latest. Whoever reads them knows the least point of the sum of all
 * models and the penalty, and takes it as the next v_i. At the optimum all models touch the loss there, so the optimum
 * is the only point of rest. A model that is some clocks old is still a model: a stale read, a worker that runs ahead,
 * rows that lie sorted change how many clocks it takes, but not where it ends, and there is no step size.
 *
 * A logistic loss is no parabola. A step is cut where a score of an own row would move farther than the loss's `reach`.
 *
 *     newton.c        the tables, a clock, the end
 *     newton_limited.c  the same for many weights, by a limited memory of the curvature
 *     newton_rows.c   a worker's own model, by passes over its rows
 *     newton_bound.c  how far a point is above the least objective, for certain
 *     newton_state.h, newton_kept.c, newton_limited_kept.c  what checkpoints hold
 *     newton_least.c  the least point of a model: Cholesky, or with L1 coordinate descent
 */
#ifndef PLI_LEARN_LINEAR_NEWTON_H
#define PLI_LEARN_LINEAR_NEWTON_H

#include "learn/linear/fit.h"

/* Values of all blocks of the curvature: 8 MiB. */
enum { PLI_NEWTON_VALUES = 1 << 20 };

/* A quadratic model t H t / 2 - r t. Of H the blocks of scores c <= d are there, one after the other (c first), each
 * [rows, rows]: the second derivatives by the weights of c and of d. */
typedef struct pli_quadratic {
    int64_t rows, columns; /* of the weights: features and intercept; scores */
    double *h;             /* [columns (columns + 1) / 2, rows, rows]        */
    double *r;             /* [rows, columns]                                */
} pli_quadratic;

static inline int64_t pli_quadratic_blocks(const pli_quadratic *q) { return q->columns * (q->columns + 1) / 2; }
static inline int64_t pli_quadratic_values(const pli_quadratic *q) {
    return pli_quadratic_blocks(q) * q->rows * q->rows;
}

/** newton.c: rows keep their order from now on. */
void         pli_newton_begin(pli_run *run);

/** newton.c: makes a point [values] the one of the lowest worker that has a model, on all workers. Collective. */
plait_status pli_newton_same(pli_run *run, bool has_model, double *at, int64_t values);

/* --- newton_rows.c ------------------------------------------------------------------------------------------------ */

/* A worker's rows, and what it remembers of them. */
typedef struct pli_newton_rows pli_newton_rows;

/** curved: models will be asked for; else slopes alone. */
plait_status pli_newton_rows_make(pli_run *run, const pli_batch *batch, bool curved, pli_newton_rows **rows_out);
void         pli_newton_rows_free(pli_newton_rows **rows);
/** The scores [rows, columns] of own rows at the point at hand. */
double      *pli_newton_scores(pli_newton_rows *rows, int64_t *rows_out);
/** Moves from the point at hand towards `to` [rows, columns], until the score of a row has moved by `reach` (0: any
 *  distance): writes the new point to at. *whole_out: it went all the way. */
plait_status pli_newton_move(pli_newton_rows *rows, const pli_batch *batch, double reach, const double *to, double *at,
                             bool *whole_out);
/** Computes the model of the own rows' part of the mean loss at this point, where the last move has gone. sums_out: the
 *  losses there. */
plait_status pli_newton_model(pli_newton_rows *rows, const pli_batch *batch, const double *at, pli_quadratic *model,
                              pli_sums *sums_out);

/** Computes the slope [rows, columns] of the own rows' part of the mean loss, where the last move has gone. */
void         pli_newton_slope(pli_newton_rows *rows, const pli_batch *batch, double *slope, pli_sums *sums_out);
/** Computes a bound of the diagonal of that part's curvature [rows, columns], above 0 everywhere. */
void         pli_newton_diagonal(const pli_newton_rows *rows, const pli_batch *batch, double *diagonal);

/* --- newton_least.c ----------------------------------------------------------------------------------------------- */

typedef struct pli_penalised {
    double        l1, l2;
    const double *factor; /* [rows, columns] of the penalty; NULL: all 1 */
} pli_penalised;

/** The least point of the model and the penalty. near: the point at hand, to which directions without curvature keep.
 *  scratch: memory of [rows columns]^2 values. Errors: ENOMEM. */
plait_status pli_quadratic_least(const pli_quadratic *q, const pli_penalised *penalty, const double *near,
                                 double *scratch, double *least, plait_error *err);
/** The model's value at a point, with the penalty. */
double       pli_quadratic_at(const pli_quadratic *q, const pli_penalised *penalty, const double *point);

/* --- newton_bound.c ----------------------------------------------------------------------------------------------- */

/** Bounds by how much the objective at this point [rows, columns], the same on all workers, is above its least value,
 *  as a share of the objective there. It is small if the point is the least one of the sum of all models. Two passes.
 *  rows: NULL if this worker has none; else they have a model. *gap_out: INFINITY if there is no bound, as without l2;
 *  it holds if nobody has died meanwhile. Collective. Errors: ENOMEM. */
plait_status pli_newton_bound(pli_run *run, pli_newton_rows *rows, const pli_batch *batch, const pli_penalised *penalty,
                              const double *at, double *gap_out);

#endif
