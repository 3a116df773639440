/* graph/taps.h - ops that make each place along one axis of a few weighted places of their input: resize, extend. The
 * other axes do not change.
 *
 *     y[o, j, i] = sum over k of weight[k] x[o, at[k], i]      o: axes before, j: a place of the axis, i: axes after
 *
 * This is linear in x, so the gradient spreads each dy[j] over the same places with the same weights, and the gradient
 * of that is the op itself. */
#ifndef PLI_GRAPH_TAPS_H
#define PLI_GRAPH_TAPS_H

#include "graph/kernel.h"

enum { PLI_TAPS = 4 };

/* The taps of one place: n places of the input and their weights. All lie in the input; a single one has weight 1. */
typedef struct pli_taps {
    int32_t n;
    int64_t at[PLI_TAPS];
    double  weight[PLI_TAPS];
} pli_taps;

/** Fills the taps of place j of `to`, along an axis that has `from` >= 1 places in the input. */
typedef void pli_taps_fn(const plait_call *call, int64_t from, int64_t to, int64_t j, pli_taps *taps);

/** `items` and `run` of forward kernels, from input 0 to output 0 along `axis`. Errors: EINVAL the output has places
 *  and the input has none. */
int64_t      pli_taps_items(const plait_call *call, int64_t axis);
plait_status pli_taps_run(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item);
/** The same for the gradient, from input 1, with the shape of the forward output, to output 0, with the shape of the
 *  forward input. */
int64_t      pli_taps_back_items(const plait_call *call, int64_t axis);
plait_status pli_taps_back(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item);

#endif
