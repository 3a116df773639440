/* squared_loss: (x - t)^2 / 2. d/dx = x - t, d/dt = t - x. */
#include "graph/ops/ops.h"

static void map_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0], *t = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 0.5f * ((x[i] - t[i]) * (x[i] - t[i]));
}

static void map_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0], *t = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 0.5 * ((x[i] - t[i]) * (x[i] - t[i]));
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value dx = pli_op2(g, &pli_op_mul, at->d_out[0], pli_op2(g, &pli_op_sub, at->in[0], at->in[1]));
    at->d_in[0] = pli_unbroadcast(g, dx, at->in[0]);
    at->d_in[1] = pli_unbroadcast(g, pli_op1(g, &pli_op_neg, dx), at->in[1]);
}

const plait_op pli_op_squared_loss = {
    .size = sizeof(plait_op),
    .name = "squared_loss",
    .summary = "half the square of the difference",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = map_f32, [PLAIT_F64] = map_f64 },
};
