/* reshape_like: the elements of input 0 in the shape of input 1, whose values are not needed. */
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const int64_t have = plait_shape_elements(&call->in[0].shape), places = plait_shape_elements(&call->in[1].shape);
    if (have >= 0 && places >= 0 && have != places)
        return plait_call_fail(call, PLAIT_ESHAPE, "%lld elements do not fill %lld places", (long long)have,
                               (long long)places);
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[1].shape };
    return PLAIT_OK;
}

const plait_op pli_op_reshape_like = {
    .size = sizeof(plait_op),
    .name = "reshape_like",
    .summary = "the elements of input 0 in the shape of input 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = PLAIT_OP_ALIAS,
    .shape_only = 2,
    .infer = infer,
    .gradient = pli_gradient_reshape,
    .flops = pli_flops_none,
};
