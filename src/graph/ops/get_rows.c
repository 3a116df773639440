/* get_rows: rows (of axis 0) of a variable by their numbers, as in an embedding. Its gradient is scatter_rows, which
 * inc pushes as rows. */
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *v = &call->in[0].shape, *rows = &call->in[1].shape;
    if (call->in[1].type != PLAIT_I64)
        return plait_call_fail(call, PLAIT_ESHAPE, "rows are of type i64, not %s", plait_type_name(call->in[1].type));
    if (v->rank < 1 || rows->rank + v->rank - 1 > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "the variable needs an axis of rows, and the result at most %d axes",
                               PLAIT_RANK_MAX);
    plait_shape out = { .rank = rows->rank + v->rank - 1 };
    for (int32_t i = 0; i < out.rank; i++) out.dim[i] = i < rows->rank ? rows->dim[i] : v->dim[i - rows->rank + 1];
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = out };
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->in[1], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_scatter_rows, in, 3, NULL);
}

const plait_op pli_op_get_rows = {
    .size = sizeof(plait_op),
    .name = "get_rows",
    .summary = "rows of a variable by number",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = PLAIT_OP_STORE,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
};
