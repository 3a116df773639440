/* reshape: the same elements in another shape; one length may be -1: it follows from the others. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "shape", .kind = PLAIT_ATTR_INTS }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_attr *want = &call->attr[0];
    plait_shape       shape = { .rank = want->n };
    int32_t           open = -1;
    int64_t           known = 1;
    if (want->n > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "%d axes; at most %d", want->n, PLAIT_RANK_MAX);
    for (int32_t i = 0; i < want->n; i++) {
        shape.dim[i] = want->u.ints[i];
        if (shape.dim[i] < -1 || (shape.dim[i] == -1 && open >= 0))
            return plait_call_fail(call, PLAIT_ESHAPE, "lengths are 0 or more, and one may be -1");
        if (shape.dim[i] == -1)
            open = i;
        else if (__builtin_mul_overflow(known, shape.dim[i], &known))
            return plait_call_fail(call, PLAIT_ESHAPE, "the new shape is larger than any array can be");
    }
    const int64_t all = plait_shape_elements(&call->in[0].shape);
    if (open >= 0 && all >= 0) {
        if (known == 0 || all % known != 0)
            return plait_call_fail(call, PLAIT_ESHAPE, "%lld elements do not fill rows of %lld", (long long)all,
                                   (long long)known);
        shape.dim[open] = all / known;
    } else if (all >= 0 && all != known)
        return plait_call_fail(call, PLAIT_ESHAPE, "%lld elements do not fill %lld places", (long long)all,
                               (long long)known);
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

const plait_op pli_op_reshape = {
    .size = sizeof(plait_op),
    .name = "reshape",
    .summary = "the same elements in another shape",
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
