/* The kernels of max and min: one compares elements of any type, one is for floats over adjacent axes. The derivative
 * is made of other ops. */
#include "graph/extreme.h"

#include <math.h>

plait_status pli_extreme_infer(const plait_call *call) {
    if (call->in[0].type == PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "compares numbers, not bools; cast them to i64");
    return pli_infer_reduction(call);
}

/* Does element i beat element j? */
static bool beats(const plait_tensor *x, bool largest, int64_t i, int64_t j) {
    if (!pli_type_is_float(x->type)) {
        const int64_t a = pli_element_int(x, i), b = pli_element_int(x, j);
        return largest ? a > b : a < b;
    }
    const double a = pli_element(x, i), b = pli_element(x, j);
    return (largest ? a > b : a < b) || isnan(a);
}

static plait_status run(const plait_call *call, int64_t item) {
    const pli_extreme  *extreme = call->user;
    const plait_tensor *x = &call->in[0];
    const pli_reduction r = pli_reduction_of_call(call);
    pli_walk            walk;
    int64_t             best = -1;
    pli_reduction_begin(&walk, &r, item);
    for (int64_t n; (n = pli_walk_next(&walk)) > 0;)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = walk.from[0] + i * walk.step[0];
            if (best < 0 || beats(x, extreme->largest, at, best)) best = at;
        }
    if (best < 0) return plait_call_fail(call, PLAIT_ESHAPE, "%s of nothing", extreme->what);
    if (pli_type_is_float(x->type))
        pli_element_set(&call->out[0], item, pli_element(x, best));
    else
        pli_element_set_int(&call->out[0], item, pli_element_int(x, best));
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

/* The largest of n elements, which lie `inner` apart; NaN if there is one. */
static float largest_of(int64_t n, int64_t inner, const float *x) {
    float best = x[0];
    for (int64_t i = 1; i < n; i++) best = x[i * inner] > best || isnan(x[i * inner]) ? x[i * inner] : best;
    return best;
}
static float smallest_of(int64_t n, int64_t inner, const float *x) {
    float best = x[0];
    for (int64_t i = 1; i < n; i++) best = x[i * inner] < best || isnan(x[i * inner]) ? x[i * inner] : best;
    return best;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    float (*const best_of)(int64_t, int64_t, const float *) =
        ((const pli_extreme *)call->user)->largest ? largest_of : smallest_of;
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

void pli_extreme_gradient(const plait_gradient *at) {
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
static const plait_kernel ref = { .name = "ref", .items = items, .run = run };
const plait_kernel *const pli_extreme_kernels[] = { &f32, &ref, NULL };
