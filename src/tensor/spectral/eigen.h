/* tensor/spectral/eigen.h - eigenvectors of a symmetric matrix, and an orthonormal basis, by LAPACK on the calling
 * thread.
 *
 * LAPACK leaves signs open; here they are fixed, so that equal matrices give equal answers. Both calls allocate the
 * memory that LAPACK needs. Any thread. */
#ifndef PLI_TENSOR_EIGEN_H
#define PLI_TENSOR_EIGEN_H

#include <stdint.h>

#include <plait/status.h>

/** The q largest eigenvalues of a symmetric a [n, n], 1 <= q <= n: value [q], the largest first, and vector [q, n],
 *  one in each row. The vectors have length 1 and are orthogonal; in each, the element of the largest size (the
 *  first of equals) is positive. Only the part of a on and right of the diagonal is read; a is overwritten. By
 *  LAPACK's dsyevr: Dhillon and Parlett, "Multiple Representations to Compute Orthogonal Eigenvectors of Symmetric
 *  Tridiagonal Matrices", Linear Algebra and its Applications 2004. Errors: EINVAL lengths; EDIVERGED a has NaN or
 *  infinity, or LAPACK does not converge; ENOMEM. */
plait_status pli_eigen_top(int64_t n, double *a, int64_t q, double *value, double *vector, plait_error *err);

/** z [n, q], q <= n, becomes an orthonormal basis of its columns. If the columns are dependent, the basis spans
 *  more. The first column keeps its direction, and each other column points towards the part of its old column that
 *  the columns before it do not span. By LAPACK's dgelqf and dorglq (Householder). Errors: EINVAL lengths; EDIVERGED
 *  z has NaN or infinity; ENOMEM. */
plait_status pli_orthonormalise(int64_t n, int64_t q, double *z, plait_error *err);

#endif
