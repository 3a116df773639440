/* tensor/factors/factors_loops.h - the loops of factors.h, compiled once for each kind of processor. The compiler cuts
 * a lane of 16 floats into the registers that there are. */
#ifndef PLI_TENSOR_FACTORS_LOOPS_H
#define PLI_TENSOR_FACTORS_LOOPS_H

#include <math.h>

#include "tensor/factors/factors.h"

#define INLINE static inline __attribute__((always_inline))

typedef float  lane __attribute__((vector_size(64), aligned(4), may_alias));
typedef float  lane8 __attribute__((vector_size(32)));
typedef float  lane4 __attribute__((vector_size(16)));
typedef double wide __attribute__((vector_size(64), aligned(8), may_alias));

enum { AHEAD = 6 }; /* ratings whose rows are fetched early */

INLINE float total(lane x) {
    const lane8 a = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                    __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
    const lane4 b = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    return (b[0] + b[2]) + (b[1] + b[3]);
}

INLINE lane *lanes_at(float *rows, uint32_t row, int64_t lanes) {
    return (lane *)(void *)(rows + (int64_t)row * lanes * PLI_FACTOR_LANES);
}

INLINE void fetch(const pli_factor_step *s, int64_t lanes, const pli_rating *r) {
    const char *p = (const char *)lanes_at(s->user.row, r->user, lanes), *q = (const char *)lanes_at(s->item.row,
                                                                                                      r->item, lanes);
    for (int64_t l = 0; l < lanes; l++) {
        __builtin_prefetch(p + 64 * l, 1);
        __builtin_prefetch(q + 64 * l, 1);
    }
}

/* --- squared error ------------------------------------------------------------------------------------------------ */

INLINE double one_squared(const pli_factor_step *s, int64_t lanes, const pli_rating *r) {
    lane        *p = lanes_at(s->user.row, r->user, lanes), *q = lanes_at(s->item.row, r->item, lanes);
    float       *bu = s->user.side + 2 * (int64_t)r->user, *bi = s->item.side + 2 * (int64_t)r->item;
    lane         sum = { 0 }, su = { 0 }, si = { 0 };
    for (int64_t l = 0; l < lanes; l++) sum += p[l] * q[l];
    const float e = r->value - (s->mean + bu[0] + bi[0] + total(sum)), we = r->weight * e, l2 = r->weight * s->l2;
    const float ru = s->rate / sqrtf(bu[1]), ri = s->rate / sqrtf(bi[1]), share = 1 / (float)s->rank;
    for (int64_t l = 0; l < lanes; l++) {
        const lane gp = we * q[l] - l2 * p[l], gq = we * p[l] - l2 * q[l];
        su += gp * gp;
        si += gq * gq;
        p[l] += ru * gp;
        q[l] += ri * gq;
    }
    bu[1] += total(su) * share;
    bi[1] += total(si) * share;
    bu[0] += ru * (we - l2 * bu[0]);
    bi[0] += ri * (we - l2 * bi[0]);
    return (double)(we * e);
}

INLINE double all_squared(const pli_factor_step *s, int64_t lanes, int64_t n, const pli_rating *r) {
    double loss = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) fetch(s, lanes, &r[i + AHEAD]);
        loss += one_squared(s, lanes, &r[i]);
    }
    return loss;
}

static double squared(const pli_factor_step *s, int64_t n, const pli_rating *r) {
    switch (s->width / PLI_FACTOR_LANES) {
    case 1: return all_squared(s, 1, n, r);
    case 2: return all_squared(s, 2, n, r);
    case 4: return all_squared(s, 4, n, r);
    default: return all_squared(s, s->width / PLI_FACTOR_LANES, n, r);
    }
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

INLINE double one_ranked(const pli_factor_step *s, int64_t lanes, const pli_rating *r, uint32_t other) {
    lane        *p = lanes_at(s->user.row, r->user, lanes), *q = lanes_at(s->item.row, r->item, lanes),
                *o = lanes_at(s->item.row, other, lanes);
    float       *bu = s->user.side + 2 * (int64_t)r->user, *bi = s->item.side + 2 * (int64_t)r->item,
                *bo = s->item.side + 2 * (int64_t)other;
    lane         sum = { 0 }, su = { 0 }, si = { 0 }, so = { 0 };
    for (int64_t l = 0; l < lanes; l++) sum += p[l] * (q[l] - o[l]);
    const float x = bi[0] - bo[0] + total(sum), pull = expf(-fabsf(x));
    const float wrong = r->weight * (x > 0 ? pull : 1) / (1 + pull), l2 = r->weight * s->l2;
    const float ru = s->rate / sqrtf(bu[1]), ri = s->rate / sqrtf(bi[1]), ro = s->rate / sqrtf(bo[1]),
                share = 1 / (float)s->rank;
    for (int64_t l = 0; l < lanes; l++) {
        const lane gp = wrong * (q[l] - o[l]) - l2 * p[l], gq = wrong * p[l] - l2 * q[l],
                   go = -wrong * p[l] - l2 * o[l];
        su += gp * gp;
        si += gq * gq;
        so += go * go;
        p[l] += ru * gp;
        q[l] += ri * gq;
        o[l] += ro * go;
    }
    bu[1] += total(su) * share;
    bi[1] += total(si) * share;
    bo[1] += total(so) * share;
    bi[0] += ri * (wrong - l2 * bi[0]);
    bo[0] += ro * (-wrong - l2 * bo[0]);
    return (double)(r->weight * (log1pf(pull) + (x < 0 ? -x : 0)));
}

static double ranked(const pli_factor_step *s, int64_t n, const pli_rating *r, const uint32_t *other) {
    const int64_t lanes = s->width / PLI_FACTOR_LANES;
    double        loss = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) fetch(s, lanes, &r[i + AHEAD]);
        loss += one_ranked(s, lanes, &r[i], other[i]);
    }
    return loss;
}

/* --- normal equations --------------------------------------------------------------------------------------------- */

/* Up to four rows at a time: a is read and written once for them. The order of additions is that of the rows. */
INLINE void outer_some(int64_t d, int64_t n, const double *x, const double *weight, double *a) {
    for (int64_t j = 0; j < d; j++) {
        double at[4];
        for (int64_t i = 0; i < n; i++) at[i] = weight[i] * x[i * d + j];
        for (int64_t l = j / PLI_OUTER_LANES * PLI_OUTER_LANES; l < d; l += PLI_OUTER_LANES) {
            wide *to = (wide *)(void *)(a + j * d + l), sum = *to;
            for (int64_t i = 0; i < n; i++) sum += at[i] * *(const wide *)(const void *)(x + i * d + l);
            *to = sum;
        }
    }
}

static void outer(int64_t d, int64_t n, const double *x, const double *weight, const double *value, double *a,
                  double *b) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) outer_some(d, 4, x + i * d, weight + i, a);
    for (; i < n; i++) outer_some(d, 1, x + i * d, weight + i, a);
    for (i = 0; i < n; i++)
        for (int64_t j = 0; j < d; j++) b[j] += value[i] * x[i * d + j];
}

static float dot(int64_t width, const float *p, const float *q) {
    lane sum = { 0 };
    for (int64_t l = 0; l < width; l += PLI_FACTOR_LANES)
        sum += *(const lane *)(const void *)(p + l) * *(const lane *)(const void *)(q + l);
    return total(sum);
}

#endif
