/* square: x x. d/dx = 2 x. */
#include "graph/ops/ops.h"

static void square_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];
}

static void square_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];
}

static void square_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint32_t *x = in[0];
    uint32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];
}

static void square_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint64_t *x = in[0];
    uint64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] * x[i];
}

static void gradient(const plait_gradient *at) {
    const plait_value twice = pli_op2(at->graph, &pli_op_add, at->in[0], at->in[0]);
    at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], twice);
}

const plait_op pli_op_square = {
    .size = sizeof(plait_op),
    .name = "square",
    .summary = "x x",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = square_f32, [PLAIT_F64] = square_f64, [PLAIT_I32] = square_i32, [PLAIT_I64] = square_i64 },
};
