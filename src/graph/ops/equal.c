/* equal: is a = b? The answer is a bool. NaN is equal to nothing. */
#include "graph/ops/ops.h"

static void equal_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    uint8_t     *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] == b[i];
}

static void equal_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    uint8_t      *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] == b[i];
}

static void equal_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int32_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] == b[i];
}

static void equal_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int64_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] == b[i];
}

static void equal_bool(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint8_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] == b[i];
}

const plait_op pli_op_equal = {
    .size = sizeof(plait_op),
    .name = "equal",
    .summary = "whether a = b, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = PLAIT_OP_BOOL,
    .map = { [PLAIT_F32] = equal_f32,
             [PLAIT_F64] = equal_f64,
             [PLAIT_I32] = equal_i32,
             [PLAIT_I64] = equal_i64,
             [PLAIT_BOOL] = equal_bool },
};
