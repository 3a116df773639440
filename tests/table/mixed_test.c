/* Jobs whose tables travel each in a way of its own: by seed several tables of different topology and consistency,
 * workers that add whole numbers where they like, barriers in between, a sum of the program's own under way over
 * clocks, a second job in the same run. After a barrier every table holds what all have added in clocks that have
 * ended, and what the worker itself has added since. A worker that fails in the middle ends the run for all, by its own
 * reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#include "table/table.h"

#define CHECK(is)                                                                                   \
    do {                                                                                            \
        if (!(is)) {                                                                                \
            fprintf(stderr, "seed %d, rank %d, line %d: %s\n",                                      \
                    (int)w->seed, w->me, __LINE__, #is);                                            \
            return PLAIT_EINVAL;                                                                    \
        }                                                                                           \
    } while (0)

enum { ROWS = 700, TABLES = 4, CLOCKS = 12, WAYS = 18, HOST_WAYS = 4 };

typedef struct way {
    const char *topology, *consistency;
    bool        exact, by_key; /* by_key: keyed or sparse tables, too */
} way;

/* The first ones train also when hosts add up. */
static const way ways[WAYS] = {
    { "ps", "bsp", false, true },
    { "ps", "bsp", true, true },
    { "allreduce", "bsp", false, true },
    { "hybrid", "bsp", false, true },
    { "allreduce", "bsp", true, true },
    { "allreduce", "bounded-delay:2", false, true },
    { "ps", "bounded-delay:2", false, true },
    { "ps", "ssp:1", false, true },
    { "ps", "essp:1", false, true },
    { "ps", "async", false, true },
    { "local", "bsp", false, true },
    { "local", "ssp:2", false, true },
    { "gossip:ring", "bsp", false, false },
    { "gossip:exp", "async", false, false },
    { "gossip:torus", "async", false, false },
    { "ps", "local-sgd:3", false, true },
    { "allreduce", "local-sgd:1", false, true },
    { "hybrid", "local-sgd:4", false, true },
};

typedef struct worker {
    plait_comm  *comm;
    plait_job   *job;
    uint64_t     seed;
    int32_t      me, workers, tables, job_number;
    bool         aggregates;
    int64_t      fails_at; /* clock; -1: never */
    int32_t      fails;
    const way   *way[TABLES];
    int32_t      shape[TABLES]; /* 0 dense, 1 keyed, 2 sparse */
    plait_table *table[TABLES];
} worker;

static uint64_t pick(pli_random *r, uint64_t n) { return pli_random_below(r, n); }

static plait_status open_tables(worker *w) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 1, (uint64_t)w->job_number);
    w->tables = 1 + (int32_t)pick(&r, TABLES);
    w->aggregates = pick(&r, 3) == 0;
    bool one_process_only = plait_comm_servers(w->comm) == 0;
    plait_job_opts job;
    plait_job_opts_init(&job);
    job.topology = "ps";
    job.aggregate = w->aggregates ? "host" : NULL;
    CHECK(plait_job_create(w->comm, &job, &w->job) == PLAIT_OK);
    if (w->me >= w->workers) return PLAIT_OK;
    for (int32_t t = 0; t < w->tables; t++) {
        plait_table_opts opts;
        char             name[16];
        do w->way[t] = &ways[pick(&r, w->aggregates ? HOST_WAYS : WAYS)];
        while (!one_process_only && strcmp(w->way[t]->topology, "local") == 0);
        w->shape[t] = w->way[t]->by_key ? (int32_t)pick(&r, 3) : 0;
        plait_table_opts_init(&opts);
        snprintf(name, sizeof name, "t%d", t);
        opts.name = name;
        opts.type = PLAIT_F64;
        opts.rows = w->shape[t] == 2 ? 0 : ROWS;
        opts.keyed = w->shape[t] == 1;
        opts.topology = w->way[t]->topology;
        opts.consistency = w->way[t]->consistency;
        opts.exact = w->way[t]->exact;
        if (plait_table_create(w->job, &opts, &w->table[t]) < 0)
            fprintf(stderr, "%s\n", plait_comm_error(w->comm)->text);
        CHECK(w->table[t] != NULL);
    }
    return PLAIT_OK;
}

/* What worker k adds to table t in a clock: a few rows, or nothing. */
static int32_t draw(const worker *w, int32_t t, int64_t clock, int32_t k, uint64_t *keys, double *delta) {
    pli_random r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 2 + (uint64_t)w->job_number,
                                 (uint64_t)((clock * TABLES + t) * 64 + k));
    int32_t    n = (int32_t)pick(&r, 6);
    for (int32_t i = 0; i < n; i++) {
        keys[i] = pick(&r, ROWS / 7) * 7 + (uint64_t)i;
        delta[i] = 1 + (double)pick(&r, 100);
    }
    return n;
}

static void add_drawn(const worker *w, int32_t t, int64_t clock, int32_t k, double *sum) {
    uint64_t keys[8];
    double   delta[8];
    int32_t  n = draw(w, t, clock, k, keys, delta);
    for (int32_t i = 0; i < n; i++) sum[keys[i]] += delta[i];
}

/* May a get after a barrier see what others have added since? */
static bool reads_on(const way *by) {
    if (strncmp(by->consistency, "local-sgd", 9) == 0) return false;
    return (strcmp(by->topology, "ps") == 0 || strcmp(by->topology, "local") == 0) &&
           strcmp(by->consistency, "bsp") != 0;
}

/* ended: clocks that all have ended; mine: the worker has added in the clock after these, too. */
static plait_status look(const worker *w, int64_t ended, bool mine) {
    uint64_t keys[ROWS];
    for (uint64_t i = 0; i < ROWS; i++) keys[i] = i;
    for (int32_t t = 0; t < w->tables; t++) {
        double want[ROWS] = { 0 }, more[ROWS] = { 0 }, is[ROWS];
        for (int64_t c = 0; c < ended; c++)
            for (int32_t k = 0; k < w->workers; k++) add_drawn(w, t, c, k, want);
        if (mine) add_drawn(w, t, ended, w->me, want);
        for (int64_t c = ended; c < CLOCKS && reads_on(w->way[t]); c++) /* what others have added since the barrier */
            for (int32_t k = 0; k < w->workers; k++)
                if (k != w->me) add_drawn(w, t, c, k, more);
        CHECK((w->shape[t] == 0 ? plait_table_get_range(w->table[t], 0, ROWS, is)
                                : plait_table_get(w->table[t], ROWS, keys, is)) == PLAIT_OK);
        for (int32_t i = 0; i < ROWS; i++)
            if (is[i] < want[i] - 1e-9 * (1 + want[i]) || is[i] > want[i] + more[i] + 1e-9 * (1 + want[i])) {
                fprintf(stderr, "table %d, %s x %s, shape %d%s, after %d clocks%s, row %d: %g, not %g\n", t,
                        w->way[t]->topology, w->way[t]->consistency, w->shape[t], w->aggregates ? ", hosts add up" : "",
                        (int)ended, mine ? " and own incs" : "", i, is[i], want[i]);
                CHECK(false);
            }
    }
    return PLAIT_OK;
}

static plait_status train(worker *w) {
    pli_random     r = pli_random_at(w->seed, PLI_RANDOM_SCHEDULE, 9, (uint64_t)w->job_number);
    plait_request *sum = NULL;
    int64_t        own[3] = { 0 };
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        if (clock == w->fails_at && w->me == w->fails)
            return pli_fail(pli_comm_error(w->comm), PLAIT_EIO, "the dog ate it");
        for (int32_t t = 0; t < w->tables; t++) {
            uint64_t keys[8];
            double   delta[8];
            int32_t  n = draw(w, t, clock, w->me, keys, delta);
            if (n > 0) CHECK(plait_table_inc(w->table[t], n, keys, delta, n) == PLAIT_OK);
        }
        uint64_t what = pick(&r, 8); /* the same on all */
        if (what == 0) {
            CHECK(plait_job_barrier(w->job) == PLAIT_OK);
            CHECK(look(w, clock, true) == PLAIT_OK);
        }
        if (what == 1 && sum == NULL) {
            own[0] = clock, own[1] = w->me, own[2] = 1;
            CHECK(plait_comm_allreduce_begin(w->comm, own, 3, PLAIT_I64, PLAIT_SUM, &sum) == PLAIT_OK);
        }
        if (what == 2 && sum != NULL) {
            CHECK(plait_request_wait(&sum) == PLAIT_OK);
            CHECK(own[0] % w->workers == 0 && own[1] == w->workers * (w->workers - 1) / 2 && own[2] == w->workers);
        }
        CHECK(plait_job_clock(w->job) == PLAIT_OK);
        if (what == 3 || what == 4) {
            CHECK(plait_job_barrier(w->job) == PLAIT_OK);
            CHECK(look(w, clock + 1, false) == PLAIT_OK);
        }
    }
    CHECK(plait_request_wait(&sum) == PLAIT_OK && plait_job_barrier(w->job) == PLAIT_OK);
    return look(w, CLOCKS, false);
}

typedef struct plan {
    uint64_t seed;
    int64_t  fails_at;
    int32_t  fails;
} plan;

static plait_status body(plait_comm *comm, void *user) {
    const plan *p = user;
    for (int32_t j = 0; j < 2; j++) {
        worker state = { .comm = comm, .seed = p->seed, .me = plait_comm_rank(comm),
                         .workers = plait_comm_workers(comm), .job_number = j, .fails_at = p->fails_at,
                         .fails = p->fails };
        worker *w = &state;
        plait_status status = open_tables(w);
        if (status >= 0 && w->me < w->workers) status = train(w);
        if (status < 0) {
            pli_job_abandon(&w->job);
            return status;
        }
        CHECK(plait_job_destroy(&w->job) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static plait_status run(uint64_t seed, bool fails, plait_error *err) {
    pli_random      r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 0, 0);
    plait_comm_opts opts;
    plan            p = { .seed = seed, .fails_at = -1 };
    plait_comm_opts_init(&opts);
    opts.workers = 1 + (int32_t)pick(&r, 6);
    opts.servers = pick(&r, 3) == 0 ? 1 + (int32_t)pick(&r, 2) : 0;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    if (fails) p.fails_at = (int64_t)pick(&r, CLOCKS), p.fails = (int32_t)pick(&r, (uint64_t)opts.workers);
    return plait_comm_run(&opts, body, &p, err);
}

static void test_every_table_its_own_way(void **state) {
    (void)state;
    uint64_t seeds = getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 60;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        plait_error err = { 0 };
        if (run(seed, false, &err) < 0) fail_msg("seed %d: %s", (int)seed, err.text);
    }
}

static void test_who_fails_ends_the_run(void **state) {
    (void)state;
    uint64_t seeds = getenv("PLAIT_TEST_FULL") != NULL ? 1000 : 30;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        plait_error  err = { 0 };
        plait_status status = run(seed, true, &err);
        if (status != PLAIT_EIO) fail_msg("seed %d: %s: %s", (int)seed, plait_status_text(status), err.text);
    }
}

static _Atomic int passed;

/* The others wait at a barrier, in clocks that they cannot begin without rank 2, or for its end. */
static plait_status go_without(plait_comm *comm, void *user) {
    worker          state = { .comm = comm, .me = plait_comm_rank(comm) }, *w = &state;
    plait_job_opts  job;
    double          one = 1;
    plait_job_opts_init(&job);
    job.topology = "ps";
    job.consistency = user;
    CHECK(plait_job_create(comm, &job, &w->job) == PLAIT_OK);
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.type = PLAIT_F64;
    opts.rows = ROWS;
    CHECK(plait_table_create(w->job, &opts, &w->table[0]) == PLAIT_OK);
    plait_status status = w->me == 2 ? pli_fail(pli_comm_error(comm), PLAIT_EIO, "the dog ate it") : PLAIT_OK;
    for (int64_t clock = 0; status >= 0 && clock < CLOCKS; clock++) {
        status = plait_table_get_range(w->table[0], 0, 1, &one);
        if (status >= 0) status = plait_table_inc_range(w->table[0], 0, 1, &one, 1);
        if (status >= 0) status = plait_job_clock(w->job);
        if (status >= 0 && w->me == 1) status = plait_job_barrier(w->job);
        if (status >= 0 && w->me == 1)
            fprintf(stderr, "rank 1 has passed a barrier to which rank 2 never came\n"), passed++;
    }
    if (status >= 0) fprintf(stderr, "rank %d has ended all its clocks without rank 2\n", w->me), passed++;
    pli_job_abandon(&w->job);
    return status;
}

static void test_nobody_goes_on_without_who_fails(void **state) {
    (void)state;
    static const char *const consistencies[] = { "bsp", "ssp:1", "bounded-delay:2" };
    for (int i = 0; i < 15; i++) {
        plait_error     err = { 0 };
        plait_comm_opts opts;
        plait_comm_opts_init(&opts);
        opts.workers = 3;
        opts.servers = 0;
        opts.timeout_ns = UINT64_C(60) * 1000000000;
        assert_int_equal(plait_comm_run(&opts, go_without, (void *)(uintptr_t)consistencies[i % 3], &err), PLAIT_EIO);
        assert_int_equal(passed, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_table_its_own_way),
                                        cmocka_unit_test(test_who_fails_ends_the_run),
                                        cmocka_unit_test(test_nobody_goes_on_without_who_fails) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
