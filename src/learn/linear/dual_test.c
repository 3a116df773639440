/* Tests of the parts of the dual method: projection to the simplex, factors that keep the intercepts' constraint. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "learn/linear/dual.h"

/* The nearest point z of the simplex: y - z is the same number for all z_c > 0, and no larger for the others. */
static void test_simplex(void **state) {
    (void)state;
    for (uint64_t draw = 0; draw < 300; draw++) {
        pli_random    r = pli_random_at(1, PLI_RANDOM_DATA, 0, draw);
        const int64_t n = 1 + (int64_t)pli_random_below(&r, 9);
        const double  size = draw % 3 == 0 ? 1e6 : draw % 3 == 1 ? 1 : 1e-3;
        double        y[9], z[9], sum = 0, level = -INFINITY;
        for (int64_t c = 0; c < n; c++) z[c] = y[c] = size * pli_random_normal(&r);
        pli_simplex_project(n, z);
        for (int64_t c = 0; c < n; c++) {
            assert_true(z[c] >= 0);
            sum += z[c];
            if (z[c] > 0) level = fmax(level, y[c] - z[c]);
        }
        assert_true(fabs(sum - 1) < 1e-12 * size + 1e-12);
        for (int64_t c = 0; c < n; c++) {
            if (z[c] > 0) assert_true(fabs(y[c] - z[c] - level) <= 1e-9 * size);
            else assert_true(y[c] <= level + 1e-9 * size);
        }
    }
}

static void test_balance(void **state) {
    (void)state;
    const double two[] = { 3, -4, -3, 4 };
    double       factor[6];
    assert_true(pli_dual_balance(2, two, factor));
    assert_true(fabs(factor[0] - 1) < 1e-12 && fabs(factor[1] - 0.75) < 1e-12);
    for (uint64_t draw = 0; draw < 50; draw++) {
        pli_random r = pli_random_at(2, PLI_RANDOM_DATA, 0, draw);
        double     flow[36] = { 0 }, total = 0;
        for (int64_t y = 0; y < 6; y++)
            for (int64_t c = 0; c < 6; c++) {
                const double share = c == y ? 0 : pli_random_f64(&r);
                flow[c * 6 + y] -= share;
                flow[y * 6 + y] += share;
                total += share;
            }
        assert_true(pli_dual_balance(6, flow, factor));
        for (int64_t c = 0; c < 6; c++) {
            double left = 0;
            for (int64_t y = 0; y < 6; y++) left += flow[c * 6 + y] * factor[y];
            assert_true(fabs(left) <= 1e-11 * total && factor[c] >= 0 && factor[c] <= 1);
        }
    }
    /* Class 1 has shares of class 0, and class 0 has none to give: only without them is the constraint kept. */
    const double torn[] = { 0, -1, 0, 1 };
    assert_true(!pli_dual_balance(2, torn, factor) || factor[1] < 1e-200);
}

/* Each pass has each share of each worker's rows once, and no turn is two workers'. */
static void test_turns(void **state) {
    enum { HOLDERS = 3, SHARES = 5, TURNS = HOLDERS * SHARES, PASSES = 4 };
    uint32_t order[HOLDERS][TURNS];
    int32_t  share[HOLDERS][TURNS], first[PASSES] = { 0 };
    (void)state;
    pli_dual_turns turns[HOLDERS];
    for (int32_t w = 0; w < HOLDERS; w++)
        turns[w] = (pli_dual_turns){ .holders = HOLDERS, .place = w, .of = 1, .shares = SHARES, .turns = TURNS,
                                     .seed = 1, .pass = -1, .order = order[w], .share = share[w] };
    for (int64_t pass = 0; pass < PASSES; pass++) {
        int seen[HOLDERS][SHARES] = { { 0 } };
        for (int64_t i = 0; i < TURNS; i++) {
            int32_t active = 0;
            for (int32_t w = 0; w < HOLDERS; w++) {
                const int32_t own = pli_dual_turns_share(&turns[w], pass * TURNS + i);
                if (own < 0) continue;
                assert_true(own < SHARES);
                seen[w][own]++;
                active++;
                if (i == 0) first[pass] = w * SHARES + own;
            }
            assert_int_equal(active, 1);
        }
        for (int32_t w = 0; w < HOLDERS; w++)
            for (int32_t s = 0; s < SHARES; s++) assert_int_equal(seen[w][s], 1);
    }
    assert_true(first[0] != first[1] || first[1] != first[2] || first[2] != first[3]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_simplex), cmocka_unit_test(test_balance),
                                        cmocka_unit_test(test_turns) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
