/* broadcast_like: repeats input 0 to the shape of input 1, whose values are not needed. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    plait_shape wide;
    if (!pli_broadcast(&call->in[0].shape, &call->in[1].shape, &wide) || wide.rank != call->in[1].shape.rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "input 0 does not broadcast to input 1");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[1].shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_shape *to = &call->out[0].shape;
    int64_t            first, stride[PLAIT_RANK_MAX], own[PLAIT_RANK_MAX];
    const int64_t      n = pli_item_piece(plait_shape_elements(to), item, &first);
    pli_strides(to, own);
    pli_broadcast_strides(&call->in[0].shape, to, stride);
    for (int64_t i = first; i < first + n; i++) {
        int64_t from = 0;
        for (int32_t k = 0; k < to->rank; k++) from += i / own[k] % to->dim[k] * stride[k];
        pli_element_set(&call->out[0], i, pli_element(&call->in[0], from));
    }
    return PLAIT_OK;
}

/* By runs instead of single elements. */
static plait_status run_runs(const plait_call *call, int64_t item) {
    int64_t strides[PLAIT_RANK_MAX];
    pli_broadcast_strides(&call->in[0].shape, &call->out[0].shape, strides);
    pli_read_strided(call, &call->in[0], 0, strides, item);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_sum_like, at->d_out[0], at->in[0]);
}

static const plait_kernel        runs = { .name = "runs", .items = pli_items_by_output, .run = run_runs };
static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &runs, &ref, NULL };

const plait_op pli_op_broadcast_like = {
    .size = sizeof(plait_op),
    .name = "broadcast_like",
    .summary = "input 0 repeated to the shape of input 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .shape_only = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
