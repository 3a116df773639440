/* leaky_relu: x where x > 0, else slope x. d/dx = 1 where x > 0, else slope. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "slope", .kind = PLAIT_ATTR_FLOAT, .u.f = 0.01 } },
};

static void leaky_relu_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const float  slope = (float)attr[0].u.f;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

static void leaky_relu_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const double  slope = (double)attr[0].u.f;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->d_out[0], at->in[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_relu_gradient, in, 2, at->attr);
}

const plait_op pli_op_leaky_relu = {
    .size = sizeof(plait_op),
    .name = "leaky_relu",
    .summary = "x where x > 0, else slope x",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = leaky_relu_f32, [PLAIT_F64] = leaky_relu_f64 },
};
