/* layer_norm_gradient: layer_norm's derivative by its input, of its y, its variance and dy. It cannot be
 * differentiated again. */
#include "graph/lines.h"
#include "graph/norm.h"
#include "graph/ops/ops.h"

enum { AXIS, EPSILON };

static const plait_attr_spec attrs[] = {
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [EPSILON] = { .preset = { .name = "epsilon", .kind = PLAIT_ATTR_FLOAT, .u.f = 1e-5 } },
};

static plait_status infer(const plait_call *call) {
    const plait_shape *y = &call->in[0].shape;
    for (int i = 0; i < 3; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    const int32_t axis = pli_axis_of(call, y, call->attr[AXIS].u.i);
    if (axis < 0) return PLAIT_ESHAPE;
    plait_shape groups = *y;
    groups.rank = axis;
    if (!pli_shapes_agree(&groups, &call->in[1].shape) || !pli_shapes_agree(y, &call->in[2].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs y, a variance for each line, and dy of the shape of y");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = *y };
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
    return pli_norm_gradient_ref(call, &groups, call->attr[EPSILON].u.f, item);
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call);
    return pli_norm_gradient_f32(call, &groups, call->attr[EPSILON].u.f, item);
}

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "layer_norm_gradient"); }

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_layer_norm_gradient = {
    .size = sizeof(plait_op),
    .name = "layer_norm_gradient",
    .summary = "layer_norm's derivative by its input",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
