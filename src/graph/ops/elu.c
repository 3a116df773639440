/* elu: x where x > 0, else alpha (e^x - 1). d/dx = 1 where x > 0, else y + alpha. */
#include "graph/ops/ops.h"
#include "tensor/elementary.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "alpha", .kind = PLAIT_ATTR_FLOAT, .u.f = 1 } },
};

static void elu_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const double alpha = attr[0].u.f;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : (float)(alpha * pli_expm1_negative((double)x[i]));
}

static void elu_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const double  alpha = attr[0].u.f;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : alpha * pli_expm1_negative(x[i]);
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value zero = pli_scalar_like(g, at->in[0], 0), alpha = pli_scalar_like(g, at->in[0], at->attr[0].u.f);
    const plait_value below = pli_op2(g, &pli_op_mul, at->d_out[0], pli_op2(g, &pli_op_add, at->out[0], alpha));
    at->d_in[0] = pli_op3(g, &pli_op_where, pli_op2(g, &pli_op_greater, at->in[0], zero), at->d_out[0], below);
}

const plait_op pli_op_elu = {
    .size = sizeof(plait_op),
    .name = "elu",
    .summary = "x where x > 0, else alpha (e^x - 1)",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = elu_f32, [PLAIT_F64] = elu_f64 },
};
