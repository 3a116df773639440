/* argmax: the position (i64) of the largest element along an axis (by default the last): the first NaN if there is one,
 * else the first of equal elements. The axis is removed, or stays with length 1 (`keep`). */
#include "graph/reduce.h"

#include <math.h>

enum { AXIS, KEEP };

static const plait_attr_spec attrs[] = {
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [KEEP] = { .preset = { .name = "keep", .kind = PLAIT_ATTR_INT } },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    int32_t            axis;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->rank, &axis));
    plait_shape shape = { .rank = 0 };
    for (int32_t i = 0; i < x->rank; i++)
        if (i != axis)
            shape.dim[shape.rank++] = x->dim[i];
        else if (call->attr[KEEP].u.i != 0)
            shape.dim[shape.rank++] = 1;
    call->out[0] = (plait_tensor){ .type = PLAIT_I64, .shape = shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0];
    int32_t             axis;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->shape.rank, &axis));
    int64_t stride[PLAIT_RANK_MAX], best = 0;
    pli_strides(&x->shape, stride);
    const int64_t n = x->shape.dim[axis], step = stride[axis], from = item / step * step * n + item % step;
    if (n == 0) return plait_call_fail(call, PLAIT_ESHAPE, "the largest of nothing");
    for (int64_t i = 1; i < n; i++) {
        const double a = pli_element(x, from + i * step), b = pli_element(x, from + best * step);
        if (a > b || (isnan(a) && !isnan(b))) best = i;
    }
    ((int64_t *)call->out[0].data)[item] = best;
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_argmax = {
    .size = sizeof(plait_op),
    .name = "argmax",
    .summary = "where the largest element along an axis is",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .flops = pli_flops_input,
    .kernels = kernels,
};
