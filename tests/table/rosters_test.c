/* Seeded schedules of workers that leave a job and join it (table/copies/roster.h) over the direct driver, while ranks
 * die at any moment: every clock has all that belongs to it, once, whoever was in; nobody waits for one who is away;
 * each schedule is judged a second time by the audit. It is the world of replicas_test.c with slots.
 *
 * PLAIT_SEED=seed replays a seed, PLAIT_TRACE=1 prints the events, PLAIT_JUDGE=audit leaves the verdict to the audit.
 */
#include "table/replicas_world.h"

enum {
    SCHEDULES = 2000,
    SCHEDULES_FULL = 20000,
    RARE = 5
};

/* 36174: one joins and leaves with the same clock, in which a new replica of the shards is made. 59999: one is let in
 * and dies, and a shard has nothing of it; its other replica, which takes over, must not let it in once more. The
 * others: one leaves with a clock, and stands in for a dead one in it, not having heard that it is over; the others are
 * clocks ahead. */
static const uint64_t rare[RARE] = { 36174, 28745, 34407, 34479, 59999 };

static bool is_rare(uint64_t number) {
    for (int i = 0; i < RARE; i++)
        if (rare[i] == number) return true;
    return false;
}

static int64_t sooner, returned, returned_in;

static void play_all(way how) {
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    sooner = returned = returned_in = 0;
    for (int64_t i = 0; i < n + (seed == NULL && how == ELASTIC ? RARE : 0); i++) {
        static world   w;
        const uint64_t number = seed != NULL ? strtoull(seed, NULL, 10) : i < n ? (uint64_t)(i + 1) : rare[i - n];
        const int32_t  replicas = number % 3 == 0 && !is_rare(number) ? 3 : 2;
        bool           again = false;
        for (int32_t table = 0; table < TABLES_MAX; table++) forget_gets(table);
        run_schedule(&w, number, replicas, false, how);
        for (int32_t table = 0; table < TABLES_MAX; table++) again = again || w.opaque[table];
        if (again) run_schedule(&w, number, replicas, true, how);
        sooner += w.sooner;
        returned += w.returned;
        returned_in += w.returned_in;
    }
}

static void test_workers_come_and_go(void **unused) {
    (void)unused;
    play_all(ELASTIC);
    print_message("%lld came that had asked for no clock, and then were told to come\n", (long long)sooner);
    assert_true(sooner > 0 || getenv("PLAIT_SEED") != NULL || getenv("PLAIT_SCHEDULES") != NULL);
}

static void test_dead_ones_return(void **unused) {
    (void)unused;
    play_all(RETURNING);
    print_message("%lld dead ones were started anew, %lld of them took part again\n", (long long)returned,
                  (long long)returned_in);
    assert_true(returned_in > 100 || getenv("PLAIT_SEED") != NULL || getenv("PLAIT_SCHEDULES") != NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_workers_come_and_go),
                                        cmocka_unit_test(test_dead_ones_return) };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
