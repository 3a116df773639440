/* stop_gradient: the input itself, as something that no gradient goes through. */
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    return PLAIT_OK;
}

const plait_op pli_op_stop_gradient = {
    .size = sizeof(plait_op),
    .name = "stop_gradient",
    .summary = "the input itself, a constant to gradients",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = PLAIT_OP_ALIAS,
    .infer = infer,
};
