/* Factors by rows: once row j is done, its products are taken from all rows below it. */
#include "tensor/spectral/cholesky.h"

#include <math.h>

#include "tensor/tensor.h"

bool pli_cholesky(int64_t d, double *a) {
    const pli_kernels *kernels = pli_kernels_get();
    for (int64_t j = 0; j < d; j++) {
        double *row = a + j * d;
        if (!(row[j] > 0) || !isfinite(row[j])) return false;
        const double root = sqrt(row[j]);
        row[j] = root;
        for (int64_t i = j + 1; i < d; i++) row[i] /= root;
        for (int64_t i = j + 1; i < d; i++)
            if (row[i] != 0) kernels->axpy_f64(d - i, -row[i], row + i, a + i * d + i);
    }
    return true;
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
