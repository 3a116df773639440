/* variable: a value that the store keeps under a number. If a node needs its values, a plan gets them all, borrowed
 * from the store; get_rows, inc and inc_rows need only its number. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "number", .kind = PLAIT_ATTR_INT }, .required = 1 },
    { .preset = { .name = "initial", .kind = PLAIT_ATTR_TENSOR }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_tensor *initial = call->attr[1].u.tensor;
    if (plait_shape_elements(&initial->shape) < 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "a variable's lengths are all known");
    call->out[0] = (plait_tensor){ .type = initial->type, .shape = initial->shape };
    return PLAIT_OK;
}

const plait_op pli_op_variable = {
    .size = sizeof(plait_op),
    .name = "variable",
    .summary = "values that outlive a run",
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .flags = PLAIT_OP_STATEFUL,
    .infer = infer,
    .flops = pli_flops_none,
};
