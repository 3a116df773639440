/* add: a + b. d/da = d/db = 1. */
#include "graph/ops/ops.h"

static void add_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void add_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void add_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint32_t *a = in[0], *b = in[1]; /* integers of graphs wrap */
    uint32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void add_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint64_t *a = in[0], *b = in[1];
    uint64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] + b[i];
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_unbroadcast(at->graph, at->d_out[0], at->in[0]);
    at->d_in[1] = pli_unbroadcast(at->graph, at->d_out[0], at->in[1]);
}

const plait_op pli_op_add = {
    .size = sizeof(plait_op),
    .name = "add",
    .summary = "a + b, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = add_f32, [PLAIT_F64] = add_f64, [PLAIT_I32] = add_i32, [PLAIT_I64] = add_i64 },
};
