/* The Fenwick tree draws each variable as often as its weight says, whatever was changed before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/sched.h"

enum { N = 13, DRAWS = 26000 };

/* By a loop over all weights. */
static int64_t plain(const double *weight, int64_t n, double share) {
    double total = 0, sum = 0;
    for (int64_t i = 0; i < n; i++) total += weight[i];
    for (int64_t i = 0; i < n; i++) {
        sum += weight[i];
        if (share * total < sum) return i;
    }
    return n - 1;
}

static void test_it_finds_what_a_loop_finds(void **state) {
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (int64_t n = 1; n <= 40; n++) {
        pli_fenwick f;
        assert_true(pli_fenwick_init(&f, n, 1));
        for (int i = 0; i < 3000; i++) { /* past the nodes' renewal */
            const int64_t at = (int64_t)pli_random_below(&random, (uint64_t)n);
            pli_fenwick_set(&f, at, (double)pli_random_below(&random, 5));
            double total = 0;
            for (int64_t k = 0; k < n; k++) total += f.weight[k];
            if (total == 0) {
                assert_int_equal(pli_fenwick_find(&f, 0.5), -1);
                continue;
            }
            const double share = ((double)pli_random_below(&random, (uint64_t)total) + 0.5) / total;
            assert_int_equal(pli_fenwick_find(&f, share), plain(f.weight, n, share));
        }
        pli_fenwick_destroy(&f);
    }
}

static void test_shares_are_those_of_the_weights(void **state) {
    pli_random  random = pli_random_at(8, PLI_RANDOM_DATA, 0, 0);
    pli_fenwick f;
    int         seen[N] = { 0 };
    (void)state;
    assert_true(pli_fenwick_init(&f, N, 0));
    for (int64_t i = 0; i < N; i++) pli_fenwick_set(&f, i, (double)i / 6);
    for (int i = 0; i < DRAWS; i++) seen[pli_fenwick_find(&f, pli_random_f64(&random))]++;
    assert_int_equal(seen[0], 0);
    for (int64_t i = 1; i < N; i++) {
        const double expected = DRAWS * (double)i / 78;
        assert_true(seen[i] > 0.85 * expected - 20 && seen[i] < 1.15 * expected + 20);
    }
    pli_fenwick_destroy(&f);
}

/* Weights of very different sizes: rounding leads to none whose weight is 0. */
static void test_rounding_leads_to_no_weight_of_zero(void **state) {
    pli_random  random = pli_random_at(9, PLI_RANDOM_DATA, 0, 0);
    pli_fenwick f;
    (void)state;
    assert_true(pli_fenwick_init(&f, 64, 0));
    for (int i = 0; i < 900; i++) {
        const int64_t at = (int64_t)pli_random_below(&random, 64);
        pli_fenwick_set(&f, at, i % 3 == 0 ? 0 : pli_random_f64(&random) * (i % 2 == 0 ? 1e17 : 1e-3));
    }
    for (int64_t i = 0; i < 64; i++) pli_fenwick_set(&f, i, i == 5 ? 1e-9 : 0);
    for (int i = 0; i < 100; i++) assert_int_equal(pli_fenwick_find(&f, i / 100.0), 5);
    pli_fenwick_destroy(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_finds_what_a_loop_finds),
        cmocka_unit_test(test_shares_are_those_of_the_weights),
        cmocka_unit_test(test_rounding_leads_to_no_weight_of_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
