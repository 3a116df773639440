/* extend: adds `before` and `after` places at the ends of one axis, copies of existing places (graph/extend.h). The op
 * pad pads with one value. */
#include "graph/extend.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type };
    return pli_extend_infer(call, &call->in[0].shape, &call->out[0].shape);
}

static int64_t items(const plait_call *call) { return pli_taps_items(call, call->attr[PLI_EXTEND_AXIS].u.i); }

static plait_status run(const plait_call *call, int64_t item) {
    return pli_taps_run(call, call->attr[PLI_EXTEND_AXIS].u.i, pli_extend_taps, item);
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_extend_gradient, in, 2, at->attr);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_extend = {
    .size = sizeof(plait_op),
    .name = "extend",
    .summary = "an axis made longer by its own elements: reflect, edge, wrap",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_extend_attrs,
    .n_attrs = PLI_EXTEND_ATTRS,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
