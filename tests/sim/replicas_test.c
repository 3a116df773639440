/* Seeded jobs with two replicas of each shard, or three, over simulated ranks: the code that ships, in virtual time.
 * One rank is killed, any rank at any instant, and with three replicas another at that instant or soon after; besides,
 * ranks are slow or frozen for a while, links are cut and heal, messages come late, twice or never.
 *
 * Each seed is run twice, each time in a process of its own (SimGrid takes one platform a process): first without
 * faults, which gives the model, and then with faults.
 *     bsp    every worker that ends must read exactly the values that the model ends with, to the bit. The table's rule
 *            is adam, its sums are exact, and a gradient depends on the values at its clock's start.
 *     else   worker v adds 2^c to its own column in clock c, so a value is the set of the clocks that it contains. At
 *            the end it contains all clocks of a living worker; of a dead worker it contains those that were
 *            acknowledged to it and at most the next.
 * In some seeds the table belongs to a group, and a second one to another group, so each worker may die between the
 * clocks of the two. The audit also proves each run from its event log. If the death comes before all ranks have the
 * job, the run ends for all survivors.
 *
 * Two moments are so short that a random instant seldom hits them: while the job is created, and while it is left. The
 * seeds for these note when the moment is, in a run without the death, and then put the death there, several times.
 *
 * To replay a failing seed, set PLAIT_SEED=seed; PLAIT_EVENTS=file keeps the log. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <plait/table.h>

#include "sim/apart.h"
#include "table/table.h"
#include "table/witness.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* there actors are threads, and slow */
enum { RUNS = 12, RUNS_FULL = 100, MOMENTS = 2, MOMENTS_FULL = 20 };
#else
enum { RUNS = 120, RUNS_FULL = 1200, MOMENTS = 10, MOMENTS_FULL = 200 };
#endif
enum { WORKERS_MAX = 4, RANKS_MAX = 7, ROWS = 520, ITEMS = 5, TABLES = 2, CLOCKS = 10 };
enum { CLUSTER_BYTES = 2048 };
enum { DEATHS = 8 /* deaths in a moment */ };
#define MS UINT64_C(1000000)

typedef enum moment { ANY, CREATING, LEAVING } moment;

typedef struct plan {
    uint64_t    seed;
    const char *consistency, *filter;
    int32_t     workers, servers, victim, replicas, fellow; /* fellow: dies, too; -1: nobody */
    bool        bsp, keyed, sparse, faults, kills, grouped;
    moment      moment;
    char        cluster[CLUSTER_BYTES];
    size_t      length;
} plan;

/* Shared by the processes of a seed; the counts at the end are of all seeds. */
typedef struct board {
    double  model[TABLES][ITEMS * WORKERS_MAX];
    int64_t acknowledged[WORKERS_MAX], stood_in;
    int32_t with_table, ended;
    bool    has_table[WORKERS_MAX]; /* false: a death came before and the worker has failed, so the others have one
                                     * more */
    char    why[400];
    uint64_t begin_ns[RANKS_MAX], end_ns[RANKS_MAX]; /* when the plan's moment is, for each rank */
    int64_t well, early, killed, two, proven, stands, cuts, frozen, lossy; /* counts of all seeds */
} board;

static board *shown;

static struct {
    plan    p;
    witness heard;
    bool    listening;
} run;

/* --- a seed ------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(plan *p, const char *format, ...) {
    va_list list;
    va_start(list, format);
    p->length += (size_t)vsnprintf(p->cluster + p->length, CLUSTER_BYTES - p->length, format, list);
    va_end(list);
}

static void say_faults(plan *p, pli_random *r) {
    const uint64_t ranks = (uint64_t)(p->workers + p->servers);
    say(p, "events:\n");
    if (pli_random_below(r, 8) > 0) {
        const double at = 2 + pli_random_f64(r) * 50;
        say(p, "  - kill: {ranks: %d, at: %.3f ms}\n", p->victim, at);
        if (p->fellow >= 0)
            say(p, "  - kill: {ranks: %d, at: %.3f ms}\n", p->fellow,
                at + (pli_random_below(r, 2) == 0 ? 0 : pli_random_f64(r) * 8));
        shown->killed++;
        shown->two += p->fellow >= 0;
        p->kills = true;
    }
    if (pli_random_below(r, 3) == 0)
        say(p, "  - slow: {ranks: %d, factor: %.1f}\n", (int)pli_random_below(r, ranks), 1.5 + pli_random_f64(r) * 5);
    if (pli_random_below(r, 3) == 0) {
        const double from = pli_random_f64(r) * 30;
        say(p, "  - link: {ranks: %d, factor: 0, from: %.3f ms, until: %.3f ms}\n", (int)pli_random_below(r, ranks),
            from, from + 1 + pli_random_f64(r) * 30);
        shown->cuts++;
    }
    if (pli_random_below(r, 4) == 0) {
        const double from = pli_random_f64(r) * 30;
        say(p, "  - freeze: {ranks: %d, from: %.3f ms, until: %.3f ms}\n", (int)pli_random_below(r, ranks), from,
            from + 1 + pli_random_f64(r) * 40);
        shown->frozen++;
    }
    if (pli_random_below(r, 2) == 0) {
        say(p, "  - messages: {delay: %.2f ms, delayed: %.2f, doubled: %.2f, dropped: %.2f}\n",
            0.1 + pli_random_f64(r) * 8, 0.01 + pli_random_f64(r) * 0.3, 0.01 + pli_random_f64(r) * 0.3,
            pli_random_below(r, 2) == 0 ? 0 : pli_random_f64(r) * 0.15);
        shown->lossy++;
    }
    say(p, "  - jitter: {sigma: 0.3}\n");
}

static void draw_job(pli_random *r, uint64_t seed, bool faults, plan *p) {
    enum { POLICIES = 14 };
    static const char *const policies[POLICIES] = { "bsp",    "bsp",     "bsp",          "bsp",    "bsp",
                                                    "bsp",    "ssp:1",   "async",        "essp:1", "bounded-delay:2",
                                                    "vap:40", "asp:1:4", "downpour:2:2", "sequential" };
    static const char *const filters[] = { "", "", "key-cache", "key-cache,key-delta,zstd" };
    *p = (plan){ .seed = seed, .consistency = policies[pli_random_below(r, POLICIES)], .faults = faults };
    p->filter = filters[pli_random_below(r, 4)];
    p->bsp = strcmp(p->consistency, "bsp") == 0;
    p->workers = 2 + (int32_t)pli_random_below(r, WORKERS_MAX - 1);
    p->servers = pli_random_below(r, 2) == 0 ? 0 : 2 + (int32_t)pli_random_below(r, 2);
    p->victim = (int32_t)pli_random_below(r, (uint64_t)(p->workers + p->servers));
    const uint64_t shape = pli_random_below(r, 3);
    p->keyed = shape == 1;
    p->sparse = shape == 2;
    p->grouped = p->workers > 2 && p->servers == 0 && pli_random_below(r, 2) == 0;
}

/* Three replicas need three ranks with shards, and a group three members. Somebody must be left to work. */
static void draw_three(plan *p) {
    pli_random r = pli_random_at(p->seed, PLI_RANDOM_SCHEDULE, 12, 0);
    p->replicas = 2;
    p->fellow = -1;
    if (pli_random_below(&r, 3) > 0) return;
    p->replicas = 3;
    if (p->servers == 0) p->workers = 4;
    else p->servers = 3;
    p->victim = (int32_t)pli_random_below(&r, (uint64_t)(p->workers + p->servers));
    if (pli_random_below(&r, 4) == 0) return;
    do p->fellow = (int32_t)pli_random_below(&r, (uint64_t)(p->workers + p->servers));
    while (p->fellow == p->victim || (p->workers == 2 && p->fellow < 2 && p->victim < 2));
}

static void draw(uint64_t seed, bool faults, plan *p) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 9, 0);
    draw_job(&r, seed, faults, p);
    draw_three(p);
    say(p, "version: 1\nhosts: [{count: %d}]\ncost: {clock: 2 ms, notice: 4 ms}\n", p->workers + p->servers);
    if (faults) say_faults(p, &r);
}

/* Death number 0 means no death; the others come at instants of the moment, which a run without a death has noted.
 * In all these runs the same messages are lost up to the death. */
static void draw_moment(uint64_t seed, moment when, int32_t death, plan *p) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 10, 0);
    draw_job(&r, seed, death > 0, p);
    draw_three(p);
    p->fellow = -1;
    const int32_t ranks = p->workers + p->servers;
    uint64_t      from = UINT64_MAX, until = 0;
    p->moment = when;
    p->kills = death > 0;
    say(p, "version: 1\nhosts: [{count: %d, latency: 1 ms}]\n", ranks);
    say(p, "cost: {clock: 1 ms, notice: 4 ms, resend: 5 ms}\nevents:\n");
    say(p, "  - jitter: {sigma: 0.3}\n");
    if (when == LEAVING || pli_random_below(&r, 2) == 0)
        say(p, "  - messages: {delay: 5 ms, delayed: 0.2, doubled: 0.1, dropped: %.2f}\n", pli_random_f64(&r) * 0.2);
    if (death == 0) return;
    for (int32_t k = 0; k < ranks; k++) {
        if (shown->begin_ns[k] < from) from = shown->begin_ns[k];
        if (shown->end_ns[k] > until) until = shown->end_ns[k];
    }
    r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 11, (uint64_t)death);
    p->victim = (int32_t)pli_random_below(&r, (uint64_t)ranks);
    say(p, "  - kill: {ranks: %d, at: %.6f ms}\n", p->victim,
        ((double)from + pli_random_f64(&r) * (double)(until - from)) * 1e-6);
}

/* --- a worker ----------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 1, 2))) static plait_status wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (shown->why[0] == '\0') vsnprintf(shown->why, sizeof shown->why, format, list);
    va_end(list);
    return PLAIT_EDIVERGED;
}

static uint64_t key_of(int item) { return (uint64_t)(item * (ROWS / ITEMS)); }

static plait_status read_all(plait_table *table, double values[ITEMS * WORKERS_MAX]) {
    uint64_t keys[ITEMS];
    for (int i = 0; i < ITEMS; i++) keys[i] = key_of(i);
    return plait_table_get(table, ITEMS, keys, values);
}

/* Groups: all workers but the last, and all but the first. Without groups there is one table. */
static bool has(int t, int32_t v) { return run.p.grouped ? v != (t == 0 ? run.p.workers - 1 : 0) : t == 0; }

/* Adds worker v's part to item i. */
static plait_status add_part(plait_table *table, int32_t v, int i, int64_t clock, const double *values) {
    double         delta[WORKERS_MAX] = { 0 };
    const uint64_t key = key_of(i);
    if (!run.p.bsp) delta[v] = (double)(UINT64_C(1) << clock);
    for (int32_t j = 0; run.p.bsp && j < run.p.workers; j++)
        delta[j] = 0.3 * values[i * run.p.workers + j] + (double)((v + 1) * (i + 2) - 3 * j) / (double)(clock + 3);
    return plait_table_inc(table, 1, &key, delta, run.p.bsp ? 1 : 0);
}

static plait_status add(plait_table *table, int t, int32_t me, int64_t clock, bool inherited) {
    double values[ITEMS * WORKERS_MAX];
    PLI_TRY(read_all(table, values));
    for (int32_t v = 0; v < run.p.workers; v++)
        for (int i = 0; i < ITEMS; i++) {
            bool mine = inherited ? plait_table_inherits(table, v, (uint64_t)i) != 0
                                  : plait_table_holder(table, v, (uint64_t)i) == me;
            if (has(t, v) && (run.p.bsp ? mine : v == me)) PLI_TRY(add_part(table, v, i, clock, values));
        }
    return PLAIT_OK;
}

static plait_status check_end(plait_table *table, int t, int32_t me) {
    double values[ITEMS * WORKERS_MAX] = { 0 };
    PLI_TRY(read_all(table, values));
    if (run.p.bsp && !run.p.faults) memcpy(shown->model[t], values, sizeof values);
    if (run.p.bsp)
        return memcmp(shown->model[t], values, sizeof values) == 0 ? PLAIT_OK
                                                                   : wrong("rank %d ends with other bits", me);
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < run.p.workers; v++) {
            const uint64_t seen = (uint64_t)values[i * run.p.workers + v];
            const bool     lives = v != run.p.victim && v != run.p.fellow && shown->has_table[v];
            const int64_t  sure = !has(t, v) ? 0 : lives ? CLOCKS : shown->acknowledged[v];
            const uint64_t least = (UINT64_C(1) << sure) - 1, most = sure < CLOCKS ? least * 2 + 1 : least;
            /* under downpour:2:2 the last clock that was acknowledged may be gone with what it had gathered */
            const bool gathered = !lives && sure > 0 && strncmp(run.p.consistency, "downpour", 8) == 0;
            if (seen != least && (seen != most || !has(t, v)) && !(gathered && seen == least / 2))
                return wrong("rank %d ends with %llx of rank %d, to which %lld clocks were acknowledged", me,
                             (unsigned long long)seen, v, (long long)sure);
        }
    return PLAIT_OK;
}

static plait_status make_table(plait_job *job, int t, plait_table **table_out) {
    static const char *const names[TABLES] = { "t", "u" };
    plait_comm              *comm = plait_job_comm(job);
    int32_t                  n = 0, members[WORKERS_MAX];
    plait_table_opts         o;
    plait_table_opts_init(&o);
    for (int32_t v = 0; v < run.p.workers; v++)
        if (has(t, v)) members[n++] = v;
    if (run.p.grouped) PLI_TRY(plait_group_create(comm, names[t], n, members, &o.group));
    if (!has(t, plait_comm_rank(comm))) return PLAIT_OK;
    o.name = names[t];
    o.type = PLAIT_F64;
    o.rows = run.p.sparse ? 0 : ROWS;
    o.keyed = run.p.keyed;
    o.cols = run.p.workers;
    o.exact = run.p.bsp;
    if (run.p.bsp) {
        o.rule.name = "adam";
        o.rule.learning_rate = 0.05;
    }
    return plait_table_create(job, &o, table_out);
}

static plait_status work(plait_job *job) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    plait_table  *table[TABLES] = { NULL };
    for (int t = 0; t < TABLES; t++)
        if (t == 0 || run.p.grouped) PLI_TRY(make_table(job, t, &table[t]));
    shown->with_table++;
    shown->has_table[me] = true;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        plait_status status;
        bool         again = false;
        do {
            for (int t = 0; t < TABLES; t++)
                if (table[t] != NULL) PLI_TRY(add(table[t], t, me, clock, again));
            shown->stands += again;
            again = true;
        } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
        if (status < 0) return status;
        shown->acknowledged[me]++;
        if (clock == CLOCKS / 2) PLI_TRY(plait_job_barrier(job));
    }
    PLI_TRY(plait_job_barrier(job));
    for (int t = 0; t < TABLES; t++)
        if (table[t] != NULL) PLI_TRY(check_end(table[t], t, me));
    shown->ended++;
    return PLAIT_OK;
}

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

static void note(plait_comm *comm, moment when, uint64_t *at_ns) {
    if (run.p.moment == when && !run.p.kills) at_ns[plait_comm_rank(comm)] = pli_comm_now(comm);
}

static plait_status run_job(plait_comm *comm, plait_status (*as_worker)(plait_job *job)) {
    plait_job     *job = NULL;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.topology = "ps";
    o.consistency = run.p.consistency;
    o.filter = run.p.filter;
    o.replicas = run.p.replicas;
    note(comm, CREATING, shown->begin_ns);
    PLI_TRY(plait_job_create(comm, &o, &job));
    note(comm, CREATING, shown->end_ns);
    plait_status status = pli_comm_is_worker(comm) ? as_worker(job) : PLAIT_OK;
    if (pli_comm_is_worker(comm)) note(comm, LEAVING, shown->begin_ns);
    if (status >= 0) status = plait_job_destroy(&job);
    else pli_job_abandon(&job);
    note(comm, LEAVING, shown->end_ns);
    return status;
}

static plait_status only_meet(plait_job *job) { return plait_job_barrier(job); }

/* If no rank is killed, a second job follows. Its servers take the ports of the first job's; in it no update of the
 * first job may be missing or come up again. */
static plait_status body(plait_comm *comm, void *unused) {
    (void)unused;
    if (!run.listening && !witness_open(&run.heard, plait_comm_size(comm), stamp, comm)) return PLAIT_EIO;
    run.listening = true;
    pli_comm_set_events(comm, witness_sink(&run.heard));
    PLI_TRY(run_job(comm, work));
    pli_comm_set_events(comm, NULL);
    return run.p.kills || run.p.moment != ANY ? PLAIT_OK : run_job(comm, only_meet);
}

/* --- a run, in a process of its own ------------------------------------------------------------------------------- */

static int32_t workers_died(const plan *p) {
    return (p->victim < p->workers) + (p->fellow >= 0 && p->fellow < p->workers);
}

static int run_here(const void *drawn) {
    const plan *p = drawn;
    plait_error err = { 0 };
    char        why[640];
    run.p = *p;
    plait_status status = simulate(p->cluster, p->length, p->workers, p->servers, p->seed, body, &err);
    bool         lost = status == PLAIT_EPEER || status == PLAIT_EMISMATCH; /* or another rank has said that it lost
                                                                             * one */
    bool         early = lost && p->faults && shown->with_table < p->workers;
    shown->early += early;
    if (early && shown->ended > 0) (void)wrong("%d ended well, others did not: %s", shown->ended, err.text);
    if (status < 0 && !early) (void)wrong("%s: %s", plait_status_text(status), err.text);
    if (status >= 0 && shown->ended < p->workers - workers_died(p)) (void)wrong("%d ended", shown->ended);
    if (run.listening && !witness_close(&run.heard, !early && status >= 0, why, sizeof why))
        (void)wrong("the audit: %s", why);
    shown->well += status >= 0 && p->faults;
    return shown->why[0] != '\0';
}

static bool run_apart(const plan *p) {
    memset(shown->acknowledged, 0, sizeof shown->acknowledged);
    memset(shown->has_table, 0, sizeof shown->has_table);
    shown->with_table = shown->ended = 0;
    shown->why[0] = '\0';
    const char *end = run_in_process(run_here, p);
    if (end == NULL) return true;
    print_message("%s%s, %d replicas, %d workers, %d servers, victims %d and %d: %s\n%s\n", p->consistency,
                  p->faults ? "" : " without faults", p->replicas, p->workers, p->servers, p->victim, p->fellow,
                  end[0] != '\0' ? end : shown->why, p->cluster);
    return false;
}

static bool run_seed(uint64_t seed) {
    plan p;
    draw(seed, false, &p);
    if (!run_apart(&p)) return false;
    draw(seed, true, &p);
    return run_apart(&p);
}

static bool run_moment(uint64_t seed, moment when) {
    plan p;
    bool good = true;
    memset(shown->begin_ns, 0xff, sizeof shown->begin_ns);
    memset(shown->end_ns, 0, sizeof shown->end_ns);
    for (int32_t death = 0; good && death <= DEATHS; death++) {
        draw_moment(seed, when, death, &p);
        good = run_apart(&p);
    }
    return good;
}

static void run_moments(moment when, const char *name) {
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_MOMENTS");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? MOMENTS_FULL : MOMENTS, from = 1, failed = 0;
    const int64_t well = shown->well, early = shown->early;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n && failed < 5; i++) {
        const bool good = run_moment((uint64_t)(from + i), when);
        failed += !good;
        if (!good) printf("replay: PLAIT_SEED=%lld %s\n", (long long)(from + i), program_invocation_name);
    }
    printf("%lld seeds, %d deaths each, while the job %s: %lld runs ended well, %lld by the death\n", (long long)n,
           DEATHS, name, (long long)(shown->well - well), (long long)(shown->early - early));
    assert_int_equal(failed, 0);
    if (n >= MOMENTS) assert_true(shown->well > well && (shown->early > early) == (when == CREATING));
}

static void test_a_death_while_a_job_begins_is_the_same_to_all(void **unused) {
    (void)unused;
    run_moments(CREATING, "is created");
}

static void test_who_dies_while_a_job_is_left_is_not_waited_for(void **unused) {
    (void)unused;
    run_moments(LEAVING, "is left");
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS, from = 1, failed = 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n && failed < 5; i++) {
        bool good = run_seed((uint64_t)(from + i));
        failed += !good;
        if (!good) printf("replay: PLAIT_SEED=%lld %s\n", (long long)(from + i), program_invocation_name);
    }
    printf("%lld seeds over sim: %lld ended well, %lld before the table was there; killed %lld, two of them %lld, cut "
           "%lld, frozen %lld, messages late, doubled or lost %lld; stood in %lld times\n",
           (long long)n, (long long)shown->well, (long long)shown->early, (long long)shown->killed,
           (long long)shown->two,
           (long long)shown->cuts, (long long)shown->frozen, (long long)shown->lossy, (long long)shown->stands);
    assert_int_equal(failed, 0);
    if (n >= RUNS) assert_true(shown->stands > 0 && shown->well > n / 2 && shown->cuts > 0 && shown->frozen > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_death_while_a_job_begins_is_the_same_to_all),
        cmocka_unit_test(test_who_dies_while_a_job_is_left_is_not_waited_for),
        cmocka_unit_test(test_any_one_may_die),
    };
    void                   *module, *entry; /* loaded once here, not by each process */
    plait_error             err;
    if (pli_module_open("sim", "plait_transport_module", &module, &entry, &err) < 0) return 1;
    shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shown == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
