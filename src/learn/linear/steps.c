/* A step of a linear model: get, compute, inc. It depends on the layout of the weights (pli_form):
 *
 *   dense   reads the whole table, and pushes a whole gradient
 *   keyed   renumbers the batch's columns 0 .. u-1 in increasing order (Li et al. 2014); only these rows travel
 *   sparse  likewise, but rows grow by key, and intercepts have a table of their own
 *
 * hogwild.c (row by row) and blocks.c (block by block) use the same begin and end. */
#include <math.h>
#include <string.h>

#include "learn/linear/fit.h"
#include "table/table.h"

/* Computes the batch's gradient; a balanced run measures how long it takes. */
static plait_status compute(pli_run *run, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                            const uint32_t *local) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_loop_work_begin(run);
    PLI_TRY(pli_gradient_run(&l->gradient, weights, rows, batch, local, l->local_start, run->err));
    pli_run_charge(run, batch, l->linear.goal.columns, l->gradient.size);
    pli_loop_work_end(run);
    return PLAIT_OK;
}

/* --- a batch, dense -------------------------------------------------------------------------------------- */

/* The features of a stream were counted by the last index of each row; a row that is not in order may have a higher
 * one.
 */
static plait_status check_indices(const pli_run *run, const pli_batch *batch) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part  *part = &batch->part[p];
        const pli_block *block = part->block;
        for (int64_t r = part->first; r < part->first + part->rows; r++) {
            int64_t last = block->row_start[r + 1] - 1;
            if (last < block->row_start[r]) continue;
            if (block->col == NULL || block->col[last] >= l->linear.features)
                return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)(block->first_row + r + 1));
        }
    }
    return PLAIT_OK;
}

static plait_status dense_step(pli_run *run, const pli_batch *batch) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    if (run->stream) PLI_TRY(check_indices(run, batch));
    int64_t      k = l->linear.goal.columns, d = l->linear.features, rows = d + l->linear.intercept;
    const void  *values;
    uint64_t     at = pli_comm_span_begin(run->comm);
    PLI_TRY(plait_table_read(l->w, 0, rows, &values));
    pli_run_step(run, "get", &at);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    pli_curve_keep(run, values);
    const float *w = values;
    pli_weights  weights = { .f32 = w, .bias = l->bias };
    for (int64_t c = 0; c < k; c++) l->bias[c] = l->linear.intercept ? (double)w[d * k + c] : 0;
    if (l->fit.scale.factor != NULL) {
        for (int64_t j = 0; j < d; j++)
            for (int64_t c = 0; c < k; c++) {
                double raw = (double)w[j * k + c] * l->fit.scale.factor[j];
                l->raw[j * k + c] = raw;
                if (l->fit.scale.centre != NULL) l->bias[c] -= l->fit.scale.centre[j] * raw;
            }
        weights = (pli_weights){ .f64 = l->raw, .bias = l->bias };
    }
    if (run->exact) {
        PLI_TRY(pli_blocks_push_dense(run, &weights, batch));
        pli_run_step(run, "compute", &at);
        return PLAIT_OK;
    }
    PLI_TRY(compute(run, &weights, d, batch, NULL));
    pli_scale_gradient(&l->fit.scale, k, l->gradient.sum, l->gradient.bias);
    for (int64_t i = 0; i < d * k; i++) l->push[i] = (float)l->gradient.sum[i];
    for (int64_t c = 0; c < k && l->linear.intercept; c++) l->push[d * k + c] = (float)l->gradient.bias[c];
    pli_run_step(run, "compute", &at);
    PLI_TRY(plait_table_inc_range(l->w, 0, rows, l->push, batch->rows));
    pli_run_step(run, "inc", &at);
    return PLAIT_OK;
}

/* --- a batch by key -------------------------------------------------------------------------------------- */

/* Renumbers the batch's columns: sets keys [unique], increasing, and local [entries], in the order of rows. */
static plait_status localise(pli_run *run, const pli_batch *batch) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t         n = 0;
    if (!pli_grow((void **)&l->local_start, &l->start_capacity, batch->parts, sizeof *l->local_start))
        return PLAIT_ENOMEM;
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        l->local_start[p] = n;
        n += pli_part_entries(part);
    }
    if (!pli_grow((void **)&l->keys, &l->keys_capacity, n + 1, sizeof *l->keys) ||
        !pli_grow((void **)&l->order, &l->order_capacity, n, sizeof *l->order) ||
        !pli_grow((void **)&l->local, &l->local_capacity, n, sizeof *l->local) || n > UINT32_MAX)
        return PLAIT_ENOMEM;
    int64_t at = 0;
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        for (int64_t i = 0; i < part->rows; i++) {
            int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
            for (int64_t e = part->block->row_start[r]; e < part->block->row_start[r + 1]; e++, at++)
                l->keys[at] = part->block->col != NULL ? part->block->col[e] : part->block->key[e];
        }
    }
    for (int64_t i = 0; i < n; i++) l->order[i] = (uint32_t)i;
    if (!pli_sort_u64(n, l->keys, l->order)) return PLAIT_ENOMEM;
    int64_t unique = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || l->keys[i] != l->keys[unique - 1]) l->keys[unique++] = l->keys[i];
        l->local[l->order[i]] = (uint32_t)(unique - 1);
    }
    l->unique = unique;
    pli_comm_work(run->comm, PLI_WORK_KEYS, (uint64_t)unique);
    return PLAIT_OK;
}

static plait_status keyed_step(pli_run *run, const pli_batch *batch) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t  k = l->linear.goal.columns, d = l->linear.features, unique = l->unique, n = unique;
    if (unique > 0 && pli_linear_lacks(&l->linear, l->keys[unique - 1]))
        return pli_fail(run->err, PLAIT_EFORMAT, PLI_INDEX_TOO_HIGH, (long long)batch->part[0].block->first_row + 1);
    if (l->linear.intercept && l->b == NULL) l->keys[n++] = (uint64_t)d; /* the last row */
    if (!pli_grow((void **)&l->push, &l->push_capacity, n * k, sizeof *l->push))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's weights");
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(plait_table_get(l->w, n, l->keys, l->push));
    if (l->b != NULL) PLI_TRY(plait_table_get_range(l->b, 0, 1, l->narrow));
    pli_run_step(run, "get", &at);
    if (plait_job_is_late(run->job)) return PLAIT_OK;
    for (int64_t c = 0; c < k; c++)
        l->bias[c] = l->b != NULL ? (double)l->narrow[c] : n > unique ? (double)l->push[unique * k + c] : 0;
    if (l->fit.scale.factor != NULL)
        for (int64_t i = 0; i < unique; i++)
            for (int64_t c = 0; c < k; c++)
                l->push[i * k + c] = (float)((double)l->push[i * k + c] * l->fit.scale.factor[l->keys[i]]);
    pli_weights weights = { .f32 = l->push, .bias = l->bias };
    if (run->exact) {
        PLI_TRY(pli_blocks_push_keyed(run, &weights, unique, batch));
        pli_run_step(run, "compute", &at);
        return PLAIT_OK;
    }
    PLI_TRY(compute(run, &weights, unique, batch, l->local));
    for (int64_t i = 0; i < unique; i++) {
        double factor = l->fit.scale.factor != NULL ? l->fit.scale.factor[l->keys[i]] : 1;
        for (int64_t c = 0; c < k; c++) l->push[i * k + c] = (float)(factor * l->gradient.sum[i * k + c]);
    }
    float *bias = l->b != NULL ? l->narrow : l->push + unique * k;
    for (int64_t c = 0; c < k && l->linear.intercept; c++) bias[c] = (float)l->gradient.bias[c];
    pli_run_step(run, "compute", &at);
    if (l->b != NULL) PLI_TRY(plait_table_inc_range(l->b, 0, 1, l->narrow, batch->rows));
    PLI_TRY(plait_table_inc(l->w, n, l->keys, l->push, batch->rows));
    pli_run_step(run, "inc", &at);
    return PLAIT_OK;
}

/* --- for the loop -------------------------------------------------------------------------------------------- */

static plait_status fetched(pli_run *run, const pli_batch *batch) {
    if (pli_linear_fit_of(run)->form == PLI_DENSE || localise(run, batch) >= 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's columns");
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    (void)clock;
    PLI_TRY(l->form == PLI_DENSE ? dense_step(run, batch) : keyed_step(run, batch));
    if (!run->exact && !plait_job_is_late(run->job)) *sums_out = l->gradient.sums[0];
    return PLAIT_OK;
}

/* A spare reads one row, to keep in step: it may have rows soon. */
static plait_status idle(pli_run *run) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const uint64_t        any = 0;
    const void           *values;
    return l->form == PLI_SPARSE ? plait_table_get(l->w, 1, &any, l->narrow) : plait_table_read(l->w, 0, 1, &values);
}

/* Reads the whole table for the curve, if steps do not. */
static plait_status keep_table(pli_run *run) {
    const pli_linear_fit *l = pli_linear_fit_of(run);
    const void           *values;
    if (l->form == PLI_DENSE && !l->rowwise) return PLAIT_OK; /* its steps do */
    PLI_TRY(plait_table_read(l->w, 0, l->linear.features + l->linear.intercept, &values));
    if (!plait_job_is_late(run->job)) pli_curve_keep(run, values);
    return PLAIT_OK;
}

plait_status pli_linear_begin(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t         k = l->linear.goal.columns, d = l->linear.features;
    /* One group if a gradient is large beside what a batch adds to it. This depends on data and batch alone. */
    double  touched = (double)run->entries / (double)run->rows * (double)run->batch;
    int32_t groups = l->form == PLI_DENSE && (double)d > touched ? 1 : 8;
    PLI_TRY(pli_linear_tables(run));
    PLI_TRY(run->exact ? pli_gradient_init_apart(&l->gradient, &l->linear, run->pool, run->err)
                       : pli_gradient_init(&l->gradient, &l->linear, run->pool, run->data,
                                           run->balanced || run->opts->replicas > 1, groups, run->err));
    l->bias = pli_calloc((size_t)k, sizeof *l->bias);
    l->narrow = pli_calloc((size_t)k, sizeof *l->narrow);
    bool ok = l->bias != NULL && l->narrow != NULL;
    if (l->form == PLI_DENSE && !l->rowwise) {
        ok = ok && pli_grow((void **)&l->push, &l->push_capacity, (d + 1) * k, sizeof *l->push);
        if (l->fit.scale.factor != NULL) l->raw = pli_calloc((size_t)(d * k), sizeof *l->raw);
        ok = ok && (l->fit.scale.factor == NULL || l->raw != NULL);
    }
    return ok ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for gradients");
}

void pli_linear_end(pli_run *run) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_gradient_destroy(&l->gradient);
    pli_free(l->raw);
    pli_free(l->bias);
    pli_free(l->narrow);
    pli_free(l->push);
    pli_free(l->keys);
    pli_free(l->order);
    pli_free(l->local);
    pli_free(l->local_start);
    pli_free(l->mark);
    pli_free(l->part_keys);
    pli_free(l->part_push);
}

const pli_steps pli_linear_steps = {
    .leaves_out = true, .begin = pli_linear_begin, .end = pli_linear_end, .fetched = fetched, .step = step,
    .idle = idle,
    .curve = keep_table, .finite = pli_fit_finite, .told = pli_fit_told, .epoch = pli_fit_epoch,
    .finish = pli_fit_finish
};
