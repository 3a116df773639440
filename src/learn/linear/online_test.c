/* Tests the rule of online learning: closed forms against integration, scales, weights. */
#include "learn/linear/online.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* cmocka would compare as float. */
#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

enum { FEATURES = 6, ROWS = 2000 };

/* --- the flow of scores ------------------------------------------------------------------------------------------- */

/* Runge and Kutta's fourth order, in many pieces. */
static double integrated(const pli_loss *loss, double parameter, double score, double y, double step) {
    enum { PIECES = 20000 };
    const double h = step / PIECES;
    double       k[4], s = score;
    for (int i = 0; i < PIECES; i++) {
        const double ahead[] = { 0, 0.5, 0.5, 1 };
        for (int j = 0; j < 4; j++) {
            const double at = s + (j > 0 ? h * ahead[j] * k[j - 1] : 0);
            loss->at(parameter, 1, &at, y, &k[j]);
            k[j] = -k[j];
        }
        s += h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3]);
    }
    return s - score;
}

static void test_closed_forms_are_integrals(void **state) {
    const double scores[] = { -6, -1.2, -0.3, 0, 0.4, 1, 2.5 }, steps[] = { 1e-6, 0.01, 0.3, 1, 7 };
    int          forms = 0;
    (void)state;
    for (const pli_loss *const *l = pli_losses(); *l != NULL; l++) {
        if ((*l)->invariant == NULL) continue;
        forms++;
        const double y[] = { (*l)->target == PLI_TWO_CLASSES ? -1 : 2, (*l)->target == PLI_TWO_CLASSES ? 1 : 0 };
        for (int i = 0; i < 7 * 5 * 2; i++) {
            const double score = scores[i % 7], step = steps[i / 7 % 5], target = y[i / 35];
            const double exact = integrated(*l, 0.7, score, target, step);
            const double found = (*l)->invariant(0.7, score, target, step);
            assert_near(found, exact, (*l)->smooth ? 1e-6 * fabs(exact) + 1e-11 : 1e-3 * step); /* a kink in a piece */
        }
    }
    assert_true(forms >= 4);
}

/* Two steps are one of their sum, and the largest step does not pass the least loss. */
static void test_steps_add_up(void **state) {
    (void)state;
    for (const pli_loss *const *l = pli_losses(); *l != NULL; l++) {
        if ((*l)->invariant == NULL) continue;
        for (double score = -3; score <= 3; score += 0.25) {
            const double once = (*l)->invariant(0.7, score, 1, 0.8), twice = (*l)->invariant(0.7, score, 1, 1.6);
            assert_near(once + (*l)->invariant(0.7, score + once, 1, 0.8), twice, 1e-7);
            double       slope, at = score + (*l)->invariant(0.7, score, 1, 1e6), before;
            (*l)->at(0.7, 1, &score, 1, &before);
            (*l)->at(0.7, 1, &at, 1, &slope);
            assert_true(fabs(slope) < 1e-4 || fabs(slope - before) < 1e-9 || !(*l)->smooth);
        }
    }
}

static void test_extremes(void **state) {
    (void)state;
    const pli_loss *l = &pli_loss_logistic;
    assert_true(l->invariant(0, 1e4, 1, 1) >= 0 && l->invariant(0, 1e4, 1, 1) < 1e-200);
    assert_near(l->invariant(0, -1e4, 1, 3), 3, 1e-9);
    assert_near(l->invariant(0, 0, -1, 1e-12), -0.5e-12, 1e-20);
    assert_true(isfinite(l->invariant(0, 0, 1, 1e300)));
}

static void test_flow_of_classes(void **state) {
    const double score[3] = { 0.5, -1, 2 }, pace[3] = { 0.4, 3, 1 };
    double       move[3], fine[3] = { 0.5, -1, 2 }, slope[3], scratch[9];
    pli_goal     goal = { .loss = &pli_loss_softmax, .columns = 3, .classes = 3 };
    (void)state;
    pli_online_flow(&goal, 3, score, 1, pace, 1.5, move, scratch);
    for (int i = 0; i < 100000; i++) {
        goal.loss->at(0, 3, fine, 1, slope);
        for (int c = 0; c < 3; c++) fine[c] -= 1.5e-5 * pace[c] * slope[c];
    }
    for (int c = 0; c < 3; c++) assert_near(score[c] + move[c], fine[c], 0.01);
    /* However long, it comes to rest where the class is nearly certain, and does not blow up. */
    const double fast[3] = { 1e6, 1e6, 1e6 };
    pli_online_flow(&goal, 3, score, 1, fast, 1e6, move, scratch);
    for (int c = 0; c < 3; c++) assert_true(isfinite(move[c]));
    assert_true(score[1] + move[1] > score[0] + move[0] && score[1] + move[1] > score[2] + move[2]);
}

/* --- the rule over rows ------------------------------------------------------------------------------------------- */

typedef struct learner {
    pli_online_rule    rule;
    pli_online_row     row;
    pli_online_totals  totals;
    pli_online_scratch scratch;
    pli_sums           sums;
    float              values[FEATURES][8];
    float             *at[FEATURES];
    float              x[FEATURES];
} learner;

static void begin(learner *l, const pli_goal *goal, double unit) {
    memset(l, 0, sizeof *l);
    l->rule = (pli_online_rule){ .goal = goal, .columns = goal->columns, .rate = 0.6, .unit = unit, .slope = unit };
    l->row = (pli_online_row){ .n = FEATURES, .at = l->at, .x = l->x, .share = 1, .known = true };
    assert_true(pli_online_scratch_make(&l->scratch, goal->columns));
}

static void learn(learner *l, const double *x, double y, double weight) {
    for (int j = 0; j < FEATURES; j++) {
        l->at[j] = l->values[j];
        l->x[j] = (float)x[j];
    }
    l->row.y = y;
    l->row.weight = weight;
    assert_int_equal(pli_online_learn(&l->rule, &l->row, &l->totals, &l->sums, &l->scratch), PLAIT_OK);
}

/* The progressive loss of rows whose feature j is multiplied by scale[j], and their targets by unit. */
static double progressive(const pli_goal *goal, const double *scale, double unit, double weight) {
    learner    l;
    pli_random random = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    begin(&l, goal, unit);
    for (int i = 0; i < ROWS; i++) {
        double x[FEATURES], score = 0;
        for (int j = 0; j < FEATURES; j++) {
            x[j] = pli_random_normal(&random);
            score += (j - 2) * x[j];
            x[j] *= scale[j];
        }
        const bool high = pli_random_f64(&random) < 1 / (1 + exp(-score));
        const double y = goal->loss->target == PLI_NUMBER ? unit * score : goal->columns == 1 ? (high ? 1 : -1) : high;
        learn(&l, x, y, weight);
    }
    const double loss = pli_sums_loss(&l.sums);
    pli_online_scratch_free(&l.scratch);
    return loss;
}

static void test_units_do_not_matter(void **state) {
    const pli_goal goals[] = { { .loss = &pli_loss_logistic, .columns = 1, .classes = 2 },
                               { .loss = &pli_loss_softmax, .columns = 3, .classes = 3 },
                               { .loss = &pli_loss_squared, .columns = 1 } };
    const double   one[FEATURES] = { 1, 1, 1, 1, 1, 1 }, far[FEATURES] = { 1e6, 1e-6, 1, 1e6, 1e-3, 30 };
    (void)state;
    for (int g = 0; g < 3; g++) {
        const double plain = progressive(&goals[g], one, 1, 1);
        assert_near(progressive(&goals[g], far, 1, 1) / plain, 1, 1e-4); /* float32 rounds otherwise */
        assert_true(plain < (g == 2 ? 5 : 0.5)); /* and something was learnt: knowing nothing has 9.5, 0.69 */
    }
    const double plain = progressive(&goals[2], one, 1, 1);
    assert_near(progressive(&goals[2], one, 1e4, 1) / plain / 1e8, 1, 1e-3); /* nor does the unit of the labels */
}

/* A row of weight 2 is the row twice but for what the second has already learnt of rates. */
static void test_weight_2_is_the_row_twice(void **state) {
    const pli_goal goal = { .loss = &pli_loss_logistic, .columns = 1, .classes = 2 };
    learner        once, twice;
    pli_random     random = pli_random_at(5, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    begin(&once, &goal, 1);
    begin(&twice, &goal, 1);
    for (int i = 0; i < 200; i++) {
        double x[FEATURES], score = 0;
        for (int j = 0; j < FEATURES; j++) score += x[j] = pli_random_normal(&random);
        learn(&once, x, score > 0 ? 1 : -1, 2);
        for (int k = 0; k < 2; k++) learn(&twice, x, score > 0 ? 1 : -1, 1);
    }
    for (int j = 0; j < FEATURES; j++) {
        assert_near(once.values[j][3], twice.values[j][3], 0);
        assert_near(once.values[j][2] / twice.values[j][2], 1, 1e-5);
        const double w = pli_online_weight(&once.rule, once.values[j], 0);
        assert_near(w / pli_online_weight(&twice.rule, twice.values[j], 0), 1, 0.1);
    }
    pli_online_scratch_free(&once.scratch);
    pli_online_scratch_free(&twice.scratch);
}

/* A feature was all but 0 at first: its scale is tiny when it comes with its usual value. */
static void test_the_scale_knows_the_row(void **state) {
    const pli_goal goals[] = { { .loss = &pli_loss_logistic, .columns = 1, .classes = 2 },
                               { .loss = &pli_loss_softmax, .columns = 3, .classes = 3 } };
    (void)state;
    for (int g = 0; g < 2; g++) {
        learner l;
        begin(&l, &goals[g], 1);
        learn(&l, (double[FEATURES]){ 1e-4, 1 }, 1, 1);
        const double before = l.sums.loss;
        learn(&l, (double[FEATURES]){ 1, 1 }, g == 0 ? -1 : 0, 1);
        assert_true(l.sums.loss - before < 4);
        pli_online_scratch_free(&l.scratch);
    }
}

/* Rows of ones have a loop of their own, alone and beside other threads; a feature that was not 1 before has not. */
static void test_rows_of_ones(void **state) {
    const pli_goal goals[] = { { .loss = &pli_loss_logistic, .columns = 1, .classes = 2 },
                               { .loss = &pli_loss_huber, .columns = 1, .parameter = 1 } };
    (void)state;
    for (int g = 0; g < 2; g++) {
        learner    l[3]; /* as all rows, alone, shared */
        pli_random random = pli_random_at(7, PLI_RANDOM_DATA, 0, 0);
        for (int i = 0; i < 3; i++) {
            begin(&l[i], &goals[g], 1);
            l[i].row.intercept = true;
            l[i].row.ones = i > 0;
            l[i].rule.shared = i == 2;
        }
        for (int row = 0; row < 300; row++) {
            double     x[FEATURES] = { 1, 1, 1, 1, 1, 1 };
            const bool high = pli_random_f64(&random) < 0.7, odd = row % 50 == 49;
            if (odd) x[2] = 3;
            for (int i = 0; i < 3; i++) {
                l[i].row.ones = i > 0 && !odd;
                learn(&l[i], x, high ? 1 : -1, 1 + row % 3);
            }
        }
        for (int j = 0; j < FEATURES; j++)
            for (int c = 0; c < 4; c++) {
                assert_near(l[1].values[j][c], l[0].values[j][c], 1e-4 * fabs((double)l[0].values[j][c]) + 1e-6);
                assert_near(l[2].values[j][c], l[1].values[j][c], 0);
            }
        assert_near(l[1].sums.loss, l[0].sums.loss, 1e-4 * l[0].sums.loss);
        for (int i = 0; i < 3; i++) pli_online_scratch_free(&l[i].scratch);
    }
}

static void test_odd_values(void **state) {
    const pli_goal goal = { .loss = &pli_loss_logistic, .columns = 1, .classes = 2 };
    learner        l;
    (void)state;
    begin(&l, &goal, 1);
    learn(&l, (double[FEATURES]){ 0, 1, 1e30, 1e-30, -1e18, 0 }, 1, 1);
    learn(&l, (double[FEATURES]){ 0, 1, 1e30, 1e-30, -1e18, 0 }, -1, 0); /* weight 0: nothing */
    learn(&l, (double[FEATURES]){ 0, 1, -1e30, 1e-30, 1e18, 0 }, -1, 1);
    assert_true(isfinite(l.sums.loss) && l.sums.rows == 3 && l.sums.weight == 2);
    for (int j = 0; j < FEATURES; j++) assert_true(isfinite(pli_online_weight(&l.rule, l.values[j], 0)));
    assert_near(pli_online_weight(&l.rule, l.values[0], 0), 0, 0); /* a feature that is always 0 */
    pli_online_scratch_free(&l.scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms_are_integrals), cmocka_unit_test(test_steps_add_up),
        cmocka_unit_test(test_extremes),                   cmocka_unit_test(test_flow_of_classes),
        cmocka_unit_test(test_units_do_not_matter),        cmocka_unit_test(test_weight_2_is_the_row_twice),
        cmocka_unit_test(test_odd_values),                 cmocka_unit_test(test_the_scale_knows_the_row),
        cmocka_unit_test(test_rows_of_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
