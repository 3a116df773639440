/* identity: the input itself, as a value that can have another name. */
#include "graph/ops/ops.h"

static void gradient(const plait_gradient *at) { at->d_in[0] = at->d_out[0]; }

const plait_op pli_op_identity = {
    .size = sizeof(plait_op),
    .name = "identity",
    .summary = "the input itself",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = PLAIT_OP_ALIAS,
    .infer = pli_infer_as_input,
    .gradient = gradient,
    .flops = pli_flops_none,
};
