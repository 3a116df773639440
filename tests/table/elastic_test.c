/* Workers that join a job and leave it, by the public calls: on threads 2 -> 4 -> 3 and drawn jobs, some with a death
 * besides; in simulated time 60 -> 70 -> 60. The schedules of rosters_test.c are of the bare machines.
 *
 * The table is ruled by adam and summed exactly, and what an item adds depends on what it reads: so its bits at the end
 * are those of a run with a fixed number of workers only if every clock had every item once. Each job on threads is
 * judged a second time by the audit. As `test_table_elastic sim` it runs the simulated job. */
#include <math.h>
#include <sched.h>
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
#include "comm/world.h"
#include "hang.h"
#include "mortal.h"
#include "table/table.h"
#include "witness.h"

enum { WORKERS_MAX = 70, ITEMS = 140, VALUES = 3 * ITEMS, APART = 10, ROWS = VALUES * APART, CLOCKS_MAX = 60, RUNS = 60,
       RUNS_FULL = 600, HANG_S = 200 };

#define LONG_NS UINT64_C(1500000000) /* the doctor looks at ranks that wait for a quarter of a second */

/* What a worker does: it joins from clock `from` on, and leaves with clock `until`; then perhaps it joins again. */
typedef struct visit {
    int64_t from, until, again; /* -1: never */
} visit;

typedef struct plan {
    const char *transport, *cluster;
    int32_t     workers, slots;
    int64_t     clocks;
    visit       of[WORKERS_MAX];
    int32_t     victim; /* -1: nobody dies */
    int64_t     dies_in;
    uint64_t    move_rate;
    int64_t     long_clock; /* worker 0 computes in it until the others have long been waiting; 0: none */
    int64_t     meets;      /* worker 0 ends the clock before it when all who come with it wait to join; 0: none */
} plan;

/* Of a run; it lies in memory that processes share. */
typedef struct shown {
    float        model[ROWS];         /* each APART-th counts; so many make several shards */
    atomic_llong moved, moved_bytes;  /* by all workers */
    atomic_int   in[CLOCKS_MAX];      /* how many workers have ended each clock */
    atomic_bool  asks[WORKERS_MAX];   /* the worker asks to join, or is about to */
    uint64_t     ends[CLOCKS_MAX];    /* when worker 0 has */
    int32_t      present[CLOCKS_MAX]; /* as worker 0 sees it */
    char         why[300];
} shown;

static plan                  p;
static shown                *run;
static const pli_event_sink *sink;
static _Atomic(plait_comm *) comms[WORKERS_MAX];

static void kill_rank(int32_t rank) {
    plait_comm *victim = atomic_load_explicit(&comms[rank], memory_order_acquire);
    plait_error why = { .code = PLAIT_EPEER, .rank = rank, .text = "killed by the test" };
    if (victim != NULL) pli_comm_kill(victim, &why);
}

/* The table of the model; and one to whose only value each item adds 1, which is zeroed from time to time. */
typedef struct pair {
    plait_table *model, *count;
} pair;

enum { ZEROS = 7 };

/* Whoever is in zeroes, and who has come since the last time knows of that one. */
static plait_status zero_count(plait_job *job, const pair *of) {
    return plait_job_clock_now(job) % ZEROS == 3 ? plait_table_zero(of->count) : PLAIT_OK;
}

/* What all items have added since. */
static plait_status check_count(plait_job *job, const pair *of) {
    const int64_t  clock = plait_job_clock_now(job), since = clock < 3 ? clock : (clock - 3) % ZEROS;
    const uint64_t key = 0;
    float          value;
    PLI_TRY(plait_table_get(of->count, 1, &key, &value));
    if (value == (float)(since * ITEMS)) return PLAIT_OK;
    return pli_fail(pli_comm_error(plait_job_comm(job)), PLAIT_EDIVERGED,
                    "in clock %lld items have added %g in %lld clocks", (long long)clock, (double)value,
                    (long long)since);
}

/* An item adds to three values, of its own bits and of what is there. */
static plait_status add_items(plait_job *job, const pair *of, bool inherited) {
    plait_table *const table = of->model;
    const uint64_t     key = 0;
    const float        one = 1;
    const int32_t              me = plait_comm_rank(plait_job_comm(job));
    const int64_t              clock = plait_job_clock_now(job);
    static _Thread_local float values[ROWS], delta[ROWS];
    PLI_TRY(plait_table_get_range(table, 0, ROWS, values));
    for (int32_t i = 0; i < ITEMS; i++) {
        const int32_t home = i % p.workers;
        if (inherited ? !plait_job_inherits(job, home, (uint64_t)i) : plait_job_holder(job, home, (uint64_t)i) != me)
            continue;
        memset(delta, 0, sizeof delta);
        for (int k = 0; k < 3; k++) {
            pli_random r = pli_random_at((uint64_t)i, PLI_RANDOM_SCHEDULE, (uint64_t)clock, (uint64_t)k);
            const int  at = (i * 3 + k * 97) % VALUES;
            delta[at * APART] += (float)(pli_random_f64(&r) - 0.5) + 0.37f * values[(at * 7 + 1) % VALUES * APART];
        }
        PLI_TRY(plait_table_inc_range(table, 0, ROWS, delta, 1)); /* each by itself: sums of them are exact */
        PLI_TRY(plait_table_inc(of->count, 1, &key, &one, 0));
    }
    return PLAIT_OK;
}

/* The sum of all workers that are in: each finds the others there. */
static plait_status count_all(plait_job *job) {
    int64_t       n = 1;
    const int32_t present = plait_job_present(job);
    PLI_TRY(plait_comm_allreduce(plait_job_comm(job), &n, 1, PLAIT_I64, PLAIT_SUM));
    return n == present || p.victim >= 0 ? PLAIT_OK
                                         : pli_fail(pli_comm_error(plait_job_comm(job)), PLAIT_EMISMATCH,
                                                    "%lld workers came to a sum in clock %lld, %d are in", (long long)n,
                                                    (long long)plait_job_clock_now(job), present);
}

/* A worker that is away holds nobody up: on a busy machine the others would be far ahead of it. Returns when it waits
 * in plait_job_join, so that what it asks has been sent. */
static void wait_for_visitor(int32_t worker) {
    plait_comm *comm = atomic_load_explicit(&comms[worker], memory_order_acquire);
    bool        waits = false;
    while (!atomic_load(&run->asks[worker])) sched_yield();
    while (!waits) {
        sched_yield();
        pthread_mutex_lock(&comm->reason_lock);
        waits = comm->reason != NULL;
        pthread_mutex_unlock(&comm->reason_lock);
    }
}

static plait_status one_clock(plait_job *job, const pair *of, bool leaves) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    const int64_t clock = plait_job_clock_now(job);
    plait_status  status;
    if (me == 0 && p.victim >= 0 && clock == p.dies_in) kill_rank(p.victim);
    const uint64_t begun_ns = pli_comm_now(plait_job_comm(job));
    while (me == 0 && p.long_clock > 0 && clock == p.long_clock &&
           pli_comm_now(plait_job_comm(job)) - begun_ns < LONG_NS)
        continue; /* it computes */
    for (int32_t w = 1; me == 0 && clock + 1 == p.meets && w < p.workers; w++)
        if (p.of[w].from == p.meets) wait_for_visitor(w);
    PLI_TRY(check_count(job, of));
    PLI_TRY(add_items(job, of, false));
    while ((status = leaves ? plait_job_leave(job) : plait_job_clock(job)) == PLAIT_STAND_IN)
        PLI_TRY(add_items(job, of, true));
    if (status < 0) return status;
    atomic_fetch_add(&run->in[clock], 1);
    if (me == 0) run->ends[clock] = pli_comm_now(plait_job_comm(job));
    if (me == 0) run->present[clock] = plait_job_present(job);
    return PLAIT_OK;
}

static plait_status come_and_go(plait_job *job) {
    const int32_t    me = plait_comm_rank(plait_job_comm(job));
    visit            v = p.of[me];
    bool             in = me < p.workers - p.slots;
    pair             of;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "count";
    opts.rows = opts.cols = 1;
    PLI_TRY(plait_table_create(job, &opts, &of.count));
    opts.name = "w";
    opts.rows = ROWS;
    opts.cols = 1;
    opts.rule.name = "adam";
    opts.rule.learning_rate = 0.01;
    PLI_TRY(plait_table_create(job, &opts, &of.model));
    PLI_TRY(plait_comm_barrier(plait_job_comm(job)));
    while (in ? plait_job_clock_now(job) < p.clocks : v.from >= 0) {
        if (!in) {
            atomic_store(&run->asks[me], true);
            const plait_status status = plait_job_join(job, v.from);
            if (status == PLAIT_END) return PLAIT_OK;
            if (status < 0) return status;
            in = true;
        } else {
            const bool leaves = v.until >= 0 && plait_job_clock_now(job) >= v.until;
            PLI_TRY(one_clock(job, &of, leaves));
            if (leaves) v = (visit){ .from = v.again, .until = -1, .again = -1 };
            in = !leaves;
        }
        if (in && plait_job_clock_now(job) % 5 == 0) PLI_TRY(count_all(job)); /* with who has come at this end */
        if (in) PLI_TRY(zero_count(job, &of));
    }
    if (!in) return PLAIT_OK;
    PLI_TRY(plait_job_barrier(job));
    if (me == 0) PLI_TRY(plait_table_get_range(of.model, 0, ROWS, run->model));
    return PLAIT_OK;
}

static plait_status work(void *user, plait_job *job) {
    const plait_status status = come_and_go(job);
    (void)user;
    atomic_fetch_add(&run->moved, plait_job_moved(job));
    atomic_fetch_add(&run->moved_bytes, plait_job_moved_bytes(job));
    return status;
}

static plait_status body(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job_opts_init(&opts);
    opts.exact = 1;
    opts.slots = p.slots;
    opts.move_rate = p.slots > 0 ? p.move_rate : 0;
    opts.logical_servers = p.slots > 0 ? 2 : 0; /* by itself no such table is cut for those who come */
    return run_mortal(comm, &opts, sink, &comms[plait_comm_rank(comm)], work, user);
}

static plait_status live(plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.workers = p.workers;
    opts.transport = p.transport;
    opts.cluster = p.cluster;
    opts.threads = 1;
    memset(run, 0, sizeof *run);
    for (int32_t w = 0; w < WORKERS_MAX; w++) atomic_store(&comms[w], NULL);
    return plait_comm_run(&opts, body, NULL, err);
}

static visit never(void) { return (visit){ -1, -1, -1 }; }

static void fixed(int32_t workers, int64_t clocks) {
    p = (plan){ .transport = p.transport, .cluster = p.cluster, .workers = workers, .clocks = clocks, .victim = -1 };
    for (int32_t w = 0; w < WORKERS_MAX; w++) p.of[w] = never();
}

/* --- threads ------------------------------------------------------------------------------------------------------ */

static void judged(const char *name, const float *model) {
    plait_error err = { 0 };
    char        why[1024];
    witness     heard;
    assert_true(witness_open(&heard, p.workers, NULL, NULL));
    sink = witness_sink(&heard);
    const plait_status status = live(&err);
    sink = NULL;
    if (status < 0 && (p.victim < 0 || err.code != PLAIT_EPEER)) fail_msg("%s: %s", name, err.text);
    if (!witness_close(&heard, true, why, sizeof why)) fail_msg("%s: the audit: %s", name, why);
    if (model != NULL && memcmp(model, run->model, sizeof run->model) != 0) fail_msg("%s: other bits", name);
}

static int by_size(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The longest of worker 0's clocks, by the median one. */
static double longest(void) {
    uint64_t took[CLOCKS_MAX];
    for (int64_t c = 1; c < p.clocks; c++) took[c - 1] = run->ends[c] - run->ends[c - 1];
    qsort(took, (size_t)p.clocks - 1, sizeof *took, by_size);
    return (double)took[p.clocks - 2] / (double)(took[(p.clocks - 1) / 2] + 1);
}

static void test_two_then_four_then_three(void **unused) {
    float model[ROWS];
    (void)unused;
    p.transport = "threads";
    p.cluster = NULL;
    fixed(2, 60);
    judged("2 workers", NULL);
    memcpy(model, run->model, sizeof model);
    assert_int_equal(atomic_load(&run->moved) + atomic_load(&run->moved_bytes), 0);
    fixed(4, 60);
    p.slots = 2;
    p.meets = 20;
    p.of[2] = (visit){ .from = 20, .until = -1, .again = -1 };
    p.of[3] = (visit){ .from = 20, .until = 40, .again = -1 };
    judged("2 -> 4 -> 3 workers", model);
    print_message("threads: %lld shards moved\n", (long long)atomic_load(&run->moved));
    assert_true(atomic_load(&run->moved) > 0);
    assert_int_equal(run->present[18], 2);
    assert_int_equal(run->present[30], 4);
    assert_int_equal(run->present[59], 3);
    assert_int_equal(atomic_load(&run->in[18]), 2);
    assert_int_equal(atomic_load(&run->in[30]), 4);
    assert_int_equal(atomic_load(&run->in[50]), 3);
    print_message("threads: the longest clock took %.1f times the median one\n", longest());
}

static void test_a_worker_with_shards_leaves(void **unused) {
    float model[ROWS];
    (void)unused;
    p.transport = "threads";
    fixed(3, 30);
    judged("3 workers", NULL);
    memcpy(model, run->model, sizeof model);
    p.of[1] = (visit){ .from = -1, .until = 10, .again = -1 };
    judged("one of 3 leaves a job without slots", model);
    assert_int_equal(atomic_load(&run->in[20]), 2);
}

/* Those who wait to join do not wait for each other, however long the clock takes. */
static void test_a_long_clock_is_no_deadlock(void **unused) {
    (void)unused;
    p.transport = "threads";
    fixed(4, 12);
    p.slots = 2;
    p.long_clock = 4;
    p.of[2] = p.of[3] = (visit){ .from = 8, .until = -1, .again = -1 };
    judged("two wait to join while a clock takes long", NULL);
    p.long_clock = 0;
}

static void test_any_come_and_go(void **unused) {
    const char   *full = getenv("PLAIT_TEST_FULL"), *seed = getenv("PLAIT_SEED");
    const int64_t runs = seed != NULL ? 1 : full != NULL ? RUNS_FULL : RUNS;
    static float  model[ROWS];
    (void)unused;
    p.transport = "threads";
    fixed(3, 40);
    judged("a fixed run", NULL);
    memcpy(model, run->model, sizeof model);
    for (int64_t i = 0; i < runs; i++) {
        const uint64_t number = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)i;
        char           name[64];
        pli_random     r = pli_random_at(number, PLI_RANDOM_SCHEDULE, 88, 0);
        fixed(3 + (int32_t)pli_random_below(&r, 4), 40);
        p.slots = (int32_t)pli_random_below(&r, (uint64_t)p.workers - 2);
        for (int32_t w = 2; w < p.workers; w++) {
            visit *v = &p.of[w];
            v->from = w < p.workers - p.slots ? -1 : (int64_t)pli_random_below(&r, 50);
            if (pli_random_below(&r, 2) == 0) v->until = (int64_t)pli_random_below(&r, 40);
            if (p.slots > 0 && pli_random_below(&r, 2) == 0) v->again = (int64_t)pli_random_below(&r, 50);
        }
        if (pli_random_below(&r, 2) == 0) p.victim = 1 + (int32_t)pli_random_below(&r, (uint64_t)p.workers - 1);
        p.dies_in = (int64_t)pli_random_below(&r, 40);
        p.move_rate = pli_random_below(&r, 3) == 0 ? 1000000 : 0;
        (void)snprintf(name, sizeof name, "PLAIT_SEED=%llu", (unsigned long long)number);
        judged(name, model);
    }
}

/* --- what filters keep back --------------------------------------------------------------------------------------- */

enum { LEDGER_ROWS = 40, VISITORS = 3, EXAMPLES = 8 };

/* What each visitor has added, by its own book. */
typedef struct ledger {
    const char     *filter;
    double          added[VISITORS + 2][LEDGER_ROWS], table[LEDGER_ROWS];
    _Atomic int     gone;  /* visitors that will not come again, each after it has raised */
    _Atomic int64_t ends;  /* ... this: two clocks after the last one with updates of its own at the earliest */
    _Atomic int64_t leave; /* the clock with which workers 0 and 1 end the job; 0: not known yet */
} ledger;

static plait_status add_by_book(plait_table *table, ledger *book, int32_t me, int64_t clock) {
    float delta[LEDGER_ROWS];
    for (int32_t r = 0; r < LEDGER_ROWS; r++) {
        pli_random n = pli_random_at((uint64_t)r, PLI_RANDOM_SCHEDULE, (uint64_t)clock, (uint64_t)me);
        delta[r] = (float)pli_random_below(&n, 64);
        book->added[me][r] += (double)delta[r];
    }
    return plait_table_inc_range(table, 0, LEDGER_ROWS, delta, 1);
}

static void will_not_come_again(ledger *book, int64_t last) {
    int64_t ends = atomic_load(&book->ends);
    while (ends < last + 2 && !atomic_compare_exchange_weak(&book->ends, &ends, last + 2)) {}
    atomic_fetch_add(&book->gone, 1);
}

/* A worker that is away holds nobody up, so on a busy machine workers 0 and 1 may be far ahead of one that comes: they
 * go on until all have been there. Worker 0 sees that in a clock, and worker 1 knows by the next but one, since its get
 * of the next waits for worker 0's clock. */
static bool all_have_been_there(ledger *book, int32_t me, int64_t clock) {
    if (me == 0 && atomic_load(&book->leave) == 0 && atomic_load(&book->gone) == VISITORS) {
        const int64_t ends = atomic_load(&book->ends);
        atomic_store(&book->leave, ends > clock + 2 ? ends : clock + 2);
    }
    const int64_t leave = atomic_load(&book->leave);
    return leave > 0 && clock >= leave;
}

/* Steps of sgd at the rate of EXAMPLES, and in each clock there are so many: the table is less what was added. Workers
 * 0 and 1 add zeros; they read. The visitors come, go and come again, and are all away at the end. */
static plait_status visit_by_book(plait_job *job, plait_table *table, ledger *book) {
    static const int64_t stays[VISITORS][4] = { { 2, 7, 10, 15 }, { 3, 9, 11, 20 }, { 2, 20, -1, -1 } };
    const int32_t        me = plait_comm_rank(plait_job_comm(job));
    int64_t              last = 0;
    for (int i = 0; me >= 2 && i < 4 && stays[me - 2][i] >= 0; i += 2) {
        if (plait_job_join(job, stays[me - 2][i]) != PLAIT_OK) return PLAIT_EINVAL;
        for (bool in = true; in;) {
            in = plait_job_clock_now(job) < stays[me - 2][i + 1];
            PLI_TRY(add_by_book(table, book, me, plait_job_clock_now(job)));
            last = plait_job_clock_now(job);
            PLI_TRY(in ? plait_job_clock(job) : plait_job_leave(job));
        }
    }
    if (me >= 2) will_not_come_again(book, last);
    while (me < 2 && !all_have_been_there(book, me, plait_job_clock_now(job))) {
        float values[LEDGER_ROWS];
        PLI_TRY(plait_table_get_range(table, 0, LEDGER_ROWS, values));
        for (int32_t r = 0; me == 0 && r < LEDGER_ROWS; r++) book->table[r] = -(double)values[r];
        memset(values, 0, sizeof values);
        const int64_t rest = EXAMPLES - (plait_job_present(job) - 2);
        if (me == 0) PLI_TRY(plait_table_inc_range(table, 0, LEDGER_ROWS, values, rest));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

static plait_status keep_book(plait_comm *comm, void *user) {
    ledger          *book = user;
    plait_job_opts   opts;
    plait_job       *job;
    plait_table     *table;
    plait_table_opts t;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.replicas = 2;
    opts.slots = VISITORS;
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_table_opts_init(&t);
    t.name = "w";
    t.rows = LEDGER_ROWS;
    t.cols = 1;
    t.filter = book->filter;
    t.rule.name = "sgd";
    t.rule.learning_rate = EXAMPLES;
    PLI_TRY(plait_table_create(job, &t, &table));
    PLI_TRY(visit_by_book(job, table, book));
    return plait_job_destroy(&job);
}

/* Nothing is lost by leaving in good order: once all who have added are away, the table has what their books say. */
static void test_who_leaves_keeps_nothing_back(void **unused) {
    static const struct {
        const char *filter;
        double      within;
    } cases[] = { { "topk:0.1", 0 }, { "randk:0.1", 0 }, { "onebit", 0.01 }, { "key-cache,zstd", 0 } };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static ledger   book;
        plait_comm_opts opts;
        plait_error     err = { 0 };
        plait_comm_opts_init(&opts);
        opts.workers = VISITORS + 2;
        opts.threads = 1;
        memset(&book, 0, sizeof book);
        book.filter = cases[i].filter;
        if (plait_comm_run(&opts, keep_book, &book, &err) < 0) fail_msg("%s: %s", book.filter, err.text);
        for (int32_t r = 0; r < LEDGER_ROWS; r++) {
            double added = 0;
            for (int32_t w = 2; w < VISITORS + 2; w++) added += book.added[w][r];
            if (fabs(book.table[r] - added) > cases[i].within)
                fail_msg("%s: row %d has %g, %g were added", book.filter, (int)r, book.table[r], added);
        }
    }
}

static plait_status leave_under(plait_comm *comm, void *user) {
    plait_job_opts   opts;
    plait_job       *job;
    plait_table     *table;
    plait_table_opts t;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.consistency = user;
    opts.replicas = 2;
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_table_opts_init(&t);
    t.name = "w";
    t.rows = 10;
    t.cols = 1;
    PLI_TRY(plait_table_create(job, &t, &table));
    const plait_status left = plait_job_leave(job);
    const char        *text = pli_comm_error(comm)->text;
    if (left != PLAIT_EREFUSED || strstr(text, "nearest is ps x bsp") == NULL) return PLAIT_EINVAL;
    if (plait_job_join(job, 0) != PLAIT_EREFUSED) return PLAIT_EINVAL;
    return plait_job_destroy(&job);
}

/* Where no shard moves, nothing about moves is taken. user: what is asked for. */
static plait_status without_moves(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job     *job;
    const bool     rate = strcmp(user, "move_rate") == 0;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.replicas = 2;
    opts.slots = strcmp(user, "too many") == 0;
    opts.move_rate = rate ? 1000 : 0;
    opts.logical_servers = rate ? 0 : 4096;
    return plait_job_create(comm, &opts, &job);
}

/* user: "slots", or NULL. */
static plait_status with_lives(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job     *job;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.replicas = 2;
    opts.slots = user != NULL;
    opts.revives = 1;
    return plait_job_create(comm, &opts, &job);
}

static plait_status with_slots(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job     *job;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.consistency = user;
    opts.replicas = 2;
    opts.slots = 1;
    return plait_job_create(comm, &opts, &job);
}

static void test_what_does_not_hold_is_refused_by_name(void **unused) {
    plait_comm_opts opts;
    plait_error     err = { 0 };
    (void)unused;
    plait_comm_opts_init(&opts);
    opts.workers = 3;
    assert_int_equal(plait_comm_run(&opts, leave_under, (void *)(uintptr_t) "ssp:2", &err), PLAIT_OK);
    assert_int_equal(plait_comm_run(&opts, with_slots, (void *)(uintptr_t) "ssp:2", &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "1 slots of workers that may join with topology ps x ssp:2 are refused"));
    assert_int_equal(plait_comm_run(&opts, without_moves, (void *)(uintptr_t) "move_rate", &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "plait_job_opts.move_rate in a job without slots is refused"));
    assert_int_equal(plait_comm_run(&opts, without_moves, (void *)(uintptr_t) "logical_servers", &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "plait_job_opts.logical_servers in a job without slots is refused"));
    assert_int_equal(plait_comm_run(&opts, without_moves, (void *)(uintptr_t) "too many", &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "4096 logical servers for each of 3 workers"));
    assert_int_equal(plait_comm_run(&opts, with_lives, NULL, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "revives is refused in a job without slots"));
    assert_int_equal(plait_comm_run(&opts, with_lives, (void *)(uintptr_t) "slots", &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "revives over threads is refused"));
    opts.servers = 2;
    assert_int_equal(plait_comm_run(&opts, without_moves, (void *)(uintptr_t) "too many", &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "with ranks that only serve is refused"));
}

/* --- sim ---------------------------------------------------------------------------------------------------------- */

static bool simulate(void) {
    int status = 0;
    fflush(stdout);
    const pid_t child = fork(); /* a process takes one simulated cluster */
    if (child == 0) {
        plait_error err = { 0 };
        signal(SIGSEGV, SIG_DFL);
        end_hang(HANG_S);
        const plait_status lived = live(&err);
        (void)snprintf(run->why, sizeof run->why, "%.290s", err.text);
        _exit(lived < 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_sixty_then_seventy_then_sixty(void **unused) {
    static float model[ROWS];
    (void)unused;
    static const char cluster[] = "version: 1\nhosts: [{count: 70}]\ncost: {clock: 20 ms}\n";
    char              path[32];
    const int         fd = memfd_create("cluster", 0);
    assert_int_equal(write(fd, cluster, sizeof cluster - 1), sizeof cluster - 1);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    p.transport = "sim";
    p.cluster = path;
    fixed(60, 45);
    if (!simulate()) fail_msg("60 workers: %s", run->why);
    memcpy(model, run->model, sizeof model);
    fixed(70, 45);
    p.slots = 10;
    for (int32_t w = 60; w < 70; w++) p.of[w] = (visit){ .from = 15, .until = 29, .again = -1 };
    if (!simulate()) fail_msg("60 -> 70 -> 60 workers: %s", run->why);
    assert_int_equal(run->present[10], 60);
    assert_int_equal(run->present[20], 70);
    assert_int_equal(run->present[44], 60);
    assert_int_equal(atomic_load(&run->in[20]), 70);
    assert_int_equal(atomic_load(&run->in[40]), 60);
    assert_memory_equal(model, run->model, sizeof model);
    print_message("sim: the longest clock took %.2f times the median one\n", longest());
    assert_true(longest() <= 3); /* nobody waits for two clocks when workers come and go */
    close(fd);
}

int main(int argc, char **argv) {
    run = mmap(NULL, sizeof *run, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (run == MAP_FAILED) return 1;
    const struct CMUnitTest threads[] = { cmocka_unit_test(test_two_then_four_then_three),
                                          cmocka_unit_test(test_a_worker_with_shards_leaves),
                                          cmocka_unit_test(test_a_long_clock_is_no_deadlock),
                                          cmocka_unit_test(test_any_come_and_go),
                                          cmocka_unit_test(test_who_leaves_keeps_nothing_back),
                                          cmocka_unit_test(test_what_does_not_hold_is_refused_by_name) };
    const struct CMUnitTest sim[] = { cmocka_unit_test(test_sixty_then_seventy_then_sixty) };
    return argc > 1 && strcmp(argv[1], "sim") == 0 ? cmocka_run_group_tests(sim, NULL, NULL)
                                                   : cmocka_run_group_tests(threads, NULL, NULL);
}
