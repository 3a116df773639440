/* Groups: collectives of members alone, on threads and in simulated time, in every form; what differs or crosses is
 * named. tests/mpi has the same story over processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "comm/group.h"
#include "comm/world.h"
#include "group_story.h"

static plait_status tell_story(plait_comm *comm, void *user) {
    (void)user;
    return plait_comm_rank(comm) < plait_comm_workers(comm) ? group_story(comm) : PLAIT_OK;
}

static plait_comm_opts opts_of(int32_t workers, const char *collective) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = workers;
    opts.collective = collective;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    return opts;
}

static void run_ok(const plait_comm_opts *opts, plait_body_fn *body) {
    plait_error err;
    int64_t     live = pli_alloc_live();
    if (plait_comm_run(opts, body, NULL, &err) < 0)
        fail_msg("%d workers, %s: rank %d: %s", opts->workers, opts->collective != NULL ? opts->collective : "auto",
                 err.rank, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static void test_members_alone_count_in_every_form(void **state) {
    static const char *const forms[] = { NULL, "messages", "ring", "tree", "recursive", "rabenseifner",
                                         "hierarchical" };
    static const int32_t     counts[] = { 2, 3, 4, 5, 8, 13 };
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            plait_comm_opts opts = opts_of(counts[c], forms[f]);
            opts.servers = (int32_t)(c % 3);
            run_ok(&opts, tell_story);
        }
}

/* In a child, since a process can simulate once. */
static void test_in_simulated_time(void **state) {
    (void)state;
    for (int32_t workers = 2; workers <= 9; workers += 7) {
        pid_t child = fork();
        if (child == 0) {
            plait_comm_opts opts = opts_of(workers, NULL);
            plait_error     err;
            opts.transport = "sim";
            plait_status status = plait_comm_run(&opts, tell_story, NULL, &err);
            if (status < 0) fprintf(stderr, "%d simulated workers: %s\n", workers, err.text);
            _exit(status == PLAIT_EMODULE ? 77 : status < 0);
        }
        int how;
        assert_true(waitpid(child, &how, 0) == child && WIFEXITED(how));
        if (WEXITSTATUS(how) == 77) print_message("skipped: no SimGrid\n");
        else assert_int_equal(WEXITSTATUS(how), 0);
    }
}

/* --- what goes wrong ---------------------------------------------------------------------------------------------- */

static plait_status differ(plait_comm *comm, void *user) {
    const int       what = *(const int *)user;
    const int32_t   me = plait_comm_rank(comm), own[] = { 0, me == 2 && what == 0 ? 2 : 1 };
    const int32_t   bad[] = { 0, 9 }, twice[] = { 1, 1 };
    plait_group    *group = NULL;
    plait_status    status;
    if (what == 0) status = plait_group_create(comm, "pair", 2, own, &group);
    else if (what == 1) status = plait_group_create(comm, me == 2 ? "other" : "pair", 2, own, &group);
    else status = plait_group_create(comm, "pair", 2, me != 2 ? own : what == 2 ? bad : twice, &group);
    const char *text = plait_comm_error(comm)->text;
    STORY(group == NULL);
    if (me == 2 && what == 2) STORY(status == PLAIT_EINVAL && strstr(text, "rank 9") != NULL);
    else if (me == 2 && what == 3) STORY(status == PLAIT_EINVAL && strstr(text, "twice") != NULL);
    else STORY(status == PLAIT_EMISMATCH && strstr(text, "rank 2") != NULL);
    const int32_t all[] = { 0, 1, 2 }; /* whatever has failed, the next group is as good as any */
    STORY(plait_group_create(comm, "all", 3, all, &group) == PLAIT_OK);
    STORY(plait_group_barrier(group) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_who_makes_another_group_is_named(void **state) {
    (void)state;
    for (int what = 0; what < 4; what++) {
        plait_comm_opts opts = opts_of(3, NULL);
        plait_error     err;
        if (plait_comm_run(&opts, differ, &what, &err) < 0) fail_msg("%d: rank %d: %s", what, err.rank, err.text);
    }
}

/* Two members make different calls of their group: both ranks and the group are named, by their ranks in the run. */
static plait_status mix_up(plait_comm *comm, void *user) {
    const int32_t members[] = { 2, 3 };
    int32_t       value = 0;
    plait_group  *group;
    (void)user;
    STORY(plait_group_create(comm, "pair", 2, members, &group) == PLAIT_OK);
    if (plait_group_rank(group) < 0) return PLAIT_OK;
    return plait_comm_rank(comm) == 2 ? plait_group_barrier(group)
                                      : plait_group_broadcast(group, &value, sizeof value, 0);
}

static void test_calls_that_differ_are_named(void **state) {
    plait_comm_opts opts = opts_of(4, NULL);
    plait_error     err;
    (void)state;
    assert_int_equal(plait_comm_run(&opts, mix_up, NULL, &err), PLAIT_EMISMATCH);
    if (strstr(err.text, "rank 2") == NULL || strstr(err.text, "rank 3") == NULL ||
        strstr(err.text, "of group pair") == NULL)
        fail_msg("%s", err.text);
}

/* Ranks 0 and 1 are in both groups and call them in crossing orders. */
static plait_status cross(plait_comm *comm, void *user) {
    const int32_t members[] = { 0, 1 };
    plait_group  *a, *b;
    (void)user;
    STORY(plait_group_create(comm, "stage0", 2, members, &a) == PLAIT_OK);
    STORY(plait_group_create(comm, "stage1", 2, members, &b) == PLAIT_OK);
    if (plait_comm_rank(comm) == 2) return PLAIT_OK;
    return plait_group_barrier(plait_comm_rank(comm) == 0 ? a : b);
}

static void test_crossing_orders_are_a_deadlock(void **state) {
    plait_comm_opts opts = opts_of(3, NULL);
    plait_error     err;
    (void)state;
    uint64_t start_ns = pli_now_ns();
    assert_int_equal(plait_comm_run(&opts, cross, NULL, &err), PLAIT_EDEADLOCK);
    if (strstr(err.text, "stage0") == NULL || strstr(err.text, "stage1") == NULL) fail_msg("%s", err.text);
    assert_true(pli_now_ns() - start_ns < UINT64_C(50) * 1000000000); /* before the deadline of 60 s */
}

/* A member ends without its call. */
static plait_status leave(plait_comm *comm, void *user) {
    const int32_t members[] = { 0, 2 };
    plait_group  *group;
    (void)user;
    STORY(plait_group_create(comm, "pair", 2, members, &group) == PLAIT_OK);
    return plait_comm_rank(comm) == 0 ? plait_group_barrier(group) : PLAIT_OK;
}

static void test_who_leaves_is_named(void **state) {
    plait_comm_opts opts = opts_of(3, NULL);
    plait_error     err;
    (void)state;
    assert_int_equal(plait_comm_run(&opts, leave, NULL, &err), PLAIT_EPEER);
    if (strstr(err.text, "rank 2 has left") == NULL) fail_msg("%s", err.text);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void test_ranks_and_numbers(void **state) {
    const int32_t workers[] = { 1, 4, 5 };
    pli_numbers   n;
    (void)state;
    assert_true(pli_numbers_make(3, workers, 7, 2, &n)); /* servers 7 and 8 */
    const int32_t of[] = { -1, 0, -1, -1, 1, 2, -1, 3, 4, -1 };
    for (int32_t r = 0; r < 10; r++) assert_int_equal(pli_numbers_of(&n, r), of[r]);
    assert_int_equal(pli_numbers_of(&n, -1), -1);
    for (int32_t i = -2; i < 7; i++)
        assert_int_equal(pli_numbers_rank(&n, i), i < 0 || i > 4 ? -1 : i < 3 ? workers[i] : 7 + i - 3);
    assert_int_equal(pli_numbers_rank(NULL, 5), 5);
    pli_free(n.rank);
}

/* Every allocation fails once: no rank hangs, nothing leaks. */
static plait_status make_and_meet(plait_comm *comm, void *user) {
    const int32_t members[] = { 0, 1 };
    plait_group  *group;
    (void)user;
    PLI_TRY(plait_group_create(comm, "pair", 2, members, &group));
    return plait_group_barrier(group);
}

static void test_every_failed_allocation(void **state) {
    plait_status status = PLAIT_ENOMEM;
    (void)state;
    for (int64_t k = 0, fine = 0; fine < 8; k++) { /* in release none fails; threads shift which one the k-th is */
        plait_comm_opts opts = opts_of(2, NULL);
        plait_error     err;
        int64_t         live = pli_alloc_live();
        pli_alloc_fail_after(k);
        status = plait_comm_run(&opts, make_and_meet, NULL, &err);
        pli_alloc_fail_after(-1);
        assert_int_equal(pli_alloc_live(), live);
        if (status < 0 && status != PLAIT_ENOMEM && status != PLAIT_EMISMATCH && status != PLAIT_EPEER)
            fail_msg("allocation %d: %s", (int)k, err.text);
        fine = status == PLAIT_OK ? fine + 1 : 0;
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_alone_count_in_every_form),
        cmocka_unit_test(test_in_simulated_time),
        cmocka_unit_test(test_who_makes_another_group_is_named),
        cmocka_unit_test(test_calls_that_differ_are_named),
        cmocka_unit_test(test_crossing_orders_are_a_deadlock),
        cmocka_unit_test(test_who_leaves_is_named),
        cmocka_unit_test(test_ranks_and_numbers),
        cmocka_unit_test(test_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
