/* How a server runs server functions. */
#include <string.h>

#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/server/functions.h"

static const uint32_t *tables_of(const pli_wire_call *call) { return (const uint32_t *)(call + 1); }

static const unsigned char *args_of(const pli_wire_call *call) {
    return (const unsigned char *)(call + 1) + pli_pad8((uint64_t)call->n_tables * 4);
}

/* Are the tables cut alike, and has each the range? Only one table alone may be sparse. */
static bool has_range(const pli_server *server, const pli_wire_call *call) {
    const pli_shard *first = &server->table[tables_of(call)[0]]->shard;
    if (first->spec.rows == 0) return call->n_tables == 1 && call->first == 0 && call->rows == 0;
    for (uint32_t i = 1; i < call->n_tables; i++) {
        const pli_shard *shard = &server->table[tables_of(call)[i]]->shard;
        if (shard->spec.rows != first->spec.rows || shard->spec.cols != first->spec.cols ||
            shard->spec.type != first->spec.type || shard->first != first->first || shard->rows != first->rows)
            return false;
    }
    return call->first >= 0 && call->rows >= 0 && call->first <= first->spec.rows - call->rows;
}

bool pli_server_check_call(const pli_server *server, const pli_msg *msg, plait_error *err) {
    const pli_wire_call *call = pli_msg_body(msg);
    uint64_t             bytes = msg->head.body_bytes;
    pli_fail(err, PLAIT_EFORMAT, "a call of a server function is malformed");
    if (bytes < sizeof *call || msg->offset % 8 != 0 || call->n_tables == 0 || call->n_tables > PLI_CALL_TABLES_MAX ||
        call->function >= (uint32_t)server->layout.n_functions || call->answer_bytes > PLI_ANSWER_BYTES_MAX)
        return false;
    uint64_t tables = pli_pad8((uint64_t)call->n_tables * 4);
    if (bytes - sizeof *call < tables || bytes - sizeof *call - tables != call->args_bytes) return false;
    if ((server->layout.functions[call->function].updates != 0) != (call->updates != 0)) return false;
    for (uint32_t i = 0; i < call->n_tables; i++) {
        const pli_server_table *table = pli_server_table_of(server, tables_of(call)[i]);
        if (table == NULL || (call->updates && !table->at_clock)) return false;
    }
    return has_range(server, call);
}

static bool has_left(const pli_server *server, const pli_msg *msg) {
    return server->clocks[msg->head.src] == PLAIT_LEFT;
}

/* A worker that has left keeps its last clock. */
static bool same_call(const pli_server *server, const pli_msg *a, const pli_msg *b) {
    return a->head.body_bytes == b->head.body_bytes &&
           (a->head.clock == b->head.clock || has_left(server, a) || has_left(server, b)) &&
           memcmp(pli_msg_body(a), pli_msg_body(b), a->head.body_bytes) == 0;
}

static pli_msg *run(pli_server *server, const pli_msg *request, plait_error *err) {
    uint32_t                wrote = 0;
    const pli_wire_call    *asked = pli_msg_body(request);
    const pli_function_call call = { .fn = &server->layout.functions[asked->function], .first = asked->first,
                                     .rows = asked->rows, .args = args_of(asked), .args_bytes = asked->args_bytes,
                                     .answer_bytes = asked->answer_bytes,
                                     .wrote_out = asked->updates && server->sink != NULL ? &wrote : NULL };
    pli_shard              *shards[PLI_CALL_TABLES_MAX];
    for (uint32_t i = 0; i < asked->n_tables; i++) shards[i] = &server->table[tables_of(asked)[i]]->shard;
    const bool concerns = pli_function_concerns(&call, shards[0]);
    pli_msg   *answer = pli_msg_new(concerns ? call.answer_bytes : 0);
    if (answer == NULL) {
        pli_fail(err, PLAIT_ENOMEM, "no memory for a server function's answer");
        return NULL;
    }
    if (concerns && pli_function_run(&call, shards, (int32_t)asked->n_tables, pli_msg_body(answer), err) < 0)
        pli_msg_free(&answer);
    if (answer != NULL && asked->updates)
        pli_raise_called(server, asked->number, (int32_t)asked->n_tables, tables_of(asked), &call,
                         concerns ? pli_msg_body(answer) : NULL, wrote);
    return answer;
}

pli_msg *pli_server_call(pli_server *server, pli_msg *const *requests, int32_t n, plait_error *err) {
    int32_t first = 0, odd = 0;
    while (first < n - 1 && has_left(server, requests[first])) first++;
    while (odd < n && same_call(server, requests[first], requests[odd])) odd++;
    if (odd == n) return run(server, requests[0], err);
    pli_fail(err, PLAIT_EMISMATCH, "ranks %d and %d call server functions with different arguments or clocks",
             requests[first]->head.src, requests[odd]->head.src);
    return NULL;
}

void pli_server_run_call(pli_server *server, uint64_t now_ns, pli_msg *const *requests, int32_t n, pli_out *out) {
    const pli_wire_call *call = pli_msg_body(requests[0]);
    plait_error          why = { 0 };
    pli_msg             *answer = pli_server_call(server, requests, n, &why);
    if (answer != NULL && call->updates && server->replicas != NULL) {
        pli_replicas_called(server, now_ns, requests, n, answer, out);
        return;
    }
    for (int32_t i = 0; i < n; i++) {
        if (answer == NULL) pli_server_reply_failure(server, now_ns, requests[i], &why, out);
        else pli_server_reply(server, now_ns, requests[i], pli_msg_copy(answer), out);
    }
    pli_msg_free(&answer);
}
