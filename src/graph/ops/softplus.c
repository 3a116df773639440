/* softplus: log(1 + e^x). d/dx = sigmoid x. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void softplus_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->softplus_f32(n, in[0], out);
}

static void softplus_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->softplus_f64(n, in[0], out);
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], pli_op1(at->graph, &pli_op_sigmoid, at->in[0]));
}

const plait_op pli_op_softplus = {
    .size = sizeof(plait_op),
    .name = "softplus",
    .summary = "log(1 + e^x)",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = softplus_f32, [PLAIT_F64] = softplus_f64 },
};
