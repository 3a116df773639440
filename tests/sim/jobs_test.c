/* Jobs one after the other on the same ranks, over a network that doubles, delays and loses messages: a message of
 * one job does not count in the next, and no rank waits for an answer that was lost with the last job. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"

enum { JOBS = 4, CLOCKS = 6, ROWS = 4, WORKERS = 3, SEEDS = 3 };

static plait_status work(plait_job *job) {
    static const double ones[ROWS] = { 1, 1, 1, 1 };
    plait_comm         *comm = plait_job_comm(job);
    plait_table_opts    opts;
    plait_table        *t;
    double              v[ROWS];
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.cols = 1;
    opts.type = PLAIT_F64;
    PLI_TRY(plait_table_create(job, &opts, &t));
    for (int c = 0; c < CLOCKS; c++) {
        PLI_TRY(plait_table_get_range(t, 0, ROWS, v));
        CHECK(v[0] == c * WORKERS);
        PLI_TRY(plait_table_inc_range(t, 0, ROWS, ones, 0));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

static plait_status jobs(plait_comm *comm, void *user) {
    plait_job_opts opts;
    (void)user;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    for (int i = 0; i < JOBS; i++) {
        plait_job *job = NULL;
        PLI_TRY(plait_job_create(comm, &opts, &job));
        plait_status status = pli_comm_is_worker(comm) ? work(job) : PLAIT_OK;
        if (status < 0) {
            pli_job_abandon(&job);
            return status;
        }
        PLI_TRY(plait_job_destroy(&job));
    }
    return PLAIT_OK;
}

/* SimGrid needs a process of its own. */
static void run(const char *cluster, int32_t servers, uint64_t seed) {
    pid_t child = fork();
    if (child == 0) {
        plait_comm_opts opts;
        plait_error     err = { 0 };
        plait_comm_opts_init(&opts);
        opts.transport = "sim";
        opts.workers = WORKERS;
        opts.servers = servers;
        opts.cluster = cluster;
        opts.seed = seed;
        opts.timeout_ns = UINT64_C(60) * 1000000000;
        plait_status status = plait_comm_run(&opts, jobs, NULL, &err);
        if (status < 0) printf("%d servers, seed %d: rank %d: %s\n", servers, (int)seed, err.rank, err.text);
        fflush(stdout);
        _exit(status < 0);
    }
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
}

static void run_all(const char *messages) {
    char path[64];
    snprintf(path, sizeof path, "jobs_test.%d.yaml", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "version: 1\nhosts: [{count: %d}]\nevents:\n  - messages: {%s}\n", WORKERS + 1, messages);
    assert_int_equal(fclose(file), 0);
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int32_t servers = 0; servers < 2; servers++) run(path, servers, seed);
    unlink(path);
}

static void test_a_job_takes_nothing_of_the_job_before(void **state) {
    (void)state;
    run_all("doubled: 1, delayed: 0.3, delay: 3 ms");
}

static void test_a_job_ends_where_its_last_answers_are_lost(void **state) {
    (void)state;
    run_all("dropped: 0.2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_takes_nothing_of_the_job_before),
        cmocka_unit_test(test_a_job_ends_where_its_last_answers_are_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
