/* e^x and related functions against the C library in long double: to a few units in the last place over all
 * magnitudes; and their values at the ends of the range. */
#include "tensor/elementary.h"

#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"

static long double expm1_l(long double x) { return expm1l(x < 0 ? x : 0); }
static long double sigmoid_l(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus_l(long double x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }

static const struct trial {
    const char *name;
    double (*fast)(double);
    long double (*exact)(long double);
    double low, high; /* powers of ten of |x| */
    int    signs;     /* 1: positive only; -1: negative only; 0: both */
} trials[] = {
    { "exp", pli_exp, expl, -20, 2.8, 0 },
    { "expm1", pli_expm1_negative, expm1_l, -20, 2.8, -1 },
    { "tanh", pli_tanh, tanhl, -20, 2, 0 },
    { "log", pli_ln, logl, -320, 308, 1 },
    { "log near 1", pli_ln, logl, -0.3, 0.3, 1 },
    { "sigmoid", pli_sigmoid, sigmoid_l, -20, 2.5, 0 },
    { "softplus", pli_softplus, softplus_l, -20, 2.5, 0 },
};

static void test_close_to_long_double(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof trials / sizeof *trials; t++) {
        const struct trial *trial = &trials[t];
        pli_random          random = pli_random_at(5, PLI_RANDOM_DATA, t, 0);
        for (int i = 0; i < 20000; i++) {
            double x = pow(10.0, trial->low + (trial->high - trial->low) * pli_random_f64(&random));
            if (trial->signs < 0 || (trial->signs == 0 && i % 2 != 0)) x = -x;
            const long double want = trial->exact((long double)x),
                              size = fabsl(want) > DBL_MIN ? fabsl(want) : (long double)DBL_MIN;
            const double got = trial->fast(x), off = (double)(fabsl((long double)got - want) / size);
            if (!(off <= 4 * DBL_EPSILON)) fail_msg("%s of %.17g: %.17g, off by %g", trial->name, x, got, off);
        }
    }
}

static void test_the_ends(void **state) {
    (void)state;
    assert_true(pli_ln(0.0) == -HUGE_VAL && pli_ln(-0.0) == -HUGE_VAL && pli_ln(HUGE_VAL) == HUGE_VAL &&
                pli_ln(1.0) == 0.0);
    assert_true(isnan(pli_ln(-1.0)) && isnan(pli_ln(NAN)) && isnan(pli_ln(-HUGE_VAL)));
    assert_true(pli_tanh(HUGE_VAL) == 1.0 && pli_tanh(-HUGE_VAL) == -1.0 && isnan(pli_tanh(NAN)));
    assert_true(pli_tanh(0.0) == 0.0 && signbit(pli_tanh(-0.0)) != 0);
    assert_true(pli_expm1_negative(-HUGE_VAL) == -1.0 && isnan(pli_expm1_negative(NAN)) &&
                pli_expm1_negative(3.0) == 0.0);
    assert_true(pli_exp(HUGE_VAL) == HUGE_VAL && pli_exp(-HUGE_VAL) == 0.0 && isnan(pli_exp(NAN)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_close_to_long_double),
        cmocka_unit_test(test_the_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
