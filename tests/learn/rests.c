/* Tests that a checkpoint holds what filters keep of updates (table/state/rest.h): whatever was pushed before it and
 * after it, with any numbers of workers, over whichever topology, is in the table once everything has travelled. The
 * ledger is the test's own: updates are whole numbers, whose sums are exact. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/checkpoint.h>

#include "base/base.h"
#include "check.h"
#include "learn/checkpoint_dir.h"

/* The dense table is large enough for two servers. In a clock all workers together have seen EXAMPLES rows of data, so
 * the rule moves values by the sum of updates. */
enum { ROWS = 1200, COLS = 2, VALUES = ROWS * COLS, EXAMPLES = 16, BEFORE = 5, AFTER = 4, DRAIN = 60, TABLES = 2 };

typedef struct way {
    const char *topology;
    int32_t     workers, servers, spares; /* spares push nothing */
    const char *consistency;              /* NULL: bsp */
} way;

typedef struct story {
    way         before, after;
    const char *filter;
} story;

static double   ledger[TABLES][VALUES];
static uint64_t seed = 1; /* of the updates: PLAIT_SEED */

static uint64_t key_of(int64_t i) { return (uint64_t)i * 1000003; }

/* The update of a value, by a worker, in a clock: of many sizes, so that few rows travel in a clock. */
static float update_of(int table, int64_t i, int32_t worker, int64_t clock) {
    const uint64_t which = (uint64_t)(((table * VALUES + i) * 100 + worker) * 1000 + clock);
    return (float)((int64_t)(pli_hash_u64(which ^ pli_hash_u64(seed)) % 199) - 99);
}

static plait_status make_tables(plait_job *job, const char *filter, plait_table *table[TABLES]) {
    plait_comm *comm = plait_job_comm(job);
    for (int t = 0; t < TABLES; t++) {
        plait_table_opts opts;
        plait_table_opts_init(&opts);
        opts.name = t == 0 ? "dense" : "keys";
        opts.rows = t == 0 ? ROWS : 0;
        opts.cols = COLS;
        opts.filter = filter;
        opts.rule.name = "sgd";
        opts.rule.learning_rate = EXAMPLES;
        CHECK(plait_table_create(job, &opts, &table[t]) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static plait_status push(plait_job *job, const way *w, plait_table *const table[TABLES], bool zeros) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm), busy = w->workers - w->spares, examples = EXAMPLES / busy;
    const int64_t clock = plait_job_clock_now(job);
    uint64_t      key[ROWS];
    float         delta[VALUES];
    for (int64_t i = 0; i < ROWS; i++) key[i] = key_of(i);
    for (int t = 0; me < busy && t < TABLES; t++) {
        for (int64_t i = 0; i < VALUES; i++) delta[i] = zeros ? 0 : update_of(t, i, me, clock);
        CHECK((t == 0 ? plait_table_inc_range(table[t], 0, ROWS, delta, examples)
                      : plait_table_inc(table[t], ROWS, key, delta, examples)) == PLAIT_OK);
    }
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return PLAIT_OK;
}

/* What all workers push from clock `first` on. */
static void enter(int64_t first, int64_t clocks, int32_t workers) {
    for (int t = 0; t < TABLES; t++)
        for (int64_t i = 0; i < VALUES; i++)
            for (int64_t c = first; c < first + clocks; c++)
                for (int32_t w = 0; w < workers; w++) ledger[t][i] -= (double)update_of(t, i, w, c);
}

static plait_status first_half(plait_job *job, void *user) {
    const story          *s = user;
    plait_comm           *comm = plait_job_comm(job);
    plait_table          *table[TABLES];
    plait_checkpoint_opts opts;
    CHECK(make_tables(job, s->filter, table) == PLAIT_OK);
    for (int c = 0; c < BEFORE; c++) CHECK(push(job, &s->before, table, false) == PLAIT_OK);
    plait_checkpoint_opts_init(&opts);
    opts.dir = dir;
    CHECK(plait_checkpoint_save(job, table, TABLES, &opts) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status compare(plait_job *job, plait_table *const table[TABLES], bool *differs) {
    plait_comm *comm = plait_job_comm(job);
    float       value[VALUES];
    uint64_t    key[ROWS];
    for (int64_t i = 0; i < ROWS; i++) key[i] = key_of(i);
    for (int t = 0; t < TABLES; t++) {
        CHECK((t == 0 ? plait_table_get_range(table[t], 0, ROWS, value)
                      : plait_table_get(table[t], ROWS, key, value)) == PLAIT_OK);
        for (int64_t i = 0; i < VALUES; i++) *differs = *differs || (double)value[i] != ledger[t][i];
    }
    return PLAIT_OK;
}

static plait_status second_half(plait_job *job, void *user) {
    const story      *s = user;
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *table[TABLES];
    plait_checkpoint *c = NULL;
    bool              waits = false, differs = false;
    CHECK(make_tables(job, s->filter, table) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    for (int t = 0; t < TABLES; t++) CHECK(plait_checkpoint_restore(c, table[t], NULL) == PLAIT_OK);
    plait_checkpoint_close(&c);
    for (int k = 0; k < AFTER; k++) CHECK(push(job, &s->after, table, false) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(compare(job, table, &waits) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    for (int k = 0; k < DRAIN; k++) CHECK(push(job, &s->after, table, true) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(compare(job, table, &differs) == PLAIT_OK);
    CHECK((waits || s->after.consistency != NULL) && !differs); /* else the filter would have kept nothing */
    return PLAIT_OK;
}

static void run(const way *w, int64_t first_clock, plait_work_fn *work, const story *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    comm.workers = w->workers;
    comm.servers = w->servers;
    plait_job_opts_init(&job);
    job.topology = w->topology;
    job.consistency = w->consistency != NULL ? w->consistency : "bsp";
    job.batch = EXAMPLES;
    job.first_clock = first_clock;
    job.spares = w->spares;
    if (w->spares > 0) job.replicas = 2;
    if (plait_run(&comm, &job, work, (void *)(uintptr_t)s, &err) < 0)
        fail_msg("%s, %d workers to %s, %d workers and %d spares, %s: %s PLAIT_SEED=%llu", s->before.topology,
                 (int)s->before.workers, s->after.topology, (int)(s->after.workers - s->after.spares),
                 (int)s->after.spares, s->filter, err.text, (unsigned long long)seed);
}

static void test_nothing_kept_is_lost(void **state) {
    static const story stories[] = {
        { { "ps", 2, 0, 0, NULL }, { "ps", 2, 0, 0, NULL }, "topk:0.1" },
        { { "ps", 4, 0, 0, NULL }, { "ps", 2, 0, 0, NULL }, "topk:0.1" },
        { { "ps", 2, 0, 0, NULL }, { "ps", 4, 3, 0, NULL }, "randk:0.3" },
        { { "ps", 2, 3, 0, NULL }, { "ps", 1, 0, 0, NULL }, "key-cache,key-delta,topk:0.1,zstd" },
        { { "allreduce", 4, 0, 0, NULL }, { "allreduce", 4, 0, 0, NULL }, "topk:0.1" },
        { { "allreduce", 4, 0, 0, NULL }, { "allreduce", 2, 0, 0, NULL }, "topk:0.1" },
        { { "allreduce", 2, 0, 0, NULL }, { "allreduce", 8, 0, 0, NULL }, "topk:0.2" },
        { { "allreduce", 4, 0, 0, NULL }, { "ps", 2, 0, 0, NULL }, "topk:0.1" },
        { { "ps", 4, 0, 0, NULL }, { "allreduce", 2, 0, 0, NULL }, "topk:0.1" },
        { { "hybrid", 4, 0, 0, NULL }, { "hybrid", 2, 0, 0, NULL }, "topk:0.1" },
        { { "hybrid", 2, 0, 0, NULL }, { "allreduce", 4, 0, 0, NULL }, "topk:0.1" },
        { { "ps", 4, 0, 0, NULL }, { "ps", 2, 0, 0, "ssp:1" }, "topk:0.1" },
        { { "ps", 4, 0, 0, "async" }, { "ps", 2, 0, 0, NULL }, "topk:0.1" },
        { { "ps", 4, 0, 0, "bounded-delay:2" }, { "ps", 2, 0, 0, "bounded-delay:1" }, "topk:0.1" },
        { { "allreduce", 4, 0, 0, "bounded-delay:2" }, { "ps", 2, 0, 0, "async" }, "topk:0.1" },
        { { "allreduce", 4, 0, 0, "bounded-delay:2" }, { "allreduce", 2, 0, 0, "bounded-delay:3" }, "topk:0.1" },
        { { "hybrid", 4, 0, 0, "bounded-delay:1" }, { "hybrid", 2, 0, 0, "bounded-delay:1" }, "topk:0.1" },
        { { "ps", 4, 0, 0, NULL }, { "ps", 3, 0, 1, NULL }, "topk:0.1" },
        { { "allreduce", 4, 0, 0, NULL }, { "allreduce", 3, 0, 1, NULL }, "topk:0.1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        const story *s = &stories[i];
        memset(ledger, 0, sizeof ledger);
        enter(0, BEFORE, s->before.workers - s->before.spares);
        enter(BEFORE, AFTER, s->after.workers - s->after.spares);
        run(&s->before, 0, first_half, s);
        run(&s->after, BEFORE, second_half, s);
    }
}

int main(void) {
    if (getenv("PLAIT_SEED") != NULL) seed = strtoull(getenv("PLAIT_SEED"), NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_kept_is_lost, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("rests", tests, NULL, NULL);
}
