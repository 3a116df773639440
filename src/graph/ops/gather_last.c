/* gather_last: y[.., j] = x[.., number[.., j]] along the last axis; the axes before it are equal. The gradient is
 * scatter_last. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

#include <string.h>

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    plait_shape        shape = call->in[1].shape;
    bool               fits = call->in[1].type == PLAIT_I64 && x->rank == shape.rank && x->rank >= 1;
    for (int32_t i = 0; fits && i + 1 < shape.rank; i++) {
        fits = x->dim[i] == shape.dim[i] || x->dim[i] == PLAIT_ANY || shape.dim[i] == PLAIT_ANY;
        if (shape.dim[i] == PLAIT_ANY) shape.dim[i] = x->dim[i];
    }
    if (!fits)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs numbers (i64) whose axes but for the last are those of input 0");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = shape };
    return PLAIT_OK;
}

/* An item is a row. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_shape *from = &call->in[0].shape, *to = &call->out[0].shape;
    const int64_t      n = from->dim[from->rank - 1], m = to->dim[to->rank - 1],
                  *number = (const int64_t *)call->in[1].data + item * m;
    const size_t bytes = plait_type_bytes(call->in[0].type);
    const char  *x = (const char *)call->in[0].data + (size_t)(item * n) * bytes;
    char        *y = (char *)call->out[0].data + (size_t)(item * m) * bytes;
    for (int64_t j = 0; j < m; j++) {
        if (number[j] < 0 || number[j] >= n)
            return plait_call_fail(call, PLAIT_EINVAL, "number %lld of %lld", (long long)number[j], (long long)n);
        memcpy(y + (size_t)j * bytes, x + (size_t)number[j] * bytes, bytes);
    }
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const int64_t m = call->out[0].shape.dim[call->out[0].shape.rank - 1];
    return m > 0 ? plait_shape_elements(&call->out[0].shape) / m : 0;
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op3(at->graph, &pli_op_scatter_last, at->in[0], at->in[1], at->d_out[0]);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_gather_last = {
    .size = sizeof(plait_op),
    .name = "gather_last",
    .summary = "elements along the last axis, by number",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
