/* plait_data: a whole data set in memory, read from files or given by the caller. It is the data set of one worker
 * that owns all blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"

struct plait_data {
    pli_dataset *dataset;
};

void (plait_data_opts_init)(plait_data_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_data_opts){
        .size = sizeof *opts, .format = "auto", .index_base = "auto", .header = "auto", .threads = 1
    };
}

void plait_data_opts_init_sized(plait_data_opts *opts, size_t size) {
    plait_data_opts all;
    (plait_data_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

plait_status pli_data_opts_take(const plait_data_opts *given, plait_data_opts *own, plait_error *err) {
    plait_data_opts_init(own);
    return pli_sized_take(own, sizeof *own, PLI_SIZED_END(plait_data_opts, log), given, "plait_data_opts", err);
}

static plait_status read_all(const plait_data_opts *opts, const pli_schema *fixed, plait_data *data, plait_error *err) {
    pli_pool *pool = NULL;
    PLI_TRY(pli_dataset_open(opts, fixed, 0, 1, &data->dataset, err));
    if (opts->threads > 1) PLI_TRY(pli_pool_create(opts->threads, &pool, err));
    plait_status status = pli_dataset_load(data->dataset, pool, err);
    pli_pool_destroy(&pool);
    return status;
}

plait_status pli_data_read(const plait_data_opts *given, const pli_schema *fixed, plait_data **data_out,
                           plait_error *err) {
    plait_data_opts opts;
    PLI_TRY(pli_data_opts_take(given, &opts, err));
    plait_data *data = pli_calloc(1, sizeof *data);
    if (data == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    plait_status status = read_all(&opts, fixed, data, err);
    if (status < 0)
        plait_data_destroy(&data);
    else
        *data_out = data;
    return status;
}

plait_status plait_data_read(const plait_data_opts *opts, plait_data **data_out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, opts));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    return pli_data_read(opts, NULL, data_out, error_out);
}

/* --- from rows of the caller ------------------------------------------------------------------------------ */

#define ROWS_MAX (INT64_MAX / 1024) /* blocks and bytes of rows multiply it */

typedef struct given_rows {
    int64_t         rows, features;
    const int64_t  *row_start;
    const uint32_t *column;
    const float    *value; /* csr: [entries] or NULL; dense: [rows, features] */
    const double   *label, *weight;
    bool            dense;
} given_rows;

static plait_status check_rows(const given_rows *g, plait_error *err) {
    const int64_t most = g->dense && g->features > 0 ? ROWS_MAX / g->features : ROWS_MAX;
    if (g->rows < 1 || g->rows > most || g->features < 0 || g->features > (int64_t)UINT32_MAX + 1)
        return pli_fail(err, PLAIT_EINVAL,
                        "%lld rows of %lld features: expected 1 to %lld rows, and columns below 2^32",
                        (long long)g->rows, (long long)g->features, (long long)most);
    if (!g->dense && g->row_start[0] != 0) return pli_fail(err, PLAIT_EINVAL, "row_start[0]: expected 0");
    for (int64_t i = 0; i < g->rows; i++) {
        if (g->label != NULL && !isfinite(g->label[i]))
            return pli_fail(err, PLAIT_EINVAL, "label of row %lld: expected a finite number", (long long)i);
        if (g->weight != NULL && !(g->weight[i] >= 0 && g->weight[i] < 3e38))
            return pli_fail(err, PLAIT_EINVAL, "weight of row %lld: expected a finite number, not negative",
                            (long long)i);
        if (!g->dense && g->row_start[i + 1] < g->row_start[i])
            return pli_fail(err, PLAIT_EINVAL, "row_start decreases at row %lld", (long long)i);
    }
    return PLAIT_OK;
}

static bool append_row(const given_rows *g, int64_t row, pli_rows *to, plait_error *err) {
    int64_t from = g->dense ? row * g->features : g->row_start[row];
    int64_t n = g->dense ? g->features : g->row_start[row + 1] - from;
    if (!pli_rows_reserve(to, n) || !pli_rows_reserve_rows(to, 1))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for rows"), false;
    for (int64_t k = 0; k < n; k++) {
        uint32_t column = g->dense ? (uint32_t)k : g->column[from + k];
        float    value = g->value != NULL ? g->value[from + k] : 1.0f;
        if (!isfinite(value))
            return pli_fail(err, PLAIT_EINVAL, "row %lld, column %u: expected a finite number", (long long)row, column),
                   false;
        if (!g->dense && (column >= g->features || (k > 0 && column <= g->column[from + k - 1])))
            return pli_fail(err, PLAIT_EINVAL, "row %lld: expected columns below %lld that increase, found %u",
                            (long long)row, (long long)g->features, column),
                   false;
        if (g->dense && value == 0.0f) continue;
        if (value != 1.0f && !pli_rows_need_values(to)) return pli_fail(err, PLAIT_ENOMEM, "no memory for rows"), false;
        to->b.col[to->b.entries] = column;
        if (to->b.value != NULL) to->b.value[to->b.entries] = value;
        to->b.entries++;
    }
    to->b.label[to->b.rows] = g->label != NULL ? g->label[row] + 0.0 : (double)NAN;
    if (to->b.weight != NULL) to->b.weight[to->b.rows] = (float)g->weight[row];
    to->b.row_start[++to->b.rows] = to->b.entries;
    return true;
}

static plait_status fill_block(const given_rows *g, int32_t block, pli_dataset *d, pli_found *found, plait_error *err) {
    pli_rows *to = &d->rows[block];
    int64_t   from = g->rows * block / d->blocks, end = g->rows * (block + 1) / d->blocks;
    bool      good = pli_rows_reserve_rows(to, end - from) && pli_rows_reserve(to, 1) &&
                (g->weight == NULL || pli_rows_need_weights(to));
    if (!good) return pli_fail(err, PLAIT_ENOMEM, "no memory for rows");
    to->b.number = block;
    to->b.first_row = from;
    for (int64_t row = from; row < end; row++) {
        if (!append_row(g, row, to, err)) return err != NULL ? err->code : PLAIT_EINVAL;
        if (!pli_found_label(found, to->b.label[row - from]))
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the labels");
    }
    pli_rows_shrink(to);
    return PLAIT_OK;
}

static plait_status fill(const given_rows *g, pli_dataset *d, pli_found *found, plait_error *err) {
    PLI_TRY(check_rows(g, err));
    d->workers = 1;
    d->blocks = d->own = PLI_MIN_BLOCKS;
    d->rows = pli_calloc(PLI_MIN_BLOCKS, sizeof *d->rows);
    d->schema = pli_schema_create();
    if (d->rows == NULL || d->schema == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    for (int32_t block = 0; block < d->blocks; block++) PLI_TRY(fill_block(g, block, d, found, err));
    PLI_TRY(pli_dataset_join_found(d, found, 1, err));
    d->schema->rows = g->rows;
    d->schema->features = g->features;
    d->schema->unlabelled = g->label == NULL;
    d->loaded = true;
    return PLAIT_OK;
}

static plait_status create(const given_rows *g, plait_data **data_out, plait_error *error_out) {
    plait_error local = { .code = PLAIT_OK }, *err = error_out != NULL ? error_out : &local;
    pli_found   found = { 0 };
    plait_data *data = pli_calloc(1, sizeof *data);
    if (data == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    data->dataset = pli_calloc(1, sizeof *data->dataset);
    plait_status status = data->dataset != NULL ? fill(g, data->dataset, &found, err)
                                                : pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    pli_found_free(&found);
    if (status < 0)
        plait_data_destroy(&data);
    else
        *data_out = data;
    return status;
}

plait_status plait_data_from_csr(int64_t rows, int64_t features, const int64_t *row_start, const uint32_t *column,
                                 const float *value, const double *label, const double *weight, plait_data **data_out,
                                 plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, row_start));
    PLI_TRY(PLI_GIVEN_OF(error_out, rows > 0 && rows <= ROWS_MAX ? row_start[rows] : 0, column));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    given_rows g = { rows, features, row_start, column, value, label, weight, false };
    return create(&g, data_out, error_out);
}

plait_status plait_data_from_dense(int64_t rows, int64_t features, const float *x, const double *label,
                                   const double *weight, plait_data **data_out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN_OF(error_out, features, x));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    given_rows g = { rows, features, NULL, NULL, x, label, weight, true };
    return create(&g, data_out, error_out);
}

int64_t plait_data_rows(const plait_data *data) { return data == NULL ? 0 : data->dataset->schema->rows; }
int plait_data_has_labels(const plait_data *data) {
    return data != NULL && pli_schema_has_labels(data->dataset->schema);
}

int64_t plait_data_labels(const plait_data *data) {
    int64_t labels = 0;
    for (int32_t b = 0; data != NULL && b < data->dataset->own; b++)
        for (int64_t r = 0; r < data->dataset->rows[b].b.rows; r++)
            labels += pli_block_labels(&data->dataset->rows[b].b, r);
    return labels;
}

int64_t plait_data_features(const plait_data *data) { return data == NULL ? 0 : data->dataset->schema->features; }

/* --- its rows ------------------------------------------------------------------------------------------------ */

int32_t plait_data_blocks(const plait_data *data) { return data == NULL ? 0 : data->dataset->own; }

int64_t plait_data_block_rows(const plait_data *data, int32_t block) {
    return block < 0 || block >= plait_data_blocks(data) ? 0 : data->dataset->rows[block].b.rows;
}

plait_status plait_data_row(const plait_data *data, int32_t block, int64_t row, plait_row *row_out,
                            plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, row_out));
    const int64_t rows = plait_data_block_rows(data, block);
    if (row < 0 || row >= rows)
        return pli_fail(error_out, PLAIT_EINVAL, "row %lld of block %d: there are %d blocks, and %lld rows in this one",
                        (long long)row, block, plait_data_blocks(data), (long long)rows);
    pli_block_row(&data->dataset->rows[block].b, row, row_out);
    return PLAIT_OK;
}

void pli_block_row(const pli_block *b, int64_t row, plait_row *row_out) {
    const int64_t from = b->row_start[row];
    *row_out = (plait_row){ .n = b->row_start[row + 1] - from,
                            .column = b->col != NULL ? b->col + from : NULL,
                            .key = b->col == NULL && b->key != NULL ? b->key + from : NULL,
                            .value = b->value != NULL ? b->value + from : NULL,
                            .label = b->label[row],
                            .weight = b->weight != NULL ? (double)b->weight[row] : 1 };
}

/* --- its end ------------------------------------------------------------------------------------------------- */

void plait_data_destroy(plait_data **data) {
    if (data == NULL || *data == NULL) return;
    pli_dataset_destroy(&(*data)->dataset);
    pli_free(*data);
    *data = NULL;
}

/* --- as a dataset of one of several workers ------------------------------------------------------------------ */

pli_block pli_memory_block(const pli_dataset *d, int32_t block) {
    pli_block b = d->whole->rows[pli_piece_of(d, block)].b;
    b.number = block;
    return b;
}

static plait_status of_memory(const plait_data *data, bool dealt, int32_t worker, int32_t workers,
                              pli_dataset **dataset_out, plait_error *err) {
    const pli_dataset *all = data->dataset;
    if (workers < 1 || worker < 0)
        return pli_fail(err, PLAIT_EINVAL, "worker %d of %d", worker, workers);
    pli_dataset *d = pli_calloc(1, sizeof *d);
    if (d == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    *d = (pli_dataset){
        .blocks = all->blocks, .worker = worker, .workers = workers, .of_memory = true, .loaded = true, .agreed = true,
        .whole = all, .dealt = dealt
    };
    pli_dataset_own(d);
    d->rows = pli_calloc((size_t)d->own, sizeof *d->rows);
    d->schema = pli_schema_copy(all->schema);
    if (d->rows == NULL || d->schema == NULL || pli_dataset_deal(d, err) < 0) {
        pli_dataset_destroy(&d);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    }
    for (int32_t i = 0; i < d->own; i++) d->rows[i].b = pli_memory_block(d, d->first + i);
    *dataset_out = d;
    return PLAIT_OK;
}

plait_status pli_dataset_of_memory(const plait_data *data, int32_t worker, int32_t workers, pli_dataset **dataset_out,
                                   plait_error *err) {
    return of_memory(data, false, worker, workers, dataset_out, err);
}

plait_status pli_dataset_of_memory_dealt(const plait_data *data, int32_t worker, int32_t workers,
                                         pli_dataset **dataset_out, plait_error *err) {
    return of_memory(data, true, worker, workers, dataset_out, err);
}
