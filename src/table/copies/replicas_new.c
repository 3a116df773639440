/* A new replica of a server's shards takes the place of one that died: what the remaining replica tells it, and what it
 * makes of that. replicas.h has the idea: state transfer as in Schneider's survey, section 5, by the log itself, slice
 * by slice, so that each entry has its place before or behind a row's slice. (The
 * live migration of virtual machines, Clark et al., NSDI 2005, sends again what has changed instead.) */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/state/snap.h"
#include "table/state/values.h"

enum { AT_ONCE = 4 /* slices that follow the beginning at once, so that a small state is there with the next clock */ };

/* --- telling ------------------------------------------------------------------------------------------------------ */

static pli_msg *create_of(const pli_server *server, const pli_server_table *table) {
    const size_t    text = strlen(table->shard.spec.filter), names = text == 0 ? 0 : (size_t)pli_pad8(text + 1);
    pli_wire_create create = { .job_hash = server->layout.job_hash, .spec_hash = table->hash };
    pli_msg        *msg = pli_msg_new(sizeof create + names);
    if (msg == NULL) return NULL;
    pli_spec_encode(&table->shard.spec, &create.spec);
    memset(pli_msg_body(msg), 0, sizeof create + names);
    memcpy(pli_msg_body(msg), &create, sizeof create);
    void *at = pli_at(pli_msg_body(msg), (int64_t)sizeof create);
    if (text > 0) memcpy(at, table->shard.spec.filter, text);
    msg->head.kind = PLI_CREATE;
    msg->head.clock = server->first_clock;
    return msg;
}

/* Where lazy penalties stand, and the number of the last zeroing: who zeroes for a worker that has died may do it once
 * more, and the new replica takes it no more than this one. */
static pli_msg *units_of(const pli_server_table *table) {
    const pli_wire_state state = { .table = (uint32_t)table->shard.spec.id, .array = PLI_STATE_UNITS,
                                   .first = table->zeros };
    pli_msg             *msg = pli_msg_new(sizeof state + sizeof table->shard.store.units);
    if (msg == NULL) return NULL;
    memcpy(pli_msg_body(msg), &state, sizeof state);
    memcpy(pli_at(pli_msg_body(msg), sizeof state), &table->shard.store.units, sizeof table->shard.store.units);
    msg->head.kind = PLI_RESTORE;
    return msg;
}

static uint64_t state_of(const pli_replicas *c, size_t worker) {
    return c->logged[worker] == PLI_LOG_AWAY && c->roster.parked[worker] ? PLI_LOG_PARKED : c->logged[worker];
}

/* Which clock the worker is in, before the SUM that follows and what else follows of the clock that is under way. With
 * backup workers one may have ended the clock of that SUM too late for it. */
static int64_t ended_before(const pli_server *server, int32_t w) {
    const int64_t ended = server->peer[w].ended, prepared = pli_replicas_prepared(server);
    const pli_msg *sum = server->replicas->sum;
    if (!pli_server_has_clocks(server) || ended <= server->applied) return ended;
    if (sum == NULL || pli_replicas_summed(server, sum).ended[w] > 0 || server->layout.backup == 0)
        return server->applied;
    return ended < prepared ? ended : prepared;
}

/* The streams and clocks of all workers, as far as they are logged. */
static pli_msg *whole_of(const pli_server *server) {
    const pli_replicas    *c = server->replicas;
    const size_t         workers = (size_t)server->layout.workers, tables = (size_t)server->tables;
    const uint64_t       gathered = c->gathered == NULL ? 0 : c->gathered->head.body_bytes;
    const uint64_t       answered = c->answered == NULL ? 0 : c->answered->head.body_bytes;
    const pli_wire_whole whole = { .first_clock = server->first_clock,
                                   .applied = server->applied,
                                   .log = c->log,
                                   .met = c->met,
                                   .barriers = c->roster.barriers,
                                   .snapped = server->snapped,
                                   .created = (uint64_t)c->created,
                                   .gathered = c->gathered == NULL ? PLI_GONE : gathered,
                                   .called = c->called,
                                   .answered = answered };
    pli_msg *msg = pli_msg_new(sizeof whole + workers * sizeof(pli_wire_logged) + tables * sizeof(uint64_t) +
                               (size_t)(pli_pad8(gathered) + answered));
    if (msg == NULL) return NULL;
    memset(pli_msg_body(msg), 0, msg->head.body_bytes);
    memcpy(pli_msg_body(msg), &whole, sizeof whole);
    pli_wire_logged *logged = pli_at(pli_msg_body(msg), sizeof whole);
    uint64_t        *version = (uint64_t *)(logged + workers);
    for (size_t w = 0; w < workers; w++) {
        logged[w] = (pli_wire_logged){ .seq = pli_replicas_logged(server, (int32_t)w),
                                       .ended = ended_before(server, (int32_t)w),
                                       .state = state_of(c, w) | (uint64_t)c->roster.life[w] << 8 };
    }
    for (size_t t = 0; t < tables; t++) version[t] = server->table[t] == NULL ? 0 : server->table[t]->state;
    if (gathered > 0) memcpy(version + tables, pli_msg_body(c->gathered), gathered);
    if (answered > 0)
        memcpy((unsigned char *)(version + tables) + pli_pad8(gathered), pli_msg_body(c->answered), answered);
    msg->head.kind = PLI_WHOLE;
    msg->head.arg32 = (uint32_t)tables;
    return msg;
}

/* The push without the parts that were applied when it came. NULL: no memory. */
static pli_msg *waiting_of(const pli_server *server, const pli_waiting_push *push) {
    pli_msg      *msg = pli_msg_new(push->msg->head.body_bytes);
    pli_wire_part part;
    uint32_t      n = 0;
    if (msg == NULL) return NULL;
    const uint64_t bytes = msg->head.body_bytes;
    unsigned char *body = pli_msg_body(msg);
    if (bytes > 0) memcpy(body, pli_msg_body(push->msg), bytes);
    msg->head = push->msg->head;
    msg->head.body_bytes = bytes;
    for (uint32_t i = 0; i < push->msg->head.arg32; i++) {
        memcpy(&part, body + i * sizeof part, sizeof part);
        if (!server->table[part.table]->at_clock) continue;
        memcpy(body + n++ * sizeof part, &part, sizeof part);
    }
    msg->head.arg32 = n;
    return msg;
}

/* Do some tables apply at clocks, and some at once? */
static bool has_both(const pli_server *server) {
    return pli_server_logs_all(server) && pli_server_has_clocks(server);
}

/* If the server has tables of both kinds: the clock that is under way, as far as it is logged, behind all else. The
 * rest of its pushes is in the rows. */
static void tell_clock(pli_server *server, uint64_t now_ns, int32_t w, pli_out *out) {
    const pli_peer *peer = &server->peer[w];
    bool            ended = peer->ended <= pli_replicas_prepared(server);
    for (const pli_waiting_push *push = peer->queue; push != NULL; push = push->next) {
        pli_msg *msg = waiting_of(server, push);
        if (msg != NULL) msg->head.arg64 = pli_log_whose(w, msg->head.seq);
        ended = ended || push->msg->head.kind == PLI_CLOCK;
        pli_replicas_say(server, now_ns, msg, out);
    }
    if (ended || server->replicas->dead[w]) return;
    pli_msg *clock = pli_msg_new(0); /* it had nothing that waits */
    if (clock != NULL) {
        clock->head.kind = PLI_CLOCK;
        clock->head.clock = peer->ended - 1;
        /* What the worker has redone since it ended its clock is not logged, so it must send it again. */
        clock->head.arg64 = pli_log_whose(w, pli_replicas_logged(server, w));
    }
    pli_replicas_say(server, now_ns, clock, out);
}

static pli_msg *empty(pli_kind kind) {
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) msg->head.kind = (uint16_t)kind;
    return msg;
}

static pli_server_table *next_open(const pli_server *server) {
    for (int64_t t = 0; t < server->tables; t++)
        if (server->table[t] != NULL && server->table[t]->slices.open) return server->table[t];
    return NULL;
}

/* Sends the next slice, or that there is none. Returns its bytes; one without rows, which takes as long, counts as
 * full. */
static int64_t send_slice(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas     *c = server->replicas;
    pli_server_table *table = next_open(server);
    pli_msg          *msg = table == NULL ? empty(PLI_WHOLE) : pli_slices_next(&table->slices, &table->shard);
    const int64_t     bytes = msg == NULL ? 0 : (int64_t)msg->head.body_bytes;
    if (msg != NULL) msg->head.clock = server->applied;
    c->making = table != NULL;
    c->slice = c->tx.next;
    pli_out_work(out, PLI_WORK_VALUES, (uint64_t)bytes / 8);
    pli_replicas_say(server, now_ns, msg, out);
    pli_moves_sliced(server, now_ns, bytes);
    return bytes > (int64_t)sizeof(pli_wire_slice) ? bytes : pli_slice_size();
}

void pli_replicas_tell_all(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas  *c = server->replicas;
    const int64_t most = AT_ONCE * pli_slice_size();
    for (int64_t t = 0; t < server->tables; t++) {
        pli_server_table *table = server->table[t];
        if (table == NULL) continue;
        pli_replicas_say(server, now_ns, create_of(server, table), out);
        pli_replicas_say(server, now_ns, units_of(table), out);
        if (table->progress != NULL) pli_replicas_say(server, now_ns, pli_server_ages_of_table(server, table), out);
        pli_slices_open(&table->slices);
    }
    if (server->replicas->sum != NULL) pli_replicas_say(server, now_ns, pli_msg_copy(server->replicas->sum), out);
    pli_replicas_say(server, now_ns, whole_of(server), out);
    for (int32_t w = 0; has_both(server) && w < server->layout.workers; w++) tell_clock(server, now_ns, w, out);
    c->begins = c->tx.next - 1;
    c->making = true;
    for (int64_t sent = 0; c->making && sent < most && out->error.code >= 0;) {
        if (!pli_moves_may_slice(server, now_ns, out)) break;
        sent += send_slice(server, now_ns, out);
    }
    /* A small state: what waits is safe when the replica is whole. */
    if (c->making && pli_relay_is_long(server)) pli_replicas_say(server, now_ns, empty(PLI_BEGUN), out);
    if (!c->making || pli_relay_is_long(server)) c->begins = c->tx.next - 1;
}

void pli_replicas_slice(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    if (!c->making || c->over || c->slice > c->taken || !pli_moves_may_slice(server, now_ns, out)) return;
    (void)send_slice(server, now_ns, out);
}

void pli_replicas_stop_making(pli_server *server) {
    server->replicas->making = false;
    for (int64_t t = 0; t < server->tables; t++)
        if (server->table[t] != NULL) pli_slices_close(&server->table[t]->slices);
}

/* --- hearing ------------------------------------------------------------------------------------------------------ */

static bool is_sound(const pli_server *server, const pli_wire_whole *whole, const pli_wire_logged *logged) {
    if (whole->first_clock < 0 || whole->applied < whole->first_clock) return false;
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (logged[w].seq == UINT64_MAX || logged[w].ended < whole->first_clock ||
            (logged[w].state & 255) > PLI_LOG_PARKED || logged[w].state >> 8 > PLI_LIVES_MAX)
            return false;
    return true;
}

static void take_worker(pli_server *server, int32_t w, const pli_wire_logged *logged) {
    pli_replicas *c = server->replicas;
    const uint8_t state = (uint8_t)logged->state;
    /* One that has returned, but is not away yet: what it has said stands in no log, and it is told of again. */
    if (state != PLI_LOG_DEAD) pli_roster_return(server, w, (uint32_t)(logged->state >> 8));
    server->peer[w].rx.expected = logged->seq + 1;
    server->peer[w].ended = logged->ended;
    c->ended[w] = logged->seq;
    const bool      away = state == PLI_LOG_AWAY || state == PLI_LOG_PARKED;
    c->logged[w] = away ? PLI_LOG_AWAY : state;
    if (away) pli_roster_retire(server, w);
    else if (c->roster.away[w]) pli_roster_admit(server, w, logged->ended);
    c->roster.parked[w] = state == PLI_LOG_PARKED;
    if (state == PLI_LOG_DEAD && !c->dead[w]) pli_replicas_bury(server, w);
    pli_server_move_clock(server, w, state == PLI_LOG_HERE ? logged->ended : PLAIT_LEFT);
}

/* All have stood in for the dead, also those who have come since: it was forgotten of these as they were let in. */
static void take_views(pli_server *server) {
    pli_replicas *c = server->replicas;
    const int64_t workers = server->layout.workers;
    for (int64_t v = 0; v < workers; v++)
        for (int64_t w = 0; c->logged[v] == PLI_LOG_DEAD && w < workers; w++) c->views[w * workers + v] = 1;
}

static plait_status take_whole(pli_server *server, const pli_msg *msg, plait_error *err) {
    pli_replicas    *c = server->replicas;
    const size_t   workers = (size_t)server->layout.workers, tables = (size_t)server->tables;
    const uint64_t fixed = sizeof(pli_wire_whole) + workers * sizeof(pli_wire_logged) + tables * sizeof(uint64_t);
    pli_wire_whole whole;
    if (msg->head.body_bytes < fixed || msg->offset % 8 != 0 || msg->head.arg32 != tables)
        return pli_fail(err, PLAIT_EFORMAT, "the state of shards is cut short");
    memcpy(&whole, pli_msg_body(msg), sizeof whole);
    const uint64_t         gathered = whole.gathered == PLI_GONE ? 0 : whole.gathered;
    const pli_wire_logged *logged = pli_at_const(pli_msg_body(msg), sizeof whole);
    const uint64_t        *version = (const uint64_t *)(logged + workers);
    const uint64_t         rest = msg->head.body_bytes - fixed;
    if (gathered > rest || whole.answered > rest - gathered ||
        (whole.called > 0 && pli_pad8(gathered) + whole.answered != rest) || !is_sound(server, &whole, logged) ||
        !pli_server_begin_at(server, whole.first_clock))
        return pli_fail(err, PLAIT_EFORMAT, "the state of shards does not hold together");
    if (whole.gathered != PLI_GONE) {
        c->gathered = pli_msg_of_slab(msg->body, msg->offset + fixed, gathered);
        if (c->gathered == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    }
    pli_msg_free(&c->answered);
    if (whole.called > 0) {
        c->answered = pli_msg_of_slab(msg->body, msg->offset + fixed + pli_pad8(gathered), whole.answered);
        if (c->answered == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
        c->called = whole.called;
    }
    for (size_t w = 0; w < workers; w++) take_worker(server, (int32_t)w, &logged[w]);
    take_views(server);
    for (size_t t = 0; t < tables; t++)
        if (server->table[t] != NULL) server->table[t]->state = version[t];
    server->applied = whole.applied;
    server->snapped = whole.snapped;
    c->met = whole.met;
    c->roster.barriers = whole.barriers;
    c->created = (int64_t)whole.created;
    c->log = whole.log;
    c->coming = whole.log + 1;
    c->begun = true;
    return PLAIT_OK;
}

plait_status pli_replicas_hear(pli_server *server, const pli_msg *entry, plait_error *err) {
    switch (entry->head.kind) {
    case PLI_CREATE: return pli_server_create(server, entry, err);
    case PLI_RESTORE: return pli_server_put_back(server, entry, err);
    case PLI_AGES: return pli_server_take_ages(server, entry, true, err);
    case PLI_WHOLE: return take_whole(server, entry, err);
    default:
        return pli_fail(err, PLAIT_EFORMAT, "an entry of kind %u in the log of shards that are not on this rank",
                        (unsigned)entry->head.kind);
    }
}

plait_status pli_replicas_take_slice(pli_server *server, const pli_msg *msg, pli_out *out, plait_error *err) {
    pli_wire_slice slice = { .table = UINT32_MAX };
    if (!pli_replicas_reach(server, msg->head.clock, out)) return PLAIT_OK; /* out has the error */
    if (msg->head.body_bytes >= sizeof slice) memcpy(&slice, pli_msg_body(msg), sizeof slice);
    pli_server_table *table = pli_server_table_of(server, slice.table);
    if (table == NULL || (pli_server_has_clocks(server) && msg->head.clock != server->applied))
        return pli_fail(err, PLAIT_EFORMAT, "rows as of clock %lld of table number %u, as of clock %lld are due",
                        (long long)msg->head.clock, slice.table, (long long)server->applied);
    return pli_slice_take(&table->shard, msg, err);
}

plait_status pli_replicas_complete(pli_server *server, plait_error *err) {
    for (int64_t t = 0; t < server->tables; t++)
        if (server->table[t] != NULL && pli_store_lacks_rows(&server->table[t]->shard.store))
            return pli_fail(err, PLAIT_EFORMAT, "table %s: the last of its rows have not come",
                            server->table[t]->shard.spec.name);
    server->replicas->whole = true;
    return PLAIT_OK;
}
