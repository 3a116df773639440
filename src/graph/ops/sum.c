/* sum: the sum along axes (none given: all); `keep` leaves them with length 1. Integers wrap. reduce.h has the order of
 * the terms. The gradient of an element is the gradient of its sum. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    if (call->in[0].type == PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "sums numbers, not bools; cast them to i64");
    return pli_infer_reduction(call);
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_broadcast_like, pli_restore_axes(at, at->d_out[0]), at->in[0]);
}

static const pli_sum_kind kind = { .mean = false };

const plait_op pli_op_sum = {
    .size = sizeof(plait_op),
    .name = "sum",
    .summary = "the sum over axes",
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
