/* Tables of whole numbers: what is counted is exact beyond 2^24 and 2^53, whoever counts, over each topology and under
 * each consistency, dense, by key and sparse; sums wrap around; and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"

enum { ROWS = 300, COLS = 3, CLOCKS = 5, KEYS = 7, TABLES = 3 };

typedef struct setting {
    const char *topology, *consistency, *filter, *aggregate;
    int32_t     workers, servers, replicas;
    int         exact;
} setting;

static plait_status make(plait_job *job, const char *name, int64_t rows, int keyed, const int64_t *initial,
                         plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.type = PLAIT_I64;
    opts.rows = rows;
    opts.cols = COLS;
    opts.keyed = keyed;
    opts.initial = initial;
    return plait_table_create(job, &opts, table_out);
}

/* What a worker adds to a value in a clock: numbers that mostly no float holds. */
static int64_t term(int32_t worker, int64_t clock, int64_t row, int64_t col) {
    const uint64_t whose = ((uint64_t)worker << 48) ^ ((uint64_t)clock << 40);
    const uint64_t bits = pli_hash_u64(whose ^ (uint64_t)(row * COLS + col));
    return (int64_t)bits >> (col == 0 ? 0 : 8); /* column 0 wraps around */
}

static int64_t sum_of(int32_t workers, int64_t row, int64_t col) {
    uint64_t sum = 0;
    for (int32_t w = 0; w < workers; w++)
        for (int64_t clock = 0; clock < CLOCKS; clock++) sum += (uint64_t)term(w, clock, row, col);
    return (int64_t)sum;
}

static uint64_t key_of(int64_t i) { return i == 0 ? UINT64_MAX : (uint64_t)(i * 41); }

static void fill(int32_t worker, int64_t clock, int64_t n, int64_t *values) {
    for (int64_t i = 0; i < n * COLS; i++) values[i] = term(worker, clock, i / COLS, i % COLS);
}

/* A worker sees its own counts at once. */
static plait_status count_by_key(plait_table *table, int32_t me, int64_t clock, bool sparse, bool alone) {
    plait_comm *comm = plait_job_comm(table->job);
    uint64_t    keys[KEYS];
    int64_t     delta[KEYS * COLS], before[KEYS * COLS], after[KEYS * COLS];
    for (int64_t i = 0; i < KEYS; i++) keys[i] = sparse ? key_of(i) : (uint64_t)i;
    fill(me, clock, KEYS, delta);
    PLI_TRY(plait_table_get(table, KEYS, keys, before));
    PLI_TRY(plait_table_inc(table, KEYS, keys, delta, 0));
    PLI_TRY(plait_table_get(table, KEYS, keys, after));
    for (int64_t i = 0; alone && i < KEYS * COLS; i++)
        CHECK((uint64_t)after[i] == (uint64_t)before[i] + (uint64_t)delta[i]);
    return PLAIT_OK;
}

static plait_status check_sums(plait_comm *comm, int64_t n, const int64_t *values, int64_t initial) {
    for (int64_t i = 0; i < n * COLS; i++)
        CHECK((uint64_t)values[i] - (uint64_t)initial ==
              (uint64_t)sum_of(plait_comm_workers(comm), i / COLS, i % COLS));
    return PLAIT_OK;
}

static plait_status check_all(plait_table *const *table) {
    plait_comm    *comm = plait_job_comm(table[0]->job);
    static _Thread_local int64_t values[ROWS * COLS];
    uint64_t       keys[KEYS];
    int64_t        n;
    uint64_t      *all;
    void          *dumped;
    for (int64_t i = 0; i < KEYS; i++) keys[i] = key_of(i);
    PLI_TRY(plait_table_get_range(table[0], 0, ROWS, values));
    PLI_TRY(check_sums(comm, ROWS, values, -5));
    PLI_TRY(plait_table_get_range(table[1], 0, KEYS, values));
    PLI_TRY(check_sums(comm, KEYS, values, 0));
    PLI_TRY(plait_table_get(table[2], KEYS, keys, values));
    PLI_TRY(check_sums(comm, KEYS, values, 0));
    PLI_TRY(plait_table_dump(table[2], &n, &all, &dumped));
    CHECK(n == KEYS && all[KEYS - 1] == UINT64_MAX);
    CHECK(memcmp(dumped, values + COLS, (KEYS - 1) * COLS * sizeof *values) == 0); /* in the order of keys */
    plait_comm_free(all);
    plait_comm_free(dumped);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    const setting *s = user;
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *table[TABLES];
    int32_t        me = plait_comm_rank(comm);
    const bool     alone = strcmp(s->consistency, "bsp") == 0; /* no other comes between two gets */
    static _Thread_local int64_t values[ROWS * COLS];
    for (int64_t i = 0; i < ROWS * COLS; i++) values[i] = -5;
    PLI_TRY(make(job, "dense", ROWS, 0, values, &table[0]));
    PLI_TRY(make(job, "keyed", ROWS, 1, NULL, &table[1]));
    PLI_TRY(make(job, "sparse", 0, 0, NULL, &table[2]));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        PLI_TRY(count_by_key(table[1], me, clock, false, alone));
        PLI_TRY(count_by_key(table[2], me, clock, true, alone));
        fill(me, clock, ROWS, values);
        PLI_TRY(plait_table_inc_range(table[0], 0, ROWS, values, 0));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_job_barrier(job));
    return check_all(table);
}

static plait_status run(const setting *s, plait_work_fn *of, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = s->workers;
    comm.servers = s->servers;
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.filter = s->filter;
    opts.aggregate = s->aggregate;
    opts.replicas = s->replicas;
    opts.exact = s->exact;
    return plait_run(&comm, &opts, of, (void *)s, err);
}

static void test_counts_are_exact(void **state) {
    static const setting settings[] = {
        { .topology = "local", .consistency = "bsp" },
        { .topology = "local", .consistency = "async" },
        { .topology = "local", .consistency = "ssp:1" },
        { .topology = "local", .consistency = "vap:1e18" },
        { .topology = "allreduce", .consistency = "bsp" },
        { .topology = "allreduce", .consistency = "bsp", .aggregate = "host" },
        { .topology = "allreduce", .consistency = "bounded-delay:2" },
        { .topology = "allreduce", .consistency = "local-sgd:2" },
        { .topology = "hybrid", .consistency = "bsp", .servers = 2 },
        { .topology = "ps", .consistency = "bsp", .exact = 1 },
        { .topology = "ps", .consistency = "bsp", .aggregate = "host" },
        { .topology = "ps", .consistency = "bsp", .servers = 3, .filter = "key-cache,key-delta,zstd" },
        { .topology = "ps", .consistency = "bsp", .replicas = 2 },
        { .topology = "ps", .consistency = "async", .replicas = 2 },
        { .topology = "ps", .consistency = "ssp:2", .servers = 2 },
        { .topology = "ps", .consistency = "essp:2" },
        { .topology = "ps", .consistency = "asp:2:3" },
        { .topology = "ps", .consistency = "bounded-delay:1" },
        { .topology = "ps", .consistency = "sequential" },
        { .topology = "ps", .consistency = "vap:1e19" },
        { .topology = "ps", .consistency = "downpour:2:2" },
        { .topology = "ps", .consistency = "local-sgd:2" },
        { .topology = "ps", .consistency = "async" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 4; workers++) {
            setting     s = settings[i];
            plait_error err = { 0 };
            s.workers = workers;
            if (s.replicas == 2 && workers == 1) continue;
            if (run(&s, work, &err) < 0)
                fail_msg("%s x %s, %d workers: %s", s.topology, s.consistency, workers, err.text);
        }
}

static plait_status work_ruled(plait_job *job, void *user) {
    plait_table_opts opts;
    plait_table     *table;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "counts";
    opts.type = PLAIT_I64;
    opts.rows = 4;
    opts.rule.name = "sgd";
    return plait_table_create(job, &opts, &table);
}

static plait_status work_plain(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    return make(job, "counts", 4, 0, NULL, &table);
}

static void refused(const setting *s, plait_work_fn *of, const char *words) {
    plait_error err = { 0 };
    assert_int_equal(run(s, of, &err), PLAIT_EREFUSED);
    if (strstr(err.text, words) == NULL) fail_msg("'%s' does not say '%s'", err.text, words);
}

static void test_what_makes_no_whole_numbers_is_refused(void **state) {
    const setting ps = { .topology = "ps", .consistency = "bsp", .workers = 2 },
                  gossip = { .topology = "gossip:ring", .consistency = "bsp", .workers = 2 },
                  rounded = { .topology = "ps", .consistency = "bsp", .workers = 2, .filter = "fixed8" };
    (void)state;
    refused(&ps, work_ruled, "update rule sgd");
    refused(&gossip, work_plain, "whole numbers with topology gossip:ring is refused");
    refused(&rounded, work_plain, "filter fixed8");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_exact),
        cmocka_unit_test(test_what_makes_no_whole_numbers_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
