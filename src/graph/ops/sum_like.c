/* sum_like: sums input 0 along the axes along which the shape of input 1 would be broadcast to it. It is the gradient
 * of broadcasting. Only the shape of input 1 is needed. reduce.h has the order of the terms. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    plait_shape wide;
    if (!pli_broadcast(&call->in[0].shape, &call->in[1].shape, &wide) || wide.rank != call->in[0].shape.rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 does not broadcast to input 0");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[1].shape };
    return PLAIT_OK;
}

/* Finds the axes of `from` along which `to` would be repeated. */
static void summed_axes(const plait_shape *from, const plait_shape *to, bool summed[PLAIT_RANK_MAX]) {
    for (int32_t i = 0; i < from->rank; i++) {
        const int32_t k = i - (from->rank - to->rank);
        summed[i] = k < 0 || (to->dim[k] == 1 && from->dim[i] != 1);
    }
}

static pli_reduction reduction(const plait_call *call) {
    bool summed[PLAIT_RANK_MAX];
    summed_axes(&call->in[0].shape, &call->out[0].shape, summed);
    return pli_reduction_of(&call->in[0].shape, summed);
}

/* An item is an output element. */
static plait_status run(const plait_call *call, int64_t item) {
    const pli_reduction r = reduction(call);
    pli_reduction_sum(call, &r, item, 1);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static bool blocks(const plait_call *call, pli_block_sum *b) {
    bool summed[PLAIT_RANK_MAX];
    summed_axes(&call->in[0].shape, &call->out[0].shape, summed);
    return pli_block_sum_of(&call->in[0].shape, summed, b);
}

static int suits_f32(const plait_call *call) {
    pli_block_sum b;
    return call->in[0].type == PLAIT_F32 && blocks(call, &b);
}

static int64_t items_f32(const plait_call *call) {
    pli_block_sum b;
    return blocks(call, &b) ? pli_block_sum_items(&b) : 0;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    pli_block_sum b;
    if (blocks(call, &b)) pli_block_sum_f32(&b, item, 1, call->in[0].data, call->out[0].data);
    return PLAIT_OK;
}

static int suits_runs(const plait_call *call) {
    const pli_reduction r = reduction(call);
    return pli_reduction_has_runs(call, &r);
}

static plait_status run_runs(const plait_call *call, int64_t item) {
    const pli_reduction r = reduction(call);
    pli_reduction_sum_runs(call, &r, item, 1);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_broadcast_like, at->d_out[0], at->in[0]);
}

static const plait_kernel        f32 = { .name = "f32", .suits = suits_f32, .items = items_f32, .run = run_f32 };
static const plait_kernel        runs = { .name = "runs", .suits = suits_runs, .items = items, .run = run_runs };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &f32, &runs, &ref, NULL };

const plait_op pli_op_sum_like = {
    .size = sizeof(plait_op),
    .name = "sum_like",
    .summary = "a sum down to the shape of input 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .shape_only = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_input,
    .kernels = kernels,
};
