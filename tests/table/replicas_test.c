/* Seeded schedules of servers with two replicas (table/copies/replicas.h) over the direct driver: any one rank dies, at
 * any moment, and all that was acknowledged is there, once. Nobody hangs, and no machine fails.
 *
 * Sometimes the rank is only taken for dead and goes on for a while: what it says counts for nothing that is not safe
 * already. When all shards have two replicas again, another rank may die. Some workers may be spares, which have no
 * rows of data of their own, and no shards at first. A worker may leave early: it adds nothing from then on. In some
 * clocks workers take many messages; to some barriers each brings something.
 *
 * replicas_oracle.c says what must be in the tables. Every schedule is judged a second time, from its event log alone,
 * by the audit. PLAIT_JUDGE=audit leaves the verdict to it: the test then ends with 4 when the audit refutes a log, and
 * a schedule that the oracle finds wrong is only given up.
 *
 * PLAIT_SEED=seed replays a seed, PLAIT_TRACE=1 prints the events. */
#include "table/replicas_world.h"

enum {
    SCHEDULES = 2000,
    SCHEDULES_FULL = 20000,
    RARE = 8997 /* a new replica has all but the end of the clock under way when who serves dies, too */
};

static void play_schedules(int32_t replicas, uint64_t rare) {
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    for (int64_t i = 0; i < n + (seed == NULL && rare > 0); i++) {
        static world w;
        uint64_t     number = seed != NULL ? strtoull(seed, NULL, 10) : i == n ? rare : (uint64_t)(i + 1);
        bool         again = false;
        for (int32_t table = 0; table < TABLES_MAX; table++) forget_gets(table);
        run_schedule(&w, number, replicas, false, FIXED);
        for (int32_t table = 0; table < TABLES_MAX; table++) {
            again = again || (w.opaque[table] && !w.rounds[table]);
            if (w.rounds[table]) forget_gets(table); /* what filters keep is another in the next run */
        }
        if (again) run_schedule(&w, number, replicas, true, FIXED);
    }
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    play_schedules(2, RARE);
}

static void test_any_two_may_die(void **unused) {
    (void)unused;
    play_schedules(3, 0);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_one_may_die),
                                        cmocka_unit_test(test_any_two_may_die) };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* not how many: audit.mutants wants 1 */
}
