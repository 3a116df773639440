/* Histograms of a worker's rows. A cell is two whole numbers, which are added at once; whole numbers add up to the same
 * in any order, so threads may share the work as they come.
 *
 * What bounds it. A row costs an addition for each feature, in memory that must stay near: the cells of eight features
 * of 255 bins take 32 KB, which a first cache holds. So rows are taken in blocks, and each block goes over eight
 * features after the other, whose bins are read as one word. The rows of a leaf lie apart: a block first gathers their
 * bins and gradients, so that each cache line is fetched once. They come near while the block before is added up, which
 * leaves the memory idle. Rows that lie together, as a root's do, are read where they are.
 *
 * Threads take chunks of rows, and each has cells of its own, which are summed at the end. Where there are many
 * stretches of features, threads take these instead, and nothing is summed. */
#include <string.h>

#include "learn/trees/sums.h"

typedef int64_t pair __attribute__((vector_size(16)));

enum { AHEAD = 16, BLOCK = 512, ROWS_A_CHUNK = 2048, CHUNKS_A_THREAD = 32, STRETCHES_A_THREAD = 4, WORD = 8,
       CELLS_A_CHUNK = 2048 };

typedef struct work {
    const pli_histograms *h;
    int64_t               n, chunks;
    const uint32_t       *order;
    const pli_sum_cell   *cell;
    pli_sum_cell         *out; /* of thread 0; the others' are in scratch */
} work;

static int64_t stretches_of(const pli_histograms *h) { return h->rows->dense != NULL ? h->rows->stretches : 1; }

plait_status pli_histograms_make(pli_histograms *h, const pli_bins *bins, const pli_bin_rows *rows, pli_pool *pool,
                                 plait_error *err) {
    *h = (pli_histograms){ .bins = bins, .rows = rows, .pool = pool, .size = pli_bins_cells(bins) };
    const size_t threads = (size_t)pli_pool_threads(pool);
    h->begun = pli_array(threads, (size_t)stretches_of(h) * sizeof *h->begun);
    if (threads > 1) h->scratch = pli_aligned((threads - 1) * (size_t)h->size * sizeof *h->scratch);
    if (h->begun != NULL && (threads == 1 || h->scratch != NULL)) return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for histograms of %lld bins", (long long)h->size);
}

void pli_histograms_free(pli_histograms *h) {
    pli_free(h->scratch);
    pli_free(h->begun);
    *h = (pli_histograms){ 0 };
}

/* --- dense rows --------------------------------------------------------------------------------------------------- */

/* Rows whose bins and gradients will be gathered next. They come near while others are added up. */
typedef struct coming {
    int64_t         n;
    const uint32_t *order;
    const uint8_t  *dense;
    int64_t         stride;
    const pair     *cell;
} coming;

/* Adds up `width` features, which stand next to each other in a word. A constant width leaves no loop inside. */
static inline __attribute__((always_inline)) void add_columns(int32_t width, int64_t n, const uint8_t *bins,
                                                              int64_t stride, const pair *value, pair *const *base,
                                                              const coming *next) {
    for (int64_t i = 0; i < n; i++, bins += stride) {
        uint64_t word;
        memcpy(&word, bins, sizeof word);
        const pair add = value[i];
        if (next != NULL) {
            const int64_t row = next->order[i];
            __builtin_prefetch(next->dense + row * next->stride, 0, 2); /* 2: the second cache; the first one is full */
            __builtin_prefetch(next->cell + row, 0, 2);
        }
#pragma GCC unroll 8
        for (int32_t j = 0; j < width; j++, word >>= 8) base[j][word & 255] += add;
    }
}

/* next->n <= n */
static inline __attribute__((always_inline)) void add_width(int32_t width, int64_t n, const uint8_t *bins,
                                                            int64_t stride, const pair *value, pair *const *base,
                                                            const coming *next) {
    const int64_t with = next->n;
    const coming  rows = *next;
    pair         *b[WORD];
    memcpy(b, base, sizeof b); /* a copy of its own can lie in registers */
    add_columns(width, with, bins, stride, value, b, &rows);
    add_columns(width, n - with, bins + with * stride, stride, value + with, b, NULL);
}

static void add_word(int32_t width, int64_t n, const uint8_t *bins, int64_t stride, const pair *value,
                     pair *const *base, const coming *next) {
    switch (width) {
    case 8: add_width(8, n, bins, stride, value, base, next); break;
    case 7: add_width(7, n, bins, stride, value, base, next); break;
    case 6: add_width(6, n, bins, stride, value, base, next); break;
    case 5: add_width(5, n, bins, stride, value, base, next); break;
    case 4: add_width(4, n, bins, stride, value, base, next); break;
    case 3: add_width(3, n, bins, stride, value, base, next); break;
    case 2: add_width(2, n, bins, stride, value, base, next); break;
    default: add_width(1, n, bins, stride, value, base, next);
    }
}

typedef struct gathered {
    _Alignas(64) pair value[BLOCK];
    uint8_t bins[BLOCK * PLI_ROWS_WIDTH];
} gathered;

static inline __attribute__((always_inline)) void gather_rows(int64_t stride, int64_t n, const uint32_t *order,
                                                              const uint8_t *dense, const pair *cell, gathered *to) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = order[i], next = order[i + AHEAD < n ? i + AHEAD : i];
        __builtin_prefetch(dense + next * stride);
        __builtin_prefetch(cell + next);
        to->value[i] = cell[row];
        memcpy(to->bins + i * stride, dense + row * stride, (size_t)stride);
    }
}

static void gather(int64_t stride, int64_t n, const uint32_t *order, const uint8_t *dense, const pair *cell,
                   gathered *to) {
    if (stride == 8) gather_rows(8, n, order, dense, cell, to);
    else if (stride == 16) gather_rows(16, n, order, dense, cell, to);
    else gather_rows(PLI_ROWS_WIDTH, n, order, dense, cell, to);
}

/* Orders increase. */
static bool lie_together(int64_t n, const uint32_t *order) {
    return n > 0 && (int64_t)order[n - 1] - (int64_t)order[0] == n - 1;
}

static void add_stretch(const pli_histograms *h, int32_t s, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                        pli_sum_cell *out) {
    const pli_bin_rows *rows = h->rows;
    const int32_t       first = rows->first[s], width = rows->first[s + 1] - first;
    const int32_t       words = (width + WORD - 1) / WORD;
    const int64_t       stride = pli_rows_stride(width);
    const pair         *from = (const pair *)(const void *)cell;
    pair               *base[PLI_ROWS_WIDTH] = { NULL };
    gathered            room;
    for (int32_t j = 0; j < width; j++) base[j] = (pair *)(void *)(out + pli_bins_place(h->bins, first + j));
    for (int64_t i = 0, m; i < n; i += m) {
        m = n - i < BLOCK ? n - i : BLOCK;
        const bool     together = lie_together(m, order + i);
        const uint8_t *bins = together ? rows->dense[s] + (int64_t)order[i] * stride : room.bins;
        const int64_t  left = n - i - m < BLOCK ? n - i - m : BLOCK;
        const int64_t  apart = lie_together(left, order + i + m) ? 0 : left;
        if (!together) gather(stride, m, order + i, rows->dense[s], from, &room);
        for (int32_t w = 0; w < words; w++) { /* with each word a share of the next block's rows comes near */
            const int64_t begin = apart * w / words;
            const coming  next = { .n = apart * (w + 1) / words - begin, .order = order + i + m + begin,
                                   .dense = rows->dense[s], .stride = stride, .cell = from };
            const int32_t j = w * WORD;
            add_word(width - j < WORD ? width - j : WORD, m, bins + j, stride,
                     together ? from + order[i] : room.value, base + j, &next);
        }
    }
}

/* --- sparse rows -------------------------------------------------------------------------------------------------- */

/* base: of the first bin that the histogram has. The node's own sums come last. */
static void add_sparse(const pli_histograms *h, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                       pli_sum_cell *out) {
    const pli_bin_rows *rows = h->rows;
    const int64_t       base = h->bins->offset[h->bins->from];
    const pair         *from = (const pair *)(const void *)cell;
    pair               *to = (pair *)(void *)out, total = { 0, 0 };
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = order[i];
        const pair    value = from[row];
        if (i + AHEAD < n) __builtin_prefetch(rows->entry + rows->start[order[i + AHEAD]]);
        for (int64_t e = rows->start[row]; e < rows->start[row + 1]; e++) to[rows->entry[e] - base] += value;
        total += value;
    }
    to[h->size - 1] += total;
}

/* --- sharing ------------------------------------------------------------------------------------------------------ */

/* The cells of a stretch. The node's own sums belong to the last one. */
static void cells_of(const pli_histograms *h, int64_t s, int64_t *from_out, int64_t *end_out) {
    const bool dense = h->rows->dense != NULL, last = s + 1 == stretches_of(h);
    *from_out = dense ? pli_bins_place(h->bins, h->rows->first[s]) : 0;
    *end_out = last ? h->size : pli_bins_place(h->bins, h->rows->first[s + 1]);
}

static pli_sum_cell *cells_at(const work *w, int64_t thread) {
    return thread == 0 ? w->out : w->h->scratch + (thread - 1) * w->h->size;
}

/* Item i: stretch i % stretches of chunk i / stretches. A thread clears a stretch before it adds to it. */
static void add_item(void *user, int64_t i, int32_t thread) {
    const work           *w = user;
    const pli_histograms *h = w->h;
    const int64_t         stretches = stretches_of(h), s = i % stretches, c = i / stretches;
    const int64_t         first = w->n * c / w->chunks, n = w->n * (c + 1) / w->chunks - first;
    const int64_t         owner = w->chunks > 1 ? thread : 0; /* with one chunk, no two threads share a stretch */
    pli_sum_cell         *out = cells_at(w, owner);
    bool                 *begun = &h->begun[owner * stretches + s];
    int64_t               from, end;
    cells_of(h, s, &from, &end);
    if (!*begun) memset(out + from, 0, (size_t)(end - from) * sizeof *out);
    *begun = true;
    if (h->rows->dense == NULL) add_sparse(h, n, w->order + first, w->cell, out);
    else if (h->rows->dense[s] != NULL) add_stretch(h, (int32_t)s, n, w->order + first, w->cell, out);
}

/* Sums what the threads have added up, a part of one stretch. */
static void sum_item(void *user, int64_t i, int32_t thread) {
    const work           *w = user;
    const pli_histograms *h = w->h;
    const int64_t         stretches = stretches_of(h), s = i % stretches;
    int64_t               from, end;
    (void)thread;
    cells_of(h, s, &from, &end);
    from += i / stretches * CELLS_A_CHUNK;
    if (end > from + CELLS_A_CHUNK) end = from + CELLS_A_CHUNK;
    if (from >= end) return;
    if (!h->begun[s]) memset(w->out + from, 0, (size_t)(end - from) * sizeof *w->out);
    for (int64_t t = 1; t < pli_pool_threads(h->pool); t++) {
        const pli_sum_cell *own = cells_at(w, t);
        if (!h->begun[t * stretches + s]) continue;
        for (int64_t c = from; c < end; c++) {
            w->out[c].g += own[c].g;
            w->out[c].hn += own[c].hn;
        }
    }
}

/* A node's own sums are those of any of its features. */
static void set_total(const work *w) {
    const pli_histograms *h = w->h;
    const pli_bins       *b = h->bins;
    pli_sum_cell          total = { 0 };
    if (b->to > b->from)
        for (int64_t c = 0; c < b->offset[b->from + 1] - b->offset[b->from]; c++) {
            total.g += w->out[c].g;
            total.hn += w->out[c].hn;
        }
    else
        for (int64_t i = 0; i < w->n; i++) {
            total.g += w->cell[w->order[i]].g;
            total.hn += w->cell[w->order[i]].hn;
        }
    w->out[h->size - 1] = total;
}

static int64_t chunks_of(const pli_histograms *h, int64_t n) {
    const int64_t threads = pli_pool_threads(h->pool), most = threads * CHUNKS_A_THREAD;
    if (threads == 1 || stretches_of(h) >= threads * STRETCHES_A_THREAD || n < 2 * ROWS_A_CHUNK) return 1;
    return n / ROWS_A_CHUNK < most ? n / ROWS_A_CHUNK : most;
}

void pli_histograms_add(const pli_histograms *h, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                        pli_sum_cell *out) {
    const int64_t threads = pli_pool_threads(h->pool), stretches = stretches_of(h);
    work          w = { .h = h, .n = n, .chunks = chunks_of(h, n), .order = order, .cell = cell, .out = out };
    memset(h->begun, 0, (size_t)(threads * stretches) * sizeof *h->begun);
    pli_pool_for(h->pool, w.chunks * stretches, add_item, &w);
    if (w.chunks > 1)
        pli_pool_for(h->pool, (h->size / CELLS_A_CHUNK + 1) * stretches, sum_item, &w);
    if (h->rows->dense != NULL) set_total(&w);
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
