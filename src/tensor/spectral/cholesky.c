/* Factors a block of rows, each of which takes its products from the rows below it in the block; then the block's
 * products are taken from all rows below the block at once, which is a matrix product. */
#include "tensor/spectral/cholesky.h"

#include <math.h>

#include "base/base.h"
#include "tensor/gemm/gemm.h"
#include "tensor/tensor.h"

enum { BLOCK = 48, STRIP = 4 * BLOCK };

/* Factors rows [at, end), and takes their products from each other. */
static bool factor_rows(int64_t d, int64_t at, int64_t end, double *a) {
    const pli_kernels *kernels = pli_kernels_get();
    for (int64_t j = at; j < end; j++) {
        double *row = a + j * d;
        if (!(row[j] > 0) || !isfinite(row[j])) return false;
        const double root = sqrt(row[j]);
        row[j] = root;
        for (int64_t i = j + 1; i < d; i++) row[i] /= root;
        for (int64_t i = j + 1; i < end; i++)
            if (row[i] != 0) kernels->axpy_f64(d - i, -row[i], row + i, a + i * d + i);
    }
    return true;
}

/* Takes the products of rows [at, end) from the rows below, by strips, each from its diagonal on. less: memory of
 * [BLOCK, STRIP] values. */
static void take_products(int64_t d, int64_t at, int64_t end, double *a, double *less) {
    for (int64_t first = end; first < d; first += STRIP) {
        const int64_t rows = d - first < STRIP ? d - first : STRIP, m = end - at;
        for (int64_t k = 0; k < m; k++)
            for (int64_t i = 0; i < rows; i++) less[k * rows + i] = -a[(at + k) * d + first + i];
        pli_gemm_f64(true, false, rows, d - first, m, less, rows, a + at * d + first, d, 1, a + first * d + first, d);
    }
}

bool pli_cholesky(int64_t d, double *a) {
    double *less = d > BLOCK ? pli_array((size_t)BLOCK * STRIP, sizeof *less) : NULL;
    bool    good = true;
    pli_gemm_open();
    if (less == NULL) return factor_rows(d, 0, d, a);
    for (int64_t at = 0; at < d && good; at += BLOCK) {
        const int64_t end = d - at < BLOCK ? d : at + BLOCK;
        good = factor_rows(d, at, end, a);
        if (good) take_products(d, at, end, a, less);
    }
    pli_free(less);
    return good;
}

void pli_cholesky_solve(int64_t d, const double *u, double *b) {
    const pli_kernels *kernels = pli_kernels_get();
    for (int64_t j = 0; j < d; j++) {
        b[j] /= u[j * d + j];
        if (b[j] != 0) kernels->axpy_f64(d - j - 1, -b[j], u + j * d + j + 1, b + j + 1);
    }
    for (int64_t j = d - 1; j >= 0; j--)
        b[j] = (b[j] - kernels->dot_f64(d - j - 1, u + j * d + j + 1, b + j + 1)) / u[j * d + j];
}
