/* graph/norm.h - taking off the mean and dividing by the deviation, group by group: what layer_norm (a group is a
 * line of the last axes) and batch_norm (a group is a channel of all images) share. Gains and offsets are multiplied
 * and added by other ops.
 *
 *     y = (x - mean) / sqrt(variance + epsilon),  dx = (dy - mean(dy) - y mean(dy y)) / sqrt(variance + epsilon)
 *
 * Sums are taken in double, in eight lanes. Papers: Ba et al., "Layer Normalization", 2016; Ioffe and Szegedy,
 * "Batch Normalization", ICML 2015. */
#ifndef PLI_GRAPH_NORM_H
#define PLI_GRAPH_NORM_H

#include "graph/kernel.h"

/* A group: `segments` runs of `run` elements, `apart` from one to the next; the first of group g begins at g run. */
typedef struct pli_groups {
    int64_t count, segments, run, apart;
} pli_groups;

/* Which groups an op takes; its user. */
typedef struct pli_norm_kind {
    int32_t epsilon; /* that attribute */
    pli_groups (*groups)(const plait_call *call);
    /** The shape of the statistics of x. Fails by name where x is not of the op's kind. */
    plait_status (*shape)(const plait_call *call, const plait_shape *x, plait_shape *out);
} pli_norm_kind;

extern const pli_norm_kind pli_norm_lines;    /* attributes: axis, epsilon */
extern const pli_norm_kind pli_norm_channels; /* attributes: epsilon       */
extern const plait_attr_spec pli_norm_line_attrs[2], pli_norm_channel_attrs[1];

/** Of x: y, mean [groups], variance [groups]. */
plait_status                     pli_norm_infer(const plait_call *call);
extern const plait_kernel *const pli_norm_kernels[];
/** Of y, variance, dy: dx. */
plait_status                     pli_norm_gradient_infer(const plait_call *call);
extern const plait_kernel *const pli_norm_gradient_kernels[];

#endif
