/* See updates.h. */
#include "table/state/updates.h"

#include <string.h>

#include "table/state/values.h"
#include "tensor/exact_cells.h"

enum { STRIP = 256 };

void pli_updates_clear(const pli_spec *spec, int64_t n, void *sum) {
    if (spec->exact) memset(sum, 0, (size_t)(n * spec->sum_width));
    else pli_merge_clear(spec->merge, n, sum);
}

static bool is_wide(const pli_spec *spec) { return spec->type == PLAIT_F64; }

void pli_updates_add(const pli_spec *spec, int64_t n, const void *delta, void *sum) {
    if (spec->exact) pli_cells_add(is_wide(spec), n, delta, sum);
    else spec->merge->fold(n, delta, sum);
}

void pli_updates_scatter(const pli_spec *spec, int64_t rows, const int64_t *at, const void *delta, void *sum) {
    int64_t row_bytes = pli_row_bytes(spec), sum_bytes = pli_sum_row_bytes(spec);
    if (!spec->exact) {
        pli_merge_scatter(spec->merge, rows, spec->cols, at, delta, sum);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        pli_cells_add(is_wide(spec), spec->cols, pli_at_const(delta, i * row_bytes), pli_at(sum, at[i] * sum_bytes));
}

void pli_updates_merge(const pli_spec *spec, int64_t n, const void *other, void *sum) {
    if (spec->exact) pli_cells_merge(is_wide(spec), n, sum, other, sum);
    else spec->merge->fold(n, other, sum);
}

void pli_updates_merge_rows(const pli_spec *spec, int64_t rows, const int64_t *at, const void *other, void *sum) {
    int64_t sum_bytes = pli_sum_row_bytes(spec);
    if (!spec->exact) {
        pli_merge_scatter(spec->merge, rows, spec->cols, at, other, sum);
        return;
    }
    for (int64_t i = 0; i < rows; i++) {
        void *into = pli_at(sum, at[i] * sum_bytes);
        pli_cells_merge(is_wide(spec), spec->cols, into, pli_at_const(other, i * sum_bytes), into);
    }
}

void pli_updates_lay_over(const pli_spec *spec, double scale, int64_t n, const void *sum, void *values) {
    double rounded[STRIP];
    if (!spec->exact && scale == 1) {
        spec->merge->fold(n, sum, values);
        return;
    }
    if (!spec->exact) {
        pli_values_add_scaled(spec->type, n, scale, sum, values);
        return;
    }
    for (int64_t first = 0, m; first < n; first += m) {
        m = n - first < STRIP ? n - first : STRIP;
        pli_cells_round(is_wide(spec), m, pli_at_const(sum, first * spec->sum_width), rounded);
        pli_values_add_scaled(spec->type, m, scale, rounded, pli_at(values, first * spec->width));
    }
}

double pli_updates_at(const pli_spec *spec, const void *sum, int64_t i) {
    float       f32;
    double      f64;
    const void *value = pli_at_const(sum, i * spec->sum_width);
    if (spec->type == PLAIT_I64) return (double)*(const int64_t *)value;
    if (spec->exact) {
        pli_cells_round(is_wide(spec), 1, value, is_wide(spec) ? (void *)&f64 : &f32);
        value = is_wide(spec) ? (void *)&f64 : &f32;
    }
    return is_wide(spec) ? *(const double *)value : (double)*(const float *)value;
}

void pli_updates_set(const pli_spec *spec, void *sum, int64_t i, double x) {
    void         *at = pli_at(sum, i * spec->sum_width);
    const float   narrow = (float)x;
    const int64_t whole = spec->type == PLAIT_I64 ? (int64_t)x : 0;
    const void   *value = spec->type == PLAIT_I64 ? (const void *)&whole : is_wide(spec) ? (const void *)&x : &narrow;
    if (!spec->exact) {
        memcpy(at, value, (size_t)spec->width);
        return;
    }
    memset(at, 0, (size_t)spec->sum_width);
    pli_cells_add(is_wide(spec), 1, value, at);
}
