#include "graph/rows.h"

#include <math.h>

#include "tensor/tensor.h"

/* exp is computed over all rows at once: a single row of ten classes would leave most vector lanes empty. */
void pli_softmax_rows_f32(int64_t rows, int64_t n, const float *x, float *y, double *log_sum) {
    for (int64_t i = 0; i < rows; i++) {
        float top = -INFINITY;
        for (int64_t j = 0; j < n; j++) top = x[i * n + j] > top ? x[i * n + j] : top;
        if (log_sum != NULL) log_sum[i] = (double)top;
        for (int64_t j = 0; j < n; j++) y[i * n + j] = x[i * n + j] - top;
    }
    pli_kernels_get()->exp_f32(rows * n, y, y);
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) sum += (double)y[i * n + j];
        if (log_sum != NULL) log_sum[i] += log(sum);
        const float scale = (float)(1 / sum);
        for (int64_t j = 0; j < n; j++) y[i * n + j] *= scale;
    }
}
