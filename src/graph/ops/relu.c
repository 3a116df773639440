/* relu: x where x > 0, else 0; NaN stays. d/dx = 1 where x > 0, else 0. */
#include "graph/ops/ops.h"

static void relu_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void relu_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->d_out[0], at->out[0] };
    const plait_attr  slope = { .name = "slope", .kind = PLAIT_ATTR_FLOAT, .u.f = 0 };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_relu_gradient, in, 2, &slope);
}

const plait_op pli_op_relu = {
    .size = sizeof(plait_op),
    .name = "relu",
    .summary = "x where x > 0, else 0",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = relu_f32, [PLAIT_F64] = relu_f64 },
};
