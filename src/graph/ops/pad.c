/* pad: adds `before` and `after` elements of one value along each axis. The gradient is a slice of dy. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { BEFORE, AFTER, VALUE };

static const plait_attr_spec attrs[] = {
    [BEFORE] = { .preset = { .name = "before", .kind = PLAIT_ATTR_INTS }, .required = 1 },
    [AFTER] = { .preset = { .name = "after", .kind = PLAIT_ATTR_INTS }, .required = 1 },
    [VALUE] = { .preset = { .name = "value", .kind = PLAIT_ATTR_FLOAT } },
};

static plait_status infer(const plait_call *call) {
    const plait_attr *before = &call->attr[BEFORE], *after = &call->attr[AFTER];
    plait_shape       shape = call->in[0].shape;
    if (before->n != shape.rank || after->n != shape.rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "before and after of %d and %d axes; there are %d", before->n,
                               after->n, shape.rank);
    for (int32_t i = 0; i < shape.rank; i++) {
        const int64_t a = before->u.ints[i], b = after->u.ints[i];
        if (a < 0 || b < 0) return plait_call_fail(call, PLAIT_ESHAPE, "cannot pad by less than 0; slice does");
        if (shape.dim[i] >= 0 && (__builtin_add_overflow(shape.dim[i], a, &shape.dim[i]) ||
                                  __builtin_add_overflow(shape.dim[i], b, &shape.dim[i])))
            return plait_call_fail(call, PLAIT_ESHAPE, "axis %d is longer than any can be", i);
    }
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const plait_tensor *y = &call->out[0];
    const int64_t       n = plait_shape_elements(&y->shape);
    int64_t             strides[PLAIT_RANK_MAX], base = 0;
    pli_strides(&y->shape, strides);
    for (int32_t i = 0; i < y->shape.rank; i++) base += call->attr[BEFORE].u.ints[i] * strides[i];
    for (int64_t i = 0; i < n; i++) pli_element_set(y, i, call->attr[VALUE].u.f);
    pli_write_strided(&call->in[0], y, base, strides);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const int32_t rank = at->attr[BEFORE].n;
    int64_t       ends[PLAIT_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) ends[i] = at->attr[AFTER].u.ints[i] > 0 ? -at->attr[AFTER].u.ints[i] : INT64_MAX;
    const plait_attr bounds[] = { pli_attr_ints("axes", 0, NULL),
                                  pli_attr_ints("starts", rank, at->attr[BEFORE].u.ints),
                                  pli_attr_ints("ends", rank, ends), pli_attr_ints("steps", 0, NULL) };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_slice, at->d_out, 1, bounds);
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_pad = {
    .size = sizeof(plait_op),
    .name = "pad",
    .summary = "more elements of one value on either side",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 3,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
