/* learn/linear/dual.h - hinge losses by their dual: coordinate ascent row by row, over several workers.
 *
 * With l2 > 0 the least objective is the largest value of a dual problem, which has one small block of variables for
 * each row: the shares a_i of the row's classes, a point of a simplex. The weights follow from them,
 *
 *     w = 1 / (l2 n) sum weight_i a_i x_i,
 *
 * and the best block of one row, all others fixed, has a closed form (Hsieh, Chang, Lin, Keerthi and Sundararajan, "A
 * dual coordinate descent method for large-scale linear SVM", ICML 2008; Crammer and Singer, JMLR 2001, and Keerthi et
 * al., KDD 2008, for many classes; Shalev-Shwartz and Zhang, "Stochastic dual coordinate ascent methods for regularized
 * loss minimization", JMLR 2013). No step size, no smoothing: a kink is a corner of the simplex.
 *
 * The table holds the sum that is w. A worker reads it, goes over its rows, and adds what its rows have changed. The
 * workers do not see each other's rows meanwhile, so each takes a row's effect on the scores for `caution` times as
 * large as it is, with as many workers: then the sum of all their changes still raises the dual value (CoCoA+: Ma et
 * al., "Adding vs. averaging in distributed primal-dual optimization", ICML 2015). If reads are so stale that it falls
 * all the same, caution grows. What is in the table always belongs to the shares of the workers' rows, however late a
 * read was, so the only point of rest is the optimum.
 *
 * The intercept has no penalty, and so its dual problem has a constraint: the shares of each class sum to 0. It is kept
 * by a proximal point method (Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
 * convex programming", 1976): the intercept is a weight like others of a constant feature, but penalised by its
 * distance from a centre, which moves after it. Features count less their mean, which the intercept makes up for.
 *
 *     dual.c        the table, a clock, looks, the end
 *     dual_rows.c   a worker's rows: their shares, a pass, sums over them
 *     dual_bound.c  a certain bound from below: shares that keep the constraint
 */
#ifndef PLI_LEARN_LINEAR_DUAL_H
#define PLI_LEARN_LINEAR_DUAL_H

#include "learn/linear/fit.h"

/* The weights as a sum over rows: of x [features, columns], and of a constant [columns], both times share and weight
 * over l2 n. `base` [columns] are the intercepts' centres of the proximal method, of features less their mean. */
typedef struct pli_dual_point {
    int64_t features, columns;
    double *u, *t, *base;
} pli_dual_point;

/* What is the same for all rows and workers. */
typedef struct pli_dual_frame {
    double *mean;       /* [features]; NULL: no intercept, so nothing is taken off */
    double  mean_square; /* |mean|^2                                                */
    double  constant;   /* the square of the constant feature; 0: no intercept     */
    double  per_row;    /* 1 / (l2 n)                                              */
} pli_dual_frame;

/* --- dual_rows.c -------------------------------------------------------------------------------------------------- */

typedef struct pli_dual_rows pli_dual_rows;

/** Takes in the rows of the batch: all shares are 0. Errors: ENOMEM. */
plait_status pli_dual_rows_make(pli_run *run, const pli_dual_frame *frame, const pli_batch *batch,
                                pli_dual_rows **rows_out);
void         pli_dual_rows_free(pli_dual_rows **rows);
/** One pass of ascent over the rows, in the order of this clock. point: read by the caller; it moves by caution times
 *  what the rows have added. sums_out: losses of the rows as they were met. */
void         pli_dual_pass(pli_dual_rows *rows, const pli_batch *batch, uint64_t clock, double caution,
                           pli_dual_point *point, pli_sums *sums_out);

/* Sums over rows at one point. */
typedef struct pli_dual_sums {
    double loss; /* sum weight loss                                  */
    double gain; /* sum weight a_y: the rows' part of the dual value */
} pli_dual_sums;

/** Adds up the sums of own rows, and to flow [classes, classes] the shares: flow[c][y] is what rows of class y have of
 *  class c. */
void pli_dual_judge(pli_dual_rows *rows, const pli_batch *batch, const pli_dual_point *point, pli_dual_sums *sums_out,
                    double *flow);
/** Adds to u [features, columns] and *gain what own rows would add if the shares of each row of class y were factor[y]
 *  times as large. */
void pli_dual_scaled(const pli_dual_rows *rows, const pli_batch *batch, const double *factor, double *u, double *gain);

/** Moves z [n] to the nearest point of the simplex: no value below 0, sum 1 (Michelot, "A finite algorithm for finding
 *  the projection of a point onto the canonical simplex of R^n", 1986). */
void pli_simplex_project(int64_t n, double *z);

/* --- dual_bound.c ------------------------------------------------------------------------------------------------- */

/** Factors in [0, 1] for the classes' shares under which those of each class sum to 0: flow factor = 0. As flow has
 *  columns of sum 0 and only its diagonal is positive, they are the lasting shares of a Markov chain. false: none was
 *  found to 12 digits. */
bool pli_dual_balance(int64_t classes, const double *flow, double *factor);

#endif
