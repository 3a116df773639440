/* scatter_add: input 0, where row i of input 2 is added to row number input 1 [i] (i64); repeats are added one after
 * the other. Rows are along axis 0. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape, *rows = &call->in[1].shape, *v = &call->in[2].shape;
    bool               fits = call->in[1].type == PLAIT_I64 && call->in[2].type == call->in[0].type && x->rank >= 1 &&
                v->rank == rows->rank + x->rank - 1 && call->in[0].type != PLAIT_BOOL;
    for (int32_t i = 0; fits && i < v->rank; i++) {
        const int64_t want = i < rows->rank ? rows->dim[i] : x->dim[i - rows->rank + 1];
        fits = want == v->dim[i] || want == PLAIT_ANY || v->dim[i] == PLAIT_ANY;
    }
    if (!fits)
        return plait_call_fail(
            call, PLAIT_ESHAPE,
            "needs rows of numbers, their numbers (i64), and values of its type, of the numbers' shape and a row's");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = *x };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const plait_tensor *y = &call->out[0], *v = &call->in[2];
    const int64_t       n = plait_shape_elements(&call->in[1].shape), all = plait_shape_elements(&y->shape),
                  rows = y->shape.dim[0];
    const int64_t width = rows > 0 ? all / rows : 0, *row = call->in[1].data;
    if (all > 0) memmove(y->data, call->in[0].data, (size_t)all * plait_type_bytes(y->type));
    for (int64_t i = 0; i < n; i++) {
        if (row[i] < 0 || row[i] >= rows)
            return plait_call_fail(call, PLAIT_EINVAL, "row %lld of %lld", (long long)row[i], (long long)rows);
        pli_add_row(y, row[i] * width, v, i * width, width);
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = at->d_out[0];
    at->d_in[2] = pli_op2(at->graph, &pli_op_gather, at->d_out[0], at->in[1]);
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_scatter_add = {
    .size = sizeof(plait_op),
    .name = "scatter_add",
    .summary = "rows added to rows, by number",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_added,
    .kernels = kernels,
};
