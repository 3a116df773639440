/* How a server handles its tables' state: the clock at which a job begins, snapshots that workers fetch piece by piece,
 * and rows that are put back.
 *
 * A snapshot begins with the first SNAP of its number. Every worker sends a SNAP behind a barrier, to every server and
 * before any further update. So when the first SNAP comes, the server has no update that the snapshot must not hold;
 * the other SNAPs find the same snapshot. The next number ends it, taken or not. */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/server/server.h"
#include "table/state/snap.h"
#include "table/state/values.h"

bool pli_server_begin_at(pli_server *server, int64_t clock) {
    if (server->tables > 0) return clock == server->first_clock || clock == server->slowest;
    server->first_clock = server->applied = clock;
    if (server->slowest != PLAIT_LEFT) server->slowest = clock;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        server->peer[w].ended = clock;
        if (server->clocks[w] != PLAIT_LEFT) server->clocks[w] = clock;
        for (int64_t ended = 0; server->sink != NULL && ended < clock; ended++) /* the log has all clocks */
            pli_raise_summed_tick(server, w, 0, ended);
    }
    return true;
}

static bool refuse(pli_server *server, uint64_t now_ns, const pli_msg *msg, const plait_error *why, pli_out *out) {
    pli_server_reply_failure(server, now_ns, msg, why, out);
    return false;
}

void pli_server_snap_end(pli_server_table *table) { pli_snap_end(&table->snap); }

/* --- snapshots ---------------------------------------------------------------------------------------------- */

static plait_status begin(pli_server *server, plait_error *err) {
    for (int64_t i = 0; i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL) continue;
        pli_snap_end(&table->snap);
        PLI_TRY(pli_snap_begin(&table->shard.store, 0, table->shard.store.rows, &table->snap, err));
    }
    return PLAIT_OK;
}

static pli_msg *describe(const pli_server *server) {
    int64_t n = 0;
    for (int64_t i = 0; i < server->tables; i++) n += server->table[i] != NULL;
    pli_msg *answer = pli_msg_new((size_t)n * sizeof(pli_wire_snap));
    if (answer == NULL) return NULL;
    unsigned char *at = pli_msg_body(answer);
    for (int64_t i = 0; i < server->tables; i++) {
        const pli_server_table *table = server->table[i];
        if (table == NULL) continue;
        const pli_wire_snap snap = { .table = (uint32_t)i, .rows = table->snap->rows, .units = table->snap->units };
        memcpy(at, &snap, sizeof snap);
        at += sizeof snap;
    }
    return answer;
}

/* The worker that takes the snapshot from here has all of it. Others may still ask how many rows it had. */
static void release(pli_server *server, uint64_t now_ns, const pli_msg *msg, uint64_t number, pli_out *out) {
    if (number != server->snapped) return;
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && server->table[i]->snap != NULL) pli_snap_release(server->table[i]->snap);
    pli_replicas_released(server, now_ns, msg, out);
}

/* A replica that was made after the snapshot does not have it (replicas.h). */
static bool is_here(const pli_server *server, plait_error *err) {
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && server->table[i]->snap == NULL)
            return pli_fail(err, PLAIT_EPEER, "table %s: the rank with the snapshot that is being taken has died",
                            server->table[i]->shard.spec.name),
                   false;
    return true;
}

bool pli_server_snap(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    uint64_t    number = 0;
    if (msg->head.body_bytes >= sizeof number) memcpy(&number, pli_msg_body(msg), sizeof number);
    if (msg->head.body_bytes == sizeof(pli_wire_taken)) return release(server, now_ns, msg, number, out), false;
    if (msg->head.body_bytes != sizeof number) number = 0;
    if (number == 0 || number < server->snapped) {
        pli_fail(&why, PLAIT_EFORMAT, "a snapshot's number is missing, or of one that is over");
        return refuse(server, now_ns, msg, &why, out);
    }
    if (number > server->snapped && server->replicas != NULL && !server->replicas->whole) {
        server->snapped = number; /* rows are still to come, so it is refused should it come to that */
        return false;
    }
    if (number > server->snapped && begin(server, &why) < 0) {
        for (int64_t i = 0; i < server->tables; i++)
            if (server->table[i] != NULL) pli_snap_end(&server->table[i]->snap);
        return refuse(server, now_ns, msg, &why, out);
    }
    if (number == server->snapped && !is_here(server, &why)) return refuse(server, now_ns, msg, &why, out);
    server->snapped = number;
    pli_server_reply(server, now_ns, msg, describe(server), out);
    return false;
}

/* What a PIECE or RESTORE message names: the table, and the rows by the shard's own numbers. NULL: malformed. */
static pli_server_table *decode(const pli_server *server, const pli_msg *msg, pli_wire_state *state, plait_error *err) {
    pli_server_table *table = NULL;
    if (msg->head.body_bytes >= sizeof *state && msg->offset % 8 == 0) {
        memcpy(state, pli_msg_body(msg), sizeof *state);
        table = pli_server_table_of(server, state->table);
    }
    if (table == NULL || state->n < 0) {
        pli_fail(err, PLAIT_EFORMAT, "a message about the state of a table that is not here");
        return NULL;
    }
    if (table->shard.spec.rows > 0 && state->array < PLI_STATE_UNITS) {
        const uint64_t at = (uint64_t)state->first - (uint64_t)table->shard.first, rows = (uint64_t)table->shard.rows;
        if (at > rows || (uint64_t)state->n > rows - at) {
            pli_fail(err, PLAIT_EFORMAT, "table %s: state of rows outside of shard %d", table->shard.spec.name,
                     table->shard.index);
            return NULL;
        }
        state->first = (int64_t)at;
    }
    return table;
}

bool pli_server_piece(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error             why = { 0 };
    pli_wire_state          state;
    const pli_server_table *table = decode(server, msg, &state, &why);
    pli_msg                *piece = NULL;
    if (table != NULL && table->snap == NULL && server->snapped == 0)
        pli_fail(&why, PLAIT_EFORMAT, "table %s: a piece of a snapshot that has not begun", table->shard.spec.name);
    else if (table != NULL && table->snap == NULL)
        (void)is_here(server, &why);
    else if (table != NULL && state.array < PLI_STATE_ARRAYS)
        (void)pli_snap_take(table->snap, (int32_t)state.array, state.first, state.n, &piece, &why);
    else if (table != NULL)
        pli_fail(&why, PLAIT_EFORMAT, "table %s has no such array", table->shard.spec.name);
    if (piece == NULL) return refuse(server, now_ns, msg, &why, out);
    pli_out_work(out, PLI_WORK_VALUES, piece->head.body_bytes / 8);
    pli_server_reply(server, now_ns, msg, piece, out);
    return false;
}

/* --- rows put back ------------------------------------------------------------------------------------------------ */

/* A new replica hears with it which zeroing was the last (copies/replicas_new.c). */
static plait_status put_units(pli_server_table *table, const pli_wire_state *state, const pli_msg *msg,
                              plait_error *err) {
    int64_t units = -1;
    if (msg->head.body_bytes == sizeof(pli_wire_state) + sizeof units)
        memcpy(&units, pli_at(pli_msg_body(msg), sizeof(pli_wire_state)), sizeof units);
    if (units < 0) return pli_fail(err, PLAIT_EFORMAT, "table %s: its state is malformed", table->shard.spec.name);
    table->shard.store.units = units;
    if (state->first > table->zeros) table->zeros = state->first;
    return PLAIT_OK;
}

/* The message may come twice: the worker that sent it may have died, and another sends it again. */
static plait_status zero(const pli_server *server, pli_server_table *table, const pli_wire_state *state,
                         plait_error *err) {
    if (state->first <= table->zeros) return PLAIT_OK;
    if (!pli_store_zero(&table->shard.store))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to zero table %s", table->shard.spec.name);
    table->zeros = state->first;
    pli_slices_zeroed(&table->slices, &table->shard);
    pli_raise_zeroed(server, table);
    return PLAIT_OK;
}

static plait_status put_keys(pli_shard *shard, const pli_wire_state *state, const pli_msg *msg, plait_error *err) {
    const pli_spec *spec = &shard->spec;
    const uint64_t *keys = (const uint64_t *)pli_at(pli_msg_body(msg), sizeof *state);
    bool            own = true;
    for (int64_t i = 0; i < state->n; i++)
        own = own && pli_placement_shard_of(&spec->placement, keys[i]) == shard->index;
    if (!own) return pli_fail(err, PLAIT_EFORMAT, "table %s: state of a key of another shard", spec->name);
    if (!pli_grow((void **)&shard->at, &shard->at_capacity, state->n, sizeof *shard->at) ||
        !pli_store_add_rows(&shard->store, state->n, keys, shard->at))
        return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", spec->name);
    pli_snap_put(&shard->store, (int32_t)state->array, 0, state->n, shard->at, keys + state->n);
    return PLAIT_OK;
}

/* Behind a barrier: no push, get or function of the table is under way. */
static plait_status drop(pli_server *server, const pli_server_table *table, plait_error *err) {
    if (server->replicas != NULL)
        return pli_fail(err, PLAIT_EFORMAT, "table %s is dropped, and has a second replica", table->shard.spec.name);
    pli_server_drop(server, table->shard.spec.id);
    return PLAIT_OK;
}

static plait_status put(const pli_server *server, pli_server_table *table, const pli_wire_state *state,
                        const pli_msg *msg, plait_error *err) {
    pli_shard      *shard = &table->shard;
    const pli_spec *spec = &shard->spec;
    const int64_t   row_bytes = state->array < PLI_STATE_KEYS ? pli_state_row_bytes(spec, (int32_t)state->array) : 0;
    const uint64_t  each = (uint64_t)row_bytes + (spec->rows == 0 ? 8 : 0);
    const uint64_t  bytes = msg->head.body_bytes - sizeof *state;
    if (state->array == PLI_STATE_UNITS) return put_units(table, state, msg, err);
    if (state->array == PLI_STATE_ZERO && bytes == 0) return zero(server, table, state, err);
    if (row_bytes == 0 || (uint64_t)state->n > bytes / each || (uint64_t)state->n * each != bytes)
        return pli_fail(err, PLAIT_EFORMAT, "table %s: its state is malformed", spec->name);
    if (state->n == 0) return PLAIT_OK;
    if (spec->rows == 0) return put_keys(shard, state, msg, err);
    if (!pli_store_own(&shard->store)) return pli_fail(err, PLAIT_ENOMEM, "no memory to restore table %s", spec->name);
    pli_snap_put(&shard->store, (int32_t)state->array, state->first, state->n, NULL,
                 pli_at(pli_msg_body(msg), sizeof *state));
    return PLAIT_OK;
}

plait_status pli_server_put_back(pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_wire_state    state;
    pli_server_table *table = decode(server, msg, &state, err);
    if (table == NULL) return PLAIT_EFORMAT;
    if (state.array == PLI_STATE_DROP && msg->head.body_bytes == sizeof state) return drop(server, table, err);
    return put(server, table, &state, msg, err);
}
