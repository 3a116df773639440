/* The log of a server's shards: what goes from the replica that serves to the other, what becomes safe by that, and
 * what is answered only when it is safe: tables, rows put back, barriers, the end. replicas.h has the idea;
 * replicas_sum.c has clocks, replicas_follow.c the receiving end of the log. */
#include "table/copies/replicas.h"

#include <string.h>

#include "table/state/values.h"

/* --- life --------------------------------------------------------------------------------------------------------- */

plait_status pli_replicas_open(pli_server *server, int32_t place, plait_error *err) {
    const pli_layout *layout = &server->layout;
    size_t            workers = (size_t)layout->workers;
    pli_replicas       *c = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    c->place = place;
    c->serves = c->leads = place == 0;
    server->replicas = c;
    if (!pli_moves_open(server)) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    if (pli_moves_are_on(layout)) c->serves = c->leads = place == c->moves.list.at[0];
    c->begun = c->whole = c->speaks =
        pli_moves_are_on(layout) ? pli_list_has(&c->moves.list, place) : place < pli_relay_length(server);
    c->coming = c->opened = 1;
    pli_tx_init(&c->tx, layout->resend_after_ns);
    pli_rx_init(&c->rx);
    c->last = &c->first;
    c->early_last = &c->early;
    c->parked_last = &c->parked;
    c->held_last = &c->held;
    c->safe = pli_calloc(workers, 4 * sizeof *c->safe);
    c->redo = pli_calloc(workers, 2 * sizeof *c->redo);
    c->views = pli_calloc(workers + 3, workers);
    pli_relay_open(server);
    if (c->safe == NULL || c->redo == NULL || c->views == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    c->ended = c->safe + workers;
    c->again = c->ended + workers;
    c->in_log = c->again + workers;
    c->dead = c->views + workers * workers;
    c->logged = c->dead + workers;
    c->ahead = c->logged + workers;
    if (!pli_roster_open(server)) return pli_fail(err, PLAIT_ENOMEM, "no memory for a replica of a server's shards");
    return PLAIT_OK;
}

void pli_entry_free(pli_entry *entry) {
    pli_msg_free_list(&entry->requests);
    pli_msg_free_list(&entry->answers);
    pli_msg_free(&entry->sent);
    pli_free(entry->all);
    pli_free(entry);
}

void pli_replicas_close(pli_server *server) {
    pli_replicas *c = server->replicas;
    if (c == NULL) return;
    while (c->first != NULL) {
        pli_entry *entry = c->first;
        c->first = entry->next;
        pli_entry_free(entry);
    }
    for (int32_t i = 0; c->redo != NULL && i < 2 * server->layout.workers; i++) pli_waiting_free_list(&c->redo[i]);
    pli_tx_destroy(&c->tx);
    pli_rx_destroy(&c->rx);
    pli_msg_free(&c->sum);
    pli_msg_free(&c->gathered);
    pli_msg_free(&c->answered);
    pli_msg_free_list(&c->early);
    pli_msg_free_list(&c->parked);
    pli_msg_free_list(&c->held);
    pli_free(c->safe);
    pli_free(c->redo);
    pli_free(c->views);
    pli_free(c->events);
    pli_free(c->listed);
    pli_same_close(&c->same);
    pli_roster_close(server);
    pli_moves_close(server);
    pli_free(c);
    server->replicas = NULL;
}

/* --- who serves: what is safe ------------------------------------------------------------------------------------- */

/* Is msg the end of a clock that its SUM makes safe, and not the log's entry of it? One that came too late for its SUM
 * (backup workers) is like any other message. */
static bool waits_for_sum(const pli_server *server, const pli_msg *msg) {
    return msg->head.kind == PLI_CLOCK && pli_server_has_clocks(server) &&
           msg->head.clock >= pli_replicas_prepared(server);
}

bool pli_replicas_tells(const pli_server *server, const pli_msg *msg) {
    if (msg->head.kind == PLI_CLOCK) return !waits_for_sum(server, msg); /* else its SUM does */
    return msg->head.kind == PLI_SUM_ENTRY || msg->head.kind == PLI_PUSH;
}

static void tell_safe(pli_server *server, int32_t worker, uint64_t seq, bool told, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (seq <= c->safe[worker]) return;
    c->safe[worker] = seq;
    if (!told && !server->peer[worker].gone) pli_server_tell(server, worker, PLI_SAFE, (int64_t)seq, out);
}

/* The other replica has the entry (taken), or there is no other replica. */
static void release(pli_server *server, uint64_t now_ns, pli_entry *entry, pli_out *out) {
    while (entry->requests != NULL) {
        pli_msg *request = entry->requests, *answer = entry->answers;
        entry->requests = request->next;
        entry->answers = answer->next;
        answer->next = NULL;
        if (entry->ends || !server->peer[request->head.src].gone)
            pli_server_reply(server, now_ns, request, answer, out);
        else pli_msg_free(&answer);
        pli_msg_free(&request);
    }
    if (entry->all == NULL && entry->seq > 0 && !entry->waits)
        tell_safe(server, entry->worker, entry->seq, entry->told, out);
    for (int32_t w = 0; entry->all != NULL && w < server->layout.workers; w++)
        tell_safe(server, w, entry->all[w], entry->told, out);
    if (entry->ends) pli_server_end(server, out);
    pli_entry_free(entry);
}

bool pli_replicas_hold(pli_server *server, pli_msg *msg) {
    pli_replicas *c = server->replicas;
    if (c == NULL || !c->serves || !pli_server_logs_all(server) || (c->first == NULL && c->held == NULL)) return false;
    msg->note = c->first == NULL ? 0 : c->log;
    msg->next = NULL;
    *c->held_last = msg;
    c->held_last = &msg->next;
    return true;
}

/* What waited for entries up to this number is said. */
static void say_held(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out) {
    pli_replicas *c = server->replicas;
    while (c->held != NULL && c->held->note <= number) {
        pli_msg *msg = c->held;
        pli_tx  *tx = &server->peer[msg->head.dst].tx;
        c->held = msg->next;
        if (c->held == NULL) c->held_last = &c->held;
        msg->next = NULL;
        if (!tx->ended && pli_tx_send(tx, now_ns, msg, out)) continue;
        if (!tx->ended) pli_out_fail(out, PLAIT_ENOMEM, "no memory to answer rank %d", msg->head.dst);
        pli_msg_free(&msg);
    }
}

void pli_replicas_release(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out) {
    pli_replicas *c = server->replicas;
    while (c->first != NULL && c->first->number <= number) {
        pli_entry *entry = c->first;
        c->first = entry->next;
        if (c->first == NULL) c->last = &c->first;
        release(server, now_ns, entry, out);
    }
    say_held(server, now_ns, number, out);
}

void pli_replicas_address(const pli_server *server, int32_t place, pli_msg *msg) {
    const pli_replicas *c = server->replicas;
    const pli_layout *layout = &server->layout;
    msg->head.flags |= (uint16_t)(PLI_FLAG_LOG | (pli_replica_port(layout, c->place) == PLI_PORT_REPLICA
                                                      ? PLI_FLAG_REPLICA : 0));
    msg->head.server = server->number;
    if (pli_moves_are_on(layout)) msg->head.server |= pli_moves_life(layout, place);
    msg->head.src = server->rank;
    msg->head.dst = pli_replica_rank(&server->layout, server->number, place);
    msg->head.port = pli_replica_port(layout, place);
    msg->head.epoch = server->epoch;
    msg->head.incarnation = server->incarnation;
}

bool pli_replicas_send(pli_server *server, uint64_t now_ns, pli_msg *msg, uint16_t flags, pli_out *out) {
    pli_replicas *c = server->replicas;
    msg->head.flags &= PLI_MSG_UNCOUNTED;
    msg->head.flags |= (uint16_t)(flags | (c->sends_state ? PLI_FLAG_ANEW : 0));
    pli_replicas_address(server, c->to_place, msg);
    return pli_tx_send(&c->tx, now_ns, msg, out);
}

void pli_replicas_say(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    if (msg != NULL && pli_replicas_send(server, now_ns, msg, PLI_FLAG_APART, out)) return;
    pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
    pli_msg_free(&msg);
}

void pli_replicas_await(pli_replicas *replicas, pli_entry *entry) {
    *replicas->last = entry;
    replicas->last = &entry->next;
}

static void note(pli_server *server, const pli_entry *entry) {
    pli_replicas *c = server->replicas;
    if (entry->all == NULL && entry->seq > 0 && entry->seq > c->in_log[entry->worker])
        c->in_log[entry->worker] = entry->seq;
    for (int32_t w = 0; entry->all != NULL && w < server->layout.workers; w++)
        if (entry->all[w] > c->in_log[w]) c->in_log[w] = entry->all[w];
}

void pli_replicas_append(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_entry *entry, pli_out *out) {
    pli_replicas *c = server->replicas;
    bool        well = msg != NULL && entry != NULL;
    if (well) note(server, entry);
    if (well) entry->number = ++c->log;
    if (well && c->to < 0) {
        if (c->abandoned && !entry->ends)
            pli_entry_free(entry);
        else
            release(server, now_ns, entry, out);
        pli_msg_free(&msg);
        return;
    }
    if (well) entry->told = (!c->making || pli_relay_is_long(server)) && pli_replicas_tells(server, msg);
    if (well && pli_relay_is_long(server)) well = (entry->sent = pli_msg_copy(msg)) != NULL;
    if (well && pli_replicas_send(server, now_ns, msg, 0, out)) {
        pli_replicas_await(c, entry);
        return;
    }
    pli_out_fail(out, PLAIT_ENOMEM, "no memory for the log of the shards of rank %d", server->home);
    pli_msg_free(&msg);
    if (entry != NULL) pli_entry_free(entry);
}

pli_entry *pli_entry_of(int32_t worker, uint64_t seq) {
    pli_entry *entry = pli_calloc(1, sizeof *entry);
    if (entry == NULL) return NULL;
    entry->worker = worker;
    entry->seq = seq;
    return entry;
}

/* Makes the log's form of the message. */
static pli_msg *logged(const pli_msg *msg) {
    pli_msg *entry = pli_msg_copy(msg);
    if (entry == NULL) return NULL;
    entry->head.arg64 = pli_log_whose(msg->head.src, msg->head.seq);
    return entry;
}

void pli_replicas_log(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    if (server->replicas == NULL || !server->replicas->serves || out->error.code < 0) return;
    pli_msg *ages = NULL;
    const bool good = msg->head.kind == PLI_SNAP || pli_server_ages_of_push(server, msg, &ages);
    if (ages != NULL || !good) pli_replicas_append(server, now_ns, ages, pli_entry_of(-1, 0), out);
    if (!good) return;
    pli_entry *entry = pli_entry_of(msg->head.src, msg->head.seq);
    if (entry != NULL) entry->waits = waits_for_sum(server, msg);
    pli_replicas_append(server, now_ns, logged(msg), entry, out);
}

bool pli_entry_answer(pli_entry *entry, const pli_msg *request, pli_msg *answer) {
    pli_msg *head = pli_msg_new(0);
    if (head == NULL || answer == NULL) {
        pli_msg_free(&head);
        pli_msg_free(&answer);
        return false;
    }
    head->head = request->head;
    head->head.body_bytes = 0;
    head->next = entry->requests;
    answer->next = entry->answers;
    entry->requests = head;
    entry->answers = answer;
    return true;
}

/* Puts the worker's message into the log; its answer (taken) is sent when it is safe. */
static void log_with(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    pli_entry *entry = pli_entry_of(msg->head.src, msg->head.seq);
    if (entry != NULL && !pli_entry_answer(entry, msg, answer)) {
        pli_entry_free(entry);
        entry = NULL;
    }
    pli_replicas_append(server, now_ns, logged(msg), entry, out);
}

void pli_replicas_created(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    pli_replicas *c = server->replicas;
    int64_t     tables = 0;
    for (int64_t i = 0; i < server->tables; i++) tables += server->table[i] != NULL;
    if (!c->serves) {
        c->created = tables;
        pli_msg_free(&answer);
        return;
    }
    if (tables == c->created) {
        pli_server_reply(server, now_ns, msg, answer, out);
        return;
    }
    c->created = tables;
    log_with(server, now_ns, msg, answer, out);
}

void pli_replicas_restored(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out) {
    if (server->replicas->serves) log_with(server, now_ns, msg, answer, out);
    else pli_msg_free(&answer);
}
void pli_replicas_released(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out) {
    if (server->replicas == NULL || !server->replicas->serves || out->error.code < 0) return;
    pli_replicas_append(server, now_ns, pli_msg_copy(msg), pli_entry_of(-1, 0), out);
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

static uint64_t number_of(const pli_replicas *c, const pli_msg *barrier) {
    uint64_t number = c->met + 1;
    if (barrier->head.body_bytes >= sizeof number) memcpy(&number, pli_msg_body(barrier), sizeof number);
    return number;
}

static pli_msg *barrier_answer(const pli_server *server) {
    const pli_msg *gathered = server->replicas->gathered;
    if (gathered != NULL) return pli_msg_of_slab(gathered->body, gathered->offset, gathered->head.body_bytes);
    pli_msg *answer = pli_msg_new(sizeof server->dropped);
    if (answer != NULL) memcpy(pli_msg_body(answer), &server->dropped, sizeof server->dropped);
    return answer;
}

/* Gathers what each worker at the barrier has brought. */
static pli_msg *gather(const pli_server *server) {
    const size_t workers = (size_t)server->layout.workers;
    uint64_t     bytes = workers * sizeof(uint64_t), own = sizeof(uint64_t);
    for (size_t w = 0; w < workers; w++)
        if (server->peer[w].barrier != NULL) bytes += pli_pad8(server->peer[w].barrier->head.body_bytes - own);
    pli_msg *msg = pli_msg_new(bytes);
    if (msg == NULL) return NULL;
    uint64_t      *brought = pli_msg_body(msg);
    unsigned char *at = (unsigned char *)(brought + workers);
    memset(brought, 0, bytes);
    for (size_t w = 0; w < workers; w++) {
        pli_msg *barrier = server->peer[w].barrier;
        brought[w] = barrier == NULL ? PLI_GONE : barrier->head.body_bytes - own;
        if (barrier == NULL || brought[w] == 0) continue;
        memcpy(at, pli_at_const(pli_msg_body(barrier), (int64_t)own), brought[w]);
        at += pli_pad8(brought[w]);
    }
    return msg;
}

/* All workers are at the barrier: do all of them gather, or none? */
static bool gathers(const pli_server *server, bool *gathers_out, pli_out *out) {
    int32_t first = -1;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        const pli_msg *barrier = server->peer[w].barrier;
        if (barrier == NULL) continue;
        if (first < 0) first = w;
        if (barrier->head.kind == server->peer[first].barrier->head.kind) continue;
        pli_out_fail(out, PLAIT_EMISMATCH, "rank %d is at a barrier of tables, rank %d in a collective",
                     barrier->head.kind == PLI_GATHER ? first : w, barrier->head.kind == PLI_GATHER ? w : first);
        return false;
    }
    *gathers_out = server->peer[first].barrier->head.kind == PLI_GATHER;
    return true;
}

void pli_replicas_meet(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    int32_t     waiting = 0;
    bool        all = true;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->barrier != NULL && number_of(c, peer->barrier) <= c->met) {
            pli_server_reply(server, now_ns, peer->barrier, barrier_answer(server), out);
            pli_msg_free(&peer->barrier);
        }
        waiting += peer->barrier != NULL;
        all = all && (peer->barrier != NULL || peer->gone || c->roster.parked[w]);
    }
    bool brings = false;
    if (!all || waiting == 0 || !pli_replicas_reach(server, INT64_MAX, out) || !gathers(server, &brings, out)) return;
    pli_entry *entry = pli_entry_of(-1, 0);
    pli_msg   *msg = brings ? gather(server) : pli_msg_new(0);
    pli_msg_free(&c->gathered);
    if (brings && msg != NULL) c->gathered = pli_msg_of_slab(msg->body, msg->offset, msg->head.body_bytes);
    if (brings && c->gathered == NULL) pli_msg_free(&msg);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->barrier == NULL) continue;
        c->met = number_of(c, peer->barrier);
        if (entry != NULL && !pli_entry_answer(entry, peer->barrier, barrier_answer(server))) {
            pli_entry_free(entry);
            entry = NULL;
        }
        pli_msg_free(&peer->barrier);
    }
    if (msg != NULL) {
        msg->head.kind = PLI_MET;
        msg->head.clock = (int64_t)c->met;
        c->roster.barriers += !brings;
    }
    pli_replicas_append(server, now_ns, msg, entry, out);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

/* The other replica hears of the end first, so that the one that is left can answer workers that have no answer yet. */
void pli_replicas_end(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_replicas *c = server->replicas;
    if (!c->serves || (server->present > 0 && !c->over)) return;
    pli_entry *entry = c->over ? NULL : pli_entry_of(-1, 0);
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->bye == NULL) continue;
        if (c->over) {
            pli_server_reply(server, now_ns, peer->bye, pli_msg_new(0), out);
        } else if (entry != NULL && !pli_entry_answer(entry, peer->bye, pli_msg_new(0))) {
            pli_entry_free(entry);
            entry = NULL;
        }
        pli_msg_free(&peer->bye);
    }
    if (c->over) return;
    c->over = true;
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) msg->head.kind = PLI_END;
    if (entry != NULL) entry->ends = true;
    pli_replicas_append(server, now_ns, msg, entry, out);
}
