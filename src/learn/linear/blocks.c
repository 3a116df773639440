/* Block by block: under --reduce exact the part that each block of the data has in a clock is computed by itself, a shape
 * that never changes, and pushed by itself, and the tables add up what is pushed in sums whose bits do not depend on
 * their order. So it does not show which worker or thread had which block. */
#include "learn/solve/sgd.h"

#include "table/table.h"

/* Parts first .. first + n - 1; a balanced run measures how long it takes. */
static plait_status compute(pli_sgd *sgd, const pli_weights *weights, int64_t rows, const pli_batch *batch, int32_t first,
                            int32_t n, const uint32_t *local) {
    pli_run        *run = sgd->run;
    pli_gradient   *gradient = &sgd->gradient;
    const pli_batch some = { .part = batch->part + first, .parts = n };
    if (run->balanced) pli_balance_begin_work(&sgd->balance);
    PLI_TRY(pli_gradient_run_apart(gradient, weights, rows, batch, first, n, local, sgd->local_start, run->err));
    pli_run_charge(run, &some, n * gradient->size);
    if (run->balanced) pli_balance_end_work(&sgd->balance);
    for (int32_t i = 0; i < n; i++) pli_total_add(&sgd->clock, &gradient->sums[i]);
    return PLAIT_OK;
}

/* --- dense --------------------------------------------------------------------------------------------------- */

static plait_status push_dense(pli_sgd *sgd, int32_t slot, int64_t examples) {
    pli_run *run = sgd->run;
    int64_t  k = run->linear.columns, d = run->linear.features;
    double  *sum = sgd->gradient.sum + slot * sgd->gradient.size, *bias = sgd->gradient.bias + slot * sgd->gradient.stride;
    if (examples == 0) return PLAIT_OK;
    pli_scale_gradient(&run->scale, k, sum, bias);
    for (int64_t i = 0; i < d * k; i++) sgd->push[i] = (float)sum[i];
    for (int64_t c = 0; c < k && run->linear.intercept; c++) sgd->push[d * k + c] = (float)bias[c];
    return plait_table_inc_range(run->w, 0, d + run->linear.intercept, sgd->push, examples);
}

plait_status pli_blocks_push_dense(pli_sgd *sgd, const pli_weights *weights, const pli_batch *batch) {
    for (int32_t first = 0, n; first < batch->parts; first += n) {
        n = pli_gradient_apart(&sgd->gradient, batch, first);
        PLI_TRY(compute(sgd, weights, sgd->run->linear.features, batch, first, n, NULL));
        for (int32_t i = 0; i < n; i++) PLI_TRY(push_dense(sgd, i, batch->part[first + i].rows));
    }
    return PLAIT_OK;
}

/* --- by key -------------------------------------------------------------------------------------------------- */

static int64_t entries_of(const pli_part *part) {
    int64_t n = 0;
    for (int64_t i = 0; i < part->rows; i++) {
        int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        n += part->block->row_start[r + 1] - part->block->row_start[r];
    }
    return n;
}

/* Of the batch's columns only those that the part has entries in. */
static plait_status push_keyed(pli_sgd *sgd, int32_t slot, int32_t p, const pli_part *part) {
    pli_run        *run = sgd->run;
    const double   *sum = sgd->gradient.sum + slot * sgd->gradient.size, *bias = sgd->gradient.bias + slot * sgd->gradient.stride;
    const uint32_t *local = sgd->local + sgd->local_start[p];
    int64_t         k = run->linear.columns, entries = entries_of(part), n = 0;
    if (part->rows == 0) return PLAIT_OK;
    if (!pli_grow((void **)&sgd->part_keys, &sgd->part_keys_capacity, entries + 1, sizeof *sgd->part_keys) ||
        !pli_grow((void **)&sgd->part_push, &sgd->part_push_capacity, (entries + 1) * k, sizeof *sgd->part_push))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a block's columns");
    for (int64_t e = 0; e < entries; e++) {
        uint32_t column = local[e];
        if (sgd->mark[column] == (uint32_t)p + 1) continue;
        sgd->mark[column] = (uint32_t)p + 1;
        double factor = run->scale.factor != NULL ? run->scale.factor[sgd->keys[column]] : 1;
        for (int64_t c = 0; c < k; c++) sgd->part_push[n * k + c] = (float)(factor * sum[(int64_t)column * k + c]);
        sgd->part_keys[n++] = sgd->keys[column];
    }
    float *to = run->b != NULL ? sgd->narrow : sgd->part_push + n * k;
    for (int64_t c = 0; c < k && run->linear.intercept; c++) to[c] = (float)bias[c];
    if (run->linear.intercept && run->b == NULL) sgd->part_keys[n++] = (uint64_t)run->linear.features;
    if (run->b != NULL) PLI_TRY(plait_table_inc_range(run->b, 0, 1, sgd->narrow, part->rows));
    return plait_table_inc(run->w, n, sgd->part_keys, sgd->part_push, part->rows);
}

plait_status pli_blocks_push_keyed(pli_sgd *sgd, const pli_weights *weights, int64_t unique, const pli_batch *batch) {
    if (!pli_grow((void **)&sgd->mark, &sgd->mark_capacity, unique, sizeof *sgd->mark))
        return pli_fail(sgd->run->err, PLAIT_ENOMEM, "no memory for a batch's columns");
    for (int64_t i = 0; i < unique; i++) sgd->mark[i] = 0;
    for (int32_t first = 0, n; first < batch->parts; first += n) {
        n = pli_gradient_apart(&sgd->gradient, batch, first);
        PLI_TRY(compute(sgd, weights, unique, batch, first, n, sgd->local));
        for (int32_t i = 0; i < n; i++) PLI_TRY(push_keyed(sgd, i, first + i, &batch->part[first + i]));
    }
    return PLAIT_OK;
}

void pli_blocks_end(pli_sgd *sgd) {
    pli_free(sgd->mark);
    pli_free(sgd->part_keys);
    pli_free(sgd->part_push);
}
