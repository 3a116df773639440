/* What shards have applied: every push once, in order, of its worker's clock, unless a rule lets it be dropped or its
 * worker has died. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static void test_exactly_once(void **state) {
    (void)state;
    for (int broken = 0; broken < 6; broken++) {
        maker m;
        begin_with(&m, "async", false, false, 1);
        for (int32_t w = 1; w < WORKERS; w++) whole_clock(&m, w, 0); /* rank 0 is late */
        inc(&m, 0);
        push(&m, 0, 0);
        inc(&m, 0);
        push(&m, 0, 0);
        apply(&m, 1, 0, 1, 0);
        apply(&m, 1, 0, 2, 0);
        if (broken == 0) apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        if (broken == 1) apply(&m, 0, 0, 1, 0);
        if (broken == 2) apply(&m, 0, 0, 2, 0), apply(&m, 0, 0, 1, 0);
        if (broken == 3) apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0), apply(&m, 0, 0, 3, 0);
        if (broken == 4) part(&m, PLI_EVENT_DROP, 0, 0, 1, 0), apply(&m, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        if (broken == 5) apply(&m, 0, 0, 1, 0), part(&m, PLI_EVENT_DROP, 0, 0, 1, 0), apply(&m, 0, 0, 2, 0);
        static const char *const words[] = { "was applied twice",           "never applied",
                                             "before its earlier push",     "never sent",
                                             "was dropped and yet applied", "applied and yet reported as dropped" };
        if (broken == 2) refuted(&m, "exactly once", "was applied at");
        else refuted(&m, "exactly once", words[broken]);
    }
}

static void test_clocks(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    end_clock(&m, 0, 2);
    refuted(&m, "clocks", "ended clock 2 after clock 0");

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    end_clock(&m, 0, 1);
    tick(&m, 0, 0, 1);
    refuted(&m, "clocks", "ended 2 clocks, of which the server of rank 4 knows 1");

    begin(&m, "async", false, false);
    whole_clock(&m, 0, 0);
    tick(&m, 0, 0, 0);
    refuted(&m, "clocks", "when clock 1 was due");

    begin(&m, "async", false, false);
    inc(&m, 0);
    push(&m, 0, 0);
    apply(&m, 0, 0, 1, 0);
    apply(&m, 1, 0, 1, 5);
    refuted(&m, "clocks", "as one of clock 5");
}

/* An inc that never leaves is not missed by other workers' reads alone: the tests have workers that read ruled tables,
 * or do not read at all. */
static void test_an_update_that_is_never_pushed(void **state) {
    static const char *const all[] = { "bsp", "ssp:3", "async", "downpour:1:1" };
    (void)state;
    maker m;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int mirrors = 0; mirrors < 1 + (i == 0); mirrors++) {
            begin(&m, all[i], true, mirrors);
            inc(&m, 2);
            for (int64_t c = 0; c < 2; c++) {
                end_clock(&m, 2, c);
                for (int32_t s = 0; s < SHARDS && !mirrors; s++) tick(&m, s, 2, c);
                for (int32_t w = 0; w < WORKERS && mirrors; w++) sum(&m, w, c);
                for (int32_t w = 0; w < 2 && mirrors; w++) end_clock(&m, w, c);
            }
            refuted(&m, "pushes", "with an update of clock 0 of table w not yet pushed");
        }
    /* what downpour keeps back leaves before a barrier, and before the worker does */
    static const pli_event_kind ends[] = { PLI_EVENT_BARRIER, PLI_EVENT_LEAVE, PLI_EVENT_DONE };
    for (int i = 0; i < 3; i++) {
        begin(&m, i == 0 ? "my-own:4" : "downpour:1:9", true, false);
        inc(&m, 2);
        end_clock(&m, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        if (ends[i] != PLI_EVENT_DONE) plain(&m, 2, ends[i]);
        refuted(&m, "pushes", i == 0 ? "passed a barrier in clock 1" : "ended its part in clock 1");
    }
    begin(&m, "downpour:1:9", true, false); /* of a clock that has not ended it may be dropped */
    inc(&m, 2);
    plain(&m, 2, PLI_EVENT_LEAVE);
    proven(&m);
}

static void test_a_push_goes_to_every_shard(void **state) {
    (void)state;
    maker m;
    for (int32_t sent = 0; sent < SHARDS; sent++) { /* to shard 1 only, or nowhere */
        const pli_event_part p = { .table = 0, .shard = 1 };
        begin(&m, "async", true, false);
        inc(&m, 2);
        raise_event(&m, (pli_event){ .kind = PLI_EVENT_PUSH, .rank = 2 });
        if (sent > 0)
            raise_event(&m, (pli_event){ .kind = PLI_EVENT_SEND, .rank = 2, .peer = 1, .table = -1, .seq = 1, .n = 1,
                                         .info.part = &p });
        if (sent > 0) apply(&m, 1, 2, 1, 0);
        end_clock(&m, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        refuted(&m, "exactly once", "was not sent to shard 0 once");
    }
}

/* All servers hear of the worker's death. */
static void die(maker *m, int32_t worker) {
    for (int32_t s = 0; s < SHARDS; s++)
        raise_event(m, (pli_event){ .kind = PLI_EVENT_GONE, .rank = SERVER + s, .table = -1, .peer = worker });
}

/* A push that was on its way when its worker died may be lost, but not one that came before something that arrived. */
static void test_what_is_lost_with_a_dead_worker(void **state) {
    (void)state;
    for (int64_t lost = 1; lost < 3; lost++) {
        maker m;
        begin(&m, "ssp:0", false, false);
        for (int64_t c = 0; c < 3; c++) {
            if (c != lost) whole_clock(&m, 2, c);
            else inc(&m, 2), push(&m, 2, c), end_clock(&m, 2, c), tick(&m, 0, 2, c), tick(&m, 1, 2, c);
        }
        die(&m, 2);
        end_but(&m, 2);
        if (lost == 2) judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
        else judge(&m, NULL, PLI_AUDIT_REFUTED, "exactly once", "was never applied");
    }
}

static void test_a_server_that_hears_of_no_clock(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:0", false, false);
    for (int32_t w = 0; w < WORKERS; w++) inc(&m, w), push(&m, w, 0), end_clock(&m, w, 0), apply_all(&m, w, 0);
    refuted(&m, "clocks", "knows 0");
}

static void test_a_push_is_of_its_workers_clock(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:0", false, false);
    inc(&m, 1);
    push(&m, 1, 1);
    end_clock(&m, 1, 0);
    apply_all(&m, 1, 1);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    refuted(&m, "clocks", "as of clock 1, when it was in clock 0");
}

static void test_a_push_before_the_first_clock(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    inc(&m, 1);
    push(&m, 1, -1);
    get(&m, 0, 0, 0, 0);
    end(&m);
    malformed(&m, "pushed before its first clock");
}

static void test_dropped_died_and_left(void **state) {
    (void)state;
    for (int32_t backup = 0; backup < 2; backup++) {
        maker m;
        begin_with(&m, "bsp", false, false, backup);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 1, 0);
        inc(&m, 2);
        push(&m, 2, 0);
        end_clock(&m, 2, 0);
        get(&m, 0, 1, 2, 0);
        for (int32_t s = 0; s < SHARDS; s++) part(&m, PLI_EVENT_DROP, s, 2, 1, 0); /* a backup rule: late */
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 2, 0);
        inc(&m, 1);
        plain(&m, 1, PLI_EVENT_LEAVE); /* what was not pushed is dropped */
        get(&m, 1, 1, 2, 0);
        if (backup > 0) proven(&m);
        else refuted(&m, "exactly once", "which no rule of this job allows");
    }

    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    whole_clock(&m, 1, 0);
    inc(&m, 2);
    push(&m, 2, 0);
    die(&m, 2);
    get(&m, 0, 1, 2, 0);
    end_but(&m, 2);
    judge(&m, NULL, PLI_AUDIT_PROVEN, NULL, NULL);
}

/* A backup rule drops a push that comes when all but the backup workers, or all others that are there, have ended the
 * clock. */
static void test_dropped_too_soon(void **state) {
    enum { LATE = 2 };
    (void)state;
    for (int32_t ended = 0; ended < WORKERS; ended++) /* how many others have */
        for (int left = 0; left < 2; left++) {        /* has one of them, and left then? */
            maker m;
            begin_with(&m, "bsp", true, false, 1);
            for (int32_t w = 0; w < ended; w++) whole_clock(&m, w, 0);
            if (left) plain(&m, 0, PLI_EVENT_LEAVE);
            inc(&m, LATE);
            push(&m, LATE, 0);
            for (int32_t s = 0; s < SHARDS; s++) part(&m, PLI_EVENT_DROP, s, LATE, 1, 0);
            end_clock(&m, LATE, 0);
            for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, LATE, 0);
            if (ended == WORKERS - 1) proven(&m);
            else refuted(&m, "exactly once", "when the clock was not complete without it");
        }
}

/* A run broke off before a late push came: with backup workers it would have been dropped, without them it was due. */
static void test_broken_off_before_a_late_push(void **state) {
    (void)state;
    for (int32_t backup = 0; backup < 2; backup++) {
        maker m;
        begin_with(&m, "bsp", false, false, backup);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 1, 0);
        get(&m, 0, 1, 2, 0);
        inc(&m, 2);
        push(&m, 2, 0); /* and the servers are gone */
        if (backup > 0) judge(&m, NULL, PLI_AUDIT_CUT, NULL, NULL);
        else judge(&m, NULL, PLI_AUDIT_REFUTED, "staleness", "never applied");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exactly_once),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_an_update_that_is_never_pushed),
        cmocka_unit_test(test_a_push_goes_to_every_shard),
        cmocka_unit_test(test_what_is_lost_with_a_dead_worker),
        cmocka_unit_test(test_a_server_that_hears_of_no_clock),
        cmocka_unit_test(test_a_push_is_of_its_workers_clock),
        cmocka_unit_test(test_a_push_before_the_first_clock),
        cmocka_unit_test(test_dropped_died_and_left),
        cmocka_unit_test(test_dropped_too_soon),
        cmocka_unit_test(test_broken_off_before_a_late_push),
    };
    return cmocka_run_group_tests_name("watch.audit.history", tests, NULL, NULL);
}
