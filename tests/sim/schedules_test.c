/* Seeded schedules of whole jobs over simulated ranks: the code that ships, in virtual time, on clusters drawn at
 * random (draw.h) with stragglers, narrow and cut links, messages late, doubled and lost, ranks frozen and killed. Each
 * schedule is judged twice: by the values that its gets return, and by the audit of its event log.
 *
 * The values: each worker has a column of its own in every row. In its clock c it adds 2^c, at most once to a row, so a
 * value read is the set of that worker's clocks that it contains. A get must have the reader's own updates, all updates
 * of others that the consistency promises, none that was not added, and never fewer than before; after the last barrier
 * it must have exactly all. In balanced jobs, one worker computes each block's share of each clock. A healthy schedule
 * ends well: the doctor, who looks 200 times as often as in real runs, must not find a deadlock in it. A schedule that
 * loses a rank may end with an error that says so.
 *
 * A schedule is a process, since SimGrid takes one platform a process. The test counts what was drawn and what
 * happened, and nothing may be missing. To replay a failing seed, set PLAIT_SEED=seed; PLAIT_EVENTS=file keeps its
 * event log;
 * PLAIT_COMBINE and PLAIT_POLICY have all tables combine so, under that policy. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <plait/table.h>

#include "comm/cluster.h"
#include "hang.h"
#include "sim/draw.h"
#include "table/marks.h"
#include "table/table.h"
#include "watch/audit/audit.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* there actors are threads, and slow */
enum { SCHEDULES = 30, SCHEDULES_FULL = 300 };
#else
enum { SCHEDULES = 300, SCHEDULES_FULL = 3000 };
#endif
enum { ENOUGH = 300 /* in so many schedules everything occurs */, HANG_S = 150 /* one takes some 0.01 s */ };
#define MS UINT64_C(1000000)

#define OUTCOMES(X)                                                                                                    \
    X(WELL, "ended well")                                                                                              \
    X(LOST, "ended by a lost rank") X(OVERDUE, "ended by a deadline") X(PROVEN, "proven by the audit") X(GETS, "gets") \
        X(STALE, "stale gets") X(INCS, "incs") X(APPLIED, "parts of pushes applied")                                   \
            X(DROPPED_LATE, "dropped by backup") X(MOVED, "blocks that moved") X(SHARES, "shares computed")            \
                X(LEFT, "workers that left") X(LATE, "messages delayed, of each rank's first ten")                     \
                    X(TWICE, "doubled, of them") X(GONE, "lost, of them") X(ROUNDS, "rounds of the doctor")
#define X(name, text) name,
typedef enum outcome { OUTCOMES(X) N_OUTCOMES } outcome;
#undef X
#define X(name, text) text,
static const char *const outcome_names[N_OUTCOMES] = { OUTCOMES(X) };
#undef X

/* Shared by the processes, of which one runs at a time. */
typedef struct tally {
    uint64_t drawn[N_FEATURES], seen[N_OUTCOMES];
} tally;

static tally *counts;

/* The schedule of this process. Its ranks take turns. */
static struct {
    plan          p;
    int           log_fd;
    char          log_path[32];
    pli_eventlog *log;
    uint64_t      hot[HOT];
    uint64_t      issued[TABLES_MAX][HOT][WORKERS_MAX]; /* bit c: added in clock c */
    uint8_t       computed[BLOCKS_MAX][CLOCKS_MAX];
    int8_t        computes[BLOCKS_MAX]; /* the worker that computed it last; -1: none */
    int32_t       ended;                /* workers that have ended */
    char          why[400];             /* the first fault */
} run;

/* --- a worker ------------------------------------------------------------------------------------------------- */

typedef struct worker {
    plait_job   *job;
    plait_comm  *comm;
    int32_t      me;
    pli_random   mine, all; /* draws of its own, and draws that are the same on all workers */
    plait_table *table[TABLES_MAX];
    uint64_t     seen[TABLES_MAX][HOT][WORKERS_MAX];
    int64_t      last[TABLES_MAX][HOT]; /* the same of rows that are replaced */
    int64_t      met; /* the clock after the last barrier: in it, an averaging table reads all copies, and then its
                       * own again */
    bool         left;
    pli_lease    lease[BLOCKS_MAX];
    int64_t      leases;
    pli_pace     pace;
} worker;

__attribute__((format(printf, 1, 2))) static plait_status wrong(const char *format, ...) {
    va_list list;
    if (run.why[0] == 0) {
        va_start(list, format);
        vsnprintf(run.why, sizeof run.why, format, list);
        va_end(list);
    }
    return PLAIT_EDIVERGED;
}

static uint64_t pick(worker *w, uint64_t below) { return pli_random_below(&w->mine, below); }

static uint64_t clocks_below(int64_t clock) { return clock <= 0 ? 0 : (UINT64_C(1) << clock) - 1; }

static void compute(worker *w, uint64_t entries) { pli_comm_work(w->comm, PLI_WORK_ENTRIES, entries); }

/* What had been issued for each row when a get began. */
typedef struct before {
    uint64_t of[HOT][WORKERS_MAX];
} before;

static plait_status check_value(worker *w, int t, int h, int32_t from, double value, const before *then, bool last) {
    const plan       *p = &run.p;
    const table_plan *of = &p->table[t];
    int64_t           clock = plait_job_clock_now(w->job);
    const uint64_t    gone = of->zeroed >= 0 && clock >= of->zeroed ? clocks_below(of->zeroed) : 0;
    uint64_t          has = 0, all = run.issued[t][h][from] & ~gone, least = 0;
    if (!mark_read(&w->table[t]->spec, value, all, &has) || (has & ~all) != 0)
        return wrong("rank %d in clock %lld reads %g of rank %d in row %d of t%d: %llx was added", w->me,
                     (long long)clock, value, from, h, t, (unsigned long long)all);
    if (p->backup == 0) {
        least = then->of[h][from] & clocks_below(clock - of->bound);
        if (from == w->me) least = then->of[h][from];
        least &= ~gone;
        if (last) least = all;
    }
    if ((has & least) != least)
        return wrong("rank %d in clock %lld reads %llx of rank %d in row %d of t%d, %llx is due", w->me,
                     (long long)clock, (unsigned long long)has, from, h, t, (unsigned long long)least);
    if (of->exact && p->backup == 0 && from != w->me && !last && !w->left && (has & ~clocks_below(clock)) != 0)
        return wrong("rank %d in clock %lld reads %llx of rank %d in row %d of t%d: too early", w->me, (long long)clock,
                     (unsigned long long)has, from, h, t);
    if ((w->seen[t][h][from] & ~gone & ~has) != 0 && (p->backup == 0 || from != w->me)) /* with backup workers, own
                                                                                         * updates may be dropped */
        return wrong("rank %d in clock %lld reads %llx of rank %d in row %d of t%d after %llx", w->me, (long long)clock,
                     (unsigned long long)has, from, h, t, (unsigned long long)w->seen[t][h][from]);
    if (w->met != clock || strncmp(of->consistency, "local-sgd", 9) != 0) w->seen[t][h][from] = has;
    return PLAIT_OK;
}

/* A row that is replaced, as check_value has it of each worker's column. */
static plait_status check_last(worker *w, int t, int h, const void *row, const before *then, bool last) {
    const plan       *p = &run.p;
    const table_plan *of = &p->table[t];
    const int64_t     clock = plait_job_clock_now(w->job);
    const uint64_t    gone = of->zeroed >= 0 && clock >= of->zeroed ? clocks_below(of->zeroed) : 0;
    mark_reader       r = { .worker = w->me, .clock = clock };
    if (p->backup > 0) return PLAIT_OK; /* what came late is dropped */
    if (gone != 0 && w->last[t][h] <= 64 * of->zeroed) w->last[t][h] = 0;
    for (int32_t from = 0; from < p->workers; from++) {
        const uint64_t all = run.issued[t][h][from] & ~gone;
        const bool     early = of->exact && from != w->me && !last && !w->left;
        r.must[from] = last ? all : then->of[h][from] & all;
        if (!last && from != w->me) r.must[from] &= clocks_below(clock - of->bound);
        r.may[from] = early ? all & clocks_below(clock) : all;
    }
    if (mark_last(&w->table[t]->spec, row, &r, &w->last[t][h])) return PLAIT_OK;
    return wrong("rank %d in clock %lld reads %g in row %d of t%d, which replaces rows", w->me, (long long)clock,
                 mark_at(w->table[t]->spec.type, row, 0), h, t);
}

/* values: of the rows from hot[first] on or, if by_row, of all rows. */
static plait_status check(worker *w, int t, int first, bool by_row, const void *values, const before *then,
                          bool last) {
    if (run.p.table[t].ruled) return PLAIT_OK;
    for (int h = first; h < HOT; h++) {
        const int64_t row = (by_row ? (int64_t)run.hot[h] : h - first) * run.p.workers;
        if (w->table[t]->spec.combine->replaces) {
            PLI_TRY(check_last(w, t, h, (const char *)values + row * w->table[t]->spec.width, then, last));
            continue;
        }
        for (int32_t from = 0; from < run.p.workers; from++) {
            const double value = mark_at(w->table[t]->spec.type, values, row + from);
            PLI_TRY(check_value(w, t, h, from, value, then, last));
        }
    }
    return PLAIT_OK;
}

static plait_status add(worker *w, int t) {
    double   delta[HOT * WORKERS_MAX];
    uint64_t keys[HOT];
    int64_t  n = 0, clock = plait_job_clock_now(w->job);
    int      row[HOT];
    marks_clear(&w->table[t]->spec, HOT * run.p.workers, delta);
    for (int h = 0; h < HOT; h++) {
        if ((run.issued[t][h][w->me] >> clock & 1) || pick(w, 2) == 0) continue;
        mark_put(&w->table[t]->spec, delta, n, w->me, clock);
        row[n] = h;
        keys[n++] = run.hot[h];
    }
    /* noted first, since others may see it before the call returns */
    for (int64_t i = 0; i < n; i++) run.issued[t][row[i]][w->me] |= UINT64_C(1) << clock;
    if (pick(w, 3) > 0) return plait_table_inc(w->table[t], n, keys, delta, run.p.table[t].ruled ? 1 : 0);
    plait_request *request = NULL;
    PLI_TRY(plait_table_inc_begin(w->table[t], n, keys, delta, run.p.table[t].ruled ? 1 : 0, &request));
    compute(w, pick(w, 100000));
    return plait_request_wait(&request);
}

static plait_status get(worker *w, int t, bool last) {
    double         values[ROWS * WORKERS_MAX];
    plait_request *request = NULL;
    before         then;
    memcpy(then.of, run.issued[t], sizeof then.of);
    bool    by_row = !run.p.table[t].sparse && pick(w, 2) == 0;
    int     first = last ? 0 : (int)pick(w, HOT);
    int64_t rows = ROWS;
    if (by_row && pick(w, 4) == 0) {
        const void *lent;
        PLI_TRY(plait_table_read(w->table[t], 0, rows, &lent));
        return check(w, t, 0, true, lent, &then, last);
    }
    PLI_TRY(by_row ? plait_table_get_range_begin(w->table[t], 0, rows, values, &request)
                   : plait_table_get_begin(w->table[t], HOT - first, run.hot + first, values, &request));
    if (pick(w, 2) == 0) compute(w, pick(w, 200000));
    PLI_TRY(plait_request_wait(&request));
    return check(w, t, by_row ? 0 : first, by_row, values, &then, last);
}

/* --- balance dynamic --------------------------------------------------------------------------------------------- */

/* Renews the leases for clocks from now on, if that is due. */
static plait_status renew(worker *w) {
    const plan           *p = &run.p;
    const pli_lease_terms terms = { .blocks = p->blocks, .clocks = p->epoch, .tenants = p->workers };
    int64_t               clock = plait_job_clock_now(w->job);
    plait_error           err = { 0 };
    if (p->blocks == 0 || clock % p->epoch % PLI_LEASE_EVERY != 0) return PLAIT_OK;
    if (clock == 0)
        for (int64_t b = w->me; b < p->blocks; b += p->workers)
            w->lease[w->leases++] = (pli_lease){ .block = b, .rows = 10 + b, .until = PLI_LEASE_OPEN };
    plait_status status = pli_job_lease(w->job, &terms, &w->pace, w->lease, &w->leases, &err);
    w->pace = (pli_pace){ 0 };
    return status;
}

/* Computes the shares of this clock. A rank whose clock is complete without it computes nothing, as learners do. */
static plait_status compute_shares(worker *w) {
    int64_t  clock = plait_job_clock_now(w->job), rows = 0;
    uint64_t began = pli_comm_now(w->comm);
    for (int64_t i = 0; i < w->leases; i++) {
        const pli_lease *lease = &w->lease[i];
        if (clock < lease->from || clock >= lease->until) continue;
        if (run.computed[lease->block][clock]++ != 0)
            return wrong("rank %d is the second to compute block %lld in clock %lld", w->me, (long long)lease->block,
                         (long long)clock);
        counts->seen[SHARES]++;
        counts->seen[MOVED] += run.computes[lease->block] >= 0 && run.computes[lease->block] != w->me;
        run.computes[lease->block] = (int8_t)w->me;
        rows += lease->rows;
    }
    compute(w, (uint64_t)rows * 3000);
    w->pace.rows += (double)rows;
    w->pace.seconds += (double)(pli_comm_now(w->comm) - began) * 1e-9;
    return PLAIT_OK;
}

/* --- what workers do ---------------------------------------------------------------------------------------------- */

/* All workers meet before a clock, in one of several ways, or do not meet. */
static plait_status meet(worker *w) {
    uint64_t kind = pli_random_below(&w->all, 8);
    double   sum[3] = { 1, 1, 1 };
    if (kind == 0 && is_drawn(&run.p, MEET)) {
        w->met = plait_job_clock_now(w->job);
        return plait_job_barrier(w->job);
    }
    if (kind == 1 && is_drawn(&run.p, COLLECTIVES)) return plait_comm_barrier(w->comm);
    if (kind > 3 || !is_drawn(&run.p, COLLECTIVES)) return PLAIT_OK;
    PLI_TRY(plait_comm_allreduce(w->comm, sum, 3, PLAIT_F64, PLAIT_SUM));
    return sum[2] == run.p.workers ? PLAIT_OK : wrong("rank %d: a sum of %g ones", w->me, sum[2]);
}

static plait_status tick(worker *w) {
    plait_request *request = NULL;
    pli_comm_work(w->comm, PLI_WORK_CLOCKS, 1);
    if (((uint64_t)plait_job_clock_now(w->job) + run.p.seed) % 3 > 0) return plait_job_clock(w->job); /* the same on
                                                                                                       * all workers */
    PLI_TRY(plait_job_clock_begin(w->job, &request));
    compute(w, pick(w, 100000));
    return plait_request_wait(&request);
}

static plait_status act(worker *w) {
    int t = (int)pick(w, (uint64_t)run.p.tables);
    switch (pick(w, 4)) {
    case 0: compute(w, pick(w, 400000)); return PLAIT_OK;
    case 1: return w->left ? PLAIT_OK : add(w, t);
    default: return get(w, t, false);
    }
}

static plait_status create_table(worker *w, int t) {
    const table_plan *of = &run.p.table[t];
    char              name[16];
    plait_table_opts  opts;
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "t%d", t);
    opts.name = name;
    opts.type = of->whole ? PLAIT_I64 : PLAIT_F64;
    opts.combine = of->combine;
    opts.rows = of->sparse ? 0 : ROWS;
    opts.keyed = of->keyed;
    opts.cols = run.p.workers;
    opts.topology = of->topology;
    opts.consistency = of->consistency;
    if (of->ruled) {
        opts.rule.name = "sgd";
        opts.rule.learning_rate = 1;
        opts.rule.staleness_aware = of->staleness_aware;
    }
    return plait_table_create(w->job, &opts, &w->table[t]);
}

static plait_status create_tables(worker *w) {
    for (int32_t t = 0; t < run.p.tables; t++) PLI_TRY(create_table(w, t));
    return PLAIT_OK;
}

/* As new: zeroed, or another in its place. */
static plait_status make_anew(worker *w, int t) {
    w->met = plait_job_clock_now(w->job); /* it is a barrier, too */
    if (!run.p.table[t].anew) return plait_table_zero(w->table[t]);
    PLI_TRY(plait_table_drop(&w->table[t]));
    return create_table(w, t);
}

static plait_status go_through_clocks(worker *w) {
    for (int64_t clock = 0; clock < run.p.clocks; clock++) {
        PLI_TRY(meet(w));
        for (int32_t t = 0; t < run.p.tables; t++)
            if (run.p.table[t].zeroed == clock) PLI_TRY(make_anew(w, t));
        if (run.p.leaves[w->me] == clock) {
            PLI_TRY(plait_job_leave(w->job));
            counts->seen[LEFT]++;
            w->left = true;
        }
        if (!w->left) PLI_TRY(renew(w));
        if (!w->left) PLI_TRY(compute_shares(w));
        for (uint64_t n = pick(w, 5); n > 0; n--) PLI_TRY(act(w));
        if (!w->left) PLI_TRY(tick(w));
    }
    return PLAIT_OK;
}

static plait_status work(worker *w) {
    PLI_TRY(create_tables(w));
    PLI_TRY(go_through_clocks(w));
    PLI_TRY(plait_job_barrier(w->job));
    for (int t = 0; t < run.p.tables; t++) PLI_TRY(get(w, t, true));
    if (w->me == 0) counts->seen[DROPPED_LATE] += (uint64_t)plait_job_dropped(w->job);
    run.ended++;
    return PLAIT_OK;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* A policy of the program's own: a get waits until more than half of the workers have ended the clocks before. */
static plait_status parse_none(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)state, (void)setting;
    return parameters == NULL ? PLAIT_OK : pli_fail(err, PLAIT_EINVAL, "majority takes no parameters");
}

static plait_read majority_on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}

static plait_read majority_on_pull(void *state, const plait_view *view) {
    int32_t as_far = 0;
    (void)state;
    for (int32_t k = 0; k < view->workers; k++) as_far += view->clocks[k] >= view->clock;
    return 2 * as_far > view->workers ? PLAIT_SERVE : PLAIT_WAIT;
}

static const plait_consistency majority = { .name = "majority", .parameters = "", .summary = "", .parse = parse_none,
                                            .worker.on_get = majority_on_get, .server.on_pull = majority_on_pull };

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

static plait_status body(plait_comm *comm, void *unused) {
    plait_job_opts opts;
    worker        *w = calloc(1, sizeof *w);
    plait_error    err = { 0 };
    (void)unused;
    if (run.log == NULL)
        PLI_TRY(pli_eventlog_open(run.log_path, plait_comm_size(comm), "schedule", stamp, comm, &run.log, &err));
    pli_comm_set_events(comm, pli_eventlog_sink(run.log));
    plait_job_opts_init(&opts);
    opts.policies = &majority;
    opts.n_policies = 1;
    opts.backup = run.p.backup;
    *w = (worker){ .comm = comm, .me = plait_comm_rank(comm), .met = -1 };
    w->mine = pli_random_at(run.p.seed, PLI_RANDOM_SCHEDULE, 3, (uint64_t)w->me);
    w->all = pli_random_at(run.p.seed, PLI_RANDOM_SCHEDULE, 4, 0);
    plait_status status = plait_job_create(comm, &opts, &w->job);
    if (status >= 0 && pli_comm_is_worker(comm)) status = work(w);
    plait_status ended = plait_job_destroy(&w->job);
    if (status >= 0 && ended >= 0 && pli_comm_is_worker(comm) && is_drawn(&run.p, COLLECTIVES))
        ended = plait_comm_barrier(comm);
    free(w);
    return status < 0 ? status : ended;
}

/* A healthy run must not warn. */
static void hear(void *unused, plait_log_level level, int32_t rank, const char *room, const char *text) {
    (void)unused, (void)level;
    if (run.p.quiet) wrong("rank %d warns: %s: %s", rank, room, text);
}

static int cluster_file(const plan *p, char path[32]) {
    int fd = memfd_create("cluster", 0);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return write(fd, p->cluster, strlen(p->cluster)) == (ssize_t)strlen(p->cluster) ? fd : -1;
}

static void judge_end(plait_status status, const plait_error *err) {
    bool lost = run.p.loses && status == PLAIT_EPEER, overdue = is_drawn(&run.p, FROZEN) && status == PLAIT_ETIMEOUT;
    counts->seen[WELL] += status == PLAIT_OK;
    counts->seen[LOST] += lost;
    counts->seen[OVERDUE] += overdue;
    if (status != PLAIT_OK && !lost && !overdue) wrong("%s: %s", plait_status_text(status), err->text);
    bool whole = status == PLAIT_OK;
    for (int32_t k = 0; k < run.p.workers; k++) whole = whole && run.p.leaves[k] < 0;
    for (int64_t b = 0; whole && b < run.p.blocks; b++)
        for (int64_t c = 0; c < run.p.clocks; c++)
            if (run.computed[b][c] != 1) wrong("nobody computes block %lld in clock %lld", (long long)b, (long long)c);
}

static void judge_log(bool whole) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    const char  *path = run.log_path;
    if (pli_eventlog_close(&run.log, &err) < 0 || pli_logfile_open(&path, 1, &file, &err) < 0 ||
        pli_audit_run(file, NULL, &audit, &err) < 0) {
        wrong("the event log: %s", err.text);
        return;
    }
    const pli_audit_violation *first = pli_audit_first(audit);
    if (first != NULL) wrong("the audit: %s", first->text);
    bool proven = pli_audit_result(audit) == PLI_AUDIT_PROVEN;
    if (whole && !proven && pli_audit_result(audit) != PLI_AUDIT_EMPTY) wrong("a whole log is called cut");
    counts->seen[PROVEN] += proven;
    const pli_audit_figures *of;
    for (int32_t t = 0; t < run.p.tables && (of = pli_audit_table_figures(audit, t)) != NULL; t++) {
        counts->seen[GETS] += (uint64_t)of->gets;
        counts->seen[STALE] += (uint64_t)(of->gets - of->stale[0]);
        counts->seen[INCS] += (uint64_t)of->incs;
        counts->seen[APPLIED] += (uint64_t)of->applied;
    }
    pli_audit_free(&audit);
    pli_logfile_close(&file);
}

static void count_mishaps(void) {
    pli_cluster cluster = { 0 };
    const plan *p = &run.p;
    int32_t     ranks = p->workers + p->servers;
    if (pli_cluster_parse("cluster", p->cluster, strlen(p->cluster), &cluster, NULL) < 0) return;
    for (int32_t rank = 0; rank < ranks; rank++)
        for (uint64_t n = 0; n < 10; n++) {
            pli_fate fate =
                pli_script_fate(&cluster, p->seed, rank, rank > 0 ? 0 : ranks - 1, n, 1e6 /* after all cuts */);
            counts->seen[GONE] += fate.copies == 0;
            counts->seen[TWICE] += fate.copies == 2;
            counts->seen[LATE] += fate.copies > 0 && fate.delay[0] > 0;
        }
    for (int f = 0; f < N_FEATURES; f++) counts->drawn[f] += is_drawn(p, f);
    pli_cluster_free(&cluster);
}

/* Runs a schedule in this process, which is its own. */
static int run_schedule(const plan *p) {
    plait_comm_opts opts;
    plait_error     err = { 0 };
    char            path[32];
    const char     *keep = getenv("PLAIT_EVENTS");
    plait_log       log = { .fn = hear, .max_level = PLAIT_LOG_WARN };
    run.p = *p;
    pli_random random = pli_random_at(p->seed, PLI_RANDOM_SCHEDULE, 5, 0);
    for (int h = 0; h < HOT; h++) run.hot[h] = (uint64_t)(h * (ROWS / HOT)) + pli_random_below(&random, ROWS / HOT);
    memset(run.computes, -1, sizeof run.computes);
    run.log_fd = keep == NULL ? memfd_create("events", 0) : open(keep, O_CREAT | O_TRUNC | O_RDWR, 0644);
    snprintf(run.log_path, sizeof run.log_path, "/proc/self/fd/%d", run.log_fd);
    if (getenv("PLAIT_SEED") != NULL) print_plan(&run.p);
    count_mishaps();
    plait_comm_opts_init(&opts);
    opts.transport = "sim";
    opts.workers = run.p.workers;
    opts.servers = run.p.servers;
    opts.threads = 1;
    opts.seed = p->seed;
    opts.cluster = cluster_file(&run.p, path) >= 0 ? path : NULL;
    opts.timeout_ns = (run.p.loses ? 500 : 60000) * MS;
    opts.log = &log;
    plait_status status = plait_comm_run(&opts, body, NULL, &err);
    judge_end(status, &err);
    if (run.log != NULL) judge_log(status == PLAIT_OK);
    counts->seen[ROUNDS] += pli_doctor_rounds;
    if (run.why[0] == 0) return 0;
    printf("%s\n", run.why);
    return 1;
}

/* --- all schedules ------------------------------------------------------------------------------------------------ */

static bool run_apart(const plan *p) {
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's handler, which would go on with the next test */
        end_hang(HANG_S);
        int code = run_schedule(p);
        fflush(stdout);
        _exit(code);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        printf("the schedule %s\n", hung(status) ? "hangs" : "crashed");
    return status == 0;
}

static bool run_seed(uint64_t seed) {
    plan p;
    draw_plan(seed, &p);
    bool good = run_apart(&p);
    if (!good && forced_kind != NULL)
        printf("PLAIT_COMBINE=%s PLAIT_POLICY=%s ", forced_kind->name, policy_name(forced_policy));
    if (!good) printf("replay: PLAIT_SEED=%llu %s\n", (unsigned long long)seed, program_invocation_name);
    return good;
}

static void print_counts(int64_t schedules) {
    printf("%lld schedules over sim;", (long long)schedules);
    for (int f = 0; f < N_FEATURES; f++) printf(" %s %llu,", feature_names[f], (unsigned long long)counts->drawn[f]);
    printf("\n");
    for (int o = 0; o < N_OUTCOMES; o++)
        printf("%s%s %llu", o > 0 ? ", " : "", outcome_names[o], (unsigned long long)counts->seen[o]);
    printf("\n");
}

static void test_schedules(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *policy = getenv("PLAIT_POLICY");
    int64_t     n = SCHEDULES, from = 1, failed = 0;
    forced_kind = marks_kind_of(getenv("PLAIT_COMBINE"));
    while (policy != NULL && strcmp(policy, policy_name(forced_policy < 0 ? 0 : forced_policy)) != 0 &&
           policy_name(forced_policy + 1) != NULL)
        forced_policy++;
    if (getenv("PLAIT_TEST_FULL") != NULL) n = SCHEDULES_FULL;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n && failed < 5; i++) failed += !run_seed((uint64_t)(from + i));
    print_counts(n);
    assert_int_equal(failed, 0);
    for (int f = 0; f < N_FEATURES && n >= ENOUGH; f++)
        if (counts->drawn[f] == 0) fail_msg("never drawn: %s", feature_names[f]);
    for (int o = 0; o < N_OUTCOMES && n >= ENOUGH; o++)
        if (counts->seen[o] == 0) fail_msg("never seen: %s", outcome_names[o]);
}

/* Each way to combine, and counts, under each policy. A policy that stands twice in the list is played twice. */
static void test_kinds(void **unused) {
    (void)unused;
    const int64_t n = getenv("PLAIT_TEST_FULL") != NULL ? 120 : 1;
    int64_t       failed = 0;
    for (int k = 0; k < MARKS_KINDS; k++) {
        forced_kind = &marks_kinds[k];
        for (forced_policy = 0; policy_name(forced_policy) != NULL; forced_policy++) {
            if (!marks_go_with(forced_kind, policy_name(forced_policy))) continue;
            for (int64_t i = 1; i <= n && failed < 5; i++) failed += !run_seed((uint64_t)i);
            printf("%s x %s: %d jobs\n", forced_kind->name, policy_name(forced_policy), (int)n);
        }
    }
    forced_kind = NULL;
    forced_policy = -1;
    assert_int_equal(failed, 0);
}

/* --- faults that schedules have found ----------------------------------------------------------------------------- */

/* When the last answers of servers were lost, no rank sent them again: their workers waited for ever. */
static void test_lost_last_answers(void **unused) {
    (void)unused;
    for (int32_t servers = 0; servers < 3; servers++)
        for (uint64_t seed = 1; seed <= 4; seed++) {
            plan p = { .seed = seed, .workers = 2, .servers = servers, .tables = 1, .clocks = 1, .quiet = true,
                       .leaves = { -1, -1 } };
            p.table[0] = (table_plan){ .topology = "ps", .consistency = "async", .bound = CLOCKS_MAX, .zeroed = -1 };
            snprintf(p.cluster, sizeof p.cluster,
                     "version: 1\nhosts: [{count: 4}]\nevents:\n  - messages: {dropped: 0.4}\n");
            assert_true(run_apart(&p));
        }
}

/* A push names its tables by number, which is not their place among the tables that servers hold. */
static void test_replicas_beside_served_tables(void **unused) {
    (void)unused;
    plan p = { .seed = 1, .workers = 2, .servers = 1, .tables = 3, .clocks = 4, .quiet = true, .leaves = { -1, -1 } };
    p.table[0] = (table_plan){ .topology = "allreduce", .consistency = "bsp", .exact = true, .zeroed = -1 };
    p.table[1] = p.table[0];
    p.table[2] = (table_plan){ .topology = "ps", .consistency = "ssp:1", .bound = 1, .zeroed = -1 };
    snprintf(p.cluster, sizeof p.cluster, "version: 1\nhosts: [{count: 3}]\n");
    assert_true(run_apart(&p));
}

/* All living ranks were frozen for good, and the run was said to have ended well. */
static void test_all_frozen(void **unused) {
    (void)unused;
    for (int32_t workers = 1; workers < 4; workers++) {
        plan p = { .seed = 1, .workers = workers, .tables = 1, .clocks = 9, .loses = true, .leaves = { -1, -1, -1 } };
        p.drawn = UINT64_C(1) << FROZEN;
        p.table[0] = (table_plan){ .topology = "ps", .consistency = "async", .bound = CLOCKS_MAX, .zeroed = -1 };
        snprintf(p.cluster, sizeof p.cluster,
                 "version: 1\nhosts: [{count: 3}]\nevents:\n  - freeze: {ranks: all, from: 1 ms}\n");
        uint64_t overdue = counts->seen[OVERDUE];
        assert_true(run_apart(&p));
        assert_int_equal(counts->seen[OVERDUE], overdue + 1);
    }
}

/* A worker that was killed in a sum still heard its own server's good-bye, and was logged as done. */
static void test_killed_in_a_sum(void **unused) {
    (void)unused;
    for (uint64_t at = 1; at <= 12; at++) {
        plan p = { .seed = at, .workers = 1, .tables = 1, .clocks = 9, .loses = true, .leaves = { -1 } };
        p.table[0] = (table_plan){ .topology = "allreduce", .consistency = "bsp", .exact = true, .zeroed = -1 };
        snprintf(p.cluster, sizeof p.cluster, "version: 1\nhosts: [{count: 1}]\ncost: {clock: 1 ms}\nevents:\n"
                 "  - kill: {ranks: 0, at: %d ms}\n", (int)at);
        assert_true(run_apart(&p));
    }
}

/* A worker that left the job applied a sum that had failed, from memory that no longer existed. */
static void test_a_sum_that_failed(void **unused) {
    (void)unused;
    for (int sparse = 0; sparse < 2; sparse++)
        for (int late = 0; late < 2; late++) {
            plan p = { .seed = 1, .workers = 3, .tables = 1, .clocks = 9, .loses = true, .leaves = { -1, -1, -1 } };
            p.drawn = UINT64_C(1) << FROZEN;
            p.table[0] = (table_plan){ .topology = "allreduce", .consistency = late ? "bounded-delay:2" : "bsp",
                                       .bound = 2 * late, .exact = !late, .sparse = sparse, .zeroed = -1 };
            snprintf(p.cluster, sizeof p.cluster, "version: 1\nhosts: [{count: 3}]\ncost: {clock: 1 ms}\nevents:\n"
                     "  - freeze: {ranks: 0, from: 3.5 ms}\n");
            assert_true(run_apart(&p));
        }
}

/* A server said who is slowest just before the end of that worker's clock reached it, and the doctor took that for the
 * state of things: workers that waited for a sum, and one that waited for its turn, seemed to wait for each other. */
static void test_what_a_server_said_too_early(void **unused) {
    int64_t failed = 0;
    (void)unused;
    forced_policy = 0;
    while (strcmp(policy_name(forced_policy), "sequential") != 0) forced_policy++;
    for (uint64_t seed = 1; seed <= 40; seed++) failed += !run_seed(seed);
    forced_policy = -1;
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_schedules), cmocka_unit_test(test_kinds),
                                        cmocka_unit_test(test_lost_last_answers),
                                        cmocka_unit_test(test_replicas_beside_served_tables),
                                        cmocka_unit_test(test_all_frozen), cmocka_unit_test(test_killed_in_a_sum),
                                        cmocka_unit_test(test_a_sum_that_failed),
                                        cmocka_unit_test(test_what_a_server_said_too_early) };
    const struct CMUnitTest replay[] = { cmocka_unit_test(test_schedules) };
    void                   *module, *entry; /* loaded once here, not by each process */
    plait_error             err;
    if (pli_module_open("sim", "plait_transport_module", &module, &entry, &err) < 0) return 1;
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pli_doctor_haste = 200;
    if (counts == MAP_FAILED) return 1;
    return getenv("PLAIT_SEED") != NULL ? cmocka_run_group_tests(replay, NULL, NULL)
                                        : cmocka_run_group_tests(tests, NULL, NULL);
}
