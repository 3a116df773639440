/* tensor/spectral/cholesky.h - symmetric positive definite systems of equations, in double precision.
 *
 * A = UT U with U upper triangular (Golub and Van Loan, "Matrix Computations", 2013, algorithm 4.2.1). Matrices are
 * [d, d]; only the triangle on and right of the diagonal is read and written. All loops run along rows of U, and the
 * order of additions never changes, so the same matrix has the same bits on every rank. */
#ifndef PLI_TENSOR_CHOLESKY_H
#define PLI_TENSOR_CHOLESKY_H

#include <stdbool.h>
#include <stdint.h>

/** Turns a into U in place. false: a is not positive definite; then it is undefined. */
bool pli_cholesky(int64_t d, double *a);

/** Solves UT U x = b, b [d] in place. */
void pli_cholesky_solve(int64_t d, const double *u, double *b);

#endif
