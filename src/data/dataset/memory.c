/* plait_data: a whole data set in memory, read from files or given by the caller (given.c). It is the data set of one
 * worker that owns all blocks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/dataset/dataset.h"

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

plait_status pli_data_read_bytes(const plait_data_opts *given, const pli_schema *fixed, const char *name,
                                 const char *text, size_t bytes, plait_data **data_out, plait_error *err) {
    plait_data_opts opts;
    PLI_TRY(pli_data_opts_take(given, &opts, err));
    opts.cache = 0;
    plait_data *data = pli_calloc(1, sizeof *data);
    if (data == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    plait_status status = pli_dataset_open_bytes(&opts, fixed, name, text, bytes, &data->dataset, err);
    if (status >= 0) status = pli_dataset_load(data->dataset, NULL, err);
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

/* --- questions ----------------------------------------------------------------------------------------------- */

static plait_status check_taken(const plait_data *data, const int64_t *rows, int64_t n, plait_error *err) {
    const int64_t there = plait_data_rows(data);
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "%lld rows: expected at least one", (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (rows[i] < 0 || rows[i] >= there)
            return pli_fail(err, PLAIT_EINVAL, "rows[%lld]: there is no row %lld; there are %lld, from 0",
                            (long long)i, (long long)rows[i], (long long)there);
    return PLAIT_OK;
}

plait_status plait_data_take(const plait_data *data, const int64_t *rows, int64_t n, plait_data **data_out,
                             plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN_OF(error_out, n, rows));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    PLI_TRY(check_taken(data, rows, n, error_out));
    plait_data *taken = pli_calloc(1, sizeof *taken);
    if (taken == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for a data set");
    const plait_status status = pli_dataset_take(data->dataset, rows, n, &taken->dataset, error_out);
    if (status < 0)
        plait_data_destroy(&taken);
    else
        *data_out = taken;
    return status;
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
    pli_given_back(*data);
    pli_dataset_destroy(&(*data)->dataset);
    pli_free((*data)->own_column);
    pli_free((*data)->own_value);
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
