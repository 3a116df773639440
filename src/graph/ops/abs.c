/* abs: |x|. d/dx = sign x, taken as 0 at x = 0. */
#include <math.h>

#include "graph/ops/ops.h"

static void abs_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = fabsf(x[i]);
}

static void abs_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = fabs(x[i]);
}

static void abs_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint32_t *x = in[0];
    uint32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] >> 31 != 0 ? 0 - x[i] : x[i];
}

static void abs_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint64_t *x = in[0];
    uint64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] >> 63 != 0 ? 0 - x[i] : x[i];
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], pli_op1(at->graph, &pli_op_sign, at->in[0]));
}

const plait_op pli_op_abs = {
    .size = sizeof(plait_op),
    .name = "abs",
    .summary = "|x|",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = abs_f32, [PLAIT_F64] = abs_f64, [PLAIT_I32] = abs_i32, [PLAIT_I64] = abs_i64 },
};
