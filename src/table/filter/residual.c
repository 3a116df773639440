/* Error feedback: the worker keeps what a filter has not let through, and adds it to its next push of the same rows.
 * Without this a biased compressor need not converge at all; with it later clocks make up for the errors of a clock.
 *
 * Papers: Seide et al., "1-Bit Stochastic Gradient Descent", Interspeech 2014 (the idea); Stich, Cordonnier, Jaggi,
 * "Sparsified SGD with Memory", NeurIPS 2018; Karimireddy et al., "Error Feedback Fixes SignSGD", ICML 2019 (why it
 * converges as fast as without compression). */
#include "table/filter/filter.h"

#include "table/state/rest.h"
#include "table/state/store.h"
#include "table/state/values.h"

void pli_residual_init(pli_residual *residual, const plait_filter_table *table) {
    *residual = (pli_residual){ .type = table->type, .cols = table->cols,
                                .row_bytes = table->cols * pli_value_bytes(table->type),
                                .keyed = table->keyed != 0, .first = table->first, .rows = table->count };
    pli_rowset_init(&residual->set, (uint64_t)table->first, (uint64_t)table->count);
}

void pli_residual_destroy(pli_residual *residual) {
    pli_rowset_destroy(&residual->set);
    pli_free(residual->values);
    pli_free(residual->at);
    residual->values = NULL;
    residual->at = NULL;
}

void pli_residual_clear(pli_residual *residual) {
    pli_rowset_clear(&residual->set);
    if (residual->keyed || residual->values == NULL) return;
    memset(residual->values, 0, (size_t)(residual->rows * residual->row_bytes));
}

static void *range_at(const pli_residual *residual, const plait_part *part) {
    return pli_at(residual->values, (part->first - residual->first) * residual->row_bytes);
}

void pli_residual_add_to(pli_residual *residual, const plait_part *part, void *values) {
    const pli_merge *add = &pli_add_combine.of[residual->type];
    int64_t          at[PLI_BLOCK];
    if (residual->values == NULL || part->n == 0) return;
    if (part->keys == NULL) {
        add->fold(part->n * residual->cols, range_at(residual, part), values);
        return;
    }
    for (int64_t from = 0; from < part->n; from += PLI_BLOCK) {
        int64_t m = part->n - from < PLI_BLOCK ? part->n - from : PLI_BLOCK;
        pli_rowset_find(&residual->set, m, part->keys + from, at);
        pli_merge_gather(add, m, residual->cols, at, residual->values, pli_at(values, from * residual->row_bytes));
    }
}

static bool reserve(pli_residual *residual, int64_t rows) {
    if (rows <= residual->capacity) return true;
    int64_t capacity = residual->capacity * 2 > rows ? residual->capacity * 2 : rows;
    void   *grown = pli_realloc(residual->values, (size_t)capacity, (size_t)residual->row_bytes);
    if (grown == NULL) return false;
    residual->values = grown;
    residual->capacity = capacity;
    return true;
}

plait_status pli_residual_set(pli_residual *residual, const plait_part *part, const void *values) {
    if (part->n == 0) return PLAIT_OK;
    if (part->keys == NULL) {
        if (residual->values == NULL)
            residual->values = pli_calloc((size_t)residual->rows, (size_t)residual->row_bytes);
        if (residual->values == NULL) return PLAIT_ENOMEM;
        memcpy(range_at(residual, part), values, (size_t)(part->n * residual->row_bytes));
        return PLAIT_OK;
    }
    if (!pli_grow((void **)&residual->at, &residual->at_capacity, part->n, sizeof *residual->at) ||
        !reserve(residual, residual->set.n + part->n) ||
        !pli_rowset_add(&residual->set, part->n, part->keys, residual->at))
        return PLAIT_ENOMEM;
    for (int64_t i = 0; i < part->n; i++)
        memcpy(pli_at(residual->values, residual->at[i] * residual->row_bytes),
               pli_at_const(values, i * residual->row_bytes), (size_t)residual->row_bytes);
    return PLAIT_OK;
}

plait_status pli_residual_add(pli_residual *residual, const plait_part *part, const void *values) {
    if (part->n == 0) return PLAIT_OK;
    void *both = pli_array((size_t)part->n, (size_t)residual->row_bytes);
    if (both == NULL) return PLAIT_ENOMEM;
    memcpy(both, values, (size_t)(part->n * residual->row_bytes));
    pli_residual_add_to(residual, part, both);
    const plait_status status = pli_residual_set(residual, part, both);
    pli_free(both);
    return status;
}

plait_status pli_residual_copy(const pli_residual *residual, pli_rest *rest) {
    const int64_t n = residual->keyed ? residual->set.n : residual->rows;
    if (residual->values == NULL || n == 0) return PLAIT_OK;
    *rest = (pli_rest){ .type = residual->type, .n = n, .cols = residual->cols,
                        .keys = residual->keyed ? pli_array((size_t)n, sizeof *rest->keys) : NULL,
                        .values = pli_array((size_t)n, (size_t)residual->row_bytes) };
    if (rest->values == NULL || (residual->keyed && rest->keys == NULL)) return PLAIT_ENOMEM;
    memcpy(rest->values, residual->values, (size_t)(n * residual->row_bytes));
    if (residual->keyed) memcpy(rest->keys, residual->set.keys, (size_t)n * sizeof *rest->keys);
    return PLAIT_OK;
}
