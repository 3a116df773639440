/* gather: slices of input 0 along axis 0, chosen by input 1 (i64; each in range). Output: [shape of input 1, the
 * rest]. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape, *rows = &call->in[1].shape;
    if (call->in[1].type != PLAIT_I64)
        return plait_call_fail(call, PLAIT_ESHAPE, "numbers are of type i64, not %s",
                               plait_type_name(call->in[1].type));
    if (x->rank < 1 || rows->rank + x->rank - 1 > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "input 0 needs an axis, and the result at most %d", PLAIT_RANK_MAX);
    plait_shape out = { .rank = rows->rank + x->rank - 1 };
    for (int32_t i = 0; i < out.rank; i++) out.dim[i] = i < rows->rank ? rows->dim[i] : x->dim[i - rows->rank + 1];
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = out };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0];
    const int64_t       rows = x->shape.dim[0], row = ((const int64_t *)call->in[1].data)[item];
    if (row < 0 || row >= rows)
        return plait_call_fail(call, PLAIT_EINVAL, "number %lld of %lld", (long long)row, (long long)rows);
    const size_t bytes = (size_t)(plait_shape_elements(&x->shape) / rows) * plait_type_bytes(x->type);
    if (bytes > 0)
        memcpy((char *)call->out[0].data + (size_t)item * bytes, (const char *)x->data + (size_t)row * bytes, bytes);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->in[1].shape); }

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->in[1], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_scatter_rows, in, 3, NULL);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_gather = {
    .size = sizeof(plait_op),
    .name = "gather",
    .summary = "slices along the first axis, by number",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
