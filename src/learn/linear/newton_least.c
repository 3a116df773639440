/* The least point of a quadratic model with penalties. Without L1 it solves a linear system by Cholesky's
 * decomposition, in blocks so that most of the work is matrix products (Golub and Van Loan, "Matrix Computations", 4th
 * edition, algorithm 4.2.2); with L1 it goes coordinate by coordinate (Friedman, Hastie, Tibshirani, "Regularization
 * paths for generalized linear models via coordinate descent", 2010). */
#include <math.h>
#include <string.h>

#include "learn/linear/newton.h"
#include "tensor/gemm/gemm.h"

enum { BLOCK = 48, SWEEPS = 1000 };

/* Where the entry of weights (j, c) and (l, d) lies in h. */
static int64_t entry(const pli_quadratic *q, int64_t j, int64_t c, int64_t l, int64_t d) {
    const int64_t low = c < d ? c : d, high = c < d ? d : c;
    const int64_t block = low * q->columns - low * (low - 1) / 2 + (high - low);
    const int64_t row = c < d ? j : l, column = c < d ? l : j; /* the block of (low, high) has rows of low */
    return (block * q->rows + (c == d ? j : row)) * q->rows + (c == d ? l : column);
}

/* The whole matrix [n, n], n = rows columns, with the penalty on its diagonal. */
static void unfold(const pli_quadratic *q, const pli_penalised *p, double *a) {
    const int64_t n = q->rows * q->columns, k = q->columns;
    for (int64_t j = 0; j < q->rows; j++)
        for (int64_t c = 0; c < k; c++)
            for (int64_t l = 0; l < q->rows; l++)
                for (int64_t d = 0; d < k; d++) a[(j * k + c) * n + l * k + d] = q->h[entry(q, j, c, l, d)];
    for (int64_t i = 0; i < n; i++) a[i * n + i] += p->l2 * (p->factor != NULL ? p->factor[i] : 1);
}

/* --- Cholesky ----------------------------------------------------------------------------------------------------- */

/* Decomposes the block of rows and columns [at, at + m), and the rows below it. false: not positive. */
static bool decompose_block(int64_t n, int64_t at, int64_t m, double *a) {
    for (int64_t j = at; j < at + m; j++) {
        double pivot = a[j * n + j];
        for (int64_t k = at; k < j; k++) pivot -= a[j * n + k] * a[j * n + k];
        if (!(pivot > 0)) return false;
        a[j * n + j] = pivot = sqrt(pivot);
        for (int64_t i = j + 1; i < n; i++) {
            double x = a[i * n + j];
            for (int64_t k = at; k < j; k++) x -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = x / pivot;
        }
    }
    return true;
}

/* a := L, in the lower triangle, with L L' = a. */
static bool decompose(int64_t n, double *a, double *spare) {
    for (int64_t at = 0; at < n; at += BLOCK) {
        const int64_t m = n - at < BLOCK ? n - at : BLOCK, rest = n - at - m;
        if (!decompose_block(n, at, m, a)) return false;
        double *below = a + (at + m) * n + at, *corner = a + (at + m) * n + at + m;
        for (int64_t i = 0; i < rest; i++)
            for (int64_t k = 0; k < m; k++) spare[i * m + k] = -below[i * n + k];
        for (int64_t i = 0; i < rest; i += 4 * BLOCK) { /* a strip of rows, up to the diagonal */
            const int64_t rows = rest - i < 4 * BLOCK ? rest - i : 4 * BLOCK;
            pli_gemm_f64(false, true, rows, i + rows, m, spare + i * m, m, below, n, 1, corner + i * n, n);
        }
    }
    return true;
}

static void solve(int64_t n, const double *a, double *x) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < i; k++) x[i] -= a[i * n + k] * x[k];
        x[i] /= a[i * n + i];
    }
    for (int64_t i = n - 1; i >= 0; i--) {
        x[i] /= a[i * n + i];
        for (int64_t k = 0; k < i; k++) x[k] -= a[i * n + k] * x[i];
    }
}

/* Adds ridge (t - near)^2 / 2 so that directions without curvature stay; more of it until the matrix is positive. The
 * point of rest does not depend on it. */
static plait_status by_cholesky(const pli_quadratic *q, const pli_penalised *p, const double *near, double *a,
                                double *least, plait_error *err) {
    const int64_t n = q->rows * q->columns;
    double       *spare = pli_array((size_t)n * BLOCK, sizeof *spare), trace = 0;
    if (spare == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a system of %lld weights", (long long)n);
    for (double share = 1e-12; share < 1; share *= 100) {
        unfold(q, p, a);
        trace = 0;
        for (int64_t i = 0; i < n; i++) trace += a[i * n + i];
        const double ridge = share * trace / (double)n;
        for (int64_t i = 0; i < n; i++) {
            a[i * n + i] += ridge;
            least[i] = q->r[i] + ridge * near[i];
        }
        if (!decompose(n, a, spare)) continue;
        solve(n, a, least);
        pli_free(spare);
        return PLAIT_OK;
    }
    memcpy(least, near, (size_t)n * sizeof *least); /* it has no curvature at all: nobody has added a model yet */
    pli_free(spare);
    return PLAIT_OK;
}

/* --- with L1 ------------------------------------------------------------------------------------------------------ */

static plait_status by_coordinates(const pli_quadratic *q, const pli_penalised *p, const double *near, double *a,
                                   double *least, plait_error *err) {
    const int64_t n = q->rows * q->columns;
    double       *slope = pli_array((size_t)n, sizeof *slope);
    if (slope == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a system of %lld weights", (long long)n);
    unfold(q, p, a);
    memcpy(least, near, (size_t)n * sizeof *least);
    for (int64_t i = 0; i < n; i++) {
        slope[i] = -q->r[i];
        for (int64_t l = 0; l < n; l++) slope[i] += a[i * n + l] * least[l];
    }
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        double largest = 0, total = 0;
        for (int64_t i = 0; i < n; i++) {
            const double curve = a[i * n + i], cut = p->l1 * (p->factor != NULL ? p->factor[i] : 1);
            if (!(curve > 0)) continue;
            const double free = curve * least[i] - slope[i], size = fabs(free) - cut;
            const double step = (size > 0 ? copysign(size, free) / curve : 0) - least[i];
            total += curve * least[i] * least[i];
            if (step == 0) continue;
            least[i] += step;
            for (int64_t l = 0; l < n; l++) slope[l] += a[i * n + l] * step;
            largest = fmax(largest, curve * step * step);
        }
        if (largest <= 1e-14 * total) break;
    }
    pli_free(slope);
    return PLAIT_OK;
}

plait_status pli_quadratic_least(const pli_quadratic *q, const pli_penalised *penalty, const double *near,
                                 double *scratch, double *least, plait_error *err) {
    return penalty->l1 > 0 ? by_coordinates(q, penalty, near, scratch, least, err)
                           : by_cholesky(q, penalty, near, scratch, least, err);
}

double pli_quadratic_at(const pli_quadratic *q, const pli_penalised *p, const double *t) {
    const int64_t k = q->columns;
    double        value = 0;
    for (int64_t j = 0; j < q->rows; j++)
        for (int64_t c = 0; c < k; c++) {
            const int64_t i = j * k + c;
            const double  factor = p->factor != NULL ? p->factor[i] : 1;
            double        across = 0;
            for (int64_t l = 0; l < q->rows; l++)
                for (int64_t d = 0; d < k; d++) across += q->h[entry(q, j, c, l, d)] * t[l * k + d];
            value += t[i] * (across / 2 - q->r[i]) + factor * (p->l2 / 2 * t[i] * t[i] + p->l1 * fabs(t[i]));
        }
    return value;
}
