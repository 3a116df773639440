/* softmax_gradient: y (g - s) with s = sum y g along an axis: the derivative by softmax's input, from its output y and
 * the derivative g by y. With U its own derivative: d/dg = y (U - t), t = sum U y, which is softmax_gradient again;
 * d/dy = U g - U s - g t. */
#include "graph/lines.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *y = &call->in[0].shape;
    if (call->in[0].type != call->in[1].type || !pli_type_is_float(call->in[0].type) ||
        !pli_shapes_agree(y, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs two arrays of floats of one type and shape");
    return pli_infer_lines(call);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l);
        double        s = 0;
        for (int64_t j = at; j < at + lines.n * lines.step; j += lines.step)
            s += pli_element(&call->in[0], j) * pli_element(&call->in[1], j);
        for (int64_t j = at; j < at + lines.n * lines.step; j += lines.step)
            pli_element_set(&call->out[0], j, pli_element(&call->in[0], j) * (pli_element(&call->in[1], j) - s));
    }
    return PLAIT_OK;
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    const float    *y = call->in[0].data, *g = call->in[1].data;
    float          *out = call->out[0].data;
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l), end = at + lines.n * lines.step;
        double        sum = 0;
        for (int64_t j = at; j < end; j += lines.step) sum += (double)y[j] * g[j];
        const float s = (float)sum;
        for (int64_t j = at; j < end; j += lines.step) out[j] = y[j] * (g[j] - s);
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *graph = at->graph;
    const plait_value y = at->in[0], g = at->in[1], u = at->d_out[0];
    const plait_value by_g[] = { y, u }, yg[] = { y, g }, uy[] = { u, y };
    at->d_in[1] = pli_graph_node(graph, &pli_op_softmax_gradient, by_g, 2, at->attr);
    const plait_value us[] = { u, pli_graph_node(graph, &pli_op_row_dot, yg, 2, at->attr) };
    const plait_value gt[] = { g, pli_graph_node(graph, &pli_op_row_dot, uy, 2, at->attr) };
    at->d_in[0] = pli_op2(graph, &pli_op_sub, pli_op2(graph, &pli_op_mul, u, g),
                          pli_op2(graph, &pli_op_add, pli_graph_node(graph, &pli_op_row_scale, us, 2, at->attr),
                                  pli_graph_node(graph, &pli_op_row_scale, gt, 2, at->attr)));
}

static const plait_kernel f32 = { .name = "f32", .suits = pli_lines_f32, .items = pli_line_items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = pli_line_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_softmax_gradient = {
    .size = sizeof(plait_op),
    .name = "softmax_gradient",
    .summary = "softmax's input's derivative by its output and the output's derivative",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_axis_attrs,
    .n_attrs = 1,
    .in_place = 3,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_lines,
    .kernels = kernels,
};
