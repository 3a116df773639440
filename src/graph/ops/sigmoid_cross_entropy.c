/* sigmoid_cross_entropy: for scores x and targets t in [0, 1], -t log s(x) - (1 - t) log(1 - s(x)), where s is the
 * sigmoid. It is computed as softplus(x) - t x, which never overflows. d/dx = s(x) - t, d/dt = -x. */
#include "graph/ops/ops.h"
#include "tensor/tensor.h"

static void map_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    enum { BLOCK = 256 };
    const float *x = in[0], *t = in[1];
    float       *y = out, soft[BLOCK]; /* out may be one of in */
    for (int64_t first = 0; first < n; first += BLOCK) {
        const int64_t end = n - first < BLOCK ? n : first + BLOCK;
        pli_kernels_get()->softplus_f32(end - first, x + first, soft);
        for (int64_t i = first; i < end; i++) y[i] = soft[i - first] - t[i] * x[i];
    }
}

static void map_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *x = in[0], *t = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) {
        const double score = x[i], target = t[i];
        double       soft;
        pli_kernels_get()->softplus_f64(1, &score, &soft);
        y[i] = soft - target * score;
    }
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value slope = pli_op2(g, &pli_op_sub, pli_op1(g, &pli_op_sigmoid, at->in[0]), at->in[1]);
    at->d_in[0] = pli_unbroadcast(g, pli_op2(g, &pli_op_mul, at->d_out[0], slope), at->in[0]);
    at->d_in[1] =
        pli_unbroadcast(g, pli_op2(g, &pli_op_mul, at->d_out[0], pli_op1(g, &pli_op_neg, at->in[0])), at->in[1]);
}

const plait_op pli_op_sigmoid_cross_entropy = {
    .size = sizeof(plait_op),
    .name = "sigmoid_cross_entropy",
    .summary = "the logistic loss of scores for targets from 0 to 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = map_f32, [PLAIT_F64] = map_f64 },
};
