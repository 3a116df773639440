/* sqrt: the square root, correctly rounded; NaN below 0. d/dx = 1 / (2 y), infinite at 0. */
#include <math.h>

#include "graph/ops/ops.h"

static void sqrt_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = sqrtf(x[i]);
}

static void sqrt_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = sqrt(x[i]);
}

static void gradient(const plait_gradient *at) {
    const plait_value twice = pli_op2(at->graph, &pli_op_add, at->out[0], at->out[0]);
    at->d_in[0] = pli_op2(at->graph, &pli_op_div, at->d_out[0], twice);
}

const plait_op pli_op_sqrt = {
    .size = sizeof(plait_op),
    .name = "sqrt",
    .summary = "the square root",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = sqrt_f32, [PLAIT_F64] = sqrt_f64 },
};
