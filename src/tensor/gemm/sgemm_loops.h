/* tensor/gemm/sgemm_loops.h - the code of sgemm.h's tiles, for the registers that the including file is compiled
 * for. */
#ifndef PLI_TENSOR_SGEMM_LOOPS_H
#define PLI_TENSOR_SGEMM_LOOPS_H

#include <string.h>

#include "tensor/gemm/sgemm.h"
#include "tensor/lanes.h"

/* How many rows of a tile can have their sums in registers, beside b. */
#if defined(__AVX512F__)
#define ROWS_MAX 14
#else
#define ROWS_MAX 6
#endif

enum { COLS = 2 * LANES, QUADS = (ROWS_MAX + 3) / 4 };

/* m is a constant wherever this is inlined, so all loops over rows become straight code. Rows go in groups of four,
 * so that a few registers hold their addresses. */
INLINE void tile_of(const int m, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load, float *c,
                    int64_t ldc) {
    lane         sum[ROWS_MAX][2];
    const float *quad[QUADS];
#pragma GCC unroll 4
    for (int g = 0; g < QUADS; g++) quad[g] = 4 * g < m ? a + 4 * g * rs : a;
#pragma GCC unroll 16
    for (int i = 0; i < m; i++) {
        sum[i][0] = load ? LOAD(c + i * ldc) : SPREAD(0);
        sum[i][1] = load ? LOAD(c + i * ldc + LANES) : SPREAD(0);
    }
    for (int64_t l = 0; l < k; l++, b += COLS) {
        const lane b0 = LOAD(b), b1 = LOAD(b + LANES);
#pragma GCC unroll 16
        for (int i = 0; i < m; i++) {
            const lane x = SPREAD(quad[i / 4][i % 4 * rs]);
            sum[i][0] = FMA(x, b0, sum[i][0]);
            sum[i][1] = FMA(x, b1, sum[i][1]);
        }
#pragma GCC unroll 4
        for (int g = 0; g < QUADS; g++) quad[g] += cs;
    }
#pragma GCC unroll 16
    for (int i = 0; i < m; i++) {
        STORE(c + i * ldc, sum[i][0]);
        STORE(c + i * ldc + LANES, sum[i][1]);
    }
}

typedef void tile_fn(int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load, float *c,
                     int64_t ldc);

/* One of a's two strides is nearly always 1. */
#define TILE(m)                                                                                                        \
    static void tile_##m(int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load, float *c,       \
                         int64_t ldc) {                                                                                \
        if (cs == 1)                                                                                                   \
            tile_of(m, k, a, rs, 1, b, load, c, ldc);                                                                  \
        else if (rs == 1)                                                                                              \
            tile_of(m, k, a, 1, cs, b, load, c, ldc);                                                                  \
        else                                                                                                           \
            tile_of(m, k, a, rs, cs, b, load, c, ldc);                                                                 \
    }

TILE(1)
TILE(2)
TILE(3)
TILE(4)
TILE(5)
TILE(6)
#if ROWS_MAX > 6
TILE(7)
TILE(8)
TILE(9)
TILE(10)
TILE(11)
TILE(12)
TILE(13)
TILE(14)
#endif

static tile_fn *const tile_by_rows[ROWS_MAX + 1] = {
    NULL,   tile_1, tile_2, tile_3,  tile_4,  tile_5,  tile_6,
#if ROWS_MAX > 6
    tile_7, tile_8, tile_9, tile_10, tile_11, tile_12, tile_13, tile_14,
#endif
};

/* A tile at the edge is computed in a buffer beside c. */
static void tile(int64_t m, int64_t n, int64_t k, const float *a, int64_t rs, int64_t cs, const float *b, bool load,
                 float *c, int64_t ldc) {
    if (n == COLS) {
        tile_by_rows[m](k, a, rs, cs, b, load, c, ldc);
        return;
    }
    float edge[ROWS_MAX * COLS];
    for (int64_t i = 0; load && i < m; i++)
        for (int64_t j = 0; j < COLS; j++) edge[i * COLS + j] = j < n ? c[i * ldc + j] : 0;
    tile_by_rows[m](k, a, rs, cs, b, load, edge, COLS);
    for (int64_t i = 0; i < m; i++) memcpy(c + i * ldc, edge + i * COLS, (size_t)n * sizeof *c);
}

static void pack(int64_t k, int64_t n, const float *b, int64_t ld, float *to) {
    for (int64_t l = 0; l < k; l++, b += ld, to += COLS) {
        if (n == COLS) {
            STORE(to, LOAD(b));
            STORE(to + LANES, LOAD(b + LANES));
            continue;
        }
        for (int64_t j = 0; j < COLS; j++) to[j] = j < n ? b[j] : 0;
    }
}

#if defined(__AVX2__)
/* Transposes eight rows of eight. */
INLINE void transpose_8(const float *from, int64_t ld, float *to) {
    __m256 x[8], y[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) x[i] = _mm256_loadu_ps(from + i * ld);
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
        y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
        x[i] = _mm256_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm256_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm256_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * COLS, _mm256_permute2f128_ps(x[i], x[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * COLS, _mm256_permute2f128_ps(x[i], x[i + 4], 0x31));
    }
}
#endif

static void pack_transposed(int64_t k, int64_t n, const float *b, int64_t ld, float *to) {
    for (int64_t j = 0; j < COLS; j += 8) {
        int64_t l = 0;
#if defined(__AVX2__)
        for (; j + 8 <= n && l + 8 <= k; l += 8) transpose_8(b + j * ld + l, ld, to + l * COLS + j);
#endif
        for (; l < k; l++)
            for (int64_t i = j; i < j + 8 && i < COLS; i++) to[l * COLS + i] = i < n ? b[i * ld + l] : 0;
    }
}

static const pli_tiles tiles = {
    .rows = ROWS_MAX, .cols = COLS, .tile = tile, .pack = pack, .pack_transposed = pack_transposed
};

#endif
