/* plait_table_flush: whatever workers flush, in whatever order, tables of all kinds come to the same bits; what it
 * promises is held and what it forbids is refused; who ends between a flush and the clock's end leaves nobody
 * waiting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"
#include "end_clock.h"

enum { TABLES_MAX = 12, CLOCKS = 4, SEEDS = 4 };

typedef struct job {
    const char *topology, *aggregate;
    int32_t     servers, backup;
    int32_t     tables;
    plait_table_opts table[TABLES_MAX];
    uint64_t    seed; /* of who flushes what, and when; 0: nobody does       */
    int         begun; /* clocks are begun and waited for                    */
    uint64_t    hash; /* of worker 0's values at the end                     */
} job;

static plait_status try_run(void *j, int32_t workers, const char *collective, plait_work_fn *work, plait_error *err) {
    const job      *opts_of = j;
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = workers;
    comm.servers = opts_of->servers;
    comm.collective = collective;
    comm.timeout_ns = UINT64_C(60) * 1000000000;
    opts.topology = opts_of->topology;
    opts.aggregate = opts_of->aggregate;
    opts.backup = opts_of->backup;
    opts.batch = workers;
    return plait_run(&comm, &opts, work, j, err);
}

static void run(void *j, int32_t workers, const char *collective, plait_work_fn *work) {
    plait_error err;
    int64_t     live = pli_alloc_live();
    if (try_run(j, workers, collective, work, &err) < 0) fail_msg("%s, %d workers: %s", collective, workers, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static plait_table_opts *add(job *j, int64_t rows, const char *rule) {
    static const char *const names[TABLES_MAX] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l" };
    plait_table_opts *opts = &j->table[j->tables];
    plait_table_opts_init(opts);
    opts->name = names[j->tables++];
    opts->rows = rows;
    opts->rule.name = rule;
    return opts;
}

/* --- the same bits ------------------------------------------------------------------------------------------------ */

/* Numbers whose sum depends on its order; a row has one example. */
static plait_status push(plait_table *table, const plait_table_opts *opts, int32_t rank, int64_t clock) {
    int64_t   n = opts->rows == 0 || opts->keyed ? 40 : opts->rows;
    double   *wide = malloc((size_t)n * sizeof *wide);
    float    *narrow = (float *)wide;
    uint64_t *keys = malloc((size_t)n * sizeof *keys);
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)((i * 37 + rank * 101 + clock * 13) % 211 - 105) / (7 + rank);
        if (opts->type == PLAIT_F64) wide[i] = x;
        else narrow[i] = (float)x;
        keys[i] = (uint64_t)(i * (rank + 2)) % (opts->rows == 0 ? 1000 : (uint64_t)opts->rows);
    }
    plait_status status = opts->rows == 0 || opts->keyed ? plait_table_inc(table, n, keys, wide, 1)
                                                         : plait_table_inc_range(table, 0, n, wide, 1);
    free(wide);
    free(keys);
    return status;
}

static plait_status hash_table(plait_table *table, uint64_t *hash) {
    uint64_t *keys;
    void     *values;
    int64_t   n;
    PLI_TRY(plait_table_dump(table, &n, &keys, &values));
    *hash = pli_hash_bytes(values, (size_t)(n * pli_row_bytes(&table->spec)), *hash);
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

/* Tables in an order of the worker's own; some are flushed at once, some later, some not at all. In one clock a worker
 * pushes nothing, as who has no rows. */
static plait_status push_and_flush(const job *j, plait_table **table, int32_t rank, int64_t clock) {
    pli_random random = pli_random_at(j->seed + 1, PLI_RANDOM_SCHEDULE, (uint64_t)rank, (uint64_t)clock);
    int32_t    order[TABLES_MAX];
    for (int32_t t = 0; t < j->tables; t++) order[t] = t;
    for (int32_t t = j->tables - 1; t > 0; t--) {
        const int32_t other = (int32_t)pli_random_below(&random, (uint64_t)t + 1), kept = order[t];
        order[t] = order[other];
        order[other] = kept;
    }
    for (int32_t i = 0; i < j->tables; i++) {
        const int32_t t = order[i];
        if (!(clock == 2 && rank == 1)) PLI_TRY(push(table[t], &j->table[t], rank, clock));
        if (j->seed > 0 && pli_random_below(&random, 3) > 0) PLI_TRY(plait_table_flush(table[t]));
        if (j->seed > 0 && i > 0 && pli_random_below(&random, 4) == 0) PLI_TRY(plait_table_flush(table[order[i - 1]]));
    }
    return PLAIT_OK;
}

static plait_status train(plait_job *pj, void *user) {
    job         *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *table[TABLES_MAX];
    uint64_t     hash = 1;
    for (int t = 0; t < j->tables; t++) PLI_TRY(plait_table_create(pj, &j->table[t], &table[t]));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        PLI_TRY(push_and_flush(j, table, plait_comm_rank(comm), clock));
        PLI_TRY(end_clock(pj, j->begun));
    }
    PLI_TRY(plait_job_barrier(pj));
    for (int t = 0; t < j->tables; t++) PLI_TRY(hash_table(table[t], &hash));
    if (plait_comm_rank(comm) == 0) j->hash = hash;
    return PLAIT_OK;
}

static void must_be_alike(job *j, int32_t workers, const char *collective) {
    uint64_t hash = 0;
    for (uint64_t seed = 0; seed <= SEEDS; seed++) {
        j->seed = seed;
        run(j, workers, collective, train);
        if (seed == 0) hash = j->hash;
        if (j->hash != hash) fail_msg("%s, %d workers, seed %d: other bits", collective, workers, (int)seed);
    }
}

static void test_sums_of_all_kinds(void **state) {
    (void)state;
    static const char *const collectives[] = { "ring", "messages", "auto", "hierarchical" };
    for (int k = 0; k < 8; k++) {
        job j = { .topology = "allreduce", .begun = k / 4 };
        add(&j, 70, "adam");
        add(&j, 80000, "sgd");                                    /* 320 kB: by itself */
        add(&j, 40000, "adagrad")->consistency = "bounded-delay:2";
        add(&j, 0, "adagrad");                                    /* lists */
        add(&j, 60, "sgd")->keyed = 1;                            /* lists, then marked */
        add(&j, 3000, "sgd")->exact = 1;
        add(&j, 500, "adam")->sharded = 1;
        add(&j, 200, NULL);                                       /* additive: leaves with the clock */
        add(&j, 90, NULL)->consistency = "local-sgd:2";           /* has a collective of its own */
        add(&j, 800, "sgd")->type = PLAIT_F64;
        add(&j, 65000, "momentum");                               /* small, with others no more */
        if (k % 4 == 0) add(&j, 700000, "sgd")->type = PLAIT_F64; /* 5.6 MB: cut */
        must_be_alike(&j, 2 + k % 3, collectives[k % 4]);
    }
}

static void test_pushes_of_all_kinds(void **state) {
    (void)state;
    static const char *const filters[] = { NULL, "key-cache,fixed8,zstd", "onebit" };
    for (int k = 0; k < 6; k++) {
        job j = { .topology = k % 2 ? "ps" : "hybrid",
                  .servers = k % 3 == 2 ? 2 : 0,
                  .aggregate = k == 3 ? "host" : NULL,
                  .begun = k / 4,
                  .backup = 0 };
        add(&j, 70, "adam");
        add(&j, 90000, "sgd")->filter = k == 3 ? NULL : filters[k % 3];
        add(&j, 0, "adagrad")->filter = k == 3 ? NULL : filters[k % 3];
        add(&j, 60, "sgd")->keyed = 1;
        add(&j, 3000, "sgd")->exact = 1;
        add(&j, 200, NULL);
        add(&j, 20000, "adagrad")->topology = "ps";
        if (k != 3) add(&j, 20000, "adagrad")->consistency = k % 2 ? "local-sgd:2" : NULL;
        j.table[1].topology = "ps";
        must_be_alike(&j, 3, k % 2 ? "ring" : "auto");
    }
}

/* --- what it promises and forbids --------------------------------------------------------------------------------- */

static plait_status fails(plait_comm *comm, plait_status status, plait_status wanted, const char *text) {
    CHECK(status == wanted);
    if (strstr(plait_comm_error(comm)->text, text) == NULL)
        return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "'%s' is not in the error", text);
    return PLAIT_OK;
}

static plait_status forbid(plait_job *pj, void *user) {
    const job   *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *ruled, *added;
    const float  one[4] = { 1, 1, 1, 1 };
    float        values[4];
    PLI_TRY(plait_table_create(pj, &j->table[0], &ruled));
    PLI_TRY(plait_table_create(pj, &j->table[1], &added));
    for (int clock = 0; clock < 2; clock++) {
        PLI_TRY(plait_table_inc_range(ruled, 0, 4, one, 1));
        PLI_TRY(plait_table_inc_range(added, 0, 4, one, 0));
        PLI_TRY(plait_table_flush(ruled));
        PLI_TRY(plait_table_flush(ruled));
        PLI_TRY(plait_table_flush(added));
        PLI_TRY(plait_table_get_range(ruled, 0, 4, values)); /* as before */
        CHECK(values[3] == (float)-clock);
        PLI_TRY(plait_table_get_range(added, 0, 4, values)); /* with its own */
        CHECK(values[3] == (float)(clock * plait_comm_workers(comm) + 1));
        PLI_TRY(fails(comm, plait_table_inc_range(ruled, 0, 4, one, 1), PLAIT_EINVAL,
                      "inc after plait_table_flush in clock"));
        PLI_TRY(fails(comm, plait_table_inc_range(added, 0, 4, one, 0), PLAIT_EINVAL, "table b: inc after"));
        PLI_TRY(fails(comm, plait_job_barrier(pj), PLAIT_EINVAL, "plait_job_barrier in clock"));
        PLI_TRY(fails(comm, plait_job_leave(pj), PLAIT_EINVAL, "end it by plait_job_clock"));
        PLI_TRY(plait_job_clock(pj));
        PLI_TRY(plait_table_get_range(ruled, 0, 4, values));
        CHECK(values[3] == (float)-(clock + 1));
    }
    PLI_TRY(plait_job_barrier(pj));
    if (j->seed == 0) return PLAIT_OK;
    return plait_table_flush(ruled); /* and then the job's end is refused */
}

static void test_what_follows_a_flush(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        job j = { .topology = k % 2 ? "ps" : "allreduce" };
        add(&j, 4, "sgd")->rule.learning_rate = 1;
        add(&j, 4, NULL);
        run(&j, 1 + 2 * (k / 2), "ring", forbid);
        plait_error err;
        j.seed = 1;
        assert_int_equal(try_run(&j, 3, "ring", forbid, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "plait_job_destroy in clock 2"));
    }
}

/* --- an end in between -------------------------------------------------------------------------------------------- */

/* Worker 1 flushes and fails; the others flush or not, end the clock and hear of it. */
static plait_status fail_between(plait_job *pj, void *user) {
    const job   *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *table[3];
    const int32_t rank = plait_comm_rank(comm);
    for (int t = 0; t < 3; t++) PLI_TRY(plait_table_create(pj, &j->table[t], &table[t]));
    for (int64_t clock = 0;; clock++) {
        for (int t = 2; t >= 0; t--) {
            PLI_TRY(push(table[t], &j->table[t], rank, clock));
            if (rank != 2) PLI_TRY(plait_table_flush(table[t]));
            if (rank == 1 && clock == 2 && t == 1)
                return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "as the test wants");
        }
        PLI_TRY(plait_job_clock(pj));
        for (int t = 0; t < 3; t++) {
            const void *values;
            PLI_TRY(plait_table_read(table[t], 0, 1, &values));
        }
    }
}

static void test_a_worker_ends_between_a_flush_and_the_clock(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        job j = { .topology = k % 2 ? "ps" : "allreduce", .servers = k == 3 };
        plait_error err;
        int64_t     live = pli_alloc_live();
        add(&j, 70, "adam");
        add(&j, 90000, "sgd");
        add(&j, 100000, "adagrad");
        assert_true(try_run(&j, 3, k / 2 ? "ring" : "messages", fail_between, &err) < 0);
        assert_non_null(strstr(err.text, "as the test wants"));
        assert_int_equal(pli_alloc_live(), live);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_all_kinds),
        cmocka_unit_test(test_pushes_of_all_kinds),
        cmocka_unit_test(test_what_follows_a_flush),
        cmocka_unit_test(test_a_worker_ends_between_a_flush_and_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
