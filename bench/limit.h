/* bench/limit.h - what products of matrices reach on this machine now: the best of some sizes, cut as they are for
 * threads. */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include <math.h>
#include <stdlib.h>

#include "base/base.h"
#include "tensor/gemm/gemm.h"

typedef struct limit_product {
    int64_t      side;
    pli_gemm_cut cut;
    const float *a;
    float       *c;
} limit_product;

static void limit_tile(void *user, int64_t i, int32_t thread) {
    const limit_product *p = user;
    const int64_t        row = i / p->cut.col_tiles * p->cut.rows, col = i % p->cut.col_tiles * p->cut.cols;
    const int64_t        m = p->side - row < p->cut.rows ? p->side - row : p->cut.rows;
    const int64_t        n = p->side - col < p->cut.cols ? p->side - col : p->cut.cols;
    (void)thread;
    pli_gemm_f32(false, false, m, n, p->side, p->a + row * p->side, p->side, p->a + col, p->side, 0,
                 p->c + row * p->side + col, p->side);
}

/** Multiplications and additions of floats a second. NaN: no memory. */
static inline double limit_sgemm(pli_pool *pool) {
    double best = 0;
    for (int64_t side = 512; side <= 1024; side += 256) {
        float *a = malloc((size_t)(side * side) * sizeof *a), *c = malloc((size_t)(side * side) * sizeof *c);
        if (a == NULL || c == NULL) return (double)NAN;
        limit_product p = { side, pli_gemm_cut_of(side, side, side), a, c };
        for (int64_t i = 0; i < side * side; i++) a[i] = (float)(i % 7) - 3;
        for (int turn = 0; turn < 20; turn++) {
            const uint64_t start = pli_now_ns();
            pli_pool_for(pool, p.cut.row_tiles * p.cut.col_tiles, limit_tile, &p);
            best = fmax(best, 2.0 * (double)(side * side * side) / (double)(pli_now_ns() - start) * 1e9);
        }
        free(a);
        free(c);
    }
    return best;
}

#endif
