/* Runs with two replicas of each shard in which rank 0, a worker, dies. What was acknowledged is once in the replica
 * that counts, others stand in for the rest, and both replicas are the same. Rank 3 has server 0 and the second replica
 * of server 1; rank 4 the other way round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/replicas_by_hand.h"

/* The worker tells the servers, behind its last push, that it stands in for rank 0. */
static void stands_in(maker *m, int32_t worker, int64_t clock) {
    for (int32_t s = 0; s < SHARDS; s++)
        raise_event(m, (pli_event){ .kind = PLI_EVENT_VIEW,
                                    .rank = worker,
                                    .peer = s,
                                    .table = -1,
                                    .clock = clock,
                                    .seq = ++m->seq[worker][s],
                                    .whom = 0 });
}

static void end_of_living(maker *m) {
    for (int32_t rank = 1; rank < RANKS; rank++) plain(m, rank, PLI_EVENT_DONE);
}

/* Clock 1: rank 0 dies when server 0 has its part and server 1 has not. */
enum { FINE, NOT_STOOD_IN, BOTH, LOST, ACKNOWLEDGED, UNDER_WAY };
static void second_clock(maker *m, int broken) {
    for (int32_t w = 0; w < WORKERS; w++) pushes(m, w, 1);
    for (int32_t w = 0; w < WORKERS; w++) taken(m, 0, w, 1);
    if (broken == ACKNOWLEDGED) end_clock(m, 0, 1);
    for (int32_t s = 0; s < SHARDS; s++) gone(m, s, 0, 0);
    for (int32_t w = 1; w < WORKERS; w++) {
        const uint64_t own = m->seq[w][1];
        plain(m, w, PLI_EVENT_STAND);
        pushes(m, w, 1);
        const uint64_t redone = m->seq[w][1];
        if (broken != NOT_STOOD_IN || w == 1) stands_in(m, w, 1);
        for (int32_t place = 0; place < 2; place++) {
            applied(m, 1, place, w, own, 1);
            if (broken != LOST || w == 1) applied(m, 1, place, w, redone, 1);
        }
        for (int32_t place = 0; place < 2; place++) counted(m, 1, place, w, m->seq[w][1], 1);
        end_clock(m, w, 1);
    }
    for (int32_t place = 0; broken == BOTH && place < 2; place++) applied(m, 1, place, 0, m->seq[0][1], 1);
}

static void test_others_stand_in(void **state) {
    (void)state;
    static const char *const words[] = { NULL, "nor did rank 2 stand in for it", "others have stood in for it",
                                         "though it counts in its clock", "though its clock was acknowledged" };
    for (int broken = FINE; broken < UNDER_WAY; broken++) {
        maker m;
        begin_copies(&m, "bsp");
        first_clock(&m);
        second_clock(&m, broken);
        end_of_living(&m);
        judge(&m, NULL, broken == FINE ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, broken == FINE ? NULL : "exactly once",
              words[broken]);
    }
}

/* Rank 1 leaves with clock 1, and the others end clock 2 without it. Before it hears that clock 1 is over, rank 0 dies,
 * and it stands in: it reads clock 2, in vain. It may not if it does not stand in, or if it was in clock 2. */
static void test_who_leaves_reads_later_clocks_in_vain(void **state) {
    (void)state;
    enum { IN_VAIN, IN_EARNEST, IT_WAS_IN, HOWS };
    for (int how = 0; how < HOWS; how++) {
        maker m;
        begin_copies(&m, "bsp");
        first_clock(&m);
        for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 1);
        for (int32_t w = 0; w < WORKERS; w++)
            for (int32_t s = 0; s < SHARDS; s++) taken(&m, s, w, 1);
        for (int32_t w = 0; w < WORKERS; w += 2) {
            end_clock(&m, w, 1);
            pushes(&m, w, 2);
        }
        for (int32_t s = 0; s < SHARDS; s++) {
            for (int32_t w = 0; w < WORKERS; w += 2) taken(&m, s, w, 2);
            for (int32_t place = 0; place < 2; place++)
                counted(&m, s, place, 1, how == IT_WAS_IN ? m.seq[1][s] + 1 : 0, 2);
            gone(&m, s, 0, 0);
        }
        if (how != IN_EARNEST) plain(&m, 1, PLI_EVENT_STAND);
        get(&m, 1, 1, 3 * WORKERS - 1, 0);
        if (how != IN_EARNEST) pushes(&m, 1, 1);
        if (how != IN_EARNEST) stands_in(&m, 1, 1);
        end_clock(&m, 2, 2);
        end_clock(&m, 1, 1);
        end_clock(&m, 1, 2);
        end_of_living(&m);
        judge(&m, NULL, how == IN_VAIN ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, how == IN_VAIN ? NULL : "future", NULL);
    }
}

/* Server 0's rank, 3, dies, and worker 0 with it. The second replica had all but the last push of worker 1, which sends
 * it again. */
static void test_the_second_copy_goes_on(void **state) {
    (void)state;
    static const char *const words[] = { NULL, "though its clock was acknowledged", "was applied twice",
                                         "whose log it takes, has not as that" };
    for (int broken = 0; broken < 4; broken++) {
        maker m;
        begin_copies(&m, "async");
        if (broken != 3)
            first_clock(&m);
        else { /* the second replica took them in another order */
            for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 0);
            for (int32_t w = 0; w < WORKERS; w++) taken(&m, 1, w, 0), applied(&m, 0, 0, w, m.seq[w][0], 0);
            for (int32_t w = WORKERS - 1; w >= 0; w--) applied(&m, 0, 1, w, m.seq[w][0], 0);
            for (int32_t w = 0; w < WORKERS; w++) counted(&m, 0, 1, w, m.seq[w][0], 0), end_clock(&m, w, 0);
        }
        pushes(&m, 0, 1);
        pushes(&m, 1, 1);
        taken(&m, 1, 1, 1);
        applied(&m, 0, 0, 1, m.seq[1][0], 1);
        serves(&m, 0, 1);
        gone(&m, 0, 1, 0);
        gone(&m, 1, 0, 0);
        if (broken == 1) end_clock(&m, 0, 1); /* though nobody has it */
        applied(&m, 0, 1, 1, m.seq[1][0], 1);
        if (broken == 2) applied(&m, 0, 1, 1, m.seq[1][0], 1);
        counted(&m, 0, 1, 1, m.seq[1][0], 1);
        end_clock(&m, 1, 1);
        end_of_living(&m);
        judge(&m, NULL, broken == 0 ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED,
              broken == 0   ? NULL
              : broken == 3 ? "replicas"
                            : "exactly once",
              words[broken]);
    }
}

/* Server 0's rank dies when its log has a clock's updates, and not yet that they count: of that it says nothing. */
static void test_a_log_may_end_in_a_clock(void **state) {
    (void)state;
    for (int ends = 0; ends < 2; ends++) {
        maker m;
        begin_copies_of(&m, "bsp", 0, ends ? -1 : SERVER);
        first_clock(&m);
        for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 1);
        for (int32_t w = 0; w < WORKERS; w++) taken(&m, 1, w, 1), applied(&m, 0, 0, w, m.seq[w][0], 1);
        counted(&m, 0, 0, 0, m.seq[0][0], 1); /* of one it says so */
        serves(&m, 0, 1);
        for (int32_t w = 0; w < WORKERS; w++) applied(&m, 0, 1, w, m.seq[w][0], 1);
        for (int32_t w = 0; w < WORKERS; w++) counted(&m, 0, 1, w, m.seq[w][0], 1), end_clock(&m, w, 1);
        for (int32_t rank = 0; rank < RANKS; rank++)
            if (rank != SERVER || ends) plain(&m, rank, PLI_EVENT_DONE);
        judge(&m, NULL, ends ? PLI_AUDIT_REFUTED : PLI_AUDIT_PROVEN, ends ? "exactly once" : NULL,
              ends ? "where it does not count in its clock" : NULL);
    }
}

/* A version belongs to one replica: after the second has taken over, the first answers nobody. */
static void test_versions_are_of_one_copy(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        maker m;
        begin_copies(&m, "async");
        first_clock(&m);
        serves(&m, 0, 1);
        gone(&m, 0, 1, 0);
        gone(&m, 1, 0, 0);
        for (int32_t place = 1; place >= 1 - back; place--)
            get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .place = place, .version = 3, .rows = 10 }, 0, 0);
        end_of_living(&m);
        judge(&m, NULL, back ? PLI_AUDIT_REFUTED : PLI_AUDIT_PROVEN, back ? "monotone reads" : NULL, NULL);
    }
}

/* The last clock of a run that broke off is acknowledged, and not yet applied. If a worker has come to its end, the
 * clock must be applied. */
static void test_a_run_that_broke_off(void **state) {
    enum { BROKEN_OFF, WITH_A_DEATH, GONE_ON, ENDED, WAYS };
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        maker m;
        begin_copies(&m, "bsp");
        first_clock(&m);
        for (int32_t w = 0; w < WORKERS; w++) pushes(&m, w, 1);
        for (int32_t w = 0; w < WORKERS; w++) end_clock(&m, w, 1);
        if (way == WITH_A_DEATH) gone(&m, 0, 0, 0);
        if (way == GONE_ON)
            for (int32_t w = 1; w < WORKERS; w++) taken(&m, 0, w, 1);
        if (way == ENDED) end_of_living(&m);
        judge(&m, NULL, way < GONE_ON ? PLI_AUDIT_CUT : PLI_AUDIT_REFUTED, way < GONE_ON ? NULL : "exactly once",
              way < GONE_ON ? NULL : "though its clock was acknowledged");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_others_stand_in),
                                        cmocka_unit_test(test_who_leaves_reads_later_clocks_in_vain),
                                        cmocka_unit_test(test_the_second_copy_goes_on),
                                        cmocka_unit_test(test_a_log_may_end_in_a_clock),
                                        cmocka_unit_test(test_a_run_that_broke_off),
                                        cmocka_unit_test(test_versions_are_of_one_copy) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
