/* Some rows of a data set, as a data set of their own: the folds of a cross-validation, a sample. The rows are copied;
 * columns, dictionaries and labels mean what they meant in the whole, so that a model of some rows reads the others.
 * As many blocks are cut anew, at equal numbers of rows, but never within a query. */
#include <string.h>

#include "data/dataset/dataset.h"

/* Where rows of the whole are found by number: the block of each is searched from the one before. */
typedef struct finder {
    const pli_dataset *whole;
    int32_t            block;
    int64_t            before; /* rows in the blocks before `block` */
} finder;

static const pli_block *find(finder *f, int64_t row, int64_t *in_block_out) {
    if (row < f->before) f->block = 0, f->before = 0;
    while (row >= f->before + f->whole->rows[f->block].b.rows) f->before += f->whole->rows[f->block++].b.rows;
    *in_block_out = row - f->before;
    return &f->whole->rows[f->block].b;
}

static bool append_entries(const pli_block *from, int64_t first, int64_t n, pli_rows *to) {
    if (!pli_rows_reserve(to, n)) return false;
    if (from->value != NULL && !pli_rows_need_values(to)) return false;
    if (from->key != NULL && to->b.col != NULL && !pli_rows_widen(to)) return false;
    for (int64_t e = 0; e < n; e++) {
        const uint64_t key = pli_block_key(from, first + e);
        if (to->b.col != NULL)
            to->b.col[to->b.entries + e] = (uint32_t)key;
        else
            to->b.key[to->b.entries + e] = key;
        if (to->b.value != NULL) to->b.value[to->b.entries + e] = from->value != NULL ? from->value[first + e] : 1.0f;
    }
    to->b.entries += n;
    return true;
}

static bool append(const pli_block *from, int64_t row, pli_rows *to) {
    const int64_t first = from->row_start[row];
    if (!pli_rows_reserve_rows(to, 1)) return false;
    if (from->weight != NULL && !pli_rows_need_weights(to)) return false;
    if (from->query != NULL && !pli_rows_need_queries(to)) return false;
    if (!append_entries(from, first, from->row_start[row + 1] - first, to)) return false;
    pli_block *b = &to->b;
    b->label[b->rows] = from->label[row];
    if (b->weight != NULL) b->weight[b->rows] = from->weight != NULL ? from->weight[row] : 1.0f;
    if (b->query != NULL) b->query[b->rows] = from->query != NULL ? from->query[row] : 0;
    b->earlier = from->earlier;
    b->row_start[++b->rows] = b->entries;
    return true;
}

/* Is this row of the query of the last of `to`? */
static bool goes_on(const pli_block *from, int64_t row, const pli_rows *to) {
    return from->query != NULL && to->b.query != NULL && to->b.rows > 0 && from->query[row] != 0 &&
           from->query[row] == to->b.query[to->b.rows - 1];
}

static bool fill_blocks(pli_dataset *d, finder *f, const int64_t *rows, int64_t n) {
    int64_t at = 0;
    for (int32_t block = 0; block < d->blocks; block++) {
        pli_rows     *to = &d->rows[block];
        const int64_t end = n * (block + 1) / d->blocks;
        to->b.number = block;
        to->b.first_row = at;
        if (!pli_rows_reserve_rows(to, end > at ? end - at : 1) || !pli_rows_reserve(to, 1)) return false;
        for (int64_t row; at < n; at++) {
            const pli_block *from = find(f, rows[at], &row);
            if (at >= end && !goes_on(from, row, to)) break;
            if (!append(from, row, to)) return false;
        }
        pli_rows_shrink(to);
    }
    return true;
}

plait_status pli_dataset_take(const pli_dataset *whole, const int64_t *rows, int64_t n, pli_dataset **dataset_out,
                              plait_error *err) {
    pli_dataset *d = pli_calloc(1, sizeof *d);
    if (d == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    d->workers = 1;
    d->blocks = d->own = whole->blocks > PLI_MIN_BLOCKS ? whole->blocks : PLI_MIN_BLOCKS;
    d->rows = pli_calloc((size_t)d->blocks, sizeof *d->rows);
    d->schema = pli_schema_copy(whole->schema);
    finder f = { .whole = whole };
    if (d->rows == NULL || d->schema == NULL || !fill_blocks(d, &f, rows, n)) {
        pli_dataset_destroy(&d);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows", (long long)n);
    }
    pli_free(d->schema->segment_rows);
    d->schema->segment_rows = NULL;
    d->schema->segments = 0;
    d->schema->rows = n;
    d->unlabelled = whole->unlabelled;
    d->loaded = true;
    *dataset_out = d;
    return PLAIT_OK;
}
