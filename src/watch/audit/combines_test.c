/* How the audit judges combines: under min and max an update that comes twice, or in another order, changes nothing;
 * every other mistake is still refuted. */
#include "audit/log_by_hand.h"

static void begin_under(maker *m, const char *combine, const char *consistency) {
    const pli_event_table table = { .name = "w", .topology = "ps", .consistency = consistency, .rows = 100, .cols = 2,
                                    .way = PLI_WAY_SERVED, .shards = SHARDS, .combine = combine };
    begin_table(m, &table, 0);
}

static void begin_combined(maker *m, const char *combine) { begin_under(m, combine, "async"); }

/* Rank 0 pushes twice; the second push is applied first, and then once more. */
static void push_twice(maker *m) {
    for (int i = 0; i < 2; i++) {
        inc(m, 0);
        push(m, 0, 0);
    }
    for (int32_t s = 0; s < SHARDS; s++) {
        apply(m, s, 0, 2, 0);
        apply(m, s, 0, 1, 0);
        apply(m, s, 0, 2, 0);
    }
}

static void test_twice_changes_nothing(void **state) {
    static const char *const combines[] = { "min", "max" };
    (void)state;
    for (int k = 0; k < 2; k++) {
        maker m;
        begin_combined(&m, combines[k]);
        push_twice(&m);
        get(&m, 0, 0, 3, 0);
        proven(&m);
    }
    maker m;
    begin_combined(&m, "add");
    push_twice(&m);
    refuted(&m, "exactly once", NULL);
}

static void test_what_is_lost_or_not_seen(void **state) {
    (void)state;
    maker m;
    begin_combined(&m, "min");
    inc(&m, 0);
    push(&m, 0, 0);
    apply(&m, 0, 0, 1, 0);
    refuted(&m, "exactly once", "never applied");

    begin_combined(&m, "max");
    whole_clock(&m, 0, 0);
    get(&m, 0, 1, 0, 0);
    refuted(&m, "own updates", NULL);

    begin_combined(&m, "max");
    whole_clock(&m, 0, 0);
    inc(&m, 0);
    get(&m, 0, 1, 1, 0); /* without the inc that is not pushed yet */
    push(&m, 0, 1);
    apply_all(&m, 0, 1);
    refuted(&m, "own updates", NULL);

    begin_combined(&m, "min");
    whole_clock(&m, 0, 0);
    whole_clock(&m, 1, 0);
    get(&m, 1, 1, 2, 0);
    get(&m, 1, 1, 1, 0);
    refuted(&m, "own updates", NULL);
}

/* Rank `first` and then rank `then` push in one clock, and both shards apply them in that order. */
static void push_in_order(maker *m, int32_t first, int32_t then) {
    for (int32_t k = 0; k < WORKERS; k++) {
        if (k != first && k != then) continue;
        inc(m, k);
        push(m, k, 0);
    }
    for (int32_t s = 0; s < SHARDS; s++) {
        apply(m, s, first, 1, 0);
        apply(m, s, then, 1, 0);
    }
}

static void test_the_last_counts(void **state) {
    (void)state;
    maker m;
    begin_under(&m, "last", "bsp");
    push_in_order(&m, 1, 0);
    refuted(&m, "the last counts", "behind a push of rank 1");

    begin_under(&m, "add", "bsp");
    push_in_order(&m, 1, 0);
    proven(&m);

    begin_under(&m, "last", "bsp");
    push_in_order(&m, 0, 2);
    proven(&m);

    begin_combined(&m, "last"); /* whose the row is says its stamp, and no order of arrival */
    push_in_order(&m, 2, 0);
    proven(&m);

    begin_combined(&m, "last");
    push_twice(&m);
    refuted(&m, "exactly once", NULL);
}

static void test_two_combines_of_a_table(void **state) {
    (void)state;
    maker m;
    begin_combined(&m, "min");
    const pli_event_table other = { .name = "w", .topology = "ps", .consistency = "async", .rows = 100, .cols = 2,
                                    .way = PLI_WAY_SERVED, .shards = SHARDS, .combine = "max" };
    raise_event(&m, (pli_event){ .kind = PLI_EVENT_TABLE, .rank = 0, .info.table = &other });
    malformed(&m, "by other dimensions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twice_changes_nothing),
        cmocka_unit_test(test_what_is_lost_or_not_seen),
        cmocka_unit_test(test_the_last_counts),
        cmocka_unit_test(test_two_combines_of_a_table),
    };
    return cmocka_run_group_tests_name("watch.audit.combines", tests, NULL, NULL);
}
