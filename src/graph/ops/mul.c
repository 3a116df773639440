/* mul: a b. d/da = b, d/db = a. */
#include "graph/ops/ops.h"

static void mul_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void mul_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void mul_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint32_t *a = in[0], *b = in[1];
    uint32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void mul_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint64_t *a = in[0], *b = in[1];
    uint64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i];
}

static void gradient(const plait_gradient *at) {
    for (int32_t i = 0; i < 2; i++)
        at->d_in[i] =
            pli_unbroadcast(at->graph, pli_op2(at->graph, &pli_op_mul, at->d_out[0], at->in[1 - i]), at->in[i]);
}

const plait_op pli_op_mul = {
    .size = sizeof(plait_op),
    .name = "mul",
    .summary = "a b, element by element, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = mul_f32, [PLAIT_F64] = mul_f64, [PLAIT_I32] = mul_i32, [PLAIT_I64] = mul_i64 },
};
