/* graph/taps.h - ops that make each place along one axis of a weighted few places of their input: resize, extend. All
 * other axes stay as they are.
 *
 *     y[o, j, i] = sum over k of weight[k] x[o, at[k], i]      o: axes before it, j: a place, i: axes behind it
 *
 * This is linear in x, so the gradient spreads each dy[j] over the same places with the same weights, and the gradient
 * of that is the op itself. */
#ifndef PLI_GRAPH_TAPS_H
#define PLI_GRAPH_TAPS_H

#include "graph/kernel.h"

enum { PLI_TAPS = 4 };

/* Of one place: n places of the input, each in it, and their weights. A single one weighs 1. */
typedef struct pli_taps {
    int32_t n;
    int64_t at[PLI_TAPS];
    double  weight[PLI_TAPS];
} pli_taps;

/** Fills the taps of place j, of `to`, along an axis that has `from` places in the input, at least 1. */
typedef void pli_taps_fn(const plait_call *call, int64_t from, int64_t to, int64_t j, pli_taps *taps);

/** items and run of kernels that go forward: input 0 to output 0 along `axis`. Errors: EINVAL places are wanted and the
 *  input has none. */
int64_t      pli_taps_items(const plait_call *call, int64_t axis);
plait_status pli_taps_run(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item);
/** The same of the gradient: input 1, of the forward output's shape, to output 0, of the forward input's. */
int64_t      pli_taps_back_items(const plait_call *call, int64_t axis);
plait_status pli_taps_back(const plait_call *call, int64_t axis, pli_taps_fn *fn, int64_t item);

#endif
