/* A replica that does not serve: it takes the log in, and goes on when those before it have died. replicas_relay.c has
 * where the log comes from and goes to; replicas.h has the idea. */
#include "table/copies/replicas.h"

#include <string.h>

#include "table/events.h"

/* --- who does not serve ------------------------------------------------------------------------------------------- */

/* Takes a worker's message as the serving replica has acted upon it. The worker hears that it is safe here, but nothing
 * is answered. */
static void take_message(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const uint64_t worker = msg->head.arg64 >> PLI_LOG_SEQ_BITS;
    const uint64_t seq = msg->head.arg64 & ((UINT64_C(1) << PLI_LOG_SEQ_BITS) - 1);
    const bool tells = pli_relay_tells(server) && pli_replicas_tells(server, msg);
    pli_out  quiet;
    if (worker >= (uint64_t)server->layout.workers) {
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: there is no worker %llu", msg->head.src,
                     (unsigned long long)worker);
        pli_msg_free(&msg);
        return;
    }
    msg->head.src = (int32_t)worker;
    msg->head.seq = seq;
    msg->head.flags &= (uint16_t) ~(PLI_FLAG_LOG | PLI_FLAG_ANEW | PLI_FLAG_APART);
    if (seq >= server->peer[worker].rx.expected) server->peer[worker].rx.expected = seq + 1;
    pli_out_init(&quiet);
    pli_server_act(server, now_ns, msg, &quiet);
    for (int kind = 0; kind < PLI_WORK_KINDS; kind++) out->work[kind] += quiet.work[kind];
    if (quiet.error.code < 0 && out->error.code >= 0) out->error = quiet.error;
    pli_out_drop(&quiet);
    if (tells && out->error.code >= 0) pli_server_tell(server, (int32_t)worker, PLI_SAFE, (int64_t)seq, out);
}

/* Takes an entry of what a new replica begins with. */
static void hear(pli_server *server, pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    plait_error why = { 0 };
    pli_out_work(out, PLI_WORK_VALUES, msg->head.body_bytes / 8);
    if (msg->head.kind == PLI_SUM_ENTRY && c->sum == NULL) {
        c->sum = msg; /* until the rest is here */
        return;
    }
    pli_msg *sum = c->sum;
    c->sum = NULL;
    if (pli_replicas_hear(server, msg, &why) < 0) {
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
        pli_msg_free(&sum);
    } else if (!c->begun) {
        c->sum = sum;
    } else {
        pli_raise_copied(server, c->from, c->from_place);
        if (sum != NULL && !pli_replicas_take_sum(server, sum, true, out)) pli_msg_free(&sum);
    }
    pli_msg_free(&msg);
}

/* Takes what comes behind the beginning of a new replica: its rows, and that they are all there. */
static void take_rows(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    const bool  slice = msg->head.kind == PLI_SLICE;
    pli_out_work(out, PLI_WORK_VALUES, msg->head.body_bytes / 8);
    if ((slice ? pli_replicas_take_slice(server, msg, out, &why) : pli_replicas_complete(server, &why)) < 0)
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
    else if (!slice) pli_relay_whole(server, now_ns, out);
}

/* Takes an entry of the log into a replica that has begun. */
static void act(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    plait_error   why = { 0 };
    if (c->moves.out) { /* it was passed on */
        pli_msg_free(&msg);
        return;
    }
    switch (msg->head.kind) {
    case PLI_SUM_ENTRY:
        if (!pli_replicas_take_sum(server, msg, false, out)) break;
        if (pli_relay_tells(server)) pli_replicas_tell_summed(server, out);
        return;
    case PLI_MET:
        c->met = (uint64_t)msg->head.clock;
        c->roster.barriers += msg->head.body_bytes == 0;
        (void)pli_replicas_reach(server, INT64_MAX, out);
        pli_msg_free(&c->gathered);
        if (msg->head.body_bytes == 0) break;
        c->gathered = msg;
        return;
    case PLI_CALL: pli_replicas_take_call(server, msg, out); break;
    case PLI_AGES:
        if (pli_server_take_ages(server, msg, false, &why) < 0)
            pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
        break;
    case PLI_END:
        c->over = true; /* the end, once it is confirmed */
        (void)pli_replicas_reach(server, INT64_MAX, out);
        break;
    case PLI_SERVES: c->maker = (int32_t)msg->head.clock; break;
    case PLI_LIST: pli_moves_take(server, now_ns, msg, out); break;
    case PLI_SNAP:
        if (msg->head.body_bytes == sizeof(pli_wire_taken)) {
            (void)pli_server_snap(server, now_ns, msg, out);
            break;
        }
        take_message(server, now_ns, msg, out);
        return;
    case PLI_CREATE:
    case PLI_RESTORE:
    case PLI_PUSH:
    case PLI_CLOCK: take_message(server, now_ns, msg, out); return;
    case PLI_BEGUN: pli_relay_speak(server, out); break;
    case PLI_SLICE:
    case PLI_WHOLE: take_rows(server, now_ns, msg, out); break;
    default:
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: an entry of unknown kind %u", msg->head.src,
                     (unsigned)msg->head.kind);
    }
    pli_msg_free(&msg);
}

static void take_entry(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const pli_replicas *c = server->replicas;
    msg->next = NULL;
    if (msg->head.kind == PLI_CHAIN) {
        pli_relay_take_link(server, msg, out);
        pli_msg_free(&msg);
    } else if (!c->begun) {
        hear(server, msg, out);
    } else if (pli_replicas_park(server, msg)) {
        return;
    } else if (!(msg->head.flags & PLI_FLAG_APART) && !pli_relay_takes_entry(server, now_ns, msg, out)) {
        pli_msg_free(&msg);
    } else {
        act(server, now_ns, msg, out);
    }
}

/* The replica behind may have got all rows by now, or have died. */
static void take_parked(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_msg *msg = pli_replicas_unpark(server);
    if (msg == NULL) return;
    for (; msg != NULL && out->error.code >= 0; msg = pli_replicas_unpark(server))
        if (pli_relay_takes_entry(server, now_ns, msg, out)) act(server, now_ns, msg, out);
        else pli_msg_free(&msg);
    pli_msg_free(&msg);
    pli_relay_taken(server, now_ns, out);
}

static void take_log(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    switch (pli_rx_take(&c->rx, &msg)) {
    case PLI_RX_TAKE:
        for (; msg != NULL; msg = pli_rx_next(&c->rx)) take_entry(server, now_ns, msg, out);
        break;
    case PLI_RX_DUPLICATE: pli_msg_free(&msg); break;
    case PLI_RX_OLD: pli_msg_free(&msg); return;
    case PLI_RX_EARLY: return;
    }
    pli_relay_taken(server, now_ns, out);
}

static void take_from_copy(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const pli_replicas *c = server->replicas;
    if (msg->head.kind == PLI_PLACED) {
        pli_moves_placed(server, now_ns, msg, out);
    } else if (msg->head.kind == PLI_LOGGED || msg->head.kind == PLI_LACKS) {
        pli_relay_take_answer(server, now_ns, msg, out);
        take_parked(server, now_ns, out);
    } else if (c->leads && msg->head.src == c->from) {
        pli_relay_answer_late(server, out);
    } else if (msg->head.seq > 0 && pli_relay_takes_from(server, msg->head.src) &&
               pli_relay_admits(server, now_ns, msg, out)) {
        take_log(server, now_ns, msg, out);
        return;
    }
    pli_msg_free(&msg); /* or from a replica that has died */
}

static void tell_none(pli_server *server, const pli_msg *msg, pli_out *out) {
    pli_server_tell(server, msg->head.src, PLI_NONE, 0, out);
}

bool pli_replicas_take(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (msg->head.flags & PLI_FLAG_LOG) {
        take_from_copy(server, now_ns, msg, out);
        return true;
    }
    if (msg->head.kind == PLI_PLACED) pli_moves_placed(server, now_ns, msg, out);
    if (msg->head.kind == PLI_PLACED || c->moves.out) {
        pli_msg_free(&msg);
        return true;
    }
    if (c->serves) return false;
    if (msg->head.src < 0 || msg->head.src >= server->layout.workers || (msg->head.seq == 0 && !c->empty)) {
        pli_msg_free(&msg);
        return true;
    }
    if (c->empty) {
        tell_none(server, msg, out);
        pli_msg_free(&msg);
        return true;
    }
    pli_replicas_keep_early(server, msg);
    return true;
}

void pli_replicas_keep_early(pli_server *server, pli_msg *msg) {
    pli_replicas *c = server->replicas;
    msg->next = NULL;
    *c->early_last = msg;
    c->early_last = &msg->next;
}

pli_msg *pli_replicas_give_early(pli_server *server) {
    pli_replicas *c = server->replicas;
    pli_msg      *early = c->early;
    c->early = NULL;
    c->early_last = &c->early;
    return early;
}

bool pli_replicas_serves_again(const pli_server *server, const pli_msg *msg) {
    if (msg->head.seq >= server->replicas->again[msg->head.src]) return false;
    switch (msg->head.kind) {
    case PLI_PULL:
    case PLI_CREATE:
    case PLI_SNAP:
    case PLI_PIECE: return true;
    default: return false; /* while such a one was open, the worker has sent nothing that the log has */
    }
}

/* The rows were put back already, and more may have been added to them since. */
bool pli_replicas_was_restored(const pli_server *server, const pli_msg *msg) {
    return msg->head.kind == PLI_RESTORE && msg->head.seq < server->replicas->again[msg->head.src];
}

/* --- deaths ------------------------------------------------------------------------------------------------------- */

uint64_t pli_replicas_safe_by_log(const pli_server *server, int32_t worker) {
    const pli_replicas *c = server->replicas;
    const uint64_t      logged = pli_replicas_logged(server, worker);
    const bool waits = pli_server_has_clocks(server) && server->peer[worker].ended > pli_replicas_prepared(server);
    return waits && c->ended[worker] <= logged ? c->ended[worker] - 1 : logged;
}

/* With the last entry, all that the log has of any worker becomes safe. */
static void await_all(pli_server *server, pli_out *out) {
    pli_replicas  *c = server->replicas;
    const size_t bytes = (size_t)server->layout.workers * sizeof *c->in_log;
    pli_entry   *entry = pli_entry_of(-1, 0);
    if (entry != NULL) entry->all = pli_array(bytes, 1);
    if (entry == NULL || entry->all == NULL) {
        if (entry != NULL) pli_entry_free(entry);
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
        return;
    }
    for (int32_t w = 0; w < server->layout.workers; w++) entry->all[w] = pli_replicas_safe_by_log(server, w);
    entry->number = c->log;
    pli_replicas_await(c, entry);
}

/* Those before it are gone; this one serves from now on. */
static void take_over(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_msg    *early = c->early;
    c->serves = c->moves.busy = true;
    pli_raise_serve(server);
    if (c->from < 0) { /* else to one that is out it may have to say again what it has taken */
        pli_rx_destroy(&c->rx);
        pli_rx_init(&c->rx);
    }
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        pli_tx_destroy(&peer->tx); /* whatever it would have said as a shadow */
        pli_tx_init(&peer->tx, server->layout.resend_after_ns);
        peer->tx.next = pli_seq_before(c->roster.life[w]) + 1;
        peer->tx.acked = peer->tx.next - 1;
        c->again[w] = peer->rx.expected;
        c->in_log[w] = peer->rx.expected - 1;
    }
    pli_moves_serve(server, now_ns, out);
    pli_relay_look_behind(server, now_ns, out);
    if (c->to >= 0 && (c->confirmed < c->log || (c->sends_state && c->taken < c->begins)))
        await_all(server, out);
    else
        for (int32_t w = 0; w < server->layout.workers; w++) c->safe[w] = pli_replicas_safe_by_log(server, w);
    for (int64_t i = 0; i < c->n_events; i++) pli_server_ops.on_member(server, now_ns, &c->events[i], out);
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (!server->peer[w].gone) pli_server_tell(server, w, PLI_SAFE, (int64_t)c->safe[w], out);
    c->early = NULL;
    c->early_last = &c->early;
    while (early != NULL) {
        pli_msg *msg = early;
        early = msg->next;
        msg->next = NULL;
        pli_server_ops.on_message(server, now_ns, msg, out);
    }
    pli_server_look_again(server, now_ns, out);
    c->moves.busy = false;
    pli_moves_look(server, now_ns, out);
}

/* No rank can make this replica whole any more. */
static void remain_empty(pli_server *server, pli_out *out) {
    pli_replicas *c = server->replicas;
    c->empty = true;
    for (const pli_msg *msg = c->early; msg != NULL; msg = msg->next) tell_none(server, msg, out);
    pli_msg_free_list(&c->early);
    c->early_last = &c->early;
    if (pli_moves_are_on(&server->layout)) pli_moves_tell_none(server, out);
    pli_server_end(server, out);
}

void pli_replicas_settle(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    if (!c->leads || c->serves || c->moves.out || c->moves.leaving) return;
    if (c->to >= 0 && !c->making && c->confirmed < c->settles) return;
    take_over(server, now_ns, out);
}

void pli_replicas_come_first(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!c->whole) {
        remain_empty(server, out);
        return;
    }
    c->leads = true;
    c->maker = c->place;
    pli_msg *msg = pli_relay_is_long(server) ? pli_msg_new(0) : NULL;
    if (msg != NULL) {
        msg->head.kind = PLI_SERVES;
        msg->head.clock = c->place;
        pli_replicas_append(server, now_ns, msg, pli_entry_of(-1, 0), out);
    } else if (pli_relay_is_long(server)) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
    }
    c->settles = c->log;
    pli_replicas_settle(server, now_ns, out);
}

void pli_replicas_tell_again(pli_server *server, pli_out *out) {
    pli_replicas *c = server->replicas;
    for (pli_entry *entry = c->first; entry != NULL; entry = entry->next) entry->told = false;
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (c->safe[w] > 0 && !server->peer[w].gone) pli_server_tell(server, w, PLI_SAFE, (int64_t)c->safe[w], out);
}

bool pli_replicas_member(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_replicas   *c = server->replicas;
    const bool    gone = event->kind != PLI_MEMBER_JOINED;
    const bool    moves = pli_moves_are_on(&server->layout);
    const int32_t place = moves ? pli_list_on(&server->layout, &c->moves.list, event->rank)
                                : pli_replica_place(&server->layout, server->number, event->rank);
    if (moves && gone) pli_moves_gone(server, event->rank, event->kind == PLI_MEMBER_LEFT);
    if (!c->serves && event->rank >= 0 && event->rank < server->layout.workers) {
        if (!pli_grow((void **)&c->events, &c->events_capacity, c->n_events + 1, sizeof *c->events)) {
            pli_out_fail(out, PLAIT_ENOMEM, "no memory to record which ranks are gone");
            return true;
        }
        c->events[c->n_events++] = *event;
    }
    const bool linked = moves && (event->rank == c->from || event->rank == c->to);
    if (!gone || (place < 0 && !linked) || event->life > 1) return !c->serves;
    const bool served = c->serves;
    pli_relay_gone(server, now_ns, event, place, out);
    take_parked(server, now_ns, out);
    return !served;
}

void pli_replicas_wakeup(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_tx_wakeup(&server->replicas->tx, now_ns, out);
    pli_moves_wakeup(server, now_ns, out);
}
