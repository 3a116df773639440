/* Tests losses: slopes against differences, values against formulas, probabilities, names. */
#include "learn/loss/loss.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* cmocka would compare as float. */
#define assert_near(a, b, by) assert_true(fabs((a) - (b)) <= (by))

enum { K = 4 };

static double target_of(const pli_loss *loss, pli_random *r) {
    if (loss->target == PLI_TWO_CLASSES) return pli_random_below(r, 2) ? 1.0 : -1.0;
    if (loss->target == PLI_CLASSES) return (double)pli_random_below(r, K);
    if (loss->log_mean) return (double)pli_random_below(r, 5);
    return 3 * pli_random_normal(r);
}

/* Second derivatives of one score are differences of slopes; huber's beyond delta is a bound. */
static void test_seconds_are_differences(void **state) {
    const pli_loss *const losses[] = { &pli_loss_logistic, &pli_loss_squared, &pli_loss_poisson };
    pli_random            r = pli_random_at(2, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (size_t l = 0; l < sizeof losses / sizeof *losses; l++)
        for (int i = 0; i < 200 && losses[l]->second != NULL; i++) {
            double at = 2 * pli_random_normal(&r), y = target_of(losses[l], &r), up, down, h;
            (void)losses[l]->at(0, 1, (double[]){ at + 1e-5 }, y, &up);
            (void)losses[l]->at(0, 1, (double[]){ at - 1e-5 }, y, &down);
            losses[l]->second(0, 1, &at, y, &h);
            assert_near(h, (up - down) / 2e-5, 1e-5 * (1 + h));
        }
}

/* Slopes are two-sided differences. Kinks, where the two one-sided differences are not the same, are left out. */
static void test_slopes_are_differences(void **state) {
    (void)state;
    pli_random r = pli_random_at(1, PLI_RANDOM_DATA, 0, 0);
    for (int32_t l = 0; pli_losses()[l] != NULL; l++) {
        const pli_loss *loss = pli_losses()[l];
        int64_t         k = loss->target == PLI_CLASSES ? K : 1;
        for (int i = 0; i < 2000; i++) {
            double score[K], slope[K], spare[K], y = target_of(loss, &r), step = 1e-5;
            for (int64_t c = 0; c < k; c++) score[c] = 2 * pli_random_normal(&r);
            double at = loss->at(0.7, k, score, y, slope);
            assert_true(at >= 0);
            for (int64_t c = 0; c < k; c++) {
                double keep = score[c];
                score[c] = keep + step;
                double up = loss->at(0.7, k, score, y, spare);
                score[c] = keep - step;
                double down = loss->at(0.7, k, score, y, spare);
                score[c] = keep;
                if (fabs((up - at) - (at - down)) > 1e-8) continue;
                assert_true(fabs((up - down) / (2 * step) - slope[c]) < 1e-5 * (1 + fabs(slope[c])));
            }
        }
    }
}

/* Many rows at once give what each row gives by itself, also where the exponential ends, and a NaN stays one. */
static void test_many_rows_are_each_row(void **state) {
    enum { N = 1003 };
    static double score[N], y[N], loss[N], slope[N];
    pli_random    r = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    int32_t       found = 0;
    (void)state;
    for (int32_t l = 0; pli_losses()[l] != NULL; l++) {
        const pli_loss *of = pli_losses()[l];
        if (of->many == NULL) continue;
        found++;
        for (int64_t i = 0; i < N; i++) {
            y[i] = target_of(of, &r);
            score[i] = i < 40 ? 50.0 * (double)(i - 20) : 4 * pli_random_normal(&r);
        }
        score[N - 1] = (double)NAN;
        of->many(N, score, y, loss, slope);
        for (int64_t i = 0; i < N - 1; i++) {
            double       own;
            const double want = of->at(0, 1, &score[i], y[i], &own);
            assert_near(loss[i], want, 1e-15 * (1 + want));
            assert_near(slope[i], own, 4e-16);
            assert_true(i >= 40 || want > 1e-300 || loss[i] < 1e-300); /* small, not cut off */
        }
        assert_true(isnan(loss[N - 1]) && isnan(slope[N - 1]));
    }
    assert_int_equal(found, 1);
}

/* The smoothed hinge losses: slopes and second derivatives are differences; the excess is what the hinge loss is more
 * than its dual at the slopes; and a narrow one is the hinge loss. */
static void test_smoothed(void **state) {
    const pli_loss *const losses[] = { &pli_loss_hinge, &pli_loss_hinge_classes };
    pli_random            r = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (size_t l = 0; l < 2; l++)
        for (int i = 0; i < 500; i++) {
            const pli_loss *soft = losses[l]->smoothed;
            const int64_t   k = losses[l]->target == PLI_CLASSES ? K : 1;
            const double    width = i % 2 ? 0.5 : 0.05, e = 1e-5, y = target_of(losses[l], &r);
            double          score[K], slope[K], up[K], down[K], h[K * K], unused[K], dual = 0;
            for (int64_t c = 0; c < k; c++) score[c] = pli_random_normal(&r);
            const double at = soft->at(width, k, score, y, slope);
            const double sharp = losses[l]->at(0, k, score, y, unused);
            soft->second(width, k, score, y, h);
            for (int64_t c = 0; c < k; c++) { /* loss less scores times slopes: margins times their shares */
                const double kept = score[c];
                dual += k > 1 ? (c != (int64_t)y) * slope[c] : fabs(slope[c]);
                score[c] = kept + e;
                const double higher = soft->at(width, k, score, y, up);
                score[c] = kept - e;
                const double lower = soft->at(width, k, score, y, down);
                score[c] = kept;
                assert_near(slope[c], (higher - lower) / (2 * e), 1e-6);
                for (int64_t d = 0; d < k; d++)
                    assert_near(h[c * k + d], (up[d] - down[d]) / (2 * e), 2e-5 / (width * width));
            }
            for (int64_t c = 0; c < k; c++) dual += slope[c] * score[c];
            assert_near(soft->excess(width, k, score, y), sharp - dual, 1e-12);
            assert_true(at >= sharp && sharp - dual >= -1e-12);
            assert_near(soft->at(1e-9, k, score, y, slope), sharp, 1e-8);
        }
}

/* loss + conjugate - slope score is never below 0, and 0 for the loss's own slope; it is so as well after slopes with
 * no conjugate were moved, and slopes within are not moved. A slope of 0 has one. */
static void test_conjugates(void **state) {
    const pli_loss *const losses[] = { &pli_loss_logistic, &pli_loss_softmax, &pli_loss_squared, &pli_loss_huber,
                                       &pli_loss_poisson, &pli_loss_hinge_smooth, &pli_loss_hinge_classes_smooth };
    pli_random            r = pli_random_at(4, PLI_RANDOM_DATA, 0, 0);
    (void)state;
    for (size_t l = 0; l < sizeof losses / sizeof *losses; l++)
        for (int i = 0; i < 2000; i++) {
            const pli_loss *loss = losses[l]->kinked != NULL ? losses[l]->kinked : losses[l];
            const int64_t   k = loss->target == PLI_CLASSES ? K : 1;
            const double    y = target_of(loss, &r);
            double          score[K], slope[K], own[K], kept[K], sum = 0;
            for (int64_t c = 0; c < k; c++) score[c] = 2 * pli_random_normal(&r);
            const double at = loss->at(0.7, k, score, y, own);
            memcpy(kept, own, sizeof kept);
            double apart = at + losses[l]->conjugate(0.7, k, y, own);
            for (int64_t c = 0; c < k; c++) {
                assert_near(own[c], kept[c], 1e-14 * (1 + fabs(kept[c])));
                apart -= own[c] * score[c];
            }
            assert_near(apart, 0, 1e-12 * (1 + at));
            for (int64_t c = 0; c < k; c++) sum += slope[c] = i % 10 == 0 ? 0 : pli_random_normal(&r);
            for (int64_t c = 0; c < k && k > 1; c++) slope[c] -= sum / (double)k; /* of classes they add up to 0 */
            double value = losses[l]->conjugate(0.7, k, y, slope);
            memcpy(kept, slope, sizeof kept);
            assert_near(losses[l]->conjugate(0.7, k, y, slope), value, 1e-12 * (1 + fabs(value)));
            for (int64_t c = 0; c < k; c++) {
                assert_near(slope[c], kept[c], 1e-14 * (1 + fabs(kept[c])));
                assert_true(i % 10 != 0 || slope[c] == 0);
                value -= slope[c] * score[c];
            }
            assert_true(isfinite(value) && at + value >= -1e-12 * (1 + at));
        }
}

/* A query of four rows beside the formulas; slopes of pairs are the loss's differences. */
static void test_rankings(void **state) {
    const double y[4] = { 0, 2, 1, 0 }, perfect[4] = { -1, 3, 2, 0 }, other[4] = { 1, 0.5, -0.25, 0.75 };
    const double best = 3 + 1 / log2(3), got = 1 / log2(5) + 3 / log2(4); /* places: 0, 3, 1, 2 */
    double       slope[4], h[4], unused[4], ndcg, sum = 0;
    (void)state;
    assert_near(pli_loss_ndcg.query(4, perfect, y, slope, h, &ndcg), 0, 1e-15);
    assert_near(ndcg, 1, 1e-15);
    assert_near(pli_loss_ndcg.query(4, other, y, slope, h, &ndcg), 1 - got / best, 1e-15);
    assert_near(ndcg, got / best, 1e-15);
    for (int i = 0; i < 4; i++) sum += slope[i];
    assert_near(sum, 0, 1e-14);
    assert_true(slope[1] < 0 && slope[0] > 0 && h[0] > 0 && h[1] > 0);
    assert_near(pli_loss_ndcg.query(4, other, (double[]){ 0, 0, 0, 0 }, slope, h, &ndcg), 0, 0);
    assert_true(ndcg == 1 && slope[0] == 0 && h[3] == 0); /* nothing to put in order */
    (void)pli_loss_pairwise.query(4, other, y, slope, h, &ndcg);
    for (int i = 0; i < 4; i++) {
        double moved[4];
        memcpy(moved, other, sizeof moved);
        moved[i] += 1e-5;
        const double up = pli_loss_pairwise.query(4, moved, y, NULL, NULL, unused);
        moved[i] -= 2e-5;
        const double down = pli_loss_pairwise.query(4, moved, y, NULL, NULL, unused);
        assert_near(slope[i], 4 * (up - down) / 2e-5, 1e-8); /* times the query's rows */
    }
}

static void test_values(void **state) {
    (void)state;
    double score[3] = { 2, 0, 0 }, slope[3];
    assert_near(pli_loss_logistic.at(0, 1, score, 1, slope), log1p(exp(-2)), 1e-15);
    assert_near(pli_loss_logistic.at(0, 1, (double[]){ -800 }, 1, slope), 800, 1e-9); /* no overflow */
    assert_near(slope[0], -1, 1e-15);
    assert_near(pli_loss_softmax.at(0, 3, score, 0, slope), log(exp(2) + 2) - 2, 1e-14);
    assert_near(pli_loss_softmax.at(0, 3, (double[]){ 1000, -1000, 0 }, 1, slope), 2000, 1e-9);
    assert_near(pli_loss_hinge.at(0, 1, score, -1, slope), 3, 0);
    assert_near(pli_loss_hinge.at(0, 1, score, 1, slope), 0, 0);
    assert_near(pli_loss_hinge_classes.at(0, 3, score, 1, slope), 3, 0);
    assert_true(slope[0] == 1 && slope[1] == -1 && slope[2] == 0);
    assert_near(pli_loss_squared.at(0, 1, score, 5, slope), 4.5, 0);
    assert_near(pli_loss_huber.at(1, 1, score, 5, slope), 2.5, 0);
    assert_near(slope[0], -1, 0);
    assert_near(pli_loss_huber.at(4, 1, score, 5, slope), 4.5, 0);
    assert_near(pli_loss_quantile.at(0.9, 1, score, 5, slope), 2.7, 1e-15);
    assert_near(slope[0], -0.9, 0);
    assert_near(pli_loss_quantile.at(0.9, 1, score, -1, slope), 0.3, 1e-15);
    assert_near(slope[0], 0.1, 1e-15);
    assert_near(pli_loss_poisson.at(0, 1, score, 3, slope), exp(2) - 3 - 3 * (2 - log(3)), 1e-14);
    assert_near(pli_loss_poisson.at(0, 1, score, 0, slope), exp(2), 0);
    assert_near(pli_loss_poisson.at(0, 1, (double[]){ log(7) }, 7, slope), 0, 1e-14);
}

static void test_probabilities(void **state) {
    (void)state;
    double p[3];
    pli_loss_logistic.probability(1, (double[]){ 1.5 }, p);
    assert_near(p[1], 1 / (1 + exp(-1.5)), 1e-15);
    assert_near(p[0] + p[1], 1, 1e-15);
    pli_loss_logistic.probability(1, (double[]){ -900 }, p);
    assert_true(p[0] == 1 && p[1] >= 0);
    pli_loss_softmax.probability(3, (double[]){ 5, 5, 5 }, p);
    assert_near(p[2], 1.0 / 3, 1e-15);
    assert_null(pli_loss_hinge.probability);
}

static void test_names(void **state) {
    (void)state;
    const pli_loss *loss;
    plait_error     err;
    bool            classes;
    assert_int_equal(pli_loss_find("logistic", 2, &loss, &err), PLAIT_OK);
    assert_ptr_equal(loss, &pli_loss_logistic);
    assert_int_equal(pli_loss_find("logistic", 3, &loss, &err), PLAIT_OK);
    assert_ptr_equal(loss, &pli_loss_softmax);
    assert_int_equal(pli_loss_find("squared", 0, &loss, &err), PLAIT_OK);
    assert_int_equal(pli_loss_find("logistik", 2, &loss, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "logistic"));
    assert_int_equal(pli_loss_is_class("hugin", &classes, &err), PLAIT_ENAME);
    assert_int_equal(pli_loss_is_class("huber", &classes, &err), PLAIT_OK);
    assert_false(classes);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_slopes_are_differences),
                                        cmocka_unit_test(test_seconds_are_differences),
                                        cmocka_unit_test(test_many_rows_are_each_row),
                                        cmocka_unit_test(test_smoothed), cmocka_unit_test(test_conjugates),
                                        cmocka_unit_test(test_values),
                                        cmocka_unit_test(test_rankings),
                                        cmocka_unit_test(test_probabilities), cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
