/* concat: joins arrays one after the other along an axis; their other axes are equal. Each array gets its part of the
 * gradient. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT } },
};

static plait_status infer(const plait_call *call) {
    plait_tensor out = { .type = call->in[0].type, .shape = call->in[0].shape };
    int32_t      axis;
    PLI_TRY(pli_axis_find(call, call->attr[0].u.i, out.shape.rank, &axis));
    for (int32_t k = 1; k < call->n_in; k++) {
        const plait_shape *x = &call->in[k].shape;
        bool               fits = call->in[k].type == out.type && x->rank == out.shape.rank;
        for (int32_t i = 0; fits && i < x->rank; i++) {
            int64_t *d = &out.shape.dim[i];
            if (i == axis && (*d == PLAIT_ANY || x->dim[i] == PLAIT_ANY))
                *d = PLAIT_ANY;
            else if (i == axis)
                fits = !__builtin_add_overflow(*d, x->dim[i], d);
            else if (*d == PLAIT_ANY)
                *d = x->dim[i];
            else
                fits = x->dim[i] == *d || x->dim[i] == PLAIT_ANY;
        }
        if (!fits)
            return plait_call_fail(call, PLAIT_ESHAPE,
                                   "input %d differs from those before it in type, or in an axis other than %d", k,
                                   axis);
    }
    call->out[0] = out;
    return PLAIT_OK;
}

/* An item is an input. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *y = &call->out[0];
    int32_t             axis;
    int64_t             strides[PLAIT_RANK_MAX], before = 0;
    PLI_TRY(pli_axis_find(call, call->attr[0].u.i, y->shape.rank, &axis));
    pli_strides(&y->shape, strides);
    for (int64_t k = 0; k < item; k++) before += call->in[k].shape.dim[axis];
    pli_write_strided(&call->in[item], y, before * strides[axis], strides);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return call->n_in; }

static plait_value part_of(plait_graph *g, plait_value all, const plait_value *parts, int32_t n, int64_t axis,
                           int64_t part) {
    plait_value *in = pli_array((size_t)n + 1, sizeof *in);
    if (in == NULL) return pli_graph_failed(g, PLAIT_ENOMEM, "no memory to differentiate");
    in[0] = all;
    for (int32_t i = 0; i < n; i++) in[i + 1] = parts[i];
    const plait_attr  attrs_of_part[] = { pli_attr_int("axis", axis), pli_attr_int("part", part) };
    const plait_value value = pli_graph_node(g, &pli_op_concat_part, in, n + 1, attrs_of_part);
    pli_free(in);
    return value;
}

/* If the lengths along the axis are known, the parts are slices; if not, concat_part finds them in the run. */
static void gradient(const plait_gradient *at) {
    plait_graph  *g = at->graph;
    const int32_t rank = g->value[at->in[0]].rank;
    const int64_t axis = at->attr[0].u.i < 0 ? at->attr[0].u.i + rank : at->attr[0].u.i;
    int64_t       start = 0;
    for (int32_t k = 0; k < at->n_in; k++) {
        const int64_t length = start < 0 ? PLAIT_ANY : g->dim[g->value[at->in[k]].dim + axis];
        if (length >= 0) {
            const int64_t    end = start + length, one = 1;
            const plait_attr bounds[] = { pli_attr_ints("axes", 1, &axis), pli_attr_ints("starts", 1, &start),
                                          pli_attr_ints("ends", 1, &end), pli_attr_ints("steps", 1, &one) };
            at->d_in[k] = pli_graph_node(g, &pli_op_slice, at->d_out, 1, bounds);
            start = end;
            continue;
        }
        start = PLAIT_ANY;
        at->d_in[k] = part_of(g, at->d_out[0], at->in, at->n_in, axis, k);
    }
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_concat = {
    .size = sizeof(plait_op),
    .name = "concat",
    .summary = "arrays one after the other along an axis",
    .min_inputs = 1,
    .max_inputs = INT32_MAX,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
