/* A worker's loop in the asynchronous engine, and its rounds. See async.h.
 *
 * Paper: Low, Gonzalez, Kyrola, Bickson, Guestrin and Hellerstein, "Distributed GraphLab", VLDB 2012, section 4.2.2. */
#include "vertex/async/async.h"

#include <math.h>
#include <stdio.h>

#include "comm/comm.h"
#include "table/table.h"
#include "vertex/async/rounds.h"

enum { DEPTH = 64 }; /* scopes that a worker asks for at once, if there are others to ask */

/* --- life --------------------------------------------------------------------------------------------------------- */

static bool make_scratch(pli_async *a) {
    const pli_vertex_run *run = a->run;
    const int64_t        *start = run->part.rows.start;
    for (int64_t v = 0; v < run->part.rows.n; v++)
        if (start[v + 1] - start[v] > a->longest) a->longest = start[v + 1] - start[v];
    const size_t n = (size_t)a->longest;
    a->entry = pli_array(n + 1, sizeof *a->entry);
    a->place = pli_array(n, sizeof *a->place);
    a->straight = pli_array(n, sizeof *a->straight);
    a->other = pli_array(n, sizeof *a->other);
    a->edge = pli_array(n, sizeof *a->edge);
    a->before = pli_array(n + 1, run->value_bytes);
    a->told = pli_array(n + 2, run->tell_bytes);
    a->sum = pli_array(1, run->gather_bytes);
    a->value = pli_array(1, run->value_bytes);
    a->use = pli_array(n + 1, sizeof *a->use);
    a->unsaid = pli_calloc((size_t)run->part.owned, sizeof *a->unsaid);
    if (a->entry == NULL || a->place == NULL || a->straight == NULL) return false;
    if (a->other == NULL || a->edge == NULL || a->use == NULL) return false;
    for (size_t k = 0; k < n; k++) a->straight[k] = (uint32_t)k;
    return a->before != NULL && a->told != NULL && a->sum != NULL && a->value != NULL && a->unsaid != NULL;
}

/* What belongs to the own vertices, whose values are zeros yet, beside their locks. */
static plait_status make_own(pli_async *a) {
    pli_vertex_run *run = a->run;
    const bool      made = make_scratch(a) && pli_queue_init(&a->queue, run->order, run->part.owned);
    const plait_status status = made ? pli_async_holders(a) : PLAIT_ENOMEM;
    if (status != PLAIT_ENOMEM) return status;
    return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for scopes", run->program.name);
}

static void free_scratch(pli_async *a) {
    void **const memory[] = { (void **)&a->holder_start, (void **)&a->holder, (void **)&a->unsaid, (void **)&a->entry,
                              (void **)&a->place, (void **)&a->straight, (void **)&a->other, (void **)&a->edge,
                              (void **)&a->before, (void **)&a->told, (void **)&a->sum, (void **)&a->value,
                              (void **)&a->use };
    pli_queue_destroy(&a->queue);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++) {
        pli_free(*memory[i]);
        *memory[i] = NULL;
    }
    a->longest = 0;
}

/* The values and the queue with which the run begins. */
static plait_status load_first(pli_async *a) {
    pli_vertex_run *run = a->run;
    const int64_t   first = run->cut->first[run->rank];
    if (run->part.owned > 0 && run->rounds == NULL)
        PLI_TRY(plait_table_get_range(run->value, first, run->part.owned, a->locks.value));
    for (int64_t i = 0; i < run->part.owned; i++) {
        const plait_vertex vertex = pli_vertex_of(run->edges, first + i);
        if (run->rounds != NULL && run->program.init != NULL)
            run->program.init(run->program.user, &vertex, a->locks.value + (size_t)i * run->value_bytes);
        if (run->restored) {
            if (run->row[2 * i] > 0) pli_queue_push(&a->queue, i, run->row[2 * i] - 1);
            a->unsaid[i] = run->row[2 * i + 1];
        } else if (run->program.starts == NULL || run->program.starts(run->program.user, &vertex) != 0) {
            pli_queue_push(&a->queue, i, 1);
        }
    }
    return PLAIT_OK;
}

static plait_status load(pli_async *a) {
    bool loaded = false;
    if (a->run->rounds != NULL) PLI_TRY(pli_rounds_load(a, &loaded));
    return loaded ? PLAIT_OK : load_first(a);
}

/* Tells the event log that locks are given from now on, by the promise of the run's scope. Nobody asks yet. */
static void raise_scopes(const pli_async *a) {
    const pli_event_scopes scopes = { .program = a->run->program.name, .scope = (int32_t)a->run->scope,
                                      .round = a->run->report.supersteps };
    pli_event_raise(a->locks.sink, &(pli_event){ .kind = PLI_EVENT_SCOPES, .rank = a->run->rank,
                                                 .info.scopes = &scopes });
}

/* All machines are there before one sends: what comes for a port that a rank has closed is dropped. */
static plait_status open(pli_async *a) {
    pli_vertex_run *run = a->run;
    plait_comm     *comm = plait_job_comm(run->job);
    PLI_TRY(make_own(a));
    if (!pli_locks_init(&a->locks, run->rank, run->workers, run->cut->first, run->value_bytes,
                        pli_comm_resend_after_ns(comm)))
        return pli_fail(run->err, PLAIT_ENOMEM, "%s: no memory for scopes", run->program.name);
    a->locks.sink = pli_comm_events(comm);
    a->locks.keeps = run->rounds != NULL;
    PLI_TRY(load(a));
    raise_scopes(a);
    PLI_TRY(pli_port_open(comm, PLI_PORT_LOCKS, &pli_locks_ops, &a->locks, &a->port, run->err));
    return plait_comm_barrier(comm);
}

static void free_all(pli_async *a) {
    if (a->port != NULL) pli_port_close(&a->port);
    pli_locks_destroy(&a->locks);
    free_scratch(a);
}

/* --- a round ------------------------------------------------------------------------------------------------------ */

static bool has_more(const pli_async *a) { return a->queue.size > 0 && a->made < a->budget; }

/* Asks for scopes, as many as may be on the way. */
static bool ask(pli_async *a, uint64_t now_ns, pli_out *out) {
    while (a->locks.held < a->depth && has_more(a)) {
        const int64_t row = a->run->part.own + pli_queue_pop(&a->queue), n = pli_async_lay(a, row);
        a->made++;
        if (!pli_locks_ask(&a->locks, now_ns, (uint64_t)row, n, a->entry, out)) return false;
    }
    return true;
}

static bool is_ready(void *arg) {
    pli_async *a = arg;
    uint64_t   now_ns;
    pli_out    out;
    pli_port_enter(a->port, &now_ns, &out);
    const bool ready = a->locks.granted != NULL || a->locks.notice != NULL || a->locks.quiet ||
                       (a->run->rounds != NULL && pli_locks_lost(&a->locks));
    pli_port_leave(a->port, &out);
    return ready;
}

/* It only reads what its own thread writes, and numbers that may be a moment old. */
static void tell_wait(const void *arg, char *text, size_t bytes) {
    const pli_async *a = arg;
    if (a->locks.held > 0) snprintf(text, bytes, "locks of %lld scopes of %s", (long long)a->locks.held,
                                    a->run->program.name);
    else snprintf(text, bytes, "the vertices of other ranks, in %s: its own are at rest", a->run->program.name);
}

static plait_status wait(pli_async *a) {
    plait_comm      *comm = plait_job_comm(a->run->job);
    const pli_reason reason = { .tell = tell_wait, .arg = a };
    pli_comm_enter(comm, "plait_vertex_run");
    return pli_comm_leave(comm, pli_comm_wait(comm, is_ready, a, &reason, a->run->err));
}

/* Until all are at rest: nobody has a vertex to update, or wants to update one in this round. */
static plait_status round_of(pli_async *a) {
    for (;;) {
        uint64_t        now_ns;
        pli_out         out;
        pli_lock_notice notice;
        pli_lock_scope *s = NULL;
        pli_port_enter(a->port, &now_ns, &out);
        a->lost = a->run->rounds != NULL && pli_locks_lost(&a->locks);
        const bool heard = !a->lost && pli_locks_noticed(&a->locks, &notice),
                   asked = a->lost || heard || ask(a, now_ns, &out);
        if (!a->lost && !heard && asked) s = pli_locks_next(&a->locks);
        if (!a->lost && !heard && s == NULL && a->locks.held == 0) pli_locks_rest(&a->locks, now_ns, &out);
        const bool quiet = pli_locks_is_quiet(&a->locks);
        if (quiet) {
            pli_locks_active(&a->locks); /* before anyone may begin the next round */
            pli_event_raise(a->locks.sink, &(pli_event){ .kind = PLI_EVENT_REST, .rank = a->run->rank,
                                                         .seq = (uint64_t)a->run->report.supersteps + 1 });
        }
        pli_port_leave(a->port, &out);
        if (!asked)
            return pli_fail(a->run->err, PLAIT_ENOMEM, "%s: no memory for a scope", a->run->program.name);
        if (quiet || a->lost) return PLAIT_OK;
        if (heard) PLI_TRY(pli_async_hear(a, &notice));
        else if (s != NULL) PLI_TRY(pli_async_update(a, s));
        else PLI_TRY(wait(a));
        /* All hear of it at the end of the round. */
        if (!isfinite(a->most) || pli_vertex_is_interrupted(a->run)) a->budget = 0;
    }
}

/* Owners push their values. */
static plait_status push_values(pli_async *a) {
    const pli_vertex_run *run = a->run;
    if (run->rounds != NULL) return pli_rounds_push(a);
    if (run->part.owned > 0)
        PLI_TRY(plait_table_inc_range(run->value, run->cut->first[run->rank], run->part.owned, a->locks.value, 0));
    return plait_job_clock(run->job);
}

/* A worker has died: all that live begin from the last good round. */
static plait_status begin_again(pli_async *a) {
    free_scratch(a);
    PLI_TRY(pli_rounds_begin_era(a));
    PLI_TRY(make_own(a));
    PLI_TRY(load(a));
    raise_scopes(a);
    return plait_comm_barrier(plait_job_comm(a->run->job));
}

/* Owners push their values; all learn how many vertices wait in all. *good: nobody has died in it. */
static plait_status end_round(pli_async *a, bool *good) {
    pli_vertex_run *run = a->run;
    plait_comm     *comm = plait_job_comm(run->job);
    int64_t         sums[3] = { a->queue.size, a->updates, a->locks.waits };
    *good = true;
    if (run->rounds != NULL) PLI_TRY(pli_rounds_vote(a, !a->lost, good));
    if (!*good) return PLAIT_OK;
    PLI_TRY(push_values(a));
    double most[2] = { a->most, pli_vertex_is_interrupted(run) };
    PLI_TRY(plait_comm_allreduce(comm, most, 2, PLAIT_F64, PLAIT_MAX));
    PLI_TRY(plait_comm_allreduce(comm, sums, 3, PLAIT_I64, PLAIT_SUM));
    if (run->rounds != NULL) PLI_TRY(pli_rounds_vote(a, true, good));
    if (!*good) return PLAIT_OK;
    if (run->rounds != NULL) pli_rounds_commit(a);
    run->report.supersteps++;
    run->report.updates = sums[1];
    run->report.lock_waits = sums[2];
    run->report.still = sums[0] == 0;
    run->report.interrupted = most[1] > 0 && !run->report.still;
    if (isfinite(most[0])) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EINVAL, "%s: in superstep %lld a value changed by what is no finite number",
                    run->program.name, (long long)run->report.supersteps);
}

/* What the queue holds goes into a checkpoint. */
static plait_status pause_run(pli_async *a) {
    pli_vertex_run *run = a->run;
    if (run->report.still || !pli_vertex_is_due(run)) return PLAIT_OK;
    for (int64_t i = 0; i < run->part.owned; i++) {
        const double weight = a->queue.weight != NULL ? a->queue.weight[i] : 0;
        run->row[2 * i] = pli_queue_has(&a->queue, i) ? 1 + weight : 0;
        run->row[2 * i + 1] = a->unsaid[i];
    }
    return pli_vertex_pause(run, NULL);
}

static plait_status loop(pli_async *a) {
    pli_vertex_run *run = a->run;
    bool            good = true;
    while (!run->report.still && (run->limit == 0 || run->report.supersteps < run->limit)) {
        a->made = 0;
        a->most = 0;
        a->budget = run->limit == 0 && run->opts.every == 0 && run->rounds == NULL ? INT64_MAX : run->part.owned;
        const int64_t updates = a->updates;
        PLI_TRY(round_of(a));
        PLI_TRY(end_round(a, &good));
        if (!good) {
            a->updates = updates;
            PLI_TRY(begin_again(a));
            continue;
        }
        PLI_TRY(pause_run(a));
        if (run->report.interrupted) return PLAIT_OK;
    }
    return PLAIT_OK;
}

plait_status pli_vertex_async(pli_vertex_run *run) {
    pli_async a = { .run = run, .depth = run->workers > 1 ? DEPTH : 1,
                    .mode = run->scope == PLI_SCOPE_FULL   ? PLI_LOCK_WRITE
                            : run->scope == PLI_SCOPE_EDGE ? PLI_LOCK_READ
                                                           : PLI_LOCK_NONE };
    plait_status status = open(&a);
    if (status == PLAIT_OK) status = loop(&a);
    free_all(&a);
    return status;
}
