/* A rank pays for what it computes before it answers, whatever other ranks send in the meantime. Only keys cost
 * anything, a second each. So a get of one key, which first the worker and then the server looks up, takes two
 * seconds, and all its messages take a few microseconds. */
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

enum { WORKERS = 3, GETS = 4, TALK = 1000 /* messages, 10 ms apart */ };
#define MS UINT64_C(1000000)

static plait_status get(plait_comm *comm, plait_table *t, uint64_t key) {
    double      value;
    uint64_t    from_ns = pli_comm_now(comm);
    PLI_TRY(plait_table_get(t, 1, &key, &value));
    uint64_t took_ns = pli_comm_now(comm) - from_ns;
    if (took_ns >= 2000 * MS && took_ns < 2001 * MS) return PLAIT_OK;
    return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "a get of two seconds' work took %.6f s",
                    (double)took_ns * 1e-9);
}

/* Two workers talk to each other while the third gets. */
static plait_status talk(plait_comm *comm) {
    int32_t other = 3 - plait_comm_rank(comm);
    char    byte = 0;
    for (int i = 0; i < TALK; i++) {
        pli_comm_work(comm, PLI_WORK_ENTRIES, 1);
        PLI_TRY(plait_comm_send(comm, other, i, &byte, 1));
        PLI_TRY(plait_comm_recv(comm, other, i, &byte, 1, NULL, NULL));
    }
    return PLAIT_OK;
}

static plait_status work(plait_job *job) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table_opts opts;
    plait_table     *t;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = 0;
    opts.cols = 1;
    opts.type = PLAIT_F64;
    opts.consistency = "async";
    PLI_TRY(plait_table_create(job, &opts, &t));
    if (plait_comm_rank(comm) > 0) return talk(comm);
    for (uint64_t key = 0; key < GETS; key++) PLI_TRY(get(comm, t, key));
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *user) {
    plait_job_opts opts;
    plait_job     *job = NULL;
    (void)user;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_status status = pli_comm_is_worker(comm) ? work(job) : PLAIT_OK;
    if (status < 0) {
        pli_job_abandon(&job);
        return status;
    }
    return plait_job_destroy(&job);
}

/* SimGrid needs a process of its own. */
static int run(const char *cluster) {
    plait_comm_opts opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&opts);
    opts.transport = "sim";
    opts.workers = WORKERS;
    opts.servers = 1;
    opts.cluster = cluster;
    opts.timeout_ns = UINT64_C(60000) * MS;
    plait_status status = plait_comm_run(&opts, body, NULL, &err);
    if (status < 0) printf("rank %d: %s\n", err.rank, err.text);
    fflush(stdout);
    return status < 0;
}

static void test_a_server_pays_before_it_answers(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "paid_test.%d.yaml", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "version: 1\nhosts: [{count: %d}]\n"
            "cost: {key: 1 s, entry: 10 ms, value: 0 s, sum: 0 s, parsed: 0 s, message: 1 us}\n", WORKERS + 1);
    assert_int_equal(fclose(file), 0);
    pid_t child = fork();
    if (child == 0) _exit(run(path));
    int code = -1;
    assert_int_equal(waitpid(child, &code, 0), child);
    unlink(path);
    assert_int_equal(code, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_server_pays_before_it_answers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
