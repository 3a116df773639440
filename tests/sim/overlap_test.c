/* A clock that is begun overlaps with computing. If a worker computes for a second while a sum travels for a second, it
 * takes one second; one after the other takes two. The values are the same. Computing costs by entry; the only other
 * cost is the link: each of 2 workers sends a sum's bytes once, 1 MB at 1 MB/s.
 *
 * A table that is flushed before the worker computes overlaps as well, even if no clock is begun: its sum or, with
 * servers, its push.
 *
 * A sum of three buckets is applied while it travels: it travels for three seconds, is applied for three, and takes
 * four in all. */
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

#include "table/table.h"

enum { WORKERS = 2, ROWS = 125000, CLOCKS = 4, LARGE = 3 * (4 << 20) / 8 - 3 };
#define SECOND UINT64_C(1000000000)

typedef struct how {
    const char *consistency;
    bool        begun, flushed;
    const char *topology;
    int32_t     workers;
    int64_t     rows;
    const char *bandwidth, *entry, *value; /* link, cost of an entry, cost of a value */
    double      clock_seconds;             /* how long a clock takes, about */
} how;

static plait_status one_clock(plait_job *job, const how *h, plait_table *t, const double *delta, int64_t clock) {
    plait_comm    *comm = plait_job_comm(job);
    plait_request *request = NULL;
    double         value;
    PLI_TRY(plait_table_inc_range(t, 0, h->rows, delta, 1));
    if (h->flushed) PLI_TRY(plait_table_flush(t));
    if (h->begun) PLI_TRY(plait_job_clock_begin(job, &request));
    pli_comm_work(comm, PLI_WORK_ENTRIES, 1);
    (void)pli_comm_now(comm); /* pays for the work */
    if (!h->begun) PLI_TRY(plait_job_clock(job));
    PLI_TRY(plait_request_wait(&request));
    PLI_TRY(plait_table_get_range(t, (h->rows - 1) * plait_comm_rank(comm) / (h->workers - 1), 1,
                                  &value)); /* a row of the own shard */
    if (plait_job_clock_now(job) == clock + 1 && value == -(double)(clock + 1)) return PLAIT_OK;
    return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "after clock %d a value is %g", (int)clock, value);
}

static plait_status work(plait_job *job, const how *h) {
    static double    delta[LARGE];
    plait_comm      *comm = plait_job_comm(job);
    plait_table_opts opts;
    plait_table     *t;
    for (int64_t i = 0; i < h->rows; i++) delta[i] = 1;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = h->rows;
    opts.type = PLAIT_F64;
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 1;
    PLI_TRY(plait_table_create(job, &opts, &t));
    uint64_t from_ns = pli_comm_now(comm);
    for (int64_t clock = 0; clock < CLOCKS; clock++) PLI_TRY(one_clock(job, h, t, delta, clock));
    double took = (double)(pli_comm_now(comm) - from_ns) / (double)SECOND / CLOCKS;
    if (took > h->clock_seconds * 0.99 && took < h->clock_seconds * 1.05) return PLAIT_OK;
    return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "a clock took %.3f s and not %.3f", took, h->clock_seconds);
}

static plait_status body(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job     *job = NULL;
    const how     *h = user;
    plait_job_opts_init(&opts);
    opts.topology = h->topology;
    opts.batch = h->workers;
    opts.consistency = h->consistency;
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_status status = work(job, h);
    if (status < 0) {
        pli_job_abandon(&job);
        return status;
    }
    return plait_job_destroy(&job);
}

static int run(const char *cluster, how *h) {
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "sim";
    opts.workers = h->workers;
    opts.cluster = cluster;
    plait_status status = plait_comm_run(&opts, body, h, &err);
    if (status < 0) printf("rank %d: %s\n", err.rank, err.text);
    fflush(stdout);
    return status < 0;
}

/* SimGrid needs a process of its own. */
static void run_apart(how h) {
    char path[64];
    snprintf(path, sizeof path, "overlap_test.%d.yaml", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file,
            "version: 1\nhosts: [{count: %d, bandwidth: %s, latency: 1 us}]\n"
            "cost: {key: 0 s, entry: %s, value: %s, sum: 0 s, parsed: 0 s, message: 1 us}\n",
            h.workers, h.bandwidth, h.entry, h.value);
    assert_int_equal(fclose(file), 0);
    pid_t child = fork();
    if (child == 0) _exit(run(path, &h));
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    unlink(path);
    assert_int_equal(code, 0);
}

static how small(bool begun, double seconds) {
    return (how){ .topology = "allreduce",
                  .consistency = "bsp",
                  .begun = begun,
                  .workers = WORKERS,
                  .rows = ROWS,
                  .bandwidth = "8 Mb/s",
                  .entry = "1 s",
                  .value = "0 s",
                  .clock_seconds = seconds };
}

static void test_one_after_the_other(void **state) {
    (void)state;
    run_apart(small(false, 2));
}

static void test_a_begun_clock_overlaps(void **state) {
    (void)state;
    run_apart(small(true, 1));
}

static void test_a_flushed_table_overlaps(void **state) {
    (void)state;
    how h = small(false, 1);
    h.flushed = true;
    run_apart(h);
}

/* Half of the rows are on the other worker's server, which takes half a second. */
static void test_a_push_leaves_while_its_worker_computes(void **state) {
    (void)state;
    how h = small(false, 1.5);
    h.topology = "ps";
    run_apart(h);
    h.clock_seconds = 1;
    h.flushed = true;
    run_apart(h);
}

/* Each of W workers sends 2 (W - 1) / W of a sum. 524288 values at 1.907 us take a second, and so do 4 MiB at 33.55
 * Mb/s. */
static void test_a_bucket_is_applied_while_the_next_one_travels(void **state) {
    (void)state;
    how h = { .topology = "allreduce",
              .consistency = "bsp",
              .workers = 2,
              .rows = LARGE,
              .bandwidth = "33.55 Mb/s",
              .entry = "0 s",
              .value = "1.907 us",
              .clock_seconds = 4 };
    run_apart(h);
    h.workers = 4;
    h.bandwidth = "50.33 Mb/s";
    run_apart(h);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_one_after_the_other),
                                        cmocka_unit_test(test_a_begun_clock_overlaps),
                                        cmocka_unit_test(test_a_flushed_table_overlaps),
                                        cmocka_unit_test(test_a_push_leaves_while_its_worker_computes),
                                        cmocka_unit_test(test_a_bucket_is_applied_while_the_next_one_travels) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
