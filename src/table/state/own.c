/* A worker's own mirror of a table, copied and put back. See own.h. */
#include "table/state/own.h"

#include "table/state/shard.h"
#include "table/table.h"

bool pli_own_is(const plait_table *table) { return table->ops->own != NULL; }

plait_table *pli_own_common(plait_table *table) {
    plait_table *common = table->ops->own != NULL ? table->ops->own->common(table) : NULL;
    return common != NULL ? common : table;
}

static plait_status no_memory(const plait_table *table, plait_error *err) {
    return pli_fail(err, PLAIT_ENOMEM, "table %s: no memory for a mirror in a checkpoint", table->spec.name);
}

static plait_status take_array(const plait_table *table, int32_t array, pli_own *own, plait_error *err) {
    const pli_store *store = &table->ops->own->mirror(table)->store;
    void            *to = pli_array((size_t)store->rows, (size_t)pli_state_row_bytes(&table->spec, array));
    if (to == NULL && store->rows > 0) return no_memory(table, err);
    own->array[array] = to;
    if (array == PLI_STATE_KEYS) pli_keymap_keys(&store->map, to);
    else pli_snap_copy(store, array, 0, store->rows, to);
    return PLAIT_OK;
}

plait_status pli_own_take(plait_table *table, pli_own *own_out, plait_error *err) {
    int32_t arrays[PLI_STATE_ARRAYS];
    *own_out = (pli_own){ 0 };
    if (!pli_own_is(table)) return PLAIT_OK;
    const pli_store *store = &table->ops->own->mirror(table)->store;
    const int32_t    n = pli_state_arrays(table, arrays);
    own_out->there = true;
    own_out->rows = store->rows;
    plait_status status = PLAIT_OK;
    for (int32_t i = 0; status >= 0 && i < n; i++) status = take_array(table, arrays[i], own_out, err);
    if (status >= 0) status = table->ops->own->take(table, own_out, err);
    own_out->numbers.units = (double)store->units;
    if (status < 0) pli_own_free(own_out);
    return status;
}

plait_status pli_own_put(plait_table *table, const pli_own *own, plait_error *err) {
    pli_shard     *mirror = table->ops->own->mirror(table);
    pli_store     *store = &mirror->store;
    const int64_t *at = NULL;
    if (own->array[PLI_STATE_KEYS] != NULL) {
        if (!pli_grow((void **)&mirror->at, &mirror->at_capacity, own->rows, sizeof *mirror->at) ||
            !pli_store_add_rows(store, own->rows, own->array[PLI_STATE_KEYS], mirror->at))
            return no_memory(table, err);
        at = mirror->at;
    }
    if (!pli_store_own(store)) return no_memory(table, err);
    for (int32_t a = 0; a < PLI_STATE_KEYS; a++)
        if (own->array[a] != NULL) pli_snap_put(store, a, 0, own->rows, at, own->array[a]);
    store->units = (int64_t)own->numbers.units;
    return table->ops->own->put(table, own, err);
}

void pli_own_free(pli_own *own) {
    for (int32_t a = 0; a < PLI_STATE_ARRAYS; a++) pli_free(own->array[a]);
    for (int32_t i = 0; i < own->n_more; i++) pli_free(own->more[i].values);
    pli_free(own->held);
    pli_free(own->keys);
    pli_free(own->common);
    *own = (pli_own){ 0 };
}
