/* sparse - kernels over CSR rows and index lists. Random gathers limit their speed, so they fetch ahead, also across
 * the ends of rows if rows follow each other. */
#include <stdbool.h>

#include "tensor/entries.h"
#include "tensor/sparse_wide.h"

void pli_gather_f32(int64_t n, const uint32_t *index, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) {
        if (i + PLI_PREFETCH_ENTRIES < n) __builtin_prefetch(&x[index[i + PLI_PREFETCH_ENTRIES]]);
        out[i] = x[index[i]];
    }
}

void pli_gather_f64(int64_t n, const uint32_t *index, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) {
        if (i + PLI_PREFETCH_ENTRIES < n) __builtin_prefetch(&x[index[i + PLI_PREFETCH_ENTRIES]]);
        out[i] = x[index[i]];
    }
}

void pli_scatter_add_f32(int64_t n, const uint32_t *index, const float *x, float *y) {
    for (int64_t i = 0; i < n; i++) {
        if (i + PLI_PREFETCH_ENTRIES < n) __builtin_prefetch(&y[index[i + PLI_PREFETCH_ENTRIES]], 1);
        y[index[i]] += x[i];
    }
}

void pli_scatter_add_f64(int64_t n, const uint32_t *index, const double *x, double *y) {
    for (int64_t i = 0; i < n; i++) {
        if (i + PLI_PREFETCH_ENTRIES < n) __builtin_prefetch(&y[index[i + PLI_PREFETCH_ENTRIES]], 1);
        y[index[i]] += x[i];
    }
}

/* In a shuffled batch the next row's columns are far away: fetch their line, and their weights a row later. */
static inline void fetch_next_row(const pli_csr *x, pli_rows rows, int64_t i) {
    if (rows.order == NULL || i + 2 >= rows.n) return;
    const int64_t        next = x->row_start[rows.order[rows.first + i + 2]];
    const unsigned char *at = x->packed == NULL ? (const unsigned char *)&x->col[next] : x->packed + 3 * next;
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    if (x->value != NULL) __builtin_prefetch(&x->value[next]);
}

static inline double dot_f32(pli_entries s, const float *w, const bool packed, const bool ones) {
    double  sum[4] = { 0.0 };
    int64_t k = 0;
    for (int64_t e = 0, fetched = pli_entries_fetched(s); e < fetched; e++)
        __builtin_prefetch(&w[pli_entries_at(s, e + PLI_PREFETCH_ENTRIES, packed)]);
    for (; k + 4 <= s.n; k += 4)
        for (int64_t j = 0; j < 4; j++)
            sum[j] += (ones ? 1.0 : (double)s.value[k + j]) * (double)w[pli_entries_at(s, k + j, packed)];
    for (int64_t j = 0; k + j < s.n; j++)
        sum[j] += (ones ? 1.0 : (double)s.value[k + j]) * (double)w[pli_entries_at(s, k + j, packed)];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static inline double dot_f64(pli_entries s, const double *w, const bool packed, const bool ones) {
    double  sum[4] = { 0.0 };
    int64_t k = 0;
    for (int64_t e = 0, fetched = pli_entries_fetched(s); e < fetched; e++)
        __builtin_prefetch(&w[pli_entries_at(s, e + PLI_PREFETCH_ENTRIES, packed)]);
    for (; k + 4 <= s.n; k += 4)
        for (int64_t j = 0; j < 4; j++)
            sum[j] += (ones ? 1.0 : (double)s.value[k + j]) * w[pli_entries_at(s, k + j, packed)];
    for (int64_t j = 0; k + j < s.n; j++)
        sum[j] += (ones ? 1.0 : (double)s.value[k + j]) * w[pli_entries_at(s, k + j, packed)];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static double row_dot_f32(pli_entries s, const float *w) {
    if (s.packed != NULL) return s.value == NULL ? dot_f32(s, w, true, true) : dot_f32(s, w, true, false);
    return s.value == NULL ? dot_f32(s, w, false, true) : dot_f32(s, w, false, false);
}

static double row_dot_f64(pli_entries s, const double *w) {
    if (s.packed != NULL) return s.value == NULL ? dot_f64(s, w, true, true) : dot_f64(s, w, true, false);
    return s.value == NULL ? dot_f64(s, w, false, true) : dot_f64(s, w, false, false);
}

void pli_csr_dot_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *w, double *y) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries s = pli_entries_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            y[i] = row_dot_f32(s, w);
        } else {
            pli_wide_row_dots_f32(s, cols, w, y + i * cols);
        }
    }
}

void pli_csr_dot_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *w, double *y) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries s = pli_entries_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            y[i] = row_dot_f64(s, w);
        } else {
            pli_wide_row_dots_f64(s, cols, w, y + i * cols);
        }
    }
}

static inline void add_f32(pli_entries s, float r, float *g, const bool packed, const bool ones) {
    for (int64_t e = 0, fetched = pli_entries_fetched(s); e < fetched; e++)
        __builtin_prefetch(&g[pli_entries_at(s, e + PLI_PREFETCH_ENTRIES, packed)], 1);
    for (int64_t k = 0; k < s.n; k++) g[pli_entries_at(s, k, packed)] += ones ? r : s.value[k] * r;
}

static inline void add_f64(pli_entries s, double r, double *g, const bool packed, const bool ones) {
    for (int64_t e = 0, fetched = pli_entries_fetched(s); e < fetched; e++)
        __builtin_prefetch(&g[pli_entries_at(s, e + PLI_PREFETCH_ENTRIES, packed)], 1);
    for (int64_t k = 0; k < s.n; k++) g[pli_entries_at(s, k, packed)] += ones ? r : (double)s.value[k] * r;
}

static void row_add_f32(pli_entries s, float r, float *g) {
    if (s.packed != NULL && s.value == NULL) add_f32(s, r, g, true, true);
    else if (s.packed != NULL) add_f32(s, r, g, true, false);
    else if (s.value == NULL) add_f32(s, r, g, false, true);
    else add_f32(s, r, g, false, false);
}

static void row_add_f64(pli_entries s, double r, double *g) {
    if (s.packed != NULL && s.value == NULL) add_f64(s, r, g, true, true);
    else if (s.packed != NULL) add_f64(s, r, g, true, false);
    else if (s.value == NULL) add_f64(s, r, g, false, true);
    else add_f64(s, r, g, false, false);
}

void pli_csr_t_axpy_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *r, float *g) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries s = pli_entries_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            row_add_f32(s, r[i], g);
            continue;
        }
        pli_wide_row_adds_f32(s, cols, r + i * cols, g);
    }
}

void pli_csr_t_axpy_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *r, double *g) {
    for (int64_t i = 0; i < rows.n; i++) {
        const pli_entries s = pli_entries_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            row_add_f64(s, r[i], g);
            continue;
        }
        pli_wide_row_adds_f64(s, cols, r + i * cols, g);
    }
}
