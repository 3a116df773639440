/* max: the largest element over axes (none given: all, each of at least one element); `keep` leaves them with length
 * 1. NaN where there is one. The gradient is shared equally by those that are the largest. */
#include <math.h>

#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    if (call->in[0].type == PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "compares numbers, not bools; cast them to i64");
    return pli_infer_reduction(call);
}

static bool beats_float(double a, double b) { return a > b || isnan(a); }

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0];
    const pli_reduction r = pli_reduction_of_call(call);
    const bool          floats = pli_type_is_float(x->type);
    pli_walk            walk;
    int64_t             best = -1;
    pli_reduction_begin(&walk, &r, item);
    for (int64_t n; (n = pli_walk_next(&walk)) > 0;)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = walk.from[0] + i * walk.step[0];
            const bool    beats = best < 0 || (floats ? beats_float(pli_element(x, at), pli_element(x, best))
                                                      : pli_element_int(x, at) > pli_element_int(x, best));
            if (beats) best = at;
        }
    if (best < 0) return plait_call_fail(call, PLAIT_ESHAPE, "the largest of nothing");
    if (floats)
        pli_element_set(&call->out[0], item, pli_element(x, best));
    else
        pli_element_set_int(&call->out[0], item, pli_element_int(x, best));
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

/* Over n elements, `inner` apart; a NaN stays once it is taken. */
static float best_of(int64_t n, int64_t inner, const float *x) {
    float best = x[0];
    for (int64_t i = 1; i < n; i++) best = x[i * inner] > best || isnan(x[i * inner]) ? x[i * inner] : best;
    return best;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    const float  *x = call->in[0].data;
    float        *y = call->out[0].data;
    pli_block_sum b;
    int64_t       o[2], j[2];
    if (!pli_block_sum_of_call(call, &b)) return PLAIT_OK;
    pli_block_sum_range(&b, item, o, j);
    for (int64_t at = o[0]; at < o[1]; at++)
        for (int64_t k = j[0]; k < j[1]; k++) y[at * b.inner + k] = best_of(b.n, b.inner, x + at * b.n * b.inner + k);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value y = pli_restore_axes(at, at->out[0]), d = pli_restore_axes(at, at->d_out[0]);
    const plait_attr  type = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = g->value[at->in[0]].type };
    const plait_value is_best = pli_op2(g, &pli_op_equal, at->in[0], y);
    const plait_value share = pli_graph_node(g, &pli_op_cast, &is_best, 1, &type);
    const plait_attr  kept[] = { at->attr[0], pli_attr_int("keep", 1) };
    const plait_value sharers = pli_graph_node(g, &pli_op_sum, &share, 1, kept);
    at->d_in[0] = pli_op2(g, &pli_op_mul, share, pli_op2(g, &pli_op_div, d, sharers));
}

static const plait_kernel f32 = {
    .name = "f32", .suits = pli_blocks_f32, .items = pli_block_items_of_call, .run = run_f32
};
static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_max = {
    .size = sizeof(plait_op),
    .name = "max",
    .summary = "the largest over axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
