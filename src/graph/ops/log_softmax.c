/* log_softmax: x - log sum e^x along an axis. With G = dy: dx = G - softmax(x) sum G, made of other ops, so it can be
 * differentiated again. */
#include <math.h>

#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/rows.h"

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l), end = at + lines.n * lines.step;
        double        top = -INFINITY, sum = 0;
        for (int64_t j = at; j < end; j += lines.step) top = fmax(top, pli_element(&call->in[0], j));
        for (int64_t j = at; j < end; j += lines.step) sum += exp(pli_element(&call->in[0], j) - top);
        for (int64_t j = at; j < end; j += lines.step)
            pli_element_set(&call->out[0], j, pli_element(&call->in[0], j) - top - log(sum));
    }
    return PLAIT_OK;
}

static size_t rows_scratch(const plait_call *call) {
    const pli_lines lines = pli_lines_of_call(call);
    return (size_t)pli_lines_an_item(&lines) * (sizeof(double) + (size_t)lines.n * sizeof(float));
}

static plait_status rows_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    const float    *x = (const float *)call->in[0].data + first * lines.n;
    float          *y = (float *)call->out[0].data + first * lines.n;
    double         *log_sum = call->scratch;
    pli_softmax_rows_f32(n, lines.n, x, (float *)(log_sum + n), log_sum);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < lines.n; j++) y[i * lines.n + j] = (float)((double)x[i * lines.n + j] - log_sum[i]);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value ones = pli_op1(g, &pli_op_ones_like, at->d_out[0]), dot[] = { at->d_out[0], ones };
    const plait_value scale[] = { pli_graph_node(g, &pli_op_softmax, at->in, 1, at->attr),
                                  pli_graph_node(g, &pli_op_row_dot, dot, 2, at->attr) };
    at->d_in[0] = pli_op2(g, &pli_op_sub, at->d_out[0], pli_graph_node(g, &pli_op_row_scale, scale, 2, at->attr));
}

static double flops(const plait_call *call) { return 20.0 * (double)plait_shape_elements(&call->out[0].shape); }

static const plait_kernel rows = {
    .name = "rows f32", .suits = pli_rows_f32, .scratch = rows_scratch, .items = pli_line_items, .run = rows_run
};
static const plait_kernel        ref = { .name = "ref", .items = pli_line_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &rows, &ref, NULL };

const plait_op pli_op_log_softmax = {
    .size = sizeof(plait_op),
    .name = "log_softmax",
    .summary = "x less the logarithm of the sum of e^x along an axis",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_axis_attrs,
    .n_attrs = 1,
    .in_place = 1,
    .infer = pli_infer_lines,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
