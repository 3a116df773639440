/* extend_gradient: adds the derivative of each place (input 1) to the place that it was copied from. Only the shape of
 * input 0 is used; the output has it. It is linear; its gradient is extend. */
#include "graph/extend.h"
#include "graph/lines.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    plait_shape y;
    PLI_TRY(pli_extend_infer(call, &call->in[0].shape, &y));
    if (call->in[1].type != call->in[0].type || !pli_shapes_agree(&y, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 is not of the shape of the extended input");
    return pli_infer_as_input(call);
}

static int64_t items(const plait_call *call) { return pli_taps_back_items(call, call->attr[PLI_EXTEND_AXIS].u.i); }

static plait_status run(const plait_call *call, int64_t item) {
    return pli_taps_back(call, call->attr[PLI_EXTEND_AXIS].u.i, pli_extend_taps, item);
}

static void gradient(const plait_gradient *at) {
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_extend, at->d_out, 1, at->attr);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_extend_gradient = {
    .size = sizeof(plait_op),
    .name = "extend_gradient",
    .summary = "of extend",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_extend_attrs,
    .n_attrs = PLI_EXTEND_ATTRS,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
