/* neg: -a. */
#include "graph/ops/ops.h"

static void neg_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = -a[i];
}

static void neg_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = -a[i];
}

static void neg_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint32_t *a = in[0];
    uint32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 0 - a[i];
}

static void neg_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint64_t *a = in[0];
    uint64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = 0 - a[i];
}

static void gradient(const plait_gradient *at) { at->d_in[0] = pli_op1(at->graph, &pli_op_neg, at->d_out[0]); }

const plait_op pli_op_neg = {
    .size = sizeof(plait_op),
    .name = "neg",
    .summary = "-a",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = neg_f32, [PLAIT_F64] = neg_f64, [PLAIT_I32] = neg_i32, [PLAIT_I64] = neg_i64 },
};
