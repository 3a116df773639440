/* How a server keeps the book of leases (leases.h) for its workers. */
#include <string.h>

#include "table/server/server.h"

static plait_status check(const pli_msg *msg, const pli_wire_lease *ask, plait_error *err) {
    uint64_t bytes = msg->head.body_bytes;
    if (bytes < sizeof *ask || msg->offset % 8 != 0 || ask->n < 0 || ask->n > PLI_LEASES_MAX ||
        ask->terms.blocks > PLI_LEASES_MAX || bytes != sizeof *ask + (uint64_t)ask->n * sizeof(pli_lease))
        return pli_fail(err, PLAIT_EFORMAT, "a question for leases is malformed");
    return PLAIT_OK;
}

static plait_status take(pli_server *server, const pli_msg *msg, plait_error *err) {
    const pli_wire_lease *ask = pli_msg_body(msg);
    int32_t               worker = msg->head.src;
    PLI_TRY(check(msg, ask, err));
    if (server->book == NULL) PLI_TRY(pli_book_open(server->layout.workers, &ask->terms, &server->book, err));
    if (!pli_book_is_about(server->book, &ask->terms))
        return pli_fail(err, PLAIT_EMISMATCH, "rank %d asks for leases of other data than the other workers", worker);
    PLI_TRY(pli_book_bring(server->book, worker, (const pli_lease *)(ask + 1), ask->n, err));
    return pli_book_ask(server->book, worker, msg->head.clock, &ask->pace, err);
}

bool pli_server_take_lease(pli_server *server, const pli_msg *msg, plait_error *err) {
    return take(server, msg, err) == PLAIT_OK;
}

pli_msg *pli_server_leases(const pli_server *server, int32_t worker) {
    int64_t  n = pli_book_leases(server->book, worker, NULL);
    pli_msg *answer = pli_msg_new((size_t)n * sizeof(pli_lease));
    if (answer != NULL && n > 0) pli_book_leases(server->book, worker, pli_msg_body(answer));
    return answer;
}
