/* Tables whose copies are averaged with neighbours, through the public calls. All copies together hold what the
 * workers have added, whatever the graph. A barrier shows the average, and the own copies stay as they were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#define CHECK(is)                                                                                   \
    do {                                                                                            \
        if (!(is)) {                                                                                \
            fprintf(stderr, "rank %d, line %d: %s\n",                                               \
                    plait_comm_rank(plait_job_comm(job)), __LINE__, #is);                           \
            return PLAIT_EINVAL;                                                                    \
        }                                                                                           \
    } while (0)

enum { ROWS = 40, CLOCKS = 15 };

static plait_status make(plait_job *job, const char *name, const char *rule, int keyed, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = ROWS;
    opts.type = PLAIT_F64;
    opts.keyed = keyed;
    opts.rule.name = rule;
    opts.rule.learning_rate = 0.5;
    return plait_table_create(job, &opts, table_out);
}

static int near(double x, double y) { return fabs(x - y) <= 1e-9 * (1 + fabs(y)); }

/* Worker w adds w + 1 to row 3 and pushes a gradient of w + 1 for it, one example each; a batch is all workers'
 * examples. */
static plait_status move(plait_job *job, void *user) {
    int          rounds = strcmp((const char *)user, "bsp") == 0;
    plait_comm  *comm = plait_job_comm(job);
    int32_t      me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_table *added, *ruled, *keyed;
    uint64_t     key = 3;
    double       mine = me + 1, value, own, all[ROWS];
    double       sum = workers * (workers + 1) / 2.0;
    const double *read;
    CHECK(make(job, "added", NULL, 0, &added) == PLAIT_OK && make(job, "ruled", "sgd", 0, &ruled) == PLAIT_OK);
    CHECK(make(job, "keyed", "sgd", 1, &keyed) == PLAIT_OK);
    for (int64_t incs = 1; incs <= CLOCKS; incs++) {
        CHECK(plait_table_get(added, 1, &key, &own) == PLAIT_OK);
        CHECK(plait_table_inc(added, 1, &key, &mine, 0) == PLAIT_OK);
        CHECK(plait_table_get(added, 1, &key, &value) == PLAIT_OK && value - own >= mine * (1 - 1e-9)); /* at once */
        CHECK(!rounds || near(value, own + workers * mine));
        CHECK(plait_table_get_range(added, 3, 1, &own) == PLAIT_OK && near(value, own));
        CHECK(plait_table_inc_range(ruled, 3, 1, &mine, 1) == PLAIT_OK);
        CHECK(plait_table_inc(keyed, 1, &key, &mine, 1) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK);
        CHECK(plait_table_get(ruled, 1, &key, &own) == PLAIT_OK && own < 0);
        if (incs != 6 && incs != CLOCKS) continue;
        CHECK(plait_job_barrier(job) == PLAIT_OK);
        CHECK(plait_table_read(added, 0, ROWS, (const void **)&read) == PLAIT_OK && near(read[3], (double)incs * sum) &&
              read[4] == 0);
        CHECK(plait_table_get(ruled, 1, &key, &value) == PLAIT_OK &&
              plait_table_get_range(keyed, 0, ROWS, all) == PLAIT_OK);
        /* a step of bsp is 0.5 x the mean of the gradients. Without rounds copies weigh as their neighbours have it. */
        if (rounds) CHECK(near(value, -0.5 * sum / workers * (double)incs) && near(all[3], value) && all[0] == 0);
        CHECK(value < 0 && value >= -0.5 * workers * (double)incs);
        CHECK(plait_job_clock(job) == PLAIT_OK && plait_table_get(ruled, 1, &key, &value) == PLAIT_OK);
        if (workers == 1) CHECK(near(value, own));
    }
    return PLAIT_OK;
}

static plait_status run(int32_t workers, const char *topology, const char *consistency, plait_work_fn *work,
                        plait_error *err) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.workers = workers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = topology;
    job_opts.consistency = consistency;
    job_opts.batch = workers;
    return plait_run(&comm_opts, &job_opts, work, (void *)(uintptr_t)consistency, err);
}

static void test_copies(void **state) {
    (void)state;
    static const char *const topologies[] = { "gossip:ring", "gossip:torus", "gossip:exp" };
    static const char *const consistencies[] = { "bsp", "async" };
    for (int t = 0; t < 3; t++)
        for (int c = 0; c < 2; c++)
            for (int32_t workers = 1; workers <= 6; workers++) {
                plait_error err = { 0 };
                if (run(workers, topologies[t], consistencies[c], move, &err) < 0)
                    fail_msg("%s x %s, %d workers: %s", topologies[t], consistencies[c], workers, err.text);
            }
}

/* A barrier stands between a worker's incs. The worker goes on seeing what it has added since its last clock, and in
 * the end all is there that all have added. */
static plait_status pause(plait_job *job, void *user) {
    (void)user;
    plait_comm   *comm = plait_job_comm(job);
    int32_t       me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_table  *added, *keyed;
    uint64_t      keys[2] = { 3, 5 };
    double        mine[2] = { me + 1, me + 1 }, value[2], sum = workers * (workers + 1) / 2.0;
    const double *read;
    CHECK(make(job, "added", NULL, 0, &added) == PLAIT_OK && make(job, "keyed", NULL, 1, &keyed) == PLAIT_OK);
    for (int64_t round = 0; round < 3; round++) {
        double all = (double)round * sum;
        CHECK(plait_table_inc(added, 2, keys, mine, 0) == PLAIT_OK &&
              plait_table_inc(keyed, 2, keys, mine, 0) == PLAIT_OK);
        CHECK(plait_job_barrier(job) == PLAIT_OK);
        CHECK(plait_table_get(added, 2, keys, value) == PLAIT_OK && near(value[0], all + mine[0]) &&
              near(value[1], value[0]));
        CHECK(plait_table_get(keyed, 2, keys, value) == PLAIT_OK && near(value[0], all + mine[0]) &&
              near(value[1], value[0]));
        CHECK(plait_table_get_range(added, 5, 1, value) == PLAIT_OK && near(value[0], all + mine[0]));
        CHECK(plait_table_read(added, 2, 2, (const void **)&read) == PLAIT_OK && near(read[1], all + mine[0]) &&
              read[0] == 0);
        CHECK(plait_table_read(keyed, 2, 2, (const void **)&read) == PLAIT_OK && near(read[1], all + mine[0]) &&
              read[0] == 0);
        CHECK(plait_job_clock(job) == PLAIT_OK && plait_job_barrier(job) == PLAIT_OK);
        CHECK(plait_table_read(added, 2, 2, (const void **)&read) == PLAIT_OK && near(read[1], all + sum));
        CHECK(plait_table_get(keyed, 2, keys, value) == PLAIT_OK && near(value[1], all + sum));
    }
    return PLAIT_OK;
}

static void test_barriers_between_incs(void **state) {
    (void)state;
    for (int c = 0; c < 2; c++)
        for (int32_t workers = 1; workers <= 3; workers++) {
            plait_error err = { 0 };
            if (run(workers, "gossip:ring", c == 0 ? "bsp" : "async", pause, &err) < 0)
                fail_msg("%d workers: %s", workers, err.text);
        }
}

static plait_status ask_too_much(plait_job *job, void *user) {
    plait_table_opts opts;
    plait_table     *table;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "sparse";
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_EREFUSED);
    CHECK(strstr(plait_comm_error(plait_job_comm(job))->text, "sparse") != NULL);
    opts.name = "odd";
    opts.rows = 4;
    opts.topology = "gossip:star";
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_EINVAL);
    CHECK(strstr(plait_comm_error(plait_job_comm(job))->text, "ring|torus|exp") != NULL);
    opts.topology = "gossip:exp";
    opts.exact = 1;
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_EREFUSED);
    CHECK(strstr(plait_comm_error(plait_job_comm(job))->text, "nearest is allreduce") != NULL);
    return PLAIT_OK;
}

static void test_refusals(void **state) {
    (void)state;
    plait_error err = { 0 };
    if (run(3, "gossip:ring", "bsp", ask_too_much, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(run(3, "gossip:ring", "ssp:2", ask_too_much, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "nearest is gossip:ring x bsp"));
    assert_int_equal(run(3, "gossip", "bsp", ask_too_much, &err), PLAIT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_copies), cmocka_unit_test(test_barriers_between_incs),
                                        cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
