/* What a server sends: answers to requests, fresh rows that nobody asked for, acknowledgements, and who holds a request
 * up. */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/events.h"

/* A message that waits behind a list of keys has arrived, but no values contain it yet. An acknowledgement would
 * promise that they do, so it is left out. */
static void address(const pli_server *server, int32_t to, uint16_t flags, pli_msg *msg) {
    const pli_peer *peer = &server->peer[to];
    pli_head       *head = &msg->head;
    const bool other = server->replicas != NULL &&
                       pli_replica_port(&server->layout, server->replicas->place) == PLI_PORT_REPLICA;
    head->flags = (uint16_t)(flags | (other ? PLI_FLAG_REPLICA : 0));
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
    if (pli_replicas_hold(server, answer)) return;
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

void pli_server_tell_leap(pli_server *server, uint64_t now_ns, const pli_msg *request, int64_t clock, pli_out *out) {
    pli_msg *msg = pli_msg_new(0);
    if (msg != NULL) msg->head.clock = clock;
    answer_with(server, now_ns, request, PLI_LEAP, msg, out);
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
    if (pli_replicas_hold(server, msg) || pli_tx_send(&server->peer[worker].tx, now_ns, msg, out)) return true;
    pli_msg_free(&msg);
    return false;
}

/* Out of memory, nothing is sent: the worker pulls. */
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
    pli_server_tell_with(server, worker, kind, clock, pli_msg_new(0), out);
}

void pli_server_tell_with(pli_server *server, int32_t worker, pli_kind kind, int64_t clock, pli_msg *msg,
                          pli_out *out) {
    if (msg == NULL) return; /* out of memory: the other side sends again */
    if (kind == PLI_SAFE) msg = pli_roster_before(server, msg);
    if (msg == NULL) return;
    msg->head.kind = (uint16_t)kind;
    msg->head.clock = clock;
    address(server, worker, 0, msg);
    pli_out_send(out, msg);
}

/* With replicas, a message that was taken is not yet safe. */
void pli_server_acknowledge(pli_server *server, int32_t to, pli_out *out) {
    if (server->replicas == NULL) pli_server_tell(server, to, PLI_ACK, 0, out);
    else pli_server_tell(server, to, PLI_SAFE, (int64_t)server->replicas->safe[to], out);
}

/* --- who holds a request up --------------------------------------------------------------------------------------- */

static bool waits(const pli_msg *list, const pli_msg *why) {
    for (; list != NULL; list = list->next)
        if (list->head.src == why->head.src && list->head.arg32 == why->head.arg32) return true;
    return false;
}

static bool is_ticket(const pli_msg *asked, const pli_msg *why) {
    return asked != NULL && asked->head.arg32 == why->head.arg32;
}

/* The rank that a ticket waits for: the slowest worker, or one that has not come to the barrier, call or end. -1:
 * none. */
static int32_t holder_of(const pli_server *server, const pli_msg *why) {
    const pli_peer *asker = &server->peer[why->head.src];
    bool            pull = waits(server->parked, why), barrier = is_ticket(asker->barrier, why);
    bool            call = is_ticket(asker->call, why), bye = is_ticket(asker->bye, why);
    int32_t         holder = -1;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        const pli_peer *peer = &server->peer[w];
        const bool is_due = barrier && peer->barrier == NULL && !pli_roster_is_parked(server, w);
        bool       absent = is_due || (call && peer->call == NULL) || bye;
        if (absent && !peer->gone) return w;
        if ((pull || call) && server->clocks[w] != PLAIT_LEFT &&
            (holder < 0 || server->clocks[w] < server->clocks[holder]))
            holder = w;
    }
    return holder;
}

/* With backup workers, and perhaps under a program's own policy, a wait may end without the slowest worker. */
static bool may_do_without_one(const pli_server *server) {
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && pli_consistency_find(server->table[i]->policy.spec, NULL) == NULL) return true;
    return server->layout.backup > 0;
}

void pli_server_answer_why(const pli_server *server, const pli_msg *msg, pli_out *out) {
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
