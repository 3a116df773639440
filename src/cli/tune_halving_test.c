/* Which trial runs next, without running any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>

#include "cli/tune.h"

enum { TRIALS = 4, RUNGS = 2 };

/* Runs the search; failed [trials]: it fails in the last rung. Returns how many runs there were. */
static int64_t search(pli_halving *h, const bool *failed) {
    int64_t runs = 0, trial;
    int32_t rung;
    bool    ended = false;
    while (pli_halving_next(h, &trial, &rung, &ended)) {
        const bool bad = rung == RUNGS - 1 && failed[trial];
        assert_int_equal(pli_halving_run(h, trial, rung)->state, PLI_TUNE_RUNS);
        *pli_halving_run(h, trial, rung) =
            (pli_tune_run){ .state = PLI_TUNE_DONE, .loss = bad ? (double)INFINITY : (double)(TRIALS - trial) };
        if (++runs > TRIALS * RUNGS) fail_msg("a trial ran twice in a rung");
    }
    assert_true(ended);
    return runs;
}

/* Trial 3 is the best, and one in 4 rises. */
static void test_the_best_rises(void **state) {
    (void)state;
    pli_tune_run run[TRIALS * RUNGS] = { { 0 } };
    pli_halving  h = { .trials = TRIALS, .factor = 4, .rungs = RUNGS, .run = run };
    int32_t      rung;
    assert_int_equal(search(&h, (const bool[TRIALS]){ false }), TRIALS + 1);
    assert_int_equal(pli_halving_best(&h, &rung), 3);
    assert_int_equal(rung, RUNGS - 1);
}

/* If it fails there, the next one rises in its place; if all fail, the search ends. */
static void test_failures_in_the_last_rung(void **state) {
    (void)state;
    pli_tune_run run[TRIALS * RUNGS] = { { 0 } }, other[TRIALS * RUNGS] = { { 0 } };
    pli_halving  one = { .trials = TRIALS, .factor = 4, .rungs = RUNGS, .run = run }, all = one;
    int32_t      rung;
    all.run = other;
    assert_int_equal(search(&one, (const bool[TRIALS]){ [3] = true }), TRIALS + 2);
    assert_int_equal(pli_halving_best(&one, &rung), 2);
    assert_int_equal(rung, RUNGS - 1);
    assert_int_equal(search(&all, (const bool[TRIALS]){ true, true, true, true }), TRIALS * RUNGS);
    assert_int_equal(pli_halving_best(&all, &rung), 3);
    assert_int_equal(rung, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_rises),
        cmocka_unit_test(test_failures_in_the_last_rung),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
