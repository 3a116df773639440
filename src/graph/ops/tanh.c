/* tanh: the hyperbolic tangent. d/dx = 1 - y^2. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void tanh_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->tanh_f32(n, in[0], out);
}

static void tanh_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->tanh_f64(n, in[0], out);
}

static void gradient(const plait_gradient *at) {
    const plait_value less =
        pli_op2(at->graph, &pli_op_mul, at->d_out[0], pli_op1(at->graph, &pli_op_square, at->out[0]));
    at->d_in[0] = pli_op2(at->graph, &pli_op_sub, at->d_out[0], less);
}

const plait_op pli_op_tanh = {
    .size = sizeof(plait_op),
    .name = "tanh",
    .summary = "the hyperbolic tangent",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = tanh_f32, [PLAIT_F64] = tanh_f64 },
};
