/* Runs in which a second rank dies after a new replica was made: two servers, whose shards lie at ranks 3 and 4, and
 * rank 2, a spare, the third place of both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/replicas_by_hand.h"

enum { LIVE = WORKERS - 1 /* workers with items */ };

/* For each server: where its replicas lie at first, and where when rank 4 has died. */
static const int32_t own[SHARDS] = { 0, 0 }, next[SHARDS] = { 1, 1 }, source[SHARDS] = { 0, 1 },
                     made[SHARDS] = { 2, 2 };

static void between(maker *m, pli_event_kind kind, int32_t server, int32_t place, int32_t other) {
    pli_event event = of_copy(m, kind, server, place);
    event.peer = of_copy(m, kind, server, other).rank;
    event.whom = other;
    raise_event(m, event);
}

static void hands(maker *m, int32_t server, int32_t from, int32_t to) {
    between(m, PLI_EVENT_HAND, server, from, to);
    join(m, of_copy(m, 0, server, to));
}

static void is_whole(maker *m, int32_t server, int32_t from, int32_t to) {
    between(m, PLI_EVENT_REPLICA, server, to, from);
}

/* All workers that have items push, and the replicas at both places take it. */
static void clock_at(maker *m, int64_t clock, const int32_t first[SHARDS], const int32_t second[SHARDS]) {
    for (int32_t w = 0; w < LIVE; w++) pushes(m, w, clock);
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t w = 0; w < LIVE; w++) {
            taken_at(m, s, first[s], w, clock);
            if (second[s] != first[s]) taken_at(m, s, second[s], w, clock);
        }
    for (int32_t w = 0; w < LIVE; w++) end_clock(m, w, clock);
}

/* Clock 0 with the first replicas. Then rank 4 dies: server 0 hands its shards, rank 3 takes over server 1's, and hands
 * those. */
static void first_death(maker *m) {
    clock_at(m, 0, own, next);
    serves(m, 1, 1);
    hands(m, 0, 0, 2);
    hands(m, 1, 1, 2);
}

static void both_whole(maker *m) {
    is_whole(m, 0, 0, 2);
    is_whole(m, 1, 1, 2);
}

/* Then rank 3 dies: the spare has all shards. */
static void second_death(maker *m) {
    for (int32_t s = 0; s < SHARDS; s++) serves(m, s, 2);
}

static void end_of_workers(maker *m) {
    for (int32_t w = 0; w < WORKERS; w++) plain(m, w, PLI_EVENT_DONE);
}

static void get_at(maker *m, int32_t place, uint64_t version) {
    get_full(m, 0, 2, (pli_event_piece){ .shard = 0, .place = place, .version = version, .rows = 10 }, 0, 0);
}

/* A job of two deaths, in which one thing may be wrong. Rank 3's log has no end: it is cut where it died. */
enum {
    FINE,
    LOST,        /* the new replica lacks, of clock 1, what its source had behind HAND, and worker 0 was acknowledged */
    TWICE,       /* it applies once more what it was handed    */
    OTHER_ORDER, /* it applies something else than its source did */
    OLD,         /* a get of too old a version from place 2    */
    UNKNOWN,     /* a get of a version that it never had */
    BACK,        /* a get from the place before */
    CUT_OFF,     /* a get of a version that its log lacks and its replica's does not: nothing is wrong */
    CASES
};
static void two_deaths(maker *m, const char *consistency, int wrong) {
    begin_copies_of(m, consistency, 1, SERVER);
    first_death(m);
    both_whole(m);
    for (int32_t w = 0; w < LIVE; w++) pushes(m, w, 1);
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t w = 0; w < LIVE && wrong != CUT_OFF; w++) taken_at(m, s, source[s], w, 1);
    if (wrong == CUT_OFF) get_at(m, 0, 2 * LIVE);
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t i = 0; i < LIVE; i++) {
            const int32_t w = wrong == OTHER_ORDER ? LIVE - 1 - i : i;
            if (wrong == LOST && w == 0 && s == 0)
                counted(m, s, made[s], w, m->seq[w][s], 1);
            else
                taken_at(m, s, made[s], w, 1);
        }
    for (int32_t w = 0; w < LIVE; w++) end_clock(m, w, 1);
    second_death(m);
    if (wrong == TWICE) applied(m, 0, 2, 0, 1, 0);
    get_at(m, 2, wrong == OLD ? LIVE : wrong == UNKNOWN ? 100 : 2 * LIVE);
    if (wrong == BACK) get_at(m, 0, 2 * LIVE);
    clock_at(m, 2, made, made);
    end_of_workers(m);
}

static void test_a_second_death(void **state) {
    static const struct {
        const char *rule, *words;
    } said[CASES] = {
        { NULL, NULL },
        { "exactly once", "to shard 0 of table w, in the replica of rank 2 (place 2), was never applied" },
        { "exactly once", "in the replica of rank 2 (place 2), was applied twice" },
        { "replicas", "the replica of rank 3, whose log it takes, has not as that" },
        { "own updates", "from version 2 of shard 0 (place 2, rank 2), with its own push 2" },
        { "versions", "(place 2, rank 2), which has applied 6 updates in all" },
        { "monotone reads", "from version 4 of shard 0, after it had got the row from version 4" },
        { NULL, NULL },
    };
    (void)state;
    for (int sums = 0; sums < 2; sums++) /* gets in the middle of a clock are for async alone */
        for (int wrong = 0; wrong < (sums ? OLD : CASES); wrong++) {
            const char *words = said[wrong].words;
            maker       m;
            two_deaths(&m, sums ? "bsp" : "async", wrong);
            if (sums && wrong == LOST) words = "by the replica of rank 2 (place 2), though it counts in its clock";
            judge(&m, NULL, said[wrong].rule == NULL ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, said[wrong].rule, words);
        }
}

/* What a replica did before it was made for the last time is not in its history. */
static void test_a_copy_made_anew(void **state) {
    (void)state;
    for (int anew = 0; anew < 2; anew++) {
        maker m;
        begin_copies_of(&m, "async", 1, -1);
        first_death(&m);
        both_whole(&m);
        clock_at(&m, 1, source, made);
        applied(&m, 0, 2, 0, m.seq[0][0], 1); /* twice */
        if (anew) hands(&m, 0, 0, 2), is_whole(&m, 0, 0, 2);
        second_death(&m);
        get_at(&m, 2, 2 * LIVE);
        clock_at(&m, 2, made, made);
        end_of_workers(&m);
        judge(&m, NULL, anew ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, anew ? NULL : "exactly once",
              anew ? NULL : "was applied twice");
    }
}

/* A new replica knows what its source knew when it handed over: of worker 0's clocks, and of its death if that was
 * said before. If the death was said later, no replica that counts says so, and a log without an end belongs to a rank
 * that lives. */
static void test_a_worker_that_died_before(void **state) {
    (void)state;
    for (int before = 0; before < 2; before++) {
        maker m;
        begin_copies_of(&m, "async", 1, 0);
        clock_at(&m, 0, own, next);
        serves(&m, 1, 1);
        if (before) gone(&m, 0, 0, 0), gone(&m, 1, 1, 0);
        hands(&m, 0, 0, 2);
        hands(&m, 1, 1, 2);
        if (!before) gone(&m, 0, 0, 0), gone(&m, 1, 1, 0);
        both_whole(&m);
        second_death(&m);
        for (int32_t w = 1; w < WORKERS; w++) plain(&m, w, PLI_EVENT_DONE);
        judge(&m, NULL, before ? PLI_AUDIT_PROVEN : PLI_AUDIT_CUT, NULL, NULL);
    }
}

static void test_a_copy_that_there_is_not(void **state) {
    (void)state;
    for (int place = 1; place < 3; place++) {
        maker m;
        begin_copies_of(&m, "async", 1, -1);
        get_at(&m, place, 0);
        clock_at(&m, 0, own, next);
        end_of_workers(&m);
        judge(&m, NULL, place < 2 ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, place < 2 ? NULL : "versions",
              place < 2 ? NULL : "from version 0 of shard 0 (place 2, rank 2), where there was no whole replica");
    }
}

/* Rank 4 was only frozen. It wakes when the others have ended without it, and takes them for dead: what it says that it
 * serves does not count, if they have ended well. */
static void test_one_that_wakes_up_too_late(void **state) {
    (void)state;
    for (int sums = 0; sums < 2; sums++)
        for (int well = 0; well < 2; well++) {
            maker m;
            begin_copies_of(&m, sums ? "bsp" : "async", 1, -1);
            first_death(&m);
            both_whole(&m);
            clock_at(&m, 1, source, made);
            end_of_workers(&m);
            if (well) raise_event(&m, of_copy(&m, PLI_EVENT_DONE, 0, 0));
            serves(&m, 0, 1);
            judge(&m, NULL, well ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, well ? NULL : "exactly once",
                  well ? NULL : "never applied");
        }
}

/* Logs of what no run can have done. */
static void test_malformed(void **state) {
    enum { NO_HAND, NOT_CUT, NO_COPY_YET, NO_CLOCK_YET, SERVED_YET, SERVES_NOT, NO_RANK, BACKWARDS, ITSELF, KINDS };
    static const char *const words[KINDS] = { "has handed over nothing to it",
                                              NULL,
                                              "applied updates before it had begun",
                                              "took the end of a clock before it had begun",
                                              "served before it had begun",
                                              "handed over what it did not serve",
                                              "handed its state to nobody",
                                              "handed its state to nobody",
                                              "was made of nothing" };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        maker m;
        begin_copies_of(&m, "async", 1, kind == NOT_CUT ? SERVER : -1);
        clock_at(&m, 0, own, next);
        if (kind != SERVES_NOT) serves(&m, 1, 1);
        if (kind != NO_HAND && kind != NOT_CUT) hands(&m, 0, 0, 2);
        hands(&m, 1, 1, 2);
        if (kind == NO_COPY_YET) applied(&m, 0, 2, 0, 1, 0);
        if (kind == NO_CLOCK_YET) counted(&m, 0, 2, 0, 1, 0);
        if (kind == SERVED_YET) serves(&m, 0, 2);
        if (kind == BACKWARDS) between(&m, PLI_EVENT_HAND, 1, 1, 0);
        pli_event stray = of_copy(&m, PLI_EVENT_HAND, 0, 0);
        stray.whom = 2;
        stray.peer = SERVER;
        if (kind == NO_RANK) raise_event(&m, stray);
        if (kind == ITSELF) between(&m, PLI_EVENT_REPLICA, 0, 2, 2);
        both_whole(&m);
        second_death(&m);
        clock_at(&m, 1, made, made);
        end_of_workers(&m);
        if (words[kind] != NULL)
            malformed(&m, words[kind]);
        else
            judge(&m, NULL, PLI_AUDIT_CUT, NULL, NULL); /* that may be in what the log lacks */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_second_death),
        cmocka_unit_test(test_a_copy_made_anew),
        cmocka_unit_test(test_a_worker_that_died_before),
        cmocka_unit_test(test_a_copy_that_there_is_not),
        cmocka_unit_test(test_one_that_wakes_up_too_late),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests_name("watch.audit.places", tests, NULL, NULL);
}
