/* A rank's figures as another rank reads them: bytes by kind, and a wait that goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "comm/comm.h"
#include "comm/figures.h"

enum { TAG = 7, BYTES = 100, PROGRAM = 0, SUMS = 1 };

static pli_figures *read_all(plait_comm *comm) {
    pli_figures *all = NULL;
    plait_error  err;
    assert_int_equal(pli_comm_figures(comm, 0, &all, &err), PLAIT_OK);
    return all;
}

static uint64_t sum(const pli_figures *f) {
    uint64_t bytes = 0;
    for (int32_t k = 0; k < PLI_SENT_KINDS; k++) bytes += f->sent[k];
    return bytes;
}

/* Rank 1 sends, and waits; meanwhile rank 0 looks, until it has seen that wait. */
static plait_status body(plait_comm *comm, void *user) {
    char    bytes[BYTES] = { 0 };
    int64_t one[2] = { 1, 2 };
    (void)user;
    if (plait_comm_rank(comm) == 1) {
        PLI_TRY(plait_comm_send(comm, 0, TAG, bytes, sizeof bytes));
        PLI_TRY(plait_comm_recv(comm, 0, TAG, bytes, sizeof bytes, NULL, NULL));
        return plait_comm_allreduce(comm, one, 2, PLAIT_I64, PLAIT_SUM);
    }
    PLI_TRY(plait_comm_recv(comm, 1, TAG, bytes, sizeof bytes, NULL, NULL));
    pli_figures *all = read_all(comm);
    assert_true(all[0].heard && all[1].heard && all[1].in_flight);
    assert_true(all[1].sent[PROGRAM] == sizeof(pli_head) + BYTES && sum(&all[1]) == all[1].sent[PROGRAM]);
    assert_true(sum(&all[0]) == plait_comm_bytes_sent(comm) && all[0].sent[PROGRAM] == 0);
    while (all[1].wait_ns == 0) {
        pli_free(all);
        all = read_all(comm);
    }
    assert_true(all[1].lived_ns >= all[1].wait_ns);
    pli_free(all);
    PLI_TRY(plait_comm_send(comm, 1, TAG, bytes, sizeof bytes));
    PLI_TRY(plait_comm_allreduce(comm, one, 2, PLAIT_I64, PLAIT_SUM));
    assert_true(one[0] == 2);
    all = read_all(comm);
    assert_true(all[0].sent[SUMS] > 0 && sum(&all[0]) == plait_comm_bytes_sent(comm));
    pli_free(all);
    return PLAIT_OK;
}

static void test_what_a_rank_shows(void **state) {
    plait_comm_opts opts;
    plait_error     err;
    const int64_t   live = pli_alloc_live();
    (void)state;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = 2;
    assert_int_equal(plait_comm_run(&opts, body, NULL, &err), PLAIT_OK);
    assert_int_equal(pli_alloc_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_what_a_rank_shows) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
