/* The clock that a job's tables have in common, barriers, and departure. */
#include <stdatomic.h>
#include <string.h>

#include "table/client/aggregate.h"
#include "table/events.h"
#include "table/shown.h"
#include "table/table.h"
#include "table/topology/agreed_clock.h"
#include "table/topology/buckets.h"

int plait_job_is_late(const plait_job *job) {
    if (job == NULL || job->left) return 0;
    const pli_client *client = &job->client;
    return (job->layout.backup > 0 && client->complete > client->clock) ||
           (client->leaps && atomic_load_explicit(&client->leap, memory_order_relaxed) > client->clock);
}

bool pli_job_may_leap(plait_job *job) {
    for (int64_t i = 0; i < job->client.tables; i++)
        job->client.leaps = job->client.leaps || job->client.table[i]->policy.ops->server.leap != NULL;
    return job->client.leaps;
}

int64_t plait_job_dropped(const plait_job *job) { return job == NULL ? 0 : job->dropped; }

/* Hands what this host's workers have pending to the host's lead: in a part of the job, what its members have. A rank
 * ends its parts one after the other, in one order on all ranks; so one tag does for all of them. */
static plait_status aggregate(plait_job *job, plait_error *err) {
    enum {
        TAG_HANDED = -3
    }; /* the tag of job 0; later jobs have lower ones: a worker that ends a job a clock ahead of its lead leaves a
        * message there */
    const int32_t      tag = TAG_HANDED - pli_comm_job(job->comm);
    const pli_numbers *numbers = pli_group_numbers(job->group);
    const pli_hosts   *hosts = job->group != NULL ? &job->group->hosts : pli_comm_hosts(job->comm);
    int32_t            me = pli_job_me(job), host = hosts->host[me];
    const int32_t     *member = hosts->member + hosts->first[host];
    int32_t            members = hosts->first[host + 1] - hosts->first[host];
    if (hosts->place[me] > 0) {
        pli_msg *msg = pli_aggregate_hand(&job->client);
        return msg == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a clock's updates")
                           : pli_comm_send_msg(job->comm, pli_numbers_rank(numbers, member[0]), tag, msg);
    }
    for (int32_t i = 1; i < members; i++) {
        pli_msg *msg = NULL;
        PLI_TRY(pli_comm_take(job->comm, pli_numbers_rank(numbers, member[i]), tag, &msg));
        plait_status status = pli_aggregate_add(&job->client, msg, err);
        pli_comm_work(job->comm, PLI_WORK_SUMS, msg->head.body_bytes / 4);
        pli_msg_free(&msg);
        if (status < 0) return status;
    }
    return PLAIT_OK;
}

/* --- the clock of tables on servers ------------------------------------------------------------------------------- */

static bool has_servers(const plait_job *job) { return job->client.n_used > 0; }

/* The dead are known at once: there is nothing in which others must stand in for them. */
static void end_without_servers(plait_job *job) {
    if (job->layout.replicas > 1) {
        uint64_t now_ns;
        pli_out  out;
        pli_port_enter(job->client_port, &now_ns, &out); /* the client hears of deaths from other threads */
        pli_client_end_clock(&job->client);
        pli_port_leave(job->client_port, &out);
        return;
    }
    pli_raise_clock(job->client.sink, pli_job_me(job), job->client.clock);
    job->client.clock++;
}

static plait_status clock_servers(plait_job *job, plait_error *err) {
    if (!has_servers(job)) {
        end_without_servers(job);
        return PLAIT_OK;
    }
    if (job->layout.aggregates) PLI_TRY(aggregate(job, err));
    if (job->client.ending) return pli_job_stand_in(job, err);
    plait_status status = pli_job_push(job, NULL, PLI_CLOCK, err);
    return status < 0 || !job->client.ending ? status : pli_job_wait_until_safe(job, err);
}

/* --- the clock ---------------------------------------------------------------------------------------------------- */

static plait_status must_take_part(const plait_job *job, const char *call, plait_error *err) {
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "%s is for workers; this rank is a server", call);
    if (job->left) return pli_fail(err, PLAIT_EINVAL, "%s after plait_job_leave", call);
    return PLAIT_OK;
}

/* Ends the clock of a table with collectives of its own. These follow when all buckets are begun, on every worker. */
static plait_status clock_alone(plait_table *table, plait_error *err) {
    PLI_TRY(pli_buckets_begin_all(table->job, err));
    return table->ops->clock(table, err);
}

/* The clock has begun to end: what was flushed travels with the rest. */
static void forget_flushes(plait_job *job) {
    job->flushed = 0;
    for (int64_t i = 0; i < job->tables; i++) job->table[i]->flushed = false;
}

static void count_clock(plait_job *job) {
    atomic_fetch_add_explicit(&job->clock, 1, memory_order_relaxed);
    pli_shown_clock(job);
}

/* The clock of mirrors that go on without the dead. */
static plait_status clock_agreed(plait_job *job, plait_error *err) {
    const plait_status status = pli_agreed_clock_end(job, err);
    if (status >= 0) forget_flushes(job);
    if (status == PLAIT_OK) count_clock(job);
    return status;
}

/* Of the job's own tables. at_once: the caller waits until it has ended. */
static plait_status begin_own_clock(plait_job *job, bool at_once) {
    plait_error *err = pli_job_error(job);
    job->client.met = false;
    pli_served_finish_gets(job);
    for (int64_t i = 0; i < job->tables; i++) pli_table_unpin(job->table[i]);
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->ends != NULL && !pli_table_has_ended(job->table[i]))
            PLI_TRY(job->table[i]->ops->ends(job->table[i], err));
    if (job->agreed_clocks) return clock_agreed(job, err);
    plait_status status = clock_servers(job, err);
    if (status == PLAIT_STAND_IN) forget_flushes(job); /* what is added now is another worker's part */
    if (status < 0 || status == PLAIT_STAND_IN) return status;
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->clock_begin != NULL) status = job->table[i]->ops->clock_begin(job->table[i], err);
    if (status >= 0) status = pli_buckets_begin(job, at_once, err);
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->clock_begin == NULL && job->table[i]->ops->clock != NULL)
            status = clock_alone(job->table[i], err);
    job->ticking = status >= 0;
    if (job->ticking) forget_flushes(job);
    if (job->ticking) return at_once ? pli_job_finish_clock(job, err) : PLAIT_OK;
    count_clock(job);
    return status;
}

/* With two replicas a worker may have died in a part's clock, in which the others stand in for it: the call returns,
 * and comes again. Parts before that one have ended the clock already. */
static bool has_ended(const plait_job *job, const plait_job *part) {
    return plait_job_clock_now(part) > plait_job_clock_now(job);
}

/* Parts come first, by the numbers of their groups: in one order on all ranks, so that collectives never cross. */
static plait_status begin_clock(plait_job *job, bool at_once) {
    plait_error *err = pli_job_error(job);
    plait_status status;
    PLI_TRY(must_take_part(job, "plait_job_clock", err));
    PLI_TRY(pli_job_finish_clock(job, err));
    if (!plait_job_is_late(job)) pli_comm_work(job->comm, PLI_WORK_CLOCKS, 1); /* else it has computed nothing */
    pli_comm_computed(job->comm);
    for (int64_t i = 0; i < job->parts; i++) {
        if (has_ended(job, job->part[i])) continue;
        status = begin_own_clock(job->part[i], at_once);
        if (status < 0 || status == PLAIT_STAND_IN) return status;
    }
    PLI_TRY(status = begin_own_clock(job, at_once));
    const bool tells = status == PLAIT_OK && job->client.joined && !job->client.left;
    return tells ? pli_job_tell_zeros(job, false, err) : status;
}

bool pli_job_overlaps(const plait_job *job) {
    int64_t summed = 0;
    for (int64_t i = 0; i < job->tables; i++) {
        if (job->table[i]->ops->overlaps == NULL) continue;
        if (!job->table[i]->ops->overlaps(job->table[i])) return false;
        summed++;
    }
    for (int64_t i = 0; i < job->parts; i++) summed += pli_job_overlaps(job->part[i]);
    return summed > 0;
}

plait_status pli_job_finish_clock(plait_job *job, plait_error *err) {
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(pli_job_finish_clock(job->part[i], err));
    if (!job->ticking) return PLAIT_OK;
    job->ticking = false;
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->clock_end != NULL) status = job->table[i]->ops->clock_end(job->table[i], err);
    count_clock(job);
    return status;
}

plait_status plait_job_clock(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_clock");
    return pli_comm_leave(job->comm, begin_clock(job, true));
}

typedef struct clock_request {
    plait_request base; /* first, so that a pointer to this is one to a plait_request */
    plait_job    *job;
    int64_t       clock; /* the clock that it ends */
} clock_request;

static plait_status wait_for_clock(plait_request *base) {
    const clock_request *request = (clock_request *)base;
    plait_job           *job = request->job;
    bool under_way = job->ticking && plait_job_clock_now(job) == request->clock; /* else another call has ended it */
    pli_free(base);
    if (!under_way) return PLAIT_OK;
    pli_comm_enter(job->comm, "plait_request_wait of plait_job_clock_begin");
    return pli_comm_leave(job->comm, pli_job_finish_clock(job, pli_job_error(job)));
}

plait_status plait_job_clock_begin(plait_job *job, plait_request **request_out) {
    PLI_TRY(pli_job_usable(job, __func__));
    PLI_TRY(PLI_GIVEN(pli_job_error(job), request_out));
    if (job->layout.replicas > 1)
        return pli_fail(pli_job_error(job), PLAIT_EREFUSED,
                        "plait_job_clock_begin with %d replicas is refused: when a worker dies, the others may have to "
                        "end the clock again; nearest is plait_job_clock", job->layout.replicas);
    clock_request *request = pli_calloc(1, sizeof *request);
    if (request == NULL) return pli_fail(pli_job_error(job), PLAIT_ENOMEM, "no memory for a request");
    pli_comm_enter(job->comm, "plait_job_clock_begin");
    plait_status status = pli_comm_leave(job->comm, begin_clock(job, false));
    *request = (clock_request){ .base.wait = wait_for_clock, .job = job, .clock = plait_job_clock_now(job) };
    if (status < 0) pli_free(request);
    *request_out = status < 0 ? NULL : &request->base;
    return status;
}

/* --- barriers ----------------------------------------------------------------------------------------------------- */

plait_status pli_job_must_have_ended(const plait_job *job, const char *call, plait_error *err) {
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(pli_job_must_have_ended(job->part[i], call, err));
    if (job->client.ending)
        return pli_fail(err, PLAIT_EINVAL, "%s in clock %lld, in which a worker has died; end it by plait_job_clock",
                        call, (long long)plait_job_clock_now(job));
    if (job->flushed == 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "%s in clock %lld, part of which plait_table_flush has already sent; end it by plait_job_clock",
                    call,
                    (long long)plait_job_clock_now(job));
}

plait_status pli_job_settle(plait_job *job, const char *call, plait_error *err) {
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(pli_job_settle(job->part[i], call, err));
    pli_served_finish_gets(job);
    PLI_TRY(pli_job_must_have_ended(job, call, err));
    PLI_TRY(pli_job_finish_clock(job, err));
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->settle != NULL) PLI_TRY(job->table[i]->ops->settle(job->table[i], err));
    return pli_served_send_kept(job, err);
}

static plait_status meet_at_barrier(plait_job *job) {
    plait_error *err = pli_job_error(job);
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_job_barrier is for workers; this rank is a server");
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(meet_at_barrier(job->part[i]));
    for (int64_t i = 0; i < job->tables; i++) pli_table_unpin(job->table[i]);
    PLI_TRY(pli_job_settle(job, "plait_job_barrier", err));
    plait_status status = has_servers(job) ? pli_job_ask_all(job, PLI_BARRIER, "barrier", &job->dropped, err)
                                           : pli_job_meet(job);
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->refresh != NULL) job->table[i]->ops->refresh(job->table[i]);
    job->client.met = status >= 0;
    if (status >= 0) pli_raise(job->client.sink, pli_job_me(job), false, PLI_EVENT_BARRIER);
    return status;
}

plait_status plait_job_barrier(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_barrier");
    return pli_comm_leave(job->comm, meet_at_barrier(job));
}

static void set_quiet(plait_job *job, bool quiet) {
    for (int64_t i = 0; i < job->parts; i++) set_quiet(job->part[i], quiet);
    job->quiet = quiet;
}

plait_status pli_job_pass(plait_job *job) {
    set_quiet(job, true);
    const plait_status status = plait_job_barrier(job);
    set_quiet(job, false);
    return status;
}

void pli_job_resume(plait_job *job) {
    for (int64_t i = 0; i < job->parts; i++) pli_job_resume(job->part[i]);
    pli_client_resume(&job->client);
}

static plait_status may_leave(const plait_job *job, plait_error *err) {
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(may_leave(job->part[i], err));
    for (int64_t i = 0; i < job->tables; i++)
        if (pli_table_needs_all(job->table[i]) && job->layout.workers > 1)
            return pli_fail(
                err, PLAIT_EREFUSED, "table %s: a worker cannot leave under %s x %s, which needs a part from each "
                                     "worker",
                job->table[i]->spec.name, job->table[i]->spec.topology.text, job->table[i]->spec.consistency);
    return PLAIT_OK;
}

static plait_status leave_own(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    pli_served_finish_gets(job);
    PLI_TRY(pli_served_send_kept(job, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_all(&job->client, now_ns, PLI_LEAVE, NULL, &out, err);
    job->client.left = true;
    pli_port_leave(job->client_port, &out);
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->leave != NULL) job->table[i]->ops->leave(job->table[i]);
    job->left = true;
    pli_raise(job->client.sink, pli_job_me(job), false, PLI_EVENT_LEAVE);
    return status;
}

/* With replicas: the clock is the worker's last one, and the others hold its items from the next one on. What its
 * filters have kept back goes along, and nothing is kept back of the clock itself. */
static plait_status leave_with_clock(plait_job *job, plait_error *err) {
    if (!pli_job_may_go(job, err)) return PLAIT_EREFUSED;
    PLI_TRY(pli_job_take_back(job, err));
    job->client.leaving = job->client.lossless = true;
    const plait_status status = begin_clock(job, true);
    job->client.leaving = job->client.lossless = false;
    return status == PLAIT_OK ? pli_job_has_left(job, err) : status;
}

static plait_status leave(plait_job *job) {
    plait_error *err = pli_job_error(job);
    PLI_TRY(must_take_part(job, "plait_job_leave", err));
    if (job->layout.replicas > 1) return leave_with_clock(job, err);
    PLI_TRY(pli_job_must_have_ended(job, "plait_job_leave", err));
    PLI_TRY(pli_job_finish_clock(job, err));
    PLI_TRY(may_leave(job, err));
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(leave_own(job->part[i], err));
    return leave_own(job, err);
}

plait_status plait_job_leave(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_leave");
    return pli_comm_leave(job->comm, leave(job));
}
