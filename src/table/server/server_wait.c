/* What waits at a server and is looked at again when something has changed: parked pulls, clocks that may be complete,
 * server functions, barriers and the end, for which all workers must have asked. */
#include <stdatomic.h>
#include <string.h>

#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/server/server.h"

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

/* Answers what every worker that is still there has asked for: a barrier (with the number of dropped pushes), or the
 * end. */
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

/* Runs an update-type call when all workers that are in have called, and all earlier clocks are applied. */
static void run_calls(pli_server *server, uint64_t now_ns, pli_out *out) {
    int32_t  n = 0;
    pli_msg *requests[1024], *first = NULL;
    if (server->replicas != NULL) pli_replicas_answer_calls(server, now_ns, out);
    if (server->replicas != NULL && server->replicas->making) return; /* see replicas_calls.c */
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_peer *peer = &server->peer[w];
        const bool away = server->replicas != NULL && server->replicas->roster.away[w];
        if (peer->call == NULL && !peer->gone && !away) return;
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
    return pli_roster_counts(server);
}

bool pli_server_logs_all(const pli_server *server) {
    if (server->layout.backup > 0) return true; /* what came too late depends on the order in which it came */
    for (int64_t i = 0; i < server->tables; i++)
        if (server->table[i] != NULL && !server->table[i]->at_clock) return true;
    return !pli_server_has_clocks(server);
}

/* The right-hand side of invariant 2. */
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

bool pli_server_apply_complete(pli_server *server, uint64_t now_ns, pli_out *out) {
    int64_t target = complete(server, now_ns);
    if (server->replicas != NULL) return pli_replicas_prepare(server, now_ns, target, out);
    for (; server->applied < target; server->applied++)
        if (!pli_server_apply_clock(server, server->applied, out)) return false;
    return true;
}

void pli_server_look_again(pli_server *server, uint64_t now_ns, pli_out *out) {
    if (!pli_server_apply_complete(server, now_ns, out)) return;
    serve_parked(server, now_ns, out);
    run_calls(server, now_ns, out);
    if (server->replicas != NULL) pli_replicas_meet(server, now_ns, out);
    else answer_when_all(server, now_ns, offsetof(pli_peer, barrier), sizeof server->dropped, out);
    if (server->replicas != NULL) {
        pli_roster_answer(server, now_ns, out);
        pli_replicas_end(server, now_ns, out);
        pli_moves_look(server, now_ns, out);
    } else if (server->present == 0) {
        answer_when_all(server, now_ns, offsetof(pli_peer, bye), 0, out);
        pli_server_end(server, out);
    }
}

void pli_server_end(pli_server *server, pli_out *out) {
    atomic_store_explicit(&server->all_gone, true, memory_order_release);
    pli_out_ring(out);
}

void pli_server_tell_clock(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out) {
    plait_view view = pli_server_view(server, now_ns, worker, server->peer[worker].ended);
    for (int64_t i = 0; i < server->tables; i++) {
        pli_server_table *table = server->table[i];
        if (table == NULL || table->policy.ops->server.on_clock == NULL) continue;
        if (table->policy.ops->server.on_clock(table->policy.state, &view) & PLAIT_REFRESH)
            pli_server_refresh(server, now_ns, table, out);
    }
}
