/* Two groups, the stages of three replicas: each is proven by itself. Whether a replica's two workers have ended as
 * many clocks, and stood in for the same dead replica in the same clock, only both logs together show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/replicas_by_hand.h"

enum { CLOCKS = 4 };

/* Worker r of either is one of replica r's. */
static const int32_t         front[RANKS] = { 0, 1, 2, 6, 7 }, back[RANKS] = { 3, 4, 5, 8, 9 };
static const pli_event_group stage[2] = { { .id = 1, .name = "stage 0", .n = RANKS, .rank = front },
                                          { .id = 2, .name = "stage 1", .n = RANKS, .rank = back } };
static const pli_event_table table = { .name = "w", .topology = "ps", .consistency = "bsp", .rows = 100, .cols = 2,
                                       .way = PLI_WAY_SERVED, .shards = SHARDS };

/* Numbers of messages begin anew. */
static void enter(maker *m, int which) {
    m->group = &stage[which];
    memset(m->seq, 0, sizeof m->seq);
}

static void tell_fellows(maker *m, int which, int64_t clock, bool end) {
    for (int32_t w = 0; w < WORKERS; w++)
        raise_event(m, (pli_event){ .kind = PLI_EVENT_FELLOWS, .rank = w, .table = -1, .clock = clock, .n = !end,
                                    .info.fellow = &stage[!which].rank[w] });
}

/* --- how many clocks ---------------------------------------------------------------------------------------------- */

/* clocks of the second stage; the first ends three. parts: before the last of them nobody is a fellow any more. */
static void go(maker *m, bool fellows, int64_t clocks, bool parts) {
    const pli_event_job job = { .workers = WORKERS, .servers = SHARDS, .first_server = SERVER };
    begin_group(m, &table, 0, &stage[0]);
    if (fellows) tell_fellows(m, 0, 0, false);
    in_step(m, 3);
    if (parts) tell_fellows(m, 0, 3, true);
    end(m);
    enter(m, 1);
    for (int32_t rank = 0; rank < RANKS; rank++) {
        raise_event(m, (pli_event){ .kind = PLI_EVENT_JOB, .rank = rank, .info.job = &job });
        raise_event(m, (pli_event){ .kind = PLI_EVENT_TABLE, .rank = rank, .info.table = &table });
    }
    if (fellows) tell_fellows(m, 1, 0, false);
    in_step(m, clocks - parts);
    if (parts) tell_fellows(m, 1, clocks - 1, true);
    for (int32_t w = 0; parts && w < WORKERS; w++) whole_clock(m, w, clocks - 1);
    end(m);
}

static void test_as_many_clocks(void **state) {
    (void)state;
    maker m;
    go(&m, true, 3, false);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
    go(&m, true, 4, true);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
    go(&m, false, 4, false);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
    go(&m, true, 4, false);
    judge(&m, NULL, PLI_AUDIT_REFUTED, "fellows",
          "rank 3 (group stage 1) ended 4 clocks together with rank 0 (group stage 0), which ended 3");
    go(&m, true, 2, false);
    judge(&m, NULL, PLI_AUDIT_REFUTED, "fellows",
          "rank 0 (group stage 0) ended 3 clocks together with rank 3 (group stage 1), which ended 2");
}

/* --- who died ----------------------------------------------------------------------------------------------------- */

/* What counts of a worker in a clock ends with what it says of the dead one. */
static void stands_in(maker *m, int32_t worker, int64_t clock) {
    pushes(m, worker, clock);
    plain(m, worker, PLI_EVENT_STAND);
    for (int32_t s = 0; s < SHARDS; s++) {
        const uint64_t pushed = m->seq[worker][s];
        raise_event(m, (pli_event){ .kind = PLI_EVENT_VIEW, .rank = worker, .peer = s, .table = -1, .clock = clock,
                                    .seq = ++m->seq[worker][s], .whom = 0 });
        for (int32_t place = 0; place < 2; place++) applied(m, s, place, worker, pushed, clock);
        for (int32_t place = 0; place < 2; place++) counted(m, s, place, worker, m->seq[worker][s], clock);
    }
}

static void one_clock(maker *m, int64_t clock, int64_t lost) {
    const int32_t first = clock >= lost;
    for (int32_t s = 0; clock == lost && s < SHARDS; s++)
        for (int32_t place = 0; place < 2; place++) gone(m, s, place, 0);
    for (int32_t w = first; w < WORKERS; w++) {
        if (clock == lost) {
            stands_in(m, w, clock);
            continue;
        }
        pushes(m, w, clock);
        for (int32_t s = 0; s < SHARDS; s++) taken(m, s, w, clock);
    }
    for (int32_t w = first; w < WORKERS; w++) end_clock(m, w, clock);
}

/* Replica 0 counts no more in the stage from clock `lost` on. */
static void stage_that_loses(maker *m, int which, int64_t lost) {
    enter(m, which);
    for (int32_t w = 0; w < WORKERS; w++) join(m, (pli_event){ .rank = w });
    for (int32_t s = 0; s < SHARDS; s++)
        for (int32_t place = 0; place < 2; place++) join(m, of_copy(m, 0, s, place));
    tell_fellows(m, which, 0, false);
    first_clock(m);
    for (int64_t c = 1; c < CLOCKS; c++) one_clock(m, c, lost);
    for (int32_t rank = lost < CLOCKS; rank < RANKS; rank++) plain(m, rank, PLI_EVENT_DONE);
}

static void begin_stages(maker *m) {
    *m = (maker){ .consistency = "bsp" };
    snprintf(m->path, sizeof m->path, "log_by_hand.%d.events", (int)getpid());
    assert_int_equal(pli_eventlog_open(m->path, RANKS, "0123456789abcdef", now_of, m, &m->log, NULL), PLAIT_OK);
}

/* In one stage the others stand in for the dead replica in clock 1. In the other they do so in the same clock, a clock
 * later, or never: there its worker lives on. */
static void test_the_same_dead(void **state) {
    static const char *const words[3] = {
        NULL,
        "rank 1 (group stage 0) stood in for rank 0, which died, in clock 1; rank 4 (group stage 1), whose clocks end "
        "with its own, did for rank 3 in clock 2",
        "rank 1 (group stage 0) stood in for rank 0, which died, in clock 1; rank 4 (group stage 1), whose clocks end "
        "with its own, never did for rank 3"
    };
    static const int64_t lost[3] = { 1, 2, CLOCKS };
    (void)state;
    for (int i = 0; i < 3; i++) {
        maker m;
        begin_stages(&m);
        stage_that_loses(&m, 0, 1);
        stage_that_loses(&m, 1, lost[i]);
        judge(&m, NULL, i == 0 ? PLI_AUDIT_PROVEN : PLI_AUDIT_REFUTED, i == 0 ? NULL : "fellows", words[i]);
    }
    maker m;
    begin_stages(&m);
    stage_that_loses(&m, 1, 1);
    stage_that_loses(&m, 0, 2);
    judge(&m, NULL, PLI_AUDIT_REFUTED, "fellows",
          "rank 4 (group stage 1) stood in for rank 3, which died, in clock 1; rank 1 (group stage 0), whose clocks "
          "end with its own, did for rank 0 in clock 2");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_as_many_clocks), cmocka_unit_test(test_the_same_dead) };
    return cmocka_run_group_tests_name("watch.audit.fellows", tests, NULL, NULL);
}
