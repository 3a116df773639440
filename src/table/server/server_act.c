/* How a server acts upon a worker's message whose turn has come, by kind. */
#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/events.h"

/* true: the message was kept */
typedef bool handler(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);

/* A push to a table that applies at clocks waits for the rest of its clock. */
static bool on_push(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_peer         *peer = &server->peer[msg->head.src];
    pli_waiting_push *waits = NULL;
    if (msg->head.flags & PLI_FLAG_REDO) return pli_replicas_redo(server, msg, out);
    if (!pli_server_take_push(server, now_ns, msg, &waits, out)) return false;
    if (waits == NULL || pli_server_logs_all(server)) pli_replicas_log(server, now_ns, msg, out);
    if (waits == NULL) return false;
    if (msg->head.clock == peer->ended && server->clocks[msg->head.src] != PLAIT_LEFT)
        return pli_server_enqueue(peer, waits), true;
    pli_free(waits);
    pli_out_fail(out, PLAIT_EFORMAT, "rank %d pushed in clock %lld, it is in clock %lld", msg->head.src,
                 (long long)msg->head.clock, (long long)peer->ended);
    return false;
}

static bool on_clock(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    int32_t           worker = msg->head.src;
    pli_peer         *peer = &server->peer[worker];
    pli_waiting_push *waits = NULL;
    const bool        by_sum = server->replicas != NULL && pli_server_has_clocks(server);
    pli_roster_begin_at(server, msg->head.clock);
    if (msg->head.clock != peer->ended || server->clocks[worker] == PLAIT_LEFT) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d ended clock %lld, clock %lld was due", worker,
                     (long long)msg->head.clock, (long long)peer->ended);
        return false;
    }
    if (!pli_server_take_push(server, now_ns, msg, &waits, out)) return false;
    if (pli_server_logs_all(server)) pli_replicas_log(server, now_ns, msg, out);
    if (waits != NULL) pli_server_enqueue(peer, waits);
    pli_server_move_clock(server, worker, ++peer->ended);
    if (!by_sum || msg->head.clock < pli_replicas_prepared(server)) pli_raise_tick(server, msg); /* else with its SUM */
    pli_replicas_ended(server, msg);
    if (!pli_server_apply_complete(server, now_ns, out)) return waits != NULL;
    pli_server_tell_clock(server, now_ns, worker, out);
    pli_server_look_again(server, now_ns, out);
    return waits != NULL;
}

static bool serve_or_park(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    if (pli_server_may_serve(server, now_ns, msg)) {
        pli_server_serve(server, now_ns, msg, out);
        return false;
    }
    *server->parked_last = msg;
    server->parked_last = &msg->next;
    return true;
}

static bool on_pull(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_check_pull(server, msg, &why)) return serve_or_park(server, now_ns, msg, out);
    pli_server_reply_failure(server, now_ns, msg, &why, out);
    return false;
}

static bool on_call(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error          why = { 0 };
    const pli_wire_call *call = pli_msg_body(msg);
    pli_peer            *peer = &server->peer[msg->head.src];
    if (!pli_server_check_call(server, msg, &why)) {
        pli_server_reply_failure(server, now_ns, msg, &why, out);
        return false;
    }
    if (!call->updates) return serve_or_park(server, now_ns, msg, out);
    if (peer->call != NULL) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d calls a second server function at once", msg->head.src);
        return false;
    }
    peer->call = msg;
    pli_server_look_again(server, now_ns, out);
    return true;
}

static bool on_leave(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    if (server->replicas != NULL && (msg->head.flags & PLI_FLAG_LEAVES)) pli_roster_retire(server, msg->head.src);
    else pli_server_leave(server, now_ns, msg->head.src);
    pli_server_look_again(server, now_ns, out);
    return false;
}

static bool on_lease(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_take_lease(server, msg, &why))
        pli_server_reply(server, now_ns, msg, pli_server_leases(server, msg->head.src), out);
    else pli_server_reply_failure(server, now_ns, msg, &why, out);
    return false;
}

static bool keep_in(pli_msg **place, pli_msg *msg, pli_out *out) {
    if (*place == NULL) return *place = msg, true;
    pli_out_fail(out, PLAIT_EFORMAT, "rank %d asks twice at once", msg->head.src);
    return false;
}

static bool on_barrier(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    bool kept = keep_in(&server->peer[msg->head.src].barrier, msg, out);
    pli_server_look_again(server, now_ns, out);
    return kept;
}

static bool on_gather(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    if (server->replicas != NULL && msg->head.body_bytes >= sizeof(uint64_t))
        return on_barrier(server, now_ns, msg, out);
    pli_out_fail(out, PLAIT_EFORMAT, "rank %d sends data to a barrier that takes none", msg->head.src);
    return false;
}

static bool on_bye(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_peer *peer = &server->peer[msg->head.src];
    bool      kept = keep_in(&peer->bye, msg, out);
    if (server->replicas != NULL) server->replicas->roster.ends = true;
    pli_server_leave(server, now_ns, msg->head.src);
    pli_server_let_go(server, msg->head.src);
    pli_server_look_again(server, now_ns, out);
    return kept;
}

static bool on_create(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_create(server, msg, &why) < 0) pli_server_reply_failure(server, now_ns, msg, &why, out);
    else if (server->replicas != NULL) pli_replicas_created(server, now_ns, msg, pli_msg_new(0), out);
    else pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
    return false;
}

/* The other replica begins the same snapshot, so that it has the pieces if this one dies. */
static bool on_snap(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const uint64_t before = server->snapped;
    bool           kept = pli_server_snap(server, now_ns, msg, out);
    if (server->snapped > before) pli_replicas_log(server, now_ns, msg, out);
    return kept;
}

static bool on_restore(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_put_back(server, msg, &why) < 0) pli_server_reply_failure(server, now_ns, msg, &why, out);
    else if (server->replicas != NULL) pli_replicas_restored(server, now_ns, msg, pli_msg_new(0), out);
    else pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
    return false;
}

static bool on_view(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_replicas_view(server, now_ns, msg, out);
    return false;
}

static bool on_join(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const bool kept = pli_roster_join(server, msg, out);
    pli_server_look_again(server, now_ns, out);
    return kept;
}

static bool on_roster(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_roster_take(server, now_ns, msg, out);
    return false;
}

static bool on_void(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    (void)server, (void)now_ns, (void)msg, (void)out;
    return false;
}

static handler *const handlers[PLI_KINDS] = {
    [PLI_CREATE] = on_create, [PLI_PULL] = on_pull, [PLI_PUSH] = on_push,       [PLI_CLOCK] = on_clock,
    [PLI_LEAVE] = on_leave,   [PLI_CALL] = on_call, [PLI_BARRIER] = on_barrier, [PLI_BYE] = on_bye,
    [PLI_LEASE] = on_lease,   [PLI_SNAP] = on_snap, [PLI_PIECE] = pli_server_piece,
    [PLI_RESTORE] = on_restore, [PLI_VIEW] = on_view, [PLI_VOID] = on_void, [PLI_GATHER] = on_gather,
    [PLI_JOIN] = on_join, [PLI_ROSTER] = on_roster,
};

void pli_server_act(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    handler *by_kind = msg->head.kind < PLI_KINDS ? handlers[msg->head.kind] : NULL;
    bool     kept = false;
    msg->next = NULL;
    if (by_kind == NULL)
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a message of unknown kind %u to a server", msg->head.src,
                     (unsigned)msg->head.kind);
    else if (out->error.code >= 0 && pli_replicas_reach(server, msg->head.clock, out))
        kept = by_kind(server, now_ns, msg, out);
    if (!kept) pli_msg_free(&msg);
}
