/* When a run reached a loss, from what it told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "cli/looks.h"

static bool near(double a, double b) { return fabs(a - b) < 1e-9; }

/* A loss of 1 - 0.01 clock, told after every `step` clocks of 2 s. */
static void fill(pli_looks *looks, int64_t clocks, int64_t step) {
    pli_looks_begin(looks);
    for (int64_t c = step; c <= clocks; c += step)
        pli_looks_add(looks, c, 2.0 * (double)c, 1 - 0.01 * ((double)c - 0.5 * (double)(step - 1)));
}

static void test_a_window_has_the_mean_and_the_time_of_its_middle(void **state) {
    (void)state;
    pli_looks looks;
    double    seconds = 0, loss = 0;
    fill(&looks, 4, 1);
    assert_false(pli_looks_last(&looks, 5, &seconds, &loss));
    assert_true(pli_looks_last(&looks, 4, &seconds, &loss));
    assert_true(near(loss, (0.99 + 0.98 + 0.97 + 0.96) / 4));
    assert_true(near(seconds, 4));
}

static void test_a_loss_is_reached_between_two_windows(void **state) {
    (void)state;
    pli_looks looks;
    fill(&looks, 50, 1);
    /* The window of clocks 7 to 10 has the mean 0.915 in its middle, after 8 clocks. */
    assert_true(near(pli_looks_until(&looks, 4, 0.915), 16));
    assert_true(near(pli_looks_until(&looks, 4, 0.910), 17));
    assert_true(isinf(pli_looks_until(&looks, 4, 0.4)));
    assert_true(near(pli_looks_until(&looks, 4, 2), 4)); /* the first window has it already */
}

/* A loss that has come to rest jumps about: the least of it is what others must reach. */
static void test_the_least_is_found(void **state) {
    (void)state;
    pli_looks looks;
    double    seconds, loss;
    fill(&looks, 10, 1);
    pli_looks_add(&looks, 11, 22, 5);
    assert_true(pli_looks_last(&looks, 2, &seconds, &loss) && loss > 2);
    assert_true(near(pli_looks_least(&looks, 2), (0.91 + 0.90) / 2));
    assert_true(isinf(pli_looks_least(&looks, 12)));
}

/* Looks at other clocks tell of the same run. */
static void test_rare_looks_tell_nearly_the_same(void **state) {
    (void)state;
    pli_looks looks;
    fill(&looks, 60, 6);
    assert_true(fabs(pli_looks_until(&looks, 6, 0.7) - 2 * 29.5) < 2);
}

static void test_what_does_not_go_on_is_left_out(void **state) {
    (void)state;
    pli_looks looks;
    fill(&looks, 3, 1);
    pli_looks_add(&looks, 3, 9, 0.1);
    pli_looks_add(&looks, 4, 9, (double)NAN);
    assert_int_equal(looks.n, 4);
}

/* When there is no more room, every second look goes; the sums stay. */
static void test_many_looks_are_thinned(void **state) {
    (void)state;
    pli_looks looks;
    fill(&looks, 5000, 1);
    assert_true(looks.n <= PLI_LOOKS);
    assert_true(near(looks.at[looks.n - 1].clock, 5000));
    assert_true(near(pli_looks_until(&looks, 100, 1 - 0.01 * 4050.5), 2 * 4050));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_window_has_the_mean_and_the_time_of_its_middle),
        cmocka_unit_test(test_a_loss_is_reached_between_two_windows),
        cmocka_unit_test(test_the_least_is_found),
        cmocka_unit_test(test_rare_looks_tell_nearly_the_same),
        cmocka_unit_test(test_what_does_not_go_on_is_left_out),
        cmocka_unit_test(test_many_looks_are_thinned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
