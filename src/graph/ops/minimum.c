/* minimum: the smaller of a and b; NaN if a or b is. The gradient goes to the smaller one, and to a if they are
 * equal. */
#include <math.h>

#include "graph/ops/ops.h"

static void minimum_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] < b[i] || isnan(a[i]) ? a[i] : b[i];
}

static void minimum_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] < b[i] || isnan(a[i]) ? a[i] : b[i];
}

static void minimum_i32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int32_t *a = in[0], *b = in[1];
    int32_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] < b[i] ? a[i] : b[i];
}

static void minimum_i64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const int64_t *a = in[0], *b = in[1];
    int64_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] < b[i] ? a[i] : b[i];
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value d = at->d_out[0], zero = pli_scalar_like(g, d, 0);
    const plait_value is_a = pli_op2(g, &pli_op_less_equal, at->in[0], at->in[1]);
    at->d_in[0] = pli_unbroadcast(g, pli_op3(g, &pli_op_where, is_a, d, zero), at->in[0]);
    at->d_in[1] = pli_unbroadcast(g, pli_op3(g, &pli_op_where, is_a, zero, d), at->in[1]);
}

const plait_op pli_op_minimum = {
    .size = sizeof(plait_op),
    .name = "minimum",
    .summary = "the smaller of a and b, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = minimum_f32,
             [PLAIT_F64] = minimum_f64,
             [PLAIT_I32] = minimum_i32,
             [PLAIT_I64] = minimum_i64 },
};
