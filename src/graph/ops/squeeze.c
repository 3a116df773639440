/* squeeze: removes some axes, which have length 1. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "axes", .kind = PLAIT_ATTR_INTS }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    plait_shape        shape = { .rank = 0 };
    pli_axes           axes;
    PLI_TRY(pli_axes_of(call, &call->attr[0], x->rank, false, &axes));
    for (int32_t i = 0; i < x->rank; i++) {
        if (!axes.in[i])
            shape.dim[shape.rank++] = x->dim[i];
        else if (x->dim[i] != 1 && x->dim[i] != PLAIT_ANY)
            return plait_call_fail(call, PLAIT_ESHAPE, "axis %d has length %lld, not 1", i, (long long)x->dim[i]);
    }
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

const plait_op pli_op_squeeze = {
    .size = sizeof(plait_op),
    .name = "squeeze",
    .summary = "without axes of length 1",
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
