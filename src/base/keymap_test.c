/* The key map against a model: keys are added and found singly and in batches, through growth and out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/keymap.h"
#include "base/random.h"

static void test_empty(void **state) {
    (void)state;
    pli_keymap map;
    uint64_t   keys[3] = { 0, 1, UINT64_MAX };
    int64_t    rows[3] = { 7, 7, 7 };
    pli_keymap_init(&map);
    assert_int_equal(pli_keymap_find(&map, 0), -1);
    pli_keymap_find_all(&map, 3, keys, rows);
    for (int i = 0; i < 3; i++) assert_int_equal(rows[i], -1);
    assert_true(pli_keymap_add_all(&map, 0, keys, rows));
    pli_keymap_keys(&map, keys);
    pli_keymap_destroy(&map);
}

static void test_rows_count_up_and_stay(void **state) {
    (void)state;
    pli_keymap map;
    pli_keymap_init(&map);
    for (int64_t i = 0; i < 5000; i++) {
        uint64_t key = (uint64_t)i << 40; /* only high bits differ */
        assert_int_equal(pli_keymap_find(&map, key), -1);
        assert_int_equal(pli_keymap_add(&map, key), i);
        assert_int_equal(pli_keymap_add(&map, key), i);
    }
    for (int64_t i = 0; i < 5000; i++) assert_int_equal(pli_keymap_find(&map, (uint64_t)i << 40), i);
    assert_int_equal(map.n, 5000);
    pli_keymap_destroy(&map);
}

/* Keys come from a small range, so that many are old; rows must be those of a plain array indexed by key. */
static void test_batches_equal_a_model(void **state) {
    (void)state;
    enum { RANGE = 20000, MOST = 777 };
    int64_t *model = malloc(RANGE * sizeof *model), n = 0;
    memset(model, 0xff, RANGE * sizeof *model);
    pli_random r = pli_random_at(1, PLI_RANDOM_SCHEDULE, 0, 0);
    pli_keymap map;
    pli_keymap_init(&map);
    for (int round = 0; round < 200; round++) {
        uint64_t keys[MOST];
        int64_t  rows[MOST], batch = (int64_t)pli_random_below(&r, MOST + 1);
        for (int64_t i = 0; i < batch; i++) keys[i] = pli_random_below(&r, RANGE);
        pli_keymap_find_all(&map, batch, keys, rows);
        for (int64_t i = 0; i < batch; i++) assert_int_equal(rows[i], model[keys[i]]);
        assert_true(pli_keymap_add_all(&map, batch, keys, rows));
        for (int64_t i = 0; i < batch; i++) {
            if (model[keys[i]] < 0) model[keys[i]] = n++;
            assert_int_equal(rows[i], model[keys[i]]);
        }
        assert_int_equal(map.n, n);
        assert_true(map.n <= (int64_t)(map.mask + 1) * 3 / 4);
    }
    uint64_t *keys = malloc((size_t)map.n * sizeof *keys);
    pli_keymap_keys(&map, keys);
    for (int64_t i = 0; i < map.n; i++) assert_int_equal(model[keys[i]], i);
    free(keys);
    free(model);
    pli_keymap_destroy(&map);
}

/* Some rows' keys, found a few slots at a time, are those that all rows' keys have there. */
static void test_keys_of_some_rows(void **state) {
    (void)state;
    enum { N = 1000, FIRST = 300, ROWS = 250 };
    uint64_t   all[N], some[ROWS + 1] = { 0 }, at = 0;
    int        steps = 1;
    pli_keymap map;
    pli_keymap_init(&map);
    assert_true(pli_keymap_keys_within(&map, &at, 7, 0, 1, some));
    for (uint64_t i = 0; i < N; i++) assert_int_equal(pli_keymap_add(&map, i * i), i);
    pli_keymap_keys(&map, all);
    for (; !pli_keymap_keys_within(&map, &at, 7, FIRST, ROWS, some); steps++) assert_int_equal(at, 7 * steps);
    assert_int_equal(at, map.mask + 1);
    assert_memory_equal(some, all + FIRST, ROWS * sizeof *some);
    assert_int_equal(some[ROWS], 0);
    pli_keymap_destroy(&map);
}

/* Keys are chosen so that all have their home at the end of the table: probes wrap around. */
static void test_collisions_wrap(void **state) {
    (void)state;
    pli_keymap map;
    pli_keymap_init(&map);
    uint64_t key[9];
    int      n = 0;
    for (uint64_t k = 0; n < 9; k++) {
        if ((pli_hash_u64(k) & 15) == 15) key[n++] = k;
    }
    for (int i = 0; i < 9; i++) assert_int_equal(pli_keymap_add(&map, key[i]), i);
    assert_int_equal(map.mask, 15);
    for (int i = 0; i < 9; i++) assert_int_equal(pli_keymap_find(&map, key[i]), i);
    pli_keymap_destroy(&map);
}

static void test_reserve_ends_growth(void **state) {
    (void)state;
    pli_keymap map;
    pli_keymap_init(&map);
    assert_true(pli_keymap_reserve(&map, 1000));
    const void *slots = map.slot;
    for (uint64_t k = 0; k < 1000; k++) assert_int_equal(pli_keymap_add(&map, k * k + 1), (int64_t)k);
    assert_ptr_equal(map.slot, slots);
    assert_true(pli_keymap_reserve(&map, 10)); /* fewer keys than it holds */
    assert_false(pli_keymap_reserve(&map, INT64_MAX));
    assert_int_equal(pli_keymap_find(&map, 2), 1);
    pli_keymap_destroy(&map);
}

/* Every growth fails once: keys keep their rows, and the call can be repeated. */
static void test_out_of_memory(void **state) {
    (void)state;
    uint64_t keys[3000];
    int64_t  rows[3000], failures = 0;
    for (uint64_t i = 0; i < 3000; i++) keys[i] = i * 3;
    int64_t before = pli_alloc_live();
    for (int64_t k = 0;; k++) {
        pli_keymap map;
        pli_keymap_init(&map);
        pli_alloc_fail_after(k);
        bool fits = pli_keymap_add_all(&map, 3000, keys, rows);
        pli_alloc_fail_after(-1);
        for (int64_t i = 0; i < map.n; i++) assert_int_equal(pli_keymap_find(&map, keys[i]), i);
        failures += !fits;
        if (!fits) assert_true(pli_keymap_add_all(&map, 3000, keys, rows));
        for (int64_t i = 0; i < 3000; i++) assert_int_equal(rows[i], i);
        pli_keymap_destroy(&map);
        assert_int_equal(pli_alloc_live(), before);
        if (fits) break;
    }
    assert_true(failures == 0 || failures >= 8); /* 0 if allocations are not counted */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_rows_count_up_and_stay),
        cmocka_unit_test(test_batches_equal_a_model),
        cmocka_unit_test(test_keys_of_some_rows),
        cmocka_unit_test(test_collisions_wrap),
        cmocka_unit_test(test_reserve_ends_growth),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests_name("base.keymap", tests, NULL, NULL);
}
