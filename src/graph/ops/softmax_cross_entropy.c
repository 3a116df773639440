/* softmax_cross_entropy: for scores x [..., classes] and labels [...] (i64), the loss log sum e^x - x[label] of each
 * row. Output 1 is p = softmax(x), which the gradient needs: dx = (p - onehot(label)) dloss. */
#include <math.h>

#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/rows.h"

static plait_status infer(const plait_call *call) {
    const plait_tensor *x = &call->in[0];
    if (!pli_type_is_float(x->type) || x->shape.rank < 1)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs floats with an axis of classes, the last");
    const plait_shape rows = pli_without_axis(&x->shape, x->shape.rank - 1);
    if (call->in[1].type != PLAIT_I64 || !pli_shapes_agree(&rows, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs one label of type i64 for each row of scores");
    call->out[0] = (plait_tensor){ .type = x->type, .shape = rows };
    call->out[1] = (plait_tensor){ .type = x->type, .shape = x->shape };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    return pli_lines_items(&lines);
}

static plait_status check_labels(const plait_call *call, int64_t first, int64_t n, int64_t classes) {
    const int64_t *label = call->in[1].data;
    for (int64_t i = first; i < first + n; i++)
        if (label[i] < 0 || label[i] >= classes)
            return plait_call_fail(call, PLAIT_EINVAL, "label %lld in row %lld; there are %lld classes, from 0 on",
                                   (long long)label[i], (long long)i, (long long)classes);
    return PLAIT_OK;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    PLI_TRY(check_labels(call, first, n, lines.n));
    for (int64_t i = first; i < first + n; i++) {
        const int64_t at = i * lines.n, label = ((const int64_t *)call->in[1].data)[i];
        double        top = -INFINITY, sum = 0;
        for (int64_t j = at; j < at + lines.n; j++) top = fmax(top, pli_element(&call->in[0], j));
        for (int64_t j = at; j < at + lines.n; j++) sum += exp(pli_element(&call->in[0], j) - top);
        pli_element_set(&call->out[0], i, top - pli_element(&call->in[0], at + label) + log(sum));
        for (int64_t j = at; j < at + lines.n; j++)
            pli_element_set(&call->out[1], j, exp(pli_element(&call->in[0], j) - top) / sum);
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static size_t f32_scratch(const plait_call *call) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    return (size_t)pli_lines_an_item(&lines) * sizeof(double);
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of(&call->in[0].shape, -1);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    PLI_TRY(check_labels(call, first, n, lines.n));
    const float   *x = (const float *)call->in[0].data + first * lines.n;
    const int64_t *label = (const int64_t *)call->in[1].data + first;
    float         *loss = (float *)call->out[0].data + first;
    double        *log_sum = call->scratch;
    pli_softmax_rows_f32(n, lines.n, x, (float *)call->out[1].data + first * lines.n, log_sum);
    for (int64_t i = 0; i < n; i++) loss[i] = (float)(log_sum[i] - (double)x[i * lines.n + label[i]]);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_value dx = PLAIT_NONE;
    if (at->d_out[0] >= 0) {
        const plait_value in[] = { at->out[1], at->in[1], at->d_out[0] };
        dx = pli_graph_node(at->graph, &pli_op_softmax_cross_entropy_gradient, in, 3, NULL);
    }
    if (at->d_out[1] >= 0) {
        const plait_value in[] = { at->out[1], at->d_out[1] };
        const plait_attr  last = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 };
        const plait_value by_p = pli_graph_node(at->graph, &pli_op_softmax_gradient, in, 2, &last);
        dx = dx < 0 ? by_p : pli_op2(at->graph, &pli_op_add, dx, by_p);
    }
    at->d_in[0] = dx;
}

static double flops(const plait_call *call) { return 20.0 * (double)plait_shape_elements(&call->in[0].shape); }

static const plait_kernel f32 = {
    .name = "f32", .suits = f32_suits, .scratch = f32_scratch, .items = items, .run = f32_run
};
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_softmax_cross_entropy = {
    .size = sizeof(plait_op),
    .name = "softmax_cross_entropy",
    .summary = "the loss of each row of scores for its label, and the probabilities",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 2,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
