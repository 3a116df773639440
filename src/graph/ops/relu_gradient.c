/* relu_gradient: d where x > 0, else slope d: the gradient of relu and leaky_relu. Input a is d; input b is x, or any
 * value that is above 0 where x is. It is linear in d, and constant in x except at 0. */
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "slope", .kind = PLAIT_ATTR_FLOAT, .u.f = 0 } },
};

static void relu_gradient_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const float  slope = (float)attr[0].u.f;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = b[i] > 0 ? a[i] : slope * a[i];
}

static void relu_gradient_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const double  slope = (double)attr[0].u.f;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = b[i] > 0 ? a[i] : slope * a[i];
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->d_out[0], at->in[1] };
    at->d_in[0] =
        pli_unbroadcast(at->graph, pli_graph_node(at->graph, &pli_op_relu_gradient, in, 2, at->attr), at->in[0]);
}

const plait_op pli_op_relu_gradient = {
    .size = sizeof(plait_op),
    .name = "relu_gradient",
    .summary = "d where x > 0, else slope d",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .in_place = 3,
    .gradient = gradient,
    .map = { [PLAIT_F32] = relu_gradient_f32, [PLAIT_F64] = relu_gradient_f64 },
};
