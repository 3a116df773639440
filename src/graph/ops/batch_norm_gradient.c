/* batch_norm_gradient: batch_norm's derivative by its input, of its y, its variance and dy. It cannot be
 * differentiated again. */
#include "graph/lines.h"
#include "graph/norm.h"
#include "graph/ops/ops.h"

enum { EPSILON };

static const plait_attr_spec attrs[] = { { .preset = { .name = "epsilon", .kind = PLAIT_ATTR_FLOAT, .u.f = 1e-5 } } };

static plait_status infer(const plait_call *call) {
    const plait_shape *y = &call->in[0].shape;
    for (int i = 0; i < 3; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    if (y->rank < 2) return plait_call_fail(call, PLAIT_ESHAPE, "needs [n, channels, ...]");
    const plait_shape groups = plait_shape_1(y->dim[1]);
    if (!pli_shapes_agree(&groups, &call->in[1].shape) || !pli_shapes_agree(y, &call->in[2].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs y, a variance for each channel, and dy of the shape of y");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = *y };
    return PLAIT_OK;
}

static pli_groups groups_of(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    pli_groups         g = { .count = x->dim[1], .segments = x->dim[0], .run = 1 };
    for (int64_t i = 2; i < x->rank; i++) g.run *= x->dim[i];
    g.apart = g.count * g.run;
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

static void gradient(const plait_gradient *at) { pli_gradient_refuse(at, "batch_norm_gradient"); }

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_batch_norm_gradient = {
    .size = sizeof(plait_op),
    .name = "batch_norm_gradient",
    .summary = "batch_norm's derivative by its input",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
