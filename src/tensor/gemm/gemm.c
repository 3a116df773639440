/* Calling BLAS, packing b once for many products, and cutting large products for threads. */
#include "tensor/gemm/gemm.h"

#include <cblas.h>
#include <limits.h>

#include "tensor/gemm/sgemm.h"

/* BLAS's number of threads holds for the whole process, and all our callers want the same. Setting it again would start
 * threads that the program has ended (cli/blas.h). */
void pli_gemm_open(void) {
#ifdef OPENBLAS_VERSION
    if (openblas_get_num_threads() != 1) openblas_set_num_threads(1);
#endif
}

bool pli_gemm_fits(int64_t m, int64_t n, int64_t k) { return m <= INT_MAX && n <= INT_MAX && k <= INT_MAX; }

static CBLAS_TRANSPOSE side(bool transposed) { return transposed ? CblasTrans : CblasNoTrans; }

/* BLAS needs leading dimensions of at least 1, also for empty matrices. */
static int leading(int64_t ld) { return ld > 0 ? (int)ld : 1; }

void pli_gemm_f32(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                  int64_t ldb, float beta, float *c, int64_t ldc) {
    const pli_tiles *tiles = beta == 0 || beta == 1 ? pli_tiles_get() : NULL;
    if (tiles != NULL) {
        pli_sgemm(tiles, ta, tb, m, n, k, a, lda, b, ldb, beta == 1, c, ldc);
        return;
    }
    cblas_sgemm(CblasRowMajor, side(ta), side(tb), (int)m, (int)n, (int)k, 1, a, leading(lda), b, leading(ldb), beta, c,
                leading(ldc));
}

size_t pli_gemm_packed_floats(int64_t n, int64_t k) {
    const pli_tiles *tiles = pli_tiles_get();
    return tiles != NULL ? pli_sgemm_packed_floats(tiles, n, k) : (size_t)(n * k);
}

/* Without tiles, for BLAS: packed is b, not transposed. */
void pli_gemm_pack(bool tb, int64_t n, int64_t k, const float *b, int64_t ldb, float *to) {
    const pli_tiles *tiles = pli_tiles_get();
    if (tiles != NULL) {
        pli_sgemm_pack(tiles, tb, n, k, b, ldb, to);
        return;
    }
    for (int64_t l = 0; l < k; l++)
        for (int64_t j = 0; j < n; j++) to[l * n + j] = tb ? b[j * ldb + l] : b[l * ldb + j];
}

void pli_gemm_packed(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *packed, bool add,
                     float *c, int64_t ldc) {
    const pli_tiles *tiles = pli_tiles_get();
    if (tiles != NULL)
        pli_sgemm_packed(tiles, m, n, k, a, lda, packed, add, c, ldc);
    else
        pli_gemm_f32(false, false, m, n, k, a, lda, packed, n, add ? 1 : 0, c, ldc);
}

void pli_gemm_f64(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double *a, int64_t lda, const double *b,
                  int64_t ldb, double beta, double *c, int64_t ldc) {
    cblas_dgemm(CblasRowMajor, side(ta), side(tb), (int)m, (int)n, (int)k, 1, a, leading(lda), b, leading(ldb), beta, c,
                leading(ldc));
}

static int64_t up(int64_t n, int64_t to) { return (n + to - 1) / to; }

static int64_t half(int64_t n) { return up(up(n, 2), 16) * 16; } /* whole registers */

/* Rows of up to WHOLE columns stay whole while they can: then a tile's results lie in one run, over which an
 * epilogue passes at once, and packing the columns again for each tile costs less than many short runs would. */
pli_gemm_cut pli_gemm_cut_of(int64_t m, int64_t n, int64_t k) {
    enum { TILE_MULTIPLIES = 8 << 20, FEW_MULTIPLIES = 1 << 19, PARTS = 4, ROWS_MIN = 64, COLS_MIN = 128, WHOLE = 256 };
    const double all = (double)m * (double)n * (double)k / PARTS, most = all > TILE_MULTIPLIES  ? TILE_MULTIPLIES
                                                                         : all > FEW_MULTIPLIES ? all
                                                                                                : FEW_MULTIPLIES;
    pli_gemm_cut cut = { .rows = m > 0 ? m : 1, .cols = n > 0 ? n : 1 };
    while ((double)cut.rows * (double)cut.cols * (double)k > most) {
        const bool rows = cut.rows > ROWS_MIN, cols = cut.cols > COLS_MIN;
        if (!rows && !cols) break;
        if (cols && (!rows || (cut.cols > WHOLE && cut.cols >= 2 * cut.rows)))
            cut.cols = half(cut.cols);
        else
            cut.rows = half(cut.rows);
    }
    cut.row_tiles = up(m, cut.rows);
    cut.col_tiles = up(n, cut.cols);
    return cut;
}
