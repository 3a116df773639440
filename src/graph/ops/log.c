/* log: the natural logarithm; -inf at 0, NaN below 0. d/dx = 1 / x. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void log_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->log_f32(n, in[0], out);
}

static void log_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    pli_kernels_get()->log_f64(n, in[0], out);
}

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_div, at->d_out[0], at->in[0]);
}

const plait_op pli_op_log = {
    .size = sizeof(plait_op),
    .name = "log",
    .summary = "the natural logarithm",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = log_f32, [PLAIT_F64] = log_f64 },
};
