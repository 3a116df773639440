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

bool    audit_judges;
jmp_buf gave_up;

/* false: the job has ended before its time, as it may */
static bool play(world *w) {
    for (int64_t turn = 0; turn < 2000000; turn++) {
        int32_t over = 0;
        if (w->dies && direct_events(w->d) >= w->death_at) kill_rank(w, w->victim, w->suspects);
        if (w->dies && w->dies_again && w->dead[w->victim]) kill_another(w);
        if (w->dies && w->second_at >= 0 && direct_events(w->d) >= w->second_at &&
            (!holds(w, w->second) || all_are_double(w)))
            kill_rank(w, w->second, w->suspects);
        for (int32_t k = 0; k < w->workers; k++)
            over += w->worker[k].state == DONE || w->worker[k].state == DEAD || w->zombie[k];
        if (over == w->workers) return true;
        int32_t first = (int32_t)pick(w, (uint64_t)w->workers);
        bool    moved = false;
        if (pick(w, 2) == 0) moved = step_worker(w, first);
        if (!moved && direct_step(w->d)) moved = true;
        for (int32_t i = 0; !moved && i < w->workers; i++) moved = step_worker(w, (first + i) % w->workers);
        for (int32_t r = 0; r < w->ranks; r++) {
            if (w->dead[r] || direct_error(w->d, r)->code == 0) continue;
            if (names_a_cut(w, r)) return false;
            tell(w);
            fail_msg("rank %d: %s\nreplay: PLAIT_SEED=%llu", r, direct_error(w->d, r)->text,
                     (unsigned long long)w->seed);
        }
        if (moved) continue;
        tell(w);
        fail_msg("all wait\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    }
    tell(w);
    fail_msg("no end\nreplay: PLAIT_SEED=%llu %s", (unsigned long long)w->seed, program_invocation_name);
    return false;
}

static void run_schedule(world *w, uint64_t seed, bool lives) {
    if (setjmp(gave_up) != 0) {
        witness_judge(&w->witness, false, w->seed, audit_judges);
        return;
    }
    open_world(w, seed, lives);
    const bool ends = play(w);
    if (ends) compare_copies(w);
    witness_judge(&w->witness, ends, w->seed, audit_judges);
    close_world(w);
}

static void test_any_one_may_die(void **unused) {
    (void)unused;
    const char *seed = getenv("PLAIT_SEED"), *count = getenv("PLAIT_SCHEDULES"), *judge = getenv("PLAIT_JUDGE");
    int64_t     n = getenv("PLAIT_TEST_FULL") != NULL ? SCHEDULES_FULL : SCHEDULES;
    audit_judges = judge != NULL && strcmp(judge, "audit") == 0;
    if (count != NULL) n = atoll(count);
    if (seed != NULL) n = 1;
    for (int64_t i = 0; i < n + (seed == NULL); i++) {
        static world w;
        uint64_t     number = seed != NULL ? strtoull(seed, NULL, 10) : i == n ? RARE : (uint64_t)(i + 1);
        bool         again = false;
        for (int32_t table = 0; table < TABLES_MAX; table++) forget_gets(table);
        run_schedule(&w, number, false);
        for (int32_t table = 0; table < TABLES_MAX; table++) {
            again = again || (w.opaque[table] && !w.rounds[table]);
            if (w.rounds[table]) forget_gets(table); /* what filters keep is another in the next run */
        }
        if (again) run_schedule(&w, number, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_any_one_may_die) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
