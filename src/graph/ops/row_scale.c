/* row_scale: each line of input 0 along an axis times its element of input 1, which lacks the axis.
 * d/da = row_scale(G, s), d/ds = row_dot(a, G). */
#include "graph/lines.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *a = &call->in[0].shape;
    int32_t            axis;
    PLI_TRY(pli_axis_find(call, call->attr[0].u.i, a->rank, &axis));
    const plait_shape lines = pli_without_axis(a, axis);
    if (call->in[0].type != call->in[1].type || !pli_type_is_float(call->in[0].type) ||
        !pli_shapes_agree(&lines, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs an array of floats, and one of its type with a factor for each line");
    return pli_infer_as_input(call);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const int64_t at = pli_line_at(&lines, l);
        const double  factor = pli_element(&call->in[1], l);
        for (int64_t j = 0; j < lines.n; j++)
            pli_element_set(&call->out[0], at + j * lines.step,
                            pli_element(&call->in[0], at + j * lines.step) * factor);
    }
    return PLAIT_OK;
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_lines lines = pli_lines_of_call(call);
    int64_t         first;
    const int64_t   n = pli_lines_piece(&lines, item, &first);
    for (int64_t l = first; l < first + n; l++) {
        const float *a = (const float *)call->in[0].data + pli_line_at(&lines, l);
        float       *y = (float *)call->out[0].data + pli_line_at(&lines, l);
        const float  factor = ((const float *)call->in[1].data)[l];
        for (int64_t j = 0; j < lines.n; j++) y[j * lines.step] = a[j * lines.step] * factor;
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value scaled[] = { at->d_out[0], at->in[1] }, dotted[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_row_scale, scaled, 2, at->attr);
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_row_dot, dotted, 2, at->attr);
}

static const plait_kernel f32 = { .name = "f32", .suits = pli_lines_f32, .items = pli_line_items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = pli_line_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_row_scale = {
    .size = sizeof(plait_op),
    .name = "row_scale",
    .summary = "each line along an axis times a factor of its own",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_axis_attrs,
    .n_attrs = 1,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
