/* ROC curves of scores that can be counted by hand, and what of the folds goes into JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "cli/cv_seen.h"

static void test_a_curve_by_hand(void **state) {
    /* Downwards: +, -, + and - at once, +, -: found 1/4 taken 0, 1/4 1/3, 2/4 2/3 (a slope), ... */
    const double score[] = { 0.9, 0.8, 0.5, 0.5, 0.3, 0.2, 0.1 };
    const bool   positive[] = { true, false, true, false, true, true, false };
    double       auc, rate[PLI_SEEN_POINTS];
    plait_error  err;
    (void)state;
    assert_int_equal(pli_seen_roc(7, score, positive, NULL, &auc, rate, &err), PLAIT_OK);
    /* Pairs (positive, other) in the right order, a tie as a half: 0.9: 3, 0.5: 1.5, 0.3: 1, 0.2: 1, of 12. */
    assert_float_equal(auc, 6.5 / 12, 1e-12);
    assert_float_equal(rate[0], 0.25, 1e-12);
    assert_float_equal(rate[33], 0.25, 1e-12);
    assert_float_equal(rate[50], 0.25 + 0.25 * (0.5 - 1.0 / 3) * 3, 1e-12);
    assert_float_equal(rate[80], 1, 1e-12);
    assert_float_equal(rate[100], 1, 1e-12);
}

static void test_weights_count(void **state) {
    const double score[] = { 3, 2, 1 }, weight[] = { 1, 2, 3 };
    const bool   positive[] = { true, false, true };
    double       auc, rate[PLI_SEEN_POINTS];
    plait_error  err;
    (void)state;
    assert_int_equal(pli_seen_roc(3, score, positive, weight, &auc, rate, &err), PLAIT_OK);
    assert_float_equal(auc, 0.25, 1e-12); /* of the positive weight 4, 1 stands above the other row */
}

static void test_a_kind_that_is_missing(void **state) {
    const double score[] = { 3, 2 };
    const bool   positive[] = { true, true };
    double       auc, rate[PLI_SEEN_POINTS];
    plait_error  err;
    (void)state;
    assert_int_equal(pli_seen_roc(2, score, positive, NULL, &auc, rate, &err), PLAIT_OK);
    assert_true(isnan(auc) && isnan(rate[0]) && isnan(rate[100]));
}

static void test_no_memory(void **state) {
    const double score[] = { 3, 2 };
    const bool   positive[] = { true, false };
    double       auc, rate[PLI_SEEN_POINTS];
    plait_error  err;
    (void)state;
    pli_alloc_fail_after(0);
    assert_int_equal(pli_seen_roc(2, score, positive, NULL, &auc, rate, &err), PLAIT_ENOMEM);
    pli_alloc_fail_after(-1);
}

static json_t *json_of(const pli_seen *const *seen, int32_t n, char *const *labels) {
    pli_text text = { 0 };
    pli_json_begin(&text);
    pli_seen_json(seen, n, labels, &text);
    pli_json_end(&text);
    json_t *object = pli_json_read(text.data, text.length, NULL);
    assert_non_null(object);
    pli_text_free(&text);
    return object;
}

static double number_at(const json_t *list, size_t i) { return json_number_value(json_array_get(list, i)); }

static void test_residuals_of_all_folds(void **state) {
    double         predicted[] = { 1, 2, 3 }, residual[] = { -1, 0, 3 };
    const pli_seen one = { .values = 2, .predicted = predicted, .residual = residual },
                   two = { .values = 1, .predicted = predicted + 2, .residual = residual + 2 };
    const pli_seen *seen[] = { &one, NULL, &two };
    (void)state;
    json_t       *object = json_of(seen, 3, NULL);
    const json_t *residuals = json_object_get(object, "residuals"), *bars = json_object_get(residuals, "histogram");
    assert_true(json_is_null(json_object_get(object, "roc")));
    assert_int_equal(json_integer_value(json_object_get(residuals, "rows")), 3);
    assert_float_equal(number_at(json_object_get(residuals, "quantiles"), 3), 0, 0);
    assert_int_equal(json_array_size(json_object_get(residuals, "predicted")), 3);
    assert_float_equal(number_at(json_object_get(residuals, "residual"), 2), 3, 0);
    assert_float_equal(number_at(bars, 0) + number_at(bars, 10) + number_at(bars, 39), 3, 0);
    json_decref(object);
}

static void test_calibration_adds_up_over_folds(void **state) {
    double          auc = 1, rate[PLI_SEEN_POINTS] = { 0 };
    char            no[] = "no", yes[] = "yes", *labels[] = { no, yes };
    pli_seen        one = { .curves = 1, .auc = &auc, .rate = rate, .calibrated = true }, two = one;
    const pli_seen *seen[] = { &one, &two };
    (void)state;
    one.bin[9] = (pli_seen_bin){ 2, 1.9, 2 };
    two.bin[9] = (pli_seen_bin){ 2, 1.9, 1 };
    json_t       *object = json_of(seen, 2, labels);
    const json_t *calibration = json_object_get(object, "calibration");
    assert_string_equal(pli_json_text_of(calibration, "of"), "yes");
    assert_float_equal(number_at(json_object_get(calibration, "came_true"), 9), 0.75, 1e-12);
    assert_true(json_is_null(json_array_get(json_object_get(calibration, "predicted"), 0)));
    assert_float_equal(pli_json_number_of(calibration, "error", -1), 0.8 / 4, 1e-12);
    json_decref(object);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_curve_by_hand),        cmocka_unit_test(test_weights_count),
        cmocka_unit_test(test_a_kind_that_is_missing), cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_residuals_of_all_folds), cmocka_unit_test(test_calibration_adds_up_over_folds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
