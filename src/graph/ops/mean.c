/* mean: of floats over axes (none given: all); `keep` leaves them with length 1. Of nothing: NaN. The order of the
 * terms: reduce.h. The gradient of an element is that of the mean that it went into, divided by how many went into it. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    if (!pli_type_is_float(call->in[0].type))
        return plait_call_fail(call, PLAIT_ESHAPE, "the mean is of floats, not of %s; cast them",
                               plait_type_name(call->in[0].type));
    return pli_infer_reduction(call);
}

static plait_status run(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum(call, &r, item, (double)plait_shape_elements(&r.summed));
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static plait_status run_f32(const plait_call *call, int64_t item) {
    pli_block_sum b;
    if (pli_block_sum_of_call(call, &b)) pli_block_sum_f32(&b, item, (double)b.n, call->in[0].data, call->out[0].data);
    return PLAIT_OK;
}

static plait_status run_runs(const plait_call *call, int64_t item) {
    const pli_reduction r = pli_reduction_of_call(call);
    pli_reduction_sum_runs(call, &r, item, (double)plait_shape_elements(&r.summed));
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value count = pli_graph_node(g, &pli_op_count, at->in, 1, &at->attr[0]);
    const plait_value share = pli_op2(g, &pli_op_div, pli_restore_axes(at, at->d_out[0]), count);
    at->d_in[0] = pli_op2(g, &pli_op_broadcast_like, share, at->in[0]);
}

static const plait_kernel f32 = {
    .name = "f32", .suits = pli_blocks_f32, .items = pli_block_items_of_call, .run = run_f32
};
static const plait_kernel        runs = { .name = "runs", .suits = pli_runs_f32, .items = items, .run = run_runs };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &f32, &runs, &ref, NULL };

const plait_op pli_op_mean = {
    .size = sizeof(plait_op),
    .name = "mean",
    .summary = "the mean over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
