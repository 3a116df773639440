/* sparse - kernels over CSR rows and index lists. Random gathers bound them, so they fetch ahead, across the ends of
 * rows where rows follow each other. */
#include <stddef.h>

#include "tensor/kernels.h"

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

/* The entries of one row, and how far it is safe and useful to look ahead. */
typedef struct span {
    const uint32_t *col;
    const float    *value; /* NULL: ones */
    int64_t         n, ahead;
} span;

static inline span span_of(const pli_csr *x, pli_rows rows, int64_t i) {
    const int64_t row = pli_row_at(rows, i), first = x->row_start[row], end = x->row_start[row + 1];
    const int64_t last = rows.order == NULL ? x->row_start[rows.first + rows.n] : end;
    return (span){ x->col + first, x->value == NULL ? NULL : x->value + first, end - first, last - first };
}

/* Entries whose successor by the prefetch distance is there. */
static inline int64_t fetched_of(span s) {
    const int64_t there = s.ahead - PLI_PREFETCH_ENTRIES;
    return there < s.n ? there : s.n;
}

static inline double span_value(span s, int64_t k) { return s.value == NULL ? 1.0 : (double)s.value[k]; }

/* In a shuffled batch the next row's columns are far away: fetch their line, and their weights a row later. */
static inline void fetch_next_row(const pli_csr *x, pli_rows rows, int64_t i) {
    if (rows.order == NULL || i + 2 >= rows.n) return;
    const int64_t next = x->row_start[rows.order[rows.first + i + 2]];
    __builtin_prefetch(&x->col[next]);
    __builtin_prefetch(&x->col[next + 16]);
    if (x->value != NULL) __builtin_prefetch(&x->value[next]);
}

static double ones_dot_f32(int64_t n, const uint32_t *col, const float *w) {
    double  sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        sum0 += (double)w[col[k]];
        sum1 += (double)w[col[k + 1]];
        sum2 += (double)w[col[k + 2]];
        sum3 += (double)w[col[k + 3]];
    }
    if (k < n) sum0 += (double)w[col[k]];
    if (k + 1 < n) sum1 += (double)w[col[k + 1]];
    if (k + 2 < n) sum2 += (double)w[col[k + 2]];
    return (sum0 + sum2) + (sum1 + sum3);
}

static double values_dot_f32(int64_t n, const uint32_t *col, const float *value, const float *w) {
    double  sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        sum0 += (double)value[k] * (double)w[col[k]];
        sum1 += (double)value[k + 1] * (double)w[col[k + 1]];
        sum2 += (double)value[k + 2] * (double)w[col[k + 2]];
        sum3 += (double)value[k + 3] * (double)w[col[k + 3]];
    }
    if (k < n) sum0 += (double)value[k] * (double)w[col[k]];
    if (k + 1 < n) sum1 += (double)value[k + 1] * (double)w[col[k + 1]];
    if (k + 2 < n) sum2 += (double)value[k + 2] * (double)w[col[k + 2]];
    return (sum0 + sum2) + (sum1 + sum3);
}

static double ones_dot_f64(int64_t n, const uint32_t *col, const double *w) {
    double  sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        sum0 += w[col[k]];
        sum1 += w[col[k + 1]];
        sum2 += w[col[k + 2]];
        sum3 += w[col[k + 3]];
    }
    if (k < n) sum0 += w[col[k]];
    if (k + 1 < n) sum1 += w[col[k + 1]];
    if (k + 2 < n) sum2 += w[col[k + 2]];
    return (sum0 + sum2) + (sum1 + sum3);
}

static double values_dot_f64(int64_t n, const uint32_t *col, const float *value, const double *w) {
    double  sum0 = 0.0, sum1 = 0.0, sum2 = 0.0, sum3 = 0.0;
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        sum0 += (double)value[k] * w[col[k]];
        sum1 += (double)value[k + 1] * w[col[k + 1]];
        sum2 += (double)value[k + 2] * w[col[k + 2]];
        sum3 += (double)value[k + 3] * w[col[k + 3]];
    }
    if (k < n) sum0 += (double)value[k] * w[col[k]];
    if (k + 1 < n) sum1 += (double)value[k + 1] * w[col[k + 1]];
    if (k + 2 < n) sum2 += (double)value[k + 2] * w[col[k + 2]];
    return (sum0 + sum2) + (sum1 + sum3);
}

/* A few columns of the answer at a time, so that their sums stay in registers. */
enum { WIDE = 8 };

static void row_dots_f32(span s, int64_t cols, int64_t from, const float *w, double *y) {
    double        sum[WIDE] = { 0.0 };
    const int64_t n = cols - from < WIDE ? cols - from : WIDE;
    for (int64_t k = 0; k < s.n; k++) {
        const float *row = w + (int64_t)s.col[k] * cols + from;
        for (int64_t c = 0; c < n; c++) sum[c] += span_value(s, k) * (double)row[c];
    }
    for (int64_t c = 0; c < n; c++) y[from + c] = sum[c];
}

static void row_dots_f64(span s, int64_t cols, int64_t from, const double *w, double *y) {
    double        sum[WIDE] = { 0.0 };
    const int64_t n = cols - from < WIDE ? cols - from : WIDE;
    for (int64_t k = 0; k < s.n; k++) {
        const double *row = w + (int64_t)s.col[k] * cols + from;
        for (int64_t c = 0; c < n; c++) sum[c] += span_value(s, k) * row[c];
    }
    for (int64_t c = 0; c < n; c++) y[from + c] = sum[c];
}

void pli_csr_dot_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *w, double *y) {
    for (int64_t i = 0; i < rows.n; i++) {
        const span s = span_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            for (int64_t k = 0, fetched = fetched_of(s); k < fetched; k++)
                __builtin_prefetch(&w[s.col[k + PLI_PREFETCH_ENTRIES]]);
            y[i] = s.value == NULL ? ones_dot_f32(s.n, s.col, w) : values_dot_f32(s.n, s.col, s.value, w);
        } else {
            for (int64_t c = 0; c < cols; c += WIDE) row_dots_f32(s, cols, c, w, y + i * cols);
        }
    }
}

void pli_csr_dot_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *w, double *y) {
    for (int64_t i = 0; i < rows.n; i++) {
        const span s = span_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            for (int64_t k = 0, fetched = fetched_of(s); k < fetched; k++)
                __builtin_prefetch(&w[s.col[k + PLI_PREFETCH_ENTRIES]]);
            y[i] = s.value == NULL ? ones_dot_f64(s.n, s.col, w) : values_dot_f64(s.n, s.col, s.value, w);
        } else {
            for (int64_t c = 0; c < cols; c += WIDE) row_dots_f64(s, cols, c, w, y + i * cols);
        }
    }
}

static void row_add_f32(span s, float r, float *g) {
    const int64_t fetched = fetched_of(s);
    for (int64_t k = 0; k < fetched; k++) __builtin_prefetch(&g[s.col[k + PLI_PREFETCH_ENTRIES]], 1);
    if (s.value == NULL) {
        for (int64_t k = 0; k < s.n; k++) g[s.col[k]] += r;
    } else {
        for (int64_t k = 0; k < s.n; k++) g[s.col[k]] += s.value[k] * r;
    }
}

static void row_add_f64(span s, double r, double *g) {
    const int64_t fetched = fetched_of(s);
    for (int64_t k = 0; k < fetched; k++) __builtin_prefetch(&g[s.col[k + PLI_PREFETCH_ENTRIES]], 1);
    if (s.value == NULL) {
        for (int64_t k = 0; k < s.n; k++) g[s.col[k]] += r;
    } else {
        for (int64_t k = 0; k < s.n; k++) g[s.col[k]] += (double)s.value[k] * r;
    }
}

void pli_csr_t_axpy_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *r, float *g) {
    for (int64_t i = 0; i < rows.n; i++) {
        const span s = span_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            row_add_f32(s, r[i], g);
            continue;
        }
        for (int64_t k = 0; k < s.n; k++) {
            const float v = s.value == NULL ? 1.0F : s.value[k];
            float      *to = g + (int64_t)s.col[k] * cols;
            for (int64_t c = 0; c < cols; c++) to[c] += v * r[i * cols + c];
        }
    }
}

void pli_csr_t_axpy_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *r, double *g) {
    for (int64_t i = 0; i < rows.n; i++) {
        const span s = span_of(x, rows, i);
        fetch_next_row(x, rows, i);
        if (cols == 1) {
            row_add_f64(s, r[i], g);
            continue;
        }
        for (int64_t k = 0; k < s.n; k++) {
            const double v = s.value == NULL ? 1.0 : (double)s.value[k];
            double      *to = g + (int64_t)s.col[k] * cols;
            for (int64_t c = 0; c < cols; c++) to[c] += v * r[i * cols + c];
        }
    }
}
