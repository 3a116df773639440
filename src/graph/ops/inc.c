/* inc: adds a delta to a variable, or pushes a gradient: what it means is the store's. Its output is
 * the scalar true: fetch it to have the inc done. */
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_tensor *variable = &call->in[0], *delta = &call->in[1];
    bool                equal = variable->shape.rank == delta->shape.rank && variable->type == delta->type;
    for (int32_t i = 0; equal && i < variable->shape.rank; i++)
        equal = delta->shape.dim[i] == variable->shape.dim[i] || delta->shape.dim[i] == PLAIT_ANY;
    if (!equal) return plait_call_fail(call, PLAIT_ESHAPE, "the delta needs the variable's type and shape");
    call->out[0] = (plait_tensor){ .type = PLAIT_BOOL, .shape = { .rank = 0 } };
    return PLAIT_OK;
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
};
