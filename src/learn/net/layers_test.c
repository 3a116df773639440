/* Runs of layers beside all runs that there are: the slowest of those found is never slower than the best. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "learn/net/stages.h"

enum { LAYERS = 9 };

static double slowest_of(const double *seconds, int32_t n, int32_t stages, const double *speed, const int32_t *first) {
    double slowest = 0;
    for (int32_t s = 0; s < stages; s++) {
        double        sum = 0;
        const int32_t end = s + 1 < stages ? first[s + 1] : n;
        for (int32_t k = first[s]; k < end; k++) sum += seconds[k];
        if (sum / speed[s] > slowest) slowest = sum / speed[s];
    }
    return slowest;
}

/* The best of all ways to begin stages s, s + 1, ... behind layer first[s - 1]. */
static double best_of(const double *seconds, int32_t n, int32_t stages, const double *speed, int32_t s,
                      int32_t *first) {
    double best = 1e9;
    if (s == stages) return slowest_of(seconds, n, stages, speed, first);
    for (first[s] = first[s - 1] + 1; first[s] <= n - (stages - s); first[s]++) {
        int32_t      then[LAYERS];
        memcpy(then, first, sizeof then);
        const double found = best_of(seconds, n, stages, speed, s + 1, then);
        if (found < best) best = found;
    }
    return best;
}

/* Draws seconds of layers, zeros too, and speeds of 1/2, 1 and 2, so that all sums are exact. */
static void draw(uint64_t seed, int32_t n, int32_t stages, bool alike, double *seconds, double *speed) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, (uint64_t)n, (uint64_t)stages);
    for (int32_t k = 0; k < n; k++) seconds[k] = (double)pli_random_below(&random, 5);
    for (int32_t s = 0; s < stages; s++) speed[s] = alike ? 1 : 0.5 * (double)(1 << pli_random_below(&random, 3));
}

static void check(bool alike) {
    for (uint64_t seed = 0; seed < 40; seed++)
        for (int32_t n = 1; n <= LAYERS; n++)
            for (int32_t stages = 1; stages <= n; stages++) {
                double  seconds[LAYERS], speed[LAYERS];
                int32_t first[LAYERS] = { 0 }, all[LAYERS] = { 0 };
                draw(seed, n, stages, alike, seconds, speed);
                assert_true(pli_layers_cut(seconds, n, stages, alike ? NULL : speed, first));
                assert_int_equal(first[0], 0);
                for (int32_t s = 1; s < stages; s++) assert_true(first[s] > first[s - 1] && first[s] < n);
                assert_true(slowest_of(seconds, n, stages, speed, first) ==
                            best_of(seconds, n, stages, speed, 1, all));
            }
}

static void test_no_runs_are_better(void **state) {
    (void)state;
    check(true);
}

static void test_no_runs_suit_the_hosts_better(void **state) {
    (void)state;
    check(false);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_no_runs_are_better),
                                        cmocka_unit_test(test_no_runs_suit_the_hosts_better) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
