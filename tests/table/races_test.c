/* Orders of events that a run rarely takes, each of which has once led to wrong values or to a wait without end: forced
 * here by the ranks themselves, and judged by the values and by the audit of the event log. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check.h"
#include "table/table.h"
#include "watch/audit/audit.h"
#include "watch/eventlog.h"

enum { ROWS = 4 };
static const double ones[ROWS] = { 1, 1, 1, 1 };

typedef struct scene {
    const char    *topology, *consistency;
    plait_work_fn *work;
    void          *user;
    pli_eventlog  *log;
} scene;

static plait_status body(plait_comm *comm, void *user) {
    scene         *s = user;
    plait_job     *job = NULL;
    plait_job_opts opts;
    plait_job_opts_init(&opts);
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    pli_comm_set_events(comm, pli_eventlog_sink(s->log));
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_status status = pli_comm_is_worker(comm) ? s->work(job, s->user) : PLAIT_OK;
    if (status >= 0) return plait_job_destroy(&job);
    pli_job_abandon(&job);
    return status;
}

static void judge(const char *path) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    plait_error  err = { 0 };
    if (pli_logfile_open(&path, 1, &file, &err) < 0 || pli_audit_run(file, NULL, &audit, &err) < 0)
        fail_msg("%s", err.text);
    pli_audit_verdict verdict = pli_audit_result(audit);
    if (pli_audit_first(audit) != NULL) printf("the audit: %s\n", pli_audit_first(audit)->text);
    pli_audit_free(&audit);
    pli_logfile_close(&file);
    unlink(path);
    assert_int_equal(verdict, PLI_AUDIT_PROVEN);
}

static void play(int32_t workers, int32_t servers, const char *topology, const char *consistency, plait_work_fn *work,
                 void *user) {
    scene           s = { .topology = topology, .consistency = consistency, .work = work, .user = user };
    plait_comm_opts opts;
    plait_error     err = { 0 };
    char            path[64];
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = workers;
    opts.servers = servers;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    snprintf(path, sizeof path, "races_test.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(path, workers + servers, "0123456789abcdef", NULL, NULL, &s.log, &err),
                     PLAIT_OK);
    plait_status status = plait_comm_run(&opts, body, &s, &err);
    assert_int_equal(pli_eventlog_close(&s.log, NULL), PLAIT_OK);
    if (status < 0) unlink(path);
    if (status < 0) fail_msg("%s x %s: rank %d: %s", topology, consistency, err.rank, err.text);
    judge(path);
}

static plait_status make_table(plait_job *job, const char *name, int64_t rows, const char *consistency,
                               plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.cols = 1;
    opts.type = PLAIT_F64;
    opts.consistency = consistency;
    return plait_table_create(job, &opts, table_out);
}

/* --- turns, after a barrier --------------------------------------------------------------------------------------- */

/* Worker 1 reads before worker 0 has had its turn, as it may at a barrier; in its own turn it must not see that
 * again. */
static plait_status read_then_take_turns(plait_job *job, void *user) {
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *t;
    double         v[ROWS];
    const uint64_t key = 2;
    const bool     by_key = *(const bool *)user;
    CHECK(make_table(job, "t", ROWS, NULL, &t) == PLAIT_OK && plait_job_barrier(job) == PLAIT_OK);
    if (plait_comm_rank(comm) == 1) CHECK(plait_table_get_range(t, 0, ROWS, v) == PLAIT_OK && v[0] == 0);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(plait_table_inc_range(t, 0, ROWS, ones, 0) == PLAIT_OK);
    if (by_key) CHECK(plait_table_get(t, 1, &key, v) == PLAIT_OK);
    else CHECK(plait_table_get_range(t, 0, ROWS, v) == PLAIT_OK);
    CHECK(v[0] == plait_comm_rank(comm) + 1);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return plait_job_barrier(job);
}

/* The same if the worker says that it goes on, as training does after a validation. */
static plait_status read_then_resume(plait_job *job, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *t;
    double       v[ROWS];
    CHECK(make_table(job, "t", ROWS, NULL, &t) == PLAIT_OK && plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_get_range(t, 0, ROWS, v) == PLAIT_OK && v[0] == 0);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    pli_job_resume(job);
    CHECK(plait_table_get_range(t, 0, ROWS, v) == PLAIT_OK && v[0] == plait_comm_rank(comm));
    CHECK(plait_table_inc_range(t, 0, ROWS, ones, 0) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return plait_job_barrier(job);
}

static void test_a_turn_after_a_barrier_sees_the_turns_before_it(void **state) {
    (void)state;
    bool by_key = false;
    play(2, 1, "ps", "sequential", read_then_take_turns, &by_key);
    by_key = true;
    play(3, 0, "ps", "sequential", read_then_take_turns, &by_key);
    play(2, 1, "ps", "sequential", read_then_resume, NULL);
    play(3, 0, "local", "sequential", read_then_resume, NULL);
}

/* A get is begun at a barrier, and looked at when the worker has gone on: it has let nobody into a turn. */
static plait_status begin_then_go_on(plait_job *job, void *user) {
    (void)user;
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *t, *u;
    plait_request *request;
    double         v[ROWS];
    CHECK(make_table(job, "t", ROWS, "sequential", &t) == PLAIT_OK &&
          make_table(job, "u", ROWS, "async", &u) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_get_range_begin(t, 0, ROWS, v, &request) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(plait_table_inc_range(u, 0, ROWS, ones, 0) == PLAIT_OK);
    CHECK(plait_request_wait(&request) == PLAIT_OK && v[0] == 0);
    CHECK(pli_served_of(t)->shard[0].admitted == -1 && pli_served_of(t)->held[0].msg == NULL);
    CHECK(plait_table_inc_range(t, 0, ROWS, ones, 0) == PLAIT_OK);
    CHECK(pli_served_of(t)->shard[0].admitted == 0);
    CHECK(plait_table_get_range(t, 0, ROWS, v) == PLAIT_OK && v[0] == plait_comm_rank(comm) + 1);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return plait_job_barrier(job);
}

static void test_a_get_begun_at_a_barrier_is_no_turn(void **state) {
    (void)state;
    play(2, 1, "ps", "sequential", begin_then_go_on, NULL);
}

/* Worker 0 has a turn, and takes none: it waits at the barrier that follows. */
static plait_status dump_at_barrier(plait_job *job, void *user) {
    (void)user;
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *t;
    const uint64_t key = (uint64_t)plait_comm_rank(comm);
    uint64_t      *keys;
    void          *values;
    int64_t        n;
    CHECK(make_table(job, "t", 0, NULL, &t) == PLAIT_OK && plait_table_inc(t, 1, &key, ones, 0) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK && plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_dump(t, &n, &keys, &values) == PLAIT_OK && n == plait_comm_workers(comm));
    plait_comm_free(keys);
    plait_comm_free(values);
    return plait_job_barrier(job);
}

static void test_a_dump_at_a_barrier_waits_for_no_turn(void **state) {
    (void)state;
    play(3, 1, "ps", "sequential", dump_at_barrier, NULL);
}

/* --- several gets, several servers -------------------------------------------------------------------------------- */

/* Worker 1 updates between two gets of worker 0, both of which are under way when its clock ends. */
static plait_status begin_twice(plait_job *job, void *user) {
    (void)user;
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *t;
    plait_request *request[3];
    double         v[3][ROWS];
    bool           reads = plait_comm_rank(comm) == 0;
    CHECK(make_table(job, "t", ROWS, NULL, &t) == PLAIT_OK);
    for (int i = 0; i < 3; i++) {
        if (reads) CHECK(plait_table_get_range_begin(t, 0, ROWS, v[i], &request[i]) == PLAIT_OK);
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
        if (!reads) CHECK(plait_table_inc_range(t, 0, ROWS, ones, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    }
    if (!reads) return PLAIT_OK;
    CHECK(plait_request_wait(&request[1]) == PLAIT_OK); /* one from the middle; the clock looks at the others */
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_request_wait(&request[2]) == PLAIT_OK && plait_request_wait(&request[0]) == PLAIT_OK);
    for (int i = 0; i < 3; i++) CHECK(v[i][0] == i);
    return PLAIT_OK;
}

static void test_gets_under_way_may_be_looked_at_in_any_order(void **state) {
    (void)state;
    play(2, 1, "ps", "async", begin_twice, NULL);
    play(2, 1, "ps", "ssp:5", begin_twice, NULL);
}

/* The table lies on one of the servers, and another may keep the book of leases. The third need not know of either. */
static plait_status leave_all(plait_job *job, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *t;
    double       v[ROWS];
    uint64_t     now_ns;
    pli_out      out;
    CHECK(make_table(job, "t", ROWS, NULL, &t) == PLAIT_OK);
    if (plait_comm_rank(comm) == 1) CHECK(plait_job_leave(job) == PLAIT_OK);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    pli_port_enter(job->server_port, &now_ns, &out);
    const int32_t me = plait_comm_rank(comm);
    const bool    left = job->server.clocks[1] == PLAIT_LEFT;
    const bool    needs = job->client.link[me].used || me == pli_lease_keeper(&job->layout);
    pli_port_leave(job->server_port, &out);
    CHECK(plait_comm_barrier(comm) == PLAIT_OK);
    CHECK(left == needs);
    if (plait_comm_rank(comm) == 1) return PLAIT_OK;
    return plait_table_get_range(t, 0, ROWS, v);
}

static void test_a_worker_that_leaves_says_so_to_every_server_that_waits_for_it(void **state) {
    (void)state;
    play(3, 0, "ps", "ssp:1", leave_all, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_turn_after_a_barrier_sees_the_turns_before_it),
        cmocka_unit_test(test_a_get_begun_at_a_barrier_is_no_turn),
        cmocka_unit_test(test_a_dump_at_a_barrier_waits_for_no_turn),
        cmocka_unit_test(test_gets_under_way_may_be_looked_at_in_any_order),
        cmocka_unit_test(test_a_worker_that_leaves_says_so_to_every_server_that_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
