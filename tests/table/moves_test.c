/* Seeded schedules of shards that move from rank to rank (table/copies/moves.h) over the direct driver: workers come
 * and go, and shards with them, while any rank dies at any moment: the one that a shard leaves, the one that it goes
 * to, and the others. Every clock has all that belongs to it, once; nobody waits for ever; each schedule is judged a
 * second time by the audit. It is the world of replicas_test.c with slots, and more servers than ranks.
 *
 * PLAIT_SEED=seed replays a seed, PLAIT_TRACE=1 prints the events, PLAIT_JUDGE=audit leaves the verdict to the audit.
 */
#include "table/replicas_world.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SCHEDULES = 500, SCHEDULES_FULL = 5000 }; /* they are ten times as slow */
#else
enum { SCHEDULES = 2000, SCHEDULES_FULL = 20000 };
#endif

static void test_shards_move(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    for (int64_t i = 0; i < n; i++) {
        static world   w;
        const uint64_t number = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)(i + 1);
        bool           again = false;
        for (int32_t table = 0; table < TABLES_MAX; table++) forget_gets(table);
        run_schedule(&w, number, number % 3 == 2 ? 3 : 2, false, MOVING);
        for (int32_t table = 0; table < TABLES_MAX; table++) again = again || w.opaque[table];
        if (again) run_schedule(&w, number, number % 3 == 2 ? 3 : 2, true, MOVING);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_shards_move) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
