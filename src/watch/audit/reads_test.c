/* Gets against what their workers had done and what the consistency promises: one log for each way to break it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "audit/log_by_hand.h"

static void test_own_updates(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    inc(&m, 1);
    inc(&m, 1);
    get(&m, 1, 0, 0, 1);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    refuted(&m, "own updates", "1 of its own 2 updates not yet pushed");

    begin(&m, "async", false, false);
    inc(&m, 1);
    push(&m, 1, 0);
    get(&m, 1, 0, 0, 0);
    apply_all(&m, 1, 0);
    refuted(&m, "own updates", "its own push 1 (clock 0, sent at");

    begin(&m, "async", false, false);
    inc(&m, 1);
    push(&m, 1, 0);
    apply_all(&m, 1, 0);
    get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10, .from = 0, .to = 1 }, 0, 0);
    refuted(&m, "own updates", "twice");

    begin(&m, "async", true, false);
    inc(&m, 1);
    push(&m, 1, 0);
    get(&m, 1, 0, 0, 0); /* ruled: the own gradient of this clock need not be seen */
    end_clock(&m, 1, 0);
    get(&m, 1, 1, 0, 0);
    apply_all(&m, 1, 0);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    refuted(&m, "own updates", "rank 1 in clock 1");
}

static void test_rows_that_go_back(void **state) {
    static const uint64_t keys[] = { 4, 5, 6 }, others[] = { 40, 41 };
    const pli_event_piece by_key = { .shard = 0, .first = -1, .rows = 3, .keys = keys, .n_keys = 3 };
    const pli_event_piece by_other = { .shard = 0, .first = -1, .rows = 2, .keys = others, .n_keys = 2 };
    const pli_event_piece by_range = { .shard = 0, .first = 3, .rows = 5 };
    const pli_event_piece pairs[5][2] = {
        { by_key, by_key }, { by_range, by_range }, { by_key, by_range }, { by_range, by_key }, { by_key, by_other }
    };
    (void)state;
    for (int i = 0; i < 5; i++) {
        maker m;
        begin(&m, "ssp:5", false, false);
        whole_clock(&m, 0, 0);
        whole_clock(&m, 2, 0);
        for (int k = 0; k < 2; k++) {
            pli_event_piece piece = pairs[i][k];
            piece.version = k == 0 ? 2 : 1;
            get_full(&m, 1, 0, piece, 0, 0);
        }
        if (i < 4) refuted(&m, "monotone reads", "after it had got the row from version 2");
        else proven(&m);
    }
}

/* Of two gets under way at once the later one may be newer, in whatever order they are looked at. */
static void test_of_gets_under_way_the_later_may_be_newer(void **state) {
    (void)state;
    for (int after = 0; after < 2; after++) {
        maker m;
        begin(&m, "ssp:5", false, false);
        uint64_t early = m.now_ns;
        whole_clock(&m, 0, 0);
        whole_clock(&m, 2, 0);
        get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 2, .rows = 10 }, 0, m.now_ns);
        get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10 }, 0, after ? m.now_ns : early);
        if (after) refuted(&m, "monotone reads", "after it had got the row from version 2");
        else proven(&m);
    }
}

static void test_versions(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", true, false);
    get(&m, 0, 0, 3, 0);
    refuted(&m, "versions", "which has applied 0 updates in all");
}

static void test_the_future(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    whole_clock(&m, 0, 0);
    get(&m, 1, 0, 1, 0);
    refuted(&m, "future", "holds push 1 of rank 0 (clock 0");
}

/* From clock `from` on, which all have come to, worker 0 runs ahead to clock lead, reading at each begin; then the
 * others come. `version` is what all had applied by clock from. */
static void run_ahead(maker *m, int64_t from, int64_t lead, uint64_t version) {
    for (int64_t c = from; c < lead; c++) {
        get(m, 0, c, version++, 0);
        whole_clock(m, 0, c);
    }
    get(m, 0, lead, version, 0);
    for (int64_t c = from; c < lead; c++)
        for (int32_t w = 1; w < WORKERS; w++) whole_clock(m, w, c);
}

static void test_a_fast_worker_under_ssp(void **state) {
    (void)state;
    for (int64_t lead = 2; lead <= 3; lead++) { /* ssp:2: it may be two clocks ahead, not three */
        maker m;
        begin(&m, "ssp:2", false, false);
        run_ahead(&m, 0, lead, 0);
        if (lead == 2) proven(&m);
        else refuted(&m, "staleness", "row 0 of table w");
    }
}

static void test_copies_with_own_updates(void **state) {
    (void)state;
    maker m;
    begin(&m, "ssp:3", false, false);
    get(&m, 1, 0, 0, 0);
    inc(&m, 1);
    get_full(&m, 1, 0, (pli_event_piece){ .shard = 0, .rows = 10 }, 1, 0); /* not yet pushed: laid over */
    push(&m, 1, 0);
    end_clock(&m, 1, 0);
    /* pushed: laid over the copy */
    get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .rows = 10, .to = 1, .age = 1 }, 0, 0);
    apply_all(&m, 1, 0);
    /* in what was fetched */
    get_full(&m, 1, 1, (pli_event_piece){ .shard = 0, .version = 1, .rows = 10, .from = 1, .to = 1 }, 0, 0);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    proven(&m);
}

static void test_turns(void **state) {
    (void)state;
    maker m;
    for (int late = 0; late < 3; late++) {
        begin(&m, "sequential", false, false);
        for (int32_t turn = 0; turn < 3 * WORKERS; turn++) {
            int64_t version = turn - (late == 1 && turn == 5) + (late == 2 && turn == 5);
            get(&m, turn % WORKERS, turn / WORKERS, (uint64_t)version, 0);
            whole_clock(&m, turn % WORKERS, turn / WORKERS);
        }
        if (late == 0) proven(&m);
        else if (late == 1) refuted(&m, "turns", "rank 2 in clock 1");
        else refuted(&m, "versions", "before it was made");
    }
    begin(&m, "sequential", false, false);
    get(&m, 0, 0, 0, 0);
    whole_clock(&m, 0, 0);
    whole_clock(&m, 1, 0);
    whole_clock(&m, 2, 0);
    get(&m, 0, 1, 3, 0);
    whole_clock(&m, 1, 1);
    get(&m, 0, 1, 4, 0);
    refuted(&m, "turns", "holds push 2 of rank 1");
}

/* After a barrier a get may go without a turn, and says so; one that says nothing has waited for it. */
static void test_turns_after_a_barrier(void **state) {
    (void)state;
    for (int met = 1; met >= 0; met--) {
        maker                 m;
        const pli_event_piece piece = { .shard = 0, .rows = 10 };
        begin(&m, "sequential", false, false);
        for (int32_t w = 0; w < WORKERS; w++) plain(&m, w, PLI_EVENT_BARRIER);
        raise_event(&m, (pli_event){ .kind = PLI_EVENT_GET, .rank = 1, .met = met, .n = 1, .info.piece = &piece });
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        if (met) proven(&m);
        else refuted(&m, "turns", "rank 1 in clock 0");
    }
}

static void test_fetches_and_pushes(void **state) {
    (void)state;
    maker m;
    for (int64_t age = 1; age < 3; age++) {
        begin(&m, "downpour:2:9", true, false);
        get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4, .age = age }, 0, 0);
        if (age == 1) proven(&m);
        else refuted(&m, "fetches", "asked for 2 clocks before");
    }
    begin(&m, "bounded-delay:3", true, false);
    get_full(&m, 0, 0, (pli_event_piece){ .shard = 0, .rows = 4, .age = 1 }, 0, 0);
    refuted(&m, "fetches", NULL);

    for (int late = 0; late < 2; late++) {
        begin(&m, "downpour:1:2", true, false);
        inc(&m, 0);
        end_clock(&m, 0, 0);
        if (late) end_clock(&m, 0, 1);
        push(&m, 0, 1 + late);
        if (!late) end_clock(&m, 0, 1);
        apply_all(&m, 0, 1 + late);
        for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 0, 0), tick(&m, s, 0, 1);
        if (late) refuted(&m, "pushes", "ended clock 1");
        else proven(&m);
    }
}

static void test_barriers(void **state) {
    (void)state;
    for (int early = 0; early < 2; early++) {
        maker m;
        begin(&m, "async", true, false);
        inc(&m, 2);
        push(&m, 2, 0);
        apply(&m, 1, 2, 1, 0);
        for (int32_t w = 0; w < WORKERS; w++) plain(&m, w, PLI_EVENT_BARRIER);
        if (!early) apply(&m, 0, 2, 1, 0);
        get(&m, 0, 0, early ? 0 : 1, 0);
        if (early) apply(&m, 0, 2, 1, 0);
        if (early) refuted(&m, "barriers", "before which rank 2");
        else proven(&m);
    }
}

/* asp:3:4: worker 0, three clocks ahead, waits for all at clock 4. */
static void test_barriers_of_asp(void **state) {
    (void)state;
    for (int64_t lead = 3; lead <= 4; lead++) {
        maker m;
        begin(&m, "asp:3:4", false, false);
        for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 0);
        run_ahead(&m, 1, lead, WORKERS);
        if (lead == 3) proven(&m);
        else refuted(&m, "barriers", "misses push 2 of rank 1 (clock 1");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_updates),
        cmocka_unit_test(test_rows_that_go_back),
        cmocka_unit_test(test_of_gets_under_way_the_later_may_be_newer),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_the_future),
        cmocka_unit_test(test_a_fast_worker_under_ssp),
        cmocka_unit_test(test_copies_with_own_updates),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_turns_after_a_barrier),
        cmocka_unit_test(test_fetches_and_pushes),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_barriers_of_asp),
    };
    return cmocka_run_group_tests_name("watch.audit.reads", tests, NULL, NULL);
}
