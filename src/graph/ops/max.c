/* max: the largest element along axes (none given: all), each with at least one element; `keep` leaves them with length
 * 1. The result is NaN if an element is. The largest elements share the gradient equally (extreme.h). */
#include "graph/extreme.h"

static const pli_extreme extreme = { .largest = true, .what = "the largest" };

const plait_op pli_op_max = {
    .size = sizeof(plait_op),
    .name = "max",
    .summary = "the largest over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .user = (void *)&extreme,
    .infer = pli_extreme_infer,
    .gradient = pli_extreme_gradient,
    .flops = pli_flops_input,
    .kernels = pli_extreme_kernels,
};
