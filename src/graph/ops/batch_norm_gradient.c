/* batch_norm_gradient: the derivative of batch_norm by its input, computed from its y, its variance and dy. It cannot
 * be differentiated again. */
#include "graph/norm.h"
#include "graph/ops/ops.h"

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "batch_norm_gradient"); }

const plait_op pli_op_batch_norm_gradient = {
    .size = sizeof(plait_op),
    .name = "batch_norm_gradient",
    .summary = "batch_norm's derivative by its input",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = pli_norm_channel_attrs,
    .n_attrs = 1,
    .user = (void *)&pli_norm_channels,
    .infer = pli_norm_gradient_infer,
    .gradient = gradient,
    .flops = pli_flops_norm,
    .kernels = pli_norm_gradient_kernels,
};
