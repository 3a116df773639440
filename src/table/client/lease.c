/* A worker asks for its leases: one message to the server that keeps the book, one answer. */
#include <stdio.h>
#include <string.h>

#include "table/table.h"

int32_t pli_lease_keeper(const pli_layout *layout) {
    static const char key[] = "leases";
    return (int32_t)(pli_hash_bytes(key, sizeof key, 0) % (uint64_t)layout->servers);
}

static pli_msg *question(const plait_job *job, const pli_lease_terms *terms, const pli_pace *pace,
                         const pli_lease *brought, int64_t n) {
    pli_wire_lease ask = { .terms = *terms, .pace = *pace, .n = n };
    pli_msg       *msg = pli_msg_new(sizeof ask + (size_t)n * sizeof *brought);
    if (msg == NULL) return NULL;
    unsigned char *body = pli_msg_body(msg);
    memcpy(body, &ask, sizeof ask);
    if (n > 0) memcpy(body + sizeof ask, brought, (size_t)n * sizeof *brought);
    msg->head.clock = job->client.clock;
    return msg;
}

static plait_status take_answer(const pli_ticket *ticket, const pli_lease_terms *terms, pli_lease *lease, int64_t *n,
                                plait_error *err) {
    const pli_msg *reply = ticket->replies;
    uint64_t       bytes = reply == NULL ? 1 : reply->head.body_bytes;
    if (bytes % sizeof *lease != 0 || bytes / sizeof *lease > (uint64_t)terms->blocks)
        return pli_fail(err, PLAIT_EFORMAT, "an answer of %llu bytes to a question for leases",
                        (unsigned long long)bytes);
    *n = (int64_t)(bytes / sizeof *lease);
    if (*n > 0) memcpy(lease, pli_msg_body(reply), bytes);
    return PLAIT_OK;
}

plait_status pli_job_lease(plait_job *job, const pli_lease_terms *terms, const pli_pace *pace, pli_lease *lease,
                           int64_t *n, plait_error *err) {
    if (job->layout.replicas > 1)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "leases with %d replicas are refused: the other replica would not know them; nearest is a static balance",
            job->layout.replicas);
    bool         first = job->client.clock == terms->first;
    pli_ticket   ticket;
    pli_exchange x;
    char         what[64];
    snprintf(what, sizeof what, "leases of clock %lld", (long long)job->client.clock);
    pli_exchange_begin(&x, job, &ticket);
    plait_status status = pli_client_send(&job->client, x.now_ns, pli_lease_keeper(&job->layout), PLI_LEASE,
                                          question(job, terms, pace, lease, first ? *n : 0), &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, what, err);
    if (status >= 0) status = take_answer(&ticket, terms, lease, n, err);
    pli_ticket_free(&ticket);
    return status;
}
