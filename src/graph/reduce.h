/* graph/reduce.h - what ops that sum up axes share: which axes, the order of the terms, and fast sums.
 *
 * An output element is made of the elements along the summed axes, taken in the order in which they lie. Sums of floats
 * are double and rounded once. The fast kernels are for summed axes that lie next to each other: then the array is
 * [outer, n, inner], and output element (o, j) sums n elements that lie `inner` apart. The shapes alone decide the
 * order of the additions: one after the other, or, where inner = 1, 16 partial sums (element i to sum i mod 16) added
 * in pairs 8, 4, 2, 1 apart. */
#ifndef PLI_GRAPH_REDUCE_H
#define PLI_GRAPH_REDUCE_H

#include "graph/kernel.h"
#include "graph/ops/ops.h"

/** Attributes 0, axes (none: all), and 1, keep (summed axes stay, of length 1), of every reduction. */
extern const plait_attr_spec pli_reduction_attrs[2];

/** infer: input 0 with its summed axes gone or of length 1, in its own type. */
plait_status pli_infer_reduction(const plait_call *call);
/** For gradients: value, of the shape of a reduction's output, with the axes that went as axes of length 1 again. */
plait_value pli_restore_axes(const plait_gradient *at, plait_value value);

/* The places of one output element. */
typedef struct pli_reduction {
    plait_shape kept, summed;
    int64_t     kept_stride[PLAIT_RANK_MAX], summed_stride[PLAIT_RANK_MAX];
} pli_reduction;
pli_reduction pli_reduction_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX]);
/** A walk over them: from[0] and step[0] of each run. */
void pli_reduction_begin(pli_walk *walk, const pli_reduction *r, int64_t output);
/** The axes of the attributes, as a reduction of input 0. */
pli_reduction pli_reduction_of_call(const plait_call *call);
/** The reference: output element `output` is the sum divided by `divisor`, integers without (they wrap). */
void pli_reduction_sum(const plait_call *call, const pli_reduction *r, int64_t output, double divisor);

/** The same of f32 whose last axis (but for those of length 1) is summed: run by run, 16 partial sums in each. Where
 *  the summed axes do not lie next to each other: a channel of images. */
void pli_reduction_sum_runs(const plait_call *call, const pli_reduction *r, int64_t output, double divisor);
bool pli_reduction_has_runs(const plait_call *call, const pli_reduction *r);
/** suits: of the attributes' axes. */
int pli_runs_f32(const plait_call *call);

/** Kernels of sum and, where the op's user says so, of mean. */
typedef struct pli_sum_kind {
    bool mean;
} pli_sum_kind;
extern const plait_kernel *const pli_sum_kernels[];

/* The fast sums. */
typedef struct pli_block_sum {
    int64_t outer, n, inner;
} pli_block_sum;
/** false: the summed axes do not lie next to each other. */
bool    pli_block_sum_of(const plait_shape *from, const bool summed[PLAIT_RANK_MAX], pli_block_sum *out);
int64_t pli_block_sum_items(const pli_block_sum *b);
void    pli_block_sum_f32(const pli_block_sum *b, int64_t item, double divisor, const float *x, float *y);
/** The output elements [o0, o1) x [j0, j1) of an item. */
void pli_block_sum_range(const pli_block_sum *b, int64_t item, int64_t o[2], int64_t j[2]);
bool pli_block_sum_of_call(const plait_call *call, pli_block_sum *out);
/** items of a kernel that blocks. */
int64_t pli_block_items_of_call(const plait_call *call);
/** suits: input 0 is f32, and blocks go. */
int pli_blocks_f32(const plait_call *call);

#endif
