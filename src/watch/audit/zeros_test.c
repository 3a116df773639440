/* plait_table_zero by the log: a push or get on the wrong side of it is named. */
#include "audit/log_by_hand.h"

static void zero(maker *m, int32_t rank, int64_t clock) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_ZERO, .rank = rank, .shard = -1, .clock = clock });
}
static void zero_shard(maker *m, int32_t shard) {
    raise_event(m, (pli_event){ .kind = PLI_EVENT_ZERO, .rank = SERVER + shard, .shard = shard });
}
static void zero_all(maker *m, int64_t clock) {
    for (int32_t w = 0; w < WORKERS; w++) plain(m, w, PLI_EVENT_BARRIER);
    for (int32_t s = 0; s < SHARDS; s++) zero_shard(m, s);
    for (int32_t w = 0; w < WORKERS; w++) zero(m, w, clock);
}

/* Two clocks, zeroed, read: version 2 * WORKERS + 1. */
static void begin_zeroed(maker *m) {
    begin(m, "bsp", false, false);
    in_step(m, 2);
    zero_all(m, 2);
}

static void test_what_is_zeroed_in_order_is_proven(void **state) {
    (void)state;
    maker m;
    begin_zeroed(&m);
    for (int32_t w = 0; w < WORKERS; w++) get(&m, w, 2, 2 * WORKERS + 1, 0);
    for (int32_t w = 0; w < WORKERS; w++) whole_clock(&m, w, 2);
    zero_all(&m, 3);
    for (int32_t w = 0; w < WORKERS; w++) get(&m, w, 3, 3 * WORKERS + 2, 0);
    proven(&m);
}

static void test_an_update_that_survives(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    inc(&m, 1);
    push(&m, 1, 0);
    end_clock(&m, 1, 0);
    for (int32_t s = 0; s < SHARDS; s++) zero_shard(&m, s);
    for (int32_t s = 0; s < SHARDS; s++) tick(&m, s, 1, 0);
    apply_all(&m, 1, 0);
    for (int32_t w = 0; w < WORKERS; w++) zero(&m, w, 0);
    refuted(&m, "zeroing", "was made before the worker zeroed the table");
}

static void test_an_update_that_is_lost(void **state) {
    (void)state;
    maker m;
    begin(&m, "async", false, false);
    for (int32_t w = 0; w < WORKERS; w++) zero(&m, w, 0);
    whole_clock(&m, 1, 0);
    for (int32_t s = 0; s < SHARDS; s++) zero_shard(&m, s);
    refuted(&m, "zeroing", "was made after the worker zeroed the table");
}

static void test_a_shard_that_was_not_zeroed(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    in_step(&m, 1);
    zero_shard(&m, 0);
    for (int32_t w = 0; w < WORKERS; w++) zero(&m, w, 1);
    refuted(&m, "zeroing", "and shard 1 was not");
}

static void test_a_worker_that_did_not(void **state) {
    (void)state;
    for (int other_clock = 0; other_clock < 2; other_clock++) {
        maker m;
        begin(&m, "bsp", false, false);
        in_step(&m, 1);
        for (int32_t s = 0; s < SHARDS; s++) zero_shard(&m, s);
        for (int32_t w = 0; w < WORKERS - 1; w++) zero(&m, w, 1);
        if (other_clock) zero(&m, WORKERS - 1, 0);
        refuted(&m, "zeroing", "did not");
    }
}

static void test_a_get_from_before(void **state) {
    (void)state;
    maker m;
    begin_zeroed(&m);
    get(&m, 1, 2, 2 * WORKERS, 0);
    refuted(&m, "zeroing", "from before the worker zeroed the table");
}

static void test_a_get_of_what_is_zeroed_later(void **state) {
    (void)state;
    maker m;
    begin(&m, "bsp", false, false);
    in_step(&m, 2);
    for (int32_t s = 0; s < SHARDS; s++) zero_shard(&m, s);
    get(&m, 1, 2, 2 * WORKERS + 1, 0);
    for (int32_t w = 0; w < WORKERS; w++) zero(&m, w, 2);
    refuted(&m, "zeroing", "before the worker zeroed the table");
}

static void test_a_sum_under_way(void **state) {
    (void)state;
    for (int late = 0; late < 2; late++) {
        maker m;
        begin(&m, "bounded-delay:1", false, true);
        for (int32_t w = 0; w < WORKERS; w++) {
            inc(&m, w);
            end_clock(&m, w, 0);
            push(&m, w, 0);
        }
        for (int32_t w = 0; w < WORKERS; w++) {
            if (!late || w != 1) sum(&m, w, 0);
            zero(&m, w, 1);
            if (late && w == 1) sum(&m, w, 0);
        }
        if (late) refuted(&m, "zeroing", "was under way");
        else proven(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_zeroed_in_order_is_proven),
        cmocka_unit_test(test_an_update_that_survives),
        cmocka_unit_test(test_an_update_that_is_lost),
        cmocka_unit_test(test_a_shard_that_was_not_zeroed),
        cmocka_unit_test(test_a_worker_that_did_not),
        cmocka_unit_test(test_a_get_from_before),
        cmocka_unit_test(test_a_get_of_what_is_zeroed_later),
        cmocka_unit_test(test_a_sum_under_way),
    };
    return cmocka_run_group_tests_name("watch.audit.zeros", tests, NULL, NULL);
}
