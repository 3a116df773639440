/* Which tiles this processor runs, and packing b for all of them, panel after panel. */
#include "tensor/gemm/sgemm.h"

#include <stddef.h>

const pli_tiles *pli_tiles_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_tiles_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_tiles_avx2();
#endif
    return NULL;
}

/* The tiles of one panel of columns, over all rows. */
static void rows_of(const pli_tiles *tiles, int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs,
                    const float *panel, bool load, float *c, int64_t ldc) {
    const int64_t rows = pli_even(m, tiles->rows);
    for (int64_t i = 0; i < m; i += rows)
        tiles->tile(m - i < rows ? m - i : rows, n, k, a + i * rs, rs, cs, panel, load, c + i * ldc, ldc);
}

static void pack(const pli_tiles *tiles, bool tb, int64_t l, int64_t k, int64_t j, int64_t n, const float *b,
                 int64_t ldb, float *to) {
    if (tb)
        tiles->pack_transposed(k, n, b + j * ldb + l, ldb, to);
    else
        tiles->pack(k, n, b + l * ldb + j, ldb, to);
}

/* k is cut into stretches whose packed columns stay in the first cache; in each, all rows go over one panel of
 * columns at a time. */
void pli_sgemm(const pli_tiles *tiles, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool load, float *c, int64_t ldc) {
    _Alignas(64) float panel[PLI_TILE_DEPTH * PLI_TILE_COLS];
    const int64_t      rs = ta ? 1 : lda, cs = ta ? lda : 1;
    const int64_t      depth = pli_even(k, PLI_TILE_DEPTH), cols = tiles->cols;
    for (int64_t l = 0; l < k || l == 0; l += depth) {
        const int64_t some = k - l < depth ? k - l : depth;
        for (int64_t j = 0; j < n; j += cols) {
            const int64_t width = n - j < cols ? n - j : cols;
            pack(tiles, tb, l, some, j, width, b, ldb, panel);
            rows_of(tiles, m, width, some, a + l * cs, rs, cs, panel, load || l > 0, c + j, ldc);
        }
    }
}

/* --- b packed once: panel after panel of the first stretch of k, then of the next -------------------------------- */

size_t pli_sgemm_packed_floats(const pli_tiles *tiles, int64_t n, int64_t k) {
    return (size_t)((n + tiles->cols - 1) / tiles->cols * tiles->cols * k);
}

void pli_sgemm_pack(const pli_tiles *tiles, bool tb, int64_t n, int64_t k, const float *b, int64_t ldb, float *to) {
    const int64_t depth = pli_even(k, PLI_TILE_DEPTH), cols = tiles->cols;
    for (int64_t l = 0; l < k; l += depth) {
        const int64_t some = k - l < depth ? k - l : depth;
        for (int64_t j = 0; j < n; j += cols, to += some * cols)
            pack(tiles, tb, l, some, j, n - j < cols ? n - j : cols, b, ldb, to);
    }
}

void pli_sgemm_packed(const pli_tiles *tiles, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                      const float *packed, bool load, float *c, int64_t ldc) {
    const int64_t depth = pli_even(k, PLI_TILE_DEPTH), cols = tiles->cols;
    for (int64_t l = 0; l < k || l == 0; l += depth) {
        const int64_t some = k - l < depth ? k - l : depth;
        for (int64_t j = 0; j < n; j += cols, packed += some * cols)
            rows_of(tiles, m, n - j < cols ? n - j : cols, some, a + l, lda, 1, packed, load || l > 0, c + j, ldc);
    }
}
