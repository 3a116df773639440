/* not_equal: do a and b differ? The answer is a bool. NaN is equal to nothing. */
#include "graph/ops/ops.h"

static void not_equal_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    uint8_t     *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] != b[i];
}

static void not_equal_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    uint8_t      *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] != b[i];
}

static void not_equal_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int32_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] != b[i];
}

static void not_equal_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int64_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] != b[i];
}

static void not_equal_bool(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint8_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] != b[i];
}

const plait_op pli_op_not_equal = {
    .size = sizeof(plait_op),
    .name = "not_equal",
    .summary = "whether a and b differ, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = PLAIT_OP_BOOL,
    .map = { [PLAIT_F32] = not_equal_f32,
             [PLAIT_F64] = not_equal_f64,
             [PLAIT_I32] = not_equal_i32,
             [PLAIT_I64] = not_equal_i64,
             [PLAIT_BOOL] = not_equal_bool },
};
