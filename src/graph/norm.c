/* Finds where the groups of lines and of channels lie, and sums them in the lanes that norm.h describes: a reference
 * kernel for any type, element by element, and loops over runs of floats. */
#include "graph/norm.h"

#include <math.h>

#include "graph/ops/ops.h"

/* --- groups ------------------------------------------------------------------------------------------------------ */

enum { AXIS, LINE_EPSILON, CHANNEL_EPSILON = 0 };

const plait_attr_spec pli_norm_line_attrs[] = {
    [AXIS] = { .preset = { .name = "axis", .kind = PLAIT_ATTR_INT, .u.i = -1 } },
    [LINE_EPSILON] = { .preset = { .name = "epsilon", .kind = PLAIT_ATTR_FLOAT, .u.f = 1e-5 } },
};
const plait_attr_spec pli_norm_channel_attrs[] = {
    [CHANNEL_EPSILON] = { .preset = { .name = "epsilon", .kind = PLAIT_ATTR_FLOAT, .u.f = 1e-5 } },
};

static plait_status shape_of_lines(const plait_call *call, const plait_shape *x, plait_shape *out) {
    int32_t axis;
    PLI_TRY(pli_axis_find(call, call->attr[AXIS].u.i, x->rank, &axis));
    *out = *x;
    out->rank = axis;
    return PLAIT_OK;
}

static pli_groups lines_of(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    const int64_t      axis = call->attr[AXIS].u.i < 0 ? call->attr[AXIS].u.i + x->rank : call->attr[AXIS].u.i;
    pli_groups         g = { .count = 1, .segments = 1, .run = 1 };
    for (int64_t i = 0; i < x->rank; i++) *(i < axis ? &g.count : &g.run) *= x->dim[i];
    return g;
}

static plait_status shape_of_channels(const plait_call *call, const plait_shape *x, plait_shape *out) {
    if (x->rank < 2) return plait_call_fail(call, PLAIT_ESHAPE, "needs [n, channels, ...]");
    *out = plait_shape_1(x->dim[1]);
    return PLAIT_OK;
}

static pli_groups channels_of(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape;
    pli_groups         g = { .count = x->dim[1], .segments = x->dim[0], .run = 1 };
    for (int64_t i = 2; i < x->rank; i++) g.run *= x->dim[i];
    g.apart = g.count * g.run;
    return g;
}

const pli_norm_kind pli_norm_lines = { .epsilon = LINE_EPSILON, .groups = lines_of, .shape = shape_of_lines };
const pli_norm_kind pli_norm_channels = {
    .epsilon = CHANNEL_EPSILON, .groups = channels_of, .shape = shape_of_channels
};

static pli_groups groups_of(const plait_call *call) { return ((const pli_norm_kind *)call->user)->groups(call); }
static double     epsilon_of(const plait_call *call) {
    return call->attr[((const pli_norm_kind *)call->user)->epsilon].u.f;
}

static int64_t elements(const pli_groups *g) { return g->segments * g->run; }

/* The number of groups of an item. */
static int64_t each(const pli_groups *g) {
    const int64_t n = elements(g);
    return n > 0 && n < PLI_ITEM_ELEMENTS ? PLI_ITEM_ELEMENTS / n : 1;
}

static int64_t items(const plait_call *call) {
    const pli_groups g = groups_of(call);
    return (g.count + each(&g) - 1) / each(&g);
}

static int64_t piece(const pli_groups *g, int64_t item, int64_t *first_out) {
    *first_out = item * each(g);
    return *first_out + each(g) < g->count ? *first_out + each(g) : g->count;
}

/* --- reference --------------------------------------------------------------------------------------------------- */

static int64_t place(const pli_groups *g, int64_t group, int64_t i) {
    return group * g->run + i / g->run * g->apart + i % g->run;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call), *g = &groups;
    const double     epsilon = epsilon_of(call);
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = elements(g);
    for (int64_t k = first; k < end; k++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; i++) mean += pli_element(&call->in[0], place(g, k, i)) / (double)n;
        for (int64_t i = 0; i < n; i++)
            variance += pow(pli_element(&call->in[0], place(g, k, i)) - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; i++)
            pli_element_set(&call->out[0], place(g, k, i),
                            (pli_element(&call->in[0], place(g, k, i)) - mean) / sqrt(variance + epsilon));
        pli_element_set(&call->out[1], k, mean);
        pli_element_set(&call->out[2], k, variance);
    }
    return PLAIT_OK;
}

static plait_status ref_gradient(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call), *g = &groups;
    const double     epsilon = epsilon_of(call);
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = elements(g);
    for (int64_t k = first; k < end; k++) {
        const double deviation = sqrt(pli_element(&call->in[1], k) + epsilon);
        double       mean = 0, along = 0;
        for (int64_t i = 0; i < n; i++) {
            const double dy = pli_element(&call->in[2], place(g, k, i));
            mean += dy / (double)n;
            along += dy * pli_element(&call->in[0], place(g, k, i)) / (double)n;
        }
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = place(g, k, i);
            pli_element_set(&call->out[0], at,
                            (pli_element(&call->in[2], at) - mean - pli_element(&call->in[0], at) * along) / deviation);
        }
    }
    return PLAIT_OK;
}

/* --- f32 -------------------------------------------------------------------------------------------------------- */

enum { LANES = 8 };

static double lanes_sum(const double lane[LANES]) {
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

/* Adds x to the lanes. */
static void add_x(int64_t n, const float *x, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l];
    for (; i < n; i++) lane[i % LANES] += (double)x[i];
}

/* Adds (x - mean)^2 to the lanes. (x (x - mean) has the same sum only if the mean is not rounded: of values far from
 * zero its rounding, times the mean, may be larger than the variance.) */
static void add_square(int64_t n, const float *x, double mean, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            const double from_mean = (double)x[i + l] - mean;
            lane[l] += from_mean * from_mean;
        }
    for (; i < n; i++) lane[i % LANES] += ((double)x[i] - mean) * ((double)x[i] - mean);
}

static void add_product(int64_t n, const float *x, const float *y, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l] * (double)y[i + l];
    for (; i < n; i++) lane[i % LANES] += (double)x[i] * (double)y[i];
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call), *g = &groups;
    const double     epsilon = epsilon_of(call);
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = elements(g);
    for (int64_t k = first; k < end; k++) {
        const float *x = (const float *)call->in[0].data + k * g->run;
        float       *y = (float *)call->out[0].data + k * g->run;
        double       sum[LANES] = { 0 }, square[LANES] = { 0 };
        for (int64_t s = 0; s < g->segments; s++) add_x(g->run, x + s * g->apart, sum);
        const double mean = n > 0 ? lanes_sum(sum) / (double)n : 0;
        for (int64_t s = 0; s < g->segments; s++) add_square(g->run, x + s * g->apart, mean, square);
        const double variance = n > 0 ? lanes_sum(square) / (double)n : 0;
        const float  shift = (float)mean, scale = (float)(1 / sqrt(variance + epsilon));
        for (int64_t s = 0; s < g->segments; s++)
            for (int64_t i = 0; i < g->run; i++) y[s * g->apart + i] = (x[s * g->apart + i] - shift) * scale;
        ((float *)call->out[1].data)[k] = shift;
        ((float *)call->out[2].data)[k] = (float)variance;
    }
    return PLAIT_OK;
}

static plait_status f32_gradient(const plait_call *call, int64_t item) {
    const pli_groups groups = groups_of(call), *g = &groups;
    const double     epsilon = epsilon_of(call);
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = elements(g);
    for (int64_t k = first; k < end; k++) {
        const float *y = (const float *)call->in[0].data + k * g->run,
                    *dy = (const float *)call->in[2].data + k * g->run;
        float *dx = (float *)call->out[0].data + k * g->run;
        double sum[LANES] = { 0 }, product[LANES] = { 0 };
        for (int64_t s = 0; s < g->segments; s++) {
            add_x(g->run, dy + s * g->apart, sum);
            add_product(g->run, dy + s * g->apart, y + s * g->apart, product);
        }
        const float mean = (float)(lanes_sum(sum) / (double)n), along = (float)(lanes_sum(product) / (double)n);
        const float scale = (float)(1 / sqrt((double)((const float *)call->in[1].data)[k] + epsilon));
        for (int64_t s = 0; s < g->segments; s++)
            for (int64_t i = s * g->apart; i < s * g->apart + g->run; i++)
                dx[i] = ((dy[i] - mean) - y[i] * along) * scale;
    }
    return PLAIT_OK;
}

/* --- the ops' tables --------------------------------------------------------------------------------------------- */

plait_status pli_norm_infer(const plait_call *call) {
    const pli_norm_kind *kind = call->user;
    plait_shape          groups;
    if (!pli_type_is_float(call->in[0].type)) return plait_call_fail(call, PLAIT_ESHAPE, "of floats only; cast it");
    PLI_TRY(kind->shape(call, &call->in[0].shape, &groups));
    if (!(epsilon_of(call) > 0)) return plait_call_fail(call, PLAIT_EINVAL, "epsilon is to be above 0");
    call->out[1] = call->out[2] = (plait_tensor){ .type = call->in[0].type, .shape = groups };
    return pli_infer_as_input(call);
}

plait_status pli_norm_gradient_infer(const plait_call *call) {
    const pli_norm_kind *kind = call->user;
    const plait_shape   *y = &call->in[0].shape;
    plait_shape          groups;
    for (int i = 0; i < 3; i++)
        if (call->in[i].type != call->in[0].type || !pli_type_is_float(call->in[i].type))
            return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type");
    PLI_TRY(kind->shape(call, y, &groups));
    if (!pli_shapes_agree(&groups, &call->in[1].shape) || !pli_shapes_agree(y, &call->in[2].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs y, the variance of each group, and dy of the shape of y");
    return pli_infer_as_input(call);
}

static int is_f32(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static const plait_kernel f32 = { .name = "f32", .suits = is_f32, .items = items, .run = f32_run };
static const plait_kernel ref = { .name = "ref", .items = items, .run = ref_run };
const plait_kernel *const pli_norm_kernels[] = { &f32, &ref, NULL };

static const plait_kernel gradient_f32 = { .name = "f32", .suits = is_f32, .items = items, .run = f32_gradient };
static const plait_kernel gradient_ref = { .name = "ref", .items = items, .run = ref_gradient };
const plait_kernel *const pli_norm_gradient_kernels[] = { &gradient_f32, &gradient_ref, NULL };
