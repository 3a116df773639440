/* LAPACK's functions as Fortran calls them: OpenBLAS contains them, but its header does not declare them. LAPACK
 * stores matrices by column, so it sees our matrices transposed: our row is its column. */
#include "tensor/spectral/eigen.h"

#include <limits.h>
#include <math.h>

#include "base/base.h"
#include "tensor/gemm/gemm.h"

/* The lengths of texts come last, as hidden arguments. */
void dsyevr_(const char *jobz, const char *range, const char *uplo, const int *n, double *a, const int *lda,
             const double *vl, const double *vu, const int *il, const int *iu, const double *abstol, int *m, double *w,
             double *z, const int *ldz, int *isuppz, double *work, const int *lwork, int *iwork, const int *liwork,
             int *info, size_t jobz_length, size_t range_length, size_t uplo_length);
void dgelqf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work, const int *lwork,
             int *info);
void dorglq_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau, double *work,
             const int *lwork, int *info);

static bool all_finite(int64_t n, const double *x) {
    bool all = true;
    for (int64_t i = 0; i < n; i++) all &= isfinite(x[i]) != 0;
    return all;
}

/* --- eigenvectors ----------------------------------------------------------------------------------------------- */

typedef struct eigen {
    int     n, q, found, info;
    double *a, *w, *z, *work; /* w [n] in increasing order; z [q, n] in the same order */
    int    *iwork, *support;
} eigen;

/* The part on and right of our diagonal is LAPACK's lower triangle. */
static void solve(eigen *e, int lwork, int liwork) {
    const double none = 0;
    const int    first = e->n - e->q + 1;
    dsyevr_("V", "I", "L", &e->n, e->a, &e->n, &none, &none, &first, &e->n, &none, &e->found, e->w, e->z, &e->n,
            e->support, e->work, &lwork, e->iwork, &liwork, &e->info, 1, 1, 1);
}

/* Makes the element of the largest size positive. */
static double sign_of(int64_t n, const double *x) {
    int64_t most = 0;
    for (int64_t i = 1; i < n; i++) most = fabs(x[i]) > fabs(x[most]) ? i : most;
    return x[most] < 0 ? -1 : 1;
}

static void take(const eigen *e, double *value, double *vector) {
    for (int64_t i = 0; i < e->q; i++) {
        const double *from = e->z + (e->q - 1 - i) * (int64_t)e->n, sign = sign_of(e->n, from);
        value[i] = e->w[e->q - 1 - i];
        for (int64_t j = 0; j < e->n; j++) vector[i * e->n + j] = sign * from[j];
    }
}

static plait_status solve_in(eigen *e, double *value, double *vector, plait_error *err) {
    double work = 0;
    int    iwork = 0;
    e->work = &work;
    e->iwork = &iwork;
    solve(e, -1, -1); /* asks how much memory it needs */
    const int lwork = (int)work, liwork = iwork;
    e->work = pli_array((size_t)lwork, sizeof *e->work);
    e->iwork = pli_array((size_t)liwork, sizeof *e->iwork);
    plait_status status = PLAIT_OK;
    if (e->work == NULL || e->iwork == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for eigenvectors");
    else solve(e, lwork, liwork);
    if (status == PLAIT_OK && (e->info != 0 || e->found < e->q))
        status = pli_fail(err, PLAIT_EDIVERGED, "eigenvectors of a matrix of %d rows: LAPACK's dsyevr says %d", e->n,
                          e->info);
    if (status == PLAIT_OK) take(e, value, vector);
    pli_free(e->work);
    pli_free(e->iwork);
    return status;
}

plait_status pli_eigen_top(int64_t n, double *a, int64_t q, double *value, double *vector, plait_error *err) {
    if (n < 1 || n > INT_MAX / 64 || q < 1 || q > n)
        return pli_fail(err, PLAIT_EINVAL, "%lld eigenvectors of a matrix of %lld rows", (long long)q, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!all_finite(n - i, a + i * n + i))
            return pli_fail(err, PLAIT_EDIVERGED, "row %lld of a symmetric matrix is not finite", (long long)i + 1);
    eigen e = { .n = (int)n, .q = (int)q, .a = a };
    e.w = pli_array((size_t)n, sizeof *e.w);
    e.z = pli_array((size_t)(n * q), sizeof *e.z);
    e.support = pli_array((size_t)(2 * q), sizeof *e.support);
    pli_gemm_open();
    plait_status status = e.w != NULL && e.z != NULL && e.support != NULL
                              ? solve_in(&e, value, vector, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for eigenvectors");
    pli_free(e.w);
    pli_free(e.z);
    pli_free(e.support);
    return status;
}

/* --- an orthonormal basis --------------------------------------------------------------------------------------- */

/* Turns the columns round for which l's diagonal is negative. */
static void turn(int64_t n, int64_t q, double *z, const double *diagonal) {
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < q; j++)
            if (diagonal[j] < 0) z[i * q + j] = -z[i * q + j];
}

/* Factorises z's transpose into l times the rows of an orthonormal matrix. */
static plait_status reduce(int n, int q, double *z, double *tau, double *diagonal, plait_error *err) {
    double need[2] = { 0 };
    int    info = 0, ask = -1;
    dgelqf_(&q, &n, z, &q, tau, &need[0], &ask, &info);
    dorglq_(&q, &n, &q, z, &q, tau, &need[1], &ask, &info);
    const int lwork = (int)fmax(need[0], need[1]);
    double   *work = pli_array((size_t)lwork, sizeof *work);
    if (work == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for an orthonormal basis");
    dgelqf_(&q, &n, z, &q, tau, work, &lwork, &info);
    for (int64_t j = 0; j < q; j++) diagonal[j] = z[j * q + j];
    dorglq_(&q, &n, &q, z, &q, tau, work, &lwork, &info);
    turn(n, q, z, diagonal);
    pli_free(work);
    return PLAIT_OK;
}

plait_status pli_orthonormalise(int64_t n, int64_t q, double *z, plait_error *err) {
    if (q < 1 || n < q || n > INT_MAX / 64)
        return pli_fail(err, PLAIT_EINVAL, "an orthonormal basis of %lld columns of %lld elements", (long long)q,
                        (long long)n);
    if (!all_finite(n * q, z)) return pli_fail(err, PLAIT_EDIVERGED, "a basis to be made orthonormal is not finite");
    double *tau = pli_array((size_t)q, sizeof *tau), *diagonal = pli_array((size_t)q, sizeof *diagonal);
    pli_gemm_open();
    plait_status status = tau != NULL && diagonal != NULL
                              ? reduce((int)n, (int)q, z, tau, diagonal, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for an orthonormal basis");
    pli_free(tau);
    pli_free(diagonal);
    return status;
}
