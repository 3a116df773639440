/* Jobs whose mirrors are averaged with neighbours (gossip), with replicas: any worker dies at some moment, with it or
 * later perhaps a second one, and the others go on.
 *
 * To `counts`, worker v's item h adds 1 in each clock, whoever holds it. Behind a barrier everybody reads the average
 * of all mirrors, which is the number of clocks if every update is there once: under rounds, whoever has died, as what
 * went into the last round lies with neighbours. (Under local-sgd what a dead mirror had moved since the last round may
 * be missing; and where two die at once in exp, what only they had. Under async what a dead mirror held is missing.)
 * `model` is ruled by sgd and passes through the
 * filters; of those with a loss something may be missing, and nothing counts twice.
 *
 * At the end come clocks without updates: by rounds alone each worker's own mirror must come near the average of all,
 * so the graph of those who live is connected.
 *
 * On threads, worker `killer` strikes at one place of its clock, wherever the victim is; on sim the cluster file says
 * when, and messages may be lost, doubled and delayed. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
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

#include "base/base.h"
#include "comm/comm.h"
#include "table/table.h"
#include "witness.h"

enum { WORKERS_MAX = 9, ITEMS = 3, CLOCKS = 12, QUIET = 60, VALUES = ITEMS * WORKERS_MAX, RUNS = 120, RUNS_FULL = 2000,
       SIM_RUNS = 60, SIM_RUNS_FULL = 1000, HANG_S = 60 };

typedef struct plan {
    uint64_t    seed;
    const char *transport, *topology, *filter; /* filter NULL: none */
    int32_t     workers, spares, victim, killer, second; /* -1: nobody */
    int64_t     at, gap, period; /* at: the killer's clock, -1: it kills nobody; period of local-sgd, 0: bsp */
    int         where;
    bool        keyed, lossy, async;
    char        cluster[600];
} plan;

typedef struct shown {
    atomic_int ended, created, stood;
    double     left[VALUES]; /* as the first that has ended reads counts */
    bool       ends;
    char       why[300];
} shown;

static plan                p;
static shown              *run;
static plait_comm *_Atomic comms[WORKERS_MAX];
static witness             heard;
static bool                listening;

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

/* --- a worker ----------------------------------------------------------------------------------------------------- */

static plait_status add(plait_table *const *table, int32_t me, int64_t clock, bool inherited) {
    double seen[WORKERS_MAX];
    for (int32_t v = 0; clock < CLOCKS && v < p.workers - p.spares; v++)
        for (uint64_t i = 0; i < ITEMS; i++) {
            double     delta[WORKERS_MAX] = { 0 };
            const bool mine = inherited ? plait_table_inherits(table[0], v, i) != 0
                                        : plait_table_holder(table[0], v, i) == me;
            if (!mine) continue;
            delta[v] = 1;
            PLI_TRY(plait_table_get(table[0], 1, &i, seen));
            PLI_TRY(plait_table_inc(table[0], 1, &i, delta, 0));
            PLI_TRY(plait_table_inc(table[1], 1, &i, delta, v == 0 && i == 0)); /* one item has the whole batch */
        }
    return PLAIT_OK;
}

static bool dies(int32_t v) { return v == p.victim || v == p.second; }

/* May something be missing of what worker v's items have added? */
static bool may_lack(int32_t v) {
    const bool at_once = p.second >= 0 && (p.at < 0 || p.gap < 2);
    if (p.async) return true;
    if (p.period > 0) return dies(v) || (at_once && strcmp(p.topology, "gossip:exp") == 0);
    return at_once && strcmp(p.topology, "gossip:exp") == 0;
}

static const double TOLERANCE = 1e-6;

static plait_status check_counts(plait_table *table, int32_t me, int64_t clock) {
    double         values[VALUES];
    const double   due = (double)(clock < CLOCKS ? clock : CLOCKS);
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int32_t n = 0; n < ITEMS * p.workers; n++) {
        const int32_t v = n % p.workers;
        const double  want = v < p.workers - p.spares ? due : 0, slack = may_lack(v) ? 2.0 * due : 0;
        if (!(values[n] <= want + slack + TOLERANCE && values[n] >= want - slack - TOLERANCE))
            return wrong("rank %d in clock %lld: item %d of worker %d is %.9g, due %g", me, (long long)clock,
                         n / p.workers, v, values[n], want);
    }
    return PLAIT_OK;
}

/* What filters keep back may be missing. */
static plait_status check_model(plait_table *table, int32_t me) {
    double         values[VALUES], sum = 0;
    const double   due = (double)(CLOCKS * ITEMS * (p.workers - p.spares));
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int32_t n = 0; n < ITEMS * p.workers; n++) sum -= values[n];
    /* without rounds the average of those who live counts, which is less or more by what a dead one had */
    const double most = due * (p.async ? 3 : p.second >= 0 ? 1.8 : 1.4);
    const double least = due * (p.async ? 0 : p.second >= 0 ? 0.2 : 0.4);
    if (sum <= most && sum >= least) return PLAIT_OK;
    return wrong("rank %d ends with %g in all, where %g were added", me, sum, due);
}

/* Without a barrier: the worker's own mirror, beside the average that all have read before. */
static plait_status check_mirror(plait_table *table, int32_t me, const double average[VALUES]) {
    double         own[VALUES];
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(plait_table_get(table, ITEMS, keys, own));
    for (int32_t n = 0; p.period == 0 && !p.async && n < ITEMS * p.workers; n++)
        if (!(fabs(own[n] - average[n]) < 0.01 * CLOCKS))
            return wrong("rank %d: value %d of its mirror is %g, of the average %g", me, n, own[n], average[n]);
    return PLAIT_OK;
}

/* The same bits on all workers, as all have the sum of the same step. */
static plait_status as_the_others(int32_t me, const double values[VALUES]) {
    static atomic_flag one = ATOMIC_FLAG_INIT;
    while (atomic_flag_test_and_set(&one)) {}
    if (!run->ends) memcpy(run->left, values, sizeof run->left);
    run->ends = true;
    const bool same = memcmp(run->left, values, sizeof run->left) == 0;
    atomic_flag_clear(&one);
    return same ? PLAIT_OK : wrong("rank %d reads other bits than another", me);
}

static plait_status make_tables(plait_job *job, plait_table **table) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "counts";
    o.type = PLAIT_F64;
    o.rows = 40;
    o.cols = p.workers;
    o.keyed = p.keyed;
    o.filter = p.filter != NULL && !p.lossy ? p.filter : NULL;
    PLI_TRY(plait_table_create(job, &o, &table[0]));
    o.name = "model";
    o.filter = p.filter;
    o.rule.name = "sgd";
    o.rule.learning_rate = 1;
    return plait_table_create(job, &o, &table[1]);
}

static plait_status end_clock(plait_job *job, plait_table *const *table, int32_t me, int64_t clock) {
    plait_status status;
    bool         again = false;
    strike(me, clock, 0);
    do {
        PLI_TRY(add(table, me, clock, again));
        strike(me, clock, 1);
        if (again) atomic_fetch_add(&run->stood, 1);
        again = true;
    } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
    if (status >= 0) strike(me, clock, 2);
    return status;
}

static plait_status work(plait_job *job) {
    const int32_t  me = plait_comm_rank(plait_job_comm(job));
    plait_table   *table[2];
    double         average[VALUES] = { 0 };
    const uint64_t keys[ITEMS] = { 0, 1, 2 };
    PLI_TRY(make_tables(job, table));
    PLI_TRY(plait_job_barrier(job));
    atomic_fetch_add(&run->created, 1);
    for (int64_t clock = 0; clock < CLOCKS + QUIET; clock++) {
        PLI_TRY(end_clock(job, table, me, clock));
        if (clock % 4 != (int64_t)(p.seed % 4) || clock > CLOCKS) continue;
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(check_counts(table[0], me, clock + 1));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(check_counts(table[0], me, CLOCKS));
    PLI_TRY(check_model(table[1], me));
    PLI_TRY(plait_table_get(table[0], ITEMS, keys, average));
    PLI_TRY(as_the_others(me, average));
    PLI_TRY(end_clock(job, table, me, CLOCKS + QUIET));
    PLI_TRY(check_mirror(table[0], me, average));
    atomic_fetch_add(&run->ended, 1);
    return PLAIT_OK;
}

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

static plait_status body(plait_comm *comm, void *unused) {
    plait_job     *job = NULL;
    plait_job_opts o;
    char           consistency[32] = "bsp";
    const bool     sim = strcmp(p.transport, "sim") == 0;
    (void)unused;
    if (sim && !listening && !witness_open(&heard, p.workers, stamp, comm)) return PLAIT_EIO;
    if (sim) listening = true;
    if (listening) pli_comm_set_events(comm, witness_sink(&heard));
    plait_job_opts_init(&o);
    o.topology = p.topology;
    if (p.period > 0) snprintf(consistency, sizeof consistency, "local-sgd:%d", (int)p.period);
    if (p.async) snprintf(consistency, sizeof consistency, "async");
    o.consistency = consistency;
    o.replicas = 2;
    o.spares = p.spares;
    PLI_TRY(plait_job_create(comm, &o, &job));
    if (!sim) atomic_store_explicit(&comms[plait_comm_rank(comm)], comm, memory_order_release);
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
    opts.timeout_ns = UINT64_C(20000000000);
    for (int32_t w = 0; w < WORKERS_MAX; w++) atomic_store(&comms[w], NULL);
    atomic_store(&run->ended, 0);
    atomic_store(&run->created, 0);
    run->why[0] = '\0';
    run->ends = false;
    return plait_comm_run(&opts, body, NULL, err);
}

static void tell(const char *text) {
    print_message("PLAIT_SEED=%llu on %s: %s, %d workers (%d spares), filter %s%s, period %d, rank %d dies at %lld.%d "
                  "of rank %d, then %d, %d later: %s\n%s",
                  (unsigned long long)p.seed, p.transport, p.topology, p.workers, p.spares,
                  p.filter != NULL ? p.filter : "none", p.keyed ? ", keyed" : "", p.async ? -1 : (int)p.period,
                  p.victim,
                  (long long)p.at, p.where, p.killer, p.second, (int)p.gap, text, p.cluster);
}

static void draw(pli_random *r) {
    static const char *const graphs[] = { "gossip:ring", "gossip:torus", "gossip:exp" };
    static const char *const filters[] = { NULL, NULL, "zstd", "fixed8", "topk:0.3", "fp16" };
    const int kind = (int)pli_random_below(r, 6);
    p.topology = graphs[pli_random_below(r, 3)];
    p.filter = filters[kind];
    p.lossy = kind > 2;
    p.workers = 2 + (int32_t)pli_random_below(r, WORKERS_MAX - 1);
    p.spares = pli_random_below(r, 4) == 0 ? 1 + (int32_t)pli_random_below(r, (uint64_t)p.workers - 1) : 0;
    p.keyed = pli_random_below(r, 2) == 0;
    p.period = pli_random_below(r, 4) == 0 ? 2 + (int64_t)pli_random_below(r, 3) : 0;
    p.victim = p.killer = p.second = -1;
    p.at = -1;
    p.async = p.period == 0 && pli_random_below(r, 3) == 0;
}

static int64_t runs_of(int64_t few, int64_t many, uint64_t *first) {
    const char *seed = getenv("PLAIT_SEED"), *schedules = getenv("PLAIT_SCHEDULES");
    *first = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    if (schedules != NULL) many = few = atoll(schedules);
    return seed != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? many : few;
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void draw_deaths(pli_random *r) {
    p.victim = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    do p.killer = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.killer == p.victim);
    p.at = (int64_t)pli_random_below(r, CLOCKS);
    p.where = (int)pli_random_below(r, 3);
    if (p.workers < 3 || pli_random_below(r, 2) == 0) return;
    p.gap = (int64_t)pli_random_below(r, 4);
    do p.second = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.second == p.victim || p.second == p.killer);
}

static bool run_threads(void) {
    plait_error err = { 0 };
    char        why[640];
    const int   died = (p.victim >= 0) + (p.second >= 0);
    assert_true(witness_open(&heard, p.workers, NULL, NULL));
    listening = true;
    if (live(NULL, &err) < 0) {
        tell(run->why[0] != '\0' ? run->why : err.text);
        return false;
    }
    if (!witness_close(&heard, true, why, sizeof why)) {
        tell(why);
        return false;
    }
    if (atomic_load(&run->ended) < p.workers - died) tell("too few have ended");
    return atomic_load(&run->ended) >= p.workers - died;
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    uint64_t      first;
    const int64_t runs = runs_of(RUNS, RUNS_FULL, &first);
    atomic_store(&run->stood, 0);
    for (int64_t i = 0; i < runs; i++) {
        p = (plan){ .seed = first + (uint64_t)i, .transport = "threads" };
        pli_random r = pli_random_at(p.seed, PLI_RANDOM_SCHEDULE, 41, 0);
        draw(&r);
        draw_deaths(&r);
        assert_true(run_threads());
    }
    print_message("%lld jobs on threads, in which workers stood in %d times\n", (long long)runs,
                  atomic_load(&run->stood));
    if (runs >= RUNS) assert_true(atomic_load(&run->stood) > 0);
}

/* --- sim ---------------------------------------------------------------------------------------------------------- */

static void say_cluster(pli_random *r) {
    size_t at = (size_t)snprintf(p.cluster, sizeof p.cluster,
                                 "version: 1\nhosts: [{count: %d, cores: 1}]\n"
                                 "cost: {clock: 2 ms, notice: 4 ms, resend: 5 ms}\n"
                                 "events:\n  - jitter: {sigma: 0.3}\n",
                                 p.workers);
    if (pli_random_below(r, 2) == 0)
        at += (size_t)snprintf(p.cluster + at, sizeof p.cluster - at,
                               "  - messages: {delay: %.2f ms, delayed: 0.2, doubled: 0.1, dropped: %.2f}\n",
                               0.1 + 5 * pli_random_f64(r), pli_random_f64(r) * 0.15);
    p.victim = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    double when = 2 + 40 * pli_random_f64(r);
    at += (size_t)snprintf(p.cluster + at, sizeof p.cluster - at, "  - kill: {ranks: %d, at: %.4f ms}\n", p.victim,
                           when);
    if (p.workers < 3 || pli_random_below(r, 2) == 0) return;
    do p.second = (int32_t)pli_random_below(r, (uint64_t)p.workers);
    while (p.second == p.victim);
    when += pli_random_below(r, 2) == 0 ? 3 * pli_random_f64(r) : 20 + 20 * pli_random_f64(r);
    (void)snprintf(p.cluster + at, sizeof p.cluster - at, "  - kill: {ranks: %d, at: %.4f ms}\n", p.second, when);
}

static int run_here(void) {
    plait_error err = { 0 };
    char        path[32], why[640];
    const int   fd = memfd_create("cluster", 0), died = (p.victim >= 0) + (p.second >= 0);
    if (write(fd, p.cluster, strlen(p.cluster)) != (ssize_t)strlen(p.cluster)) return 1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const plait_status status = live(path, &err);
    const bool         early = status == PLAIT_EPEER && atomic_load(&run->created) < p.workers; /* not all were in it */
    if (listening && !witness_close(&heard, !early && status >= 0, why, sizeof why)) (void)wrong("the audit: %s", why);
    if (early) return 3;
    if (status < 0) (void)wrong("%s: %s", plait_status_text(status), err.text);
    if (status >= 0 && atomic_load(&run->ended) < p.workers - died) (void)wrong("too few have ended");
    return run->why[0] != '\0';
}

/* 0: it ended well; 3: by a death before all had the job; else it went wrong. */
static int run_apart(void) {
    int status = 0;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* not cmocka's handler, which would go on with the next test */
        alarm(HANG_S);
        _exit(run_here());
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3)) return WEXITSTATUS(status);
    tell(WIFSIGNALED(status) ? (WTERMSIG(status) == SIGALRM ? "hangs" : "crashed") : run->why);
    return 1;
}

static void test_any_one_may_die_in_simulated_time(void **unused) {
    (void)unused;
    uint64_t      first;
    const int64_t runs = runs_of(SIM_RUNS, SIM_RUNS_FULL, &first);
    int64_t       well = 0;
    atomic_store(&run->stood, 0);
    for (int64_t i = 0; i < runs; i++) {
        p = (plan){ .seed = first + (uint64_t)i, .transport = "sim" };
        pli_random r = pli_random_at(p.seed, PLI_RANDOM_SCHEDULE, 42, 0);
        draw(&r);
        say_cluster(&r);
        const int ended = run_apart();
        assert_true(ended == 0 || ended == 3);
        well += ended == 0;
    }
    print_message("%lld jobs in simulated time, %lld of which went on without the dead; workers stood in %d times\n",
                  (long long)runs, (long long)well, atomic_load(&run->stood));
    if (runs >= SIM_RUNS) assert_true(well > runs / 2 && atomic_load(&run->stood) > 0);
}

int main(int argc, char **argv) {
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) return 1;
    const struct CMUnitTest threads[] = { cmocka_unit_test(test_any_one_may_die) };
    const struct CMUnitTest sim[] = { cmocka_unit_test(test_any_one_may_die_in_simulated_time) };
    return argc > 1 && strcmp(argv[1], "sim") == 0 ? cmocka_run_group_tests(sim, NULL, NULL)
                                                   : cmocka_run_group_tests(threads, NULL, NULL);
}
