/* Tables under local-sgd:H through the public calls: a worker reads its own updates at once and the others' only when a
 * round begins, in dense tables, dense ones by key and sparse ones; a barrier shows the average until the next clock,
 * and the copies go on as they were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#define CHECK(is)                                                                                                      \
    do {                                                                                                               \
        if (!(is)) {                                                                                                   \
            fprintf(stderr, "rank %d, clock %d, line %d: %s\n", plait_comm_rank(plait_job_comm(job)),                  \
                    (int)plait_job_clock_now(job), __LINE__, #is);                                                     \
            return PLAIT_EINVAL;                                                                                       \
        }                                                                                                              \
    } while (0)

enum { ROWS = 1500, CLOCKS = 15, ROUND = 4 };

typedef struct shape {
    int64_t rows;
    int     keyed;
} shape;
static const shape shapes[] = { { ROWS, 0 }, { ROWS, 1 }, { 0, 1 } };

static plait_status make(plait_job *job, const char *name, const char *rule, const shape *s, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = s->rows;
    opts.type = PLAIT_F64;
    opts.keyed = s->keyed;
    opts.rule.name = rule;
    opts.rule.learning_rate = 0.5;
    return plait_table_create(job, &opts, table_out);
}

static int near(double x, double y) { return fabs(x - y) <= 1e-9 * (1 + fabs(y)); }

/* All of the table, by what it has: its sum and how many rows are not zero. */
static plait_status sum_up(plait_job *job, plait_table *table, double *sum_out, int *rows_out) {
    int64_t   n;
    uint64_t *keys;
    void     *values;
    CHECK(plait_table_dump(table, &n, &keys, &values) == PLAIT_OK);
    *sum_out = *rows_out = 0;
    for (int64_t i = 0; i < n; i++) {
        *sum_out += ((const double *)values)[i];
        *rows_out += ((const double *)values)[i] != 0;
    }
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

/* Worker w adds w + 1 to row 7 and to row 1000 + w, and pushes a gradient of w + 1 for them, one example each. */
static plait_status move(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    int32_t      me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    double       mine[2] = { me + 1, me + 1 }, sum = workers * (workers + 1) / 2.0, value[2], dumped;
    uint64_t     keys[2] = { 7, 1000 + (uint64_t)me }, other = 1000 + (uint64_t)((me + 1) % workers);
    int          rows;
    plait_table *added, *ruled, *blind; /* the last is never read on the way */
    CHECK(make(job, "blind", "sgd", user, &blind) == PLAIT_OK);
    CHECK(make(job, "added", NULL, user, &added) == PLAIT_OK && make(job, "ruled", "sgd", user, &ruled) == PLAIT_OK);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        const bool shown = clock == 6; /* a barrier was passed in this clock */
        int64_t    begun = shown ? clock : clock - clock % ROUND, in = clock - begun;
        CHECK(plait_table_get(added, 2, keys, value) == PLAIT_OK);
        CHECK(near(value[0], (double)begun * sum + (double)in * mine[0]) && near(value[1], (double)clock * mine[0]));
        CHECK(plait_table_get(ruled, 2, keys, value) == PLAIT_OK);
        /* Of a batch of all workers' examples a step of bsp is 0.5 x their mean; an own step stands for all workers. */
        CHECK(near(value[0], -0.5 * ((double)begun * sum / workers + (double)in * mine[0])));
        CHECK(near(value[1], -0.5 * mine[0] * ((double)begun / workers + (double)in)));
        CHECK(plait_table_inc(added, 2, keys, mine, 0) == PLAIT_OK &&
              plait_table_inc(ruled, 2, keys, mine, 1) == PLAIT_OK);
        CHECK(plait_table_inc(blind, 2, keys, mine, 1) == PLAIT_OK);
        /* at once */
        CHECK(plait_table_get(added, 2, keys, value) == PLAIT_OK && near(value[1], (double)(clock + 1) * mine[0]));
        if (workers > 1) {
            CHECK(plait_table_get(added, 1, &other, value) == PLAIT_OK);
            CHECK(near(value[0], (double)begun * ((me + 1) % workers + 1)));
        }
        CHECK(plait_job_clock(job) == PLAIT_OK);
        if (clock != 5 && clock != CLOCKS - 1) continue;
        double all = (double)(clock + 1) * sum;
        CHECK(plait_job_barrier(job) == PLAIT_OK);
        CHECK(plait_table_get(added, 1, keys, value) == PLAIT_OK && near(value[0], all));
        CHECK(plait_table_get(ruled, 1, keys, value) == PLAIT_OK && near(value[0], -0.5 * all / workers));
        CHECK(plait_table_get(blind, 2, keys, value) == PLAIT_OK && near(value[0], -0.5 * all / workers));
        CHECK(near(value[1], -0.5 * (double)(clock + 1) * mine[0] / workers));
        CHECK(sum_up(job, added, &dumped, &rows) == PLAIT_OK && near(dumped, 2 * all) && rows == workers + 1);
        CHECK(sum_up(job, ruled, &dumped, &rows) == PLAIT_OK && near(dumped, -0.5 * 2 * all / workers) &&
              rows == workers + 1);
        if (clock == CLOCKS - 1) break;
        double gone = 0; /* an inc does not end what the barrier shows; the next clock goes on from the own copy */
        CHECK(plait_table_inc(added, 1, keys, &gone, 0) == PLAIT_OK);
        CHECK(plait_table_get(ruled, 1, keys, value) == PLAIT_OK && near(value[0], -0.5 * all / workers));
        CHECK(sum_up(job, ruled, &dumped, &rows) == PLAIT_OK && near(dumped, -0.5 * 2 * all / workers) &&
              rows == workers + 1);
    }
    return PLAIT_OK;
}

static plait_status run(int32_t workers, int32_t servers, const char *topology, const char *consistency,
                        plait_work_fn *work, const void *user, plait_error *err) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.workers = workers;
    comm_opts.servers = servers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = topology;
    job_opts.consistency = consistency;
    job_opts.batch = workers;
    return plait_run(&comm_opts, &job_opts, work, (void *)(uintptr_t)user, err);
}

static void test_rounds(void **state) {
    (void)state;
    static const char *const topologies[] = { "ps", "allreduce", "hybrid" };
    for (int t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int32_t workers = 1; workers <= 5; workers += 2) {
                plait_error err = { 0 };
                if (run(workers, t == 0 && workers > 1 ? 2 : 0, topologies[t], "local-sgd:4", move, &shapes[s], &err) <
                    0)
                    fail_msg("%s, shape %d, %d workers: %s", topologies[t], (int)s, workers, err.text);
            }
}

static plait_status ask_too_much(plait_job *job, void *user) {
    plait_table *table, *ftrl = NULL;
    double       answer;
    CHECK(make(job, "w", "sgd", user, &table) == PLAIT_OK);
    CHECK(make(job, "z", "ftrl", user, &ftrl) == PLAIT_EREFUSED);
    CHECK(strstr(plait_comm_error(plait_job_comm(job))->text, "nearest is adagrad") != NULL);
    CHECK(plait_table_call(&table, 1, "none", NULL, 0, &answer, sizeof answer) == PLAIT_ENAME);
    CHECK(plait_job_clock(job) == PLAIT_OK && plait_job_leave(job) == PLAIT_EREFUSED);
    return PLAIT_OK;
}

static void test_refusals(void **state) {
    (void)state;
    plait_error err = { 0 };
    if (run(2, 0, "ps", "local-sgd:2", ask_too_much, &shapes[0], &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(run(2, 0, "local", "local-sgd:2", ask_too_much, &shapes[0], &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "ps x local-sgd:2"));
    assert_int_equal(run(2, 0, "ps", "local-sgd:0", ask_too_much, &shapes[0], &err), PLAIT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rounds), cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
