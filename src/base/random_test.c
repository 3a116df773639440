/* Random numbers: the published answers of Philox, independence of streams, and the shape of the distributions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Known answers from kat_vectors of the Random123 distribution: philox4x32 with 10 rounds. */
static void test_known_answers(void **state) {
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        { { 0, 0, 0, 0 }, { 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
          { 0xffffffff, 0xffffffff },
          { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
          { 0xa4093822, 0x299f31d0 },
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        pli_random r = { .used = 4 };
        memcpy(r.counter, known[k].counter, sizeof r.counter);
        memcpy(r.key, known[k].key, sizeof r.key);
        for (int i = 0; i < 4; i++) assert_int_equal(pli_random_u32(&r), known[k].answer[i]);
    }
}

static void test_stream_is_its_name(void **state) {
    (void)state;
    pli_random a = pli_random_at(7, PLI_RANDOM_INIT, 3, 4), b = pli_random_at(7, PLI_RANDOM_INIT, 3, 4);
    for (int i = 0; i < 100; i++) assert_int_equal(pli_random_u64(&a), pli_random_u64(&b));
    pli_random other[] = {
        pli_random_at(8, PLI_RANDOM_INIT, 3, 4),
        pli_random_at(7, PLI_RANDOM_SPLIT, 3, 4),
        pli_random_at(7, PLI_RANDOM_INIT, 4, 3),
        pli_random_at(7, PLI_RANDOM_INIT, 3, 5),
        pli_random_at(7, PLI_RANDOM_INIT, 3u | UINT64_C(1) << 32, 4),
    };
    pli_random same = pli_random_at(7, PLI_RANDOM_INIT, 3, 4);
    uint64_t   first = pli_random_u64(&same);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) assert_int_not_equal(pli_random_u64(&other[i]), first);
}

/* The result of a run depends on these values, so they may never change. They were computed separately, from the
 * definition in random.c. */
static void test_values_are_pinned(void **state) {
    (void)state;
    pli_random r = pli_random_at(42, PLI_RANDOM_PERMUTE, 1, 2);
    uint32_t   order[8];
    pli_random_permutation(&r, 8, order);
    pli_random s = pli_random_at(42, PLI_RANDOM_PERMUTE, 1, 2);
    assert_int_equal(pli_random_u64(&s), UINT64_C(0x38254b396e1c5eb6));
    static const uint32_t pinned[8] = { 6, 5, 3, 7, 1, 0, 4, 2 };
    for (int i = 0; i < 8; i++) assert_int_equal(order[i], pinned[i]);
}

static void test_uniform_and_normal(void **state) {
    (void)state;
    enum { N = 200000 };
    pli_random r = pli_random_at(1, PLI_RANDOM_DATA, 0, 0);
    double     sum = 0, normal = 0, squares = 0, fourth = 0;
    for (int i = 0; i < N; i++) {
        double u = pli_random_f64(&r), z = pli_random_normal(&r);
        assert_true(u >= 0 && u < 1 && isfinite(z));
        sum += u, normal += z, squares += z * z, fourth += z * z * z * z;
    }
    assert_true(fabs(sum / N - 0.5) < 0.004); /* the bounds are at least six standard errors */
    assert_true(fabs(normal / N) < 0.014);
    assert_true(fabs(squares / N - 1) < 0.02);
    assert_true(fabs(fourth / N - 3) < 0.15);
}

static void test_below_is_unbiased(void **state) {
    (void)state;
    pli_random r = pli_random_at(2, PLI_RANDOM_DATA, 0, 0);
    int        count[6] = { 0 };
    for (int i = 0; i < 60000; i++) {
        uint64_t v = pli_random_below(&r, 6);
        assert_true(v < 6);
        count[v]++;
    }
    for (int v = 0; v < 6; v++) assert_in_range(count[v], 9450, 10550);
    /* 3/4 of 2^64: without rejection the multiples of 3 would come up twice as often as the others */
    uint64_t bound = UINT64_C(3) << 62, thirds[3] = { 0 };
    for (int i = 0; i < 30000; i++) thirds[pli_random_below(&r, bound) % 3]++;
    for (int t = 0; t < 3; t++) assert_in_range(thirds[t], 9500, 10500);
    assert_int_equal(pli_random_below(&r, 1), 0);
}

static void test_permutation(void **state) {
    (void)state;
    uint32_t   order[1000];
    bool       seen[1000] = { false };
    pli_random r = pli_random_at(3, PLI_RANDOM_PERMUTE, 0, 0);
    pli_random_permutation(&r, 1000, order);
    for (int i = 0; i < 1000; i++) {
        assert_true(order[i] < 1000 && !seen[order[i]]);
        seen[order[i]] = true;
    }
    int count[6] = { 0 }; /* each of the 6 orders of 3 about equally often */
    for (int i = 0; i < 6000; i++) {
        pli_random_permutation(&r, 3, order);
        count[order[0] * 2 + (order[1] > order[2])]++;
    }
    for (int k = 0; k < 6; k++) assert_in_range(count[k], 820, 1180);
    pli_random_permutation(&r, 0, order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answers),     cmocka_unit_test(test_stream_is_its_name),
        cmocka_unit_test(test_values_are_pinned), cmocka_unit_test(test_uniform_and_normal),
        cmocka_unit_test(test_below_is_unbiased), cmocka_unit_test(test_permutation),
    };
    return cmocka_run_group_tests_name("base.random", tests, NULL, NULL);
}
