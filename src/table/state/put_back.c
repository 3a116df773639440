/* Puts the rows of a capture back: sends them to their present owners, or writes them into the worker's copy. See
 * state.h. */
#include <stdio.h>
#include <string.h>

#include "table/state/state.h"
#include "table/state/values.h"
#include "table/table.h"

enum { WHAT_BYTES = 128 };

static pli_msg *make_restore(const pli_wire_state *state, const void *keys, size_t key_bytes, const void *rows,
                             size_t bytes) {
    pli_msg *msg = pli_msg_new(sizeof *state + key_bytes + bytes);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    memcpy(body, state, sizeof *state);
    if (key_bytes > 0) memcpy(body + sizeof *state, keys, key_bytes);
    if (bytes > 0) memcpy(body + sizeof *state + key_bytes, rows, bytes);
    return msg;
}

typedef struct sending {
    plait_table *table;
    pli_ticket   ticket;
    pli_exchange x;
    uint16_t    *shard_of; /* [n] of keys; NULL: a range, or all shards */
    plait_error *err;
} sending;

static plait_status send_to(sending *s, int32_t shard, pli_msg *msg) {
    const pli_placement *placement = &s->table->spec.placement;
    if (msg != NULL) msg->head.clock = s->table->job->client.clock;
    return pli_client_send(&s->table->job->client, s->x.now_ns,
                           pli_placement_rank(placement, shard) - placement->first_rank, PLI_RESTORE, msg, &s->ticket,
                           &s->x.out, s->err);
}

static plait_status send_range(sending *s, int32_t array, int64_t first, int64_t n, const void *rows) {
    const pli_placement *placement = &s->table->spec.placement;
    const int64_t        row_bytes = pli_state_row_bytes(&s->table->spec, array);
    for (int32_t shard = 0; shard < placement->shards; shard++) {
        int64_t begin, count;
        pli_placement_range(placement, shard, &begin, &count);
        const int64_t low = begin > first ? begin : first;
        const int64_t high = begin + count < first + n ? begin + count : first + n;
        if (low >= high) continue;
        const pli_wire_state state = {
            .table = (uint32_t)s->table->spec.id, .array = (uint32_t)array, .first = low, .n = high - low
        };
        PLI_TRY(send_to(s, shard,
                        make_restore(&state, NULL, 0, pli_at_const(rows, (low - first) * row_bytes),
                                     (size_t)((high - low) * row_bytes))));
    }
    return PLAIT_OK;
}

static plait_status send_keys_of(sending *s, int32_t shard, int32_t array, int64_t n, const uint64_t *keys,
                                 const void *rows) {
    const int64_t  row_bytes = pli_state_row_bytes(&s->table->spec, array);
    pli_wire_state state = { .table = (uint32_t)s->table->spec.id, .array = (uint32_t)array, .first = 0 };
    for (int64_t i = 0; i < n; i++) state.n += s->shard_of[i] == shard;
    if (state.n == 0) return PLAIT_OK;
    pli_msg *msg = pli_msg_new(sizeof state + (size_t)(state.n * (8 + row_bytes)));
    if (msg == NULL) return send_to(s, shard, NULL);
    unsigned char *body = pli_msg_body(msg);
    memcpy(body, &state, sizeof state);
    unsigned char *key_at = body + sizeof state, *row_at = key_at + state.n * 8;
    for (int64_t i = 0; i < n; i++) {
        if (s->shard_of[i] != shard) continue;
        memcpy(key_at, &keys[i], 8);
        memcpy(row_at, pli_at_const(rows, i * row_bytes), (size_t)row_bytes);
        key_at += 8;
        row_at += row_bytes;
    }
    return send_to(s, shard, msg);
}

static plait_status send_all(sending *s, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                             const void *rows) {
    const pli_wire_state of_all = { .table = (uint32_t)s->table->spec.id, .array = (uint32_t)array, .first = first };
    if (array < PLI_STATE_UNITS && keys == NULL) return send_range(s, array, first, n, rows);
    for (int32_t shard = 0; shard < s->table->spec.placement.shards; shard++) {
        if (array >= PLI_STATE_UNITS)
            PLI_TRY(send_to(s, shard, make_restore(&of_all, NULL, 0, rows, rows != NULL ? sizeof(int64_t) : 0)));
        else
            PLI_TRY(send_keys_of(s, shard, array, n, keys, rows));
    }
    return PLAIT_OK;
}

static plait_status put_served(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                               const void *rows, plait_error *err) {
    sending s = { .table = table, .err = err };
    char    what[WHAT_BYTES];
    snprintf(what, sizeof what, "the %s of table %s", array == PLI_STATE_ZERO ? "zeroing" : "restoring",
             table->spec.name);
    if (keys != NULL) {
        s.shard_of = pli_array((size_t)n, sizeof *s.shard_of);
        if (s.shard_of == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
        pli_placement_shards(&table->spec.placement, n, keys, s.shard_of);
    }
    pli_exchange_begin(&s.x, table->job, &s.ticket);
    plait_status status = pli_exchange_wait(&s.x, send_all(&s, array, first, n, keys, rows), what, err);
    pli_ticket_free(&s.ticket);
    pli_free(s.shard_of);
    return status;
}

static plait_status put_copy(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                             const void *rows, plait_error *err) {
    pli_shard *shard = table->ops->copy(table);
    if (table->spec.sharded && array >= PLI_STATE_SLOT && array < PLI_STATE_PAID) {
        table->ops->put_slices(table, array - PLI_STATE_SLOT, first, n, rows);
        return PLAIT_OK;
    }
    if (keys != NULL && (!pli_grow((void **)&shard->at, &shard->at_capacity, n, sizeof *shard->at) ||
                         !pli_store_add_rows(&shard->store, n, keys, shard->at)))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
    if (!pli_store_own(&shard->store))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", table->spec.name);
    pli_snap_put(&shard->store, array, first, n, keys != NULL ? shard->at : NULL, rows);
    return PLAIT_OK;
}

plait_status pli_state_put(plait_table *table, int32_t array, int64_t first, int64_t n, const uint64_t *keys,
                           const void *rows, plait_error *err) {
    const pli_spec *spec = &table->spec;
    bool            in_range = keys != NULL || (first >= 0 && n >= 0 && first <= spec->rows && n <= spec->rows - first);
    if (array < 0 || array >= PLI_STATE_KEYS || pli_state_row_bytes(spec, array) == 0 || !in_range || n < 0 ||
        (keys != NULL) != (spec->rows == 0))
        return pli_fail(err, PLAIT_EFORMAT, "table %s: no such rows of its state", spec->name);
    if (n == 0) return PLAIT_OK;
    if (pli_state_is_copied(table)) return put_copy(table, array, first, n, keys, rows, err);
    pli_comm_enter(table->job->comm, "the restoring of a table");
    return pli_comm_leave(table->job->comm, put_served(table, array, first, n, keys, rows, err));
}

plait_status pli_state_put_units(plait_table *table, int64_t units, plait_error *err) {
    if (units < 0)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: penalties of %lld units", table->spec.name, (long long)units);
    if (pli_state_is_copied(table)) {
        table->ops->copy(table)->store.units = units;
        return PLAIT_OK;
    }
    pli_comm_enter(table->job->comm, "the restoring of a table");
    return pli_comm_leave(table->job->comm, put_served(table, PLI_STATE_UNITS, 0, 0, NULL, &units, err));
}

plait_status pli_state_drop(plait_table *table, plait_error *err) {
    return put_served(table, PLI_STATE_DROP, 0, 0, NULL, NULL, err);
}

plait_status pli_state_zero(plait_table *table, int64_t number, plait_error *err) {
    return put_served(table, PLI_STATE_ZERO, number, 0, NULL, NULL, err);
}
