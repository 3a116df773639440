/* First pass: who took part, which tables there were, what each worker has pushed and which messages carried it. */
#include <stdio.h>
#include <string.h>

#include "watch/audit/model.h"
#include "watch/eventcode.h"

static plait_status contradicts(const pli_audit *audit, const pli_event *event, const char *what, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "the event log contradicts itself: the %s of rank %d %s",
                    event->server ? "server" : "worker", audit_rank(audit, event->rank), what);
}

/* --- job and tables ----------------------------------------------------------------------------------------------- */

static int32_t streams_of(const pli_audit *audit) {
    int32_t n = 0;
    for (int32_t i = 0; i < pli_logfile_streams(audit->file); i++)
        n += pli_logfile_group(audit->file, i) == audit->group && !pli_logfile_is_locks(audit->file, i);
    return n;
}

static plait_status take_group(pli_audit *audit, const pli_event_group *group, plait_error *err) {
    if (group == NULL) return PLAIT_OK;
    audit->rank = pli_array((size_t)group->n, sizeof *audit->rank);
    if (audit->rank == NULL) return audit_no_memory(err);
    memcpy(audit->rank, group->rank, (size_t)group->n * sizeof *audit->rank);
    audit->numbers = group->n;
    audit->first_clock = group->first_clock;
    snprintf(audit->group_name, sizeof audit->group_name, "%s", group->name);
    return PLAIT_OK;
}

static bool is_same_group(const pli_audit *audit, const pli_event_group *group) {
    return group == NULL ||
           (group->n == audit->numbers && group->first_clock == audit->first_clock &&
            memcmp(group->rank, audit->rank, (size_t)group->n * sizeof *audit->rank) == 0 &&
            strncmp(group->name, audit->group_name, sizeof audit->group_name - 1) == 0);
}

/* A member of a group may have died before it came to the group's first table: the others begin without it. */
static bool may_lack(const pli_event_group *group, const pli_event_job *job) {
    return group != NULL && job->replicas > 1;
}

/* How many ranks have replicas of others' shards at first, if there are so many of each: the servers, and spares where
 * these are too few. */
static int64_t ranks_with_copies(const pli_event_job *job, int32_t each) {
    if (each < 2) return 0;
    const int32_t spares = each > job->servers ? each - job->servers : 0;
    return job->servers > 1 ? job->servers + spares : spares;
}

static plait_status start_job(pli_audit *audit, const pli_event *event, plait_error *err) {
    const pli_event_job *job = event->info.job;
    int32_t              streams = streams_of(audit) - audit->lives;
    if (audit->job.workers != 0) {
        pli_event_job known = audit->job;
        known.workers = audit->ranked;
        const bool same = memcmp(&known, job, sizeof *job) == 0 && is_same_group(audit, event->group);
        return same ? PLAIT_OK : contradicts(audit, event, "was in another job", err);
    }
    if (job->workers < 1 || job->servers < 1 || job->spares >= job->workers || job->homes > job->workers)
        return contradicts(audit, event, "was in a job without workers", err);
    audit->places = job->replicas < 2                                  ? 1
                    : job->homes > 0                                  ? PLI_LOG_PLACES_MAX
                    : job->servers + job->spares < PLI_LOG_CHAIN_MAX ? job->servers + job->spares
                                                                      : PLI_LOG_CHAIN_MAX;
    const int32_t each = job->replicas < audit->places ? job->replicas : audit->places;
    const int64_t servers = job->homes > 0 ? job->homes : job->servers + ranks_with_copies(job, each);
    if (pli_logfile_cut(audit->file) == NULL && !may_lack(event->group, job) && job->workers + servers > streams)
        return pli_fail(err, PLAIT_EFORMAT,
                        "the job had %d workers and %d servers%s, but only %d of them have left a log here; "
                        "give the files of all ranks",
                        job->workers, job->servers,
                        each > 2   ? ", each with three replicas"
                        : each > 1 ? ", each with two replicas"
                                   : "",
                        streams);
    const int32_t workers = job->workers + audit->lives;
    audit->worker = pli_calloc((size_t)workers, sizeof *audit->worker);
    audit->home = pli_calloc((size_t)job->servers, sizeof *audit->home);
    if (audit->worker == NULL || audit->home == NULL) return audit_no_memory(err);
    audit->job = *job;
    audit->job.workers = workers;
    audit->ranked = job->workers;
    for (int32_t i = 0; i < audit->lives; i++)
        if (audit->life[i].rank >= job->workers)
            return contradicts(audit, event, "knows a later life of a rank that is no worker", err);
    PLI_TRY(take_group(audit, event->group, err));
    for (int32_t w = 0; w < workers; w++)
        audit->worker[w] = (audit_worker){ .stream = -1, .clocks = audit->first_clock };
    return PLAIT_OK;
}

/* A rank that is no member has taken part in the tables of a group. Nothing else is judged of what it did. */
static void find_stranger(pli_audit *audit, int32_t stream, const pli_event *event) {
    const int32_t rank = pli_logfile_rank(audit->file, stream);
    audit_violation(audit, NULL,
                    &(pli_audit_violation){ .rule = "members", .rank = -1, .clock = -1, .time_ns = event->time_ns },
                    "rank %d, which is no member of group %s, took part in its tables as a %s from %.6f s on", rank,
                    audit->group_name, event->server ? "server" : "worker", audit_seconds(audit, event->time_ns));
    audit->first.rank = audit->first.rank < 0 ? rank : audit->first.rank;
}

static plait_status join(pli_audit *audit, int32_t stream, const pli_event *event, plait_error *err) {
    PLI_TRY(start_job(audit, event, err));
    if (event->rank < 0) {
        find_stranger(audit, stream, event);
        return PLAIT_OK;
    }
    audit_server *copy = NULL;
    if (event->server) PLI_TRY(audit_replica_of(audit, event, &copy, err));
    const int32_t number = event->group != NULL ? event->rank : audit_number_of(audit, event->rank, event->life);
    if (!event->server && (event->rank >= audit->ranked || number < 0))
        return contradicts(audit, event, "is none of the job", err);
    int32_t *of = event->server ? &copy->stream : &audit->worker[number].stream;
    if (*of >= 0 && event->place == 0) return contradicts(audit, event, "has joined twice; a log holds one job", err);
    *of = stream;
    return PLAIT_OK;
}

static plait_status open_table(pli_audit *audit, audit_table *table, const pli_event_table *info, plait_error *err) {
    size_t      workers = (size_t)audit->job.workers;
    pli_promise own;
    *table = (audit_table){ .known = true,
                            .ruled = info->ruled,
                            .way = info->way,
                            .rows = info->rows,
                            .shards = info->shards,
                            .own = audit->as == NULL || strcmp(audit->as, info->consistency) == 0 };
    snprintf(table->name, sizeof table->name, "%s", info->name);
    snprintf(table->topology, sizeof table->topology, "%s", info->topology);
    snprintf(table->consistency, sizeof table->consistency, "%s", info->consistency);
    snprintf(table->combine, sizeof table->combine, "%s", info->combine);
    table->replaces = strcmp(info->combine, "last") == 0;
    table->repeats = strcmp(info->combine, "min") == 0 || strcmp(info->combine, "max") == 0;
    PLI_TRY(pli_promise_read(audit->as != NULL ? audit->as : info->consistency, &table->promise, err));
    PLI_TRY(pli_promise_read(info->consistency, &own, err));
    table->whole = own.exact;
    table->sums = audit->places > 1 && own.exact;
    audit->cells += (int64_t)workers * (1 + info->shards);
    if (audit->cells > AUDIT_CELLS_MAX) return audit_no_memory(err);
    table->pusher = pli_calloc(workers, sizeof *table->pusher);
    table->mirror = pli_calloc(info->way == PLI_WAY_SUMMED ? workers : 0, sizeof *table->mirror);
    table->copies = pli_calloc(info->way == PLI_WAY_AVERAGED ? workers : 0, sizeof *table->copies);
    table->shard = pli_calloc((size_t)info->shards, sizeof *table->shard);
    if (table->pusher == NULL || table->mirror == NULL || table->copies == NULL || table->shard == NULL)
        return audit_no_memory(err);
    for (int32_t s = 0; s < info->shards; s++) {
        audit_holder *copy = pli_calloc(1, sizeof *copy);
        if (copy == NULL) return audit_no_memory(err);
        *copy = (audit_holder){ .shard = s, .counts = true, .led = AUDIT_NEVER };
        table->shard[s] = (audit_shard){ .home = -1, .replicas = 1, .replica = copy };
        copy->sender = pli_calloc(workers, sizeof *copy->sender);
        if (copy->sender == NULL) return audit_no_memory(err);
    }
    return PLAIT_OK;
}

static plait_status add_table(pli_audit *audit, const pli_event *event, plait_error *err) {
    const pli_event_table *info = event->info.table;
    int64_t                before = audit->tables;
    audit_table           *known = audit_table_of(audit, event->table);
    if (audit->job.workers == 0) return contradicts(audit, event, "knew a table before it had a job", err);
    if (known != NULL) {
        bool same = strncmp(known->name, info->name, sizeof known->name - 1) == 0 && known->way == info->way &&
                    known->shards == info->shards && known->rows == info->rows && known->ruled == info->ruled &&
                    strncmp(known->combine, info->combine, sizeof known->combine - 1) == 0;
        if (!same) return contradicts(audit, event, "knew a table by other dimensions", err);
        same = strncmp(known->consistency, info->consistency, sizeof known->consistency - 1) == 0;
        return same ? PLAIT_OK : contradicts(audit, event, "knew a table by another consistency", err);
    }
    if (event->table >= before) {
        if (!pli_grow((void **)&audit->table, &audit->tables_capacity, event->table + 1, sizeof *audit->table))
            return audit_no_memory(err);
        memset(audit->table + before, 0, (size_t)(event->table + 1 - before) * sizeof *audit->table);
        audit->tables = event->table + 1;
    }
    return open_table(audit, &audit->table[event->table], info, err);
}

/* --- what a worker did -------------------------------------------------------------------------------------------- */

/* Has an inc of that norm returned as soon as it was accepted? An inc that alone exceeds its worker's share of the
 * bound may first send what it was given, and wait until that is applied. */
static bool returns_at_once(const pli_audit *audit, const pli_promise *promise, double norm) {
    bool shared = !promise->value_each && audit->job.workers > 2;
    return norm < (shared ? promise->value / (audit->job.workers - 1) : promise->value);
}

static plait_status add_inc(const pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    audit_pusher *pusher = &table->pusher[event->rank];
    table->figures.incs++;
    pusher->incs++;
    if (!(table->promise.value > 0)) return PLAIT_OK;
    if (!pli_grow((void **)&pusher->inc, &pusher->incs_capacity, pusher->n_incs + 1, sizeof *pusher->inc))
        return audit_no_memory(err);
    bool returned = returns_at_once(audit, &table->promise, event->norm);
    pusher->inc[pusher->n_incs++] = (struct audit_inc){ .time_ns = returned ? event->time_ns : UINT64_MAX,
                                                        .norm = event->norm };
    pusher->n_timed += returned;
    return PLAIT_OK;
}

static plait_status add_push(audit_pusher *pusher, bool stands, const pli_event *event, plait_error *err) {
    if (!pli_grow((void **)&pusher->push, &pusher->capacity, pusher->n + 1, sizeof *pusher->push))
        return audit_no_memory(err);
    pusher->push[pusher->n++] =
        (audit_push){ .clock = event->clock, .incs = pusher->incs, .time_ns = event->time_ns, .stands = stands };
    return PLAIT_OK;
}

static plait_status add_view(audit_worker *worker, const pli_event *event, plait_error *err) {
    if (!pli_grow((void **)&worker->view, &worker->views_capacity, worker->views + 1, sizeof *worker->view))
        return audit_no_memory(err);
    worker->view[worker->views++] =
        (struct audit_view){ .server = event->peer, .whom = event->whom, .clock = event->clock, .seq = event->seq };
    return PLAIT_OK;
}

/* A part belongs to the latest push of its worker to its table: the messages of a push follow it at once. */
static plait_status add_part(const pli_audit *audit, const pli_event *event, const pli_event_part *p,
                             plait_error *err) {
    audit_table *table = audit_table_of(audit, p->table);
    if (table == NULL || event->peer >= audit->job.servers || p->shard >= table->shards ||
        table->pusher[event->rank].n == 0)
        return contradicts(audit, event, "sent a part of no push", err);
    audit_shard *shard = &table->shard[p->shard];
    if (shard->home < 0) shard->home = event->peer;
    if (shard->home != event->peer) return contradicts(audit, event, "sent a part to who has not its shard", err);
    audit_sender **of = &shard->replica[0].sender[event->rank];
    if (*of == NULL) *of = pli_calloc(1, sizeof **of);
    if (*of == NULL || !pli_grow((void **)&(*of)->part, &(*of)->capacity, (*of)->n + 1, sizeof *(*of)->part))
        return audit_no_memory(err);
    if ((*of)->n > 0 && (*of)->part[(*of)->n - 1].seq >= event->seq)
        return contradicts(audit, event, "sent messages out of order", err);
    (*of)->part[(*of)->n++] = (audit_part){ .seq = event->seq, .push = table->pusher[event->rank].n - 1 };
    return PLAIT_OK;
}

static plait_status add_sum(const pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    if (table->way != PLI_WAY_SUMMED) return contradicts(audit, event, "summed a table that no sum moves", err);
    audit_mirror *mirror = &table->mirror[event->rank];
    if (!pli_grow((void **)&mirror->sum, &mirror->capacity, mirror->n + 1, sizeof *mirror->sum))
        return audit_no_memory(err);
    mirror->sum[mirror->n++] = (struct audit_sum){ .clock = event->clock, .time_ns = event->time_ns };
    table->figures.applied++;
    return PLAIT_OK;
}

/* Adds a copy that the worker gives or mixes. */
static plait_status add_copy(pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    bool gives = event->kind == PLI_EVENT_GIVE;
    if (table->way != PLI_WAY_AVERAGED || event->peer >= audit->job.workers || event->peer == event->rank)
        return contradicts(audit, event, "averaged a copy that nobody has", err);
    audit_copies *copies = &table->copies[event->rank];
    audit_copy  **list = gives ? &copies->give : &copies->mix;
    int64_t      *n = gives ? &copies->gives : &copies->mixes;
    if (!pli_grow((void **)list, gives ? &copies->gives_capacity : &copies->mixes_capacity, *n + 1, sizeof **list))
        return audit_no_memory(err);
    (*list)[(*n)++] = (audit_copy){ .peer = event->peer, .given = gives ? event->clock : (int64_t)event->seq,
                                    .clock = event->clock, .time_ns = event->time_ns };
    if (!gives) table->figures.applied++;
    return PLAIT_OK;
}

/* Notes how many pushes came before the worker's barrier number `barriers`, for each table that it knew by then. */
static plait_status add_barrier(pli_audit *audit, const pli_event *event, plait_error *err) {
    audit_worker *worker = &audit->worker[event->rank];
    worker->barriers++;
    for (int64_t t = 0; t < audit->tables; t++) {
        if (!audit->table[t].known) continue;
        audit_pusher *pusher = &audit->table[t].pusher[event->rank];
        if (!pli_grow((void **)&pusher->barrier, &pusher->barrier_capacity, worker->barriers, sizeof *pusher->barrier))
            return audit_no_memory(err);
        while (pusher->barriers + 1 < worker->barriers) pusher->barrier[pusher->barriers++] = 0; /* it was not there */
        pusher->barrier[pusher->barriers++] = pusher->n;
    }
    return PLAIT_OK;
}

static bool has_copies(const audit_table *table) {
    return table->way == PLI_WAY_SUMMED || table->way == PLI_WAY_AVERAGED;
}

/* A push must be of the clock that its worker is in, or (a mirror's) has just ended. */
static void check_label(pli_audit *audit, audit_table *table, const pli_event *event) {
    int64_t clocks = audit->worker[event->rank].clocks;
    if (event->clock == clocks || (has_copies(table) && event->clock == clocks - 1)) return;
    audit_violation(
        audit, table,
        &(pli_audit_violation){ .rule = "clocks", .rank = event->rank, .clock = clocks, .time_ns = event->time_ns },
        "rank %d pushed to table %s at %.6f s as of clock %lld, when it was in clock %lld",
        audit_rank(audit, event->rank), table->name, audit_seconds(audit, event->time_ns), (long long)event->clock,
        (long long)clocks);
}

static void end_clock(pli_audit *audit, const pli_event *event) {
    audit_worker *worker = &audit->worker[event->rank];
    if (event->clock != worker->clocks)
        audit_violation(audit, NULL,
                        &(pli_audit_violation){
                            .rule = "clocks", .rank = event->rank, .clock = event->clock, .time_ns = event->time_ns },
                        "rank %d ended clock %lld after clock %lld (at %.6f s)", audit_rank(audit, event->rank),
                        (long long)event->clock,
                        (long long)worker->clocks - 1, audit_seconds(audit, event->time_ns));
    worker->clocks = event->clock + 1;
    worker->stands = false;
}

/* An inc that may have waited until it was applied has returned when its worker does something else. */
static void note_returned(pli_audit *audit, const pli_event *event) {
    if (event->kind == PLI_EVENT_PUSH || event->kind == PLI_EVENT_SEND) return;
    for (int64_t t = 0; t < audit->tables; t++) {
        if (!audit->table[t].known || !(audit->table[t].promise.value > 0)) continue;
        audit_pusher *pusher = &audit->table[t].pusher[event->rank];
        for (; pusher->n_timed < pusher->n_incs; pusher->n_timed++)
            pusher->inc[pusher->n_timed].time_ns = event->time_ns;
    }
}

/* The job goes on from a checkpoint: its workers' clocks count from there. All say so, before they do anything; those
 * that know from which checkpoint say it again. */
static plait_status begin(pli_audit *audit, const pli_event *event, plait_error *err) {
    bool same = event->group == NULL && (!audit->begins || event->clock == audit->first_clock) &&
                audit->worker[event->rank].clocks == audit->first_clock;
    for (int32_t w = 0; !audit->begins && w < audit->job.workers; w++) {
        same = same && audit->worker[w].clocks == 0; /* else it has ended clocks of a job that began at clock 0 */
        audit->worker[w].clocks = event->clock;
    }
    if (!same) return contradicts(audit, event, "begins in another clock than the others, or than its own first", err);
    audit->begins = true;
    audit->first_clock = event->clock;
    if (event->info.from[0] != '\0' && audit->from[0] == '\0')
        snprintf(audit->from, sizeof audit->from, "%s", event->info.from);
    else if (event->info.from[0] != '\0' && strcmp(audit->from, event->info.from) != 0)
        return contradicts(audit, event, "goes on from another checkpoint than the others", err);
    return PLAIT_OK;
}

static plait_status load_worker(pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err) {
    audit_worker *worker = &audit->worker[event->rank];
    worker->ended_ns = event->time_ns;
    note_returned(audit, event);
    if ((event->kind == PLI_EVENT_PUSH || event->kind == PLI_EVENT_SUM) && event->clock < 0)
        return contradicts(audit, event, "pushed before its first clock", err);
    switch (event->kind) {
    case PLI_EVENT_INC: return add_inc(audit, table, event, err);
    case PLI_EVENT_PUSH:
        table->figures.pushes++;
        check_label(audit, table, event);
        return add_push(&table->pusher[event->rank], worker->stands, event, err);
    case PLI_EVENT_SUM: return add_sum(audit, table, event, err);
    case PLI_EVENT_GIVE:
    case PLI_EVENT_MIX: return add_copy(audit, table, event, err);
    case PLI_EVENT_SEND:
        for (int64_t i = 0; i < event->n; i++) PLI_TRY(add_part(audit, event, &event->info.part[i], err));
        return PLAIT_OK;
    case PLI_EVENT_STAND: worker->stands = true; return PLAIT_OK;
    case PLI_EVENT_VIEW:
        if (event->whom >= audit->job.workers) return contradicts(audit, event, "stood in for nobody", err);
        return add_view(worker, event, err);
    case PLI_EVENT_CLOCK: end_clock(audit, event); return PLAIT_OK;
    case PLI_EVENT_FELLOWS: return audit_add_fellows(worker, event, err);
    case PLI_EVENT_BEGIN: return begin(audit, event, err);
    case PLI_EVENT_BARRIER: return add_barrier(audit, event, err);
    case PLI_EVENT_LEAVE: worker->left = true; return PLAIT_OK;
    case PLI_EVENT_DONE: worker->done = true; return PLAIT_OK;
    case PLI_EVENT_ZERO:
        if (event->shard != PLI_ZERO_DROP) return audit_add_zero(table, event, err);
        table->pusher[event->rank].dropped = 1 + event->clock;
        return PLAIT_OK;
    case PLI_EVENT_CALL: return audit_add_call(audit, event, err);
    case PLI_EVENT_GET:
    case PLI_EVENT_TURN: return PLAIT_OK; /* schedule.c judges turns */
    default: return contradicts(audit, event, "did what only servers do", err);
    }
}

/* Notes of a server only who it is; history.c does the rest. */
static plait_status load_event(pli_audit *audit, void *state, const pli_event *event, plait_error *err) {
    const bool first =
        audit->events++ == 0 && audit->group == 0; /* a group's audit counts from the whole job's begin */
    if (first || event->time_ns < audit->begun_ns) audit->begun_ns = event->time_ns;
    if (event->kind == PLI_EVENT_JOB) return join(audit, *(const int32_t *)state, event, err);
    if (event->rank < 0) /* of no member */
        return event->group != NULL ? PLAIT_OK : contradicts(audit, event, "acted outside of a job", err);
    if (event->kind == PLI_EVENT_TABLE) return add_table(audit, event, err);
    if (audit->job.workers == 0 || (!event->server && event->rank >= audit->job.workers))
        return contradicts(audit, event, "acted outside of a job", err);
    if (event->server) return audit_load_replica(audit, *(const int32_t *)state, event, err);
    audit_table *table = audit_table_of(audit, event->table);
    if (event->table >= 0 && table == NULL)
        return contradicts(audit, event, "used a table that it had not declared", err);
    return load_worker(audit, table, event, err);
}

plait_status audit_load(pli_audit *audit, plait_error *err) {
    for (int32_t i = 0; i < pli_logfile_streams(audit->file); i++)
        if (pli_logfile_group(audit->file, i) == audit->group && !pli_logfile_is_locks(audit->file, i))
            PLI_TRY(audit_stream(audit, i, load_event, &i, err));
    if (pli_logfile_cut(audit->file) != NULL) return PLAIT_OK; /* a rank that had written nothing yet has no log */
    if (audit->group != 0 && audit->places > 1) return PLAIT_OK; /* dead.c looks whether it had died */
    for (int32_t w = 0; w < audit->job.workers; w++)
        if (audit->worker[w].stream < 0)
            return pli_fail(err, PLAIT_EFORMAT, "the log of rank %d, a worker, is missing",
                            audit_rank(audit, w));
    for (int32_t h = 0; h < audit->job.servers; h++)
        for (int32_t i = 0, place; (place = audit_first_place(audit, h, i)) >= 0; i++) {
            const audit_server *copy = audit_replica_at(audit, h, place);
            if (copy == NULL || copy->stream < 0)
                return pli_fail(err, PLAIT_EFORMAT, "the log of rank %d, a server, is missing",
                                audit_rank_at(audit, audit_rank_of(audit, h, place)));
        }
    return PLAIT_OK;
}
