/* tensor/kernels.h - what the files of kernels share. */
#ifndef PLI_TENSOR_KERNELS_H
#define PLI_TENSOR_KERNELS_H

#include <stddef.h>

#include "tensor/tensor.h"

enum { PLI_DOT_LANES = 16, PLI_PREFETCH_ENTRIES = 40 };

/** May be called only on a processor with AVX2 and FMA. */
const pli_kernels *pli_kernels_avx2(void);

static inline int64_t pli_row_at(pli_rows rows, int64_t i) {
    return rows.order == NULL ? rows.first + i : (int64_t)rows.order[rows.first + i];
}

/* (x - y)^2 of two floats, in double. */
static inline double pli_gap_squared(float x, float y) {
    const double gap = (double)x - (double)y;
    return gap * gap;
}

/* Adds lanes in pairs 8, 4, 2, 1 apart. */
static inline double pli_lanes_sum(double *sum) {
    for (int apart = PLI_DOT_LANES / 2; apart > 0; apart /= 2) {
        for (int i = 0; i < apart; i++) sum[i] += sum[i + apart];
    }
    return sum[0];
}

/* Kernels of the reference that other processors use unchanged: they are bound by memory, or short. */
void pli_scale_f32(int64_t n, float a, float *x);
void pli_scale_f64(int64_t n, double a, double *x);
double pli_max_abs_f64(int64_t n, const double *x);
double pli_softmax_f32(int64_t n, const float *x, float *p);
double pli_softmax_f64(int64_t n, const double *x, double *p);
void pli_gather_f32(int64_t n, const uint32_t *index, const float *x, float *out);
void pli_gather_f64(int64_t n, const uint32_t *index, const double *x, double *out);
void pli_scatter_add_f32(int64_t n, const uint32_t *index, const float *x, float *y);
void pli_scatter_add_f64(int64_t n, const uint32_t *index, const double *x, double *y);
void pli_csr_dot_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *w, double *y);
void pli_csr_dot_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *w, double *y);
void pli_csr_t_axpy_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *r, float *g);
void pli_csr_t_axpy_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *r, double *g);

#endif
