/* sign: -1, 0 or 1; NaN stays. Its gradient is taken as 0. */
#include <math.h>

#include "graph/ops/ops.h"

static void sign_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = isnan(x[i]) ? x[i] : (float)((x[i] > 0) - (x[i] < 0));
}

static void sign_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = isnan(x[i]) ? x[i] : (double)((x[i] > 0) - (x[i] < 0));
}

static void sign_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int32_t *x = in[0];
    int32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] > 0) - (x[i] < 0);
}

static void sign_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int64_t *x = in[0];
    int64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] > 0) - (x[i] < 0);
}

const plait_op pli_op_sign = {
    .size = sizeof(plait_op),
    .name = "sign",
    .summary = "-1, 0 or 1",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .map = { [PLAIT_F32] = sign_f32, [PLAIT_F64] = sign_f64, [PLAIT_I32] = sign_i32, [PLAIT_I64] = sign_i64 },
};
