/* batch_norm: (x - mean) / deviation of each channel (axis 1) of [n, channels, ...] over all other axes (norm.h).
 * Outputs: y, and the mean and the variance (divided by n, not n - 1) of each channel in this batch; a program can keep
 * running ones by inc. With dy: dx = batch_norm_gradient. A gain and an offset need ops of their own. The statistics
 * themselves cannot be differentiated. */
#include "graph/norm.h"
#include "graph/ops/ops.h"

static void gradient(const plait_gradient *at) {
    if (at->d_out[1] >= 0 || at->d_out[2] >= 0) pli_gradient_refuse(at, "batch_norm's statistics");
    const plait_value in[] = { at->out[0], at->out[2], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_batch_norm_gradient, in, 3, at->attr);
}

const plait_op pli_op_batch_norm = {
    .size = sizeof(plait_op),
    .name = "batch_norm",
    .summary = "channels less their mean, over their deviation",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 3,
    .attrs = pli_norm_channel_attrs,
    .n_attrs = 1,
    .user = (void *)&pli_norm_channels,
    .infer = pli_norm_infer,
    .gradient = gradient,
    .flops = pli_flops_norm,
    .kernels = pli_norm_kernels,
};
