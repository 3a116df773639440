/* A rank without a body: plait_comm_open and plait_comm_close. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <plait/comm.h>

static plait_comm *opened(void) {
    plait_comm *comm = NULL;
    plait_error err;
    if (plait_comm_open(NULL, &comm, &err) < 0) fail_msg("%s", err.text);
    return comm;
}

static void sum_alone(plait_comm *comm) {
    float x[2] = { 1, 2 };
    assert_int_equal(plait_comm_allreduce(comm, x, 2, PLAIT_F32, PLAIT_SUM), PLAIT_OK);
    assert_int_equal(plait_comm_barrier(comm), PLAIT_OK);
    assert_true(x[0] == 1 && x[1] == 2);
}

static void test_one_rank_on_the_callers_thread(void **state) {
    (void)state;
    plait_comm *comm = opened();
    assert_int_equal(plait_comm_rank(comm), 0);
    assert_int_equal(plait_comm_size(comm), 1);
    assert_string_equal(plait_comm_transport(comm), "threads");
    sum_alone(comm);
    assert_int_equal(plait_comm_close(&comm, PLAIT_OK, NULL), PLAIT_OK);
    assert_null(comm);
    assert_int_equal(plait_comm_close(&comm, PLAIT_OK, NULL), PLAIT_OK);
    assert_int_equal(plait_comm_close(NULL, PLAIT_OK, NULL), PLAIT_OK);
}

static void test_several_at_once(void **state) {
    (void)state;
    plait_comm *comm[8];
    for (int i = 0; i < 8; i++) comm[i] = opened();
    for (int i = 0; i < 8; i++) {
        char hello[4] = "abc", got[4] = "";
        assert_int_equal(plait_comm_send(comm[i], 0, 7, hello, sizeof hello), PLAIT_OK);
        assert_int_equal(plait_comm_recv(comm[i], 0, 7, got, sizeof got, NULL, NULL), PLAIT_OK);
        assert_string_equal(got, hello);
    }
    for (int i = 7; i >= 0; i--) assert_int_equal(plait_comm_close(&comm[i], PLAIT_OK, NULL), PLAIT_OK);
}

static void *use_and_close(void *arg) {
    plait_comm *comm = arg;
    sum_alone(comm);
    plait_comm_close(&comm, PLAIT_OK, NULL);
    return comm;
}

static void test_another_thread_goes_on(void **state) {
    (void)state;
    pthread_t thread;
    void     *left = state;
    assert_int_equal(pthread_create(&thread, NULL, use_and_close, opened()), 0);
    assert_int_equal(pthread_join(thread, &left), 0);
    assert_null(left);
}

/* A failure of a call keeps its text; one of the caller's own has that of its status. */
static void test_a_failed_result(void **state) {
    (void)state;
    plait_error err;
    char        byte;
    plait_comm *comm = opened();
    plait_comm_send(comm, 0, 1, "long", 4);
    plait_status status = plait_comm_recv(comm, 0, 1, &byte, 1, NULL, NULL);
    assert_int_equal(status, PLAIT_ESHAPE);
    char text[sizeof err.text];
    strcpy(text, plait_comm_error(comm)->text);
    assert_int_equal(plait_comm_close(&comm, status, &err), PLAIT_ESHAPE);
    assert_string_equal(err.text, text);
    assert_int_equal(err.rank, 0);
    comm = opened();
    assert_int_equal(plait_comm_close(&comm, PLAIT_EIO, &err), PLAIT_EIO);
    assert_string_equal(err.text, plait_status_text(PLAIT_EIO));
}

static void refuse(const char *transport, int32_t workers, int32_t servers, plait_status wanted) {
    plait_comm     *comm = NULL;
    plait_error     err = { 0 };
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = workers;
    opts.servers = servers;
    assert_int_equal(plait_comm_open(&opts, &comm, &err), wanted);
    assert_null(comm);
    assert_true(err.text[0] != '\0');
    if (wanted == PLAIT_EREFUSED) assert_non_null(strstr(err.text, "plait_comm_run"));
}

static plait_status close_in_body(plait_comm *comm, void *user) {
    plait_comm *mine = comm;
    *(plait_status *)user = plait_comm_close(&mine, PLAIT_OK, NULL);
    return mine == comm ? PLAIT_OK : PLAIT_EIO;
}

static void test_what_is_refused(void **state) {
    (void)state;
    plait_status closed = PLAIT_OK;
    refuse("threads", 2, 0, PLAIT_EREFUSED);
    refuse("threads", 1, 1, PLAIT_EREFUSED);
    refuse("treads", 1, 0, PLAIT_ENAME);
    refuse("threads", -1, 0, PLAIT_EINVAL);
    assert_int_equal(plait_comm_run(NULL, close_in_body, &closed, NULL), PLAIT_OK);
    assert_int_equal(closed, PLAIT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_rank_on_the_callers_thread), cmocka_unit_test(test_several_at_once),
        cmocka_unit_test(test_another_thread_goes_on),         cmocka_unit_test(test_a_failed_result),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
