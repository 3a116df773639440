/* Reads and updates rows, whatever finds them. See store.h. */
#include "table/state/store.h"

#include <string.h>

#include "table/state/snap.h"
#include "table/state/values.h"

enum { AHEAD = 16, PACK = 256 /* values */ };

plait_status pli_store_open(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows, const void *initial,
                            const void *penalty, plait_error *err) {
    return spec->rows == 0 ? pli_store_open_sparse(store, spec, err)
                           : pli_store_open_dense(store, spec, first, rows, initial, penalty, err);
}

plait_status pli_store_open_empty(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                  plait_error *err) {
    if (spec->rows > 0) return pli_store_open_dense_empty(store, spec, first, rows, err);
    PLI_TRY(pli_store_open_sparse(store, spec, err));
    store->here = 0;
    return PLAIT_OK;
}

void pli_store_close(pli_store *store) {
    if (store->first >= 0 && store->chunk != NULL) {
        for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) pli_free(store->chunk->slot[k]);
        pli_free(store->chunk->paid);
        pli_free(store->chunk->stamp);
    } else if (store->first < 0) {
        pli_store_sparse_close(store);
    }
    pli_slab_unref(&store->slab);
    pli_free(store->penalty);
    pli_free(store->chunk);
    *store = (pli_store){ 0 };
}

/* --- from keys to rows ------------------------------------------------------------------------------ */

static void find_rows(const pli_store *store, int64_t n, const uint64_t *keys, int64_t *rows) {
    if (store->first < 0) {
        pli_keymap_find_all(&store->map, n, keys, rows);
        return;
    }
    for (int64_t i = 0; i < n; i++) rows[i] = (int64_t)(keys[i] - (uint64_t)store->first);
    for (int64_t i = 0; pli_store_lacks_rows(store) && i < n; i++)
        if (rows[i] >= store->here) rows[i] = -1;
}

static inline void prefetch_row(const pli_store *store, int64_t row, int64_t row_bytes, bool state) {
    if (row < 0) return;
    const pli_chunk *chunk = &store->chunk[row >> store->shift];
    int64_t          at = (row & store->mask) * row_bytes;
    __builtin_prefetch(pli_at(chunk->values, at), 1);
    if (!state) return;
    for (int32_t k = 0; k < store->spec->rule.ops->slots; k++) __builtin_prefetch(pli_at(chunk->slot[k], at), 1);
    if (chunk->paid != NULL) __builtin_prefetch(&chunk->paid[row & store->mask], 1);
}

static inline void copy_row(void *to, const void *from, int64_t row_bytes) {
    if (row_bytes == 4) memcpy(to, from, 4);
    else if (row_bytes == 8) memcpy(to, from, 8);
    else memcpy(to, from, (size_t)row_bytes);
}

/* --- paying what a row owes -------------------------------------------------------------------------- */

/* The step of the next application, in whose measure debts are counted (as optim wants it). */
static plait_step due_step(const pli_store *store) {
    return pli_rule_step(&store->spec->rule, store->units / store->per_clock, 1, store->spec->batch, 1);
}

/* values: the row's, or a copy of it. */
static void pay(const pli_store *store, const plait_step *due, int64_t row, int64_t owed, void *values) {
    const pli_spec  *spec = store->spec;
    const pli_chunk *chunk = &store->chunk[row >> store->shift];
    int64_t          at = (row & store->mask) * pli_row_bytes(spec);
    const void      *penalty = store->penalty == NULL ? NULL : pli_at(store->penalty, at);
    if (spec->type == PLAIT_F32) {
        float *slot[PLI_RULE_SLOTS_MAX];
        for (int32_t k = 0; k < spec->rule.ops->slots; k++) slot[k] = pli_at(chunk->slot[k], at);
        spec->rule.ops->catch_up_f32(&spec->rule, due, owed, spec->cols, values, slot, penalty);
    } else {
        double *slot[PLI_RULE_SLOTS_MAX];
        for (int32_t k = 0; k < spec->rule.ops->slots; k++) slot[k] = pli_at(chunk->slot[k], at);
        spec->rule.ops->catch_up_f64(&spec->rule, due, owed, spec->cols, values, slot, penalty);
    }
}

void pli_store_pay_all(pli_store *store) {
    if (!store->spec->lazy) return;
    if (store->snap != NULL) pli_snap_range_changes(store->snap, 0, store->rows);
    plait_step due = due_step(store);
    for (int64_t row = 0; row < store->rows; row++) {
        int64_t owed = pli_store_owed(store, row);
        if (owed <= 0) continue;
        pay(store, &due, row, owed, pli_store_row(store, row, pli_row_bytes(store->spec)));
        store->chunk[row >> store->shift].paid[row & store->mask] += owed * store->per_clock;
    }
}

/* --- reading ----------------------------------------------------------------------------------------- */

static void get_block(const pli_store *store, int64_t n, const int64_t *rows, void *out) {
    int64_t row_bytes = pli_row_bytes(store->spec);
    bool    lazy = store->spec->lazy;
    plait_step due = lazy ? due_step(store) : (plait_step){ 0 };
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n) prefetch_row(store, rows[i + AHEAD], row_bytes, lazy);
        void *to = pli_at(out, i * row_bytes);
        if (rows[i] < 0) {
            pli_merge_clear(store->spec->merge, store->spec->cols, to);
            continue;
        }
        copy_row(to, pli_store_row(store, rows[i], row_bytes), row_bytes);
        int64_t owed = lazy ? pli_store_owed(store, rows[i]) : 0;
        if (owed > 0) pay(store, &due, rows[i], owed, to);
    }
}

void pli_store_get(const pli_store *store, int64_t n, const uint64_t *keys, void *out) {
    int64_t rows[PLI_BLOCK], row_bytes = pli_row_bytes(store->spec);
    for (int64_t at = 0; at < n; at += PLI_BLOCK) {
        int64_t m = n - at < PLI_BLOCK ? n - at : PLI_BLOCK;
        find_rows(store, m, keys + at, rows);
        get_block(store, m, rows, pli_at(out, at * row_bytes));
    }
}

void pli_store_get_rows(const pli_store *store, int64_t first, int64_t n, void *out) {
    int64_t rows[PLI_BLOCK], row_bytes = pli_row_bytes(store->spec);
    if (store->first >= 0 && !store->spec->lazy) {
        memcpy(out, pli_store_row(store, first, row_bytes), (size_t)(n * row_bytes));
        return;
    }
    for (int64_t at = 0; at < n; at += PLI_BLOCK) {
        int64_t m = n - at < PLI_BLOCK ? n - at : PLI_BLOCK;
        for (int64_t i = 0; i < m; i++) rows[i] = first + at + i;
        get_block(store, m, rows, pli_at(out, at * row_bytes));
    }
}

/* --- updating ---------------------------------------------------------------------------------------- */

static void apply(const pli_spec *spec, const plait_step *step, int64_t n, void *w, void *const *slot, const void *g,
                  const void *penalty) {
    if (spec->type == PLAIT_F32) {
        float *s[PLI_RULE_SLOTS_MAX];
        for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) s[k] = slot[k];
        spec->rule.ops->apply_f32(&spec->rule, step, n, w, s, g, penalty);
    } else {
        double *s[PLI_RULE_SLOTS_MAX];
        for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) s[k] = slot[k];
        spec->rule.ops->apply_f64(&spec->rule, step, n, w, s, g, penalty);
    }
}

static void pay_before_update(pli_store *store, const plait_step *due, int64_t row, int64_t own_units) {
    int64_t  owed = pli_store_owed(store, row);
    int64_t *paid = &store->chunk[row >> store->shift].paid[row & store->mask];
    if (owed > 0) pay(store, due, row, owed, pli_store_row(store, row, pli_row_bytes(store->spec)));
    *paid += (owed > 0 ? owed : 0) * store->per_clock + own_units;
}

/* Short rows are packed, so that the rule runs over many values at once. */
typedef struct pack {
    _Alignas(64) unsigned char w[PACK * 8], slot[PLI_RULE_SLOTS_MAX][PACK * 8], penalty[PACK * 8];
} pack;

static void pack_rows(const pli_store *store, int64_t n, const int64_t *rows, int64_t row_bytes, pack *p) {
    int32_t slots = store->spec->rule.ops->slots;
    for (int64_t i = 0; i < n; i++) {
        const pli_chunk *chunk = &store->chunk[rows[i] >> store->shift];
        int64_t          at = (rows[i] & store->mask) * row_bytes;
        copy_row(p->w + i * row_bytes, pli_at(chunk->values, at), row_bytes);
        for (int32_t k = 0; k < slots; k++) copy_row(p->slot[k] + i * row_bytes, pli_at(chunk->slot[k], at), row_bytes);
        if (store->penalty != NULL) copy_row(p->penalty + i * row_bytes, pli_at(store->penalty, at), row_bytes);
    }
}

static void unpack_rows(const pli_store *store, int64_t n, const int64_t *rows, int64_t row_bytes, const pack *p) {
    int32_t slots = store->spec->rule.ops->slots;
    for (int64_t i = 0; i < n; i++) {
        const pli_chunk *chunk = &store->chunk[rows[i] >> store->shift];
        int64_t          at = (rows[i] & store->mask) * row_bytes;
        copy_row(pli_at(chunk->values, at), p->w + i * row_bytes, row_bytes);
        for (int32_t k = 0; k < slots; k++) copy_row(pli_at(chunk->slot[k], at), p->slot[k] + i * row_bytes, row_bytes);
    }
}

static void apply_packed(pli_store *store, int64_t n, const int64_t *rows, const plait_step *step, const void *g) {
    const pli_spec *spec = store->spec;
    int64_t         row_bytes = pli_row_bytes(spec), most = PACK / spec->cols;
    pack            p;
    void           *slot[PLI_RULE_SLOTS_MAX];
    for (int32_t k = 0; k < PLI_RULE_SLOTS_MAX; k++) slot[k] = p.slot[k];
    for (int64_t at = 0; at < n; at += most) {
        int64_t m = n - at < most ? n - at : most;
        pack_rows(store, m, rows + at, row_bytes, &p);
        apply(spec, step, m * spec->cols, p.w, slot, pli_at_const(g, at * row_bytes),
              store->penalty == NULL ? NULL : p.penalty);
        unpack_rows(store, m, rows + at, row_bytes, &p);
    }
}

static void apply_row(pli_store *store, int64_t row, const plait_step *step, const void *g) {
    const pli_spec  *spec = store->spec;
    const pli_chunk *chunk = &store->chunk[row >> store->shift];
    int64_t          at = (row & store->mask) * pli_row_bytes(spec);
    void            *slot[PLI_RULE_SLOTS_MAX] = { 0 };
    for (int32_t k = 0; k < spec->rule.ops->slots; k++) slot[k] = pli_at(chunk->slot[k], at);
    apply(spec, step, spec->cols, pli_at(chunk->values, at), slot, g,
          store->penalty == NULL ? NULL : pli_at(store->penalty, at));
}

void pli_store_scatter(pli_store *store, int64_t n, const int64_t *rows, const void *delta) {
    if (store->snap != NULL) pli_snap_rows_change(store->snap, n, rows);
    pli_merge_scatter(store->spec->merge, n, store->spec->cols, rows, delta, store->chunk->values); /* one chunk */
}

static void update_block(pli_store *store, int64_t n, const int64_t *rows, const plait_step *step, int64_t own_units,
                         const void *delta) {
    const pli_spec *spec = store->spec;
    int64_t         row_bytes = pli_row_bytes(spec);
    if (!spec->ruled && store->first >= 0) {
        pli_store_scatter(store, n, rows, delta);
        return;
    }
    if (store->snap != NULL) pli_snap_rows_change(store->snap, n, rows);
    if (!spec->ruled) {
        for (int64_t i = 0; i < n; i++) {
            if (i + AHEAD < n) prefetch_row(store, rows[i + AHEAD], row_bytes, false);
            spec->merge->fold(spec->cols, pli_at_const(delta, i * row_bytes), pli_store_row(store, rows[i], row_bytes));
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) prefetch_row(store, rows[i], row_bytes, true);
    if (spec->lazy) {
        plait_step due = due_step(store);
        for (int64_t i = 0; i < n; i++) pay_before_update(store, &due, rows[i], own_units);
    }
    if (spec->cols <= PACK / 4) {
        apply_packed(store, n, rows, step, delta);
    } else {
        for (int64_t i = 0; i < n; i++) apply_row(store, rows[i], step, pli_at_const(delta, i * row_bytes));
    }
}

/* The same where some rows may not be here yet (-1): runs of those that are. */
static void update_runs(pli_store *store, int64_t n, const int64_t *rows, const plait_step *step, int64_t own_units,
                        const void *delta) {
    const int64_t row_bytes = pli_row_bytes(store->spec);
    for (int64_t at = 0, end; at < n; at = end + 1) {
        for (end = at; end < n && rows[end] >= 0;) end++;
        if (end > at) update_block(store, end - at, rows + at, step, own_units, pli_at_const(delta, at * row_bytes));
    }
}

bool pli_store_update(pli_store *store, int64_t n, const uint64_t *keys, const plait_step *step, int64_t own_units,
                      const void *delta) {
    int64_t rows[PLI_BLOCK], row_bytes = pli_row_bytes(store->spec);
    for (int64_t at = 0; at < n; at += PLI_BLOCK) {
        int64_t m = n - at < PLI_BLOCK ? n - at : PLI_BLOCK;
        if (store->first >= 0) find_rows(store, m, keys + at, rows);
        else if (!pli_store_add_rows(store, m, keys + at, rows)) return false;
        if (pli_store_lacks_rows(store))
            update_runs(store, m, rows, step, own_units, pli_at_const(delta, at * row_bytes));
        else update_block(store, m, rows, step, own_units, pli_at_const(delta, at * row_bytes));
    }
    return true;
}

/* --- rows that are replaced ------------------------------------------------------------------------------ */

/* The stamps of a chunk's rows; NULL: out of memory. */
static int64_t *stamps_of(const pli_store *store, pli_chunk *chunk) {
    const int64_t rows = store->first >= 0 ? store->rows : store->mask + 1;
    if (chunk->stamp == NULL) chunk->stamp = pli_calloc((size_t)rows, sizeof *chunk->stamp);
    return chunk->stamp;
}

static bool replace_row(pli_store *store, int64_t row, int64_t stamp, const void *values) {
    const pli_spec *spec = store->spec;
    int64_t        *stamps = stamps_of(store, &store->chunk[row >> store->shift]);
    if (stamps == NULL) return false;
    if (stamps[row & store->mask] > stamp) return true;
    stamps[row & store->mask] = stamp;
    if (store->snap != NULL) pli_snap_rows_change(store->snap, 1, &row);
    spec->merge->fold(spec->cols, values, pli_store_row(store, row, pli_row_bytes(spec)));
    return true;
}

bool pli_store_replace(pli_store *store, int64_t n, const uint64_t *keys, int64_t stamp, const void *rows) {
    int64_t at[PLI_BLOCK], row_bytes = pli_row_bytes(store->spec);
    for (int64_t done = 0; done < n; done += PLI_BLOCK) {
        int64_t m = n - done < PLI_BLOCK ? n - done : PLI_BLOCK;
        if (store->first >= 0) find_rows(store, m, keys + done, at);
        else if (!pli_store_add_rows(store, m, keys + done, at)) return false;
        for (int64_t i = 0; i < m; i++) {
            if (at[i] < 0) continue; /* it is not here yet */
            if (!replace_row(store, at[i], stamp, pli_at_const(rows, (done + i) * row_bytes))) return false;
        }
    }
    return true;
}

bool pli_store_has_stamps(const pli_store *store, int64_t first, int64_t n) {
    for (int64_t row = first; row < first + n; row = ((row >> store->shift) + 1) << store->shift)
        if (store->chunk[row >> store->shift].stamp != NULL) return true;
    return false;
}

void pli_store_copy_stamps(const pli_store *store, int64_t first, int64_t n, int64_t *stamps) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t *of = store->chunk[(first + i) >> store->shift].stamp;
        stamps[i] = of == NULL ? 0 : of[(first + i) & store->mask];
    }
}

bool pli_store_put_stamps(pli_store *store, int64_t first, int64_t n, const int64_t *stamps) {
    for (int64_t i = 0; i < n; i++) {
        int64_t *of = stamps_of(store, &store->chunk[(first + i) >> store->shift]);
        if (of == NULL) return false;
        of[(first + i) & store->mask] = stamps[i];
    }
    return true;
}

/* --- ranges ---------------------------------------------------------------------------------------------- */

void pli_store_update_values(pli_store *store, int64_t first, int64_t n, int64_t state, const plait_step *step,
                             const void *delta) {
    const pli_spec *spec = store->spec;
    int64_t         at = first * spec->width;
    void           *slot[PLI_RULE_SLOTS_MAX] = { 0 };
    if (store->snap != NULL && n > 0)
        pli_snap_range_changes(store->snap, first / spec->cols, (first + n - 1) / spec->cols - first / spec->cols + 1);
    if (!spec->ruled) {
        spec->merge->fold(n, delta, pli_at(store->chunk->values, at));
        return;
    }
    for (int32_t k = 0; k < spec->rule.ops->slots; k++) slot[k] = pli_at(store->chunk->slot[k], state * spec->width);
    apply(spec, step, n, pli_at(store->chunk->values, at), slot, delta,
          store->penalty == NULL ? NULL : pli_at(store->penalty, at));
}

void pli_store_update_range(pli_store *store, int64_t first, int64_t n, const plait_step *step, const void *delta) {
    const int64_t cols = store->spec->cols, at = first - store->first;
    if (n > store->here - at) n = store->here - at;
    if (n > 0) pli_store_update_values(store, at * cols, n * cols, at * cols, step, delta);
}
