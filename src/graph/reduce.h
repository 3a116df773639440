/* graph/reduce.h - what ops that sum along axes share: the axes, the order of the terms, and fast sums.
 *
 * An output element sums the elements along the summed axes, in the order in which they lie in memory. Sums of floats
 * are double and rounded once. The fast kernels are for adjacent summed axes: then the array is [outer, n, inner], and
 * output element (o, j) sums n elements that lie `inner` apart. The shapes alone decide the order of the additions: one
 * after the other, or, if inner = 1, 16 partial sums (element i to sum i mod 16), which are added in pairs 8, 4, 2, 1
 * apart. */
#ifndef PLI_GRAPH_REDUCE_H
#define PLI_GRAPH_REDUCE_H

#include "graph/kernel.h"
#include "graph/ops/ops.h"

/** Attributes of every reduction: 0, axes (none: all), and 1, keep (summed axes stay, with length 1). */
extern const plait_attr_spec pli_reduction_attrs[2];

/** infer: the shape of input 0 with its summed axes removed, or of length 1; the same type. */
plait_status pli_infer_reduction(const plait_call *call);
/** For gradients: value, which has the shape of a reduction's output, with the removed axes restored with length 1. */
plait_value pli_restore_axes(const plait_gradient *at, plait_value value);

/* The places that one output element sums. */
typedef struct pli_reduction {
    plait_shape kept, summed;
    int64_t     kept_stride[PLAIT_RANK_MAX], summed_stride[PLAIT_RANK_MAX];
} pli_reduction;
pli_reduction pli_reduction_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX]);
/** Begins a walk over these places: from[0] and step[0] of each run. */
void pli_reduction_begin(pli_walk *walk, const pli_reduction *r, int64_t output);
/** The reduction of input 0 along the axes of the attributes. */
pli_reduction pli_reduction_of_call(const plait_call *call);
/** The reference: output element `output` is the sum divided by `divisor`. Integers are not divided, and wrap. */
void pli_reduction_sum(const plait_call *call, const pli_reduction *r, int64_t output, double divisor);

/** The same for f32 if the last axis (except axes of length 1) is summed: run by run, with 16 partial sums in each. It
 *  is for summed axes that are not adjacent, as in a channel of images. */
void pli_reduction_sum_runs(const plait_call *call, const pli_reduction *r, int64_t output, double divisor);
bool pli_reduction_has_runs(const plait_call *call, const pli_reduction *r);
/** `suits` of that kernel, for the axes of the attributes. */
int pli_runs_f32(const plait_call *call);

/** Kernels of sum and, if the op's user says so, of mean. */
typedef struct pli_sum_kind {
    bool mean;
} pli_sum_kind;
extern const plait_kernel *const pli_sum_kernels[];

/* The fast sums. */
typedef struct pli_block_sum {
    int64_t outer, n, inner;
} pli_block_sum;
/** false: the summed axes are not adjacent. */
bool    pli_block_sum_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX], pli_block_sum *out);
int64_t pli_block_sum_items(const pli_block_sum *b);
void    pli_block_sum_f32(const pli_block_sum *b, int64_t item, double divisor, const float *x, float *y);
/** The output elements [o0, o1) x [j0, j1) of an item. */
void pli_block_sum_range(const pli_block_sum *b, int64_t item, int64_t o[2], int64_t j[2]);
bool pli_block_sum_of_call(const plait_call *call, pli_block_sum *out);
/** `items` of a kernel that sums by blocks. */
int64_t pli_block_items_of_call(const plait_call *call);
/** `suits`: input 0 is f32, and the summed axes are adjacent. */
int pli_blocks_f32(const plait_call *call);

#endif
