/* layer_norm: lines along the axes from `axis` on, less their mean, over their deviation (norm.h). Outputs: y, and
 * the mean and the variance (of all n, not n - 1) of each line. With dy: dx = layer_norm_gradient. A gain and an
 * offset are multiplied and added by whoever wants them. The statistics themselves are not differentiated. */
#include "graph/lines.h"
#include "graph/norm.h"
#include "graph/ops/ops.h"

enum { AXIS, EPSILON };

static const plait_attr_spec attrs[] = {
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [EPSILON] = { .preset = { .name = "epsilon", .kind = PLAIT_ATTR_FLOAT, .u.f = 1e-5 } },
};

static plait_status infer(const plait_call *call) {
    if (!pli_type_is_float(call->in[0].type)) return plait_call_fail(call, PLAIT_ESHAPE, "of floats only; cast it");
    const int32_t axis = pli_axis_of(call, &call->in[0].shape, call->attr[AXIS].u.i);
    if (axis < 0) return PLAIT_ESHAPE;
    if (!(call->attr[EPSILON].u.f > 0)) return plait_call_fail(call, PLAIT_EINVAL, "epsilon is to be above 0");
    plait_shape lines = call->in[0].shape;
    lines.rank = axis;
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    call->out[1] = call->out[2] = (plait_tensor){ .type = call->in[0].type, .shape = lines };
    return PLAIT_OK;
}

static pli_groups groups_of(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    const int64_t      axis = call->attr[AXIS].u.i < 0 ? call->attr[AXIS].u.i + x->rank : call->attr[AXIS].u.i;
    pli_groups         g = { .count = 1, .segments = 1, .run = 1 };
    for (int64_t i = 0; i < x->rank; i++) *(i < axis ? &g.count : &g.run) *= x->dim[i];
    return g;
}

static int64_t items(const plait_call *call) {
    const pli_groups groups = groups_of(call);
    return pli_group_items(&groups);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call);
    return pli_norm_ref(call, &groups, call->attr[EPSILON].u.f, item);
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call);
    return pli_norm_f32(call, &groups, call->attr[EPSILON].u.f, item);
}

static void gradient(const plait_gradient *at) {
    if (at->d_out[1] >= 0 || at->d_out[2] >= 0) pli_gradient_refuse(at, "layer_norm's statistics");
    const plait_value in[] = { at->out[0], at->out[2], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_layer_norm_gradient, in, 3, at->attr);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_layer_norm = {
    .size = sizeof(plait_op),
    .name = "layer_norm",
    .summary = "lines less their mean, over their deviation",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 3,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
