/* inc_rows: inc for some rows (of axis 0), as the gradient of an embedding needs it. Repeated rows add up. */
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *v = &call->in[0].shape, *rows = &call->in[1].shape, *delta = &call->in[2].shape;
    bool               fits = call->in[1].type == PLAIT_I64 && call->in[2].type == call->in[0].type && v->rank >= 1 &&
                delta->rank == rows->rank + v->rank - 1;
    for (int32_t i = 0; fits && i < delta->rank; i++) {
        const int64_t want = i < rows->rank ? rows->dim[i] : v->dim[i - rows->rank + 1];
        fits = want == delta->dim[i] || want == PLAIT_ANY || delta->dim[i] == PLAIT_ANY;
    }
    if (!fits)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs a variable, rows (i64), and a delta of rows' shape and a row's");
    return pli_infer_done(call);
}

const plait_op pli_op_inc_rows = {
    .size = sizeof(plait_op),
    .name = "inc_rows",
    .summary = "adds to rows of a variable, or pushes their gradient",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = PLAIT_OP_STORE | PLAIT_OP_STATEFUL,
    .shape_only = 1,
    .infer = infer,
    .flops = pli_flops_none,
};
