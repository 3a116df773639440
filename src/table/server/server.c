/* The server's life, its clocks, its streams, and what becomes of workers. See server.h. */
#include "table/shown.h"
#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/events.h"

#include <stdatomic.h>
#include <string.h>

/* --- life ----------------------------------------------------------------------------------------------- */

plait_status pli_server_open(pli_server *server, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err) {
    return pli_server_open_replica(server, layout, rank - layout->first_server, 0, epoch, incarnation, err);
}

plait_status pli_server_open_replica(pli_server *server, const pli_layout *layout, int32_t number, int32_t place,
                                  uint32_t epoch, uint32_t incarnation, plait_error *err) {
    size_t workers = (size_t)layout->workers;
    *server = (pli_server){ .layout = *layout, .epoch = epoch, .incarnation = incarnation };
    server->rank = pli_replica_rank(layout, number, place);
    server->home = layout->first_server + number;
    server->number = (uint16_t)number;
    server->parked_last = &server->parked;
    server->at_slowest = server->present = layout->workers;
    server->peer = pli_calloc(workers, sizeof *server->peer);
    server->clocks = pli_calloc(workers, sizeof *server->clocks);
    server->parts = pli_calloc(workers, sizeof *server->parts);
    if (server->peer == NULL || server->clocks == NULL || server->parts == NULL) {
        server->layout.workers = 0;
        pli_server_close(server);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a server of %d workers", layout->workers);
    }
    for (size_t w = 0; w < workers; w++) {
        pli_peer *peer = &server->peer[w];
        pli_rx_init(&peer->rx);
        pli_tx_init(&peer->tx, layout->resend_after_ns);
        peer->queue_last = &peer->queue;
        peer->behind_last = &peer->behind;
    }
    if (layout->replicas < 2) return PLAIT_OK;
    plait_status status = pli_replicas_open(server, place, err);
    if (status < 0) pli_server_close(server);
    return status;
}

static void close_peer(pli_peer *peer) {
    pli_rx_destroy(&peer->rx);
    pli_tx_destroy(&peer->tx);
    pli_waiting_free_list(&peer->queue);
    pli_msg_free_list(&peer->behind);
    pli_msg_free(&peer->barrier);
    pli_msg_free(&peer->call);
    pli_msg_free(&peer->bye);
}

void pli_server_drop(pli_server *server, int64_t id) {
    pli_server_table *table = server->table[id];
    if (table == NULL) return;
    pli_server_snap_end(table);
    pli_slices_close(&table->slices);
    pli_sheet_free(table->shown);
    pli_shard_close(&table->shard);
    pli_policy_destroy(&table->policy);
    pli_server_readers_close(table);
    pli_server_filters_close(table);
    pli_free(table->progress);
    pli_free(table);
    server->table[id] = NULL;
}

void pli_server_close(pli_server *server) {
    for (int32_t w = 0; w < server->layout.workers; w++) close_peer(&server->peer[w]);
    for (int64_t i = 0; i < server->tables; i++) pli_server_drop(server, i);
    pli_msg_free_list(&server->parked);
    pli_replicas_close(server);
    pli_book_close(&server->book);
    pli_free(server->table);
    pli_free(server->peer);
    pli_free(server->clocks);
    pli_free(server->parts);
    pli_free(server->decoded);
    *server = (pli_server){ 0 };
}

/* --- clocks ----------------------------------------------------------------------------------------------- */

/* Clocks only advance, so the lowest one changes only when the last worker in it moves on. */
void pli_server_move_clock(pli_server *server, int32_t worker, int64_t clock) {
    int64_t before = server->clocks[worker];
    server->clocks[worker] = clock;
    if (before != server->slowest || --server->at_slowest > 0) return;
    server->slowest = PLAIT_LEFT;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        if (server->clocks[w] > server->slowest) continue;
        if (server->clocks[w] < server->slowest) server->at_slowest = 0;
        server->slowest = server->clocks[w];
        server->at_slowest++;
    }
}

void pli_server_enter_clock(pli_server *server, int32_t worker, int64_t clock) {
    if (server->clocks[worker] != PLAIT_LEFT) pli_server_move_clock(server, worker, PLAIT_LEFT);
    server->clocks[worker] = clock;
    server->at_slowest = clock < server->slowest ? 1 : server->at_slowest + (clock == server->slowest);
    if (clock < server->slowest) server->slowest = clock;
}

plait_view pli_server_view(const pli_server *server, uint64_t now_ns, int32_t worker, int64_t clock) {
    return (plait_view){ .workers = server->layout.workers, .worker = worker, .clock = clock, .now_ns = now_ns,
                         .slowest = server->slowest, .clocks = server->clocks, .applied = server->applied };
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void handle(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    int32_t src = msg->head.src;
    if (server->replicas != NULL && server->replicas->moves.out) { /* since the message before */
        pli_msg_free(&msg);
        return;
    }
    if (server->replicas != NULL && server->replicas->moves.leaving) { /* likewise, but it may have to stay */
        server->peer[src].rx.expected = msg->head.seq;
        pli_replicas_keep_early(server, msg);
        return;
    }
    if (!(msg->head.flags & PLI_FLAG_FILTERED) && msg->head.kind != PLI_KEYS && server->peer[src].behind == NULL) {
        pli_server_act(server, now_ns, msg, out);
        return;
    }
    pli_server_take_filtered(server, msg, out);
    while ((msg = pli_server_next_unfiltered(server, now_ns, src, out)) != NULL)
        pli_server_act(server, now_ns, msg, out);
}

static void take_message(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    int32_t src = msg->head.src;
    if (server->replicas != NULL && pli_replicas_take(server, now_ns, msg, out)) return;
    if (src < 0 || src >= server->layout.workers || msg->head.epoch < server->peer[src].min_epoch ||
        (server->replicas != NULL && pli_roster_is_stranger(server, msg)) ||
        (pli_replicas_buried(server, src) && !pli_roster_has_returned(server, src))) {
        pli_msg_free(&msg); /* from a rank that is no worker, or from before its death */
        return;
    }
    pli_peer *peer = &server->peer[src];
    pli_tx_acked(&peer->tx, msg->head.arg64);
    if (msg->head.seq == 0) {
        if (msg->head.kind == PLI_WHY) pli_server_answer_why(server, msg, out);
        pli_msg_free(&msg);
        return;
    }
    uint64_t sent = peer->tx.next;
    peer->listens = (msg->head.flags & PLI_FLAG_STATE) != 0;
    switch (pli_rx_take(&peer->rx, &msg)) {
    case PLI_RX_TAKE:
        for (; msg != NULL; msg = pli_rx_next(&peer->rx)) handle(server, now_ns, msg, out);
        if (server->layout.resend_after_ns > 0 && peer->tx.next == sent) pli_server_acknowledge(server, src, out);
        break;
    case PLI_RX_DUPLICATE:
        if (server->replicas != NULL && pli_replicas_was_restored(server, msg))
            pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
        if (server->replicas != NULL && pli_replicas_serves_again(server, msg))
            handle(server, now_ns, msg, out);
        else pli_msg_free(&msg);
        pli_server_acknowledge(server, src, out);
        break;
    case PLI_RX_OLD: pli_msg_free(&msg); break;
    case PLI_RX_EARLY: break;
    }
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_server *server = state;
    if (server->failed) pli_msg_free(&msg);
    else take_message(server, now_ns, msg, out);
    pli_shown_change(server);
    server->failed = server->failed || out->error.code < 0;
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_server *server = state;
    if (server->replicas != NULL) pli_replicas_wakeup(server, now_ns, out);
    for (int32_t w = 0; w < server->layout.workers; w++)
        pli_tx_wakeup(&server->peer[w].tx, now_ns, out);
}

/* --- what becomes of workers -------------------------------------------------------------------------------------- */

void pli_server_let_go(pli_server *server, int32_t worker) {
    server->present -= !server->peer[worker].gone;
    server->peer[worker].gone = true;
}

void pli_server_leave(pli_server *server, uint64_t now_ns, int32_t worker) {
    if (server->clocks[worker] == PLAIT_LEFT) return;
    pli_server_move_clock(server, worker, PLAIT_LEFT);
    pli_server_forget_from(&server->peer[worker], server->peer[worker].ended); /* of a clock that it has not ended */
    if (server->book != NULL) pli_book_leave(server->book, worker);
    plait_view view = pli_server_view(server, now_ns, worker, server->peer[worker].ended);
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && server->table[i]->policy.ops->server.on_member != NULL)
            server->table[i]->policy.ops->server.on_member(server->table[i]->policy.state, &view);
}

static void drop_parked(pli_server *server, int32_t src) {
    pli_msg **at = &server->parked;
    while (*at != NULL) {
        pli_msg *msg = *at;
        if (msg->head.src != src) {
            at = &msg->next;
            continue;
        }
        *at = msg->next;
        pli_msg_free(&msg);
    }
    server->parked_last = at;
}

/* What a dead worker has pushed stays (without replicas); nobody waits for it, nobody answers it. A worker that ended
 * in good order without saying BYE counts as dead. A worker that died after its BYE acknowledges no answer to it. */
static void forget_worker(pli_server *server, uint64_t now_ns, int32_t worker) {
    pli_peer *peer = &server->peer[worker];
    pli_server_leave(server, now_ns, worker);
    pli_msg_free(&peer->barrier);
    pli_msg_free(&peer->call);
    pli_msg_free(&peer->bye);
    pli_roster_forget(server, worker);
    pli_msg_free_list(&peer->behind);
    peer->behind_last = &peer->behind;
    drop_parked(server, worker);
    pli_tx_end(&peer->tx);
}

void pli_server_lose(pli_server *server, uint64_t now_ns, int32_t worker) {
    pli_server_let_go(server, worker);
    pli_raise_gone(server, worker);
    if (server->replicas != NULL && server->clocks[worker] != PLAIT_LEFT) pli_replicas_bury(server, worker);
    forget_worker(server, now_ns, worker);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_server *server = state;
    server->epoch = event->epoch;
    if (server->failed) return;
    if (server->replicas != NULL && pli_replicas_member(server, now_ns, event, out)) return;
    if (event->rank < 0 || event->rank >= server->layout.workers) return;
    if (server->replicas != NULL && pli_roster_is_past(server, event)) return;
    if (event->kind == PLI_MEMBER_JOINED) {
        if (server->replicas == NULL) return;
        pli_roster_return(server, event->rank, event->life);
        server->peer[event->rank].min_epoch = 0; /* it may speak of an older view; who speaks its incarnation says */
    } else if (event->kind == PLI_MEMBER_DIED) {
        server->peer[event->rank].min_epoch = event->epoch;
        if (!server->peer[event->rank].gone || server->clocks[event->rank] != PLAIT_LEFT) {
            pli_server_lose(server, now_ns, event->rank);
        } else {
            if (server->replicas != NULL) pli_raise_gone(server, event->rank); /* its log ends here: it was told all */
            forget_worker(server, now_ns, event->rank);
        }
    } else {
        if (server->replicas != NULL) server->replicas->roster.ends = true;
        pli_server_let_go(server, event->rank);
        forget_worker(server, now_ns, event->rank);
    }
    pli_server_look_again(server, now_ns, out);
    pli_shown_change(server);
}

static pli_msg *late(const pli_msg *msg) { return pli_wire_late(msg, PLI_PORT_CLIENT); }

const pli_machine_ops pli_server_ops = {
    .name = "server", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};
