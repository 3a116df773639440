/* tensor/gemm/sgemm.h - tiles of a product of float matrices, compiled once for each processor.
 *
 * A tile of c, some rows of two registers, stays in registers while the sum runs over k. b is packed, with the
 * columns of a tile side by side; a is read as it lies (Goto and van de Geijn, "Anatomy of High-Performance Matrix
 * Multiplication", ACM TOMS 2008; Van Zee and van de Geijn, "BLIS", ACM TOMS 2015). Each element of c is one chain
 * of fused multiply-adds in the order of k; a chain that is interrupted goes on where it stopped. So its bits depend
 * neither on how c is cut nor on the processor. */
#ifndef PLI_TENSOR_SGEMM_H
#define PLI_TENSOR_SGEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PLI_TILE_COLS = 32, PLI_TILE_DEPTH = 256 };

typedef struct pli_tiles {
    int64_t rows, cols; /* of the largest tile; cols <= PLI_TILE_COLS */
    /* c [m, n] = (load ? c : 0) + a b, with m and n at most as above; a's element (i, l) is a[i rs + l cs], b is
     * packed [k, cols]. */
    void (*tile)(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load,
                 float *c, int64_t ldc);
    /* Packs b [k, n], rows ld apart, n <= cols, as [k, cols]; columns beyond n are 0. */
    void (*pack)(int64_t k, int64_t n, const float *b, int64_t ld, float *to);
    /* The same for b that is stored transposed, [n, k]. */
    void (*pack_transposed)(int64_t k, int64_t n, const float *b, int64_t ld, float *to);
} pli_tiles;

/** The best tiles for this processor, static; NULL: there are none, use BLAS. */
const pli_tiles *pli_tiles_get(void);
const pli_tiles *pli_tiles_avx2(void);
const pli_tiles *pli_tiles_avx512(void);

/** c = a b + (load ? c : 0), like pli_gemm_f32, by these tiles. */
void pli_sgemm(const pli_tiles *tiles, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool load, float *c, int64_t ldc);

/** Packs b [k, n] (tb: stored [n, k]) once for many products; `to` has room for pli_sgemm_packed_floats. */
size_t pli_sgemm_packed_floats(const pli_tiles *tiles, int64_t n, int64_t k);
void   pli_sgemm_pack(const pli_tiles *tiles, bool tb, int64_t n, int64_t k, const float *b, int64_t ldb, float *to);
/** Like pli_sgemm, with a not transposed and b packed. */
void pli_sgemm_packed(const pli_tiles *tiles, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                      const float *packed, bool load, float *c, int64_t ldc);

/** Splits n into stretches of at most `most` that are about equal, and returns their length. */
static inline int64_t pli_even(int64_t n, int64_t most) {
    const int64_t count = (n + most - 1) / most;
    return count > 0 ? (n + count - 1) / count : 1;
}

#endif
