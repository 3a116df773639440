/* table/combine/scatter.h - whole numbers go to rows that lie anywhere in memory: those a few places ahead are
 * prefetched. The compiler puts `join` in place. */
#ifndef PLI_TABLE_COMBINE_SCATTER_H
#define PLI_TABLE_COMBINE_SCATTER_H

#include <stdint.h>

enum { PLI_SCATTER_AHEAD = 16 };

/** y[at[i], :] := join(x[i, :], y[at[i], :]) for rows of cols values; at[i] < 0: left out. */
static inline __attribute__((always_inline)) void pli_scatter_i64(int64_t n, int64_t cols, const int64_t *at,
                                                                  const int64_t *x, int64_t *y,
                                                                  int64_t (*join)(int64_t x, int64_t y)) {
    for (int64_t i = 0; i < n; i++) {
        if (i + PLI_SCATTER_AHEAD < n && at[i + PLI_SCATTER_AHEAD] >= 0)
            __builtin_prefetch(&y[at[i + PLI_SCATTER_AHEAD] * cols], 1);
        if (at[i] < 0) continue;
        for (int64_t c = 0; c < cols; c++) y[at[i] * cols + c] = join(x[i * cols + c], y[at[i] * cols + c]);
    }
}

#endif
