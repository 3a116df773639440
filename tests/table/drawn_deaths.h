/* drawn_deaths.h - what tests share whose jobs go on without the dead: runs drawn from seeds, in which one rank dies or
 * two, on threads and in simulated time, each proven by the audit.
 *
 * On threads, worker `killer` strikes at one place of its clock, wherever the victim is. In simulated time the cluster
 * file says when, and messages may be lost, doubled and delayed; each run is a process of its own (sim/apart.h).
 *
 * Before it includes this, the test says in constants: WORKERS_MAX; CLOCKS of a run; RUNS, RUNS_FULL on threads and
 * SIM_RUNS, SIM_RUNS_FULL; STREAM and the next one, of random numbers; WHOLE_FIRST: each run is first one in
 * which nobody dies; GAPS: clocks between two deaths, less than that; TWO_UNTIL: the last clock in which a first of two
 * may die; WINDOW_MS of simulated time in which the first one dies. PLAN_MORE and SHOWN_MORE are the test's own fields
 * of a plan, and of what a run shows. */
#ifndef PLI_TESTS_TABLE_DRAWN_DEATHS_H
#define PLI_TESTS_TABLE_DRAWN_DEATHS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "comm/comm.h"
#include "sim/apart.h"
#include "table/table.h"
#include "witness.h"

typedef struct plan {
    uint64_t    seed;
    const char *transport;
    int32_t     workers, spares, victim, killer, second; /* -1: nobody */
    int64_t     at, gap; /* the killer's clock, -1: it kills nobody; the second dies so many clocks later */
    int         where;   /* in the killer's clock */
    char        cluster[600];
    PLAN_MORE
} plan;

/* Of a run; that of a simulated one lies in memory that its process shares with this one. */
typedef struct shown {
    atomic_int ended, created, stood;
    bool       ends, early; /* early: it ended by a death before all had the job */
    char       why[300];
    SHOWN_MORE
} shown;

static plan                p;
static shown              *run;
static plait_comm *_Atomic comms[WORKERS_MAX];
static witness             heard; /* the event log of a run that is not of processes */
static bool                listening;

/* --- what the test gives ------------------------------------------------------------------------------------------ */

/* The settings of a run in which nobody dies yet. */
static void         draw(pli_random *r);
static bool         may_lose_two(void);
/* How many places there are in a clock at which the killer may strike. */
static int          places(void);
/* Of a simulated host. */
static int          cores(void);
/* What a run needs beyond `live`, before it begins. */
static void         prepare(plait_comm_opts *opts);
static plait_status body(plait_comm *comm, void *unused);
/* NULL: all is there; else what is wrong. Asked behind a run on threads. */
static const char  *lacks(void);
static void         tell(const char *text);

/* --- deaths ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static plait_status wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (run->why[0] == '\0') vsnprintf(run->why, sizeof run->why, format, list);
    va_end(list);
    return PLAIT_EDIVERGED;
}

static void kill_rank(int32_t rank) {
    plait_comm *victim = atomic_load_explicit(&comms[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
}

static void strike(int32_t me, int64_t clock, int where) {
    if (p.at < 0 || me != p.killer || where != p.where) return;
    if (clock == p.at) kill_rank(p.victim);
    if (clock == p.at + p.gap && p.second >= 0) kill_rank(p.second);
}

static inline bool dies(int32_t rank) { return rank == p.victim || rank == p.second; }

static void draw_deaths(pli_random *r) {
    p.victim = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    do p.killer = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.killer == p.victim);
    p.at = (int64_t)pli_random_below(r, CLOCKS);
    p.where = (int)pli_random_below(r, (uint64_t)places());
    if (!may_lose_two() || p.at > TWO_UNTIL || pli_random_below(r, 2) == 0) return;
    p.gap = (int64_t)pli_random_below(r, GAPS);
    do p.second = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.second == p.victim || p.second == p.killer);
}

static void say_cluster(pli_random *r, int cores, bool deaths) {
    size_t at = (size_t)snprintf(p.cluster, sizeof p.cluster,
                                 "version: 1\nhosts: [{count: %d, cores: %d}]\n"
                                 "cost: {clock: 2 ms, notice: 4 ms, resend: 5 ms}\n"
                                 "events:\n  - jitter: {sigma: 0.3}\n",
                                 p.workers, cores);
    if (pli_random_below(r, 2) == 0)
        at += (size_t)snprintf(p.cluster + at, sizeof p.cluster - at,
                               "  - messages: {delay: %.2f ms, delayed: 0.2, doubled: 0.1, dropped: %.2f}\n",
                               0.1 + 5 * pli_random_f64(r), pli_random_f64(r) * 0.15);
    if (!deaths) return;
    p.victim = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    double when = 2 + WINDOW_MS * pli_random_f64(r);
    at += (size_t)snprintf(p.cluster + at, sizeof p.cluster - at, "  - kill: {ranks: %d, at: %.4f ms}\n", p.victim,
                           when);
    if (!may_lose_two() || pli_random_below(r, 2) == 0) return;
    do p.second = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.second == p.victim);
    when += pli_random_below(r, 2) == 0 ? 3 * pli_random_f64(r) : 20 + 20 * pli_random_f64(r);
    (void)snprintf(p.cluster + at, sizeof p.cluster - at, "  - kill: {ranks: %d, at: %.4f ms}\n", p.second, when);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

/* A worker begins: what happens is heard. In simulated time actors take turns; on threads the log is there before. */
static bool listen_to(plait_comm *comm) {
    if (strcmp(p.transport, "sim") == 0 && !listening) {
        if (!witness_open(&heard, p.workers, stamp, comm)) return false;
        listening = true;
    }
    if (listening) pli_comm_set_events(comm, witness_sink(&heard));
    return true;
}

/* From here on the worker may be struck. */
static void is_there(plait_comm *comm) {
    if (strcmp(p.transport, "threads") == 0)
        atomic_store_explicit(&comms[plait_comm_rank(comm)], comm, memory_order_release);
}

/* A worker's part of the run. What it does itself ends with a job that is destroyed, or abandoned as a dead process
 * leaves it. */
static plait_status run_job(plait_comm *comm, const plait_job_opts *opts, plait_status (*work)(plait_job *job)) {
    plait_job *job = NULL;
    if (!listen_to(comm)) return PLAIT_EIO;
    PLI_TRY(plait_job_create(comm, opts, &job));
    is_there(comm);
    const plait_status status = work(job);
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

static plait_status live(const char *cluster, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = p.workers;
    opts.transport = p.transport;
    opts.seed = p.seed;
    opts.threads = 1;
    opts.cluster = cluster;
    opts.timeout_ns = UINT64_C(60000000000);
    for (int32_t w = 0; w < WORKERS_MAX; w++) atomic_store(&comms[w], NULL);
    atomic_store(&run->ended, 0);
    atomic_store(&run->created, 0);
    run->why[0] = '\0';
    run->ends = false;
    prepare(&opts);
    return plait_comm_run(&opts, body, NULL, err);
}

static int32_t survivors(void) { return p.workers - (p.victim >= 0) - (p.second >= 0); }

static int64_t runs_of(int64_t few, int64_t many, uint64_t *first) {
    const char *seed = getenv("PLAIT_SEED"), *schedules = getenv("PLAIT_SCHEDULES");
    *first = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    if (schedules != NULL) many = few = atoll(schedules);
    return seed != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? many : few;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static bool run_threads(void) {
    plait_error err = { 0 };
    char        why[640];
    const char *lacking = NULL;
    assert_true(witness_open(&heard, p.workers, NULL, NULL));
    listening = true;
    if (live(NULL, &err) < 0) lacking = run->why[0] != '\0' ? run->why : err.text;
    else if (!witness_close(&heard, true, why, sizeof why)) lacking = why;
    else if (atomic_load(&run->ended) < survivors()) lacking = "too few have ended";
    else lacking = lacks();
    if (lacking != NULL) tell(lacking);
    return lacking == NULL;
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    uint64_t      first;
    const int64_t runs = runs_of(RUNS, RUNS_FULL, &first);
    atomic_store(&run->stood, 0);
    for (int64_t i = 0; i < runs; i++) {
        p = (plan){ .seed = first + (uint64_t)i, .transport = "threads", .victim = -1, .killer = -1, .second = -1,
                    .at = -1 };
        pli_random r = pli_random_at(p.seed, PLI_RANDOM_SCHEDULE, STREAM, 0);
        draw(&r);
        if (WHOLE_FIRST) assert_true(run_threads());
        draw_deaths(&r);
        assert_true(run_threads());
    }
    print_message("%lld jobs on threads, in which workers stood in %d times\n", (long long)runs,
                  atomic_load(&run->stood));
    if (runs >= RUNS) assert_true(atomic_load(&run->stood) > 0);
}

/* --- simulated time ----------------------------------------------------------------------------------------------- */

/* Of two deaths, one may come when some have the job and others do not. */
static int run_here(const void *unused) {
    plait_error err = { 0 };
    char        path[32], why[640];
    const int   fd = memfd_create("cluster", 0);
    (void)unused;
    if (write(fd, p.cluster, strlen(p.cluster)) != (ssize_t)strlen(p.cluster)) return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const plait_status status = live(path, &err);
    const bool         early = status == PLAIT_EPEER && atomic_load(&run->created) < p.workers; /* not all were in it */
    if (listening && !witness_close(&heard, !early && status >= 0, why, sizeof why)) (void)wrong("the audit: %s", why);
    run->early = early && (atomic_load(&run->ended) == 0 || p.second >= 0);
    if (run->early) return 0;
    if (status < 0) (void)wrong("%s: %s", plait_status_text(status), err.text);
    if (status >= 0 && atomic_load(&run->ended) < survivors()) (void)wrong("too few have ended");
    return run->why[0] != '\0';
}

/* *early_out: it ended by a death before all had the job. */
static bool run_apart(bool *early_out) {
    run->early = false;
    const char *what = run_in_process(run_here, NULL);
    *early_out = run->early;
    if (what != NULL) tell(what[0] != '\0' ? what : run->why);
    return what == NULL;
}

static void test_any_one_may_die_in_simulated_time(void **unused) {
    (void)unused;
    uint64_t      first;
    const int64_t runs = runs_of(SIM_RUNS, SIM_RUNS_FULL, &first);
    int64_t       well = 0;
    bool          early;
    atomic_store(&run->stood, 0);
    for (int64_t i = 0; i < runs; i++) {
        p = (plan){ .seed = first + (uint64_t)i, .transport = "sim", .victim = -1, .killer = -1, .second = -1,
                    .at = -1 };
        pli_random r = pli_random_at(p.seed, PLI_RANDOM_SCHEDULE, STREAM + 1, 0), again;
        draw(&r);
        again = r;
        if (WHOLE_FIRST) {
            say_cluster(&again, cores(), false);
            assert_true(run_apart(&early) && !early);
        }
        say_cluster(&r, cores(), true);
        assert_true(run_apart(&early));
        well += !early;
    }
    print_message("%lld jobs in simulated time, %lld of which went on without the dead; workers stood in %d times\n",
                  (long long)runs, (long long)well, atomic_load(&run->stood));
    if (runs >= SIM_RUNS) assert_true(well > runs / 2 && atomic_load(&run->stood) > 0);
}

/* The tests: those in simulated time if the first argument is sim. */
static int main_of_deaths(int argc, char **argv) {
    const struct CMUnitTest threads[] = { cmocka_unit_test(test_any_one_may_die) };
    const struct CMUnitTest sim[] = { cmocka_unit_test(test_any_one_may_die_in_simulated_time) };
    return argc > 1 && strcmp(argv[1], "sim") == 0 ? cmocka_run_group_tests(sim, NULL, NULL)
                                                   : cmocka_run_group_tests(threads, NULL, NULL);
}

/* Memory that the processes of simulated runs share with this one. false: there is none. */
static bool show_runs(void) {
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return run != MAP_FAILED;
}

#endif
