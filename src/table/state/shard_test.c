/* A clock's lists are added row by row in the order of workers, whether their keys increase or not; a false claim that
 * keys increase is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "table/state/shard.h"

enum { WORKERS = 3, ROWS = 150000, COLS = 2, KEYS = 9000 };

typedef struct list {
    uint64_t keys[KEYS];
    float    values[KEYS * COLS];
} list;

static void open_shard(const char *rule, pli_spec *spec, pli_shard *shard) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.cols = COLS;
    opts.keyed = true;
    opts.rule.name = rule;
    assert_int_equal(pli_spec_make(0, &opts, "allreduce", "bsp", 1, NULL, spec, NULL), PLAIT_OK);
    spec->placement = pli_placement_make(ROWS, pli_row_bytes(spec), 1, 1, 0);
    assert_int_equal(pli_shard_open(shard, spec, 0, true, NULL, NULL, NULL), PLAIT_OK);
}

/* n different keys; drawn in few of the rows they are close to each other, so that many fall into one stretch. */
static pli_push_part draw(pli_random *r, list *l, uint64_t within, bool increasing) {
    int64_t n = KEYS;
    for (int64_t i = 0; i < n; i++) l->keys[i] = pli_random_below(r, within);
    assert_true(pli_sort_u64(n, l->keys, NULL));
    n = pli_unique_u64(n, l->keys);
    for (int64_t i = 0; !increasing && i + 1 < n; i += 2) {
        uint64_t key = l->keys[i];
        l->keys[i] = l->keys[i + 1];
        l->keys[i + 1] = key;
    }
    for (int64_t i = 0; i < n * COLS; i++) l->values[i] = (float)pli_random_below(r, 1000) / 7;
    return (pli_push_part){ .touched = true,
                            .keyed = true,
                            .increasing = increasing,
                            .examples = 1,
                            .n = n,
                            .keys = l->keys,
                            .values = l->values };
}

static void test_rows_in_the_order_of_workers(void **state) {
    (void)state;
    static list  lists[WORKERS];
    static float want[ROWS * COLS], got[ROWS * COLS];
    pli_random   r = pli_random_at(3, PLI_RANDOM_SCHEDULE, 0, 0);
    pli_spec     spec;
    pli_shard    shard;
    open_shard(NULL, &spec, &shard);
    memset(want, 0, sizeof want);
    for (int64_t clock = 0; clock < 8; clock++) {
        pli_push_part part[WORKERS];
        for (int w = 0; w < WORKERS; w++) {
            part[w] = draw(&r, &lists[w], clock % 2 == 0 ? ROWS : KEYS * 2, clock < 4 || w > 0);
            if (clock == 3 && w == 1) part[w].n = 0;
            assert_int_equal(pli_shard_check(&shard, &part[w], NULL), PLAIT_OK);
            for (int64_t i = 0; i < part[w].n * COLS; i++)
                want[lists[w].keys[i / COLS] * COLS + (uint64_t)(i % COLS)] += lists[w].values[i];
        }
        assert_int_equal(pli_shard_apply_clock(&shard, clock, WORKERS, part, NULL), PLAIT_OK);
        pli_store_get_rows(&shard.store, 0, ROWS, got);
        assert_memory_equal(got, want, sizeof want);
    }
    pli_shard_close(&shard);
}

/* Tried with lists that are added together, with one list, and with a rule. */
static void test_claims_are_looked_into(void **state) {
    (void)state;
    static const uint64_t wrong[][3] = {
        { 5, 4, 9 }, { 5, 5, 9 }, { 5, 9, ROWS }, { 5, 9, UINT64_MAX }, { 100000, 3, 100001 }
    };
    static const float    values[3 * COLS] = { 1, 2, 3, 4, 5, 6 };
    static const uint64_t right[3] = { 1, 5, ROWS - 1 };
    for (int way = 0; way < 3; way++)
        for (size_t k = 0; k < sizeof wrong / sizeof wrong[0]; k++) {
            pli_spec      spec;
            pli_shard     shard;
            plait_error   why;
            pli_push_part part[2];
            open_shard(way == 2 ? "sgd" : NULL, &spec, &shard);
            for (int i = 0; i < 2; i++)
                part[i] = (pli_push_part){ .touched = true,
                                           .keyed = true,
                                           .increasing = true,
                                           .examples = 1,
                                           .n = 3,
                                           .keys = right,
                                           .values = values };
            assert_int_equal(pli_shard_apply_clock(&shard, 0, way == 1 ? 1 : 2, part, &why), PLAIT_OK);
            part[way == 1 ? 0 : k % 2].keys = wrong[k];
            assert_int_equal(pli_shard_apply_clock(&shard, 1, way == 1 ? 1 : 2, part, &why), PLAIT_EFORMAT);
            assert_non_null(strstr(why.text, "do not increase"));
            pli_shard_close(&shard);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_in_the_order_of_workers),
        cmocka_unit_test(test_claims_are_looked_into),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
