/* See shard.h. */
#include "table/state/shard.h"

#include <string.h>

#include "table/state/updates.h"
#include "table/state/values.h"
#include "tensor/exact_cells.h"

pli_push_part pli_push_part_of(const pli_pending *p) {
    const pli_spec *spec = p->spec;
    pli_push_part   part = { .touched = p->touched, .keyed = spec->keyed, .examples = p->examples };
    if (spec->keyed) {
        part.n = p->set.n;
        part.keys = p->set.keys;
        part.values = p->sum;
    } else if (p->low < p->high) {
        part.first = p->low;
        part.n = p->high - p->low;
        part.values = pli_at_const(p->sum, p->low * pli_sum_row_bytes(spec));
    }
    return part;
}

static void place(pli_shard *shard, const pli_spec *spec, int32_t index) {
    *shard = (pli_shard){ .spec = *spec, .index = index };
    if (spec->rows > 0) pli_placement_range(&spec->placement, index, &shard->first, &shard->rows);
    pli_rowset_init(&shard->set, (uint64_t)shard->first, (uint64_t)shard->rows);
}

/* status: the store's opening. */
static plait_status opened(pli_shard *shard, bool at_clock, plait_status status) {
    if (status < 0) pli_shard_close(shard);
    else shard->store.per_clock = at_clock ? 1 : shard->spec.batch;
    return status;
}

plait_status pli_shard_open(pli_shard *shard, const pli_spec *spec, int32_t index, bool at_clock, const void *initial,
                            const void *penalty, plait_error *err) {
    place(shard, spec, index);
    return opened(shard, at_clock,
                  pli_store_open(&shard->store, &shard->spec, shard->first, shard->rows, initial, penalty, err));
}

plait_status pli_shard_open_empty(pli_shard *shard, const pli_spec *spec, int32_t index, bool at_clock,
                                  plait_error *err) {
    place(shard, spec, index);
    return opened(shard, at_clock,
                  pli_store_open_empty(&shard->store, &shard->spec, shard->first, shard->rows, err));
}

void pli_shard_close(pli_shard *shard) {
    pli_store_close(&shard->store);
    pli_rowset_destroy(&shard->set);
    pli_free(shard->sum);
    pli_free(shard->at);
    shard->sum = NULL;
    shard->at = NULL;
}

plait_status pli_shard_check(const pli_shard *shard, const pli_push_part *part, plait_error *err) {
    const char *name = shard->spec.name;
    if (part->examples < 0 || part->n < 0)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push of negative size", name);
    if (part->examples > PLI_EXAMPLES_MAX)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push over %lld rows of data", name, (long long)part->examples);
    if (part->n > 0 && !part->touched)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: values of an untouched push", name);
    if (part->n == 0) return PLAIT_OK;
    if (part->keyed != shard->spec.keyed)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: a push %s", name, part->keyed ? "by key" : "by range");
    if (shard->spec.rows == 0) return PLAIT_OK;
    uint64_t first = (uint64_t)shard->first, rows = (uint64_t)shard->rows;
    if (!part->keyed) {
        uint64_t at = (uint64_t)part->first - first;
        if (at >= rows || (uint64_t)part->n > rows - at)
            return pli_fail(err, PLAIT_EFORMAT, "table %s: a push of %lld rows from %lld, outside of shard %d", name,
                            (long long)part->n, (long long)part->first, shard->index);
        return PLAIT_OK;
    }
    if (part->increasing) return PLAIT_OK;
    uint64_t outside = 0;
    for (int64_t i = 0; i < part->n; i++) outside |= (uint64_t)(part->keys[i] - first >= rows);
    return outside == 0 ? PLAIT_OK : pli_fail(err, PLAIT_EFORMAT, "table %s: a pushed key is outside of shard %d", name,
                                              shard->index);
}

static plait_status no_memory(const pli_shard *shard, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "no memory to apply a push to table %s", shard->spec.name);
}

/* Applies one part with its step. */
static bool apply_part(pli_shard *shard, const pli_push_part *part, const plait_step *step, int64_t own_units) {
    if (part->n == 0) return true;
    if (part->keyed) return pli_store_update(&shard->store, part->n, part->keys, step, own_units, part->values);
    pli_store_update_range(&shard->store, part->first, part->n, step, part->values);
    return true;
}

/* --- summing a clock's pushes -------------------------------------------------------------------------- */

static bool reserve_sum(pli_shard *shard, int64_t bytes) {
    if (bytes <= shard->sum_capacity) return true;
    void *grown = pli_aligned((size_t)bytes);
    if (grown == NULL) return false;
    if (shard->sum_capacity > 0) memcpy(grown, shard->sum, (size_t)shard->sum_capacity);
    pli_free(shard->sum);
    shard->sum = grown;
    shard->sum_capacity = bytes;
    return true;
}

static bool covers(const pli_shard *shard, const pli_push_part *part) {
    return part->first == shard->first && part->n == shard->rows;
}

/* Sums dense gradients over the whole shard, zero where nobody pushed. */
static bool sum_dense(pli_shard *shard, int32_t n, const pli_push_part *parts) {
    const pli_spec *spec = &shard->spec;
    int64_t         row_bytes = pli_sum_row_bytes(spec), bytes = shard->rows * row_bytes;
    if (!reserve_sum(shard, bytes)) return false;
    int32_t i = 0;
    while (i < n && parts[i].n == 0) i++;
    if (i < n && covers(shard, &parts[i])) memcpy(shard->sum, parts[i++].values, (size_t)bytes);
    else pli_updates_clear(spec, shard->rows * spec->cols, shard->sum);
    for (; i < n; i++) {
        const pli_push_part *part = &parts[i];
        if (part->n == 0) continue;
        pli_updates_merge(spec, part->n * spec->cols, part->values,
                          pli_at(shard->sum, (part->first - shard->first) * row_bytes));
    }
    return true;
}

/* Adds one part to the sum by key: shard->set numbers the keys, shard->sum [set.n, cols]. */
static bool sum_part(pli_shard *shard, const pli_push_part *part) {
    const pli_spec *spec = &shard->spec;
    int64_t         row_bytes = pli_sum_row_bytes(spec), before = shard->set.n;
    if (!pli_grow((void **)&shard->at, &shard->at_capacity, part->n, sizeof *shard->at)) return false;
    if (!pli_rowset_add(&shard->set, part->n, part->keys, shard->at)) return false;
    int64_t need = shard->set.n * row_bytes;
    if (need > shard->sum_capacity && !reserve_sum(shard, need + need / 2)) return false;
    pli_updates_clear(spec, (shard->set.n - before) * spec->cols, pli_at(shard->sum, before * row_bytes));
    pli_updates_merge_rows(spec, part->n, shard->at, part->values, shard->sum);
    return true;
}

static bool sum_by_key(pli_shard *shard, int32_t n, const pli_push_part *parts) {
    pli_rowset_clear(&shard->set);
    for (int32_t i = 0; i < n; i++)
        if (parts[i].n > 0 && !sum_part(shard, &parts[i])) return false;
    return true;
}

/* Sums a clock of a table that is ruled, or summed exactly, into one part. */
static bool sum_all(pli_shard *shard, int32_t n, const pli_push_part *parts, pli_push_part *whole) {
    int32_t filled = 0, last = 0;
    for (int32_t i = 0; i < n; i++)
        if (parts[i].n > 0) filled++, last = i;
    if (shard->spec.keyed) {
        if (filled <= 1) return *whole = filled == 0 ? (pli_push_part){ .keyed = true } : parts[last], true;
        if (!sum_by_key(shard, n, parts)) return false;
        *whole = (pli_push_part){ .keyed = true, .n = shard->set.n, .keys = shard->set.keys, .values = shard->sum };
        return true;
    }
    if (filled == 1 && covers(shard, &parts[last])) return *whole = parts[last], true;
    if (!sum_dense(shard, n, parts)) return false;
    *whole = (pli_push_part){ .first = shard->first, .n = shard->rows, .values = shard->sum };
    return true;
}

/* Turns cells into values: in place, unless they are a part's own. */
static bool round_all(pli_shard *shard, pli_push_part *whole) {
    const pli_spec *spec = &shard->spec;
    if (!spec->exact || whole->n == 0) return true;
    if (!reserve_sum(shard, whole->n * pli_row_bytes(spec))) return false;
    pli_cells_round(spec->type == PLAIT_F64, whole->n * spec->cols, whole->values, shard->sum);
    whole->values = shard->sum;
    return true;
}

/* Rows of a clock's lists that are added at a time: they stay in a core's cache until every list is through them. */
enum { TOGETHER_BYTES = 256 << 10 };

static plait_status out_of_order(const pli_shard *shard, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "table %s: keys of a push do not increase, or are outside of shard %d",
                    shard->spec.name, shard->index);
}

static bool are_lists_in_order(const pli_shard *shard, int32_t n, const pli_push_part *parts) {
    bool in_order = shard->spec.keyed && shard->spec.rows > 0 && n > 1;
    for (int32_t i = 0; i < n; i++)
        in_order = in_order && (parts[i].increasing || pli_is_increasing_u64(parts[i].n, parts[i].keys));
    return in_order;
}

/* Finds the rows of a part's keys from `from` on that are below `limit`; returns how many, -1: the keys do not
 * increase. All rows are prefetched at once, so that many are on their way from memory before the first is needed. */
static int64_t take_rows(const pli_shard *shard, const pli_push_part *part, int64_t from, uint64_t limit,
                         int64_t rows[PLI_BLOCK]) {
    const uint64_t first = (uint64_t)shard->first;
    const int64_t  row_bytes = pli_row_bytes(&shard->spec);
    void          *values = shard->store.chunk->values;
    const int64_t  most = part->n - from < PLI_BLOCK ? part->n - from : PLI_BLOCK;
    uint64_t       least = from > 0 ? part->keys[from - 1] - first + 1 : 0, disorder = 0;
    int64_t        m = 0;
    for (; m < most; m++) {
        const uint64_t row = part->keys[from + m] - first;
        if (row >= limit) break;
        disorder |= row < least;
        least = row + 1;
        rows[m] = (int64_t)row;
        __builtin_prefetch(pli_at(values, rows[m] * row_bytes), 1, 2);
    }
    return disorder == 0 ? m : -1;
}

/* Adds lists of increasing keys, each row's in the order of parts, in one pass over rows and keys. */
static plait_status add_together(pli_shard *shard, int32_t n, const pli_push_part *parts, plait_error *err) {
    const int64_t row_bytes = pli_row_bytes(&shard->spec),
                  stride = TOGETHER_BYTES / row_bytes > 0 ? TOGETHER_BYTES / row_bytes : 1;
    if (!pli_grow((void **)&shard->at, &shard->at_capacity, n, sizeof *shard->at)) return no_memory(shard, err);
    int64_t rows[PLI_BLOCK], *at = shard->at; /* how far each part is done */
    memset(at, 0, (size_t)n * sizeof *at);
    for (int64_t row = 0; row < shard->rows; row += stride) {
        const uint64_t limit = (uint64_t)(shard->rows - row < stride ? shard->rows : row + stride);
        for (int32_t i = 0; i < n; i++) {
            int64_t m;
            while ((m = take_rows(shard, &parts[i], at[i], limit, rows)) > 0) {
                pli_store_scatter(&shard->store, m, rows, pli_at_const(parts[i].values, at[i] * row_bytes));
                at[i] += m;
            }
            if (m < 0) return out_of_order(shard, err);
        }
    }
    for (int32_t i = 0; i < n; i++)
        if (at[i] < parts[i].n) return out_of_order(shard, err);
    return PLAIT_OK;
}

static plait_status check_order(const pli_shard *shard, int32_t n, const pli_push_part *parts, plait_error *err) {
    const uint64_t first = (uint64_t)shard->first, rows = (uint64_t)shard->rows;
    const bool     sparse = shard->spec.rows == 0; /* any 64-bit number is a key */
    for (int32_t i = 0; i < n; i++) {
        const pli_push_part *part = &parts[i];
        if (!part->increasing || part->n == 0) continue;
        if (!pli_is_increasing_u64(part->n, part->keys) ||
            (!sparse && (part->keys[0] < first || part->keys[part->n - 1] - first >= rows)))
            return out_of_order(shard, err);
    }
    return PLAIT_OK;
}

static int64_t examples_of(int32_t n, const pli_push_part *parts, bool *touched_out) {
    int64_t examples = 0;
    for (int32_t i = 0; i < n; i++) {
        examples += parts[i].examples;
        *touched_out = *touched_out || parts[i].touched;
    }
    return examples;
}

/* Applies one part that sums all others, by the rule. */
static bool apply_whole(pli_shard *shard, int64_t clock, int64_t examples, int32_t n, const pli_push_part *parts) {
    const pli_spec *spec = &shard->spec;
    plait_step      step = { 0 };
    pli_push_part   whole;
    if (spec->ruled) step = pli_rule_step(&spec->rule, clock, examples < 1 ? 1 : examples, spec->batch, 1);
    bool done = sum_all(shard, n, parts, &whole) && round_all(shard, &whole) && apply_part(shard, &whole, &step, 1);
    shard->store.units += spec->ruled;
    return done;
}

plait_status pli_shard_apply_clock(pli_shard *shard, int64_t clock, int32_t n, const pli_push_part *parts,
                                   plait_error *err) {
    const pli_spec *spec = &shard->spec;
    bool            touched = false, adds = !spec->ruled && !spec->exact, done = true;
    int64_t         examples = examples_of(n, parts, &touched);
    if (!touched) return PLAIT_OK;
    if (!pli_store_own(&shard->store)) return no_memory(shard, err);
    shard->applied++;
    if (adds && are_lists_in_order(shard, n, parts)) return add_together(shard, n, parts, err);
    PLI_TRY(check_order(shard, n, parts, err));
    for (int32_t i = 0; adds && done && i < n; i++) done = apply_part(shard, &parts[i], NULL, 0);
    if (!adds) done = apply_whole(shard, clock, examples, n, parts);
    return done ? PLAIT_OK : no_memory(shard, err);
}

/* Applies the part to a copy of values and state, which then come back. */
plait_status pli_shard_foretell(pli_shard *shard, int64_t clock, const pli_push_part *part, void *to,
                                plait_error *err) {
    pli_store     *store = &shard->store;
    const int32_t  slots = shard->spec.ruled ? shard->spec.rule.ops->slots : 0;
    const size_t   bytes = (size_t)(store->states * shard->spec.width);
    const int64_t  applied = shard->applied, units = store->units;
    pli_slab      *values = store->slab, *copy = pli_slab_new(values->bytes);
    unsigned char *kept = pli_array((size_t)slots + 1, bytes);
    plait_status   status = copy == NULL || kept == NULL ? no_memory(shard, err) : PLAIT_OK;
    if (status >= 0) {
        memcpy(copy->memory, values->memory, values->bytes);
        for (int32_t k = 0; k < slots; k++) memcpy(kept + (size_t)k * bytes, store->chunk->slot[k], bytes);
        store->slab = copy;
        store->chunk->values = copy->memory;
        status = pli_shard_apply_clock(shard, clock, 1, part, err);
        memcpy(to, store->chunk->values, values->bytes);
        for (int32_t k = 0; k < slots; k++) memcpy(store->chunk->slot[k], kept + (size_t)k * bytes, bytes);
        pli_store_swap(store, values);
        shard->applied = applied;
        store->units = units;
    } else if (copy != NULL) {
        pli_slab_unref(&copy);
    }
    pli_free(kept);
    return status;
}

plait_status pli_shard_sum_clock(pli_shard *shard, int32_t n, const pli_push_part *parts, pli_push_part *sum_out,
                                 plait_error *err) {
    bool    touched = false;
    int64_t examples = examples_of(n, parts, &touched);
    *sum_out = (pli_push_part){ .keyed = shard->spec.keyed };
    if (!touched) return PLAIT_OK;
    PLI_TRY(check_order(shard, n, parts, err));
    if (!sum_all(shard, n, parts, sum_out)) return no_memory(shard, err);
    sum_out->touched = true;
    sum_out->examples = examples;
    return PLAIT_OK;
}

plait_status pli_shard_apply_values(pli_shard *shard, int64_t clock, int64_t examples, int64_t first, int64_t n,
                                    int64_t state, const void *sum, plait_error *err) {
    const pli_spec *spec = &shard->spec;
    plait_step      step = { 0 };
    if (spec->ruled) step = pli_rule_step(&spec->rule, clock, examples < 1 ? 1 : examples, spec->batch, 1);
    if (!pli_store_own(&shard->store)) return no_memory(shard, err);
    if (spec->exact) {
        if (!reserve_sum(shard, n * spec->width)) return no_memory(shard, err);
        pli_cells_round(spec->type == PLAIT_F64, n, sum, shard->sum);
        sum = shard->sum;
    }
    pli_store_update_values(&shard->store, first, n, state, &step, sum);
    shard->applied++;
    return PLAIT_OK;
}

/* Applies one push of a ruled table by itself. times: by how much its step is larger than its share of a clock. */
static plait_status apply_alone(pli_shard *shard, int64_t clock, double times, int64_t own_units, int64_t units,
                                const pli_push_part *part, plait_error *err) {
    const pli_spec *spec = &shard->spec;
    plait_step      step = { 0 };
    if (!pli_store_own(&shard->store)) return no_memory(shard, err);
    if (spec->ruled) step = pli_rule_step(&spec->rule, clock, part->examples < 1 ? 1 : part->examples, spec->batch, 0);
    step.rate *= times;
    step.fraction *= times;
    if (!apply_part(shard, part, &step, own_units)) return no_memory(shard, err);
    shard->store.units += units;
    shard->applied++;
    return PLAIT_OK;
}

/* Rows that are replaced remember the clock and the worker of their last push. */
static plait_status replace_rows(pli_shard *shard, int64_t stamp, const pli_push_part *part, plait_error *err) {
    if (!pli_store_own(&shard->store)) return no_memory(shard, err);
    if (!pli_store_replace(&shard->store, part->n, part->keys, stamp, part->values)) return no_memory(shard, err);
    shard->applied++;
    return PLAIT_OK;
}

plait_status pli_shard_apply_push(pli_shard *shard, int32_t worker, int64_t clock, int64_t staleness,
                                  const pli_push_part *part, plait_error *err) {
    if (!part->touched) return PLAIT_OK;
    if (shard->spec.combine->replaces) return replace_rows(shard, pli_stamp(clock, worker), part, err);
    return apply_alone(shard, clock, 1 / (double)staleness, part->examples / staleness, part->examples, part, err);
}

plait_status pli_shard_apply_own(pli_shard *shard, int64_t clock, int32_t workers, const pli_push_part *part,
                                 plait_error *err) {
    int64_t units = part->examples * workers;
    if (!part->touched) return PLAIT_OK;
    return apply_alone(shard, clock, (double)workers, units, units, part, err);
}
