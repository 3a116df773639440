/* mean: the mean of floats along axes (none given: all); `keep` leaves them with length 1. The mean of no elements is
 * NaN. reduce.h has the order of the terms. The gradient of an element is the mean's gradient divided by the number of
 * elements. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    if (!pli_type_is_float(call->in[0].type))
        return plait_call_fail(call, PLAIT_ESHAPE, "the mean is of floats, not of %s; cast them",
                               plait_type_name(call->in[0].type));
    return pli_infer_reduction(call);
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value count = pli_graph_node(g, &pli_op_count, at->in, 1, &at->attr[0]);
    const plait_value share = pli_op2(g, &pli_op_div, pli_restore_axes(at, at->d_out[0]), count);
    at->d_in[0] = pli_op2(g, &pli_op_broadcast_like, share, at->in[0]);
}

static const pli_sum_kind kind = { .mean = true };

const plait_op pli_op_mean = {
    .size = sizeof(plait_op),
    .name = "mean",
    .summary = "the mean over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .user = (void *)&kind,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_input,
    .kernels = pli_sum_kernels,
};
