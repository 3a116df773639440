/* softmax: e^x / sum e^x along an axis. With G = dy: dx = y (G - sum y G), which is softmax_gradient. The largest x is
 * subtracted first, so nothing overflows. */
#include <math.h>

#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/rows.h"

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l);
        double        top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < lines.n; j++) top = fmax(top, pli_element(&call->in[0], at + j * lines.step));
        for (int64_t j = 0; j < lines.n; j++) sum += exp(pli_element(&call->in[0], at + j * lines.step) - top);
        for (int64_t j = 0; j < lines.n; j++)
            pli_element_set(&call->out[0], at + j * lines.step,
                            exp(pli_element(&call->in[0], at + j * lines.step) - top) / sum);
    }
    return PLAIT_OK;
}

/* For contiguous lines: exp is computed over all lines of an item at once. */
static plait_status rows_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    const float    *x = (const float *)call->in[0].data + first * lines.n;
    float          *y = (float *)call->out[0].data + first * lines.n;
    pli_softmax_rows_f32(n, lines.n, x, y, NULL);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->out[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_softmax_gradient, in, 2, at->attr);
}

static double flops(const plait_call *call) { return 20.0 * (double)plait_shape_elements(&call->out[0].shape); }

static const plait_kernel rows = {
    .name = "rows f32", .suits = pli_rows_f32, .items = pli_line_items, .run = rows_run
};
static const plait_kernel        ref = { .name = "ref", .items = pli_line_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &rows, &ref, NULL };

const plait_op pli_op_softmax = {
    .size = sizeof(plait_op),
    .name = "softmax",
    .summary = "e^x over its sum along an axis",
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
