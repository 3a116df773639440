/* The server's streams, clocks, waits and departures. See server.h. */
#include "table/copies/copies.h"
#include "table/events.h"

#include <stdatomic.h>
#include <string.h>

/* --- life ------------------------------------------------------------------------------------------------ */

plait_status pli_server_open(pli_server *server, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err) {
    return pli_server_open_copy(server, layout, rank - layout->first_server, 0, epoch, incarnation, err);
}

plait_status pli_server_open_copy(pli_server *server, const pli_layout *layout, int32_t number, int32_t place,
                                  uint32_t epoch, uint32_t incarnation, plait_error *err) {
    size_t workers = (size_t)layout->workers;
    *server = (pli_server){ .layout = *layout, .epoch = epoch, .incarnation = incarnation };
    server->rank = pli_copy_rank(layout, number, place);
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
    plait_status status = pli_copies_open(server, place, err);
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

void pli_server_close(pli_server *server) {
    for (int32_t w = 0; w < server->layout.workers; w++) close_peer(&server->peer[w]);
    for (int64_t i = 0; i < server->tables; i++) {
        if (server->table[i] == NULL) continue;
        pli_server_snap_end(server->table[i]);
        pli_shard_close(&server->table[i]->shard);
        pli_policy_destroy(&server->table[i]->policy);
        pli_server_readers_close(server->table[i]);
        pli_server_filters_close(server->table[i]);
        pli_free(server->table[i]->progress);
        pli_free(server->table[i]);
    }
    pli_msg_free_list(&server->parked);
    pli_copies_close(server);
    pli_book_close(&server->book);
    pli_free(server->table);
    pli_free(server->peer);
    pli_free(server->clocks);
    pli_free(server->parts);
    pli_free(server->decoded);
    *server = (pli_server){ 0 };
}

/* --- clocks ------------------------------------------------------------------------------------------------ */

/* Clocks only move on, so the lowest one changes only when the last that held it does. */
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

plait_view pli_server_view(const pli_server *server, uint64_t now_ns, int32_t worker, int64_t clock) {
    return (plait_view){ .workers = server->layout.workers, .worker = worker, .clock = clock, .now_ns = now_ns,
                         .slowest = server->slowest, .clocks = server->clocks, .applied = server->applied };
}

/* --- answers ------------------------------------------------------------------------------------------------- */

/* What waits behind a list of keys has arrived, but is in no values yet: to say that it came would promise that it
 * is. */
static void address(const pli_server *server, int32_t to, uint16_t flags, pli_msg *msg) {
    const pli_peer *peer = &server->peer[to];
    pli_head       *head = &msg->head;
    head->flags = (uint16_t)(flags | (server->copies != NULL && server->copies->place > 0 ? PLI_FLAG_BACKUP : 0));
    head->server = server->number;
    head->src = server->rank;
    head->dst = to;
    head->port = PLI_PORT_CLIENT;
    head->epoch = server->epoch;
    head->incarnation = server->incarnation;
    head->arg64 = (peer->behind != NULL ? peer->behind->head.seq : peer->rx.expected) - 1;
}

static void answer_with(pli_server *server, uint64_t now_ns, const pli_msg *request, pli_kind kind, pli_msg *answer,
                        pli_out *out) {
    if (answer == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory to answer rank %d", request->head.src);
        return;
    }
    uint16_t flags = answer->head.flags | (request->head.flags & PLI_MSG_UNCOUNTED);
    answer->head.kind = (uint16_t)kind;
    answer->head.arg32 = request->head.arg32;
    address(server, request->head.src, flags, answer);
    if (pli_tx_send(&server->peer[request->head.src].tx, now_ns, answer, out)) return;
    pli_msg_free(&answer);
    pli_out_fail(out, PLAIT_ENOMEM, "no memory to answer rank %d", request->head.src);
}

void pli_server_reply(pli_server *server, uint64_t now_ns, const pli_msg *request, pli_msg *answer, pli_out *out) {
    answer_with(server, now_ns, request, PLI_REPLY, answer, out);
}

void pli_server_tell_state(pli_server *server, uint64_t now_ns, const pli_msg *request, uint64_t state, pli_out *out) {
    if (!(request->head.flags & PLI_FLAG_STATE)) return;
    pli_server_keep_events(server);
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) msg->head.clock = (int64_t)state;
    answer_with(server, now_ns, request, PLI_STATE, msg, out);
}

void pli_server_ask_list(pli_server *server, uint64_t now_ns, const pli_msg *cause, uint32_t table, const void *token,
                         pli_out *out) {
    pli_msg *msg = pli_msg_new(PLAIT_TOKEN_BYTES);
    if (msg != NULL) memcpy(pli_msg_body(msg), token, PLAIT_TOKEN_BYTES);
    pli_msg request = *cause;
    request.head.arg32 = table;
    answer_with(server, now_ns, &request, PLI_MISSING, msg, out);
}

void pli_server_reply_failure(pli_server *server, uint64_t now_ns, const pli_msg *request, const plait_error *why,
                              pli_out *out) {
    pli_msg *answer = pli_msg_new(sizeof(pli_wire_failure));
    if (answer != NULL) {
        pli_wire_failure *failure = pli_msg_body(answer);
        memset(failure, 0, sizeof *failure);
        failure->code = why->code;
        failure->rank = server->rank;
        memcpy(failure->text, why->text, sizeof failure->text);
        answer->head.flags = PLI_FLAG_FAILED;
    }
    pli_server_reply(server, now_ns, request, answer, out);
}

static bool send_unasked(pli_server *server, uint64_t now_ns, int32_t worker, pli_kind kind, int64_t clock, uint32_t id,
                         pli_msg *msg, pli_out *out) {
    if (msg == NULL) return false;
    msg->head.kind = (uint16_t)kind;
    msg->head.arg32 = id;
    msg->head.clock = clock;
    address(server, worker, 0, msg);
    if (pli_tx_send(&server->peer[worker].tx, now_ns, msg, out)) return true;
    pli_msg_free(&msg);
    return false;
}

/* Without memory nothing is sent: the worker pulls. */
void pli_server_send_fresh(pli_server *server, uint64_t now_ns, const pli_server_table *table, int32_t worker,
                           pli_kind kind, pli_msg *msg, pli_out *out) {
    uint32_t id = (uint32_t)table->shard.spec.id;
    pli_server_keep_events(server);
    if (msg == NULL || (server->peer[worker].listens && !send_unasked(server, now_ns, worker, PLI_STATE,
                                                                      (int64_t)table->state, id, pli_msg_new(0), out)))
        pli_msg_free(&msg);
    else
        (void)send_unasked(server, now_ns, worker, kind, pli_server_version(server, table), id, msg, out);
}

void pli_server_tell(pli_server *server, int32_t worker, pli_kind kind, int64_t clock, pli_out *out) {
    pli_msg *msg = pli_msg_new(0);
    if (msg == NULL) return; /* the other side sends again */
    msg->head.kind = (uint16_t)kind;
    msg->head.clock = clock;
    address(server, worker, 0, msg);
    pli_out_send(out, msg);
}

/* With copies, what has been taken is not yet safe. */
static void acknowledge(pli_server *server, int32_t to, pli_out *out) {
    if (server->copies == NULL) pli_server_tell(server, to, PLI_ACK, 0, out);
    else pli_server_tell(server, to, PLI_SAFE, (int64_t)server->copies->safe[to], out);
}

/* --- what waits, looked at again ------------------------------------------------------------------------------ */

static void serve_parked(pli_server *server, uint64_t now_ns, pli_out *out) {
    pli_msg *list = server->parked;
    bool     moved = server->asked_slowest != server->slowest || server->asked_applied != server->applied;
    if (!moved && !server->restless) return;
    server->asked_slowest = server->slowest;
    server->asked_applied = server->applied;
    server->parked = NULL;
    server->parked_last = &server->parked;
    while (list != NULL) {
        pli_msg *msg = list;
        list = msg->next;
        msg->next = NULL;
        if (pli_server_may_serve(server, now_ns, msg)) {
            pli_server_serve(server, now_ns, msg, out);
            pli_msg_free(&msg);
        } else {
            *server->parked_last = msg;
            server->parked_last = &msg->next;
        }
    }
}

/* Answers what every worker that is still there has asked for: a barrier (with what was dropped), an end. */
static void answer_when_all(pli_server *server, uint64_t now_ns, size_t field, size_t answer_bytes, pli_out *out) {
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_msg **asked = (pli_msg **)((unsigned char *)&server->peer[w] + field);
        if (*asked == NULL && !server->peer[w].gone) return;
    }
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_msg **asked = (pli_msg **)((unsigned char *)&server->peer[w] + field);
        if (*asked == NULL) continue;
        pli_msg *answer = pli_msg_new(answer_bytes);
        if (answer != NULL && answer_bytes > 0) memcpy(pli_msg_body(answer), &server->dropped, answer_bytes);
        pli_server_reply(server, now_ns, *asked, answer, out);
        pli_msg_free(asked);
    }
}

/* An update-type call: once all have called, and all earlier clocks are applied. */
static void run_calls(pli_server *server, uint64_t now_ns, pli_out *out) {
    int32_t  n = 0;
    pli_msg *requests[1024], *first = NULL;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        if (peer->call == NULL && !peer->gone) return;
        if (peer->call == NULL) continue;
        if (peer->call->head.clock > server->applied && server->slowest != PLAIT_LEFT) return;
        first = first == NULL ? peer->call : first;
    }
    if (first == NULL) return;
    pli_msg **all = server->layout.workers <= 1024 ? requests : pli_array((size_t)server->layout.workers, sizeof *all);
    if (all == NULL) {
        pli_out_fail(out, PLAIT_ENOMEM, "no memory for a server function's callers");
        return;
    }
    for (int32_t w = 0; w < server->layout.workers; w++) {
        if (server->peer[w].call == NULL) continue;
        all[n++] = server->peer[w].call;
        server->peer[w].call = NULL;
    }
    pli_server_run_call(server, now_ns, all, n, out);
    for (int32_t i = 0; i < n; i++) pli_msg_free(&all[i]);
    if (all != requests) pli_free(all);
}

bool pli_server_has_clocks(const pli_server *server) {
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && server->table[i]->at_clock) return true;
    return false;
}

/* Invariant 2's right-hand side. */
static int64_t complete(const pli_server *server, uint64_t now_ns) {
    int64_t highest = 0, least = INT64_MAX;
    for (int32_t w = 0; server->slowest == PLAIT_LEFT && w < server->layout.workers; w++)
        if (server->peer[w].ended > highest) highest = server->peer[w].ended;
    if (server->slowest == PLAIT_LEFT) return highest;
    for (int64_t i = 0; i < server->tables; i++) {
        const pli_server_table *table = server->table[i];
        if (table == NULL || !table->at_clock) continue;
        if (table->policy.ops->server.complete == NULL) return server->slowest;
        plait_view view = pli_server_view(server, now_ns, -1, -1);
        int64_t    clocks = table->policy.ops->server.complete(table->policy.state, &view);
        least = clocks < least ? clocks : least;
    }
    return least == INT64_MAX ? server->slowest : least;
}

static bool apply_complete(pli_server *server, uint64_t now_ns, pli_out *out) {
    int64_t target = complete(server, now_ns);
    if (server->copies != NULL) return pli_copies_prepare(server, now_ns, target, out);
    for (; server->applied < target; server->applied++)
        if (!pli_server_apply_clock(server, server->applied, out)) return false;
    return true;
}

void pli_server_look_again(pli_server *server, uint64_t now_ns, pli_out *out) {
    if (!apply_complete(server, now_ns, out)) return;
    serve_parked(server, now_ns, out);
    run_calls(server, now_ns, out);
    if (server->copies != NULL) pli_copies_meet(server, now_ns, out);
    else answer_when_all(server, now_ns, offsetof(pli_peer, barrier), sizeof server->dropped, out);
    if (server->copies != NULL) {
        pli_copies_end(server, now_ns, out);
    } else if (server->present == 0) {
        answer_when_all(server, now_ns, offsetof(pli_peer, bye), 0, out);
        pli_server_end(server, out);
    }
}

void pli_server_end(pli_server *server, pli_out *out) {
    atomic_store_explicit(&server->all_gone, true, memory_order_release);
    pli_out_ring(out);
}

static void tell_clock(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out) {
    plait_view view = pli_server_view(server, now_ns, worker, server->peer[worker].ended);
    for (int64_t i = 0; i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL || table->policy.ops->server.on_clock == NULL) continue;
        if (table->policy.ops->server.on_clock(table->policy.state, &view) & PLAIT_REFRESH)
            pli_server_refresh(server, now_ns, table, out);
    }
}

static void go(pli_server *server, int32_t worker) {
    server->present -= !server->peer[worker].gone;
    server->peer[worker].gone = true;
}

/* A worker takes no further clock. */
static void leave(pli_server *server, uint64_t now_ns, int32_t worker) {
    if (server->clocks[worker] == PLAIT_LEFT) return;
    pli_server_move_clock(server, worker, PLAIT_LEFT);
    pli_server_forget_from(&server->peer[worker], server->peer[worker].ended); /* sent early, of a clock not ended */
    if (server->book != NULL) pli_book_leave(server->book, worker);
    plait_view view = pli_server_view(server, now_ns, worker, server->peer[worker].ended);
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && server->table[i]->policy.ops->server.on_member != NULL)
            server->table[i]->policy.ops->server.on_member(server->table[i]->policy.state, &view);
}

/* --- messages, by kind; true: the message was kept --------------------------------------------------------------- */

typedef bool handler(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);

/* Of a table that applies at clocks it waits for the rest of its own. */
static bool on_push(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_peer         *peer = &server->peer[msg->head.src];
    pli_waiting_push *waits = NULL;
    if (msg->head.flags & PLI_FLAG_REDO) return pli_copies_redo(server, msg, out);
    if (!pli_server_take_push(server, now_ns, msg, &waits, out)) return false;
    if (waits == NULL) return pli_copies_log(server, now_ns, msg, out), false;
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
    if (msg->head.clock != peer->ended || server->clocks[worker] == PLAIT_LEFT) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d ended clock %lld, clock %lld was due", worker,
                     (long long)msg->head.clock, (long long)peer->ended);
        return false;
    }
    if (!pli_server_take_push(server, now_ns, msg, &waits, out)) return false;
    if (waits != NULL) pli_server_enqueue(peer, waits);
    pli_server_move_clock(server, worker, ++peer->ended);
    if (server->copies == NULL || !pli_server_has_clocks(server)) pli_raise_tick(server, msg); /* else with its SUM */
    pli_copies_ended(server, msg);
    if (!pli_server_has_clocks(server)) pli_copies_log(server, now_ns, msg, out);
    if (!apply_complete(server, now_ns, out)) return waits != NULL;
    tell_clock(server, now_ns, worker, out);
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
    if (server->copies != NULL) {
        (void)pli_fail(&why, PLAIT_EREFUSED, "a server function that updates tables of which there are copies");
        pli_server_reply_failure(server, now_ns, msg, &why, out);
        return false;
    }
    if (peer->call != NULL) {
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d calls a second server function at once", msg->head.src);
        return false;
    }
    peer->call = msg;
    pli_server_look_again(server, now_ns, out);
    return true;
}

static bool on_leave(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    leave(server, now_ns, msg->head.src);
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
    if (server->copies != NULL && msg->head.body_bytes >= sizeof(uint64_t)) return on_barrier(server, now_ns, msg, out);
    pli_out_fail(out, PLAIT_EFORMAT, "rank %d brings something to a barrier that takes nothing", msg->head.src);
    return false;
}

static bool on_bye(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_peer *peer = &server->peer[msg->head.src];
    bool      kept = keep_in(&peer->bye, msg, out);
    leave(server, now_ns, msg->head.src);
    go(server, msg->head.src);
    pli_server_look_again(server, now_ns, out);
    return kept;
}

static bool waits(const pli_msg *list, const pli_msg *why) {
    for (; list != NULL; list = list->next)
        if (list->head.src == why->head.src && list->head.arg32 == why->head.arg32) return true;
    return false;
}

static bool is_ticket(const pli_msg *asked, const pli_msg *why) {
    return asked != NULL && asked->head.arg32 == why->head.arg32;
}

/* The rank that a ticket waits for: the slowest, or one that has not come to the barrier, call or end. -1: none. */
static int32_t holder_of(const pli_server *server, const pli_msg *why) {
    const pli_peer *asker = &server->peer[why->head.src];
    bool            pull = waits(server->parked, why), barrier = is_ticket(asker->barrier, why);
    bool            call = is_ticket(asker->call, why), bye = is_ticket(asker->bye, why);
    int32_t         holder = -1;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        const pli_peer *peer = &server->peer[w];
        bool absent = (barrier && peer->barrier == NULL) || (call && peer->call == NULL) || bye;
        if (absent && !peer->gone) return w;
        if ((pull || call) && server->clocks[w] != PLAIT_LEFT &&
            (holder < 0 || server->clocks[w] < server->clocks[holder]))
            holder = w;
    }
    return holder;
}

/* With backup workers, and perhaps under a program's own policy, a wait may end without the slowest. */
static bool may_do_without_one(const pli_server *server) {
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && pli_consistency_find(server->table[i]->policy.spec, NULL) == NULL) return true;
    return server->layout.backup > 0;
}

static void on_why(const pli_server *server, const pli_msg *msg, pli_out *out) {
    int32_t       holder = holder_of(server, msg);
    pli_wire_held body = { .rank = holder, .asked = (uint32_t)msg->head.clock, .any = may_do_without_one(server) };
    pli_msg      *held = holder < 0 ? NULL : pli_msg_new(sizeof body);
    if (held == NULL) return;
    memcpy(pli_msg_body(held), &body, sizeof body);
    held->head.kind = PLI_HELD;
    held->head.arg32 = msg->head.arg32;
    held->head.clock = server->peer[holder].ended;
    address(server, msg->head.src, msg->head.flags & PLI_MSG_UNCOUNTED, held);
    pli_out_send(out, held);
}

/* --- the machine -------------------------------------------------------------------------------------------------- */

static bool on_create(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_create(server, msg, &why) < 0) pli_server_reply_failure(server, now_ns, msg, &why, out);
    else if (server->copies != NULL) pli_copies_created(server, now_ns, msg, pli_msg_new(0), out);
    else pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
    return false;
}

/* The other copy begins the same snapshot, to have its pieces where this one dies. */
static bool on_snap(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    const uint64_t before = server->snapped;
    bool           kept = pli_server_snap(server, now_ns, msg, out);
    if (server->snapped > before) pli_copies_log(server, now_ns, msg, out);
    return kept;
}

static bool on_restore(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (pli_server_put_back(server, msg, &why) < 0) pli_server_reply_failure(server, now_ns, msg, &why, out);
    else if (server->copies != NULL) pli_copies_restored(server, now_ns, msg, pli_msg_new(0), out);
    else pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
    return false;
}

static bool on_view(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_copies_view(server, now_ns, msg, out);
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
};

void pli_server_act(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    handler *by_kind = msg->head.kind < PLI_KINDS ? handlers[msg->head.kind] : NULL;
    bool     kept = false;
    msg->next = NULL;
    if (by_kind == NULL)
        pli_out_fail(out, PLAIT_EFORMAT, "rank %d sent a message of unknown kind %u to a server", msg->head.src,
                     (unsigned)msg->head.kind);
    else if (out->error.code >= 0 && pli_copies_reach(server, msg->head.clock, out))
        kept = by_kind(server, now_ns, msg, out);
    if (!kept) pli_msg_free(&msg);
}

static void handle(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    int32_t src = msg->head.src;
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
    if (server->copies != NULL && pli_copies_take(server, now_ns, msg, out)) return;
    if (src < 0 || src >= server->layout.workers || msg->head.epoch < server->peer[src].min_epoch ||
        pli_copies_buried(server, src)) {
        pli_msg_free(&msg); /* from a rank that is no worker, or from before its death */
        return;
    }
    pli_peer *peer = &server->peer[src];
    pli_tx_acked(&peer->tx, msg->head.arg64);
    if (msg->head.seq == 0) {
        if (msg->head.kind == PLI_WHY) on_why(server, msg, out);
        pli_msg_free(&msg);
        return;
    }
    uint64_t sent = peer->tx.next;
    peer->listens = (msg->head.flags & PLI_FLAG_STATE) != 0;
    switch (pli_rx_take(&peer->rx, &msg)) {
    case PLI_RX_TAKE:
        for (; msg != NULL; msg = pli_rx_next(&peer->rx)) handle(server, now_ns, msg, out);
        if (server->layout.resend_after_ns > 0 && peer->tx.next == sent) acknowledge(server, src, out);
        break;
    case PLI_RX_DUPLICATE:
        if (server->copies != NULL && pli_copies_was_restored(server, msg))
            pli_server_reply(server, now_ns, msg, pli_msg_new(0), out);
        if (server->copies != NULL && pli_copies_serves_again(server, msg)) pli_server_act(server, now_ns, msg, out);
        else pli_msg_free(&msg);
        acknowledge(server, src, out);
        break;
    case PLI_RX_OLD: pli_msg_free(&msg); break;
    case PLI_RX_EARLY: break;
    }
}

static void on_message(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out) {
    pli_server *server = state;
    if (server->failed) pli_msg_free(&msg);
    else take_message(server, now_ns, msg, out);
    server->failed = server->failed || out->error.code < 0;
}

static void on_wakeup(void *state, uint64_t now_ns, pli_out *out) {
    pli_server *server = state;
    if (server->copies != NULL) pli_copies_wakeup(server, now_ns, out);
    for (int32_t w = 0; w < server->layout.workers; w++)
        pli_tx_wakeup(&server->peer[w].tx, now_ns, out);
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

/* What a dead worker has pushed stays (without copies); nobody waits for it, nobody answers it. One that ended in good
 * order without saying BYE is as gone, and one that died behind its BYE acknowledges no answer to it. */
static void forget_worker(pli_server *server, uint64_t now_ns, int32_t worker) {
    pli_peer *peer = &server->peer[worker];
    leave(server, now_ns, worker);
    pli_msg_free(&peer->barrier);
    pli_msg_free(&peer->call);
    pli_msg_free(&peer->bye);
    pli_msg_free_list(&peer->behind);
    peer->behind_last = &peer->behind;
    drop_parked(server, worker);
    pli_tx_end(&peer->tx);
}

void pli_server_lose(pli_server *server, uint64_t now_ns, int32_t worker) {
    go(server, worker);
    pli_raise_gone(server, worker);
    if (server->copies != NULL && server->clocks[worker] != PLAIT_LEFT) pli_copies_bury(server, worker);
    forget_worker(server, now_ns, worker);
}

static void on_member(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out) {
    pli_server *server = state;
    server->epoch = event->epoch;
    if (server->failed) return;
    if (server->copies != NULL && pli_copies_member(server, now_ns, event, out)) return;
    if (event->kind == PLI_MEMBER_JOINED || event->rank < 0 || event->rank >= server->layout.workers) return;
    if (event->kind == PLI_MEMBER_DIED) {
        server->peer[event->rank].min_epoch = event->epoch;
        if (!server->peer[event->rank].gone || server->clocks[event->rank] != PLAIT_LEFT) {
            pli_server_lose(server, now_ns, event->rank);
        } else {
            if (server->copies != NULL) pli_raise_gone(server, event->rank); /* its log ends here, all was said */
            forget_worker(server, now_ns, event->rank);
        }
    } else {
        go(server, event->rank);
        forget_worker(server, now_ns, event->rank);
    }
    pli_server_look_again(server, now_ns, out);
}

static pli_msg *late(const pli_msg *msg) { return pli_wire_late(msg, PLI_PORT_CLIENT); }

const pli_machine_ops pli_server_ops = {
    .name = "server", .on_message = on_message, .on_wakeup = on_wakeup, .on_member = on_member, .late = late
};
