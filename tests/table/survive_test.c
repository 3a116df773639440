/* Jobs with two replicas of each shard, by the public calls, on ranks that are threads: any one rank dies at some
 * moment of another's (with three replicas: any two), and the others end with what a run in which nobody died ends
 * with. The schedules of replicas_test.c are of the bare machines; here are ports, waits, threads, the end of the job.
 *
 * Worker v's item h (home v) adds 2^c to column v of row h in clock c, whoever holds it. A spare has no items. Some
 * clocks later, when all shards must have two replicas again, a second rank dies.
 *
 * Each job is judged a second time, from its event log alone, by the audit.
 *
 * As `test_table_survive processes SEED` it is one rank of such a job, of many more clocks (an item adds 1 in each),
 * and the victim is killed by SIGKILL at an instant of its own: tests/table/killed.sh. PLAIT_EVENTS=file: each rank
 * writes an event log, file.RANK. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/table.h>

#include "table/table.h"
#include "life.h"
#include "mortal.h"
#include "witness.h"

enum { RANKS_MAX = 7, ROWS = 600, ITEMS = 7, CLOCKS = 12, RUNS = 140, RUNS_FULL = 1400 };

typedef struct story {
    uint64_t             seed;
    const char          *consistency, *transport, *filter;
    const char          *beside; /* consistency of a second table, which applies at once; NULL: there is none */
    int32_t              workers, servers, spares, victim, killer;
    int64_t              at;    /* the killer's clock */
    int32_t              replicas; /* 0: two */
    bool                 together; /* the second dies with the first */
    int32_t              second;    /* dies, too; -1: nobody                                        */
    int64_t              second_at; /* in that clock, after a collective; so all servers' logs have gone on since */
    int                  where; /* in it */
    int                  keyed, sparse, ruled, grouped; /* grouped: the table belongs to a group, of all workers */
    int64_t              clocks;
    bool                 counts; /* an item adds 1 a clock */
    _Atomic uint64_t     longest_ns; /* of this process's clocks */
    plait_comm *_Atomic  comm[RANKS_MAX]; /* release, pairs with the killer's acquire */
    atomic_int           ended, stood; /* stood: how often PLAIT_STAND_IN was answered */
    plait_status (*work)(struct story *s, plait_job *job); /* of a worker */
    const pli_event_sink *sink;                            /* NULL: there is no event log */
    long pause_ns;                                         /* of a worker before each clock */
    long life_ns; /* of the victim's process since the job's tables are there; 0: it dies otherwise */
} story;

static uint64_t key_of(int item) { return (uint64_t)(item * (ROWS / ITEMS)); }

static void kill_rank(story *s, int32_t rank) {
    plait_comm *victim = atomic_load_explicit(&s->comm[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
}

static void strike(story *s, plait_job *job, int64_t clock, int where) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    if (me != s->killer || clock != s->at || where != s->where) return;
    kill_rank(s, s->victim);
    if (s->together) kill_rank(s, s->second);
}

/* Once a clock has ended and a collective is over since the first death, every server has told another of it. */
static plait_status strike_again(story *s, plait_job *job, int64_t clock) {
    if (s->second_at != clock || s->together) return PLAIT_OK;
    PLI_TRY(plait_comm_barrier(plait_job_comm(job)));
    if (plait_comm_rank(plait_job_comm(job)) == s->killer) kill_rank(s, s->second);
    return PLAIT_OK;
}

static uint64_t sum_below(const story *s, int32_t v, int64_t clock) {
    if (v >= s->workers - s->spares) return 0;
    return s->counts ? (uint64_t)clock : (UINT64_C(1) << clock) - 1;
}

static plait_status tell_value(const story *s, int item, int32_t v, int64_t clock, uint64_t seen) {
    print_message("seed %llu: item %d of worker %d in clock %lld: %llx\n", (unsigned long long)s->seed, item, v,
                  (long long)clock, (unsigned long long)seen);
    return PLAIT_EMISMATCH;
}

static plait_status check(const story *s, plait_table *table, bool second, int64_t clock, bool last) {
    double   values[ITEMS * RANKS_MAX];
    uint64_t keys[ITEMS];
    bool     exact = strcmp(s->consistency, "bsp") == 0 && !second, ruled = s->ruled && !second;
    for (int i = 0; i < ITEMS; i++) keys[i] = key_of(i);
    PLI_TRY(plait_table_get(table, ITEMS, keys, values));
    for (int i = 0; i < ITEMS; i++)
        for (int32_t v = 0; v < s->workers; v++) {
            double   value = values[i * s->workers + v];
            uint64_t seen = (uint64_t)(ruled ? -value : value);
            if (exact && seen != sum_below(s, v, clock) && !(clock < s->clocks && seen == sum_below(s, v, clock + 1)))
                return tell_value(s, i, v, clock, seen);
            if (last && v != s->victim && v != s->second && seen != sum_below(s, v, s->clocks))
                return tell_value(s, i, v, clock, seen);
        }
    return PLAIT_OK;
}

static plait_status add(const story *s, int32_t me, plait_table *table, int64_t clock, bool inherited) {
    double   delta[ITEMS * RANKS_MAX] = { 0 };
    uint64_t keys[ITEMS];
    int64_t  n = 0;
    for (int i = 0; i < ITEMS; i++) {
        bool some = false;
        for (int32_t v = 0; v < s->workers - s->spares; v++) {
            const uint64_t item = (uint64_t)i;
            bool mine = inherited ? plait_table_inherits(table, v, item) != 0
                                  : plait_table_holder(table, v, item) == me;
            if (mine) delta[n * s->workers + v] = s->counts ? 1 : (double)(UINT64_C(1) << clock);
            some = some || mine;
        }
        if (some) keys[n++] = key_of(i);
    }
    return n == 0 ? PLAIT_OK : plait_table_inc(table, n, keys, delta, 0);
}

static void note_clock(story *s, uint64_t took_ns) {
    uint64_t longest_ns = atomic_load(&s->longest_ns);
    while (took_ns > longest_ns && !atomic_compare_exchange_weak(&s->longest_ns, &longest_ns, took_ns)) {}
}

static plait_status group_of_all(const story *s, plait_job *job, plait_group **group_out) {
    int32_t all[RANKS_MAX];
    for (int32_t w = 0; w < s->workers; w++) all[w] = w;
    return plait_group_create(plait_job_comm(job), "all", s->workers, all, group_out);
}

static plait_status create_second(const story *s, plait_job *job, plait_group *group, plait_table **table_out) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    *table_out = NULL;
    if (s->beside == NULL) return PLAIT_OK;
    o.name = "u";
    o.type = PLAIT_F64;
    o.rows = ROWS;
    o.cols = s->workers;
    o.consistency = s->beside;
    o.filter = "";
    o.group = group;
    return plait_table_create(job, &o, table_out);
}

static plait_status check_all(const story *s, plait_table *table, plait_table *second, int64_t clock, bool last) {
    PLI_TRY(check(s, table, false, clock, last));
    return second == NULL ? PLAIT_OK : check(s, second, true, clock, last);
}

enum { TAG_BEGUN = 3 };

/* The tables are there: from now on the victim's process has so long to live. Worker 0 tells one that serves only. */
static plait_status tables_are_there(story *s, plait_job *job) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    if (s->life_ns == 0) return PLAIT_OK;
    if (me == s->victim) begin_life(&s->life_ns);
    return me == 0 && s->victim >= s->workers ? plait_comm_send(comm, s->victim, TAG_BEGUN, NULL, 0) : PLAIT_OK;
}

static plait_status serve(story *s, plait_job *job) {
    plait_comm *comm = plait_job_comm(job);
    if (s->life_ns == 0 || plait_comm_rank(comm) != s->victim) return PLAIT_OK;
    PLI_TRY(plait_comm_recv(comm, 0, TAG_BEGUN, NULL, 0, NULL, NULL));
    begin_life(&s->life_ns);
    return PLAIT_OK;
}

static plait_status work(story *s, plait_job *job) {
    plait_table     *table, *second;
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "t";
    o.type = PLAIT_F64;
    o.rows = s->sparse ? 0 : ROWS;
    o.keyed = s->keyed;
    o.cols = s->workers;
    if (s->ruled) {
        o.rule.name = "sgd";
        o.rule.learning_rate = 1;
    }
    if (s->grouped) PLI_TRY(group_of_all(s, job, &o.group));
    PLI_TRY(plait_table_create(job, &o, &table));
    PLI_TRY(create_second(s, job, o.group, &second));
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(tables_are_there(s, job));
    for (int64_t clock = 0; clock < s->clocks; clock++) {
        nanosleep(&(struct timespec){ .tv_nsec = s->pause_ns }, NULL);
        uint64_t     begun_ns = pli_comm_now(plait_job_comm(job));
        plait_status status;
        bool         again = false;
        PLI_TRY(strike_again(s, job, clock));
        strike(s, job, clock, 0);
        do {
            const int32_t me = plait_comm_rank(plait_job_comm(job));
            PLI_TRY(check_all(s, table, second, clock, false));
            PLI_TRY(add(s, me, table, clock, again));
            if (second != NULL) PLI_TRY(add(s, me, second, clock, again));
            strike(s, job, clock, 1);
            if (again) atomic_fetch_add(&s->stood, 1);
            again = true;
        } while ((status = plait_job_clock(job)) == PLAIT_STAND_IN);
        if (status < 0) return status;
        note_clock(s, pli_comm_now(plait_job_comm(job)) - begun_ns);
        strike(s, job, clock, 2);
        if (clock == 5) PLI_TRY(plait_job_barrier(job));
    }
    strike(s, job, s->clocks, 0);
    PLI_TRY(plait_job_barrier(job));
    strike(s, job, s->clocks, 1);
    PLI_TRY(check_all(s, table, second, s->clocks, true));
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static plait_status work_of(void *user, plait_job *job) {
    story *s = user;
    return pli_comm_is_worker(plait_job_comm(job)) ? s->work(s, job) : serve(s, job);
}

static plait_status body(plait_comm *comm, void *user) {
    story         *s = user;
    plait_job_opts o;
    plait_job_opts_init(&o);
    o.consistency = s->consistency;
    o.spares = s->spares;
    o.filter = s->filter;
    o.replicas = s->replicas;
    return run_mortal(comm, &o, s->sink, &s->comm[plait_comm_rank(comm)], work_of, s);
}

static plait_status live(story *s, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = s->workers;
    opts.servers = s->servers;
    opts.transport = s->transport;
    opts.timeout_ns = UINT64_C(60000000000);
    return plait_comm_run(&opts, body, s, err);
}

static void run(story *s) {
    plait_error err = { 0 };
    witness     heard;
    char        why[640];
    assert_true(witness_open(&heard, s->workers + s->servers, NULL, NULL));
    s->sink = witness_sink(&heard);
    plait_status status = live(s, &err);
    int          workers_died = (s->victim < s->workers) + (s->second >= 0 && s->second < s->workers);
    int  ended = atomic_load(&s->ended);
    bool surely = s->at < CLOCKS - 3; /* before the end: who was struck cannot have come to it */
    if (status < 0 || ended < s->workers - workers_died || (workers_died && surely && ended == s->workers))
        fail_msg(
            "seed %llu (%s, %s replicas, %d workers, %d of them spares, %d servers, rank %d at %lld.%d, rank %d at "
            "%lld by %d): %d ended: %s",
            (unsigned long long)s->seed, s->consistency, s->replicas > 2 ? "three" : "two", s->workers, s->spares,
            s->servers, s->victim, (long long)s->at, s->where, s->second, (long long)s->second_at, s->killer, ended,
            err.text);
    if (!witness_close(&heard, true, why, sizeof why))
        fail_msg("seed %llu (%s): the audit: %s", (unsigned long long)s->seed, s->consistency, why);
}

/* A story of its own: so many workers come to its end. */
static void run_well(story *s, int ended) {
    plait_error err = { 0 };
    if (live(s, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(atomic_load(&s->ended), ended);
}

/* Of three ranks that may have shards, which is left with both deaths? */
static void draw_second(story *s, pli_random *r) {
    const int32_t first_holder = s->servers > 0 ? s->workers - s->spares : 0;
    s->second = s->second_at = -1;
    if (s->workers + s->servers - first_holder < 3 || s->at > CLOCKS - 4 || pli_random_below(r, 2) == 0) return;
    s->second_at = s->at + 2;
    do s->second = (int32_t)pli_random_below(r, (uint64_t)(s->workers + s->servers));
    while (s->second == s->victim || s->second == s->killer);
}

/* With three replicas of each shard two ranks may die at once. */
static void draw_three(story *s) {
    pli_random    r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 6, 0);
    const int32_t holders = s->servers > 0 ? s->servers + s->spares : s->workers;
    if (holders < 3 || pli_random_below(&r, 3) == 0) return;
    s->replicas = 3;
    if (pli_random_below(&r, 3) == 0) return;
    s->together = true;
    s->second_at = s->at;
    do s->second = (int32_t)pli_random_below(&r, (uint64_t)(s->workers + s->servers));
    while (s->second == s->victim || s->second == s->killer);
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    enum { POLICIES = 14 };
    static const char *const policies[POLICIES] = {
        "bsp",     "bsp",          "bsp",    "bsp",        "ssp:2",      "async",       "essp:1", "bounded-delay:1",
        "asp:2:3", "downpour:2:3", "vap:64", "vap:9:weak", "sequential", "local-sgd:3",
    };
    static const char *const filters[] = { NULL, "key-cache,zstd", "key-cache,key-delta", "fp16" };
    const char *seed = getenv("PLAIT_SEED");
    int64_t     runs = seed != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? RUNS_FULL : RUNS;
    for (int64_t i = 0; i < runs; i++) {
        story      s = { .seed = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)i + 1, .transport = "threads" };
        pli_random r = pli_random_at(s.seed, PLI_RANDOM_SCHEDULE, 3, 0);
        s.consistency = policies[pli_random_below(&r, POLICIES)];
        s.workers = 2 + (int32_t)pli_random_below(&r, 3);
        s.servers = pli_random_below(&r, 2) == 0 ? 0 : 2 + (int32_t)pli_random_below(&r, 2);
        s.victim = (int32_t)pli_random_below(&r, (uint64_t)(s.workers + s.servers));
        do s.killer = (int32_t)pli_random_below(&r, (uint64_t)s.workers);
        while (s.killer == s.victim);
        s.at = (int64_t)pli_random_below(&r, CLOCKS + 1);
        s.where = (int)pli_random_below(&r, s.at == CLOCKS ? 2 : 3);
        const uint64_t shape = pli_random_below(&r, 3);
        s.clocks = CLOCKS;
        s.work = work;
        s.keyed = shape == 1;
        s.sparse = shape == 2;
        s.spares = pli_random_below(&r, 3) == 0 ? 1 + (int32_t)pli_random_below(&r, (uint64_t)s.workers - 1) : 0;
        draw_second(&s, &r);
        draw_three(&s);
        s.ruled = strcmp(s.consistency, "bsp") == 0 && pli_random_below(&r, 2) == 0;
        s.grouped = s.servers == 0 && pli_random_below(&r, 2) == 0;
        s.filter = filters[pli_random_below(&r, s.ruled ? 4 : 3)]; /* what items add has no rounding error as fp16 */
        const bool beside = strcmp(s.consistency, "bsp") == 0 && pli_random_below(&r, 2) == 0;
        if (beside) s.beside = policies[4 + pli_random_below(&r, POLICIES - 5)]; /* not local-sgd */
        if (getenv("PLAIT_TRACE") != NULL)
            print_message("seed %lld %s %s\n", (long long)s.seed, s.consistency, s.filter != NULL ? s.filter : "");
        run(&s);
    }
}

/* A worker dies in the last clock of a round of averages, which the others then end twice: what their mirrors have
 * moved is given once. */
static void test_a_round_is_given_once(void **unused) {
    (void)unused;
    for (int where = 0; where < 2; where++) {
        story s = { .seed = 1, .transport = "threads", .consistency = "local-sgd:3", .workers = 3, .servers = 2,
                    .victim = 1, .killer = 0, .at = 5, .where = where, .second = -1, .second_at = -1, .work = work,
                    .clocks = CLOCKS };
        run(&s);
        assert_true(atomic_load(&s.stood) > 0);
    }
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static plait_status refused_body(plait_comm *comm, void *user) {
    plait_job     *job = NULL;
    plait_job_opts o = *(const plait_job_opts *)user;
    plait_status   status = plait_job_create(comm, &o, &job);
    if (status < 0) return status;
    return plait_job_destroy(&job);
}

/* The call must have answered code, and its text so. */
static plait_status expect(plait_job *job, plait_status status, plait_status code, const char *says) {
    const char *text = plait_comm_error(plait_job_comm(job))->text;
    if (status == code && strstr(text, says) != NULL) return PLAIT_OK;
    print_message("status %d: %s; expected: %s\n", status, text, says);
    return PLAIT_EMISMATCH;
}

static plait_status create_one(plait_job *job, plait_table **table_out) {
    plait_table_opts o;
    plait_table_opts_init(&o);
    o.name = "w";
    o.type = PLAIT_F64;
    return plait_table_create(job, &o, table_out);
}

/* Leaving. The job goes on. */
static plait_status be_choosy(story *s, plait_job *job) {
    plait_table   *table;
    const uint64_t key = 3;
    double         value = 1;
    PLI_TRY(create_one(job, &table));
    PLI_TRY(expect(job, plait_job_leave(job), PLAIT_EREFUSED, "plait_job_leave with 2 replicas"));
    PLI_TRY(plait_table_inc(table, 1, &key, &value, 0));
    PLI_TRY(plait_job_clock(job));
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(plait_table_get(table, 1, &key, &value));
    if (value != 2) return PLAIT_EMISMATCH;
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static void test_what_copies_do_not_know_is_refused_and_the_job_goes_on(void **unused) {
    (void)unused;
    run_well(&(story){ .workers = 2, .consistency = "async", .work = be_choosy }, 2);
}

/* Between PLAIT_STAND_IN and the clock that it asks for, worker 0 may read and add, and do nothing else. */
static plait_status stand_in_alone(story *s, plait_job *job) {
    plait_table   *table;
    const uint64_t key = 3;
    double         value = 1;
    PLI_TRY(create_one(job, &table));
    PLI_TRY(plait_job_barrier(job));
    if (plait_comm_rank(plait_job_comm(job)) == s->victim) return plait_job_barrier(job); /* nobody comes to it */
    strike(s, job, 0, 0);
    PLI_TRY(plait_table_inc(table, 1, &key, &value, 0));
    if (plait_job_clock(job) != PLAIT_STAND_IN) return PLAIT_EMISMATCH;
    PLI_TRY(expect(job, plait_job_barrier(job), PLAIT_EINVAL, "in which a worker has died; end it by plait_job_clock"));
    PLI_TRY(plait_table_get(table, 1, &key, &value));
    if (value != 0) return PLAIT_EMISMATCH;
    value = 4;
    PLI_TRY(plait_table_inc(table, 1, &key, &value, 0));
    PLI_TRY(plait_job_clock(job));
    PLI_TRY(plait_table_get(table, 1, &key, &value));
    if (value != 5) return PLAIT_EMISMATCH;
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static void test_a_stand_in_must_end_the_clock(void **unused) {
    (void)unused;
    story s = { .workers = 2, .servers = 2, .killer = 0, .victim = 1, .consistency = "bsp", .work = stand_in_alone };
    run_well(&s, 1);
}

/* A collective that workers do not call alike fails on each of them, with nothing changed, and the next goes well. */
static plait_status differ(story *s, plait_job *job) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    int64_t       value = me + 5;
    char          says[160];
    snprintf(says, sizeof says, "rank %d called broadcast of 8 bytes from rank %d where rank %d called", 1 - me, 1 - me,
             me);
    PLI_TRY(expect(job, plait_comm_broadcast(comm, &value, sizeof value, me), PLAIT_EMISMATCH, says));
    if (me == 0) PLI_TRY(expect(job, plait_comm_barrier(comm), PLAIT_EMISMATCH, "rank 1 called allreduce of 1 i64"));
    else PLI_TRY(expect(job, plait_comm_allreduce(comm, &value, 1, PLAIT_I64, PLAIT_SUM), PLAIT_EMISMATCH,
                        "rank 0 called barrier where"));
    if (value != me + 5) return PLAIT_EMISMATCH;
    PLI_TRY(plait_comm_broadcast(comm, &value, sizeof value, 1));
    if (value != 6) return PLAIT_EMISMATCH;
    atomic_fetch_add(&s->ended, 1);
    return PLAIT_OK;
}

static void test_collectives_that_differ(void **unused) {
    (void)unused;
    run_well(&(story){ .workers = 2, .consistency = "bsp", .work = differ }, 2);
}

/* Everybody dies in a job that survives: then nobody has, and the run says who was the first. */
static plait_status die_alone(plait_job *job, void *user) {
    (void)user;
    const plait_error why = { .code = PLAIT_EPEER, .text = "killed by the test" };
    plait_comm       *comm = plait_job_comm(job);
    PLI_TRY(plait_comm_barrier(comm));
    pli_comm_kill(comm, &why);
    return plait_job_barrier(job);
}

static void test_without_a_worker_nobody_survives(void **unused) {
    (void)unused;
    plait_comm_opts opts;
    plait_job_opts  o;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    plait_job_opts_init(&o);
    opts.workers = 3;
    o.topology = "ps";
    o.replicas = 2;
    assert_int_equal(plait_run(&opts, &o, die_alone, NULL, &err), PLAIT_EPEER);
    assert_non_null(strstr(err.text, "killed by the test"));
}

static void test_what_has_no_copies_is_refused_by_name(void **unused) {
    (void)unused;
    static const struct { const char *topology, *consistency, *aggregate, *says; int32_t replicas, workers; } bad[] = {
        { "local", "bsp", NULL, "nearest is ps", 2, 2 },
        { "gossip:ring", "bsp", NULL, "nearest are 2 workers", 2, 1 },
        { "allreduce", "bsp", NULL, "nearest are 2 workers", 2, 1 },
        { "ps", "bsp", "host", "aggregation", 2, 2 },
        { "ps", "bsp", NULL, "three replicas at most", 4, 4 },
        { "ps", "bsp", NULL, "each of the three replicas needs a rank of its own", 3, 2 },
        { "ps", "bsp", NULL, "another rank", 2, 1 },
        { "ps", "bsp", NULL, "expected 1, 2 or 3", -1, 2 },
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        plait_comm_opts opts;
        plait_error     err = { 0 };
        plait_job_opts  o;
        plait_comm_opts_init(&opts);
        plait_job_opts_init(&o);
        opts.workers = bad[i].workers;
        o.topology = bad[i].topology;
        o.consistency = bad[i].consistency;
        o.aggregate = bad[i].aggregate;
        o.replicas = bad[i].replicas;
        assert_true(plait_comm_run(&opts, refused_body, &o, &err) < 0);
        if (strstr(err.text, bad[i].says) == NULL) fail_msg("case %zu: %s", i, err.text);
    }
}

/* --- a rank of a job of processes --------------------------------------------------------------------------------- */

enum { PROCESS_CLOCKS = 600, LIFE_US = 400000, SLOW_NS = 11000000 /* a clock of a run that lasts 7 s at least */ };

static pli_eventlog *process_log; /* of this rank's process */

static plait_status open_log(plait_comm *comm, story *s, pli_eventlog **log_out) {
    const char *path = getenv("PLAIT_EVENTS");
    char        own[300];
    plait_error err = { 0 };
    if (path == NULL) return PLAIT_OK;
    snprintf(own, sizeof own, "%s.%d", path, plait_comm_rank(comm));
    PLI_TRY(pli_eventlog_open(own, plait_comm_size(comm), "survive", NULL, NULL, log_out, &err));
    s->sink = pli_eventlog_sink(*log_out);
    return PLAIT_OK;
}

/* In every fifth job the victim's life begins with the job itself, so that it may end before the tables are there. */
static plait_status process_body(plait_comm *comm, void *user) {
    story     *s = user;
    pli_random r = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, 5, 0);
    s->workers = plait_comm_workers(comm);
    s->victim = (int32_t)pli_random_below(&r, (uint64_t)(s->workers + plait_comm_servers(comm)));
    s->life_ns = 1 + (long)pli_random_below(&r, LIFE_US) * 1000;
    s->killer = -1;
    PLI_TRY(open_log(comm, s, &process_log));
    if (s->seed % 5 == 0 && plait_comm_rank(comm) == s->victim) begin_life(&s->life_ns);
    return body(comm, s);
}

static int run_process(const char *seed, bool slow) {
    story           s = { .seed = strtoull(seed, NULL, 10),
                          .consistency = "bsp",
                          .clocks = PROCESS_CLOCKS,
                          .counts = true,
                          .second = -1,
                          .second_at = -1,
                          .pause_ns = slow ? SLOW_NS : 0,
                          .work = work };
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "mpi";
    opts.servers = s.seed % 2 == 0 ? 2 : 0;
    s.sparse = s.seed % 3 == 0;
    s.keyed = s.seed % 3 == 1;
    s.grouped = s.seed % 4 == 1;
    plait_status status = plait_comm_run(&opts, process_body, &s, &err);
    if (status >= 0) status = pli_eventlog_close(&process_log, &err);
    if (status < 0) fprintf(stderr, "seed %s: %s\n", seed, err.text);
    else if (atomic_load(&s.ended) == 0)
        printf("served well\n");
    else
        printf("ended well, longest clock %.1f ms\n", (double)atomic_load(&s.longest_ns) * 1e-6);
    return status < 0;
}

int main(int argc, char **argv) {
    if (argc >= 3 && strcmp(argv[1], "processes") == 0) return run_process(argv[2], argc > 3);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_one_may_die),
                                        cmocka_unit_test(test_a_round_is_given_once),
                                        cmocka_unit_test(test_what_has_no_copies_is_refused_by_name),
                                        cmocka_unit_test(test_what_copies_do_not_know_is_refused_and_the_job_goes_on),
                                        cmocka_unit_test(test_a_stand_in_must_end_the_clock),
                                        cmocka_unit_test(test_without_a_worker_nobody_survives),
                                        cmocka_unit_test(test_collectives_that_differ) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
