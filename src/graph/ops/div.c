/* div: a / b, for floats only (an integer cannot be divided by zero). d/da = 1 / b, d/db = -y / b. */
#include "graph/ops/ops.h"

static void div_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] / b[i];
}

static void div_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] / b[i];
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value y_by_b = pli_op2(g, &pli_op_div, pli_op2(g, &pli_op_mul, at->d_out[0], at->out[0]), at->in[1]);
    at->d_in[0] = pli_unbroadcast(g, pli_op2(g, &pli_op_div, at->d_out[0], at->in[1]), at->in[0]);
    at->d_in[1] = pli_unbroadcast(g, pli_op1(g, &pli_op_neg, y_by_b), at->in[1]);
}

const plait_op pli_op_div = {
    .size = sizeof(plait_op),
    .name = "div",
    .summary = "a / b, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = div_f32, [PLAIT_F64] = div_f64 },
};
