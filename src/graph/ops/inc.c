/* inc: adds a delta to a variable, or pushes it as a gradient; the store decides which. Its output is the scalar true:
 * fetch it to make the run do the inc. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_tensor *variable = &call->in[0], *delta = &call->in[1];
    if (variable->type != delta->type || !pli_shapes_agree(&variable->shape, &delta->shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "the delta needs the variable's type and shape");
    return pli_infer_done(call);
}

const plait_op pli_op_inc = {
    .size = sizeof(plait_op),
    .name = "inc",
    .summary = "adds to a variable, or pushes its gradient",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = PLAIT_OP_STORE | PLAIT_OP_STATEFUL,
    .shape_only = 1,
    .infer = infer,
    .flops = pli_flops_none,
};
