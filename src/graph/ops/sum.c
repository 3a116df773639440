/* sum: over axes (none given: all); `keep` leaves them with length 1. Integers wrap. The order of the terms: reduce.h.
 * The gradient of an element is that of the sum that it went into. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    if (call->in[0].type == PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "sums numbers, not bools; cast them to i64");
    return pli_infer_reduction(call);
}

static plait_status run(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum(call, &r, item, 1);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static plait_status run_f32(const plait_call *call, int64_t item) {
    pli_block_sum b;
    if (pli_block_sum_of_call(call, &b)) pli_block_sum_f32(&b, item, 1, call->in[0].data, call->out[0].data);
    return PLAIT_OK;
}

static plait_status run_runs(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum_runs(call, &r, item, 1);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_broadcast_like, pli_restore_axes(at, at->d_out[0]), at->in[0]);
}

static const plait_kernel f32 = {
    .name = "f32", .suits = pli_blocks_f32, .items = pli_block_items_of_call, .run = run_f32
};
static const plait_kernel        runs = { .name = "runs", .suits = pli_runs_f32, .items = items, .run = run_runs };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &f32, &runs, &ref, NULL };

const plait_op pli_op_sum = {
    .size = sizeof(plait_op),
    .name = "sum",
    .summary = "the sum over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
