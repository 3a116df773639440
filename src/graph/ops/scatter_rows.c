/* scatter_rows: begins with zeros in the shape of input 0 (a variable, whose values are not needed), and adds row i of
 * input 2 to row number input 1 [i]. It is the dense form of the gradient of get_rows. An inc of it pushes only the
 * rows, and the dense form is never made. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    if (call->in[1].type != PLAIT_I64 || call->in[2].type != call->in[0].type || call->in[0].shape.rank < 1)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs something with rows, their numbers (i64), and values of its type");
    return pli_infer_as_input(call);
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const plait_tensor *out = &call->out[0];
    const int64_t       n = plait_shape_elements(&call->in[1].shape), all = plait_shape_elements(&out->shape);
    const int64_t       rows = out->shape.dim[0], width = rows > 0 ? all / rows : 0, *row = call->in[1].data;
    memset(out->data, 0, (size_t)all * plait_type_bytes(out->type));
    for (int64_t i = 0; i < n; i++) {
        if (row[i] < 0 || row[i] >= rows)
            return plait_call_fail(call, PLAIT_EINVAL, "row %lld of %lld", (long long)row[i], (long long)rows);
        pli_add_row(out, row[i] * width, &call->in[2], i * width, width);
    }
    return PLAIT_OK;
}

/* The derivative by input 2: the rows of dy with these numbers. */
static void gradient(const plait_gradient *at) {
    at->d_in[2] = pli_op2(at->graph, &pli_op_gather, at->d_out[0], at->in[1]);
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_scatter_rows = {
    .size = sizeof(plait_op),
    .name = "scatter_rows",
    .summary = "rows added into zeros, by number",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_added,
    .kernels = kernels,
};
