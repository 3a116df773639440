/* Dense rows: one chunk, whose values are a slab. See store.h. */
#include <string.h>

#include "table/state/snap.h"
#include "table/state/store.h"
#include "table/state/values.h"

plait_status pli_store_open_state(pli_store *store, int64_t n, plait_error *err) {
    const pli_spec *spec = store->spec;
    size_t          bytes = (size_t)(n * spec->width);
    store->states = n;
    for (int32_t k = 0; spec->ruled && k < spec->rule.ops->slots; k++) {
        void *slot = store->chunk->slot[k] = pli_aligned(bytes);
        if (slot == NULL)
            return pli_fail(err, PLAIT_ENOMEM, "no memory for the state of %lld values of table %s", (long long)n,
                            spec->name);
        if (!pli_store_lacks_rows(store)) memset(slot, 0, bytes);
    }
    return PLAIT_OK;
}

static plait_status make_arrays(pli_store *store, plait_error *err) {
    const pli_spec *spec = store->spec;
    if (!spec->sharded) PLI_TRY(pli_store_open_state(store, store->rows * spec->cols, err));
    if (!spec->lazy) return PLAIT_OK;
    store->chunk->paid = pli_calloc((size_t)store->rows, sizeof *store->chunk->paid);
    return store->chunk->paid != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows of table %s",
                                                            (long long)store->rows, spec->name);
}

static plait_status make_values(pli_store *store, bool penalty, plait_error *err) {
    const pli_spec *spec = store->spec;
    const size_t    bytes = (size_t)(store->rows * pli_row_bytes(spec));
    store->chunk = pli_calloc(1, sizeof *store->chunk);
    store->slab = pli_slab_new(bytes);
    store->penalty = penalty ? pli_aligned(bytes) : NULL;
    if (store->chunk == NULL || store->slab == NULL || (penalty && store->penalty == NULL))
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld rows of table %s", (long long)store->rows, spec->name);
    store->chunks = 1;
    store->chunk->values = store->slab->memory;
    return PLAIT_OK;
}

static pli_store without_memory(const pli_spec *spec, int64_t first, int64_t rows, int64_t here) {
    return (pli_store){ .spec = spec, .rows = rows, .shift = 62, .mask = INT64_MAX >> 1, .here = here, .per_clock = 1,
                        .first = first };
}

plait_status pli_store_open_dense_empty(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                        plait_error *err) {
    *store = without_memory(spec, first, rows, 0);
    PLI_TRY(make_values(store, false, err));
    return make_arrays(store, err);
}

plait_status pli_store_open_dense(pli_store *store, const pli_spec *spec, int64_t first, int64_t rows,
                                  const void *initial, const void *penalty, plait_error *err) {
    const size_t bytes = (size_t)(rows * pli_row_bytes(spec));
    *store = without_memory(spec, first, rows, PLI_ALL_HERE);
    PLI_TRY(make_values(store, penalty != NULL, err));
    if (initial != NULL) memcpy(store->slab->memory, initial, bytes);
    else pli_merge_clear(spec->merge, rows * spec->cols, store->slab->memory);
    if (penalty != NULL) memcpy(store->penalty, penalty, bytes);
    return make_arrays(store, err);
}

bool pli_store_own(pli_store *store) {
    if (store->slab == NULL || pli_slab_is_mine(store->slab)) return true;
    pli_slab *copy = pli_slab_new(store->slab->bytes);
    if (copy == NULL) return false;
    memcpy(copy->memory, store->slab->memory, store->slab->bytes);
    pli_store_swap(store, copy);
    return true;
}

bool pli_store_zero_dense(pli_store *store) {
    const pli_spec *spec = store->spec;
    pli_slab       *values = pli_slab_is_mine(store->slab) ? NULL : pli_slab_new(store->slab->bytes);
    if (values == NULL && !pli_slab_is_mine(store->slab)) return false;
    if (store->snap != NULL) pli_snap_range_changes(store->snap, 0, store->rows);
    if (values != NULL) pli_store_swap(store, values);
    const int64_t rows = store->rows < store->here ? store->rows : store->here;
    const int64_t states = store->rows <= store->here ? store->states : rows * spec->cols;
    pli_merge_clear(spec->merge, rows * spec->cols, store->slab->memory);
    for (int32_t k = 0; spec->ruled && k < spec->rule.ops->slots; k++)
        memset(store->chunk->slot[k], 0, (size_t)(states * spec->width));
    pli_free(store->chunk->stamp); /* whatever is pushed next is later */
    store->chunk->stamp = NULL;
    for (int64_t row = 0; spec->lazy && row < rows; row++) store->chunk->paid[row] = store->units;
    return true;
}

void pli_store_swap(pli_store *store, pli_slab *values) {
    pli_slab_unref(&store->slab);
    store->slab = values;
    store->chunk->values = values->memory;
}
