/* Two replicas (--replicas 2): a worker's features of all rows, read by itself. An exchange of bins (columns.c) needs
 * every worker until its end, and who dies later takes features along. So with two replicas each worker reads all
 * blocks of the data, one at a time, and keeps the bins of its own features. When a worker dies, an heir reads the
 * blocks once more, with the dead worker's features among its own (cut_features.c).
 *
 * Features are dealt out in their order. Those of a dead worker may lie apart from the heir's own: then the worker's
 * histograms have room for the features between, too, and say that they lack them (pli_bins.lacks). */
#include <string.h>

#include "learn/trees/trees.h"

typedef struct reading {
    pli_run        *run;
    const pli_bins *bins;
    pli_bin_rows   *to;
    bool            whole;    /* what rows have beside their bins is taken, too */
    int64_t         n;        /* rows so far */
    int64_t         capacity; /* of entries  */
} reading;

static plait_status no_memory(const reading *r) {
    return pli_fail(r->run->err, PLAIT_ENOMEM, "no memory for the columns of %lld rows", (long long)r->to->n);
}

static plait_status other_rows(const reading *r, const char *more) {
    return pli_fail(r->run->err, PLAIT_EFORMAT, "the data have %s rows than the %lld that were read before", more,
                    (long long)r->to->n);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static bool make_columns(const pli_bins *bins, pli_bin_rows *to) {
    size_t held = 0, at = 0;
    for (int32_t j = bins->from; j < bins->to; j++) held += pli_bins_has(bins, j);
    to->column = pli_calloc((size_t)bins->used, sizeof *to->column);
    to->columns = pli_aligned(((size_t)to->n + 1) * (held + 1));
    for (int32_t j = bins->from; to->columns != NULL && to->column != NULL && j < bins->to; j++)
        if (pli_bins_has(bins, j)) to->column[j] = to->columns + at++ * (size_t)to->n;
    return to->column != NULL && to->columns != NULL;
}

static bool make_bins(const reading *r) {
    if (r->bins->filled >= PLI_ROWS_SPARSE_BELOW) return make_columns(r->bins, r->to);
    r->to->start = pli_calloc((size_t)r->to->n + 1, sizeof *r->to->start);
    return r->to->start != NULL;
}

static bool make_arrays(const reading *r, const pli_bin_rows *like) {
    pli_bin_rows *to = r->to;
    const size_t  n = (size_t)to->n;
    to->part = pli_calloc((size_t)pli_dataset_blocks(r->run->data) + 1, sizeof *to->part);
    to->weight = pli_array(n, sizeof *to->weight);
    to->target = pli_array(n, sizeof *to->target);
    to->number = pli_array(n, sizeof *to->number);
    to->score = pli_array(n, (size_t)pli_fit_of(r->run)->goal.columns * sizeof *to->score);
    if (like->held != NULL) to->held = pli_array(n, sizeof *to->held);
    if (like->votes != NULL) to->votes = pli_array(n, sizeof *to->votes);
    if (like->query != NULL) to->query = pli_array(n + 1, sizeof *to->query);
    return to->part != NULL && to->weight != NULL && to->target != NULL && to->number != NULL && to->score != NULL &&
           (like->held == NULL || to->held != NULL) && (like->votes == NULL || to->votes != NULL) &&
           (like->query == NULL || to->query != NULL);
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

/* The rows have all features here: they walk down the trees that there are. */
static plait_status score(const reading *r, pli_bin_rows *piece) {
    pli_gbdt     *t = pli_gbdt_of(r->run);
    pli_bin_rows *rows = t->grower.rows;
    if (r->to->votes != NULL) {
        piece->votes = pli_calloc((size_t)piece->n + 1, sizeof *piece->votes);
        if (piece->votes == NULL) return no_memory(r);
    }
    t->grower.rows = piece;
    pli_scores_begin(&t->trees, piece, 0);
    pli_scores_add(r->run, piece, 0, 0, t->trees.n);
    t->grower.rows = rows;
    return PLAIT_OK;
}

static void take_rows(const reading *r, const pli_bin_rows *piece) {
    pli_bin_rows *to = r->to;
    const size_t  n = (size_t)piece->n;
    to->part[to->parts++] = (pli_rows_part){ .block = piece->part[0].block, .first = r->n, .n = piece->n,
                                             .steps = true };
    memcpy(to->weight + r->n, piece->weight, n * sizeof *to->weight);
    memcpy(to->target + r->n, piece->target, n * sizeof *to->target);
    memcpy(to->number + r->n, piece->number, n * sizeof *to->number);
    if (to->held != NULL) memcpy(to->held + r->n, piece->held, n * sizeof *to->held);
    if (to->votes != NULL) memcpy(to->votes + r->n, piece->votes, n * sizeof *to->votes);
    for (int64_t c = 0; c < pli_fit_of(r->run)->goal.columns; c++)
        memcpy(to->score + c * to->n + r->n, piece->score + c * piece->n, n * sizeof *to->score);
    for (int64_t q = 0; q < piece->queries; q++) to->query[to->queries++] = r->n + piece->query[q];
}

/* The entries of own features. */
static plait_status take_entries(reading *r, const pli_bin_rows *piece) {
    pli_bin_rows *to = r->to;
    void         *entry = to->entry;
    int64_t       at = to->start[r->n];
    const bool    ok = pli_grow(&entry, &r->capacity, at + piece->start[piece->n] + 1, sizeof *to->entry);
    to->entry = entry;
    if (!ok) return no_memory(r);
    for (int64_t i = 0; i < piece->n; i++) {
        int32_t j = r->bins->from;
        for (int64_t e = piece->start[i]; e < piece->start[i + 1]; e++) {
            while (j < r->bins->to && r->bins->offset[j + 1] <= (int64_t)piece->entry[e]) j++;
            if (j < r->bins->to && r->bins->offset[j] <= (int64_t)piece->entry[e] && pli_bins_has(r->bins, j))
                to->entry[at++] = piece->entry[e];
        }
        to->start[r->n + i + 1] = at;
    }
    return PLAIT_OK;
}

static plait_status take_piece(reading *r, pli_bin_rows *piece) {
    if (r->n + piece->n > r->to->n) return other_rows(r, "more");
    if (r->whole) {
        PLI_TRY(score(r, piece));
        take_rows(r, piece);
    }
    if (piece->dense == NULL) PLI_TRY(take_entries(r, piece));
    for (int32_t j = r->bins->from; piece->dense != NULL && j < r->bins->to; j++)
        if (pli_bins_has(r->bins, j)) memcpy(r->to->column[j] + r->n, piece->column[j], (size_t)piece->n);
    r->n += piece->n;
    return PLAIT_OK;
}

static plait_status take_block(reading *r, int32_t block, bool split) {
    pli_borrowed *borrowed = NULL;
    pli_bin_rows  piece = { 0 };
    plait_status  status = pli_dataset_borrow(r->run->data, block, &borrowed, r->run->err);
    if (status >= 0)
        status = pli_bin_rows_of(r->run, r->bins, r->run->data, 1, &(const pli_block *){ pli_borrowed_block(borrowed) },
                                 split, &piece);
    if (status >= 0) status = take_piece(r, &piece);
    pli_bin_rows_free(&piece);
    pli_borrowed_free(&borrowed);
    return status;
}

/* --- all ---------------------------------------------------------------------------------------------------------- */

static plait_status read_all(reading *r, bool split) {
    for (int32_t b = 0; b < pli_dataset_blocks(r->run->data); b++) PLI_TRY(take_block(r, b, split));
    if (r->n < r->to->n) return other_rows(r, "fewer");
    if (r->to->query != NULL) r->to->query[r->to->queries] = r->to->n;
    return r->to->column == NULL || pli_columns_stretch(r->run, r->bins, r->to) ? PLAIT_OK : no_memory(r);
}

plait_status pli_bin_rows_read(pli_run *run, const pli_bins *bins, pli_bin_rows *rows) {
    pli_bin_rows all = { .n = run->rows, .of_all = true };
    reading      r = { .run = run, .bins = bins, .to = &all, .whole = true };
    plait_status status = make_arrays(&r, rows) && make_bins(&r) ? PLAIT_OK : no_memory(&r);
    if (status >= 0) status = read_all(&r, rows->held != NULL);
    pli_bin_rows_free(status >= 0 ? rows : &all);
    if (status >= 0) *rows = all;
    return status;
}

plait_status pli_bin_rows_read_again(pli_run *run, const pli_bins *bins, pli_bin_rows *rows) {
    reading r = { .run = run, .bins = bins, .to = rows };
    pli_bin_rows_forget(rows);
    return make_bins(&r) ? read_all(&r, rows->held != NULL) : no_memory(&r);
}

plait_status pli_bins_hold(const pli_run *run, pli_bins *bins, const bool *mine) {
    const int32_t used = bins->used;
    if (bins->lacks == NULL) bins->lacks = pli_array((size_t)used + 1, sizeof *bins->lacks);
    if (bins->lacks == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of %d features", (int)used);
    bins->from = bins->to = 0;
    for (int32_t j = 0; j < used; j++) {
        bins->lacks[j] = !mine[pli_bins_owner(bins, pli_run_holders(run), j)];
        if (bins->lacks[j]) continue;
        if (bins->to == 0) bins->from = j;
        bins->to = j + 1;
    }
    return PLAIT_OK;
}
