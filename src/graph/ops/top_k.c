/* top_k: the k largest elements along the last axis, the largest first, and their positions (i64). The first of equal
 * elements comes first, and NaN before all. The gradient goes to these positions. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

#include <math.h>
#include <string.h>

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "k", .kind = PLAIT_ATTR_INT }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_tensor *x = &call->in[0];
    const int64_t       k = call->attr[0].u.i;
    if (x->shape.rank < 1) return plait_call_fail(call, PLAIT_ESHAPE, "needs an axis");
    plait_shape    shape = x->shape;
    const int64_t *last = &x->shape.dim[shape.rank - 1];
    if (k < 0 || (*last >= 0 && k > *last))
        return plait_call_fail(call, PLAIT_ESHAPE, "the largest %lld of %lld", (long long)k, (long long)*last);
    shape.dim[shape.rank - 1] = k;
    call->out[0] = (plait_tensor){ .type = x->type, .shape = shape };
    call->out[1] = (plait_tensor){ .type = PLAIT_I64, .shape = shape };
    return PLAIT_OK;
}

static bool comes_before(double a, double b) { return a > b || (isnan(a) && !isnan(b)); }

/* An item is a row: each element is inserted in its place among the k largest so far. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0];
    const int64_t       n = x->shape.dim[x->shape.rank - 1], k = call->attr[0].u.i, base = item * n;
    int64_t            *place = (int64_t *)call->out[1].data + item * k, found = 0;
    for (int64_t i = 0; i < n && k > 0; i++) {
        const double value = pli_element(x, base + i);
        if (found == k && !comes_before(value, pli_element(x, base + place[k - 1]))) continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && comes_before(value, pli_element(x, base + place[at - 1])); at--) place[at] = place[at - 1];
        place[at] = i;
    }
    const size_t bytes = plait_type_bytes(x->type);
    for (int64_t i = 0; i < k; i++)
        memcpy((char *)call->out[0].data + (size_t)(item * k + i) * bytes,
               (const char *)x->data + (size_t)(base + place[i]) * bytes, bytes);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const int64_t n = call->in[0].shape.dim[call->in[0].shape.rank - 1];
    return n > 0 ? plait_shape_elements(&call->in[0].shape) / n : 0;
}

static void gradient(const plait_gradient *at) {
    if (at->d_out[0] >= 0) at->d_in[0] = pli_op3(at->graph, &pli_op_scatter_last, at->in[0], at->out[1], at->d_out[0]);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_top_k = {
    .size = sizeof(plait_op),
    .name = "top_k",
    .summary = "the k largest along the last axis, and where",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .attrs = attrs,
    .n_attrs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_input,
    .kernels = kernels,
};
