/* tensor/sparse_wide.h - the code of the products of sparse rows with matrices of several columns; the including
 * file compiles it for its processor. An element's terms are added in the order of the entries, so vectors of
 * columns give the same bits. Rows of the matrix are fetched for entries ahead. */
#ifndef PLI_TENSOR_SPARSE_WIDE_H
#define PLI_TENSOR_SPARSE_WIDE_H

#include "tensor/entries.h"

enum { PLI_WIDE_AHEAD = 8 };

#define PLI_WIDE static inline __attribute__((always_inline))

/* Fetches the first `bytes` of the matrix's row for the entry PLI_WIDE_AHEAD later; rows are `apart` bytes apart. */
PLI_WIDE void pli_wide_fetch(pli_entries s, int64_t k, int64_t apart, int64_t bytes, const void *matrix,
                             const int write) {
    if (k + PLI_WIDE_AHEAD >= s.ahead) return;
    const char *row = (const char *)matrix + (int64_t)pli_entries_column(s, k + PLI_WIDE_AHEAD) * apart;
    for (int64_t at = 0; at < bytes && at < 512; at += 64) {
        if (write) __builtin_prefetch(row + at, 1); /* the second argument must be a constant */
        else __builtin_prefetch(row + at, 0);
    }
}

/* --- y = x w: n columns at a time; n is a constant, so that their sums stay in registers
 * --------------------------- */

PLI_WIDE void pli_wide_dots_f32(const int n, pli_entries s, int64_t cols, const float *w, double *y) {
    double sum[32] = { 0 };
    for (int64_t k = 0; k < s.n; k++) {
        const float *row = w + (int64_t)pli_entries_column(s, k) * cols;
        const double v = pli_entries_value(s, k);
        pli_wide_fetch(s, k, cols * (int64_t)sizeof *w, n * (int64_t)sizeof *w, w, 0);
        for (int c = 0; c < n; c++) sum[c] += v * (double)row[c];
    }
    for (int c = 0; c < n; c++) y[c] = sum[c];
}

/* Up to 16 columns take one pass over the entries. With more columns the last ones are computed in one group of 8 with
 * some columns before them, which are computed twice. */
PLI_WIDE void pli_wide_row_dots_f32(pli_entries s, int64_t cols, const float *w, double *y) {
    int64_t c = 0;
    switch (cols) {
    case 9: pli_wide_dots_f32(9, s, cols, w, y); return;
    case 10: pli_wide_dots_f32(10, s, cols, w, y); return;
    case 11: pli_wide_dots_f32(11, s, cols, w, y); return;
    case 12: pli_wide_dots_f32(12, s, cols, w, y); return;
    case 13: pli_wide_dots_f32(13, s, cols, w, y); return;
    case 14: pli_wide_dots_f32(14, s, cols, w, y); return;
    case 15: pli_wide_dots_f32(15, s, cols, w, y); return;
    default: break;
    }
    for (; c + 32 <= cols; c += 32) pli_wide_dots_f32(32, s, cols, w + c, y + c);
    if (c + 24 <= cols) pli_wide_dots_f32(24, s, cols, w + c, y + c), c += 24;
    if (c + 16 <= cols) pli_wide_dots_f32(16, s, cols, w + c, y + c), c += 16;
    if (c + 8 <= cols) pli_wide_dots_f32(8, s, cols, w + c, y + c), c += 8;
    if (c < cols && cols >= 8) pli_wide_dots_f32(8, s, cols, w + cols - 8, y + cols - 8), c = cols;
    for (; c + 4 <= cols; c += 4) pli_wide_dots_f32(4, s, cols, w + c, y + c);
    for (; c < cols; c++) pli_wide_dots_f32(1, s, cols, w + c, y + c);
}

PLI_WIDE void pli_wide_dots_f64(const int n, pli_entries s, int64_t cols, const double *w, double *y) {
    double sum[32] = { 0 };
    for (int64_t k = 0; k < s.n; k++) {
        const double *row = w + (int64_t)pli_entries_column(s, k) * cols;
        const double v = pli_entries_value(s, k);
        pli_wide_fetch(s, k, cols * (int64_t)sizeof *w, n * (int64_t)sizeof *w, w, 0);
        for (int c = 0; c < n; c++) sum[c] += v * row[c];
    }
    for (int c = 0; c < n; c++) y[c] = sum[c];
}

/* Up to 16 columns take one pass over the entries. With more columns the last ones are computed in one group of 8 with
 * some columns before them, which are computed twice. */
PLI_WIDE void pli_wide_row_dots_f64(pli_entries s, int64_t cols, const double *w, double *y) {
    int64_t c = 0;
    switch (cols) {
    case 9: pli_wide_dots_f64(9, s, cols, w, y); return;
    case 10: pli_wide_dots_f64(10, s, cols, w, y); return;
    case 11: pli_wide_dots_f64(11, s, cols, w, y); return;
    case 12: pli_wide_dots_f64(12, s, cols, w, y); return;
    case 13: pli_wide_dots_f64(13, s, cols, w, y); return;
    case 14: pli_wide_dots_f64(14, s, cols, w, y); return;
    case 15: pli_wide_dots_f64(15, s, cols, w, y); return;
    default: break;
    }
    for (; c + 32 <= cols; c += 32) pli_wide_dots_f64(32, s, cols, w + c, y + c);
    if (c + 24 <= cols) pli_wide_dots_f64(24, s, cols, w + c, y + c), c += 24;
    if (c + 16 <= cols) pli_wide_dots_f64(16, s, cols, w + c, y + c), c += 16;
    if (c + 8 <= cols) pli_wide_dots_f64(8, s, cols, w + c, y + c), c += 8;
    if (c < cols && cols >= 8) pli_wide_dots_f64(8, s, cols, w + cols - 8, y + cols - 8), c = cols;
    for (; c + 4 <= cols; c += 4) pli_wide_dots_f64(4, s, cols, w + c, y + c);
    for (; c < cols; c++) pli_wide_dots_f64(1, s, cols, w + c, y + c);
}

/* --- g += xt r ---------------------------------------------------------------------------------------------------- */

PLI_WIDE void pli_wide_adds_f32(const int64_t cols, pli_entries s, const float *restrict r, float *restrict g) {
    for (int64_t k = 0; k < s.n; k++) {
        const float v = s.value == NULL ? 1.0F : s.value[k];
        float      *to = g + (int64_t)pli_entries_column(s, k) * cols;
        pli_wide_fetch(s, k, cols * (int64_t)sizeof *g, cols * (int64_t)sizeof *g, g, 1);
        for (int64_t c = 0; c < cols; c++) to[c] += v * r[c];
    }
}

/* Few columns are a constant, so that r stays in registers. */
PLI_WIDE void pli_wide_row_adds_f32(pli_entries s, int64_t cols, const float *restrict r, float *restrict g) {
    switch (cols) {
    case 8: pli_wide_adds_f32(8, s, r, g); return;
    case 9: pli_wide_adds_f32(9, s, r, g); return;
    case 10: pli_wide_adds_f32(10, s, r, g); return;
    case 11: pli_wide_adds_f32(11, s, r, g); return;
    case 12: pli_wide_adds_f32(12, s, r, g); return;
    case 13: pli_wide_adds_f32(13, s, r, g); return;
    case 14: pli_wide_adds_f32(14, s, r, g); return;
    case 15: pli_wide_adds_f32(15, s, r, g); return;
    case 16: pli_wide_adds_f32(16, s, r, g); return;
    default: pli_wide_adds_f32(cols, s, r, g); return;
    }
}

PLI_WIDE void pli_wide_adds_f64(const int64_t cols, pli_entries s, const double *restrict r, double *restrict g) {
    for (int64_t k = 0; k < s.n; k++) {
        const double v = pli_entries_value(s, k);
        double      *to = g + (int64_t)pli_entries_column(s, k) * cols;
        pli_wide_fetch(s, k, cols * (int64_t)sizeof *g, cols * (int64_t)sizeof *g, g, 1);
        for (int64_t c = 0; c < cols; c++) to[c] += v * r[c];
    }
}

/* Few columns are a constant, so that r stays in registers. */
PLI_WIDE void pli_wide_row_adds_f64(pli_entries s, int64_t cols, const double *restrict r, double *restrict g) {
    switch (cols) {
    case 8: pli_wide_adds_f64(8, s, r, g); return;
    case 9: pli_wide_adds_f64(9, s, r, g); return;
    case 10: pli_wide_adds_f64(10, s, r, g); return;
    case 11: pli_wide_adds_f64(11, s, r, g); return;
    case 12: pli_wide_adds_f64(12, s, r, g); return;
    case 13: pli_wide_adds_f64(13, s, r, g); return;
    case 14: pli_wide_adds_f64(14, s, r, g); return;
    case 15: pli_wide_adds_f64(15, s, r, g); return;
    case 16: pli_wide_adds_f64(16, s, r, g); return;
    default: pli_wide_adds_f64(cols, s, r, g); return;
    }
}

#endif
