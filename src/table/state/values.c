/* See values.h. */
#include "table/state/values.h"

#include <math.h>
#include <string.h>

void pli_values_add_scaled(plait_type type, int64_t n, double scale, const void *x, void *y) {
    if (type == PLAIT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)y)[i] += (float)scale * ((const float *)x)[i];
    else if (type == PLAIT_F64)
        for (int64_t i = 0; i < n; i++) ((double *)y)[i] += scale * ((const double *)x)[i];
    else
        for (int64_t i = 0; i < n; i++) ((uint64_t *)y)[i] += (uint64_t)(int64_t)scale * ((const uint64_t *)x)[i];
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

static double max_norm_i64(int64_t n, const int64_t *x) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fabs((double)x[i]) > most ? fabs((double)x[i]) : most;
    return most;
}

double pli_values_max_norm(plait_type type, int64_t n, const void *x) {
    if (type == PLAIT_I64) return max_norm_i64(n, x);
    return type == PLAIT_F32 ? max_norm_f32(n, x) : max_norm_f64(n, x);
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
