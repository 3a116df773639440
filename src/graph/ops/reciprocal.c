/* reciprocal: 1 / x. d/dx = -y^2. */
#include "graph/ops/ops.h"

static void reciprocal_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 1 / x[i];
}

static void reciprocal_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 1 / x[i];
}

static void gradient(const plait_gradient *at) {
    const plait_value by_x =
        pli_op2(at->graph, &pli_op_mul, at->d_out[0], pli_op1(at->graph, &pli_op_square, at->out[0]));
    at->d_in[0] = pli_op1(at->graph, &pli_op_neg, by_x);
}

const plait_op pli_op_reciprocal = {
    .size = sizeof(plait_op),
    .name = "reciprocal",
    .summary = "1 / x",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = reciprocal_f32, [PLAIT_F64] = reciprocal_f64 },
};
