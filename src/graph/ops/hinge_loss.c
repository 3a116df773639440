/* hinge_loss: max(0, 1 - t x) for scores x and targets t, -1 or 1. Where it is above 0, d/dx = -t and d/dt = -x;
 * elsewhere, and at the corner, they are 0. */
#include "graph/ops/ops.h"

static void map_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0], *t = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) {
        const float loss = 1 - t[i] * x[i];
        y[i] = loss < 0 ? 0 : loss; /* NaN stays */
    }
}

static void map_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0], *t = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) {
        const double loss = 1 - t[i] * x[i];
        y[i] = loss < 0 ? 0 : loss;
    }
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value zero = pli_op1(g, &pli_op_zeros_like, at->out[0]), less = pli_op1(g, &pli_op_neg, at->d_out[0]);
    const plait_value above = pli_op2(g, &pli_op_greater, at->out[0], zero);
    for (int i = 0; i < 2; i++)
        at->d_in[i] = pli_unbroadcast(
            g, pli_op3(g, &pli_op_where, above, pli_op2(g, &pli_op_mul, less, at->in[1 - i]), zero), at->in[i]);
}

const plait_op pli_op_hinge_loss = {
    .size = sizeof(plait_op),
    .name = "hinge_loss",
    .summary = "how far a score is from the right side of 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = map_f32, [PLAIT_F64] = map_f64 },
};
