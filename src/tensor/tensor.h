/* tensor - views of dense and sparse matrices, and the kernels that run over them.
 *
 * Kernels stand in one table: first the reference kernels, then those that replace them on this processor. They are
 * serial, take lent memory and keep nothing. Their bits are part of the contract:
 *   - element-wise kernels: an element's bits depend neither on its place nor on n;
 *   - sums: the order of the additions is a function of n alone (stated at the kernel), never of alignment;
 *   - every processor's kernel gives the same bits as the reference (a fused multiply-add only where it changes no
 *   bit).
 * Sums over float data are taken in double, where the product of two floats is exact. */
#ifndef PLI_TENSOR_TENSOR_H
#define PLI_TENSOR_TENSOR_H

#include <stdint.h>
#include <string.h>

/* A matrix with its rows in compressed form, borrowed. Row i has the entries row_start[i] .. row_start[i + 1] - 1. */
typedef struct pli_csr {
    int64_t rows;
    const int64_t *row_start; /* [rows + 1]                */
    const uint32_t *col;      /* [entries]                 */
    const float *value;       /* [entries]; NULL: all ones */
    const unsigned char *packed; /* replaces col, or NULL: see pli_packed_at */
} pli_csr;

/* Columns below 2^24 take three bytes each, the lowest byte first; one more byte follows the last column. */
static inline uint32_t pli_packed_at(const unsigned char *packed, int64_t entry) {
    uint32_t word;
    memcpy(&word, packed + 3 * entry, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word & 0xffffff;
}

/* Some of a matrix's rows: order[first] .. order[first + n - 1], or first .. first + n - 1 if order is NULL. */
typedef struct pli_rows {
    const uint32_t *order;
    int64_t first, n;
} pli_rows;

/* A dense row-major matrix, borrowed. */
typedef struct pli_dense {
    float *data;
    int64_t rows, cols, row_stride; /* elements, not bytes */
} pli_dense;

typedef struct pli_kernels {
    const char *name; /* "ref", "avx2" */

    /* y += a x; x *= a. x and y do not overlap. */
    void (*axpy_f32)(int64_t n, float a, const float *x, float *y);
    void (*axpy_f64)(int64_t n, double a, const double *x, double *y);
    void (*scale_f32)(int64_t n, float a, float *x);
    void (*scale_f64)(int64_t n, double a, double *x);

    /* Sum of x y: element i goes to partial sum i mod 16, and these are added in pairs 8, 4, 2, 1 apart. The sum of
     * squares is dot(n, x, x). */
    double (*dot_f32)(int64_t n, const float *x, const float *y);
    double (*dot_f64)(int64_t n, const double *x, const double *y);

    /* Sum of (x - y)^2, in the same order; differences are taken in double. */
    double (*distance_f32)(int64_t n, const float *x, const float *y);

    /* y += a x, x widened first. x and y do not overlap. */
    void (*axpy_f32_f64)(int64_t n, double a, const float *x, double *y);

    /* Largest |x|; NaN if there is one; 0 if n is 0. */
    float (*max_abs_f32)(int64_t n, const float *x);
    double (*max_abs_f64)(int64_t n, const double *x);

    /* out[i] = x[index[i]]; y[index[i]] += x[i], in this order (repeated indices add up). */
    void (*gather_f32)(int64_t n, const uint32_t *index, const float *x, float *out);
    void (*gather_f64)(int64_t n, const uint32_t *index, const double *x, double *out);
    void (*scatter_add_f32)(int64_t n, const uint32_t *index, const float *x, float *y);
    void (*scatter_add_f64)(int64_t n, const uint32_t *index, const double *x, double *y);

    /* y = X w over the chosen rows: w [features, cols], y [rows.n, cols]. Sums are double. With cols = 1, entry k of
     * a row goes to partial sum k mod 4, and these are added (0 + 2) + (1 + 3); with more columns, terms are added
     * in the order of the entries. */
    void (*csr_dot_f32)(const pli_csr *x, pli_rows rows, int64_t cols, const float *w, double *y);
    void (*csr_dot_f64)(const pli_csr *x, pli_rows rows, int64_t cols, const double *w, double *y);

    /* g += Xt r over the chosen rows, in their order: r [rows.n, cols], g [features, cols]. */
    void (*csr_t_axpy_f32)(const pli_csr *x, pli_rows rows, int64_t cols, const float *r, float *g);
    void (*csr_t_axpy_f64)(const pli_csr *x, pli_rows rows, int64_t cols, const double *r, double *g);

    /* out[i] = e^x, 1/(1 + e^-x), log(1 + e^x), log x, tanh x. f32: the double's result rounded once (error below
     * 0.501 ulp); f64: errors below 1.5, 3, 2.5, 2.5 and 4 ulp. No spurious overflow or underflow; NaN stays NaN.
     * out may be x. */
    void (*exp_f32)(int64_t n, const float *x, float *out);
    void (*exp_f64)(int64_t n, const double *x, double *out);
    void (*sigmoid_f32)(int64_t n, const float *x, float *out);
    void (*sigmoid_f64)(int64_t n, const double *x, double *out);
    void (*softplus_f32)(int64_t n, const float *x, float *out);
    void (*softplus_f64)(int64_t n, const double *x, double *out);
    void (*log_f32)(int64_t n, const float *x, float *out);
    void (*log_f64)(int64_t n, const double *x, double *out);
    void (*tanh_f32)(int64_t n, const float *x, float *out);
    void (*tanh_f64)(int64_t n, const double *x, double *out);

    /* p = softmax of one row of n >= 1 scores; returns log sum e^x. Terms are added in order. p may be x. */
    double (*softmax_f32)(int64_t n, const float *x, float *p);
    double (*softmax_f64)(int64_t n, const double *x, double *p);

    /* The fast loops of exact.h, for whole groups of elements in which nothing is special and (adds) no term needs a
     * higher top. They return how many elements, from the first on, were done. x in the sums: [terms], from element
     * `first` on. */
    int64_t (*exact_add_f32)(int64_t n, const float *x, const int8_t *top, int64_t *hi, int64_t *lo);
    int64_t (*exact_add_f64)(int64_t n, const double *x, const int8_t *top, int64_t *hi, int64_t *mid, int64_t *lo);
    int64_t (*exact_sum_f32)(int32_t terms, const float *const *x, int64_t first, int64_t n, float *out);
    int64_t (*exact_sum_f64)(int32_t terms, const double *const *x, int64_t first, int64_t n, double *out);
} pli_kernels;

/** The best kernels for this processor, and the reference ones. Static; any thread. */
const pli_kernels *pli_kernels_get(void);
const pli_kernels *pli_kernels_ref(void);

#endif
