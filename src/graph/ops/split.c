/* split: divides an axis into `parts` arrays of equal lengths, or of the given `lengths`. The gradient joins those of
 * the parts. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { PARTS, AXIS, LENGTHS };

static const plait_attr_spec attrs[] = {
    [PARTS] = { .preset = { .name = "parts", .kind = PLAIT_ATTR_INT }, .required = 1 },
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT } },
    [LENGTHS] = { .preset = { .name = "lengths", .kind = PLAIT_ATTR_INTS } },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    const plait_attr  *lengths = &call->attr[LENGTHS];
    const int64_t      parts = call->attr[PARTS].u.i;
    int32_t            axis;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->rank, &axis));
    const int64_t all = x->dim[axis];
    int64_t       sum = 0;
    if (lengths->n != 0 && lengths->n != parts)
        return plait_call_fail(call, PLAIT_ESHAPE, "%d lengths for %lld parts", lengths->n, (long long)parts);
    if (lengths->n == 0 && all >= 0 && all % parts != 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "axis %d of length %lld in %lld equal parts", axis, (long long)all,
                               (long long)parts);
    for (int32_t k = 0; k < parts; k++) {
        plait_tensor *out = &call->out[k];
        *out = (plait_tensor){ .type = call->in[0].type, .shape = *x };
        out->shape.dim[axis] = lengths->n > 0 ? lengths->u.ints[k] : all < 0 ? PLAIT_ANY : all / parts;
        if (lengths->n > 0 && (lengths->u.ints[k] < 0 || __builtin_add_overflow(sum, lengths->u.ints[k], &sum)))
            return plait_call_fail(call, PLAIT_ESHAPE, "a part of length %lld", (long long)lengths->u.ints[k]);
    }
    if (lengths->n > 0 && all >= 0 && sum != all)
        return plait_call_fail(call, PLAIT_ESHAPE, "parts of %lld together, axis %d has length %lld", (long long)sum,
                               axis, (long long)all);
    return PLAIT_OK;
}

/* An item is a part. For each place of the axes before the split axis, its elements are one contiguous block. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0], *y = &call->out[item];
    const int64_t       bytes = (int64_t)plait_type_bytes(x->type), elements = plait_shape_elements(&y->shape);
    int32_t             axis;
    int64_t             strides[PLAIT_RANK_MAX], before = 0;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->shape.rank, &axis));
    pli_strides(&x->shape, strides);
    for (int64_t k = 0; k < item; k++) before += call->out[k].shape.dim[axis];
    const int64_t block = y->shape.dim[axis] * strides[axis], step = x->shape.dim[axis] * strides[axis];
    for (int64_t at = 0, from = before * strides[axis]; at < elements; at += block, from += step)
        memcpy((char *)y->data + at * bytes, (const char *)x->data + from * bytes, (size_t)(block * bytes));
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return call->n_out; }

static void gradient(const plait_gradient *at) {
    plait_value d[64]; /* no node has more outputs */
    for (int32_t k = 0; k < at->n_out; k++)
        d[k] = at->d_out[k] >= 0 ? at->d_out[k] : pli_op1(at->graph, &pli_op_zeros_like, at->out[k]);
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_concat, d, at->n_out, &at->attr[AXIS]);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_split = {
    .size = sizeof(plait_op),
    .name = "split",
    .summary = "parts along an axis",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 0,
    .attrs = attrs,
    .n_attrs = 3,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
