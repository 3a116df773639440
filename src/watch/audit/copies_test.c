/* Copies of a table on each worker: sums of all in each clock, rounds of some clocks, and averages with others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static void test_replicas(void **state) {
    static const char *const rules[] = { NULL, "own updates", "versions", "exactly once", "exactly once" };
    (void)state;
    for (int broken = 0; broken < 5; broken++) {
        maker m;
        begin(&m, "bsp", true, true);
        for (int64_t c = 0; c < 4; c++) {
            for (int32_t w = 0; w < WORKERS; w++) {
                bool here = w == 1 && c == 2;
                get(&m, w, c, (uint64_t)(c - (here && broken == 1) + (here && broken == 2)), 0);
                inc(&m, w);
                push(&m, w, c);
                end_clock(&m, w, c);
                if (broken == 3 && w == 1 && c == 3) continue;
                sum(&m, w, broken == 4 && here ? 3 : c);
            }
        }
        if (rules[broken] == NULL) proven(&m);
        else refuted(&m, rules[broken], "rank 1");
    }
}

/* Rounds of two clocks over servers: at the round's end a worker pushes how far its copy has moved, from the values
 * that the round began with. */
static void test_rounds_of_clocks(void **state) {
    static const char *const rules[] = { NULL, "rounds", "rounds", "staleness" };
    (void)state;
    for (int broken = 0; broken < 4; broken++) {
        maker m;
        begin(&m, "local-sgd:2", false, false);
        for (int64_t c = 0; c < 6; c++) {
            bool ends = c % 2 == 1;
            for (int32_t w = 0; w < WORKERS; w++) {
                bool here = w == 1 && c >= 2 && c < 4;
                bool late = broken == 3 && here;
                if (!ends && !(broken == 2 && here)) get(&m, w, c, (uint64_t)(c / 2 * WORKERS - late), 0);
                if (!ends && !(broken == 1 && here)) continue;
                inc(&m, w);
                push(&m, w, c);
            }
            for (int32_t w = 0; w < WORKERS; w++) end_clock(&m, w, c);
            for (int32_t w = 0; w < WORKERS; w++) {
                if (ends || (broken == 1 && w == 1 && c == 2)) apply_all(&m, w, c);
                for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, w, c);
            }
        }
        if (broken == 0) proven(&m);
        else refuted(&m, rules[broken], NULL);
    }
}

static void begin_copies(maker *m, const char *consistency) {
    const pli_event_table table = { .name = "w", .topology = "gossip:ring", .consistency = consistency, .rows = 100,
                                    .cols = 2, .way = PLI_WAY_AVERAGED, .ruled = true };
    begin_table(m, &table, 0);
    m->replicas = true;
}

static void give(maker *m, int32_t rank, int32_t to, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_GIVE, .rank = rank, .peer = to, .clock = clock });
}

static void mix(maker *m, int32_t rank, int32_t from, int64_t given, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_MIX, .rank = rank, .peer = from, .clock = clock,
                                .seq = (uint64_t)given });
}

static void own_clock(maker *m, int32_t rank, int64_t clock) {
    inc(m, rank);
    end_clock(m, rank, clock);
    push(m, rank, clock);
}

/* All workers give to all and mix, except for what `wrong` leaves out, doubles or delays. */
static void rounds(maker *m, int64_t clocks, int wrong) {
    for (int64_t clock = 0; clock < clocks; clock++) {
        for (int32_t r = 0; r < WORKERS; r++) {
            get(m, r, clock, (uint64_t)clock - (wrong == 4 && clock == 1 && r == 2), 0);
            own_clock(m, r, clock);
            for (int32_t o = 0; o < WORKERS; o++)
                if (o != r && !(wrong == 5 && clock == 1 && r == 0)) give(m, r, o, clock);
        }
        for (int32_t r = 0; r < WORKERS; r++)
            for (int32_t o = 0; o < WORKERS; o++) {
                bool here = clock == 1 && r == 1 && o == 0;
                if (o == r || (wrong == 5 && clock == 1 && o == 0) || (wrong == 1 && here)) continue;
                mix(m, r, o, wrong == 3 && here ? clock - 1 : clock, clock);
                if (wrong == 2 && here) mix(m, r, o, clock, clock);
            }
    }
}

static void test_copies(void **state) {
    (void)state;
    static const struct { int wrong; const char *consistency, *rule, *words; } cases[] = {
        { 1, "bsp", "exactly once", "never mixed the copy of table w that rank 0 gave in clock 1" },
        { 1, "async", "exactly once", "never mixed" },
        { 2, "async", "exactly once", "mixed out of turn a copy of table w that rank 0 gave in clock 1" },
        { 3, "bsp", "exactly once", "never mixed" },
        { 4, "async", "own updates", NULL },
        { 5, "bsp", "rounds", "rank 0 gave 0 copies of table w in clock 1 and mixed 2" },
    };
    maker m;
    begin_copies(&m, "bsp");
    rounds(&m, 4, 0);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin_copies(&m, cases[i].consistency);
        rounds(&m, 4, cases[i].wrong);
        end(&m);
        judge(&m, NULL, PLI_AUDIT_REFUTED, cases[i].rule, cases[i].words);
    }
    begin_copies(&m, "async"); /* one that nobody mixes */
    own_clock(&m, 0, 0);
    give(&m, 0, 1, 0);
    end(&m);
    judge(&m, NULL, PLI_AUDIT_REFUTED, "exactly once", "rank 1, at");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_rounds_of_clocks),
        cmocka_unit_test(test_copies),
    };
    return cmocka_run_group_tests_name("watch.audit.copies", tests, NULL, NULL);
}
