/* learn/solve/lbfgs.h - the vectors of L-BFGS: server functions over tables that are cut alike.
 *
 * The tables of a call, in this order: w the weights, g the gradient, q the penalty factors (if scaled), h the diagonal
 * of a metric, o the last gradient, x the weights of the last iterate (with L1), then s_0 .. s_{m-1}, y_0 .. y_{m-1}.
 * Large vectors are packed: s_j and y_j share the words of one table as bfloat16, s in the upper halves. This halves
 * the history; steps then go along rounded directions, and dot products are those of rounded pairs. Slot `slot` of s
 * holds the direction d until the step is accepted.
 *
 * Vectors never leave their shards: a call takes coefficients and answers dot products. The two loops of Nocedal and
 * Wright's algorithm 7.4 run on the matrix of dot products (Chen, Wang, Zhou, "Large-scale L-BFGS using MapReduce",
 * NIPS 2014). */
#ifndef PLI_LEARN_LBFGS_H
#define PLI_LEARN_LBFGS_H

#include <plait/table.h>

#include "base/base.h"

enum { PLI_LBFGS_MEMORY_MAX = 16 };

/* The arguments of all functions; each uses its part. It is a plain value, since it goes over the wire. */
typedef struct pli_lbfgs_args {
    int32_t memory, slot;
    int32_t has_penalty, has_old, packed;     /* are there tables q and x? do pairs share a table? */
    int32_t first;                            /* gradient: no step was made yet */
    int32_t exact, zero;                      /* answers are cells, not numbers      */
    int64_t free_row;                         /* row of the intercepts, never penalised; -1: none */
    double  l1, l2;
    double  step, step_before; /* step: move w by step - step_before times d (with L1: to x + step d, projected) */
    double  gamma;             /* direction = -(gamma H (g + sum a y) + sum b s) */
    double  a[PLI_LBFGS_MEMORY_MAX], b[PLI_LBFGS_MEMORY_MAX];
    int32_t used[PLI_LBFGS_MEMORY_MAX]; /* slots that hold a pair */
} pli_lbfgs_args;

/* The answer of "lbfgs.gradient": dot products with the new pair (slot) and with the (pseudo-)gradient v. All are
 * sums. */
typedef struct pli_lbfgs_dots {
    double sy[PLI_LBFGS_MEMORY_MAX], ys[PLI_LBFGS_MEMORY_MAX]; /* s_slot y_j, y_slot s_j */
    double yhy[PLI_LBFGS_MEMORY_MAX];                          /* y_slot H y_j           */
    double sv[PLI_LBFGS_MEMORY_MAX], yhv[PLI_LBFGS_MEMORY_MAX];
    double vv, vhv;
} pli_lbfgs_dots;

/* The answer of "lbfgs.direction". */
typedef struct pli_lbfgs_slope {
    double vd, dd; /* v d, d d */
} pli_lbfgs_slope;

/* The answer of "lbfgs.step": the sums of the penalty, and v (w - x) with L1. */
typedef struct pli_lbfgs_moved {
    double square, absolute, vmove;
} pli_lbfgs_moved;

#endif
