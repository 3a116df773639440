/* tensor/spectral/gram_loops.h - the code of gram.h's kernels, for the registers that the including file is compiled
 * for. */
#ifndef PLI_TENSOR_GRAM_LOOPS_H
#define PLI_TENSOR_GRAM_LOOPS_H

#include "tensor/lanes.h"
#include "tensor/spectral/gram.h"

/* A tile of ROWS rows and two registers of columns stays in registers. */
#if defined(__AVX512F__)
enum { ROWS = 8 };
#else
enum { ROWS = 4 };
#endif
enum { COLS = 2 * WIDE_LANES };

INLINE void tile(int64_t n, const double *a, const double *b, double *g, int64_t ld) {
    wide_lane sum[ROWS][2];
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        sum[i][0] = WIDE_LOAD(g + i * ld);
        sum[i][1] = WIDE_LOAD(g + i * ld + WIDE_LANES);
    }
    for (int64_t l = 0; l < n; l++, a += PLI_GRAM_PANEL, b += PLI_GRAM_PANEL) {
        const wide_lane b0 = WIDE_LOAD(b), b1 = WIDE_LOAD(b + WIDE_LANES);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            const wide_lane x = WIDE_SPREAD(a[i]);
            sum[i][0] = WIDE_FMA(x, b0, sum[i][0]);
            sum[i][1] = WIDE_FMA(x, b1, sum[i][1]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
        WIDE_STORE(g + i * ld, sum[i][0]);
        WIDE_STORE(g + i * ld + WIDE_LANES, sum[i][1]);
    }
}

static void block(int64_t n, const double *a, const double *b, double *g, int64_t ld) {
    for (int64_t i = 0; i < PLI_GRAM_PANEL; i += ROWS)
        for (int64_t j = 0; j < PLI_GRAM_PANEL; j += COLS) tile(n, a + i, b + j, g + i * ld + j, ld);
}

/* The loops vectorise if the compiler knows that neither x nor shift is NULL, as for dense rows. */
INLINE double shifted(int64_t i, const float *x, const double *shift, double root) {
    return ((x != NULL ? (double)x[i] : 0) - (shift != NULL ? shift[i] : 0)) * root;
}

static void shift_f32(int64_t n, const float *restrict x, const double *restrict shift, double root,
                      float *restrict to) {
    if (x != NULL && shift != NULL) {
        for (int64_t i = 0; i < n; i++) to[i] = (float)(((double)x[i] - shift[i]) * root);
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i] = (float)shifted(i, x, shift, root);
}

static void shift_f64(int64_t n, const float *restrict x, const double *restrict shift, double root,
                      double *restrict to) {
    if (x != NULL && shift != NULL) {
        for (int64_t i = 0; i < n; i++) to[i] = ((double)x[i] - shift[i]) * root;
        return;
    }
    for (int64_t i = 0; i < n; i++) to[i] = shifted(i, x, shift, root);
}

#endif
