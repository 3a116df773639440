/* Server functions that update tables, where shards have two replicas: each call runs once at either, whoever dies.
 *
 * A call changes all rows at once, so its result is as large as the tables. But it is a function of rows that both
 * replicas have, and of arguments that all workers give alike. So the log says what was called, not what came out: the
 * other replica runs it, too, at the same place in the log, behind the sums of the same clocks. It comes to the same
 * bits, and to the same answer (state machine replication: Schneider, Computing Surveys 1990).
 *
 *     all living workers have called   the replica that serves runs the call, and logs it
 *     the log brings it                the other applies the sum of the clock before, and runs it
 *     the other has confirmed it       all are answered; until then nobody goes on from what may be lost
 *
 * Workers number their calls, as they number barriers. When who serves dies, who has no answer calls again, under the
 * same number. If the log has brought that call, the other replica answers it from memory; else no worker can have an
 * answer, all call again, and it runs now. No worker is two calls ahead of another, so the last answer is enough. A new
 * replica hears how many calls have run, and that answer, before its rows come. A call may make of a row what depends
 * on others, so it needs all of them: while rows are still to come a call waits. Who serves does not run it while it
 * makes a second replica. Of three, the second makes the third, which who serves need not know: so the second keeps a
 * CALL that the log brings, and all entries behind it, until the third has all rows. Nothing of that is safe meanwhile.
 * If who serves dies, what was kept is dropped: nobody else has it, and all call again.
 *
 * Values that came ahead with a clock's end (replicas_ahead.c) are of that moment: a worker forgets them when it calls.
 */
#include <string.h>

#include "table/copies/replicas.h"

bool pli_replicas_park(pli_server *server, pli_msg *msg) {
    pli_replicas *c = server->replicas;
    if (c->parked == NULL && (msg->head.kind != PLI_CALL || !c->making)) return false;
    msg->next = NULL;
    *c->parked_last = msg;
    c->parked_last = &msg->next;
    c->n_parked++;
    return true;
}

pli_msg *pli_replicas_unpark(pli_server *server) {
    pli_replicas *c = server->replicas;
    pli_msg      *msg = c->parked;
    if (msg == NULL || (msg->head.kind == PLI_CALL && c->making)) return NULL;
    c->parked = msg->next;
    if (c->parked == NULL) c->parked_last = &c->parked;
    c->n_parked--;
    msg->next = NULL;
    return msg;
}

void pli_replicas_drop_parked(pli_server *server) {
    pli_replicas *c = server->replicas;
    pli_msg_free_list(&c->parked);
    c->parked_last = &c->parked;
    c->n_parked = 0;
}

static uint64_t number_of(const pli_msg *msg) {
    pli_wire_call call;
    memcpy(&call, pli_msg_body(msg), sizeof call);
    return call.number;
}

/* Remembers the answer (taken) to the call. */
static void remember(pli_server *server, const pli_msg *call, pli_msg *answer) {
    pli_replicas *c = server->replicas;
    pli_msg_free(&c->answered);
    c->answered = answer;
    c->called = number_of(call);
}

void pli_replicas_called(pli_server *server, uint64_t now_ns, pli_msg *const *requests, int32_t n, pli_msg *answer,
                         pli_out *out) {
    pli_entry *entry = pli_entry_of(-1, 0);
    pli_msg   *msg = pli_msg_copy(requests[0]);
    for (int32_t i = 0; entry != NULL && i < n; i++) {
        if (pli_entry_answer(entry, requests[i], pli_msg_copy(answer))) continue;
        pli_entry_free(entry);
        entry = NULL;
    }
    remember(server, requests[0], answer);
    if (msg != NULL) {
        msg->head.clock = server->applied;
        msg->head.arg64 = 0;
    }
    pli_replicas_append(server, now_ns, msg, entry, out);
}

void pli_replicas_answer_calls(pli_server *server, uint64_t now_ns, pli_out *out) {
    const pli_replicas *c = server->replicas;
    for (int32_t w = 0; w < server->layout.workers; w++) {
        pli_msg **call = &server->peer[w].call;
        if (*call == NULL || c->answered == NULL || number_of(*call) > c->called) continue;
        pli_server_reply(server, now_ns, *call, pli_msg_copy(c->answered), out);
        pli_msg_free(call);
    }
}

/* NULL: it makes no sense here, or it cannot run. */
static pli_msg *run(pli_server *server, pli_msg *msg, plait_error *err) {
    if (!pli_server_check_call(server, msg, err)) return NULL;
    if (msg->head.clock == server->applied && number_of(msg) > server->replicas->called)
        return pli_server_call(server, &msg, 1, err);
    pli_fail(err, PLAIT_EFORMAT, "call %llu, behind %lld clocks; %llu have run, and %lld clocks are applied",
             (unsigned long long)number_of(msg), (long long)msg->head.clock,
             (unsigned long long)server->replicas->called, (long long)server->applied);
    return NULL;
}

void pli_replicas_take_call(pli_server *server, pli_msg *msg, pli_out *out) {
    plait_error why = { 0 };
    if (!pli_replicas_reach(server, msg->head.clock, out)) return;
    pli_msg *answer = run(server, msg, &why);
    if (answer == NULL) pli_out_fail(out, why.code, "log of rank %d: %s", msg->head.src, why.text);
    else remember(server, msg, answer);
}
