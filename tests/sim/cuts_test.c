/* Whole jobs with two replicas of each shard, or whose workers agree on the sums of their tables (allreduce), and whose
 * ranks are cut into two sides: the code that ships, in virtual time. Every split of four ranks is there, under three
 * policies and with such sums, and heals before anybody is suspected, while the vote may be under way, or never;
 * besides, servers apart from workers, messages that are late or lost, and a rank that is killed on top. Each
 * job runs in a process of its own (SimGrid takes one platform a process).
 *
 * Worker v adds 2^c to its own column in clock c, so a value is the set of the clocks that it contains: lost or
 * doubled, it shows. The test keeps its own ledger of what was acknowledged to whom, and when:
 *   - who ends well is on one side, whatever heals when;
 *   - the side with a majority of the ranks, a replica of every shard and a worker ends well, unless the cut heals;
 *     nobody else does if it does not heal, and all do if it heals within the patience;
 *   - while the cut holds, only a side with a majority acknowledges anything, and that not before the patience is over
 *     (unless a side has both replicas of every shard: it may, and does not go on without a majority);
 *   - who ends well reads all clocks of a worker that ends well. Of another it reads each clock that was acknowledged
 *     to it and at most the next one; under bsp, where the others stand in, all clocks, once.
 * The audit proves each job from its events.
 *
 * To replay a failing job, set PLAIT_SEED=number. */
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
#include "sim/clock_sets.h"
#include "table/table.h"
#include "table/witness.h"

enum { SPLITS = 7 /* of four ranks with shards */, POLICIES = sizeof policies / sizeof *policies, HEALS = 3 };
enum { EVERY = SPLITS * POLICIES * HEALS };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* there actors are threads, and slow */
enum { DRAWN = 10, DRAWN_FULL = 200 };
#else
enum { DRAWN = 60, DRAWN_FULL = 2000 };
#endif
enum { WORKERS_MAX = 4, CLOCKS = 10 };
#define MS          UINT64_C(1000000)
#define PATIENCE_NS (20 * MS)
#define SLACK_NS    (4 * MS) /* what was sent before the cut may still be taken */
#define FULL        ((UINT64_C(1) << CLOCKS) - 1)

typedef enum heal { BEFORE, MEANWHILE, NEVER } heal;

typedef struct plan {
    uint64_t    seed;
    policy      kind;
    bool        lossy;
    int32_t     workers, servers, killed; /* -1: nobody */
    uint32_t    side;                     /* bit r: rank r is on the second side */
    heal        heals;
    uint64_t    from_ns, until_ns;
    text        cluster;
} plan;

typedef struct board {
    int64_t  acknowledged[WORKERS_MAX];
    uint64_t seen[WORKERS_MAX][ITEMS][WORKERS_MAX]; /* by each worker that has ended */
    uint64_t began_ns;                              /* when the last worker had its table */
    int32_t  with_table;
    uint64_t late_ns[WORKERS_MAX], early_ns[WORKERS_MAX]; /* the last acknowledgement while the cut held; the first of
                                                           * these after the slack */
    bool     well[WORKERS_MAX];
    char     why[400];
    int64_t  all, majorities, nobody, early; /* counts of all jobs */
} board;

static board *shown;

static struct {
    plan    p;
    witness heard;
    bool    listening;
} run;

__attribute__((format(printf, 1, 2))) static plait_status wrong(const char *format, ...) {
    va_list list;
    va_start(list, format);
    if (shown->why[0] == '\0') vsnprintf(shown->why, sizeof shown->why, format, list);
    va_end(list);
    return PLAIT_EDIVERGED;
}

/* --- a job -------------------------------------------------------------------------------------------------- */

static int32_t ranks_of(const plan *p) { return p->workers + p->servers; }
static bool    is_second(const plan *p, int32_t r) { return (p->side >> r & 1) != 0; }

static void say_cluster(plan *p, pli_random *r) {
    say(&p->cluster, "version: 1\nracks: [{name: first}, {name: second}]\nhosts:\n");
    for (int32_t k = 0; k < ranks_of(p); k++)
        say(&p->cluster, "  - {count: 1, rack: %s}\n", is_second(p, k) ? "second" : "first");
    say(&p->cluster, "cost: {clock: 2 ms, notice: 4 ms, patience: 20 ms, resend: 5 ms}\nevents:\n"
                     "  - jitter: {sigma: 0.2}\n");
    p->from_ns = 8 * MS + pli_random_below(r, 10 * MS);
    p->until_ns = p->heals == BEFORE      ? p->from_ns + PATIENCE_NS - 1 - pli_random_below(r, 18 * MS)
                  : p->heals == MEANWHILE ? p->from_ns + PATIENCE_NS + pli_random_below(r, 12 * MS)
                                          : UINT64_MAX;
    say(&p->cluster, "  - link: {rack: second, factor: 0, from: %llu ns", (unsigned long long)p->from_ns);
    if (p->heals != NEVER) say(&p->cluster, ", until: %llu ns", (unsigned long long)p->until_ns);
    say(&p->cluster, "}\n");
    if (p->killed >= 0)
        say(&p->cluster, "  - kill: {ranks: %d, at: %llu ns}\n", p->killed,
            (unsigned long long)(6 * MS + pli_random_below(r, 40 * MS)));
    if (p->lossy) say(&p->cluster, "  - messages: {delay: 1 ms, delayed: 0.1, doubled: 0.1, dropped: 0.05}\n");
    /* A long cut long after the job, so that a short one meets a membership machine for each rank as well. */
    if (p->heals == BEFORE) say(&p->cluster, "  - link: {rack: second, factor: 0, from: 3000 s}\n");
}

static void plan_init(uint64_t seed, plan *p, pli_random *r) {
    *r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 12, 0);
    *p = (plan){ .seed = seed, .killed = -1, .workers = 4 };
}

/* Number n of every split, policy and moment of healing. Rank 0 is on the first side. */
static void plan_every(int64_t n, plan *p) {
    pli_random r;
    plan_init((uint64_t)n + 1, p, &r);
    p->side = (uint32_t)(n % SPLITS + 1) << 1;
    p->kind = policies[(uint64_t)(n / SPLITS % POLICIES)];
    p->heals = (heal)(n / SPLITS / POLICIES);
    say_cluster(p, &r);
}

static void plan_drawn(uint64_t seed, plan *p) {
    pli_random r;
    plan_init(seed, p, &r);
    p->kind = policies[pli_random_below(&r, POLICIES)];
    p->workers = 2 + (int32_t)pli_random_below(&r, 3);
    p->servers = pli_random_below(&r, 3) == 0 || p->kind.sums ? 0 : 2 + (int32_t)pli_random_below(&r, 3);
    do p->side = (uint32_t)pli_random_below(&r, UINT64_C(1) << ranks_of(p)) & ~1u;
    while (p->side == 0);
    p->heals = (heal)pli_random_below(&r, HEALS);
    p->lossy = pli_random_below(&r, 3) == 0;
    if (pli_random_below(&r, 3) == 0) p->killed = (int32_t)pli_random_below(&r, (uint64_t)ranks_of(p));
    say_cluster(p, &r);
}

static bool has_majority(const plan *p, bool second) {
    int32_t n = 0;
    for (int32_t r = 0; r < ranks_of(p); r++) n += is_second(p, r) == second;
    return 2 * n > ranks_of(p);
}

/* May the side go on? It needs a majority, a replica of every shard, and a worker. Of sums only the first server's
 * shards count, which are empty, and carry the run's collectives. */
static bool may_go_on(const plan *p, bool second) {
    const int32_t first = p->servers > 0 ? p->workers : 0, holders = p->servers > 0 ? p->servers : p->workers;
    int32_t       workers = 0;
    bool          all = true;
    for (int32_t w = 0; w < p->workers; w++) workers += is_second(p, w) == second;
    for (int32_t s = 0; s < (p->kind.sums ? 1 : holders); s++)
        all = all && (is_second(p, first + s) == second || is_second(p, first + (s + 1) % holders) == second);
    return all && workers > 0 && has_majority(p, second);
}

/* --- a worker ----------------------------------------------------------------------------------------------- */

static void acknowledge(plait_comm *comm, int32_t me) {
    const uint64_t now_ns = pli_comm_now(comm);
    shown->acknowledged[me]++;
    if (now_ns < run.p.from_ns + SLACK_NS || now_ns >= run.p.until_ns) return;
    if (shown->early_ns[me] == 0) shown->early_ns[me] = now_ns;
    shown->late_ns[me] = now_ns;
}

static plait_status work(plait_job *job) {
    plait_comm      *comm = plait_job_comm(job);
    const int32_t    me = plait_comm_rank(comm);
    double           values[ITEMS * SETS_WORKERS] = { 0 };
    plait_table     *table = NULL;
    PLI_TRY(make_sets(job, run.p.workers, &table));
    shown->with_table++;
    shown->began_ns = pli_comm_now(comm);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        plait_status status;
        bool         again = false;
        do {
            PLI_TRY(add_clock(table, &run.p.kind, run.p.workers, me, clock, again));
            again = true;
        } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
        if (status < 0) return status;
        acknowledge(comm, me);
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(read_sets(table, values));
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < run.p.workers; v++) shown->seen[me][i][v] = (uint64_t)values[i * run.p.workers + v];
    shown->well[me] = true;
    return PLAIT_OK;
}

static uint64_t stamp(void *comm) { return pli_comm_stamp(comm); }

static plait_status body(plait_comm *comm, void *unused) {
    plait_job     *job = NULL;
    plait_job_opts o;
    (void)unused;
    if (!run.listening && !witness_open(&run.heard, plait_comm_size(comm), stamp, comm)) return PLAIT_EIO;
    run.listening = true;
    pli_comm_set_events(comm, witness_sink(&run.heard));
    plait_job_opts_init(&o);
    o.topology = run.p.kind.topology;
    o.consistency = run.p.kind.consistency;
    o.replicas = 2;
    PLI_TRY(plait_job_create(comm, &o, &job));
    plait_status status = pli_comm_is_worker(comm) ? work(job) : PLAIT_OK;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

/* --- the ledger ---------------------------------------------------------------------------------------------- */

static void check_seen(const plan *p, int32_t reader) {
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < p->workers; v++) {
            const uint64_t seen = shown->seen[reader][i][v];
            const uint64_t least = p->kind.bsp ? FULL : (UINT64_C(1) << shown->acknowledged[v]) - 1;
            const uint64_t most = least < FULL ? least * 2 + 1 : FULL;
            if (seen != least && (shown->well[v] || seen != most))
                (void)wrong("rank %d ends with clocks %llx of rank %d, to which %lld were acknowledged", reader,
                            (unsigned long long)seen, v, (long long)shown->acknowledged[v]);
        }
}

/* Has the side both replicas of every shard? Then it needs the other side for nothing, except as fellow workers. */
static bool has_all(const plan *p, bool second) {
    bool all = !p->kind.sums;
    for (int32_t r = p->servers > 0 ? p->workers : 0; r < ranks_of(p); r++) all = all && is_second(p, r) == second;
    return all;
}

/* Only the side that goes on acknowledges while the cut holds. Plans that lose messages are left out, since a message
 * that is sent again says late what was so before the cut; so are those that kill a rank, which is not waited for. */
static void check_times(const plan *p) {
    for (int32_t v = 0; v < p->workers && !p->lossy && p->killed < 0; v++) {
        if (shown->late_ns[v] == 0 || has_all(p, is_second(p, v))) continue;
        if (!has_majority(p, is_second(p, v)))
            (void)wrong("a clock of rank %d was acknowledged at %llu ns, on a side without a majority", v,
                        (unsigned long long)shown->late_ns[v]);
        if (shown->early_ns[v] < p->from_ns + PATIENCE_NS)
            (void)wrong("a clock of rank %d was acknowledged at %llu ns, before the vote", v,
                        (unsigned long long)shown->early_ns[v]);
    }
}

static void check_ledger(const plan *p, plait_status status, const plait_error *err) {
    int32_t    well[2] = { 0, 0 };
    const bool goes_on = may_go_on(p, true) || may_go_on(p, false);
    for (int32_t v = 0; v < p->workers; v++) well[is_second(p, v)] += shown->well[v];
    const int32_t n = well[0] + well[1];
    if (shown->began_ns >= p->from_ns || shown->with_table < p->workers) {
        shown->early++; /* the job was not there yet: all end, or all go on */
        return;
    }
    if (n == 0 && status != PLAIT_EPEER) (void)wrong("nobody ends well, but: %s", err->text);
    if (n > 0 && status < 0) (void)wrong("%d end well, but: %s", n, err->text);
    for (int32_t v = 0; v < p->workers; v++)
        if (shown->well[v]) check_seen(p, v);
    check_times(p);
    shown->all += n == p->workers;
    shown->majorities += n > 0 && n < p->workers;
    shown->nobody += n == 0;
    if (p->heals == NEVER && well[0] > 0 && well[1] > 0) (void)wrong("both sides end well");
    if (p->killed >= 0) return; /* with one rank less another side, or none, may have what it takes */
    if (p->heals == BEFORE && n < p->workers) (void)wrong("the cut was short, but only %d end well: %s", n, err->text);
    if (p->heals == NEVER && goes_on != (n > 0)) (void)wrong("%d end well: %s", n, err->text);
    if (n > 0 && n < p->workers && well[0] > 0 && well[1] > 0) (void)wrong("%d of two sides end well", n);
}

/* --- a run, in a process of its own ----------------------------------------------------------------------- */

static int run_here(const void *drawn) {
    const plan *p = drawn;
    plait_error err = { 0 };
    char        why[640];
    run.p = *p;
    const plait_status status =
        simulate(p->cluster.bytes, p->cluster.length, p->workers, p->servers, p->seed, body, &err);
    check_ledger(p, status, &err);
    if (run.listening && !witness_close(&run.heard, status >= 0, why, sizeof why)) (void)wrong("the audit: %s", why);
    return shown->why[0] != '\0';
}

static bool run_apart(const plan *p) {
    board *b = shown;
    *b = (board){ .all = b->all, .majorities = b->majorities, .nobody = b->nobody, .early = b->early };
    const char *end = run_in_process(run_here, p);
    if (end == NULL) return true;
    print_message("seed %llu, %s %s, %d workers, %d servers: %s\n%s\n", (unsigned long long)p->seed, p->kind.topology,
                  p->kind.consistency, p->workers, p->servers,
                  end[0] != '\0' ? end : b->why, p->cluster.bytes);
    return false;
}

static void tell(int64_t n, const board *before) {
    printf("%lld jobs over cut links: %lld went on whole, %lld with a majority, %lld not at all; in %lld the cut came "
           "before the job\n",
           (long long)n, (long long)(shown->all - before->all), (long long)(shown->majorities - before->majorities),
           (long long)(shown->nobody - before->nobody), (long long)(shown->early - before->early));
}

static void test_every_split_of_four(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED");
    int64_t     failed = 0;
    const board before = *shown;
    for (int64_t n = 0; n < EVERY && failed < 5; n++) {
        plan p;
        if (seed != NULL && atoll(seed) != n + 1) continue;
        plan_every(n, &p);
        failed += !run_apart(&p);
    }
    tell(EVERY, &before);
    assert_int_equal(failed, 0);
    if (seed != NULL) return;
    assert_true(shown->all - before.all >= EVERY / HEALS && shown->early == before.early);
    assert_true(shown->majorities - before.majorities >= POLICIES * 4 && shown->nobody - before.nobody >= POLICIES * 3);
}

static void test_drawn_jobs(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? DRAWN_FULL : DRAWN, from = 1, failed = 0;
    const board before = *shown;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) from = atoll(seed), n = 1;
    for (int64_t i = 0; i < n && failed < 5; i++) {
        plan p;
        plan_drawn((uint64_t)(from + i), &p);
        failed += !run_apart(&p);
    }
    tell(n, &before);
    assert_int_equal(failed, 0);
    if (n >= DRAWN) assert_true(shown->majorities > before.majorities && shown->nobody > before.nobody);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_split_of_four),
        cmocka_unit_test(test_drawn_jobs),
    };
    void       *module, *entry; /* loaded once here, not by each process */
    plait_error err;
    if (pli_module_open("sim", "plait_transport_module", &module, &entry, &err) < 0) return 1;
    shown = mmap(NULL, sizeof *shown, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shown == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
