/* A worker's rows as bins. See trees.h. */
#include <string.h>

#include "learn/solve/block.h"
#include "learn/trees/bins.h"

/* A block, and the first of its rows among all own rows. */
typedef struct piece {
    const pli_block *block;
    int64_t          first;
} piece;

typedef struct work {
    const pli_run  *run;
    const pli_bins *bins;
    pli_bin_rows   *rows;
    piece          *piece;
    int32_t         pieces;
    bool            sparse;
    int64_t         unknown; /* a row whose label is not known, or -1; set by any thread, read past the loop */
} work;

/* --- a block ------------------------------------------------------------------------------------------------------ */

static void take_label(work *w, const pli_block *block, int64_t r, int64_t at) {
    double y = 0, weight = 0;
    if (!pli_goal_target(&pli_fit_of(w->run)->goal, block->label[r], &y, &weight))
        __atomic_store_n(&w->unknown, block->first_row + r, __ATOMIC_RELAXED); /* pairs with make's load */
    w->rows->target[at] = y;
    w->rows->weight[at] = (float)(block->weight != NULL ? weight * (double)block->weight[r] : weight);
    w->rows->number[at] = block->first_row + r;
    if (w->rows->held != NULL)
        w->rows->held[at] = pli_run_holds_back((void *)(uintptr_t)w->run, block->first_row + r);
}

/* The used feature of an entry; -1: none. */
static int32_t used_of(const work *w, const pli_block *block, int64_t e) {
    const int64_t feature = pli_field_of(w->bins->fields, pli_block_column(block, e));
    return feature >= 0 ? w->bins->place[feature] : -1;
}

static int32_t bin_of(const work *w, const pli_block *block, int64_t e, int32_t j) {
    return pli_bins_of(w->bins, j, pli_field_value(w->bins->fields, w->bins->feature[j], pli_block_column(block, e),
                                                   block->value != NULL ? block->value[e] : 1));
}

static void fill_dense(void *user, int64_t i, int32_t thread) {
    work            *w = user;
    const pli_block *block = w->piece[i].block;
    pli_bin_rows    *rows = w->rows;
    (void)thread;
    for (int32_t s = 0; s < rows->stretches; s++) {
        const int32_t first = rows->first[s], width = rows->first[s + 1] - first;
        const int64_t stride = pli_rows_stride(width);
        uint8_t       zero[PLI_ROWS_WIDTH] = { 0 };
        for (int32_t j = 0; j < width; j++) zero[j] = (uint8_t)w->bins->zero[first + j];
        for (int64_t r = 0; r < block->rows; r++)
            memcpy(rows->dense[s] + (w->piece[i].first + r) * stride, zero, (size_t)stride);
    }
    for (int64_t r = 0; r < block->rows; r++) {
        const int64_t at = w->piece[i].first + r;
        take_label(w, block, r, at);
        int32_t s = 0, last = -1;
        for (int64_t e = block->row_start[r]; e < block->row_start[r + 1]; e++) {
            const int32_t j = used_of(w, block, e);
            if (j < 0) continue;
            if (j < last) s = 0;
            last = j;
            while (rows->first[s + 1] <= j) s++;
            const int64_t stride = pli_rows_stride(rows->first[s + 1] - rows->first[s]);
            rows->dense[s][at * stride + j - rows->first[s]] = (uint8_t)bin_of(w, block, e, j);
        }
    }
}

/* Walks a sparse row's bins that are not the commonest of their feature. Features whose commonest bin is not that of 0
 * are named by the rows without a value of them, too. entry NULL: counts. */
static int64_t name_bins(const work *w, const pli_block *block, int64_t r, const int32_t *odd, int32_t odds,
                         uint32_t *entry) {
    const pli_bins *b = w->bins;
    int64_t         n = 0;
    int32_t         o = 0;
    for (int64_t e = block->row_start[r]; e <= block->row_start[r + 1]; e++) {
        const bool    end = e == block->row_start[r + 1];
        const int32_t j = end ? b->used : used_of(w, block, e);
        if (j < 0) continue;
        for (; o < odds && odd[o] < j; o++) {
            if (entry != NULL) entry[n] = (uint32_t)(b->offset[odd[o]] + b->zero[odd[o]]);
            n++;
        }
        if (end) break;
        if (o < odds && odd[o] == j) o++;
        const int32_t bin = bin_of(w, block, e, j);
        if (bin == b->common[j]) continue;
        if (entry != NULL) entry[n] = (uint32_t)(b->offset[j] + bin);
        n++;
    }
    return n;
}

typedef struct sparse_work {
    work    *w;
    int32_t *odd, odds;
} sparse_work;

static void count_sparse(void *user, int64_t i, int32_t thread) {
    const sparse_work *s = user;
    const piece       *p = &s->w->piece[i];
    (void)thread;
    for (int64_t r = 0; r < p->block->rows; r++)
        s->w->rows->start[p->first + r + 1] = name_bins(s->w, p->block, r, s->odd, s->odds, NULL);
}

static void fill_sparse(void *user, int64_t i, int32_t thread) {
    const sparse_work *s = user;
    const piece       *p = &s->w->piece[i];
    (void)thread;
    for (int64_t r = 0; r < p->block->rows; r++) {
        take_label(s->w, p->block, r, p->first + r);
        (void)name_bins(s->w, p->block, r, s->odd, s->odds, s->w->rows->entry + s->w->rows->start[p->first + r]);
    }
}

/* --- all rows ----------------------------------------------------------------------------------------------------- */

enum { TURNED = 4096 }; /* rows that are turned at once: they stay in the cache */

static void turn(void *user, int64_t c, int32_t thread) {
    pli_bin_rows *rows = ((work *)user)->rows;
    const int64_t end = (c + 1) * TURNED < rows->n ? (c + 1) * TURNED : rows->n;
    (void)thread;
    for (int32_t s = 0; s < rows->stretches; s++) {
        const int32_t width = rows->first[s + 1] - rows->first[s];
        for (int32_t j = 0; j < width; j++) {
            uint8_t       *to = rows->column[rows->first[s] + j];
            const uint8_t *from = rows->dense[s] + j;
            for (int64_t r = c * TURNED; r < end; r++) to[r] = from[r * pli_rows_stride(width)];
        }
    }
}

/* The columns lie in one piece of memory. */
static bool make_columns(work *w) {
    pli_bin_rows *rows = w->rows;
    const size_t  used = (size_t)w->bins->used;
    uint8_t      *all = pli_array((size_t)rows->n + 1, used);
    rows->column = pli_calloc(used, sizeof *rows->column);
    if (all == NULL || rows->column == NULL) {
        pli_free(all);
        return false;
    }
    rows->columns = all;
    for (size_t j = 0; j < used; j++) rows->column[j] = all + j * (size_t)rows->n;
    pli_pool_for(w->run->pool, (rows->n + TURNED - 1) / TURNED, turn, w);
    return true;
}

static bool make_dense(work *w) {
    pli_bin_rows *rows = w->rows;
    const int32_t used = w->bins->used, stretches = (used + PLI_ROWS_WIDTH - 1) / PLI_ROWS_WIDTH;
    rows->stretches = stretches;
    rows->first = pli_array((size_t)stretches + 1, sizeof *rows->first);
    rows->dense = pli_calloc((size_t)stretches, sizeof *rows->dense);
    if (rows->first == NULL || rows->dense == NULL) return false;
    for (int32_t s = 0; s <= stretches; s++) rows->first[s] = (int32_t)((int64_t)used * s / stretches);
    for (int32_t s = 0; s < stretches; s++) {
        const size_t stride = (size_t)pli_rows_stride(rows->first[s + 1] - rows->first[s]);
        rows->dense[s] = pli_aligned(((size_t)rows->n + 1) * stride);
        if (rows->dense[s] == NULL) return false;
    }
    pli_pool_for(w->run->pool, w->pieces, fill_dense, w);
    return make_columns(w);
}

static bool make_sparse(work *w) {
    pli_bin_rows *rows = w->rows;
    sparse_work   s = { .w = w, .odd = pli_array((size_t)w->bins->used, sizeof *s.odd) };
    rows->start = pli_calloc((size_t)rows->n + 1, sizeof *rows->start);
    for (int32_t j = 0; s.odd != NULL && j < w->bins->used; j++)
        if (w->bins->zero[j] != w->bins->common[j]) s.odd[s.odds++] = j;
    if (s.odd != NULL && rows->start != NULL) {
        pli_pool_for(w->run->pool, w->pieces, count_sparse, &s);
        for (int64_t i = 0; i < rows->n; i++) rows->start[i + 1] += rows->start[i];
        rows->entry = pli_array((size_t)rows->start[rows->n] + 1, sizeof *rows->entry);
    }
    if (rows->entry != NULL) pli_pool_for(w->run->pool, w->pieces, fill_sparse, &s);
    pli_free(s.odd);
    return rows->entry != NULL;
}

static bool make_arrays(const pli_run *run, bool split, pli_bin_rows *rows) {
    const size_t n = (size_t)rows->n;
    rows->weight = pli_array(n, sizeof *rows->weight);
    rows->target = pli_array(n, sizeof *rows->target);
    rows->number = pli_array(n, sizeof *rows->number);
    rows->score = pli_array(n, (size_t)pli_fit_of(run)->goal.columns * sizeof *rows->score);
    if (split) rows->held = pli_array(n, sizeof *rows->held);
    return rows->weight != NULL && rows->target != NULL && rows->number != NULL && rows->score != NULL &&
           (!split || rows->held != NULL);
}

/* Lists the blocks as pieces, and as parts of the rows. */
static bool list_blocks(work *w, int32_t n, const pli_block *const *block) {
    pli_bin_rows *rows = w->rows;
    w->piece = pli_array((size_t)n, sizeof *w->piece);
    rows->part = pli_calloc((size_t)n + 1, sizeof *rows->part);
    if (w->piece == NULL || rows->part == NULL) return false;
    for (int32_t b = 0; b < n; b++) {
        w->piece[b] = (piece){ .block = block[b], .first = rows->n };
        rows->part[rows->parts++] = (pli_rows_part){ .block = (int32_t)block[b]->number, .first = rows->n,
                                                     .n = block[b]->rows };
        rows->n += block[b]->rows;
    }
    return true;
}

plait_status pli_bin_rows_of(pli_run *run, const pli_bins *bins, const pli_dataset *data, int32_t n,
                             const pli_block *const *block, bool split, pli_bin_rows *rows) {
    work w = { .run = run, .bins = bins, .rows = rows, .pieces = n, .unknown = -1 };
    *rows = (pli_bin_rows){ .n = 0 };
    const bool ok = list_blocks(&w, n, block) && rows->n <= UINT32_MAX && make_arrays(run, split, rows) &&
                    (bins->filled < PLI_ROWS_SPARSE_BELOW ? make_sparse(&w) : make_dense(&w));
    pli_free(w.piece);
    const int64_t unknown = __atomic_load_n(&w.unknown, __ATOMIC_RELAXED);
    if (!ok) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the bins of %lld rows", (long long)rows->n);
    if (unknown >= 0) return pli_fail(run->err, PLAIT_EFORMAT, PLI_UNKNOWN_LABEL, (long long)unknown + 1);
    return pli_bin_rows_query(run, data, n, block, rows);
}

plait_status pli_bin_rows_make(pli_run *run, const pli_bins *bins, const pli_dataset *data, bool split,
                               pli_bin_rows *rows) {
    const int32_t     n = pli_dataset_own_blocks(data);
    const pli_block **block = pli_array((size_t)n, sizeof *block);
    if (block == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; b < n; b++) block[b] = pli_dataset_block(data, b);
    plait_status status = pli_bin_rows_of(run, bins, data, n, block, split, rows);
    pli_free(block);
    for (int32_t p = 0; p < rows->parts; p++) rows->part[p].steps = true;
    return status < 0 ? status : pli_bin_rows_agree(run, data, rows);
}

void pli_bin_rows_forget(pli_bin_rows *rows) {
    for (int32_t s = 0; rows->dense != NULL && s < rows->stretches; s++) pli_free(rows->dense[s]);
    pli_free(rows->dense);
    pli_free(rows->columns);
    pli_free(rows->column);
    pli_free(rows->first);
    pli_free(rows->start);
    pli_free(rows->entry);
    rows->stretches = 0;
    rows->first = NULL;
    rows->dense = rows->column = NULL;
    rows->columns = NULL;
    rows->start = NULL;
    rows->entry = NULL;
}

void pli_bin_rows_free(pli_bin_rows *rows) {
    pli_bin_rows_forget(rows);
    pli_free(rows->part);
    pli_free(rows->weight);
    pli_free(rows->target);
    pli_free(rows->number);
    pli_free(rows->held);
    pli_free(rows->votes);
    pli_free(rows->query);
    pli_free(rows->score);
    *rows = (pli_bin_rows){ 0 };
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

int32_t pli_bin_rows_at(const pli_bin_rows *rows, const pli_bins *bins, int64_t row, int32_t j) {
    if (rows->dense != NULL) return rows->column[j][row];
    int64_t low = rows->start[row], high = rows->start[row + 1]; /* the first entry from the feature's first bin on */
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if ((int64_t)rows->entry[middle] < bins->offset[j]) low = middle + 1;
        else high = middle;
    }
    const bool there = low < rows->start[row + 1] && (int64_t)rows->entry[low] < bins->offset[j + 1];
    return there ? (int32_t)((int64_t)rows->entry[low] - bins->offset[j]) : bins->common[j];
}

/* Which way a bin goes. */
static bool goes_left(const pli_bins *bins, const pli_tree_node *node, const int32_t *code, int32_t j, int32_t bin) {
    if (bin == bins->count[j]) return node->missing_left;
    if (node->codes == 0) return bin <= node->bin;
    return pli_tree_has_code(code, node, (int64_t)bins->cut[bins->cut_start[j] + bin]);
}

const pli_tree_node *pli_bin_rows_leaf(const pli_bin_rows *rows, const pli_bins *bins, const pli_tree_node *tree,
                                       const int32_t *code, int64_t row) {
    const pli_tree_node *node = tree;
    while (node->feature >= 0) {
        const int32_t j = bins->place[node->feature], bin = pli_bin_rows_at(rows, bins, row, j);
        node = tree + (goes_left(bins, node, code, j, bin) ? node->left : node->right);
    }
    return node;
}
