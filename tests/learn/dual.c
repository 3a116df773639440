/* Tests of hinge by its dual problem (--optimizer cd): it comes to the optimum, alone and with several workers under
 * stale reads, and the gap that it reports is certain. */
#include "learn/train.h"

static training by_dual(const plait_data *data) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = "hinge";
    t.opts.optimizer = "cd";
    return t;
}

static double objective_of(training *t, int32_t workers) {
    must_train(t, workers);
    plait_model_destroy(&t->model);
    return t->report.objective;
}

/* Two rows at -1 and +1 of one feature: max(0, 1 - w) + l2 w^2 / 2 is least at w = 1 for l2 < 1. */
static void test_known(void **state) {
    plait_data *data = NULL;
    (void)state;
    const float  x[] = { -1, 1 };
    const double label[] = { 0, 1 };
    assert_int_equal(plait_data_from_dense(2, 1, x, label, NULL, &data, NULL), PLAIT_OK);
    for (int plain = 0; plain < 2; plain++) {
        training t = by_dual(data);
        t.opts.no_intercept = plain;
        t.opts.l2 = 0.5;
        assert_near(objective_of(&t, 1), 0.25, 0.25 * 1e-4);
        assert_int_equal(t.report.converged, 1);
    }
    plait_data_destroy(&data);
}

/* newton smooths the kink and has the whole curvature: another method for the same optimum. What cd says is left is
 * never less than what is. */
static void test_gap_is_certain(void **state) {
    static const int64_t epochs[] = { 1, 3, 40, 20000 };
    (void)state;
    for (int64_t classes = 2; classes <= 3; classes++)
        for (int plain = 0; plain < 2; plain++) {
            plait_data *data = points(200, 6, classes, 3);
            training    tight = by_dual(data);
            tight.opts.optimizer = "newton";
            tight.opts.tolerance = 1e-7;
            tight.opts.epochs = 20000;
            tight.opts.no_intercept = plain;
            const double least = objective_of(&tight, 1);
            assert_int_equal(tight.report.converged, 1);
            for (size_t i = 0; i < sizeof epochs / sizeof *epochs; i++) {
                training t = by_dual(data);
                t.opts.epochs = epochs[i];
                t.opts.no_intercept = plain;
                const double found = objective_of(&t, 1);
                assert_true(found >= least * (1 - 1e-6));
                assert_true(found * (1 - t.report.gap) <= least * (1 + 1e-6));
                if (i + 1 == sizeof epochs / sizeof *epochs) assert_true(found <= least * 1.0001);
                assert_true(t.report.converged == (i + 1 == sizeof epochs / sizeof *epochs));
            }
            plait_data_destroy(&data);
        }
}

/* Features of one unit, as words have it; four labels of five are by the features. */
static plait_data *cloud(int64_t rows, int64_t features, int64_t classes) {
    float      *x = pli_array((size_t)(rows * features), sizeof *x);
    double     *label = pli_array((size_t)rows, sizeof *label);
    plait_data *data = NULL;
    for (int64_t i = 0; i < rows; i++) {
        pli_random r = pli_random_at(11, PLI_RANDOM_DATA, 0, (uint64_t)i);
        int64_t    best = 0;
        for (int64_t j = 0; j < features; j++) x[i * features + j] = (float)pli_random_normal(&r);
        for (int64_t c = 1; c < classes; c++)
            if (x[i * features + c] > x[i * features + best]) best = c;
        label[i] = (double)(classes == 2 ? x[i * features] > 0 : best);
        if (i % 5 == 0) label[i] = (double)pli_random_below(&r, (uint64_t)classes);
    }
    assert_int_equal(plait_data_from_dense(rows, features, x, label, NULL, &data, NULL), PLAIT_OK);
    pli_free(x);
    pli_free(label);
    return data;
}

/* Workers take turns, so all pairs come as near as one worker does. */
static void test_pairs(void **state) {
    static const char *const pairs[][2] = { { "local", "bsp" }, { "local", "async" }, { "ps", "ssp:2" },
                                            { "ps", "downpour:3:3" }, { "ps", "vap:0.1" },
                                            { "allreduce", "bounded-delay:2" } };
    (void)state;
    for (int64_t classes = 2; classes <= 3; classes++) {
        plait_data *data = cloud(160, 12, classes);
        training    one = by_dual(data);
        one.opts.tolerance = 1e-5;
        one.opts.epochs = 20000;
        const double least = objective_of(&one, 1);
        for (size_t i = (size_t)classes % 2; i < sizeof pairs / sizeof *pairs; i += 2) {
            training t = by_dual(data);
            t.opts.topology = pairs[i][0];
            t.opts.consistency = pairs[i][1];
            t.opts.epochs = 20000;
            assert_true(objective_of(&t, 4) <= least * 1.0001);
            assert_int_equal(t.report.converged, 1);
        }
        plait_data_destroy(&data);
    }
}

/* Weights of rows and of classes count: a row of weight 2 is as two rows. */
static void test_weights(void **state) {
    enum { ROWS = 60, FEATURES = 4 };
    static float  x[2 * ROWS * FEATURES];
    static double label[2 * ROWS], weight[2 * ROWS];
    plait_data   *once = NULL, *twice = NULL;
    int64_t       n = 0;
    (void)state;
    pli_random r = pli_random_at(9, PLI_RANDOM_DATA, 0, 0);
    for (int64_t i = 0; i < ROWS; i++) {
        for (int64_t j = 0; j < FEATURES; j++) x[i * FEATURES + j] = (float)pli_random_normal(&r);
        label[i] = (double)x[i * FEATURES] + 0.7 * pli_random_normal(&r) > 0;
        weight[i] = i % 3 == 0 ? 2 : 1;
    }
    assert_int_equal(plait_data_from_dense(ROWS, FEATURES, x, label, weight, &once, NULL), PLAIT_OK);
    for (n = ROWS; n < 80; n++) {
        memcpy(x + n * FEATURES, x + 3 * (n - ROWS) * FEATURES, FEATURES * sizeof *x);
        label[n] = label[3 * (n - ROWS)];
    }
    assert_int_equal(plait_data_from_dense(n, FEATURES, x, label, NULL, &twice, NULL), PLAIT_OK);
    training a = by_dual(once), b = by_dual(twice);
    a.opts.l2 = 0.1 / ROWS;
    b.opts.l2 = 0.1 / 80;
    assert_near(objective_of(&a, 1) * ROWS, objective_of(&b, 1) * 80, 2e-4 * b.report.objective * 80);
    plait_data_destroy(&once);
    plait_data_destroy(&twice);
}

/* Auto takes it where newton cannot keep the curvature of each pair of weights. */
static void test_auto(void **state) {
    plait_data *data = points(60, 1600, 2, 5);
    training    t = by_dual(data);
    (void)state;
    t.opts.optimizer = NULL;
    objective_of(&t, 1);
    assert_string_equal(t.report.optimizer, "cd");
    assert_int_equal(t.report.converged, 1);
    t.opts.topology = "ps";
    objective_of(&t, 3); /* few rows touch few features, so turns get them by key */
    assert_string_equal(t.report.optimizer, "cd");
    assert_int_equal(t.report.converged, 1);
    t.opts.consistency = "ssp:2";
    objective_of(&t, 3);
    assert_string_equal(t.report.optimizer, "cd");
    assert_int_equal(t.report.converged, 1);
    t.opts.l2 = 0; /* no penalty, no dual problem */
    t.opts.epochs = 10;
    objective_of(&t, 3);
    assert_string_equal(t.report.optimizer, "adagrad");
    plait_data_destroy(&data);
}

static void test_refused(void **state) {
    plait_data *data = points(60, 4, 2, 6);
    training    loss = by_dual(data), none = by_dual(data), mirrors = by_dual(data);
    (void)state;
    loss.opts.model = "huber";
    assert_int_equal(train(&loss, 1, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(loss.error.text, "it knows hinge, by its dual problem"));
    none.opts.l2 = 0;
    assert_int_equal(train(&none, 1, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(none.error.text, "--l2 above 0"));
    mirrors.opts.topology = "gossip:ring";
    assert_int_equal(train(&mirrors, 3, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(mirrors.error.text, "must not be averaged"));
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_known),   cmocka_unit_test(test_gap_is_certain),
                                        cmocka_unit_test(test_pairs),   cmocka_unit_test(test_weights),
                                        cmocka_unit_test(test_auto),    cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
