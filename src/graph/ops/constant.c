/* constant: values that the graph holds. A plan points to them; nothing is computed. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "value", .kind = PLAIT_ATTR_TENSOR }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->attr[0].u.tensor->type, .shape = call->attr[0].u.tensor->shape };
    return PLAIT_OK;
}

const plait_op pli_op_constant = {
    .size = sizeof(plait_op),
    .name = "constant",
    .summary = "fixed values",
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .infer = infer,
    .flops = pli_flops_none,
};
