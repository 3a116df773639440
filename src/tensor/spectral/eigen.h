/* tensor/spectral/eigen.h - eigenvectors of a symmetric matrix and an orthonormal basis, by LAPACK on the calling
 * thread.
 *
 * Signs are fixed, which LAPACK leaves open, so that equal matrices give equal answers. Both allocate what LAPACK works
 * in. Any thread. */
#ifndef PLI_TENSOR_EIGEN_H
#define PLI_TENSOR_EIGEN_H

#include <stdint.h>

#include <plait/status.h>

/** The q largest eigenvalues of a symmetric a [n, n], 1 <= q <= n: value [q], the largest first, and vector [q, n], a
 *  row each, of length 1, orthogonal; of a vector's elements the one of the largest size (the first of equals) is
 *  positive. Only what is on and right of a's diagonal is read; a is lost. By LAPACK's dsyevr: Dhillon and Parlett,
 *  "Multiple Representations to Compute Orthogonal Eigenvectors of Symmetric Tridiagonal Matrices", Linear Algebra and
 *  its Applications 2004. Errors: EINVAL lengths; EDIVERGED a has NaN or infinity, or LAPACK finds no end; ENOMEM. */
plait_status pli_eigen_top(int64_t n, double *a, int64_t q, double *value, double *vector, plait_error *err);

/** z [n, q], q <= n, becomes an orthonormal basis of its columns (also where they are not independent: then of more),
 *  each column turned towards the one that was there: the first keeps its direction, and each other the direction of
 *  what is new in it. By LAPACK's dgelqf and dorglq (Householder). Errors: EINVAL lengths; EDIVERGED z has NaN or
 *  infinity; ENOMEM. */
plait_status pli_orthonormalise(int64_t n, int64_t q, double *z, plait_error *err);

#endif
