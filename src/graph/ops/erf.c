/* erf: the error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x. d/dx = 2 / sqrt(pi) e^(-x^2). */
#include <math.h>

#include "graph/ops/ops.h"

static void erf_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (float)erf((double)x[i]);
}

static void erf_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = erf(x[i]);
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value bell = pli_op1(g, &pli_op_exp, pli_op1(g, &pli_op_neg, pli_op1(g, &pli_op_square, at->in[0])));
    const plait_value scale = pli_scalar_like(g, at->in[0], 1.1283791670955126); /* 2 / sqrt(pi) */
    at->d_in[0] = pli_op2(g, &pli_op_mul, at->d_out[0], pli_op2(g, &pli_op_mul, bell, scale));
}

const plait_op pli_op_erf = {
    .size = sizeof(plait_op),
    .name = "erf",
    .summary = "the error function",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = erf_f32, [PLAIT_F64] = erf_f64 },
};
