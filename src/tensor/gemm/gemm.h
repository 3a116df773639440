/* tensor/gemm/gemm.h - the product of two matrices on one thread: float products by our own tiles (sgemm.h) if the
 * processor has fused multiply-adds, all others by BLAS. gemm_cut cuts large products.
 *
 * With BLAS a tile's bits depend on its lengths, and tiles are cut by the lengths of the whole product only, so the
 * number of threads never changes a result. (Debian 12's OpenBLAS takes a new AMD processor for one without AVX-512
 * and reaches half of its peak: hence our own.) */
#ifndef PLI_TENSOR_GEMM_H
#define PLI_TENSOR_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Makes BLAS compute on the calling thread; call it before the first product (in a kernel's open). */
void pli_gemm_open(void);
/** Do the lengths fit BLAS's int? */
bool pli_gemm_fits(int64_t m, int64_t n, int64_t k);

/** c [m, n] = a b + beta c, with a [m, k] (ta: stored [k, m]) and b [k, n] (tb: stored [n, k]). lda, ldb and ldc are
 *  the elements from one row to the next. With beta 0 c is only written. */
void pli_gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                  int64_t ldb, float beta, float *c, int64_t ldc);
void pli_gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
                  int64_t ldb, double beta, double *c, int64_t ldc);

/** For a matrix b [k, n] (tb: stored [n, k]) that is used in many products: pack writes it once into
 *  pli_gemm_packed_floats, and pli_gemm_packed reads it. That is pli_gemm_f32 with a not transposed, and beta 1
 *  (add) or 0. */
size_t pli_gemm_packed_floats(int64_t n, int64_t k);
void   pli_gemm_pack(bool tb, int64_t n, int64_t k, const float *b, int64_t ldb, float *to);
void   pli_gemm_packed(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *packed, bool add,
                       float *c, int64_t ldc);

/* How c is cut: into row_tiles x col_tiles tiles of rows x cols, smaller at the ends. */
typedef struct pli_gemm_cut {
    int64_t rows, cols, row_tiles, col_tiles;
} pli_gemm_cut;

/** Halves the longer side, or the rows of a narrow product, until a tile is a fraction of a millisecond's work, or
 *  some microseconds' work in a small product; but a tile stays large enough to be near the peak. */
pli_gemm_cut pli_gemm_cut_of(int64_t m, int64_t n, int64_t k);

#endif
