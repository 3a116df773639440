/* Histograms of a worker's rows. A cell is two whole numbers, which are added at once. Threads share the work by
 * stretches of features if there are enough of them, and else by rows: whole numbers add up to the same in any case. */
#include <string.h>

#include "learn/trees/trees.h"

typedef int64_t pair __attribute__((vector_size(16)));

enum { AHEAD = 16, ROWS_A_CHUNK = 4096 };

typedef struct work {
    const pli_histograms *h;
    int64_t               n, chunks;
    const uint32_t       *order;
    const pli_sum_cell   *cell;
    pli_sum_cell         *out; /* of the first chunk; the others are in scratch */
} work;

plait_status pli_histograms_make(pli_histograms *h, const pli_bins *bins, const pli_bin_rows *rows, pli_pool *pool,
                                 plait_error *err) {
    *h = (pli_histograms){ .bins = bins, .rows = rows, .pool = pool, .size = pli_bins_cells(bins) };
    const int32_t threads = pli_pool_threads(pool);
    if (threads > 1) h->scratch = pli_aligned((size_t)(threads - 1) * (size_t)h->size * sizeof *h->scratch);
    if (threads == 1 || h->scratch != NULL) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for histograms of %lld bins", (long long)h->size);
}

void pli_histograms_free(pli_histograms *h) {
    pli_free(h->scratch);
    *h = (pli_histograms){ 0 };
}

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static void add_total(int64_t n, const uint32_t *order, const pli_sum_cell *cell, pli_sum_cell *total) {
    int64_t g = 0, hn = 0;
    for (int64_t i = 0; i < n; i++) {
        g += cell[order[i]].g;
        hn += cell[order[i]].hn;
    }
    total->g += g;
    total->hn += hn;
}

static void add_stretch(const pli_histograms *h, int32_t s, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                        pli_sum_cell *out) {
    const pli_bin_rows *rows = h->rows;
    const int32_t       first = rows->first[s], width = rows->first[s + 1] - first;
    const uint8_t      *dense = rows->dense[s];
    const pair         *from = (const pair *)(const void *)cell;
    pair               *base[PLI_ROWS_WIDTH];
    for (int32_t j = 0; j < width; j++) base[j] = (pair *)(void *)(out + pli_bins_place(h->bins, first + j));
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) {
            __builtin_prefetch(dense + (int64_t)order[i + AHEAD] * width);
            __builtin_prefetch(from + order[i + AHEAD]);
        }
        const uint8_t *bin = dense + (int64_t)order[i] * width;
        const pair     value = from[order[i]];
        for (int32_t j = 0; j < width; j++) base[j][bin[j]] += value;
    }
}

/* base: of the first bin that the histogram has. */
static void add_sparse(const pli_bin_rows *rows, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                       int64_t base, pli_sum_cell *out) {
    const pair *from = (const pair *)(const void *)cell;
    pair       *to = (pair *)(void *)out;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = order[i];
        const pair    value = from[row];
        if (i + AHEAD < n) __builtin_prefetch(rows->entry + rows->start[order[i + AHEAD]]);
        for (int64_t e = rows->start[row]; e < rows->start[row + 1]; e++) to[rows->entry[e] - base] += value;
    }
}

/* --- sharing ------------------------------------------------------------------------------------------------------ */

static int64_t stretches_of(const pli_histograms *h) { return h->rows->dense != NULL ? h->rows->stretches : 1; }

/* Item i: stretch i % stretches of chunk i / stretches. */
static void add_item(void *user, int64_t i, int32_t thread) {
    const work           *w = user;
    const pli_histograms *h = w->h;
    const int64_t         s = i % stretches_of(h), c = i / stretches_of(h), last = stretches_of(h) - 1;
    const int64_t         first = w->n * c / w->chunks, n = w->n * (c + 1) / w->chunks - first;
    pli_sum_cell         *out = c == 0 ? w->out : h->scratch + (c - 1) * h->size;
    (void)thread;
    if (h->rows->dense == NULL) {
        memset(out, 0, (size_t)h->size * sizeof *out);
        add_sparse(h->rows, n, w->order + first, w->cell, h->bins->offset[h->bins->from], out);
    } else {
        const int64_t from = pli_bins_place(h->bins, h->rows->first[s]),
                      end = pli_bins_place(h->bins, h->rows->first[s + 1]);
        memset(out + from, 0, (size_t)(end - from) * sizeof *out);
        add_stretch(h, (int32_t)s, n, w->order + first, w->cell, out);
    }
    if (s != last) return;
    out[h->size - 1] = (pli_sum_cell){ 0 };
    add_total(n, w->order + first, w->cell, &out[h->size - 1]);
}

void pli_histograms_add(const pli_histograms *h, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                        pli_sum_cell *out) {
    const int64_t threads = pli_pool_threads(h->pool), stretches = stretches_of(h);
    work          w = { .h = h, .n = n, .chunks = (threads + stretches - 1) / stretches, .order = order, .cell = cell,
                        .out = out };
    if (n < w.chunks * ROWS_A_CHUNK) w.chunks = 1;
    pli_pool_for(h->pool, w.chunks * stretches, add_item, &w);
    for (int64_t c = 1; c < w.chunks; c++) {
        const pli_sum_cell *from = h->scratch + (c - 1) * h->size;
        for (int64_t i = 0; i < h->size; i++) {
            out[i].g += from[i].g;
            out[i].hn += from[i].hn;
        }
    }
}

void pli_histograms_complete(const pli_histograms *h, pli_sum_cell *sums) {
    const pli_bins *b = h->bins;
    if (h->rows->dense != NULL) return;
    for (int32_t j = b->from; j < b->to; j++) {
        pli_sum_cell rest = sums[h->size - 1];
        for (int64_t i = pli_bins_place(b, j); i < pli_bins_place(b, j + 1); i++) {
            rest.g -= sums[i].g;
            rest.hn -= sums[i].hn;
        }
        sums[pli_bins_place(b, j) + b->common[j]] = rest;
    }
}
