/* tensor/gemm/sgemm.h - tiles of a product of float matrices, compiled once for each processor.
 *
 * A tile of c, some rows of two registers, stays in registers while the sum runs over k; b comes packed, the columns
 * of a tile side by side, a as it lies (Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication",
 * ACM TOMS 2008; Van Zee and van de Geijn, "BLIS", ACM TOMS 2015). Each element of c is one chain of fused
 * multiply-adds in the order of k, which is taken up again where it was left. So its bits depend neither on how c is
 * cut nor on which of the processors it is. */
#ifndef PLI_TENSOR_SGEMM_H
#define PLI_TENSOR_SGEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLI_TILE_COLS = 32, PLI_TILE_DEPTH = 256 };

typedef struct pli_tiles {
    int64_t rows, cols; /* of a tile at most; cols <= PLI_TILE_COLS */
    /* c [m, n] = (load ? c : 0) + a b: m and n as above at most, a's element (i, l) at a[i rs + l cs], b packed
     * [k, cols]. */
    void (*tile)(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load,
                 float *c, int64_t ldc);
    /* b [k, n], rows ld apart, n <= cols, as [k, cols]; what lies beyond n is 0. */
    void (*pack)(int64_t k, int64_t n, const float *b, int64_t ld, float *to);
    /* The same of b as it is stored transposed, [n, k]. */
    void (*pack_transposed)(int64_t k, int64_t n, const float *b, int64_t ld, float *to);
} pli_tiles;

/** The best for this processor, static; NULL: there is none, BLAS is to be called. */
const pli_tiles *pli_tiles_get(void);
const pli_tiles *pli_tiles_avx2(void);
const pli_tiles *pli_tiles_avx512(void);

/** c = a b + (load ? c : 0): as pli_gemm_f32, by these tiles. */
void pli_sgemm(const pli_tiles *tiles, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool load, float *c, int64_t ldc);

/** b [k, n] (tb: stored [n, k]) packed once for many products: `to` takes pli_sgemm_packed_floats. */
size_t pli_sgemm_packed_floats(const pli_tiles *tiles, int64_t n, int64_t k);
void   pli_sgemm_pack(const pli_tiles *tiles, bool tb, int64_t n, int64_t k, const float *b, int64_t ldb, float *to);
/** As pli_sgemm, of a as it is stored and b packed. */
void pli_sgemm_packed(const pli_tiles *tiles, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                      const float *packed, bool load, float *c, int64_t ldc);

/** Into how many stretches of at most `most` n falls, and how long they are, so that they are about alike. */
static inline int64_t pli_even(int64_t n, int64_t most) {
    const int64_t count = (n + most - 1) / most;
    return count > 0 ? (n + count - 1) / count : 1;
}

#endif
