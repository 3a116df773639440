/* The least point of a quadratic model with penalties. Without L1 it solves a linear system
 * (tensor/spectral/cholesky.h); with L1 it goes coordinate by coordinate (Friedman, Hastie, Tibshirani, "Regularization
 * paths for generalized linear models via coordinate descent", 2010). */
#include <math.h>
#include <string.h>

#include "learn/linear/newton.h"
#include "tensor/spectral/cholesky.h"

enum { SWEEPS = 1000 };

/* The whole matrix [n, n], n = rows columns, with the penalty on its diagonal. */
static void unfold(const pli_quadratic *q, const pli_penalised *p, double *a) {
    const int64_t rows = q->rows, k = q->columns, n = rows * k;
    const double *h = q->h;
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = c; d < k; d++, h += rows * rows)
            for (int64_t j = 0; j < rows; j++)
                for (int64_t l = 0; l < rows; l++) {
                    a[(j * k + c) * n + l * k + d] = h[j * rows + l];
                    if (c != d) a[(l * k + d) * n + j * k + c] = h[j * rows + l];
                }
    for (int64_t i = 0; i < n; i++) a[i * n + i] += p->l2 * (p->factor != NULL ? p->factor[i] : 1);
}

/* --- Cholesky ----------------------------------------------------------------------------------------------------- */

/* Adds a share of each diagonal element, times (t - near)^2 / 2, so that directions without curvature stay; more of it
 * until the matrix is positive. The point of rest does not depend on it, and the share not on the features' units: the
 * penalty of a column in tiny units is a diagonal element of any size beside the others. */
static void by_cholesky(const pli_quadratic *q, const pli_penalised *p, const double *near, double *a, double *least) {
    const int64_t n = q->rows * q->columns;
    for (double share = 1e-12; share < 1; share *= 100) {
        unfold(q, p, a);
        for (int64_t i = 0; i < n; i++) {
            const double ridge = a[i * n + i] > 0 ? share * a[i * n + i] : 1;
            a[i * n + i] += ridge;
            least[i] = q->r[i] + ridge * near[i];
        }
        if (!pli_cholesky(n, a)) continue;
        pli_cholesky_solve(n, a, least);
        return;
    }
    memcpy(least, near, (size_t)n * sizeof *least); /* it has no curvature at all */
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
    if (penalty->l1 > 0) return by_coordinates(q, penalty, near, scratch, least, err);
    by_cholesky(q, penalty, near, scratch, least);
    return PLAIT_OK;
}

double pli_quadratic_at(const pli_quadratic *q, const pli_penalised *p, const double *t) {
    const int64_t rows = q->rows, k = q->columns;
    const double *h = q->h;
    double        value = 0;
    for (int64_t c = 0; c < k; c++)
        for (int64_t d = c; d < k; d++, h += rows * rows)
            for (int64_t j = 0; j < rows; j++) {
                double across = 0;
                for (int64_t l = 0; l < rows; l++) across += h[j * rows + l] * t[l * k + d];
                value += (c == d ? 0.5 : 1) * t[j * k + c] * across;
            }
    for (int64_t i = 0; i < rows * k; i++) {
        const double factor = p->factor != NULL ? p->factor[i] : 1;
        value += -q->r[i] * t[i] + factor * (p->l2 / 2 * t[i] * t[i] + p->l1 * fabs(t[i]));
    }
    return value;
}
