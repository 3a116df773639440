/* Jobs: creation, which opens this rank's machines; the agreement of all workers on the job; and its end. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "comm/callback.h"
#include "table/copies/replicas.h"
#include "table/events.h"
#include "table/pairs/pairs.h"
#include "table/shown.h"
#include "table/table.h"
#include "table/topology/agreed_clock.h"

void (plait_job_opts_init)(plait_job_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_job_opts){ .size = sizeof *opts, .batch = 1 };
}

void plait_job_opts_init_sized(plait_job_opts *opts, size_t size) {
    plait_job_opts all;
    (plait_job_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

plait_status pli_job_usable(const plait_job *job, const char *call) {
    if (job == NULL) return PLAIT_EINVAL; /* no job, so no place for the text */
    return pli_callback_refuses(call);
}

plait_comm *plait_job_comm(plait_job *job) { return job == NULL ? NULL : job->comm; }

int64_t plait_job_clock_now(const plait_job *job) {
    return job == NULL ? 0 : atomic_load_explicit(&job->clock, memory_order_relaxed);
}

/* --- agreement ---------------------------------------------------------------------------------------------- */

/* A worker that was started anew agrees with nobody: servers compare its options with theirs. */
plait_status pli_job_agree(plait_job *job, const char *what, uint64_t hash, plait_status status, plait_error *err) {
    if (pli_job_lives_anew(job)) return status;
    typedef struct vote { uint64_t hash; int64_t status; } vote;
    vote  mine = { .hash = hash, .status = status };
    vote *all = pli_array((size_t)job->layout.workers, sizeof *all);
    if (all == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to agree on %s", what);
    plait_error  own = *err;
    plait_status sent = pli_job_allgather(job, &mine, sizeof mine, all);
    if (status < 0 || sent < 0) {
        if (status < 0) *err = own;
        pli_free(all);
        return status < 0 ? status : sent;
    }
    for (int32_t w = 0; status >= 0 && w < job->layout.workers; w++) {
        if (pli_job_is_absent(job, w)) continue;
        if (all[w].status < 0)
            status = pli_fail(err, PLAIT_EMISMATCH, "%s: rank %d failed: %s", what, pli_job_rank_of(job, w),
                              plait_status_text((plait_status)all[w].status));
        else if (all[w].hash != hash)
            status = pli_fail(err, PLAIT_EMISMATCH, "%s: the options of rank %d differ from those of rank %d", what,
                              pli_job_rank_of(job, w), plait_comm_rank(job->comm));
    }
    pli_free(all);
    return status;
}

/* --- creation ------------------------------------------------------------------------------------------------- */

plait_status pli_job_open_machines(plait_job *job, plait_error *err) {
    plait_comm *comm = job->comm;
    int32_t     rank = pli_job_me(job);
    const pli_event_sink *events = pli_job_events(job);
    uint32_t    epoch = pli_comm_epoch(comm), incarnation = pli_comm_incarnation(comm);
    job->worker = pli_comm_is_worker(comm);
    const bool moves = pli_moves_are_on(&job->layout); /* then all replicas are behind hosted.h, on any rank */
    const bool holds = !pli_job_lives_anew(job);       /* the shards of a dead rank are others' for good */
    if (holds && !moves && rank >= job->layout.first_server &&
        rank < job->layout.first_server + job->layout.servers) {
        PLI_TRY(pli_server_open(&job->server, &job->layout, rank, epoch, incarnation, err));
        job->serves = true;
        job->server.sink = events;
        job->server.sheet = pli_comm_sheet(comm);
        job->server.group = job->group != NULL ? plait_group_name(job->group) : "";
        pli_raise_server_job(&job->server);
        PLI_TRY(pli_port_open_in(comm, job->group, PLI_PORT_SERVER, &pli_server_ops, &job->server, &job->server_port,
                                 err));
    }
    if (holds && job->layout.replicas > 1 &&
        (moves || job->serves || rank >= job->layout.workers - job->layout.spares)) {
        PLI_TRY(pli_hosted_open(&job->hosted, &job->layout, rank, epoch, incarnation, events, err));
        pli_hosted_show(&job->hosted, pli_comm_sheet(comm), job->group != NULL ? plait_group_name(job->group) : "",
                        job->group != NULL ? job->group->numbers.rank : NULL);
        PLI_TRY(pli_port_open_in(comm, job->group, PLI_PORT_REPLICA, &pli_hosted_ops, &job->hosted, &job->replica_port,
                                 err));
    }
    if (!job->worker) return PLAIT_OK;
    PLI_TRY(pli_client_open(&job->client, &job->layout, rank, epoch, incarnation, err));
    pli_client_listen(&job->client, events);
    pli_raise_job(job->client.sink, rank, incarnation, &job->layout);
    if (job->group == NULL && job->layout.first_clock > 0)
        pli_raise_begin(job->client.sink, rank, job->layout.first_clock, "");
    return pli_port_open_in(comm, job->group, PLI_PORT_CLIENT, &pli_client_ops, &job->client, &job->client_port, err);
}

/* The ports serve one job after the other. So no message of this job may come while a server still has them open for
 * the last one, or has closed them. Workers meet when they agree on the job; a server that is no worker tells one of
 * them before that it is ready. */
static plait_status meet_servers(plait_job *job) {
    enum { TAG_READY = -1 };
    int32_t workers = job->layout.workers, rank = plait_comm_rank(job->comm);
    if (!job->worker) return pli_comm_send(job->comm, (rank - workers) % workers, TAG_READY, NULL, 0);
    for (int32_t s = rank; s < plait_comm_servers(job->comm); s += workers)
        PLI_TRY(pli_comm_recv(job->comm, workers + s, TAG_READY, NULL, 0, NULL, NULL));
    return PLAIT_OK;
}

/* The job has ended, so its groups may be destroyed. Its machines may live on, for messages that come late: where that
 * is so, a destroyed group lives as long. */
static void let_groups_go(plait_job *job) {
    for (int64_t i = 0; i < job->parts; i++) {
        pli_group_carry_no_more(job->part[i]->group);
        job->part[i]->group->uses--;
    }
}

void pli_job_free(void *state) {
    plait_job *job = state;
    for (int64_t i = 0; i < job->parts; i++) pli_job_free(job->part[i]);
    pli_free(job->part);
    if (job->layout.replicas > 1 && job->worker && job->group == NULL) pli_comm_carry_no_more(job->comm);
    pli_port_close(&job->client_port);
    pli_port_close(&job->gossip_port);
    pli_agreed_clock_close(job);
    for (int64_t i = 0; i < job->tables; i++) {
        job->table[i]->ops->close(job->table[i]);
        pli_sheet_free(job->table[i]->shown);
        pli_free(job->table[i]->zeroed);
        pli_free(job->table[i]);
    }
    pli_client_close(&job->client);
    pli_gossip_destroy(&job->gossip);
    pli_port_close(&job->server_port);
    pli_port_close(&job->replica_port);
    if (job->serves) pli_server_close(&job->server);
    pli_hosted_close(&job->hosted);
    for (int32_t i = 0; job->functions != NULL && i < job->layout.n_functions; i++)
        pli_free((void *)job->functions[i].name); /* a part uses those of the whole job */
    pli_free(job->missing);
    pli_free(job->functions);
    pli_free(job->policies);
    pli_free(job->filters);
    pli_free(job->rules);
    pli_free(job->table);
    pli_free(job);
}

/* Have all workers agreed on the job? If a worker dies during the agreement, some workers pass it and others fail. So
 * the servers decide once who has come, and all living workers hear the same (comm/carried.h). */
static plait_status check_all_agreed(plait_job *job, plait_error *err) {
    int32_t     heard = 0, gone = 0;
    plait_error why = { 0 };
    PLI_TRY(plait_comm_barrier(job->comm));
    while (gone < job->layout.workers && !pli_comm_is_absent(job->comm, gone)) gone++;
    if (gone == job->layout.workers) return PLAIT_OK;
    if (pli_comm_next_death(job->comm, &heard, &why))
        pli_fail(err, PLAIT_EPEER, "before all had the job %s", why.text);
    else
        pli_fail(err, PLAIT_EPEER, "rank %d was lost before all ranks had joined the job", gone);
    err->rank = why.code < 0 ? why.rank : gone;
    return PLAIT_EPEER;
}

/* From now on the job survives the death of any one rank, or ends on all living ranks. */
static plait_status outlive(plait_job *job, plait_error *err) {
    pli_comm_survive(job->comm);
    if (job->revives) pli_comm_renews(job->comm);
    if (!job->worker) return PLAIT_OK;
    PLI_TRY(pli_comm_carry(job->comm, &(pli_carrier){ .gather = pli_job_gather, .user = job }, err));
    return pli_job_lives_anew(job) ? PLAIT_OK : check_all_agreed(job, err);
}

static plait_status create(plait_comm *comm, const plait_job_opts *given, plait_job **job_out) {
    plait_error   *err = pli_comm_error(comm);
    plait_job_opts own, *opts = &own;
    plait_job_opts_init(&own);
    PLI_TRY(pli_sized_take(&own, sizeof own, PLI_SIZED_END(plait_job_opts, spares), given, "plait_job_opts", err));
    if (opts->events != NULL) PLI_TRY(opts->events->record(opts->events, comm));
    PLI_TRY(pli_comm_next_job(comm));
    plait_job *job = pli_calloc(1, sizeof *job);
    if (job == NULL) {
        pli_comm_end_job(comm);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    }
    job->comm = comm;
    plait_status status = pli_job_take_options(job, opts, err);
    if (status >= 0) status = pli_job_open_machines(job, err);
    const bool anew = status >= 0 && pli_job_lives_anew(job);
    if (status >= 0 && !anew) status = meet_servers(job);
    if (pli_comm_is_worker(comm) && !anew) {
        if (job->layout.workers == 0) job->layout.workers = plait_comm_workers(comm);
        const int64_t of_workers[] = { job->batch, job->layout.first_clock };
        status = pli_job_agree(job, "job", pli_hash_bytes(of_workers, sizeof of_workers, job->layout.job_hash), status,
                               err);
    }
    if (status >= 0 && job->layout.replicas > 1) status = outlive(job, err);
    if (status < 0) pli_job_abandon(&job);
    else *job_out = job;
    return status;
}

plait_status plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out) {
    if (comm == NULL) return PLAIT_EINVAL;
    PLI_TRY(pli_callback_refuses(__func__));
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), job_out));
    pli_comm_enter(comm, "plait_job_create");
    return pli_comm_leave(comm, create(comm, opts, job_out));
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

/* Are all workers gone from the rank's own shards, and from those of which it has replicas? */
static bool all_gone(void *arg) {
    plait_job *job = arg;
    return atomic_load_explicit(&job->server.all_gone, memory_order_acquire) &&
           (job->layout.replicas <= 1 || atomic_load_explicit(&job->hosted.all_gone, memory_order_acquire));
}

static void tell_end(const void *arg, char *text, size_t bytes) {
    (void)arg;
    snprintf(text, bytes, "the workers to leave the job");
}

static void show_end(const void *arg, pli_wait *wait) {
    (void)arg;
    wait->kind = PLI_WAIT_WORKERS;
    wait->peer = -1;
}

static plait_status say_bye(plait_job *job, plait_error *err) {
    if (!job->worker)
        return pli_comm_wait(job->comm, all_gone, job,
                             &(pli_reason){ .tell = tell_end, .show = show_end }, err);
    PLI_TRY(pli_job_settle(job, "plait_job_destroy", err));
    if (job->left && job->layout.replicas > 1 && job->client.n_used > 0) /* the others end first */
        PLI_TRY(pli_job_join(job, INT64_MAX, err));
    for (int64_t i = 0; i < job->parts; i++) PLI_TRY(say_bye(job->part[i], err));
    int64_t none;
    /* No worker may close its machines before all are here: one of them may still have something for it. */
    return pli_client_says_bye(&job->client) ? pli_job_ask_all(job, PLI_BYE, "the end of the job", &none, err)
                                             : pli_job_meet(job);
}

plait_status plait_job_destroy(plait_job **job_ptr) {
    plait_job *job = job_ptr == NULL ? NULL : *job_ptr;
    if (job == NULL) return PLAIT_OK;
    PLI_TRY(pli_callback_refuses(__func__));
    if (job->lent)
        return pli_fail(pli_job_error(job), PLAIT_EINVAL,
                        "plait_job_destroy: plait_run made the job, and ends it when the work has returned");
    *job_ptr = NULL;
    plait_comm *comm = job->comm;
    pli_comm_enter(comm, "plait_job_destroy");
    plait_status status = say_bye(job, pli_job_error(job));
    if (job->layout.replicas > 1 && job->worker) pli_comm_carry_no_more(comm);
    bool well = status >= 0 && !pli_comm_has_failed(comm); /* a killed rank may still hear its own server's good-bye */
    if (well) pli_job_raise_done(job);
    pli_comm_end_job(comm);
    pli_shown_hide(job);
    let_groups_go(job);
    if (status < 0 || !pli_comm_retire(comm, job, pli_job_free)) pli_job_free(job);
    return pli_comm_leave(comm, status);
}

void pli_job_abandon(plait_job **job_ptr) {
    plait_job *job = *job_ptr;
    *job_ptr = NULL;
    if (job == NULL) return;
    pli_comm_end_job(job->comm);
    let_groups_go(job);
    pli_job_free(job);
}

typedef struct run_arg {
    const plait_job_opts *opts;
    plait_work_fn        *work;
    void                 *user;
} run_arg;

static plait_status run_body(plait_comm *comm, void *user) {
    const run_arg *arg = user;
    plait_job     *job = NULL;
    PLI_TRY(plait_job_create(comm, arg->opts, &job));
    job->lent = true;
    plait_status status = job->worker ? arg->work(job, arg->user) : PLAIT_OK;
    job->lent = false;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

plait_status plait_run(const plait_comm_opts *comm_opts, const plait_job_opts *job_opts, plait_work_fn *work,
                       void *user, plait_error *error_out) {
    run_arg         arg = { .opts = job_opts, .work = work, .user = user };
    plait_comm_opts defaults;
    plait_comm_opts_init(&defaults);
    PLI_TRY(PLI_GIVEN(error_out, work));
    return plait_comm_run(comm_opts == NULL ? &defaults : comm_opts, run_body, &arg, error_out);
}
