/* See exchange.h. */
#include "table/client/exchange.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "table/table.h"

void pli_exchange_enter(pli_exchange *x, plait_job *job, pli_ticket *ticket) {
    x->job = job;
    x->ticket = ticket;
    pli_port_enter(job->client_port, &x->now_ns, &x->out);
}

void pli_exchange_begin(pli_exchange *x, plait_job *job, pli_ticket *ticket) {
    pli_exchange_enter(x, job, ticket);
    pli_ticket_open(&job->client, ticket);
}

/* A ticket that waits for nothing gets no answer that would close it, so it is closed here. */
static void leave(pli_exchange *x, plait_status status) {
    if (status < 0 || pli_ticket_done(x->ticket)) pli_ticket_unlink(&x->job->client, x->ticket);
    pli_port_leave(x->job->client_port, &x->out);
}

plait_status pli_exchange_send(pli_exchange *x, plait_status status) {
    leave(x, status);
    return status;
}

plait_status pli_exchange_wait(pli_exchange *x, plait_status status, const char *what, plait_error *err) {
    if (status >= 0 && !pli_ticket_done(x->ticket))
        pli_ticket_wonder(&x->job->client, x->now_ns, x->ticket, &x->out);
    leave(x, status);
    return status < 0 ? status : pli_job_wait(x->job, x->ticket, what, err);
}

plait_status pli_job_push(plait_job *job, pli_client_table *table, pli_kind kind, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    PLI_TRY(pli_client_build_push(&job->client, table, kind, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_push(&job->client, now_ns, kind, &out, err);
    pli_port_leave(job->client_port, &out);
    return status;
}

/* --- waiting ------------------------------------------------------------------------------------------------- */

typedef struct waiting {
    const plait_job  *job;
    const pli_ticket *ticket;
    const char       *what; /* NULL: the get of the ticket */
} waiting;

void pli_exchange_name_get(const plait_job *job, const pli_ask *ask, char *text, size_t bytes) {
    snprintf(text, bytes, "clock %lld of table %s", (long long)job->client.clock, ask->table->spec.name);
}

/* Any thread may ask; clock and table stand still while the worker waits. */
static void tell(const void *arg, char *text, size_t bytes) {
    const waiting *w = arg;
    const char    *what = w->what;
    char           get[128], group[64] = "";
    int32_t        held = atomic_load_explicit(&w->ticket->held_rank, memory_order_acquire);
    int32_t        rank = pli_job_rank_of(w->job, held);
    if (w->job->group != NULL) snprintf(group, sizeof group, " (group %s)", plait_group_name(w->job->group));
    if (what == NULL) {
        what = get;
        pli_exchange_name_get(w->job, w->ticket->ask, get, sizeof get);
    }
    if (rank < 0) snprintf(text, bytes, "%s%s", what, group);
    else snprintf(text, bytes, "%s%s, held up by rank %d (in clock %lld)", what, group, rank,
                  (long long)atomic_load_explicit(&w->ticket->held_clock, memory_order_relaxed));
}

static void show(const void *arg, pli_wait *wait) {
    const waiting *w = arg;
    wait->kind = PLI_WAIT_TABLE;
    wait->answered = atomic_load_explicit(&w->ticket->answered, memory_order_acquire); /* first: the holder is as new */
    wait->asked = atomic_load_explicit(&w->ticket->asked, memory_order_acquire);
    wait->peer = pli_job_rank_of(w->job, atomic_load_explicit(&w->ticket->held_rank, memory_order_acquire));
    wait->any = atomic_load_explicit(&w->ticket->held_any, memory_order_relaxed);
    wait->first_server = w->job->layout.first_server;
    wait->servers = w->job->layout.servers;
    if (w->job->group == NULL && !pli_moves_are_on(&w->job->layout)) return;
    wait->first_server = 0; /* any worker may have to answer: shards move, and members need not be side by side */
    wait->servers = plait_comm_workers(w->job->comm);
}

static bool is_done(void *arg) { return pli_ticket_done(arg); }

/* The ticket was asked for earlier, and the worker begins to wait only now. */
static void wonder(plait_job *job, pli_ticket *ticket) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    if (!pli_ticket_done(ticket)) pli_ticket_wonder(&job->client, now_ns, ticket, &out);
    pli_port_leave(job->client_port, &out);
}

void pli_job_drop_ticket(plait_job *job, pli_ticket *ticket) {
    uint64_t now_ns;
    pli_out  out;
    pli_port_enter(job->client_port, &now_ns, &out);
    pli_ticket_unlink(&job->client, ticket);
    pli_port_leave(job->client_port, &out);
}

plait_status pli_job_wait(plait_job *job, pli_ticket *ticket, const char *what, plait_error *err) {
    waiting          w = { .job = job, .ticket = ticket, .what = what };
    const pli_reason reason = { .tell = tell, .show = show, .arg = &w };
    plait_status     status = PLAIT_OK;
    if (!pli_ticket_done(ticket)) {
        if (!ticket->wonders) wonder(job, ticket);
        status = pli_comm_wait(job->comm, is_done, ticket, &reason, err);
    }
    /* A lost server has left, so its answers may be missing. */
    if (status >= 0) status = pli_comm_is_lost(job->comm, &reason, err);
    if (!pli_ticket_done(ticket)) pli_job_drop_ticket(job, ticket);
    if (status < 0 || ticket->failure.code >= 0) return status;
    *err = ticket->failure;
    return err->code;
}

/* --- asking all servers ---------------------------------------------------------------------------------------- */

/* Adds the counts that answers bring. */
static int64_t sum_of(const pli_ticket *ticket) {
    int64_t sum = 0, count;
    for (const pli_msg *reply = ticket->replies; reply != NULL; reply = reply->next) {
        if (reply->head.body_bytes != sizeof count) continue;
        memcpy(&count, pli_msg_body(reply), sizeof count);
        sum += count;
    }
    return sum;
}

plait_status pli_job_ask_all(plait_job *job, pli_kind kind, const char *what, int64_t *sum_out, plait_error *err) {
    pli_ticket   ticket;
    pli_exchange x;
    pli_exchange_begin(&x, job, &ticket);
    plait_status status = pli_client_send_all(&job->client, x.now_ns, kind, &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, what, err);
    if (status >= 0) *sum_out = sum_of(&ticket);
    pli_ticket_free(&ticket);
    return status;
}
