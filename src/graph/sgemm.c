#include "graph/sgemm.h"

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

/* k in stretches whose packed columns stay in the first cache; of each, all rows go over one panel of columns. */
void pli_sgemm(const pli_tiles *tiles, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool load, float *c, int64_t ldc) {
    _Alignas(64) float panel[PLI_TILE_DEPTH * PLI_TILE_COLS];
    const int64_t      rs = ta ? 1 : lda, cs = ta ? lda : 1;
    const int64_t      depth = pli_even(k, PLI_TILE_DEPTH), rows = pli_even(m, tiles->rows), cols = tiles->cols;
    for (int64_t l = 0; l < k || l == 0; l += depth) {
        const int64_t some = k - l < depth ? k - l : depth;
        for (int64_t j = 0; j < n; j += cols) {
            const int64_t width = n - j < cols ? n - j : cols;
            if (tb)
                tiles->pack_transposed(some, width, b + j * ldb + l, ldb, panel);
            else
                tiles->pack(some, width, b + l * ldb + j, ldb, panel);
            for (int64_t i = 0; i < m; i += rows)
                tiles->tile(m - i < rows ? m - i : rows, width, some, a + i * rs + l * cs, rs, cs, panel, load || l > 0,
                            c + i * ldc + j, ldc);
        }
    }
}
