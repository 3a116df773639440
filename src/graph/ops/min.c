/* min: the smallest element over axes (none given: all, each of at least one element); `keep` leaves them with length
 * 1. NaN where there is one. The gradient is shared equally by those that are the smallest (extreme.h). */
#include "graph/extreme.h"

static const pli_extreme extreme = { .largest = false, .what = "the smallest" };

const plait_op pli_op_min = {
    .size = sizeof(plait_op),
    .name = "min",
    .summary = "the smallest over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .user = (void *)&extreme,
    .infer = pli_extreme_infer,
    .gradient = pli_extreme_gradient,
    .kernels = pli_extreme_kernels,
};
