/* Ranks as processes: the pairs that cross processes, each worker's part of a small sum, under mpirun -n 4. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"

enum { ROWS = 5000, CLOCKS = 30 };

static plait_status make(plait_job *job, const char *name, int64_t rows, const char *rule, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.type = PLAIT_F64;
    opts.rule.name = rule;
    opts.rule.learning_rate = 1;
    return plait_table_create(job, &opts, table_out);
}

/* Everybody adds 1 to its own keys of a sparse table and to all rows of dense ones in each clock. */
static plait_status count(plait_job *job, void *user) {
    const char   *consistency = user;
    plait_comm   *comm = plait_job_comm(job);
    int32_t       me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_table  *dense, *sparse, *ruled;
    static double ones[ROWS];
    const double *read;
    double        value[2];
    CHECK(make(job, "dense", ROWS, NULL, &dense) == PLAIT_OK && make(job, "sparse", 0, NULL, &sparse) == PLAIT_OK);
    CHECK(make(job, "ruled", ROWS, "sgd", &ruled) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) ones[i] = 1;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        uint64_t keys[2] = { (uint64_t)me, UINT64_C(1) << 40 };
        CHECK(plait_table_read(dense, 0, ROWS, (const void **)&read) == PLAIT_OK);
        if (strcmp(consistency, "bsp") == 0) CHECK(read[7] == (double)(clock * workers) && read[ROWS - 1] == read[7]);
        CHECK(read[7] >= (double)clock);
        CHECK(plait_table_get(sparse, 2, keys, value) == PLAIT_OK && value[0] == (double)clock &&
              value[1] >= (double)clock);
        CHECK(plait_table_inc(sparse, 2, keys, ones, 0) == PLAIT_OK);
        CHECK(plait_table_inc_range(dense, 0, ROWS, ones, 0) == PLAIT_OK);
        CHECK(plait_table_inc_range(ruled, 0, ROWS, ones, 1) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_read(dense, 0, ROWS, (const void **)&read) == PLAIT_OK && read[0] == CLOCKS * (double)workers);
    CHECK(plait_table_read(ruled, 0, ROWS, (const void **)&read) == PLAIT_OK);
    bool whole = strcmp(consistency, "bsp") == 0 || strcmp(plait_table_topology(ruled), "allreduce") == 0;
    double moved = whole ? CLOCKS : CLOCKS * (double)workers; /* the batch is 1 */
    CHECK(read[0] == -moved && read[ROWS - 1] == -moved);
    return PLAIT_OK;
}

static void run_work(plait_work_fn *work, const char *topology, const char *consistency, int32_t servers) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = "mpi";
    comm_opts.servers = servers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = topology;
    job_opts.consistency = consistency;
    if (plait_run(&comm_opts, &job_opts, work, (void *)(uintptr_t)consistency, &err) < 0)
        fail_msg("%s x %s, %d servers: rank %d: %s", topology, consistency, servers, err.rank, err.text);
}

static void run(const char *topology, const char *consistency, int32_t servers) {
    run_work(count, topology, consistency, servers);
}

static void test_ps_bsp(void **state) { (void)state; run("ps", "bsp", 0); }
static void test_ps_ssp(void **state) { (void)state; run("ps", "ssp:2", 0); }
static void test_ps_async(void **state) { (void)state; run("ps", "async", 0); }
static void test_ps_essp(void **state) { (void)state; run("ps", "essp:2", 0); }
static void test_ps_asp(void **state) { (void)state; run("ps", "asp:2:7", 0); }
static void test_ps_sequential(void **state) { (void)state; run("ps", "sequential", 0); }
static void test_ps_vap(void **state) { (void)state; run("ps", "vap:5", 0); }
static void test_ps_downpour(void **state) { (void)state; run("ps", "downpour:2:3", 1); }
static void test_allreduce(void **state) { (void)state; run("allreduce", "bsp", 0); }
static void test_allreduce_delay(void **state) { (void)state; run("allreduce", "bounded-delay:3", 0); }
/* The average after a barrier is what all have added; copies differ on the way. */
static plait_status average(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    int32_t       workers = plait_comm_workers(comm);
    plait_table  *dense, *ruled;
    static double ones[ROWS];
    const double *read;
    bool          rounds = strcmp(user, "async") != 0;
    CHECK(make(job, "dense", ROWS, NULL, &dense) == PLAIT_OK && make(job, "ruled", ROWS, "sgd", &ruled) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) ones[i] = 1;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        CHECK(plait_table_inc_range(dense, 0, ROWS, ones, 0) == PLAIT_OK);
        CHECK(plait_table_inc_range(ruled, 0, ROWS, ones, 1) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_read(dense, 0, ROWS, (const void **)&read) == PLAIT_OK);
    CHECK(fabs(read[0] - CLOCKS * (double)workers) < 1e-6 && fabs(read[ROWS - 1] - read[0]) < 1e-6);
    CHECK(plait_table_read(ruled, 0, ROWS, (const void **)&read) == PLAIT_OK);
    double moved = CLOCKS * (double)workers; /* the batch is 1, and all step alike; what weights are on their way do
                                                not */
    CHECK(rounds ? fabs(read[0] + moved) < 1e-6 : read[0] < 0 && read[0] > -moved - 1e-6);
    return PLAIT_OK;
}

static void test_gossip(void **state) { (void)state; run_work(average, "gossip:ring", "bsp", 0); }
static void test_gossip_async(void **state) { (void)state; run_work(average, "gossip:exp", "async", 0); }
static void test_rounds(void **state) { (void)state; run_work(average, "ps", "local-sgd:4", 0); }
static void test_rounds_sums(void **state) { (void)state; run_work(average, "allreduce", "local-sgd:4", 0); }

/* Tables that come behind the first clock, and go. */
static plait_status come_and_go(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    int32_t       workers = plait_comm_workers(comm);
    plait_table  *stays, *dense, *sparse;
    static double ones[ROWS];
    double        value[2];
    (void)user;
    CHECK(make(job, "stays", ROWS, NULL, &stays) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) ones[i] = 1;
    for (int round = 0; round < 4; round++) {
        const uint64_t keys[2] = { 3, ROWS - 1 };
        PLI_TRY(make(job, "dense", ROWS, NULL, &dense));
        PLI_TRY(make(job, "sparse", 0, NULL, &sparse));
        for (int64_t clock = 0; clock < 5; clock++) {
            PLI_TRY(plait_table_inc_range(stays, 0, ROWS, ones, 0));
            PLI_TRY(plait_table_inc_range(dense, 0, ROWS, ones, 0));
            PLI_TRY(plait_table_inc(sparse, 2, keys, ones, 0));
            PLI_TRY(plait_job_clock(job));
        }
        PLI_TRY(plait_job_barrier(job));
        PLI_TRY(plait_table_get(dense, 2, keys, value));
        CHECK(value[0] == 5.0 * workers && value[1] == value[0]);
        PLI_TRY(plait_table_get(sparse, 2, keys, value));
        CHECK(value[0] == 5.0 * workers && value[1] == value[0]);
        PLI_TRY(plait_table_drop(&dense));
        PLI_TRY(plait_table_drop(&sparse));
        PLI_TRY(plait_table_get(stays, 2, keys, value));
        CHECK(value[0] == 5.0 * (round + 1) * workers && value[1] == value[0]);
    }
    return PLAIT_OK;
}

static void test_late(void **state) { (void)state; run_work(come_and_go, "ps", "bsp", 0); }
static void test_late_async(void **state) { (void)state; run_work(come_and_go, "ps", "async", 2); }
static void test_late_sums(void **state) { (void)state; run_work(come_and_go, "allreduce", "bsp", 0); }
static void test_servers_apart(void **state) { (void)state; run("ps", "ssp:1", 2); }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ps_bsp), cmocka_unit_test(test_ps_ssp), cmocka_unit_test(test_ps_async),
        cmocka_unit_test(test_ps_essp), cmocka_unit_test(test_ps_asp), cmocka_unit_test(test_ps_sequential),
        cmocka_unit_test(test_ps_vap), cmocka_unit_test(test_ps_downpour), cmocka_unit_test(test_allreduce),
        cmocka_unit_test(test_allreduce_delay), cmocka_unit_test(test_gossip), cmocka_unit_test(test_gossip_async),
        cmocka_unit_test(test_rounds), cmocka_unit_test(test_rounds_sums),
        cmocka_unit_test(test_servers_apart), cmocka_unit_test(test_late), cmocka_unit_test(test_late_async),
        cmocka_unit_test(test_late_sums),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]); /* one run of ranks a process */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
