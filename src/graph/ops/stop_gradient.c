/* stop_gradient: the input itself, but no gradient passes through. */
#include "graph/ops/ops.h"

const plait_op pli_op_stop_gradient = {
    .size = sizeof(plait_op),
    .name = "stop_gradient",
    .summary = "the input itself, a constant to gradients",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = PLAIT_OP_ALIAS,
    .infer = pli_infer_as_input,
    .flops = pli_flops_none,
};
