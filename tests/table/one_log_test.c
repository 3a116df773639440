/* An event log is of one run (plait/events.h). Several jobs of the run write to it; a second run, whose times its clock
 * does not have, is refused, and so is a second log of the same run, which would stay empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/events.h>
#include <plait/table.h>

#include "base/base.h"

enum { WORKERS = 3, CLOCKS = 4 };

typedef struct logs {
    plait_events *first, *second; /* second: NULL, or another one for the same run */
} logs;

static plait_status tick(plait_comm *comm, plait_events *events) {
    plait_job_opts opts;
    plait_job     *job;
    plait_job_opts_init(&opts);
    opts.events = events;
    PLI_TRY(plait_job_create(comm, &opts, &job));
    plait_status status = PLAIT_OK;
    for (int i = 0; status >= 0 && i < CLOCKS; i++) status = plait_job_clock(job);
    const plait_status ended = plait_job_destroy(&job);
    return status < 0 ? status : ended;
}

static plait_status work(plait_comm *comm, void *user) {
    const logs *l = user;
    PLI_TRY(plait_events_record(comm, l->first));
    PLI_TRY(tick(comm, l->first));
    PLI_TRY(plait_events_record(comm, l->first));
    PLI_TRY(tick(comm, NULL));
    return l->second != NULL ? plait_events_record(comm, l->second) : PLAIT_OK;
}

static plait_status run(logs *l, plait_error *err) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = WORKERS;
    return plait_comm_run(&opts, work, l, err);
}

static void make(const char *path, plait_events **out) {
    plait_error err;
    assert_int_equal(plait_events_create(path, out, &err), PLAIT_OK);
}

static void test_two_jobs_of_a_run_write_to_one_log(void **state) {
    logs        l = { NULL, NULL };
    plait_error err;
    (void)state;
    make("one_log.events", &l.first);
    assert_int_equal(run(&l, &err), PLAIT_OK);
    assert_int_equal(plait_events_close(&l.first, &err), PLAIT_OK);
    remove("one_log.events");
}

static void test_a_log_of_an_earlier_run_is_refused(void **state) {
    logs        l = { NULL, NULL };
    plait_error err;
    (void)state;
    make("one_log.events", &l.first);
    assert_int_equal(run(&l, &err), PLAIT_OK);
    assert_int_equal(run(&l, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "is of another run"));
    assert_int_equal(plait_events_close(&l.first, &err), PLAIT_OK);
    remove("one_log.events");
}

static void test_a_second_log_of_a_run_is_refused(void **state) {
    logs        l = { NULL, NULL };
    plait_error err;
    (void)state;
    make("one_log.events", &l.first);
    make("one_log.more", &l.second);
    assert_int_equal(run(&l, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "has another event log already"));
    assert_int_equal(plait_events_close(&l.second, &err), PLAIT_OK);
    assert_int_equal(plait_events_close(&l.first, &err), PLAIT_OK);
    remove("one_log.events");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_two_jobs_of_a_run_write_to_one_log),
                                        cmocka_unit_test(test_a_log_of_an_earlier_run_is_refused),
                                        cmocka_unit_test(test_a_second_log_of_a_run_is_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
