/* See combine.h. */
#include "table/combine/combine.h"

static const void *row_of(const void *rows, int64_t row, int64_t bytes) {
    return (const unsigned char *)rows + row * bytes;
}

void pli_merge_scatter(const pli_merge *merge, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    const int64_t bytes = cols * merge->width;
    if (merge->scatter != NULL) {
        merge->scatter(n, cols, at, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) merge->fold(cols, row_of(x, i, bytes), (unsigned char *)y + at[i] * bytes);
}

void pli_merge_gather(const pli_merge *merge, int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    const int64_t bytes = cols * merge->width;
    if (merge->gather != NULL) {
        merge->gather(n, cols, at, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) merge->fold(cols, row_of(x, at[i], bytes), (unsigned char *)y + i * bytes);
}
