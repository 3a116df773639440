/* scatter_last: begins with zeros in the shape of input 0, whose values are not needed, and adds input 2 along the last
 * axis: y[.., number[.., j]] += v[.., j], in the order of j. The gradient by v is gather_last. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

#include <string.h>

static plait_status infer(const plait_call *call) {
    const plait_tensor *x = &call->in[0], *number = &call->in[1], *v = &call->in[2];
    bool                fits = number->type == PLAIT_I64 && v->type == x->type && x->shape.rank >= 1 &&
                x->shape.rank == v->shape.rank && number->shape.rank == v->shape.rank;
    for (int32_t i = 0; fits && i < v->shape.rank; i++) {
        const int64_t a = number->shape.dim[i], b = v->shape.dim[i],
                      c = i + 1 < v->shape.rank ? x->shape.dim[i] : PLAIT_ANY;
        fits = (a == b || a == PLAIT_ANY || b == PLAIT_ANY) && (a == c || a == PLAIT_ANY || c == PLAIT_ANY) &&
               (b == c || b == PLAIT_ANY || c == PLAIT_ANY);
    }
    if (!fits)
        return plait_call_fail(
            call, PLAIT_ESHAPE,
            "needs numbers (i64) and values of one shape, with input 0's type and axes but for the last");
    call->out[0] = (plait_tensor){ .type = x->type, .shape = x->shape };
    return PLAIT_OK;
}

/* An item is a row. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *y = &call->out[0], *v = &call->in[2];
    const int64_t       n = y->shape.dim[y->shape.rank - 1], m = v->shape.dim[v->shape.rank - 1];
    const int64_t      *number = (const int64_t *)call->in[1].data + item * m;
    const size_t        bytes = plait_type_bytes(y->type);
    memset((char *)y->data + (size_t)(item * n) * bytes, 0, (size_t)n * bytes);
    for (int64_t j = 0; j < m; j++) {
        if (number[j] < 0 || number[j] >= n)
            return plait_call_fail(call, PLAIT_EINVAL, "number %lld of %lld", (long long)number[j], (long long)n);
        const int64_t to = item * n + number[j];
        pli_element_set(y, to, pli_element(y, to) + pli_element(v, item * m + j));
    }
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const int64_t n = call->out[0].shape.dim[call->out[0].shape.rank - 1];
    return n > 0 ? plait_shape_elements(&call->out[0].shape) / n : 0;
}

static void gradient(const plait_gradient *at) {
    at->d_in[2] = pli_op2(at->graph, &pli_op_gather_last, at->d_out[0], at->in[1]);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_scatter_last = {
    .size = sizeof(plait_op),
    .name = "scatter_last",
    .summary = "values added into zeros along the last axis, by number",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_added,
    .kernels = kernels,
};
