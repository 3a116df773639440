/* sigmoid: 1 / (1 + e^-x). d/dx = y - y^2. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void sigmoid_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->sigmoid_f32(n, in[0], out);
}

static void sigmoid_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->sigmoid_f64(n, in[0], out);
}

static void gradient(const plait_gradient *at) {
    const plait_value slope =
        pli_op2(at->graph, &pli_op_sub, at->out[0], pli_op1(at->graph, &pli_op_square, at->out[0]));
    at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], slope);
}

const plait_op pli_op_sigmoid = {
    .size = sizeof(plait_op),
    .name = "sigmoid",
    .summary = "1 / (1 + e^-x)",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = sigmoid_f32, [PLAIT_F64] = sigmoid_f64 },
};
