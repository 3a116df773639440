#include "graph/norm.h"

#include <math.h>

static int64_t each(const pli_groups *g) {
    const int64_t n = pli_group_elements(g);
    return n > 0 && n < PLI_ITEM_ELEMENTS ? PLI_ITEM_ELEMENTS / n : 1;
}

int64_t pli_group_items(const pli_groups *g) { return (g->count + each(g) - 1) / each(g); }

static int64_t piece(const pli_groups *g, int64_t item, int64_t *first_out) {
    *first_out = item * each(g);
    return *first_out + each(g) < g->count ? *first_out + each(g) : g->count;
}

/* --- reference --------------------------------------------------------------------------------------------------- */

static int64_t place(const pli_groups *g, int64_t group, int64_t i) {
    return group * g->run + i / g->run * g->apart + i % g->run;
}

plait_status pli_norm_ref(const plait_call *call, const pli_groups *g, double epsilon, int64_t item) {
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = pli_group_elements(g);
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

plait_status pli_norm_gradient_ref(const plait_call *call, const pli_groups *g, double epsilon, int64_t item) {
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = pli_group_elements(g);
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

/* lane += x, or x less shift squared. */
static void add_x(int64_t n, const float *x, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l];
    for (; i < n; i++) lane[i % LANES] += (double)x[i];
}

static void add_square(int64_t n, const float *x, double shift, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += ((double)x[i + l]) * ((double)x[i + l] - shift);
    for (; i < n; i++) lane[i % LANES] += ((double)x[i]) * ((double)x[i] - shift);
}

static void add_product(int64_t n, const float *x, const float *y, double lane[LANES]) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += (double)x[i + l] * (double)y[i + l];
    for (; i < n; i++) lane[i % LANES] += (double)x[i] * (double)y[i];
}

plait_status pli_norm_f32(const plait_call *call, const pli_groups *g, double epsilon, int64_t item) {
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = pli_group_elements(g);
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

plait_status pli_norm_gradient_f32(const plait_call *call, const pli_groups *g, double epsilon, int64_t item) {
    int64_t       first;
    const int64_t end = piece(g, item, &first), n = pli_group_elements(g);
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
