/* learn/linear/hessian.h - the Hessian of a linear model's losses, one block for each score (hessian.c). */
#ifndef PLI_LEARN_HESSIAN_H
#define PLI_LEARN_HESSIAN_H

#include "learn/linear/linear.h"
#include "learn/supervised/scale.h"

enum { PLI_HESSIAN_GROUPS = 4 }; /* groups of rows, added in order, so threads never change the result */

typedef struct pli_hessian {
    const pli_linear *linear;
    const pli_scale  *scale;
    pli_pool         *pool;
    int64_t           blocks; /* K: one for each score; 1: their mean, which serves all scores        */
    double            share;  /* factor on the sums: 1 / n for the mean over all rows                  */
    double            entries_per_row;
} pli_hessian;

/** Writes out [blocks, m, m], m = features + intercept, at these weights (f64): for the own rows, in training's units,
 *  without penalty; on and right of the diagonal, zeros left of it. The intercept is the last row and column. Errors:
 *  ENOMEM. */
plait_status pli_hessian_add_up(const pli_hessian *to, const pli_weights *weights, const pli_batch *batch, double *out,
                                plait_error *err);

#endif
