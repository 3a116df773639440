/* The same schedules in simulated time: the plans are those of the threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_plans_are_those_of_the_threads) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
