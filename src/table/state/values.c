/* See values.h. */
#include "table/state/values.h"

#include <math.h>
#include <string.h>

enum { AHEAD = 16 };

static void add_f32(int64_t n, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void add_f64(int64_t n, const double *x, double *y) {
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

void pli_values_add(plait_type type, int64_t n, const void *x, void *y) {
    if (type == PLAIT_F32) add_f32(n, x, y);
    else add_f64(n, x, y);
}

void pli_values_add_scaled(plait_type type, int64_t n, double scale, const void *x, void *y) {
    if (type == PLAIT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)y)[i] += (float)scale * ((const float *)x)[i];
    else
        for (int64_t i = 0; i < n; i++) ((double *)y)[i] += scale * ((const double *)x)[i];
}

void pli_values_scale(plait_type type, int64_t n, double scale, void *y) {
    if (type == PLAIT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)y)[i] *= (float)scale;
    else
        for (int64_t i = 0; i < n; i++) ((double *)y)[i] *= scale;
}

static double max_norm_f32(int64_t n, const float *x) {
    float most = 0;
    for (int64_t i = 0; i < n; i++) most = !(fabsf(x[i]) <= most) ? fabsf(x[i]) : most;
    return (double)most;
}

static double max_norm_f64(int64_t n, const double *x) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = !(fabs(x[i]) <= most) ? fabs(x[i]) : most;
    return most;
}

double pli_values_max_norm(plait_type type, int64_t n, const void *x) {
    return type == PLAIT_F32 ? max_norm_f32(n, x) : max_norm_f64(n, x);
}

static void scatter_add_f32(int64_t n, int64_t cols, const int64_t *at, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && at[i + AHEAD] >= 0) __builtin_prefetch(&y[at[i + AHEAD] * cols], 1);
        if (at[i] < 0) continue;
        if (cols == 1) y[at[i]] += x[i];
        else add_f32(cols, &x[i * cols], &y[at[i] * cols]);
    }
}

static void scatter_add_f64(int64_t n, int64_t cols, const int64_t *at, const double *x, double *y) {
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && at[i + AHEAD] >= 0) __builtin_prefetch(&y[at[i + AHEAD] * cols], 1);
        if (at[i] < 0) continue;
        if (cols == 1) y[at[i]] += x[i];
        else add_f64(cols, &x[i * cols], &y[at[i] * cols]);
    }
}

void pli_values_scatter_add(plait_type type, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    if (type == PLAIT_F32) scatter_add_f32(n, cols, at, x, y);
    else scatter_add_f64(n, cols, at, x, y);
}

static void gather_add_f32(int64_t n, int64_t cols, const int64_t *at, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) add_f32(cols, &x[at[i] * cols], &y[i * cols]);
}

static void gather_add_f64(int64_t n, int64_t cols, const int64_t *at, const double *x, double *y) {
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) add_f64(cols, &x[at[i] * cols], &y[i * cols]);
}

void pli_values_gather_add(plait_type type, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    if (type == PLAIT_F32) gather_add_f32(n, cols, at, x, y);
    else gather_add_f64(n, cols, at, x, y);
}

void pli_rows_scatter(int64_t n, int64_t row_bytes, const uint32_t *at, const void *x, void *y) {
    if (row_bytes == 4) {
        for (int64_t i = 0; i < n; i++) memcpy(pli_at(y, (int64_t)at[i] * 4), pli_at_const(x, i * 4), 4);
    } else if (row_bytes == 8) {
        for (int64_t i = 0; i < n; i++) memcpy(pli_at(y, (int64_t)at[i] * 8), pli_at_const(x, i * 8), 8);
    } else {
        for (int64_t i = 0; i < n; i++)
            memcpy(pli_at(y, at[i] * row_bytes), pli_at_const(x, i * row_bytes), (size_t)row_bytes);
    }
}
