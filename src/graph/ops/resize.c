/* resize: gives one axis another number of places, by scale or to a length. Each place is made of the nearest, of two
 * (linear) or of four (cubic) places of the input (graph/resizing.h). An image is resized one axis after the other. */
#include <string.h>

#include "graph/ops/ops.h"
#include "graph/resizing.h"

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type };
    if (!pli_type_is_float(call->in[0].type) && strcmp(call->attr[PLI_RESIZE_MODE].u.text, "nearest") != 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "not for elements of type %s, unless by the nearest",
                               plait_type_name(call->in[0].type));
    return pli_resize_infer(call, &call->in[0].shape, &call->out[0].shape);
}

static int64_t items(const plait_call *call) { return pli_taps_items(call, call->attr[PLI_RESIZE_AXIS].u.i); }

static plait_status run(const plait_call *call, int64_t item) {
    return pli_taps_run(call, call->attr[PLI_RESIZE_AXIS].u.i, pli_resize_taps, item);
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_resize_gradient, in, 2, at->attr);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_resize = {
    .size = sizeof(plait_op),
    .name = "resize",
    .summary = "an axis of another length: nearest, linear, cubic",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_resize_attrs,
    .n_attrs = PLI_RESIZE_ATTRS,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
