/* Data sets of rows that the caller has in memory (plait/memory.h).
 *
 * Rows are cut into blocks and checked, entry by entry, before any is used. Then a block's entries are either copied,
 * or lent: its columns and values begin inside the caller's arrays, and only its row starts are its own. */
#include <math.h>
#include <string.h>

#include <plait/memory.h>

#include "data/dataset/dataset.h"

#define ROWS_MAX (INT64_MAX / 2 / PLI_MAX_BLOCKS) /* blocks and bytes of rows multiply it */

void (plait_memory_opts_init)(plait_memory_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_memory_opts){ .size = sizeof *opts, .type = PLAIT_F32, .row_start_bytes = 8, .column_bytes = 4 };
}

void plait_memory_opts_init_sized(plait_memory_opts *opts, size_t size) {
    plait_memory_opts all;
    (plait_memory_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- reading the caller's arrays ---------------------------------------------------------------------------------- */

static bool is_sparse(const plait_memory_opts *g) { return g->layout == PLAIT_CSR; }

static int64_t start_of(const plait_memory_opts *g, int64_t row) {
    return g->row_start_bytes == 8 ? ((const int64_t *)g->row_start)[row] : ((const int32_t *)g->row_start)[row];
}

/* A negative column becomes one that is out of range. */
static uint64_t column_of(const plait_memory_opts *g, int64_t entry) {
    return g->column_bytes == 8 ? ((const uint64_t *)g->column)[entry] : ((const uint32_t *)g->column)[entry];
}

static float value_of(const plait_memory_opts *g, int64_t at) {
    if (g->values == NULL) return 1;
    return g->type == PLAIT_F64 ? (float)((const double *)g->values)[at] : ((const float *)g->values)[at];
}

/* Where value j of a dense row lies. */
static int64_t place_of(const plait_memory_opts *g, int64_t row, int64_t j) {
    return g->layout == PLAIT_DENSE_ROWS ? row * g->stride + j : j * g->stride + row;
}

/* --- are they right? ---------------------------------------------------------------------------------------------- */

static plait_status check_shape(plait_memory_opts *g, plait_error *err) {
    const int64_t each = is_sparse(g) ? 1 : g->layout == PLAIT_DENSE_ROWS ? g->features : g->rows;
    const int64_t other = is_sparse(g) ? 1 : g->layout == PLAIT_DENSE_ROWS ? g->rows : g->features;
    if (g->rows < 1 || g->rows > ROWS_MAX || g->features < 0 || g->features > (int64_t)UINT32_MAX + 1)
        return pli_fail(err, PLAIT_EINVAL,
                        "%lld rows of %lld features: expected 1 to %lld rows, and columns below 2^32",
                        (long long)g->rows, (long long)g->features, (long long)ROWS_MAX);
    if (g->layout != PLAIT_CSR && g->layout != PLAIT_DENSE_ROWS && g->layout != PLAIT_DENSE_COLUMNS)
        return pli_fail(err, PLAIT_EINVAL, "layout %d: expected a plait_layout", (int)g->layout);
    if (g->blocks != 0 && (g->blocks < PLI_MIN_BLOCKS || g->blocks > PLI_MAX_BLOCKS))
        return pli_fail(err, PLAIT_EINVAL, "blocks %d: expected %d to %d, or 0 for as many as suit the rows", g->blocks,
                        (int)PLI_MIN_BLOCKS, (int)PLI_MAX_BLOCKS);
    if (g->type != PLAIT_F32 && g->type != PLAIT_F64)
        return pli_fail(err, PLAIT_EINVAL, "values of type %d: expected PLAIT_F32 or PLAIT_F64", (int)g->type);
    if ((g->row_start_bytes != 4 && g->row_start_bytes != 8) || (g->column_bytes != 4 && g->column_bytes != 8))
        return pli_fail(err, PLAIT_EINVAL, "row starts of %d and columns of %d bytes: expected 4 or 8",
                        (int)g->row_start_bytes, (int)g->column_bytes);
    if (g->stride == 0) g->stride = each;
    if (g->stride < each || (other > 0 && g->stride > ROWS_MAX / other))
        return pli_fail(err, PLAIT_EINVAL, "a stride of %lld: expected at least %lld, and no array above 2^53 values",
                        (long long)g->stride, (long long)each);
    return PLAIT_OK;
}

static plait_status check_given(const plait_memory_opts *g, const char *call, plait_error *err) {
    if (!is_sparse(g)) return g->values != NULL || g->features == 0 ? PLAIT_OK : pli_fail_null(err, call, "values");
    if (g->row_start == NULL) return pli_fail_null(err, call, "row_start");
    if (start_of(g, 0) != 0) return pli_fail(err, PLAIT_EINVAL, "row_start[0]: expected 0");
    for (int64_t i = 0; i < g->rows; i++)
        if (start_of(g, i + 1) < start_of(g, i) || start_of(g, i + 1) > ROWS_MAX)
            return pli_fail(err, PLAIT_EINVAL, "row_start decreases at row %lld, or is too large", (long long)i);
    return start_of(g, g->rows) == 0 || g->column != NULL ? PLAIT_OK : pli_fail_null(err, call, "column");
}

static plait_status check_labels(const plait_memory_opts *g, plait_error *err) {
    for (int64_t i = 0; i < g->rows; i++) {
        if (g->label != NULL && !isfinite(g->label[i]))
            return pli_fail(err, PLAIT_EINVAL, "label of row %lld: expected a finite number", (long long)i);
        if (g->weight != NULL && !(g->weight[i] >= 0 && g->weight[i] < 3e38))
            return pli_fail(err, PLAIT_EINVAL, "weight of row %lld: expected a finite number, not negative",
                            (long long)i);
    }
    return PLAIT_OK;
}

/* false: the value is neither finite nor a missing one that may stay. */
static bool check_value(const plait_memory_opts *g, int64_t row, uint64_t column, float value, bool *missing,
                        plait_error *err) {
    if (isfinite(value)) return true;
    if (isnan(value) && g->keep_missing) return *missing = true;
    if (isnan(value))
        pli_fail(err, PLAIT_EINVAL,
                 "row %lld, column %llu: a missing number (NaN), expected a finite number; keep_missing keeps it for "
                 "models that can learn from that (gbdt, forest)", (long long)row, (unsigned long long)column);
    else
        pli_fail(err, PLAIT_EINVAL, "row %lld, column %llu: expected a finite number, in the range of a float",
                 (long long)row, (unsigned long long)column);
    return false;
}

static plait_status check_entries(const plait_memory_opts *g, int64_t row, bool *missing, plait_error *err) {
    const int64_t from = start_of(g, row), to = start_of(g, row + 1);
    for (int64_t e = from; e < to; e++) {
        const uint64_t column = column_of(g, e);
        if (column >= (uint64_t)g->features || (e > from && column <= column_of(g, e - 1)))
            return pli_fail(err, PLAIT_EINVAL, "row %lld: expected columns below %lld that increase, found %lld",
                            (long long)row, (long long)g->features,
                            (long long)(g->column_bytes == 4 && column > INT32_MAX && g->features <= INT32_MAX
                                            ? (int32_t)column : (int64_t)column));
        if (!check_value(g, row, column, value_of(g, e), missing, err)) return PLAIT_EINVAL;
    }
    return PLAIT_OK;
}

/* --- a block ------------------------------------------------------------------------------------------------------ */

static plait_status no_memory(plait_error *err) { return pli_fail(err, PLAIT_ENOMEM, "no memory for rows"); }

static bool append(pli_rows *to, uint32_t column, float value) {
    if (value != 1.0f && !pli_rows_need_values(to)) return false;
    to->b.col[to->b.entries] = column;
    if (to->b.value != NULL) to->b.value[to->b.entries] = value;
    to->b.entries++;
    return true;
}

static plait_status copy_sparse(const plait_memory_opts *g, int64_t row, pli_rows *to, bool *missing,
                                plait_error *err) {
    const int64_t from = start_of(g, row), n = start_of(g, row + 1) - from;
    PLI_TRY(check_entries(g, row, missing, err));
    if (!pli_rows_reserve(to, n)) return no_memory(err);
    for (int64_t e = from; e < from + n; e++)
        if (!append(to, (uint32_t)column_of(g, e), value_of(g, e))) return no_memory(err);
    return PLAIT_OK;
}

static plait_status copy_dense(const plait_memory_opts *g, int64_t row, pli_rows *to, bool *missing,
                               plait_error *err) {
    if (!pli_rows_reserve(to, g->features)) return no_memory(err);
    for (int64_t j = 0; j < g->features; j++) {
        const float value = value_of(g, place_of(g, row, j));
        if (value == 0) continue;
        if (!check_value(g, row, (uint64_t)j, value, missing, err)) return PLAIT_EINVAL;
        if (!append(to, (uint32_t)j, value)) return no_memory(err);
    }
    return PLAIT_OK;
}

/* Columns and values of rows [from, end) stay where they are. */
static void lend(const plait_memory_opts *g, int64_t from, int64_t end, pli_rows *to) {
    const int64_t first = start_of(g, from);
    to->b.col = (uint32_t *)(uintptr_t)g->column + first; /* nothing writes to a data set in memory */
    to->b.value = g->values != NULL ? (float *)(uintptr_t)g->values + first : NULL;
    to->b.entries = start_of(g, end) - first;
}

static plait_status fill_block(const plait_memory_opts *g, pli_rows *to, pli_found *found, bool *missing,
                               plait_error *err) {
    const int64_t from = to->b.first_row, end = from + to->row_capacity;
    for (int64_t row = from; row < end; row++) {
        if (g->lend) PLI_TRY(check_entries(g, row, missing, err));
        else if (is_sparse(g)) PLI_TRY(copy_sparse(g, row, to, missing, err));
        else PLI_TRY(copy_dense(g, row, to, missing, err));
        const double label = g->label != NULL ? g->label[row] + 0.0 : (double)NAN;
        to->b.label[row - from] = label;
        if (to->b.weight != NULL) to->b.weight[row - from] = (float)g->weight[row];
        to->b.row_start[++to->b.rows] = g->lend ? start_of(g, row + 1) - start_of(g, from) : to->b.entries;
        if (!pli_found_label(found, label)) return pli_fail(err, PLAIT_ENOMEM, "no memory for the labels");
    }
    if (g->lend) lend(g, from, end, to);
    else pli_rows_shrink(to);
    return PLAIT_OK;
}

static plait_status make_block(const plait_memory_opts *g, int32_t block, pli_dataset *d, pli_found *found,
                               bool *missing, plait_error *err) {
    pli_rows *to = &d->rows[block];
    to->b.number = block;
    to->b.first_row = g->rows * block / d->blocks;
    const int64_t n = g->rows * (block + 1) / d->blocks - to->b.first_row;
    const bool    made = pli_rows_reserve_rows(to, n) && (g->lend || pli_rows_reserve(to, 1)) &&
                      (g->weight == NULL || pli_rows_need_weights(to));
    if (!made) return no_memory(err);
    to->row_capacity = n; /* what lies behind is given back, or was never touched */
    return fill_block(g, to, found, missing, err);
}

/* --- the data set ------------------------------------------------------------------------------------------------- */

/* What the rows take as Plait keeps them, if none of a dense array's values is 0. */
static uint64_t bytes_of(const plait_memory_opts *g) {
    const unsigned __int128 entries = is_sparse(g) ? (unsigned __int128)start_of(g, g->rows)
                                                   : (unsigned __int128)g->rows * (uint64_t)g->features;
    const unsigned __int128 bytes = entries * 8 + (unsigned __int128)g->rows * 16;
    return bytes < UINT64_MAX ? (uint64_t)bytes : UINT64_MAX;
}

static plait_status fill(const plait_memory_opts *g, pli_dataset *d, pli_found *found, plait_error *err) {
    bool missing = false;
    d->workers = 1;
    d->blocks = d->own = g->blocks > 0 ? g->blocks : pli_blocks_for(bytes_of(g));
    d->rows = pli_calloc((size_t)d->blocks, sizeof *d->rows);
    d->schema = pli_schema_create();
    if (d->rows == NULL || d->schema == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    for (int32_t block = 0; block < d->blocks; block++) PLI_TRY(make_block(g, block, d, found, &missing, err));
    PLI_TRY(pli_dataset_join_found(d, found, 1, err));
    d->schema->rows = g->rows;
    d->schema->features = g->features;
    d->schema->unlabelled = g->label == NULL;
    d->schema->keeps_missing = missing;
    d->loaded = true;
    return g->columns == NULL ? PLAIT_OK : pli_given_columns(g, d, err);
}

static bool may_lend(const plait_memory_opts *g) {
    return g->lend && is_sparse(g) && g->type == PLAIT_F32 && g->column_bytes == 4;
}

/* call: the public function, for texts. */
static plait_status create(const plait_memory_opts *given, const char *call, plait_data **data_out,
                           plait_error *error_out) {
    plait_error       local = { .code = PLAIT_OK }, *err = error_out != NULL ? error_out : &local;
    plait_memory_opts g = *given;
    pli_found         found = { 0 };
    PLI_TRY(check_shape(&g, err));
    PLI_TRY(check_given(&g, call, err));
    PLI_TRY(check_labels(&g, err));
    PLI_TRY(pli_given_check_columns(&g, err));
    g.lend = may_lend(&g);
    plait_data *data = pli_calloc(1, sizeof *data);
    if (data == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    data->lent = g.lend;
    data->dataset = pli_calloc(1, sizeof *data->dataset);
    plait_status status = data->dataset != NULL ? fill(&g, data->dataset, &found, err)
                                                : pli_fail(err, PLAIT_ENOMEM, "no memory for a data set");
    pli_found_free(&found);
    if (status < 0)
        plait_data_destroy(&data);
    else
        *data_out = data;
    return status;
}

plait_status plait_data_from_memory(const plait_memory_opts *opts, plait_data **data_out, plait_error *error_out) {
    plait_memory_opts own;
    PLI_TRY(PLI_GIVEN(error_out, opts));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    plait_memory_opts_init(&own);
    PLI_TRY(pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_memory_opts, lend), opts, "plait_memory_opts",
                           error_out));
    return create(&own, __func__, data_out, error_out);
}

plait_status plait_data_from_csr(int64_t rows, int64_t features, const int64_t *row_start, const uint32_t *column,
                                 const float *value, const double *label, const double *weight, plait_data **data_out,
                                 plait_error *error_out) {
    plait_memory_opts g;
    PLI_TRY(PLI_GIVEN(error_out, row_start));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    plait_memory_opts_init(&g);
    g.rows = rows, g.features = features;
    g.row_start = row_start, g.column = column, g.values = value;
    g.label = label, g.weight = weight;
    return create(&g, __func__, data_out, error_out);
}

plait_status plait_data_from_dense(int64_t rows, int64_t features, const float *x, const double *label,
                                   const double *weight, plait_data **data_out, plait_error *error_out) {
    plait_memory_opts g;
    PLI_TRY(PLI_GIVEN_OF(error_out, features, x));
    PLI_TRY(PLI_GIVEN(error_out, data_out));
    plait_memory_opts_init(&g);
    g.layout = PLAIT_DENSE_ROWS;
    g.rows = rows, g.features = features;
    g.values = x, g.label = label, g.weight = weight;
    return create(&g, __func__, data_out, error_out);
}

int plait_data_is_lent(const plait_data *data) { return data != NULL && data->lent && data->own_column == NULL; }

void pli_given_back(plait_data *data) {
    pli_dataset *d = data->dataset;
    for (int32_t i = 0; data->lent && d != NULL && d->rows != NULL && i < d->own; i++) {
        d->rows[i].b.col = NULL;
        d->rows[i].b.value = NULL;
    }
}
