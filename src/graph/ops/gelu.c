/* gelu: x P(x), where P(x) = (1 + erf(x / sqrt 2)) / 2 is the normal distribution. d/dx = P(x) + x p(x), where p is its
 * density. Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016. */
#include <math.h>

#include "graph/ops/ops.h"

static const double root_half = 0.70710678118654752;

static void gelu_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * root_half)));
}

static void gelu_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 0.5 * x[i] * (1 + erf(x[i] * root_half));
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value x = at->in[0], half = pli_scalar_like(g, x, 0.5);
    const plait_value e = pli_op1(g, &pli_op_erf, pli_op2(g, &pli_op_mul, x, pli_scalar_like(g, x, root_half)));
    const plait_value below = pli_op2(g, &pli_op_add, pli_op2(g, &pli_op_mul, e, half), half);
    const plait_value exponent = pli_op2(g, &pli_op_mul, pli_op1(g, &pli_op_square, x), pli_scalar_like(g, x, -0.5));
    const plait_value xp = pli_op2(g, &pli_op_mul, x, pli_op1(g, &pli_op_exp, exponent));
    const plait_value slope =
        pli_op2(g, &pli_op_add, below,
                pli_op2(g, &pli_op_mul, xp, pli_scalar_like(g, x, 0.3989422804014327))); /* 1 / sqrt(2 pi) */
    at->d_in[0] = pli_op2(g, &pli_op_mul, at->d_out[0], slope);
}

const plait_op pli_op_gelu = {
    .size = sizeof(plait_op),
    .name = "gelu",
    .summary = "x times the normal distribution at x",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = gelu_f32, [PLAIT_F64] = gelu_f64 },
};
