/* pow: a^b, for floats. d/da = b a^(b-1), taken as 0 at a = b = 0. d/db = a^b log a, taken as 0 at a = 0; it is NaN for
 * a < 0, where a^b exists for integer b only. */
#include <math.h>

#include "graph/ops/ops.h"

static void pow_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const float *a = in[0], *b = in[1];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = (float)pow((double)a[i], (double)b[i]);
}

static void pow_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const double *a = in[0], *b = in[1];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = pow(a[i], b[i]);
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value d = at->d_out[0], a = at->in[0], b = at->in[1];
    const plait_value zero = pli_scalar_like(g, a, 0), one = pli_scalar_like(g, a, 1);
    const plait_value a_is_0 = pli_op2(g, &pli_op_equal, a, zero), b_is_0 = pli_op2(g, &pli_op_equal, b, zero);
    const plait_value base = pli_op3(g, &pli_op_where, pli_op2(g, &pli_op_logical_and, a_is_0, b_is_0), one, a);
    const plait_value power = pli_op2(g, &pli_op_pow, base, pli_op2(g, &pli_op_sub, b, one));
    const plait_value log_a = pli_op1(g, &pli_op_log, pli_op3(g, &pli_op_where, a_is_0, one, a));
    const plait_value dy = pli_op2(g, &pli_op_mul, d, at->out[0]);
    at->d_in[0] = pli_unbroadcast(g, pli_op2(g, &pli_op_mul, pli_op2(g, &pli_op_mul, d, b), power), a);
    at->d_in[1] = pli_unbroadcast(g, pli_op2(g, &pli_op_mul, dy, log_a), b);
}

const plait_op pli_op_pow = {
    .size = sizeof(plait_op),
    .name = "pow",
    .summary = "a to the power of b, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .gradient = gradient,
    .flops = pli_flops_curve,
    .map = { [PLAIT_F32] = pow_f32, [PLAIT_F64] = pow_f64 },
};
