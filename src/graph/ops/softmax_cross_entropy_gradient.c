/* softmax_cross_entropy_gradient: (p - onehot(label)) d, for probabilities p [..., classes], labels [...] (i64) and d
 * [...]. With U its derivative: d/dp = U d, row by row; d/dd = the sum of U (p - onehot), the dot product of U with
 * this op's output at d = 1. */
#include "graph/lines.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_tensor *p = &call->in[0];
    if (!pli_type_is_float(p->type) || p->shape.rank < 1)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs floats with an axis of classes, the last");
    const plait_shape rows = pli_without_axis(&p->shape, p->shape.rank - 1);
    if (call->in[1].type != PLAIT_I64 || call->in[2].type != p->type || !pli_shapes_agree(&rows, &call->in[1].shape) ||
        !pli_shapes_agree(&rows, &call->in[2].shape))
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs a label (i64) and a factor of the type of p for each row of p");
    call->out[0] = (plait_tensor){ .type = p->type, .shape = p->shape };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    return pli_lines_items(&lines);
}

/* The loss has checked the labels; here a label out of range is no class. */
static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t i = first; i < first + n; i++) {
        const int64_t at = i * lines.n, label = ((const int64_t *)call->in[1].data)[i];
        for (int64_t j = 0; j < lines.n; j++)
            pli_element_set(&call->out[0], at + j,
                            (pli_element(&call->in[0], at + j) - (j == label)) * pli_element(&call->in[2], i));
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t i = first; i < first + n; i++) {
        const float  *p = (const float *)call->in[0].data + i * lines.n;
        float        *y = (float *)call->out[0].data + i * lines.n;
        const float   d = ((const float *)call->in[2].data)[i];
        const int64_t label = ((const int64_t *)call->in[1].data)[i];
        const float   own = label >= 0 && label < lines.n ? (p[label] - 1) * d : 0;
        for (int64_t j = 0; j < lines.n; j++) y[j] = p[j] * d;
        if (label >= 0 && label < lines.n) y[label] = own;
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_attr  last = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 };
    const plait_value by_p[] = { at->d_out[0], at->in[2] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_row_scale, by_p, 2, &last);
    const plait_value one[] = { at->in[0], at->in[1], pli_op1(at->graph, &pli_op_ones_like, at->in[2]) };
    const plait_value dot[] = { at->d_out[0],
                                pli_graph_node(at->graph, &pli_op_softmax_cross_entropy_gradient, one, 3, NULL) };
    at->d_in[2] = pli_graph_node(at->graph, &pli_op_row_dot, dot, 2, &last);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_softmax_cross_entropy_gradient = {
    .size = sizeof(plait_op),
    .name = "softmax_cross_entropy_gradient",
    .summary = "(p - onehot(label)) d, row by row",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_lines,
    .kernels = kernels,
};
