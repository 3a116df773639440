/* clip: x, but at least low and at most high; NaN stays. d/dx = 1 where low <= x <= high, else 0. */
#include <math.h>

#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "low", .kind = PLAIT_ATTR_FLOAT, .u.f = -HUGE_VAL } },
    { .preset = { .name = "high", .kind = PLAIT_ATTR_FLOAT, .u.f = HUGE_VAL } },
};

static void clip_f32(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const float  low = (float)attr[0].u.f, high = (float)attr[1].u.f;
    const float *x = in[0];
    float       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

static void clip_f64(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    const double  low = (double)attr[0].u.f, high = (double)attr[1].u.f;
    const double *x = in[0];
    double       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < low ? low : x[i] > high ? high : x[i];
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value x = at->in[0], d = at->d_out[0], low = pli_scalar_like(g, x, at->attr[0].u.f),
                      high = pli_scalar_like(g, x, at->attr[1].u.f);
    const plait_value above = pli_op2(g, &pli_op_greater_equal, x, low),
                      below = pli_op2(g, &pli_op_less_equal, x, high);
    at->d_in[0] = pli_op3(g, &pli_op_where, pli_op2(g, &pli_op_logical_and, above, below), d, pli_scalar_like(g, x, 0));
}

const plait_op pli_op_clip = {
    .size = sizeof(plait_op),
    .name = "clip",
    .summary = "x held between low and high",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .in_place = 1,
    .gradient = gradient,
    .map = { [PLAIT_F32] = clip_f32, [PLAIT_F64] = clip_f64 },
};
