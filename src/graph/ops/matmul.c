/* matmul: c = a b over the last two axes, each side as it is or transposed (ta, tb); axes before them are a batch and broadcast.
 * [m, k] [k, n] -> [m, n]. With G = dc: da = G bT, db = aT G, and the transposed cases likewise. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { TA, TB };

static const plait_attr_spec attrs[] = {
    [TA] = { .preset = { .name = "ta", .kind = PLAIT_ATTR_INT } },
    [TB] = { .preset = { .name = "tb", .kind = PLAIT_ATTR_INT } },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape, *b = &call->in[1].shape;
    if (call->in[0].type != call->in[1].type || !pli_type_is_float(call->in[0].type))
        return plait_call_fail(call, PLAIT_ESHAPE, "multiplies floats of one type; cast one of them");
    if (a->rank < 2 || b->rank < 2) return plait_call_fail(call, PLAIT_ESHAPE, "needs matrices: two axes or more");
    const int     ta = call->attr[TA].u.i != 0, tb = call->attr[TB].u.i != 0;
    const int64_t m = a->dim[a->rank - (ta ? 1 : 2)], k = a->dim[a->rank - (ta ? 2 : 1)];
    const int64_t k2 = b->dim[b->rank - (tb ? 1 : 2)], n = b->dim[b->rank - (tb ? 2 : 1)];
    if (k != k2 && k != PLAIT_ANY && k2 != PLAIT_ANY)
        return plait_call_fail(call, PLAIT_ESHAPE, "inner lengths %lld and %lld differ", (long long)k, (long long)k2);
    plait_shape batch_a = *a, batch_b = *b, out;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    if (!pli_broadcast(&batch_a, &batch_b, &out)) return plait_call_fail(call, PLAIT_ESHAPE, "batches do not go together");
    out.dim[out.rank++] = m;
    out.dim[out.rank++] = n;
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = out };
    return PLAIT_OK;
}

/* An item is a row of c. */
static int64_t items(const plait_call *call) {
    const plait_shape *c = &call->out[0].shape;
    const int64_t      n = c->dim[c->rank - 1], all = plait_shape_elements(c);
    return n > 0 ? all / n : 0;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_shape *sa = &call->in[0].shape, *sb = &call->in[1].shape, *sc = &call->out[0].shape;
    const int          ta = call->attr[TA].u.i != 0, tb = call->attr[TB].u.i != 0;
    const int64_t      m = sc->dim[sc->rank - 2], n = sc->dim[sc->rank - 1], k = sa->dim[sa->rank - (ta ? 2 : 1)];
    plait_shape        batch = *sc, batch_a = *sa, batch_b = *sb;
    batch.rank -= 2;
    batch_a.rank -= 2;
    batch_b.rank -= 2;
    int64_t own[PLAIT_RANK_MAX], stride_a[PLAIT_RANK_MAX], stride_b[PLAIT_RANK_MAX], at_a = 0, at_b = 0;
    pli_strides(&batch, own);
    pli_broadcast_strides(&batch_a, &batch, stride_a);
    pli_broadcast_strides(&batch_b, &batch, stride_b);
    const int64_t which = item / m, i = item % m;
    for (int32_t d = 0; d < batch.rank; d++) {
        at_a += which / own[d] % batch.dim[d] * stride_a[d] * m * k;
        at_b += which / own[d] % batch.dim[d] * stride_b[d] * k * n;
    }
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t l = 0; l < k; l++)
            sum += pli_element(&call->in[0], at_a + (ta ? l * m + i : i * k + l)) * pli_element(&call->in[1], at_b + (tb ? j * k + l : l * n + j));
        pli_element_set(&call->out[0], item * n + j, sum);
    }
    return PLAIT_OK;
}

static plait_value product(const plait_gradient *at, plait_value a, int ta, plait_value b, int tb) {
    plait_attr given[] = { attrs[TA].preset, attrs[TB].preset };
    given[TA].u.i = ta;
    given[TB].u.i = tb;
    const plait_value in[] = { a, b };
    return pli_graph_node(at->graph, &pli_op_matmul, in, 2, given);
}

static void gradient(const plait_gradient *at) {
    const int         ta = at->attr[TA].u.i != 0, tb = at->attr[TB].u.i != 0;
    const plait_value a = at->in[0], b = at->in[1], g = at->d_out[0];
    const plait_value da = ta ? product(at, b, tb, g, 1) : product(at, g, 0, b, !tb);
    const plait_value db = tb ? product(at, g, 1, a, ta) : product(at, a, !ta, g, 0);
    at->d_in[0] = pli_unbroadcast(at->graph, da, a);
    at->d_in[1] = pli_unbroadcast(at->graph, db, b);
}

static double flops(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape;
    return 2.0 * (double)plait_shape_elements(&call->out[0].shape) * (double)a->dim[a->rank - (call->attr[TA].u.i != 0 ? 2 : 1)];
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_matmul = {
    .size = sizeof(plait_op),
    .name = "matmul",
    .summary = "the product of matrices",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
