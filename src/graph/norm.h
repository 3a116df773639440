/* graph/norm.h - what layer_norm (a group is a line of the last axes) and batch_norm (a group is a channel of all
 * images) share: they subtract the mean of each group and divide by its deviation. Other ops multiply gains and add
 * offsets.
 *
 *     y = (x - mean) / sqrt(variance + epsilon),  dx = (dy - mean(dy) - y mean(dy y)) / sqrt(variance + epsilon)
 *
 * Sums are double, in eight lanes. Papers: Ba et al., "Layer Normalization", 2016; Ioffe and Szegedy,
 * "Batch Normalization", ICML 2015. */
#ifndef PLI_GRAPH_NORM_H
#define PLI_GRAPH_NORM_H

#include "graph/kernel.h"

/* A group has `segments` runs of `run` elements, which begin `apart` elements from each other; the first run of group g
 * begins at element g x run. */
typedef struct pli_groups {
    int64_t count, segments, run, apart;
} pli_groups;

/* How an op divides x into groups. It is the op's `user`. */
typedef struct pli_norm_kind {
    int32_t epsilon; /* the number of the attribute epsilon */
    pli_groups (*groups)(const plait_call *call);
    /** The shape of the statistics of x. Fails if the op cannot take the shape of x. */
    plait_status (*shape)(const plait_call *call, const plait_shape *x, plait_shape *out);
} pli_norm_kind;

extern const pli_norm_kind pli_norm_lines;    /* attributes: axis, epsilon */
extern const pli_norm_kind pli_norm_channels; /* attributes: epsilon       */
extern const plait_attr_spec pli_norm_line_attrs[2], pli_norm_channel_attrs[1];

/** The ops that compute y, mean [groups] and variance [groups] from x. */
plait_status                     pli_norm_infer(const plait_call *call);
extern const plait_kernel *const pli_norm_kernels[];
/** The ops that compute dx from y, variance and dy. */
plait_status                     pli_norm_gradient_infer(const plait_call *call);
extern const plait_kernel *const pli_norm_gradient_kernels[];

#endif
