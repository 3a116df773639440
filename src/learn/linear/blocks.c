/* Batches block by block, for --reduce exact: the gradient of each block's part of a clock is computed by itself, in a
 * shape that never changes, and pushed by itself. The tables add up the pushes in exact sums, which do not depend on
 * their order. So the model does not depend on which worker or thread has which block. */
#include "learn/linear/fit.h"

#include "table/table.h"

/* Computes the gradients of parts first .. first + n - 1; a balanced run measures how long it takes. */
static plait_status compute(pli_run *run, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                            int32_t first, int32_t n, const uint32_t *local) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    pli_gradient   *gradient = &l->gradient;
    const pli_batch some = { .part = batch->part + first, .parts = n };
    pli_loop_work_begin(run);
    PLI_TRY(pli_gradient_run_apart(gradient, weights, rows, batch, first, n, local, l->local_start, run->err));
    pli_run_charge(run, &some, l->linear.goal.columns, n * gradient->size);
    pli_loop_work_end(run);
    for (int32_t i = 0; i < n; i++) pli_total_add(&run->loop->total, &gradient->sums[i]);
    return PLAIT_OK;
}

/* --- dense --------------------------------------------------------------------------------------------------- */

static plait_status push_dense(pli_run *run, int32_t slot, int64_t examples) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    int64_t  k = l->linear.goal.columns, d = l->linear.features;
    double  *sum = l->gradient.sum + slot * l->gradient.size, *bias = l->gradient.bias + slot * l->gradient.stride;
    if (examples == 0) return PLAIT_OK;
    pli_scale_gradient(&l->fit.scale, k, sum, bias);
    for (int64_t i = 0; i < d * k; i++) l->push[i] = (float)sum[i];
    for (int64_t c = 0; c < k && l->linear.intercept; c++) l->push[d * k + c] = (float)bias[c];
    return plait_table_inc_range(l->w, 0, d + l->linear.intercept, l->push, examples);
}

plait_status pli_blocks_push_dense(pli_run *run, const pli_weights *weights, const pli_batch *batch) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    for (int32_t first = 0, n; first < batch->parts; first += n) {
        n = pli_gradient_apart(&l->gradient, batch, first);
        PLI_TRY(compute(run, weights, l->linear.features, batch, first, n, NULL));
        for (int32_t i = 0; i < n; i++) PLI_TRY(push_dense(run, i, batch->part[first + i].rows));
    }
    return PLAIT_OK;
}

/* --- by key -------------------------------------------------------------------------------------------------- */

/* Pushes the columns in which the part has entries, which are some of the batch's. */
static plait_status push_keyed(pli_run *run, int32_t slot, int32_t p, const pli_part *part) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    const double *sum = l->gradient.sum + slot * l->gradient.size, *bias = l->gradient.bias + slot * l->gradient.stride;
    const uint32_t *local = l->local + l->local_start[p];
    int64_t         k = l->linear.goal.columns, entries = pli_part_entries(part), n = 0;
    if (part->rows == 0) return PLAIT_OK;
    if (!pli_grow((void **)&l->part_keys, &l->part_keys_capacity, entries + 1, sizeof *l->part_keys) ||
        !pli_grow((void **)&l->part_push, &l->part_push_capacity, (entries + 1) * k, sizeof *l->part_push))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a block's columns");
    for (int64_t e = 0; e < entries; e++) {
        uint32_t column = local[e];
        if (l->mark[column] == (uint32_t)p + 1) continue;
        l->mark[column] = (uint32_t)p + 1;
        double factor = l->fit.scale.factor != NULL ? l->fit.scale.factor[l->keys[column]] : 1;
        for (int64_t c = 0; c < k; c++) l->part_push[n * k + c] = (float)(factor * sum[(int64_t)column * k + c]);
        l->part_keys[n++] = l->keys[column];
    }
    float *to = l->b != NULL ? l->narrow : l->part_push + n * k;
    for (int64_t c = 0; c < k && l->linear.intercept; c++) to[c] = (float)bias[c];
    if (l->linear.intercept && l->b == NULL) l->part_keys[n++] = (uint64_t)l->linear.features;
    if (l->b != NULL) PLI_TRY(plait_table_inc_range(l->b, 0, 1, l->narrow, part->rows));
    return plait_table_inc(l->w, n, l->part_keys, l->part_push, part->rows);
}

plait_status pli_blocks_push_keyed(pli_run *run, const pli_weights *weights, int64_t unique, const pli_batch *batch) {
    pli_linear_fit *l = pli_linear_fit_of(run);
    if (!pli_grow((void **)&l->mark, &l->mark_capacity, unique, sizeof *l->mark))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a batch's columns");
    for (int64_t i = 0; i < unique; i++) l->mark[i] = 0;
    for (int32_t first = 0, n; first < batch->parts; first += n) {
        n = pli_gradient_apart(&l->gradient, batch, first);
        PLI_TRY(compute(run, weights, unique, batch, first, n, l->local));
        for (int32_t i = 0; i < n; i++) PLI_TRY(push_keyed(run, i, first + i, &batch->part[first + i]));
    }
    return PLAIT_OK;
}
