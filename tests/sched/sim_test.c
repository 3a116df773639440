/* The same schedules in simulated time: the plans are those of the threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "program.h"

/* SimGrid takes one platform a process. */
static void child(const char *order, const char *consistency, int64_t variables) {
    program            simulated = { .transport = "sim", .topology = "ps", .consistency = consistency, .order = order,
                                     .workers = 4, .variables = variables, .take = 8, .steps = 25,
                                     .near = strcmp(order, "rotate") == 0 ? 0 : 1 };
    program            threads = simulated;
    pli_schedule_proof proof, other;
    plait_error        err = { 0 };
    threads.transport = "threads";
    const bool ran = play(&simulated, &proof, &err) >= 0 && play(&threads, &other, &err) >= 0;
    if (!ran) fprintf(stderr, "%s under %s: %s\n", order, consistency, err.text);
    const bool right = ran && proof.verdict == PLI_AUDIT_PROVEN && other.verdict == PLI_AUDIT_PROVEN &&
                       memcmp(simulated.hash, threads.hash, sizeof threads.hash) == 0;
    fflush(stderr);
    _exit(right ? 0 : 1);
}

static void test_plans_are_those_of_the_threads(void **state) {
    static const struct {
        const char *order, *consistency;
        int64_t     variables;
    } cases[] = { { "round-robin", "bsp", 50 }, { "random", "bsp", 50 },   { "priority", "bsp", 50 },
                  { "rotate", "bsp", 5 },       { "rotate", "ssp:2", 12 }, { "rotate", "async", 4 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const pid_t pid = fork();
        int         status = -1;
        assert_true(pid >= 0);
        if (pid == 0) child(cases[i].order, cases[i].consistency, cases[i].variables);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0) fail_msg("%s under %s", cases[i].order, cases[i].consistency);
    }
}

/* Three hosts and one of half the speed; 28 variables of 1 ms a step are 8 ms of all of them, and 14 of the slow one if
 * each has seven. */
static void slow_child(int leases, const char *order, double least, double most) {
    char              path[] = "/tmp/plait-sched-XXXXXX";
    const int         fd = mkstemp(path);
    static const char text[] = "version: 1\nhosts: [{count: 3}, {count: 1, speed: 0.5}]\ncost: {entry: 1us}\n";
    program           p = { .transport = "sim", .topology = "allreduce", .consistency = "bsp", .order = order,
                            .workers = 4, .variables = 60, .take = 28, .steps = 50, .leases = leases, .cluster = path,
                            .cost = 1000 };
    pli_schedule_proof proof;
    plait_error        err = { 0 };
    const bool wrote = fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)(sizeof text - 1) && close(fd) == 0;
    const bool ran = wrote && play(&p, &proof, &err) >= 0;
    const double share = p.seconds / (50 * 0.008);
    unlink(path);
    if (!ran || !(share >= least && share <= most))
        fprintf(stderr, "%s, leases %d: %g of the ideal; %s\n", order, leases, share, err.text);
    fflush(stderr);
    _exit(ran && proof.verdict == PLI_AUDIT_PROVEN && share >= least && share <= most ? 0 : 1);
}

static void test_who_is_slow_gets_fewer(void **state) {
    static const char *const orders[] = { "round-robin", "random", "priority" };
    (void)state;
    for (int i = 0; i < 6; i++) {
        const pid_t pid = fork();
        int         status = -1;
        assert_true(pid >= 0);
        if (pid == 0) slow_child(i % 2, orders[i / 2], i % 2 ? 0.99 : 1.7, i % 2 ? 1.15 : 1.9);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_are_those_of_the_threads),
        cmocka_unit_test(test_who_is_slow_gets_fewer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
