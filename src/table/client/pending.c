/* See pending.h. */
#include "table/client/pending.h"

#include <string.h>

#include "table/state/updates.h"
#include "table/state/values.h"

enum { BLOCK = 1024, LARGE_BYTES = 1 << 20 };

void pli_pending_init(pli_pending *pending, const pli_spec *spec, int64_t extra) {
    *pending = (pli_pending){ .spec = spec, .extra = extra };
    pli_rowset_init(&pending->set, 0, (uint64_t)spec->rows);
}

void pli_pending_destroy(pli_pending *pending) {
    pli_free(pending->sum);
    pli_rowset_destroy(&pending->set);
    pending->sum = NULL;
}

static plait_status no_memory(const pli_pending *pending, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to hold back updates of table %s", pending->spec->name);
}

plait_status pli_pending_reserve(pli_pending *pending, plait_error *err) {
    const pli_spec *spec = pending->spec;
    if (pending->sum != NULL) return PLAIT_OK;
    size_t bytes = (size_t)(spec->rows * pli_sum_row_bytes(spec) + pending->extra * spec->sum_width);
    pending->sum = pli_aligned(bytes);
    if (pending->sum == NULL) return no_memory(pending, err);
    pli_updates_clear(spec, spec->rows * spec->cols + pending->extra, pending->sum);
    return PLAIT_OK;
}

static void touch(pli_pending *pending, int64_t low, int64_t high, int64_t examples) {
    if (low < high) {
        bool empty = pending->low == pending->high;
        if (empty || low < pending->low) pending->low = low;
        if (empty || high > pending->high) pending->high = high;
    }
    pending->touched = true;
    pending->examples += examples;
}

static plait_status add_dense(pli_pending *pending, int64_t n, const uint64_t *keys, const void *delta,
                              int64_t examples, plait_error *err) {
    const pli_spec *spec = pending->spec;
    uint64_t        low = UINT64_MAX, high = 0;
    PLI_TRY(pli_pending_reserve(pending, err));
    for (int64_t i = 0; i < n; i++) {
        low = keys[i] < low ? keys[i] : low;
        high = keys[i] > high ? keys[i] : high;
    }
    pli_updates_scatter(spec, n, (const int64_t *)keys, delta, pending->sum);
    touch(pending, n > 0 ? (int64_t)low : 0, n > 0 ? (int64_t)high + 1 : 0, examples);
    return PLAIT_OK;
}

/* Makes room for n more rows; new rows are zeroed when they are used. */
static bool reserve_rows(pli_pending *pending, int64_t n) {
    const int64_t rows = pending->set.n + n;
    if (!pli_rowset_reserve(&pending->set, n)) return false;
    if (rows <= pending->capacity) return true;
    int64_t capacity = pending->capacity * 2 > rows ? pending->capacity * 2 : rows;
    void   *grown = pli_realloc(pending->sum, (size_t)capacity, (size_t)pli_sum_row_bytes(pending->spec));
    if (grown == NULL) return false;
    pending->sum = grown;
    pending->capacity = capacity;
    return true;
}

static bool add_block(pli_pending *pending, int64_t n, const uint64_t *keys, const void *delta) {
    const pli_spec *spec = pending->spec;
    int64_t         at[BLOCK], before = pending->set.n, row_bytes = pli_sum_row_bytes(spec);
    bool added = pli_rowset_add(&pending->set, n, keys, at); /* else some keys, perhaps: rows of zeros, then */
    pli_updates_clear(spec, (pending->set.n - before) * spec->cols, pli_at(pending->sum, before * row_bytes));
    if (!added) return false;
    pli_updates_scatter(spec, n, at, delta, pending->sum);
    return true;
}

plait_status pli_pending_add(pli_pending *pending, int64_t n, const uint64_t *keys, const void *delta, int64_t examples,
                             plait_error *err) {
    if (!pending->spec->keyed) return add_dense(pending, n, keys, delta, examples, err);
    if (!reserve_rows(pending, n)) return no_memory(pending, err);
    for (int64_t at = 0; at < n; at += BLOCK)
        if (!add_block(pending, n - at < BLOCK ? n - at : BLOCK, keys + at,
                       pli_at_const(delta, at * pli_row_bytes(pending->spec))))
            return no_memory(pending, err);
    touch(pending, 0, 0, examples);
    return PLAIT_OK;
}

static plait_status add_range_by_key(pli_pending *pending, int64_t first, int64_t n, const void *delta,
                                     int64_t examples, plait_error *err) {
    uint64_t keys[BLOCK];
    if (!reserve_rows(pending, n)) return no_memory(pending, err);
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (int64_t i = 0; i < m; i++) keys[i] = (uint64_t)(first + at + i);
        if (!add_block(pending, m, keys, pli_at_const(delta, at * pli_row_bytes(pending->spec))))
            return no_memory(pending, err);
    }
    touch(pending, 0, 0, examples);
    return PLAIT_OK;
}

plait_status pli_pending_add_range(pli_pending *pending, int64_t first, int64_t n, const void *delta, int64_t examples,
                                   plait_error *err) {
    const pli_spec *spec = pending->spec;
    if (spec->keyed) return add_range_by_key(pending, first, n, delta, examples, err);
    PLI_TRY(pli_pending_reserve(pending, err));
    pli_updates_add(spec, n * spec->cols, delta, pli_at(pending->sum, first * pli_sum_row_bytes(spec)));
    touch(pending, first, first + n, examples);
    return PLAIT_OK;
}

plait_status pli_pending_merge(pli_pending *pending, int64_t n, const uint64_t *keys, int64_t first, const void *sums,
                               int64_t examples, plait_error *err) {
    const pli_spec *spec = pending->spec;
    int64_t         row_bytes = pli_sum_row_bytes(spec);
    if (keys == NULL) {
        PLI_TRY(pli_pending_reserve(pending, err));
        pli_updates_merge(spec, n * spec->cols, sums, pli_at(pending->sum, first * row_bytes));
        touch(pending, first, first + n, examples);
        return PLAIT_OK;
    }
    if (!reserve_rows(pending, n)) return no_memory(pending, err);
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t at[BLOCK], m = n - done < BLOCK ? n - done : BLOCK, before = pending->set.n;
        bool    added = pli_rowset_add(&pending->set, m, keys + done, at);
        pli_updates_clear(spec, (pending->set.n - before) * spec->cols, pli_at(pending->sum, before * row_bytes));
        if (!added) return no_memory(pending, err);
        pli_updates_merge_rows(spec, m, at, pli_at_const(sums, done * row_bytes), pending->sum);
    }
    touch(pending, 0, 0, examples);
    return PLAIT_OK;
}

/* --- norms --------------------------------------------------------------------------------------------------- */

static double norm_of(const pli_spec *spec, int64_t rows, const void *values) {
    return pli_values_max_norm(spec->type, rows * spec->cols, values) / (spec->ruled ? (double)spec->batch : 1);
}

plait_status pli_update_norm(const pli_spec *spec, int64_t n, const uint64_t *keys, const void *delta, double *norm_out,
                             plait_error *err) {
    pli_spec     by_key = *spec;
    pli_pending  sums;
    plait_status status;
    if (keys == NULL || pli_is_increasing_u64(n, keys)) {
        *norm_out = norm_of(spec, n, delta);
        return PLAIT_OK;
    }
    by_key.keyed = true;
    by_key.rows = 0; /* few rows of many: no array over all of them */
    by_key.exact = false;
    by_key.sum_width = by_key.width;
    pli_pending_init(&sums, &by_key, 0);
    status = pli_pending_add(&sums, n, keys, delta, 0, err);
    if (status >= 0) *norm_out = norm_of(spec, sums.set.n, sums.sum);
    pli_pending_destroy(&sums);
    return status;
}

/* --- own updates over what is read ---------------------------------------------------------------------- */

static void gather_add(const pli_spec *spec, double scale, int64_t n, const int64_t *at, const void *sum,
                       void *values) {
    int64_t row_bytes = pli_row_bytes(spec), sum_bytes = pli_sum_row_bytes(spec);
    if (scale == 1 && !spec->exact) {
        pli_merge_gather(spec->merge, n, spec->cols, at, sum, values);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0)
            pli_updates_lay_over(spec, scale, spec->cols, pli_at_const(sum, at[i] * sum_bytes),
                                 pli_at(values, i * row_bytes));
}

static bool adds_nothing(const pli_pending *pending, double scale) {
    return scale == 0 || !pending->touched || pending->sum == NULL;
}

void pli_pending_overlay(const pli_pending *pending, double scale, int64_t n, const uint64_t *keys, void *values) {
    const pli_spec *spec = pending->spec;
    int64_t         at[BLOCK];
    if (adds_nothing(pending, scale)) return;
    for (int64_t from = 0; from < n; from += BLOCK) {
        int64_t        m = n - from < BLOCK ? n - from : BLOCK;
        const int64_t *rows = at;
        if (spec->keyed) pli_rowset_find(&pending->set, m, keys + from, at);
        else rows = (const int64_t *)(keys + from);
        gather_add(spec, scale, m, rows, pending->sum, pli_at(values, from * pli_row_bytes(spec)));
    }
}

static void overlay_keyed_range(const pli_pending *pending, double scale, int64_t first, int64_t n, void *values) {
    const pli_spec *spec = pending->spec;
    int64_t         row_bytes = pli_row_bytes(spec), sum_bytes = pli_sum_row_bytes(spec);
    for (int64_t i = 0; i < pending->set.n; i++) {
        uint64_t at = pending->set.keys[i] - (uint64_t)first;
        if (at < (uint64_t)n)
            pli_updates_lay_over(spec, scale, spec->cols, pli_at_const(pending->sum, i * sum_bytes),
                                 pli_at(values, (int64_t)at * row_bytes));
    }
}

void pli_pending_overlay_range(const pli_pending *pending, double scale, int64_t first, int64_t n, void *values) {
    const pli_spec *spec = pending->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    if (adds_nothing(pending, scale)) return;
    if (spec->keyed) {
        overlay_keyed_range(pending, scale, first, n, values);
        return;
    }
    int64_t low = first > pending->low ? first : pending->low;
    int64_t high = first + n < pending->high ? first + n : pending->high;
    if (low < high)
        pli_updates_lay_over(spec, scale, (high - low) * spec->cols,
                             pli_at_const(pending->sum, low * pli_sum_row_bytes(spec)),
                             pli_at(values, (low - first) * row_bytes));
}

bool pli_pending_append(const pli_pending *pending, double scale, int64_t held, uint64_t *keys, void *values,
                        int64_t *n_out) {
    int64_t    n = held, row_bytes = pli_row_bytes(pending->spec);
    pli_keymap map;
    *n_out = held;
    if (scale == 0 || pending->set.n == 0) return true;
    pli_keymap_init(&map);
    for (int64_t i = 0; i < held; i++)
        if (pli_keymap_add(&map, keys[i]) < 0) goto no_memory;
    for (int64_t i = 0; i < pending->set.n; i++) {
        if (pli_keymap_find(&map, pending->set.keys[i]) >= 0) continue;
        keys[n] = pending->set.keys[i];
        pli_merge_clear(pending->spec->merge, pending->spec->cols, pli_at(values, n++ * row_bytes));
    }
    pli_pending_overlay(pending, scale, n, keys, values);
    pli_keymap_destroy(&map);
    *n_out = n;
    return true;
no_memory:
    pli_keymap_destroy(&map);
    return false;
}

/* Is the sum filled from end to end and large? Clearing it would cost as much as new memory, and nobody should hold it
 * idle. */
static bool whole_and_large(const pli_pending *pending) {
    const pli_spec *spec = pending->spec;
    return pending->low == 0 && pending->high == spec->rows && spec->rows * pli_sum_row_bytes(spec) >= LARGE_BYTES;
}

void pli_pending_clear(pli_pending *pending) {
    int64_t row_bytes = pli_sum_row_bytes(pending->spec);
    if (pending->spec->keyed) {
        pli_rowset_clear(&pending->set);
    } else if (pending->sum != NULL && whole_and_large(pending)) {
        pli_free(pending->sum);
        pending->sum = NULL;
    } else if (pending->sum != NULL) {
        pli_updates_clear(pending->spec, (pending->high - pending->low) * pending->spec->cols,
                          pli_at(pending->sum, pending->low * row_bytes));
    }
    pending->low = pending->high = 0;
    pending->touched = false;
    pending->examples = 0;
}
