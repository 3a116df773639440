/* row_dot: the sum of a b along an axis, which is removed. d/da = row_scale(b, G), d/db = row_scale(a, G). */
#include "graph/lines.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape;
    if (call->in[0].type != call->in[1].type || !pli_type_is_float(call->in[0].type) ||
        !pli_shapes_agree(a, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs two arrays of floats of one type and shape");
    int32_t axis;
    PLI_TRY(pli_axis_find(call, call->attr[0].u.i, a->rank, &axis));
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = pli_without_axis(a, axis) };
    return PLAIT_OK;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l);
        double        sum = 0;
        for (int64_t j = 0; j < lines.n; j++)
            sum += pli_element(&call->in[0], at + j * lines.step) * pli_element(&call->in[1], at + j * lines.step);
        pli_element_set(&call->out[0], l, sum);
    }
    return PLAIT_OK;
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const float *a = (const float *)call->in[0].data + pli_line_at(&lines, l);
        const float *b = (const float *)call->in[1].data + pli_line_at(&lines, l);
        double       sum = 0;
        for (int64_t j = 0; j < lines.n; j++) sum += (double)a[j * lines.step] * b[j * lines.step];
        ((float *)call->out[0].data)[l] = (float)sum;
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    for (int i = 0; i < 2; i++) {
        const plait_value in[] = { at->in[1 - i], at->d_out[0] };
        at->d_in[i] = pli_graph_node(at->graph, &pli_op_row_scale, in, 2, at->attr);
    }
}

static const plait_kernel f32 = { .name = "f32", .suits = pli_lines_f32, .items = pli_line_items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = pli_line_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_row_dot = {
    .size = sizeof(plait_op),
    .name = "row_dot",
    .summary = "the sum of products along an axis",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_axis_attrs,
    .n_attrs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_dot,
    .kernels = kernels,
};
