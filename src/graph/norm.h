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

static inline int64_t pli_group_elements(const pli_groups *g) { return g->segments * g->run; }
/** Items: some groups each. */
int64_t pli_group_items(const pli_groups *groups);

/** Of x: y, mean [groups], variance [groups]; of an item. */
plait_status pli_norm_ref(const plait_call *call, const pli_groups *groups, double epsilon, int64_t item);
plait_status pli_norm_f32(const plait_call *call, const pli_groups *groups, double epsilon, int64_t item);
/** Of y, variance, dy: dx. */
plait_status pli_norm_gradient_ref(const plait_call *call, const pli_groups *groups, double epsilon, int64_t item);
plait_status pli_norm_gradient_f32(const plait_call *call, const pli_groups *groups, double epsilon, int64_t item);

#endif
