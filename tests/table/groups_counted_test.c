/* Tables of groups (groups.h) hold the sum of their members' updates, no more and no fewer, under every pair of
 * topology and consistency that trains for all workers; a pair that is refused for all is refused for a group. Each run
 * is judged a second time by the audit of its event log. PLAIT_JUDGE=audit leaves schedules to the audit alone: the
 * program ends with 4 when it refutes one, which PLAIT_SEED=seed replays. */
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

#include "table/audited.h"
#include "table/groups.h"

static const char *const topologies[] = { "local", "ps", "allreduce", "hybrid", "gossip:ring", "gossip:exp" };
static const char *const consistencies[] = { "bsp", "ssp:1", "essp:1", "asp:2:3", "bounded-delay:1", "sequential",
                                             "async", "vap:1000000", "downpour:1:1", "local-sgd:1" };

static void test_each_pair_counts_members_alone(void **state) {
    int32_t ran = 0, refused = 0;
    (void)state;
    for (size_t t = 0; t < sizeof topologies / sizeof *topologies; t++)
        for (size_t c = 0; c < sizeof consistencies / sizeof *consistencies; c++)
            for (int how = 0; how < 3; how++) {
                setting s = { .transport = "threads", .topology = topologies[t], .consistency = consistencies[c],
                              .exact = how == 1, .begun = how == 2, .seed = (uint64_t)how };
                plait_comm_opts opts = opts_of(s.transport, 0);
                plait_error     err = { 0 };
                audited         a;
                int64_t         live = pli_alloc_live();
                if (run_audited(&opts, count, &s, &a, &err) < 0)
                    fail_msg("%s x %s%s%s: rank %d: %s", s.topology, s.consistency, s.exact ? ", exact" : "",
                             s.begun ? ", begun" : "", err.rank, err.text);
                if (a.verdict != (s.refused ? PLI_AUDIT_EMPTY : PLI_AUDIT_PROVEN))
                    fail_msg("%s x %s: the audit: %d: %s", s.topology, s.consistency, (int)a.verdict, a.said);
                assert_int_equal(pli_alloc_live(), live);
                if (s.refused) refused++;
                else ran++;
            }
    print_message("%d settings counted exactly and proven by the audit, %d refused for groups as for all\n", ran,
                  refused);
    assert_true(ran >= 60);
}

/* --- schedules in simulated time ---------------------------------------------------------------------------------- */

enum { SKIPPED = 77, FAILED = 1, REFUTED = 4 };

/* Messages of the same instant come in another order with each seed, and workers are fast and slow in turn. */
static int run_schedule(uint64_t seed, bool blind) {
    const char *const *all = consistencies;
    setting            s = { .transport = "sim", .topology = seed % 4 == 3 ? "allreduce" : "ps",
                             .consistency = seed % 4 == 3 ? (seed % 8 == 3 ? "bsp" : "bounded-delay:1") : all[seed % 9],
                             .begun = seed % 2 != 0, .seed = seed, .blind = blind };
    const plait_comm_opts opts = opts_of(s.transport, seed);
    plait_error           err = { 0 };
    audited               a;
    plait_status          status = run_audited(&opts, count, &s, &a, &err);
    if (status == PLAIT_EMODULE) return SKIPPED;
    if (status < 0 || s.refused)
        fprintf(stderr, "%s x %s: rank %d: %s; PLAIT_SEED=%d\n", s.topology, s.consistency, err.rank, err.text,
                (int)seed);
    if (status < 0 || s.refused) return FAILED;
    if (a.verdict == PLI_AUDIT_PROVEN) return 0;
    fprintf(stderr, "%s x %s: the audit: %s; PLAIT_SEED=%d\n", s.topology, s.consistency, a.said, (int)seed);
    return REFUTED;
}

static void test_seeded_schedules(void **state) {
    const char *only = getenv("PLAIT_SEED"), *many = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    const bool  blind = judge != NULL && strcmp(judge, "audit") == 0;
    int         seeds = getenv("PLAIT_TEST_FULL") != NULL ? 2000 : 60, from = 0, ran = 0, how;
    (void)state;
    if (many != NULL) seeds = atoi(many) / 10; /* a schedule is a whole job, a process of its own */
    if (only != NULL) from = atoi(only), seeds = 1;
    for (int seed = from; seed < from + seeds; seed++, ran++) {
        pid_t child = fork(); /* a process can simulate once */
        if (child == 0) _exit(run_schedule((uint64_t)seed, blind));
        assert_true(waitpid(child, &how, 0) == child);
        if (WIFEXITED(how) && WEXITSTATUS(how) == SKIPPED) {
            print_message("skipped: no SimGrid\n");
            return;
        }
        if (blind && WIFEXITED(how) && WEXITSTATUS(how) == REFUTED) exit(REFUTED);
        if (!WIFEXITED(how) || WEXITSTATUS(how) != 0) fail_msg("PLAIT_SEED=%d", seed);
    }
    print_message("%d schedules, each counted exactly and proven by the audit\n", ran);
}

int main(void) {
    const struct CMUnitTest schedules[] = { cmocka_unit_test(test_seeded_schedules) };
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_each_pair_counts_members_alone),
                                        cmocka_unit_test(test_seeded_schedules) };
    if (getenv("PLAIT_JUDGE") != NULL || getenv("PLAIT_SEED") != NULL)
        return cmocka_run_group_tests(schedules, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
