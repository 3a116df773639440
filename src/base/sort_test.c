/* Radix sort against qsort, at sizes around the switch to insertion, with and without payload. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/sort.h"

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Keys have `bits` bits, and payload[i] = i shows whether the order is stable and each payload moved with its key. */
static void check(int64_t n, int bits, bool carry) {
    uint64_t  *keys = malloc((size_t)(n + 1) * sizeof *keys), *wanted = malloc((size_t)(n + 1) * sizeof *wanted);
    uint64_t  *original = malloc((size_t)(n + 1) * sizeof *original);
    uint32_t  *payload = malloc((size_t)(n + 1) * sizeof *payload);
    pli_random r = pli_random_at((uint64_t)n, PLI_RANDOM_DATA, (uint64_t)bits, 0);
    for (int64_t i = 0; i < n; i++) {
        keys[i] = original[i] = wanted[i] = pli_random_u64(&r) >> (64 - bits);
        payload[i] = (uint32_t)i;
    }
    qsort(wanted, (size_t)n, sizeof *wanted, by_value);
    assert_true(pli_sort_u64(n, keys, carry ? payload : NULL));
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(keys[i], wanted[i]);
        if (!carry) continue;
        assert_int_equal(original[payload[i]], keys[i]);
        if (i > 0 && keys[i] == keys[i - 1]) assert_true(payload[i] > payload[i - 1]);
    }
    free(keys);
    free(wanted);
    free(original);
    free(payload);
}

static void test_equals_qsort(void **state) {
    (void)state;
    static const int64_t sizes[] = { 0, 1, 2, 3, 47, 48, 49, 50, 255, 256, 257, 1000, 20000 };
    static const int     bits[] = { 1, 7, 8, 9, 16, 24, 33, 63, 64 };
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
            check(sizes[s], bits[b], false);
            check(sizes[s], bits[b], true);
        }
    }
}

/* A byte in the middle that all keys share is skipped; the bytes around it are not. */
static void test_gaps_between_bytes(void **state) {
    (void)state;
    uint64_t keys[500];
    for (uint64_t i = 0; i < 500; i++) keys[i] = (i * 193 % 500) << 48 | UINT64_C(0xabcd00) | i % 3;
    assert_true(pli_sort_u64(500, keys, NULL));
    assert_true(pli_is_increasing_u64(500, keys));
}

static void test_increasing_and_unique(void **state) {
    (void)state;
    uint64_t keys[] = { 1, 1, 2, 3, 3, 3, UINT64_MAX, UINT64_MAX };
    assert_false(pli_is_increasing_u64(8, keys));
    assert_int_equal(pli_unique_u64(8, keys), 4);
    assert_true(pli_is_increasing_u64(4, keys));
    assert_true(keys[0] == 1 && keys[1] == 2 && keys[2] == 3 && keys[3] == UINT64_MAX);
    assert_int_equal(pli_unique_u64(0, keys), 0);
    assert_int_equal(pli_unique_u64(1, keys), 1);
    assert_true(pli_is_increasing_u64(0, keys));
}

static void test_doubles_have_an_order(void **state) {
    (void)state;
    const double low = -1.5, high = 2;
    assert_true(pli_order_f64(&low, &high) < 0 && pli_order_f64(&high, &low) > 0);
    assert_int_equal(pli_order_f64(&low, &low), 0);
}

static void test_out_of_memory_changes_nothing(void **state) {
    (void)state;
    uint64_t keys[100];
    uint32_t payload[100];
    for (uint32_t i = 0; i < 100; i++) keys[i] = 100 - i, payload[i] = i;
    pli_alloc_fail_after(0);
    bool sorted = pli_sort_u64(100, keys, payload);
    pli_alloc_fail_after(-1);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(keys[i], sorted ? i + 1 : 100 - i);
        assert_int_equal(payload[i], sorted ? 99 - i : i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_qsort),
        cmocka_unit_test(test_gaps_between_bytes),
        cmocka_unit_test(test_increasing_and_unique),
        cmocka_unit_test(test_doubles_have_an_order),
        cmocka_unit_test(test_out_of_memory_changes_nothing),
    };
    return cmocka_run_group_tests_name("base.sort", tests, NULL, NULL);
}
