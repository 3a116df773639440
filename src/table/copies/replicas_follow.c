/* The replica that does not serve: it takes the log in, and goes on when the one that serves has died. A replica that
 * has lost the other makes a new one (replicas_new.c). replicas.h has the idea. */
#include "table/copies/replicas.h"

#include <string.h>

#include "table/events.h"

/* --- who does not serve ------------------------------------------------------------------------------------------- */

/* Takes a worker's message as the serving replica has acted upon it. The worker hears that it is safe here, but nothing
 * is answered. */
static void take_message(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const uint64_t worker = msg->head.arg64 >> PLI_LOG_SEQ_BITS;
    const uint64_t seq = msg->head.arg64 & ((UINT64_C(1) << PLI_LOG_SEQ_BITS) - 1);
    const bool tells = server->replicas->whole && pli_replicas_tells(server, msg);
    pli_out  quiet;
    if (worker >= (uint64_t)server->layout.workers) {
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: there is no worker %llu", msg->head.src,
                     (unsigned long long)worker);
        pli_msg_free(&msg);
        return;
    }
    msg->head.src = (int32_t)worker;
    msg->head.seq = seq;
    msg->head.flags &= (uint16_t)~PLI_FLAG_LOG;
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
        pli_raise_copied(server, c->other, c->other_place);
        if (sum != NULL && !pli_replicas_take_sum(server, sum, true, out)) pli_msg_free(&sum);
    }
    pli_msg_free(&msg);
}

/* Takes what comes behind the beginning of a new replica: its rows, and that they are all there. */
static void take_rows(pli_server *server, const pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    const bool  slice = msg->head.kind == PLI_SLICE;
    pli_out_work(out, PLI_WORK_VALUES, msg->head.body_bytes / 8);
    if ((slice ? pli_replicas_take_slice(server, msg, out, &why) : pli_replicas_complete(server, &why)) < 0)
        pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
}

static void take_entry(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    msg->next = NULL;
    if (!server->replicas->begun) {
        hear(server, msg, out);
        return;
    }
    switch (msg->head.kind) {
    case PLI_SUM_ENTRY:
        if (!pli_replicas_take_sum(server, msg, false, out)) break;
        if (server->replicas->whole) pli_replicas_tell_summed(server, out);
        return;
    case PLI_MET:
        server->replicas->met = (uint64_t)msg->head.clock;
        server->replicas->roster.barriers += msg->head.body_bytes == 0;
        (void)pli_replicas_reach(server, INT64_MAX, out);
        pli_msg_free(&server->replicas->gathered);
        if (msg->head.body_bytes == 0) break;
        server->replicas->gathered = msg;
        return;
    case PLI_END:
        server->replicas->over = true;
        (void)pli_replicas_reach(server, INT64_MAX, out);
        pli_server_end(server, out);
        break;
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
    case PLI_SLICE:
    case PLI_WHOLE: take_rows(server, msg, out); break;
    default:
        pli_out_fail(out, PLAIT_EFORMAT, "log of rank %d: an entry of unknown kind %u", msg->head.src,
                     (unsigned)msg->head.kind);
    }
    pli_msg_free(&msg);
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
    if (out->error.code < 0) return;
    pli_msg *ack = pli_msg_new(0);
    if (ack == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to confirm the log of rank %d", c->other);
        return;
    }
    ack->head.kind = PLI_LOGGED;
    pli_replicas_address(server, ack);
    ack->head.arg64 = c->rx.expected - 1;
    pli_out_send(out, ack);
}

/* A log begins to come from the replica that serves, which makes this one anew. */
static void adopt(pli_server *server, const pli_msg *msg, pli_out *out) {
    pli_replicas   *c = server->replicas;
    const int32_t place = pli_replica_place(&server->layout, server->number, msg->head.src);
    if (place > c->place || c->place == 1 || c->rx.expected > 1) {
        pli_out_fail(out, PLAIT_EPEER,
                     "ranks %d and %d, which hold the same shards, take each other for dead: the link between them is "
                     "cut",
                     pli_replica_rank(&server->layout, server->number, c->other_place), msg->head.src);
        return;
    }
    pli_rx_destroy(&c->rx); /* what came ahead of the first entry of another's log */
    pli_rx_init(&c->rx);
    c->other = msg->head.src;
    c->other_place = place;
}

/* A place before the one that the log has come from is dead, too: the replica there would serve otherwise. */
static bool is_dead(const pli_server *server, int32_t rank) {
    const pli_replicas *c = server->replicas;
    const int32_t     place = pli_replica_place(&server->layout, server->number, rank);
    return place < 0 || (c->died & UINT64_C(1) << place) != 0 ||
           ((c->rx.expected > 1 || c->rx.stash != NULL) && place < c->other_place);
}

static void take_from_copy(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (c->serves && msg->head.src == c->other && msg->head.kind == PLI_LOGGED && msg->head.arg64 < c->tx.next) {
        pli_tx_acked(&c->tx, msg->head.arg64);
        if (msg->head.arg64 > c->confirmed) c->confirmed = msg->head.arg64;
        pli_replicas_release(server, now_ns, msg->head.arg64, out);
        pli_replicas_slice(server, now_ns, out);
    }
    if (!c->serves && !is_dead(server, msg->head.src) && msg->head.kind != PLI_LOGGED && msg->head.seq > 0) {
        if (msg->head.src != c->other) adopt(server, msg, out);
        if (out->error.code >= 0) {
            take_log(server, now_ns, msg, out);
            return;
        }
    }
    pli_msg_free(&msg); /* or from a worker that has died */
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
    msg->next = NULL;
    *c->early_last = msg;
    c->early_last = &msg->next;
    return true;
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

/* The other replica is gone: a new one is made at the next living place. What is not confirmed waits for it. false:
 * there is no such place. */
static bool make_copy(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas   *c = server->replicas;
    const int32_t places = pli_replica_places(&server->layout);
    int32_t       place = (c->other_place > c->place ? c->other_place : c->place) + 1;
    while (place < places && ((c->died | c->left) & UINT64_C(1) << place) != 0) place++;
    if (place >= places || c->over || c->left != 0) return false;
    c->other_place = place;
    c->other = pli_replica_rank(&server->layout, server->number, place);
    pli_tx_destroy(&c->tx);
    pli_tx_init(&c->tx, server->layout.resend_after_ns);
    pli_raise_handed(server, c->other, place);
    pli_server_keep_events(server);
    pli_entry *waiting = c->first;
    c->first = NULL;
    c->last = &c->first;
    c->confirmed = 0;
    pli_replicas_tell_all(server, now_ns, out);
    for (pli_msg *held = c->held; held != NULL; held = held->next) held->note = c->begins;
    while (waiting != NULL) {
        pli_entry *entry = waiting;
        waiting = entry->next;
        entry->next = NULL;
        entry->number = c->begins;
        pli_replicas_await(c, entry);
    }
    return true;
}

/* Up to which message of the worker all is safe once it is logged: not the end of a clock whose SUM is not there. */
static uint64_t safe_by_log(const pli_server *server, int32_t worker) {
    const pli_replicas *c = server->replicas;
    const bool waits = pli_server_has_clocks(server) && server->peer[worker].ended > pli_replicas_prepared(server);
    return waits && c->ended[worker] <= c->in_log[worker] ? c->ended[worker] - 1 : c->in_log[worker];
}

/* With its last entry, all that the log has of any worker becomes safe. */
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
    for (int32_t w = 0; w < server->layout.workers; w++) entry->all[w] = safe_by_log(server, w);
    entry->number = c->begins;
    pli_replicas_await(c, entry);
}

/* The other replica is gone; this one serves from now on. */
static void take_over(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    pli_msg    *early = c->early;
    c->serves = true;
    pli_raise_serve(server);
    pli_rx_destroy(&c->rx);
    pli_rx_init(&c->rx);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        pli_tx_destroy(&peer->tx); /* whatever it would have said as a shadow */
        pli_tx_init(&peer->tx, server->layout.resend_after_ns);
        c->again[w] = peer->rx.expected;
        c->in_log[w] = peer->rx.expected - 1;
    }
    if (make_copy(server, now_ns, out))
        await_all(server, out);
    else
        for (int32_t w = 0; w < server->layout.workers; w++) c->safe[w] = safe_by_log(server, w);
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
}

/* No rank can make this replica whole any more. */
static void remain_empty(pli_server *server, pli_out *out) {
    pli_replicas *c = server->replicas;
    c->empty = true;
    for (const pli_msg *msg = c->early; msg != NULL; msg = msg->next) tell_none(server, msg, out);
    pli_msg_free_list(&c->early);
    c->early_last = &c->early;
    pli_server_end(server, out);
}

/* A rank at a place before this one's is gone: does this replica serve now? */
static void look_up(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas    *c = server->replicas;
    const uint64_t before = (UINT64_C(1) << c->place) - 1;
    if (c->other >= 0 || c->empty || (before & ~(c->died | c->left)) != 0) return;
    if (c->whole)
        take_over(server, now_ns, out);
    else
        remain_empty(server, out);
}

/* What the other replica has told workers itself may be lost with it, so they are told again, and of what it has not
 * confirmed they are told from here. */
static void tell_again(pli_server *server, pli_out *out) {
    pli_replicas *c = server->replicas;
    for (pli_entry *entry = c->first; entry != NULL; entry = entry->next) entry->told = false;
    for (int32_t w = 0; w < server->layout.workers; w++)
        if (c->safe[w] > 0 && !server->peer[w].gone) pli_server_tell(server, w, PLI_SAFE, (int64_t)c->safe[w], out);
}

static void lose_other(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_replicas *c = server->replicas;
    c->other = -1;
    if (!c->serves) return;
    c->abandoned = event->kind == PLI_MEMBER_LEFT && !c->over;
    pli_tx_end(&c->tx);
    pli_replicas_stop_making(server);
    if (c->abandoned) return;
    tell_again(server, out);
    if (!make_copy(server, now_ns, out)) pli_replicas_release(server, now_ns, UINT64_MAX, out);
}

bool pli_replicas_member(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_replicas   *c = server->replicas;
    const bool    gone = event->kind != PLI_MEMBER_JOINED;
    const int32_t place = pli_replica_place(&server->layout, server->number, event->rank);
    if (!c->serves && gone && event->rank >= 0 && event->rank < server->layout.workers) {
        if (!pli_grow((void **)&c->events, &c->events_capacity, c->n_events + 1, sizeof *c->events)) {
            pli_out_fail(out, PLAIT_ENOMEM, "no memory to record which ranks are gone");
            return true;
        }
        c->events[c->n_events++] = *event;
    }
    if (!gone || place < 0) return !c->serves;
    *(event->kind == PLI_MEMBER_DIED ? &c->died : &c->left) |= UINT64_C(1) << place;
    const bool served = c->serves;
    if (event->rank == c->other && !served && event->kind == PLI_MEMBER_LEFT) {
        pli_server_end(server, out); /* all workers had said good-bye */
        return true;
    }
    if (event->rank == c->other) lose_other(server, now_ns, event, out);
    if (!c->serves) look_up(server, now_ns, out);
    return !served;
}

void pli_replicas_wakeup(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_tx_wakeup(&server->replicas->tx, now_ns, out);
}
