/* expand_dims: adds axes of length 1; `axes` counts in the result. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "axes", .kind = PLAIT_ATTR_INTS }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    plait_shape        shape = { .rank = x->rank + call->attr[0].n };
    pli_axes           axes;
    if (shape.rank > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "%d axes; at most %d", shape.rank, PLAIT_RANK_MAX);
    PLI_TRY(pli_axes_of(call, &call->attr[0], shape.rank, false, &axes));
    for (int32_t i = 0, from = 0; i < shape.rank; i++) shape.dim[i] = axes.in[i] ? 1 : x->dim[from++];
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

const plait_op pli_op_expand_dims = {
    .size = sizeof(plait_op),
    .name = "expand_dims",
    .summary = "with further axes of length 1",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .flags = PLAIT_OP_ALIAS,
    .infer = infer,
    .gradient = pli_gradient_reshape,
    .flops = pli_flops_none,
};
