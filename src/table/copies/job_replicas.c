/* A worker of a job whose shards have replicas: its clock ends when it is safe in all of them; it stands in for workers
 * that died; its collectives go by the first server, which survives any one rank (comm/carried.h), or by all that live
 * (topology/agreed_clock.h). replicas.h has the idea. */
#include <stdio.h>
#include <string.h>

#include "table/copies/replicas.h"
#include "table/copies/roster.h"
#include "table/events.h"
#include "table/table.h"
#include "table/topology/agreed_clock.h"

/* --- the end of a clock ------------------------------------------------------------------------------------------- */

static bool is_safe(void *arg) {
    const plait_job *job = arg;
    return pli_client_is_safe(&job->client) || pli_client_must_stand_in(&job->client);
}

static void tell_safe(const void *arg, char *text, size_t bytes) {
    const plait_job *job = arg;
    snprintf(text, bytes, "clock %lld to be safe in all replicas", (long long)plait_job_clock_now(job));
}

/* Does the client know that all of them are dead for whom its fellows stand in? It soon will: these die together. */
static bool knows_dead(void *arg) {
    plait_job *job = arg;
    uint64_t   now_ns;
    pli_out    out;
    pli_port_enter(job->client_port, &now_ns, &out);
    const bool knows = pli_client_knows_dead(&job->client, job->missing);
    pli_port_leave(job->client_port, &out);
    return knows;
}

static void tell_dead(const void *arg, char *text, size_t bytes) {
    const plait_job *job = arg;
    int32_t          w = 0;
    while (w + 1 < job->layout.workers && job->missing[w] == 0) w++;
    snprintf(text, bytes, "news of rank %d, which ends with one that has died", pli_job_rank_of(job, w));
}

/* Asks the fellows whether anybody stands in, and for whom. safe: this worker need not. */
static plait_status agree(plait_job *job, bool *safe, plait_error *err) {
    const int32_t workers = job->layout.workers;
    uint64_t      now_ns;
    pli_out       out;
    memset(job->missing, 0, (size_t)workers * sizeof *job->missing);
    pli_port_enter(job->client_port, &now_ns, &out);
    *safe = pli_client_is_safe(&job->client);
    if (!*safe) pli_client_mark_missing(&job->client, job->missing);
    pli_port_leave(job->client_port, &out);
    PLI_TRY(plait_group_allreduce(job->fellows, job->missing, workers, PLAIT_I64, PLAIT_MAX));
    for (int32_t w = 0; w < workers; w++) *safe = *safe && job->missing[w] == 0;
    return pli_comm_wait(job->comm, knows_dead, job, &(pli_reason){ .tell = tell_dead, .arg = job }, err);
}

plait_status pli_job_wait_until_safe(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    bool     safe = false;
    const pli_reason reason = { .tell = tell_safe, .arg = job };
    PLI_TRY(pli_comm_wait(job->comm, is_safe, job, &reason, err));
    PLI_TRY(pli_comm_is_lost(job->comm, &reason, err)); /* who was taken for dead may be alone: nothing is safe there */
    if (job->fellows != NULL) PLI_TRY(agree(job, &safe, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    if (job->fellows == NULL) safe = pli_client_is_safe(&job->client);
    plait_status status = safe ? PLAIT_OK : PLAIT_STAND_IN;
    if (safe) pli_client_end_clock(&job->client);
    if (safe) status = pli_client_follow_roster(&job->client, now_ns, &out, err);
    else pli_client_begin_standing_in(&job->client, job->fellows != NULL ? job->missing : NULL);
    pli_port_leave(job->client_port, &out);
    return status;
}

plait_status pli_job_end_clocks_with(plait_job *job, plait_group *group, plait_error *err) {
    for (int64_t i = 0; i < job->parts; i++) {
        const plait_job *part = job->part[i];
        PLI_TRY(pli_raise_fellows(pli_job_events(part), pli_job_me(part), plait_job_clock_now(part), group, err));
        if (group == NULL) job->part[i]->fellows = NULL;
    }
    if (group == NULL || job->layout.replicas < 2) return PLAIT_OK;
    if (job->parts != 1)
        return pli_fail(err, PLAIT_EINVAL, "clocks that end together with those of group %s need tables of one group "
                                             "on each rank; here are %lld", plait_group_name(group),
                        (long long)job->parts);
    plait_job *part = job->part[0];
    if (part->missing == NULL) part->missing = pli_calloc((size_t)part->layout.workers, sizeof *part->missing);
    if (part->missing == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a list of workers");
    part->fellows = group;
    return PLAIT_OK;
}

plait_status pli_job_give_stead(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    PLI_TRY(pli_client_build_push(&job->client, NULL, PLI_PUSH, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_view(&job->client, now_ns, &out, err);
    pli_port_leave(job->client_port, &out);
    return status;
}

plait_status pli_job_stand_in(plait_job *job, plait_error *err) {
    PLI_TRY(pli_job_give_stead(job, err));
    return pli_job_wait_until_safe(job, err);
}

int32_t plait_job_holder(const plait_job *job, int32_t home, uint64_t item) {
    return job == NULL ? -1 : pli_client_holder(&job->client, home, item, false);
}

int plait_job_inherits(const plait_job *job, int32_t home, uint64_t item) {
    if (job == NULL) return 0;
    const pli_client *c = &job->client;
    return pli_client_holder(c, home, item, true) == c->rank && pli_client_holder(c, home, item, false) != c->rank;
}

int32_t plait_table_holder(const plait_table *table, int32_t home, uint64_t item) {
    if (table == NULL) return -1;
    const plait_job *job = table->job;
    const int32_t    number = pli_numbers_of(pli_group_numbers(job->group), home);
    return number < 0 ? home : pli_job_rank_of(job, plait_job_holder(job, number, item));
}

int plait_table_inherits(const plait_table *table, int32_t home, uint64_t item) {
    if (table == NULL) return 0;
    const int32_t number = pli_numbers_of(pli_group_numbers(table->job->group), home);
    return number < 0 ? 0 : plait_job_inherits(table->job, number, item);
}

/* --- collectives -------------------------------------------------------------------------------------------------- */

/* Reads what each worker has brought to the first server; false: it makes no sense. */
static bool read_gathered(const plait_job *job, const pli_msg *reply, pli_carried *came) {
    const size_t         workers = (size_t)job->layout.workers;
    uint64_t             at = workers * sizeof(uint64_t), bytes;
    const unsigned char *body = pli_msg_body(reply);
    if (reply->head.body_bytes < at) return false;
    for (size_t w = 0; w < workers; w++) {
        memcpy(&bytes, body + w * sizeof bytes, sizeof bytes);
        came[w] = (pli_carried){ NULL, 0 };
        if (bytes == PLI_GONE) continue;
        if (bytes > reply->head.body_bytes - at || pli_pad8(bytes) > reply->head.body_bytes - at) return false;
        came[w] = (pli_carried){ body + at, bytes };
        at += pli_pad8(bytes);
    }
    return came[job->client.rank].data != NULL; /* a worker that the others take for dead hears no more */
}

plait_status pli_job_gather(void *user, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                            plait_error *err) {
    plait_job   *job = user;
    pli_ticket   ticket;
    pli_exchange x;
    PLI_TRY(pli_job_must_have_ended(job, "a collective", err));
    if (job->agreed_carries) return pli_agreed_gather(job, mine, bytes, came, held_out, err);
    pli_exchange_begin(&x, job, &ticket);
    plait_status status = pli_client_send_gather(&job->client, x.now_ns, mine, bytes, &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, "a collective of the living workers", err);
    if (status >= 0 && (ticket.replies == NULL || !read_gathered(job, ticket.replies, came)))
        status = pli_fail(err, PLAIT_EFORMAT, "a malformed answer to a collective");
    if (status >= 0) {
        *held_out = ticket.replies;
        ticket.replies = (*held_out)->next;
        (*held_out)->next = NULL;
    }
    pli_ticket_free(&ticket);
    return status;
}
