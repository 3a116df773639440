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
 * The table holds the sum that is w. A worker reads it, goes over its rows, and adds what they have changed. Workers
 * take turns, each turn a clock (dual_turns.c), so each finds the sum of all. Side by side (CoCoA+: Ma et al., "Adding
 * vs. averaging in distributed primal-dual optimization", ICML 2015) each would have to take a row's effect on the
 * scores for W times as large as it is, with W workers, and what one worker's rows do to those of another would be
 * mended from clock to clock only. That costs more than W times the passes on every set that was tried (four workers:
 * cora 1,828 instead of 360, a9a more than 3,000 instead of 340, 10^6 hashed words more than 300 instead of 36), and
 * with stale reads the dual value may fall. Where reads may lag behind, a turn begins behind a barrier.
 *
 * The intercept has no penalty, and so its dual problem has a constraint: the shares of each class sum to 0. It is kept
 * by a proximal point method (Rockafellar, "Augmented Lagrangians and applications of the proximal point algorithm in
 * convex programming", 1976): the intercept is a weight like others of a constant feature, but penalised by its
 * distance from a centre, which moves after it. Features count less their mean, which the intercept makes up for.
 *
 *     dual.c        the table, a turn, looks, the end
 *     dual_kept.c   what a checkpoint holds
 *     dual_turns.c  whose turn it is
 *     dual_rows.c   a worker's rows: their shares, a pass, sums over them
 *     dual_bound.c  a certain bound from below: shares that keep the constraint
 */
#ifndef PLI_LEARN_LINEAR_DUAL_H
#define PLI_LEARN_LINEAR_DUAL_H

#include "learn/linear/fit.h"

/* The weights as a sum over rows: of x [features, columns], and of a constant [columns], both times share and weight
 * over l2 n. `inner` [columns] is u times the mean of the rows, which the scores of all rows have in common. `base`
 * [columns] are the intercepts' centres of the proximal method, of features less their mean. */
typedef struct pli_dual_point {
    int64_t features, columns;
    double *u, *t, *inner, *base;
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
/** How many there are. */
int64_t      pli_dual_rows_count(const pli_dual_rows *rows);
/** Draws the order of a pass. */
void         pli_dual_shuffle(pli_dual_rows *rows, const pli_batch *batch, uint64_t pass);
/** Writes to keys the features of the rows first .. end - 1 in the order of the pass, each once, increasing, and
 *  returns their number; -1: there are more than `most`, or no memory. mark [features]: scratch, of zeros before the
 *  first call. */
int64_t      pli_dual_touched(const pli_dual_rows *rows, const pli_batch *batch, int64_t first, int64_t end,
                              int64_t most, uint8_t *mark, uint64_t *keys);
/** Ascent over the rows first .. end - 1 in the order of the pass. point: read by the caller as far as the rows touch
 *  it; it moves. sums_out: losses of the rows as they were met. */
void         pli_dual_ascend(pli_dual_rows *rows, const pli_batch *batch, int64_t first, int64_t end,
                             pli_dual_point *point, pli_sums *sums_out);

/** What a checkpoint holds of each row (keep/row_values.h): so many numbers. save: writes them there. load: takes them
 *  from there. */
int64_t      pli_dual_row_numbers(int64_t columns);
void         pli_dual_rows_save(const pli_dual_rows *rows, const pli_batch *batch);
void         pli_dual_rows_load(pli_dual_rows *rows, const pli_batch *batch);

/** Adds to the point what all shares of own rows come to. */
void         pli_dual_rows_sum(pli_dual_rows *rows, const pli_batch *batch, pli_dual_point *point);

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

/* --- dual_turns.c ------------------------------------------------------------------------------------------------- */

typedef struct pli_dual_turns {
    int32_t   holders, home; /* workers with rows; the place of this one among them, -1: it has none */
    int32_t   place;         /* whose turns it takes: its own, or those of a dead worker; -1: none   */
    int32_t   nth, of;       /* workers that have come to have rows may share a place: who is the nth of them takes
                              * each of-th pass */
    int32_t   shares;         /* into which a pass over a worker's rows is cut */
    int32_t   turns;          /* of a pass */
    bool      lags;           /* reads may lag behind, so a turn begins behind a barrier */
    uint64_t  seed;
    int64_t   pass;  /* of order and share */
    uint32_t *order; /* [turns] the worker's place */
    int32_t  *share; /* [turns] which of its shares */
} pli_dual_turns;

/** Collective. Errors: ENOMEM. */
plait_status pli_dual_turns_make(pli_run *run, pli_dual_turns *turns);
void         pli_dual_turns_free(pli_dual_turns *turns);
/** Gives turns to the workers that have rows now. A worker that had some keeps its own turns. The others take those of
 *  workers that have died. Collective. */
plait_status pli_dual_turns_share_out(pli_run *run, pli_dual_turns *turns, bool has_rows);
/** The share of its rows over which this worker goes in a turn, counted from the first pass on; -1: it is not its
 *  turn. */
int32_t      pli_dual_turns_share(pli_dual_turns *turns, int64_t turn);

/* --- dual_bound.c ------------------------------------------------------------------------------------------------- */

/** Factors in [0, 1] for the classes' shares under which those of each class sum to 0: flow factor = 0. As flow has
 *  columns of sum 0 and only its diagonal is positive, they are the lasting shares of a Markov chain. false: none was
 *  found to 12 digits. */
bool pli_dual_balance(int64_t classes, const double *flow, double *factor);

#endif
