/* Jobs: who serves what, the common clock, barrier and departure. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "comm/callback.h"
#include "table/client/aggregate.h"
#include "table/copies/copies.h"
#include "table/events.h"
#include "table/table.h"
#include "table/topology/buckets.h"

void plait_job_opts_init(plait_job_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_job_opts){ .size = sizeof *opts, .batch = 1 };
}

plait_status pli_job_usable(const plait_job *job, const char *call) {
    if (job == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    return pli_callback_refuses(call);
}

plait_comm *plait_job_comm(plait_job *job) { return job == NULL ? NULL : job->comm; }

int64_t plait_job_clock_now(const plait_job *job) {
    return job == NULL ? 0 : atomic_load_explicit(&job->clock, memory_order_relaxed);
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

/* Asks servers with an empty message and waits for all answers. */
static plait_status ask_servers(plait_job *job, pli_kind kind, const char *what, int64_t *sum_out,
                                plait_error *err) {
    pli_ticket   ticket;
    pli_exchange x;
    pli_exchange_begin(&x, job, &ticket);
    plait_status status = pli_client_send_all(&job->client, x.now_ns, kind, &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, what, err);
    if (status >= 0) *sum_out = sum_of(&ticket);
    pli_ticket_free(&ticket);
    return status;
}

/* --- collectives, which outlive a rank where servers have copies (comm/carried.h) ------------------------------- */

/* What each has brought to the first server; false: it makes no sense. */
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
    return came[job->client.rank].data != NULL; /* whom the others take for dead hears no more */
}

static plait_status gather(void *user, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                           plait_error *err) {
    plait_job   *job = user;
    pli_ticket   ticket;
    pli_exchange x;
    PLI_TRY(pli_job_must_have_ended(job, "a collective", err));
    pli_exchange_begin(&x, job, &ticket);
    plait_status status = pli_client_send_gather(&job->client, x.now_ns, mine, bytes, &ticket, &x.out, err);
    status = pli_exchange_wait(&x, status, "a collective of the workers that live", err);
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

static bool has_servers(const plait_job *job) { return job->client.n_used > 0; }

/* --- agreement ---------------------------------------------------------------------------------------------- */

plait_status pli_job_agree(plait_job *job, const char *what, uint64_t hash, plait_status status, plait_error *err) {
    typedef struct vote { uint64_t hash; int64_t status; } vote;
    vote  mine = { .hash = hash, .status = status };
    vote *all = pli_array((size_t)job->layout.workers, sizeof *all);
    if (all == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to agree on %s", what);
    plait_error  own = *err;
    plait_status sent = plait_comm_allgather(job->comm, &mine, sizeof mine, all);
    if (status < 0 || sent < 0) {
        if (status < 0) *err = own;
        pli_free(all);
        return status < 0 ? status : sent;
    }
    for (int32_t w = 0; status >= 0 && w < job->layout.workers; w++) {
        if (pli_comm_is_absent(job->comm, w)) continue;
        if (all[w].status < 0)
            status = pli_fail(err, PLAIT_EMISMATCH, "%s: rank %d failed: %s", what, w,
                              plait_status_text((plait_status)all[w].status));
        else if (all[w].hash != hash)
            status = pli_fail(err, PLAIT_EMISMATCH, "%s: the options of rank %d differ from those of rank %d", what, w,
                              plait_comm_rank(job->comm));
    }
    pli_free(all);
    return status;
}

static uint64_t hash_text(const char *text, uint64_t seed) { return pli_hash_bytes(text, strlen(text), seed); }

/* Of what servers must know too; the batch and the first clock follow from data and checkpoint, which only workers
 * read, and come with a table. */
static uint64_t job_hash(const plait_job *job) {
    uint64_t hash = 3 + (uint64_t)job->layout.replicas * 53 + (uint64_t)job->layout.backup * 31 +
                    (uint64_t)job->exact * 37 + (uint64_t)job->layout.aggregates * 41 +
                    (uint64_t)job->layout.spares * 131101;
    hash = hash_text(job->consistency, hash_text(job->topology, hash));
    for (int32_t i = 0; i < job->layout.n_functions; i++)
        hash = hash_text(job->functions[i].name, hash) + (uint64_t)(job->functions[i].updates != 0);
    for (int32_t i = 0; i < job->layout.n_policies; i++) hash = hash_text(job->policies[i].name, hash);
    for (int32_t i = 0; i < job->layout.n_filters; i++) hash = hash_text(job->filters[i].name, hash);
    for (int32_t i = 0; i < job->layout.n_rules; i++) hash = hash_text(job->rules[i].name, hash + 43);
    if (job->filter[0] != '\0')
        hash = hash_text(job->filter, pli_hash_bytes(&job->layout.seed, sizeof job->layout.seed, hash));
    return hash;
}

/* --- creation ------------------------------------------------------------------------------------------------- */

static plait_status copy_functions(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    if (opts->n_functions < 0 || (opts->n_functions > 0 && opts->functions == NULL))
        return pli_fail(err, PLAIT_EINVAL, "a job with %d server functions", opts->n_functions);
    job->functions = pli_calloc((size_t)opts->n_functions, sizeof *job->functions);
    if (job->functions == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    for (int32_t i = 0; i < opts->n_functions; i++) {
        if (opts->functions[i].name == NULL || opts->functions[i].run == NULL)
            return pli_fail(err, PLAIT_EINVAL, "server function %d has no name or nothing to run", i);
        job->functions[i] = opts->functions[i];
        job->functions[i].name = pli_strdup(opts->functions[i].name);
        job->layout.n_functions = i + 1;
        if (job->functions[i].name == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    }
    job->layout.functions = job->functions;
    return PLAIT_OK;
}

static plait_status copy_policies(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_consistencies_check(opts->policies, opts->n_policies, err));
    job->policies = pli_calloc((size_t)opts->n_policies, sizeof *job->policies);
    if (job->policies == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_policies > 0) memcpy(job->policies, opts->policies, (size_t)opts->n_policies * sizeof *job->policies);
    job->layout.policies = job->policies;
    job->layout.n_policies = opts->n_policies;
    return PLAIT_OK;
}

static plait_status copy_rules(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_rules_check_own(opts->rules, opts->n_rules, err));
    job->rules = pli_calloc((size_t)opts->n_rules, sizeof *job->rules);
    if (job->rules == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_rules > 0) memcpy(job->rules, opts->rules, (size_t)opts->n_rules * sizeof *job->rules);
    job->layout.rules = job->rules;
    job->layout.n_rules = opts->n_rules;
    return PLAIT_OK;
}

static plait_status copy_filters(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    PLI_TRY(pli_filters_check_own(opts->filters, opts->n_filters, err));
    job->filters = pli_calloc((size_t)opts->n_filters, sizeof *job->filters);
    if (job->filters == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    if (opts->n_filters > 0) memcpy(job->filters, opts->filters, (size_t)opts->n_filters * sizeof *job->filters);
    job->layout.filters = job->filters;
    job->layout.n_filters = opts->n_filters;
    job->layout.seed = opts->seed;
    const char *names = opts->filter == NULL ? "" : opts->filter;
    if (strlen(names) >= sizeof job->filter)
        return pli_fail(err, PLAIT_EINVAL, "filters '%.40s...' are too long a list; at most %zu bytes are possible",
                        names, sizeof job->filter - 1);
    strcpy(job->filter, names);
    pli_filters_list       list;
    const pli_filter_scope scope = pli_layout_filters(&job->layout);
    return pli_filters_read(names, &scope, &list, err);
}

static plait_status take_options(plait_job *job, const plait_job_opts *opts, plait_error *err) {
    bool        one_process = plait_comm_one_process(job->comm);
    const char *topology = opts->topology != NULL ? opts->topology : pli_topology_default(one_process)->name;
    const char *consistency = opts->consistency != NULL ? opts->consistency : PLI_CONSISTENCY_DEFAULT;
    int32_t     workers = plait_comm_workers(job->comm), servers = plait_comm_servers(job->comm);
    if (opts->size != sizeof *opts) return pli_fail(err, PLAIT_EINVAL, "job options not filled by plait_job_opts_init");
    job->batch = opts->batch;
    if (opts->batch <= 0)
        return pli_fail(err, PLAIT_EINVAL, "a batch of %lld rows; expected 1 or more", (long long)opts->batch);
    job->layout = (pli_layout){ .workers = workers, .servers = servers > 0 ? servers : workers,
                                .first_server = servers > 0 ? workers : 0,
                                .resend_after_ns = pli_comm_resend_after_ns(job->comm) };
    if (opts->backup < 0 || (opts->backup > 0 && opts->backup >= workers))
        return pli_fail(err, PLAIT_EINVAL, "%d backup workers of %d: at least one worker must be waited for",
                        opts->backup, workers);
    job->layout.backup = opts->backup;
    if (opts->first_clock < 0)
        return pli_fail(err, PLAIT_EINVAL, "a job that begins at clock %lld; expected 0 or more",
                        (long long)opts->first_clock);
    job->layout.first_clock = opts->first_clock;
    atomic_store_explicit(&job->clock, opts->first_clock, memory_order_relaxed);
    if (opts->aggregate != NULL && strcmp(opts->aggregate, "host") != 0)
        return pli_fail_unknown(err, "aggregation", opts->aggregate, &(const char *){ "host" }, 1);
    job->layout.aggregates = opts->aggregate != NULL;
    if (opts->replicas < 0) return pli_fail(err, PLAIT_EINVAL, "%d replicas; expected 1 or 2", opts->replicas);
    job->layout.replicas = opts->replicas;
    PLI_TRY(pli_spares_check(opts->spares, workers, err));
    job->layout.spares = opts->spares;
    if (servers == 0) job->layout.servers -= opts->spares;
    job->exact = opts->exact != 0;
    PLI_TRY(copy_policies(job, opts, err));
    PLI_TRY(copy_filters(job, opts, err));
    PLI_TRY(copy_rules(job, opts, err));
    pli_scope scope = pli_layout_scope(&job->layout);
    scope.setting.backup = 0; /* each table is asked, which may have its own consistency */
    PLI_TRY(pli_pair_check(
        &(pli_pair){ .topology = topology, .consistency = consistency, .scope = &scope, .one_process = one_process,
                     .replicas = opts->replicas, .spares = opts->spares, .servers = job->layout.servers,
                     .aggregates = opts->replicas > 1 && job->layout.aggregates,
                     .filter = opts->replicas > 1 ? job->filter : NULL },
        err));
    snprintf(job->topology, sizeof job->topology, "%s", topology);
    snprintf(job->consistency, sizeof job->consistency, "%s", consistency);
    PLI_TRY(copy_functions(job, opts, err));
    job->layout.job_hash = job_hash(job);
    return PLAIT_OK;
}

static plait_status open_machines(plait_job *job, plait_error *err) {
    plait_comm *comm = job->comm;
    int32_t     rank = plait_comm_rank(comm);
    uint32_t    epoch = pli_comm_epoch(comm), incarnation = pli_comm_incarnation(comm);
    job->worker = pli_comm_is_worker(comm);
    if (rank >= job->layout.first_server && rank < job->layout.first_server + job->layout.servers) {
        PLI_TRY(pli_server_open(&job->server, &job->layout, rank, epoch, incarnation, err));
        job->serves = true;
        job->server.sink = pli_comm_events(comm);
        pli_raise_server_job(&job->server);
        PLI_TRY(pli_port_open(comm, PLI_PORT_SERVER, &pli_server_ops, &job->server, &job->server_port, err));
    }
    if (job->layout.replicas > 1 && (job->serves || rank >= job->layout.workers - job->layout.spares)) {
        const pli_event_sink *sink = pli_comm_events(comm);
        PLI_TRY(pli_backups_open(&job->backups, &job->layout, rank, epoch, incarnation, sink, err));
        PLI_TRY(pli_port_open(comm, PLI_PORT_BACKUP, &pli_backups_ops, &job->backups, &job->backup_port, err));
    }
    if (!job->worker) return PLAIT_OK;
    PLI_TRY(pli_client_open(&job->client, &job->layout, rank, epoch, incarnation, err));
    pli_client_listen(&job->client, pli_comm_events(comm));
    pli_raise_job(job->client.sink, rank, &job->layout);
    return pli_port_open(comm, PLI_PORT_CLIENT, &pli_client_ops, &job->client, &job->client_port, err);
}

/* The ports serve one job after the other, so no message of this one may come while a server still has them open for
 * the last, or has closed them. Workers meet when they agree on the job; a server that is apart tells one of them
 * before. */
static plait_status meet_servers(plait_job *job) {
    enum { TAG_READY = -1 };
    int32_t workers = job->layout.workers, rank = plait_comm_rank(job->comm);
    if (!job->worker) return pli_comm_send(job->comm, (rank - workers) % workers, TAG_READY, NULL, 0);
    for (int32_t s = rank; s < plait_comm_servers(job->comm); s += workers)
        PLI_TRY(pli_comm_recv(job->comm, workers + s, TAG_READY, NULL, 0, NULL, NULL));
    return PLAIT_OK;
}

static void free_job(void *state) {
    plait_job *job = state;
    if (job->layout.replicas > 1 && job->worker) pli_comm_carry_no_more(job->comm);
    pli_port_close(&job->client_port);
    pli_port_close(&job->gossip_port);
    for (int64_t i = 0; i < job->tables; i++) {
        job->table[i]->ops->close(job->table[i]);
        pli_free(job->table[i]);
    }
    pli_client_close(&job->client);
    pli_gossip_destroy(&job->gossip);
    pli_port_close(&job->server_port);
    pli_port_close(&job->backup_port);
    if (job->serves) pli_server_close(&job->server);
    pli_backups_close(&job->backups);
    for (int32_t i = 0; i < job->layout.n_functions; i++) pli_free((void *)job->functions[i].name);
    pli_free(job->functions);
    pli_free(job->policies);
    pli_free(job->filters);
    pli_free(job->rules);
    pli_free(job->table);
    pli_free(job);
}

/* Have all workers agreed on the job? A death in the midst of the agreement lets some of them through and ends the
 * others. So the servers decide once who has come, and all that live hear the same (comm/carried.h). */
static plait_status check_all_agreed(plait_job *job, plait_error *err) {
    int32_t     heard = 0, gone = 0;
    plait_error why = { 0 };
    PLI_TRY(plait_comm_barrier(job->comm));
    while (gone < job->layout.workers && !pli_comm_is_absent(job->comm, gone)) gone++;
    if (gone == job->layout.workers) return PLAIT_OK;
    if (pli_comm_next_death(job->comm, &heard, &why))
        pli_fail(err, PLAIT_EPEER, "before all had the job %s", why.text);
    else
        pli_fail(err, PLAIT_EPEER, "rank %d was lost before all had the job", gone);
    err->rank = why.code < 0 ? why.rank : gone;
    return PLAIT_EPEER;
}

/* From now on the job outlives any one of its ranks, or ends on all that live. */
static plait_status outlive(plait_job *job, plait_error *err) {
    pli_comm_survive(job->comm);
    if (!job->worker) return PLAIT_OK;
    PLI_TRY(pli_comm_carry(job->comm, &(pli_carrier){ .gather = gather, .user = job }, err));
    return check_all_agreed(job, err);
}

static plait_status create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out) {
    plait_error   *err = pli_comm_error(comm);
    plait_job_opts defaults;
    plait_job_opts_init(&defaults);
    if (opts == NULL) opts = &defaults;
    PLI_TRY(pli_comm_next_job(comm));
    plait_job *job = pli_calloc(1, sizeof *job);
    if (job == NULL) {
        pli_comm_end_job(comm);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a job");
    }
    job->comm = comm;
    plait_status status = take_options(job, opts, err);
    if (status >= 0) status = open_machines(job, err);
    if (status >= 0) status = meet_servers(job);
    if (pli_comm_is_worker(comm)) {
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

/* Of the rank's own shards all workers are gone, and of those of which it has copies. */
static bool all_gone(void *arg) {
    plait_job *job = arg;
    return atomic_load_explicit(&job->server.all_gone, memory_order_acquire) &&
           (job->layout.replicas <= 1 || atomic_load_explicit(&job->backups.all_gone, memory_order_acquire));
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

/* Of sums under way all have a part; so all settle, table by table. */
static plait_status settle(plait_job *job, plait_error *err) {
    PLI_TRY(pli_job_finish_clock(job, err));
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->settle != NULL) PLI_TRY(job->table[i]->ops->settle(job->table[i], err));
    return PLAIT_OK;
}

plait_status pli_job_must_have_ended(const plait_job *job, const char *call, plait_error *err) {
    if (job->client.ending)
        return pli_fail(err, PLAIT_EINVAL, "%s in clock %lld, in which a worker has died; end it by plait_job_clock",
                        call, (long long)plait_job_clock_now(job));
    if (job->flushed == 0) return PLAIT_OK;
    return pli_fail(err, PLAIT_EINVAL,
                    "%s in clock %lld, of which plait_table_flush has sent a part; end it by plait_job_clock", call,
                    (long long)plait_job_clock_now(job));
}

static plait_status say_bye(plait_job *job, plait_error *err) {
    if (!job->worker)
        return pli_comm_wait(job->comm, all_gone, job,
                             &(pli_reason){ .tell = tell_end, .show = show_end }, err);
    pli_served_finish_gets(job);
    PLI_TRY(pli_job_must_have_ended(job, "plait_job_destroy", err));
    PLI_TRY(settle(job, err));
    PLI_TRY(pli_served_send_kept(job, err));
    int64_t none;
    /* None may close its machines before all are here, whom it may have something for. */
    return pli_client_says_bye(&job->client) ? ask_servers(job, PLI_BYE, "the end of the job", &none, err)
                                             : plait_comm_barrier(job->comm);
}

plait_status plait_job_destroy(plait_job **job_ptr) {
    plait_job *job = job_ptr == NULL ? NULL : *job_ptr;
    if (job == NULL) return PLAIT_OK;
    PLI_TRY(pli_callback_refuses(__func__));
    if (job->lent)
        return pli_fail(pli_job_error(job), PLAIT_EINVAL,
                        "plait_job_destroy: the job is plait_run's, which ends it when the work has returned");
    *job_ptr = NULL;
    plait_comm *comm = job->comm;
    pli_comm_enter(comm, "plait_job_destroy");
    plait_status status = say_bye(job, pli_job_error(job));
    if (job->layout.replicas > 1 && job->worker) pli_comm_carry_no_more(comm);
    int32_t      rank = plait_comm_rank(job->comm);
    bool well = status >= 0 && !pli_comm_has_failed(comm); /* who is killed may still hear its own server's good-bye */
    if (well && job->worker) pli_raise(job->client.sink, rank, false, PLI_EVENT_DONE);
    if (well && job->serves) pli_raise(job->server.sink, rank, true, PLI_EVENT_DONE);
    pli_comm_end_job(comm);
    if (status < 0 || !pli_comm_retire(comm, job, free_job)) free_job(job);
    return pli_comm_leave(comm, status);
}

void pli_job_abandon(plait_job **job_ptr) {
    plait_job *job = *job_ptr;
    *job_ptr = NULL;
    if (job == NULL) return;
    pli_comm_end_job(job->comm);
    free_job(job);
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

/* --- clocks ------------------------------------------------------------------------------------------------------ */

int plait_job_is_late(const plait_job *job) {
    return job != NULL && job->layout.backup > 0 && !job->left && job->client.complete > job->client.clock;
}

int64_t plait_job_dropped(const plait_job *job) { return job == NULL ? 0 : job->dropped; }

/* What this host's workers have pending becomes the lead's. */
static plait_status aggregate(plait_job *job, plait_error *err) {
    enum {
        TAG_HANDED = -3
    }; /* of job 0, below it those of later ones: who ends a job a clock ahead of its lead leaves a message there */
    const int32_t    tag = TAG_HANDED - pli_comm_job(job->comm);
    const pli_hosts *hosts = pli_comm_hosts(job->comm);
    int32_t          me = plait_comm_rank(job->comm), host = hosts->host[me];
    const int32_t   *member = hosts->member + hosts->first[host];
    int32_t          members = hosts->first[host + 1] - hosts->first[host];
    if (hosts->place[me] > 0) {
        pli_msg *msg = pli_aggregate_hand(&job->client);
        return msg == NULL ? pli_fail(err, PLAIT_ENOMEM, "no memory for a clock's updates")
                           : pli_comm_send_msg(job->comm, member[0], tag, msg);
    }
    for (int32_t i = 1; i < members; i++) {
        pli_msg *msg = NULL;
        PLI_TRY(pli_comm_take(job->comm, member[i], tag, &msg));
        plait_status status = pli_aggregate_add(&job->client, msg, err);
        pli_comm_work(job->comm, PLI_WORK_SUMS, msg->head.body_bytes / 4);
        pli_msg_free(&msg);
        if (status < 0) return status;
    }
    return PLAIT_OK;
}

/* --- with copies: the end of a clock is safe (copies.h) --- */

static bool is_safe(void *arg) {
    const plait_job *job = arg;
    return pli_client_is_safe(&job->client) || pli_client_must_stand_in(&job->client);
}

static void tell_safe(const void *arg, char *text, size_t bytes) {
    const plait_job *job = arg;
    snprintf(text, bytes, "clock %lld to be safe in both copies", (long long)plait_job_clock_now(job));
}

static plait_status wait_until_safe(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    PLI_TRY(pli_comm_wait(job->comm, is_safe, job, &(pli_reason){ .tell = tell_safe, .arg = job }, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    bool safe = pli_client_is_safe(&job->client);
    if (safe) pli_client_end_clock(&job->client);
    else pli_client_begin_standing_in(&job->client);
    pli_port_leave(job->client_port, &out);
    return safe ? PLAIT_OK : PLAIT_STAND_IN;
}

/* What was added since goes out in the dead one's stead. */
static plait_status stand_in(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    PLI_TRY(pli_client_build_push(&job->client, NULL, PLI_PUSH, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_view(&job->client, now_ns, &out, err);
    pli_port_leave(job->client_port, &out);
    return status < 0 ? status : wait_until_safe(job, err);
}

int32_t plait_job_holder(const plait_job *job, int32_t home, uint64_t item) {
    return job == NULL ? -1 : pli_client_holder(&job->client, home, item, false);
}

int plait_job_inherits(const plait_job *job, int32_t home, uint64_t item) {
    if (job == NULL) return 0;
    const pli_client *c = &job->client;
    return pli_client_holder(c, home, item, true) == c->rank && pli_client_holder(c, home, item, false) != c->rank;
}

static plait_status clock_servers(plait_job *job, plait_error *err) {
    uint64_t now_ns;
    pli_out  out;
    if (!has_servers(job)) {
        pli_raise_clock(job->client.sink, plait_comm_rank(job->comm), job->client.clock);
        job->client.clock++;
        return PLAIT_OK;
    }
    if (job->layout.aggregates) PLI_TRY(aggregate(job, err));
    if (job->client.ending) return stand_in(job, err);
    PLI_TRY(pli_client_build_push(&job->client, NULL, PLI_CLOCK, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_push(&job->client, now_ns, PLI_CLOCK, &out, err);
    pli_port_leave(job->client_port, &out);
    return status < 0 || !job->client.ending ? status : wait_until_safe(job, err);
}

static plait_status must_take_part(const plait_job *job, const char *call, plait_error *err) {
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "%s is for workers; this rank only serves", call);
    if (job->left) return pli_fail(err, PLAIT_EINVAL, "%s after plait_job_leave", call);
    return PLAIT_OK;
}

/* Of a table that has collectives of its own, which follow when all buckets are begun, on every worker. */
static plait_status clock_alone(plait_table *table, plait_error *err) {
    PLI_TRY(pli_buckets_begin_all(table->job, err));
    return table->ops->clock(table, err);
}

/* The clock has begun to end: what was flushed is on its way with the rest. */
static void forget_flushes(plait_job *job) {
    job->flushed = 0;
    for (int64_t i = 0; i < job->tables; i++) job->table[i]->flushed = false;
}

/* at_once: the caller waits until it has ended. */
static plait_status begin_clock(plait_job *job, bool at_once) {
    plait_error *err = pli_job_error(job);
    PLI_TRY(must_take_part(job, "plait_job_clock", err));
    PLI_TRY(pli_job_finish_clock(job, err));
    pli_comm_work(job->comm, PLI_WORK_CLOCKS, 1);
    pli_comm_computed(job->comm);
    job->client.met = false;
    pli_served_finish_gets(job);
    for (int64_t i = 0; i < job->tables; i++) pli_table_unpin(job->table[i]);
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->ends != NULL) PLI_TRY(job->table[i]->ops->ends(job->table[i], err));
    plait_status status = clock_servers(job, err);
    if (status == PLAIT_STAND_IN) forget_flushes(job); /* what is added now is another part */
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
    atomic_fetch_add_explicit(&job->clock, 1, memory_order_relaxed);
    return status;
}

bool pli_job_overlaps(const plait_job *job) {
    int64_t summed = 0;
    for (int64_t i = 0; i < job->tables; i++) {
        if (job->table[i]->ops->overlaps == NULL) continue;
        if (!job->table[i]->ops->overlaps(job->table[i])) return false;
        summed++;
    }
    return summed > 0;
}

plait_status pli_job_finish_clock(plait_job *job, plait_error *err) {
    plait_status status = PLAIT_OK;
    if (!job->ticking) return PLAIT_OK;
    job->ticking = false;
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->clock_end != NULL) status = job->table[i]->ops->clock_end(job->table[i], err);
    atomic_fetch_add_explicit(&job->clock, 1, memory_order_relaxed);
    return status;
}

plait_status plait_job_clock(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_clock");
    return pli_comm_leave(job->comm, begin_clock(job, true));
}

typedef struct clock_request {
    plait_request base; /* first: a plait_request is this */
    plait_job    *job;
    int64_t       clock; /* the one that it ends */
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
                        "plait_job_clock_begin with %d replicas: a clock's end may have to be said again when a worker "
                        "has died; nearest is plait_job_clock", job->layout.replicas);
    clock_request *request = pli_calloc(1, sizeof *request);
    if (request == NULL) return pli_fail(pli_job_error(job), PLAIT_ENOMEM, "no memory for a request");
    pli_comm_enter(job->comm, "plait_job_clock_begin");
    plait_status status = pli_comm_leave(job->comm, begin_clock(job, false));
    *request = (clock_request){ .base.wait = wait_for_clock, .job = job, .clock = plait_job_clock_now(job) };
    if (status < 0) pli_free(request);
    *request_out = status < 0 ? NULL : &request->base;
    return status;
}

static plait_status meet_at_barrier(plait_job *job) {
    plait_error *err = pli_job_error(job);
    if (!job->worker) return pli_fail(err, PLAIT_EINVAL, "plait_job_barrier is for workers; this rank only serves");
    pli_served_finish_gets(job);
    for (int64_t i = 0; i < job->tables; i++) pli_table_unpin(job->table[i]);
    PLI_TRY(pli_job_must_have_ended(job, "plait_job_barrier", err));
    PLI_TRY(settle(job, err));
    PLI_TRY(pli_served_send_kept(job, err));
    plait_status status = has_servers(job) ? ask_servers(job, PLI_BARRIER, "barrier", &job->dropped, err)
                                           : plait_comm_barrier(job->comm);
    for (int64_t i = 0; status >= 0 && i < job->tables; i++)
        if (job->table[i]->ops->refresh != NULL) job->table[i]->ops->refresh(job->table[i]);
    job->client.met = status >= 0;
    if (status >= 0) pli_raise(job->client.sink, plait_comm_rank(job->comm), false, PLI_EVENT_BARRIER);
    return status;
}

plait_status plait_job_barrier(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_barrier");
    return pli_comm_leave(job->comm, meet_at_barrier(job));
}

void pli_job_resume(plait_job *job) { pli_client_resume(&job->client); }

static plait_status leave(plait_job *job) {
    plait_error *err = pli_job_error(job);
    uint64_t     now_ns;
    pli_out      out;
    PLI_TRY(must_take_part(job, "plait_job_leave", err));
    if (job->layout.replicas > 1)
        return pli_fail(err, PLAIT_EREFUSED,
                        "plait_job_leave with %d replicas: a dead worker's items may fall to one that has left; "
                        "nearest is to go on with empty clocks", job->layout.replicas);
    PLI_TRY(pli_job_must_have_ended(job, "plait_job_leave", err));
    PLI_TRY(pli_job_finish_clock(job, err));
    for (int64_t i = 0; i < job->tables; i++)
        if (pli_table_needs_all(job->table[i]) && job->layout.workers > 1)
            return pli_fail(
                err, PLAIT_EREFUSED, "table %s: a worker cannot leave under %s x %s, which needs a part of each",
                job->table[i]->spec.name, job->table[i]->spec.topology.text, job->table[i]->spec.consistency);
    pli_served_finish_gets(job);
    PLI_TRY(pli_served_send_kept(job, err));
    pli_port_enter(job->client_port, &now_ns, &out);
    plait_status status = pli_client_send_all(&job->client, now_ns, PLI_LEAVE, NULL, &out, err);
    job->client.left = true;
    pli_port_leave(job->client_port, &out);
    for (int64_t i = 0; i < job->tables; i++)
        if (job->table[i]->ops->leave != NULL) job->table[i]->ops->leave(job->table[i]);
    job->left = true;
    pli_raise(job->client.sink, plait_comm_rank(job->comm), false, PLI_EVENT_LEAVE);
    return status;
}

plait_status plait_job_leave(plait_job *job) {
    PLI_TRY(pli_job_usable(job, __func__));
    pli_comm_enter(job->comm, "plait_job_leave");
    return pli_comm_leave(job->comm, leave(job));
}
