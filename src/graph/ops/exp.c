/* exp: e^x. d/dx = y. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void exp_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->exp_f32(n, in[0], out);
}

static void exp_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->exp_f64(n, in[0], out);
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_mul, at->d_out[0], at->out[0]);
}

const plait_op pli_op_exp = {
    .size = sizeof(plait_op),
    .name = "exp",
    .summary = "e to the power of x",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = exp_f32, [PLAIT_F64] = exp_f64 },
};
