/* Sums, and models made of them, beside formulas of two passes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "learn/bayes/bayes.h"

#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

enum { ROWS = 40, FEATURES = 3, CLASSES = 3 };

/* Rows whose values follow from f, with labels 0, 1, 2 in turn; a value of 0 is not given. */
typedef struct rows {
    pli_block block;
    int64_t   row_start[ROWS + 1];
    uint32_t  col[ROWS * FEATURES];
    float     value[ROWS * FEATURES], weight[ROWS];
    double    label[ROWS], x[ROWS][FEATURES];
} rows;

static void make(rows *r, double (*f)(int64_t i, int64_t j), bool weighted) {
    int64_t n = 0;
    *r = (rows){ .block = { .rows = ROWS } };
    for (int64_t i = 0; i < ROWS; i++) {
        r->label[i] = (double)(i % CLASSES);
        r->weight[i] = weighted ? (float)(1 + i % 2) : 1;
        for (int64_t j = 0; j < FEATURES; j++) {
            r->value[n] = (float)f(i, j);
            r->x[i][j] = (double)r->value[n];
            r->col[n] = (uint32_t)j;
            n += r->x[i][j] != 0;
        }
        r->row_start[i + 1] = n;
    }
    r->block.entries = n;
    r->block.row_start = r->row_start;
    r->block.col = r->col;
    r->block.value = r->value;
    r->block.label = r->label;
    r->block.weight = weighted ? r->weight : NULL;
}

static double counts(int64_t i, int64_t j) { return (double)((i * 7 + j * 3) % 5); }
static double far_off(int64_t i, int64_t j) { return 1e6 + (double)((i * 7 + j * 3) % 5) * 0.25; }
static double some_zeros(int64_t i, int64_t j) { return i % 4 == 0 ? 0 : far_off(i, j); }

static const double label_value[CLASSES] = { 0, 1, 2 };
static pli_goal     goal(void) {
    pli_goal g = { .columns = CLASSES, .classes = CLASSES, .label = label_value };
    assert_int_equal(pli_loss_find("logistic", CLASSES, &g.loss, NULL), PLAIT_OK);
    return g;
}

/* The model of rows, tallied as the form says. */
static pli_solution fit(const rows *r, pli_tally_form form, double alpha, double smoothing) {
    const pli_part part = { .block = &r->block, .rows = ROWS };
    const pli_goal of = goal();
    pli_tally      tally;
    plait_error    err;
    pli_solution   solution;
    int64_t        of_class[CLASSES];
    form.goal = &of;
    form.features = FEATURES;
    form.width = pli_events_width(form.events, CLASSES);
    assert_int_equal(pli_tally_init(&form, &tally, &err), PLAIT_OK);
    if (pli_tally_add(&form, &tally, &part, &err) != PLAIT_OK) fail_msg("%s", err.text);
    for (int64_t k = 0; k < CLASSES; k++) of_class[k] = (int64_t)tally.of_class[k];
    const pli_bayes_sums sums = { .events = form.events, .rows = FEATURES, .classes = CLASSES, .whole = form.whole,
                                  .rows_are_whole = true, .sum = tally.sum, .of_class = of_class,
                                  .centre = form.centre, .alpha = alpha, .smoothing = smoothing };
    assert_int_equal(pli_solution_make(FEATURES, 2 * CLASSES, false, &solution, NULL), PLAIT_OK);
    pli_bayes_estimate(&sums, &solution);
    pli_tally_destroy(&tally);
    return solution;
}

/* Weight of the rows of class k, and what f makes of feature j in them. */
static double sum_of(const rows *r, int64_t k, int64_t j, double (*f)(double x, double by), double by) {
    double sum = 0;
    for (int64_t i = k; i < ROWS; i += CLASSES) sum += (double)r->weight[i] * f(j >= 0 ? r->x[i][j] : 0, by);
    return sum;
}
static double itself(double x, double by) { return (void)by, x; }
static double one(double x, double by) { return (void)x, (void)by, 1; }
static double above(double x, double by) { return x > by; }
static double square(double x, double by) { return (x - by) * (x - by); }

static void test_multinomial_and_complement(void **state) {
    rows r;
    (void)state;
    make(&r, counts, true);
    for (int32_t whole = 0; whole < 2; whole++) {
        pli_solution s = fit(&r, (pli_tally_form){ .events = PLI_EVENTS_MULTINOMIAL, .whole = whole }, 0.5, 0);
        pli_solution c = fit(&r, (pli_tally_form){ .events = PLI_EVENTS_COMPLEMENT, .whole = whole }, 0.5, 0);
        double all = 0, n[CLASSES], total[CLASSES] = { 0 };
        for (int64_t k = 0; k < CLASSES; k++) all += n[k] = sum_of(&r, k, -1, one, 0);
        for (int64_t k = 0; k < CLASSES; k++)
            for (int64_t j = 0; j < FEATURES; j++) total[k] += sum_of(&r, k, j, itself, 0);
        for (int64_t k = 0; k < CLASSES; k++) {
            const double others = total[0] + total[1] + total[2] - total[k];
            assert_near(s.bias[k], log(n[k] / all), 1e-14);
            assert_true(c.bias[k] == 0);
            for (int64_t j = 0; j < FEATURES; j++) {
                double rest = 0;
                for (int64_t o = 0; o < CLASSES; o++) rest += o != k ? sum_of(&r, o, j, itself, 0) : 0;
                assert_near(s.weight[j * CLASSES + k], log((sum_of(&r, k, j, itself, 0) + 0.5) / (total[k] + 1.5)),
                            1e-14);
                assert_near(c.weight[j * CLASSES + k], -log((rest + 0.5) / (others + 1.5)), 1e-14);
            }
        }
        pli_solution_free(&s);
        pli_solution_free(&c);
    }
}

static void test_bernoulli(void **state) {
    rows r;
    (void)state;
    make(&r, counts, true);
    pli_solution s = fit(&r, (pli_tally_form){ .events = PLI_EVENTS_BERNOULLI, .whole = true }, 1, 0);
    for (int64_t k = 0; k < CLASSES; k++) {
        const double n = sum_of(&r, k, -1, one, 0);
        double none = log(n / (sum_of(&r, 0, -1, one, 0) + sum_of(&r, 1, -1, one, 0) + sum_of(&r, 2, -1, one, 0)));
        for (int64_t j = 0; j < FEATURES; j++) {
            const double p = (sum_of(&r, k, j, above, 0) + 1) / (n + 2);
            none += log(1 - p);
            assert_near(s.weight[j * CLASSES + k], log(p / (1 - p)), 1e-13);
        }
        assert_near(s.bias[k], none, 1e-13);
    }
    pli_solution_free(&s);
}

/* Values a million standard deviations from 0, some of them 0. */
static void moments(double (*f)(int64_t i, int64_t j), double by) {
    rows   r;
    double centre[FEATURES * CLASSES];
    make(&r, f, true);
    for (int64_t i = 0; i < FEATURES * CLASSES; i++) centre[i] = 1e6 + 0.3;
    pli_solution s = fit(&r, (pli_tally_form){ .events = PLI_EVENTS_GAUSSIAN, .centre = centre }, 1, 0);
    for (int64_t k = 0; k < CLASSES; k++)
        for (int64_t j = 0; j < FEATURES; j++) {
            const double n = sum_of(&r, k, -1, one, 0), mean = sum_of(&r, k, j, itself, 0) / n;
            const double variance = sum_of(&r, k, j, square, mean) / n;
            assert_near(s.weight[j * CLASSES + k], mean, 1e-9);
            assert_near(s.weight[(FEATURES + j) * CLASSES + k] / variance, 1, by);
        }
    pli_solution_free(&s);
}

static void test_gaussian(void **state) {
    (void)state;
    moments(far_off, 1e-9);
    moments(some_zeros, 1e-9);
}

/* Parts in any number of tallies, by any way of keeping them, are the sums of one. */
static void test_tallies_add_up(void **state) {
    rows           r;
    const pli_goal of = goal();
    (void)state;
    make(&r, counts, false);
    for (int32_t way = 0; way < 3; way++) {
        const pli_tally_form form = { .events = PLI_EVENTS_MULTINOMIAL, .features = way == 2 ? 0 : FEATURES,
                                      .width = CLASSES, .whole = true, .marks = way == 1, .goal = &of };
        const pli_part all = { .block = &r.block, .rows = ROWS }, first = { .block = &r.block, .rows = 15 },
                       last = { .block = &r.block, .first = 15, .rows = ROWS - 15 };
        pli_tally   one_tally, a, b;
        plait_error err;
        assert_int_equal(pli_tally_init(&form, &one_tally, &err), PLAIT_OK);
        assert_int_equal(pli_tally_init(&form, &a, &err), PLAIT_OK);
        assert_int_equal(pli_tally_init(&form, &b, &err), PLAIT_OK);
        assert_int_equal(pli_tally_add(&form, &one_tally, &all, &err), PLAIT_OK);
        assert_int_equal(pli_tally_add(&form, &a, &last, &err), PLAIT_OK);
        assert_int_equal(pli_tally_add(&form, &b, &first, &err), PLAIT_OK);
        assert_int_equal(pli_tally_merge(&form, &a, &b, &err), PLAIT_OK);
        for (int64_t j = 0; j < FEATURES; j++) {
            const int64_t at = way == 2 ? pli_keymap_find(&a.map, (uint64_t)j) : j,
                          of_one = way == 2 ? pli_keymap_find(&one_tally.map, (uint64_t)j) : j;
            assert_memory_equal((int64_t *)a.sum + at * CLASSES, (int64_t *)one_tally.sum + of_one * CLASSES,
                                CLASSES * sizeof(int64_t));
        }
        assert_true(a.rows == ROWS && b.rows == 0 && b.map.n == 0);
        pli_tally_clear(&form, &a);
        pli_tally_clear(&form, &b);
        for (int64_t i = 0; way < 2 && i < FEATURES * CLASSES; i++)
            assert_true(((int64_t *)a.sum)[i] == 0 && ((int64_t *)b.sum)[i] == 0);
        pli_tally_destroy(&one_tally);
        pli_tally_destroy(&a);
        pli_tally_destroy(&b);
    }
}

static double negative(int64_t i, int64_t j) { return i == 17 && j == 1 ? -2 : counts(i, j); }
static double broken(int64_t i, int64_t j) { return i == 17 && j == 1 ? 2.5 : counts(i, j); }

static void refuses(double (*f)(int64_t i, int64_t j), pli_tally_form form, const char *text) {
    rows           r;
    const pli_goal of = goal();
    pli_tally      tally;
    plait_error    err;
    make(&r, f, false);
    const pli_part part = { .block = &r.block, .rows = ROWS };
    form.goal = &of;
    form.width = CLASSES;
    form.checks = true;
    assert_int_equal(pli_tally_init(&form, &tally, &err), PLAIT_OK);
    assert_int_equal(pli_tally_add(&form, &tally, &part, &err), PLAIT_EFORMAT);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' does not say '%s'", err.text, text);
    pli_tally_destroy(&tally);
}

static void test_rows_that_cannot_be_counted(void **state) {
    (void)state;
    refuses(negative, (pli_tally_form){ .features = FEATURES, .whole = true }, "row 18 has the value -2");
    refuses(broken, (pli_tally_form){ .features = FEATURES, .whole = true }, "row 18 has the value 2.5");
    refuses(counts, (pli_tally_form){ .features = 2 }, "row 1 of a streamed pass has a feature beyond the 2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multinomial_and_complement), cmocka_unit_test(test_bernoulli),
        cmocka_unit_test(test_gaussian), cmocka_unit_test(test_tallies_add_up),
        cmocka_unit_test(test_rows_that_cannot_be_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
