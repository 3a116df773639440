/* Tests that hinge trains to its optimum by default: by smoothing, under every looseness, and to the same bits under
 * --reduce exact. */
#include "learn/train.h"

static training hinge_of(const plait_data *data) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = "hinge";
    return t;
}

static double trained(training *t, int32_t workers, const char *optimizer) {
    must_train(t, workers);
    assert_string_equal(t->report.optimizer, optimizer);
    assert_int_equal(t->report.converged, 1);
    plait_model_destroy(&t->model);
    return t->report.objective;
}

/* Two rows at -1 and +1 of one feature, without intercept: max(0, 1 - w) + l2 w^2 / 2 is least at w = 1 for l2 < 1. */
static void test_known(void **state) {
    plait_data *data = NULL;
    (void)state;
    const float  x[] = { -1, 1 };
    const double label[] = { 0, 1 };
    assert_int_equal(plait_data_from_dense(2, 1, x, label, NULL, &data, NULL), PLAIT_OK);
    training t = hinge_of(data);
    t.opts.no_intercept = 1;
    t.opts.l2 = 0.5;
    t.opts.normalize = "none";
    assert_near(trained(&t, 1, "lbfgs"), 0.25, 0.25 * 1e-4);
    plait_data_destroy(&data);
}

/* An update rule, which takes many and ever smaller steps, never ends below the optimum. */
static void test_default_is_least(void **state) {
    static const int64_t classes[] = { 2, 3 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        plait_data *data = points(400, 6, classes[i], 3);
        training    by_default = hinge_of(data), tight = hinge_of(data), rule = hinge_of(data);
        tight.opts.tolerance = 1e-7;
        tight.opts.epochs = 20000;
        tight.opts.optimizer = "newton";
        rule.opts.optimizer = "adagrad";
        rule.opts.schedule = "invsqrt";
        rule.opts.epochs = 300;
        const double least = trained(&tight, 1, "newton");
        assert_true(trained(&by_default, 1, classes[i] == 2 ? "lbfgs" : "newton") <= least * 1.0002);
        must_train(&rule, 1);
        plait_model_destroy(&rule.model);
        assert_true(rule.report.objective >= least * (1 - 1e-6));
        plait_data_destroy(&data);
    }
}

static void test_loose(void **state) {
    static const char *const pairs[][2] = { { "local", "async" }, { "ps", "ssp:2" }, { "ps", "downpour:3:3" },
                                            { "gossip:ring", "async" }, { "allreduce", "bounded-delay:2" } };
    (void)state;
    for (int64_t classes = 2; classes <= 3; classes++) {
        plait_data  *data = points(400, 5, classes, 4);
        training     tight = hinge_of(data);
        tight.opts.tolerance = 1e-6;
        tight.opts.epochs = 20000;
        const double least = trained(&tight, 1, classes == 2 ? "lbfgs" : "newton");
        for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
            training t = hinge_of(data);
            t.opts.topology = pairs[i][0];
            t.opts.consistency = pairs[i][1];
            assert_true(trained(&t, 4, "newton") <= least * 1.0001); /* the tolerance */
        }
        plait_data_destroy(&data);
    }
}

/* More weights than blocks of the Hessian are kept of: with a diagonal metric. */
static void test_wide(void **state) {
    plait_data *data = points(300, 600, 2, 5);
    training    t = hinge_of(data), rule = hinge_of(data);
    (void)state;
    rule.opts.optimizer = "adagrad";
    rule.opts.epochs = 60;
    must_train(&rule, 1);
    plait_model_destroy(&rule.model);
    assert_true(trained(&t, 2, "cd") < rule.report.objective);
    plait_data_destroy(&data);
}

static void test_exact_bits(void **state) {
    static const struct {
        const char *topology;
        int32_t     workers;
    } runs[] = { { "local", 1 }, { "local", 3 }, { "ps", 2 }, { "ps", 4 }, { "allreduce", 3 } };
    (void)state;
    for (int64_t classes = 2; classes <= 3; classes++) {
        plait_data *data = points(300, 5, classes, 6);
        char        first[sizeof((plait_report *)NULL)->model_hash] = "";
        for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
            training t = hinge_of(data);
            t.opts.exact = 1;
            t.opts.epochs = 100;
            t.opts.topology = runs[i].topology;
            must_train(&t, runs[i].workers);
            assert_string_equal(t.report.optimizer, "lbfgs");
            plait_model_destroy(&t.model);
            if (i == 0) memcpy(first, t.report.model_hash, sizeof first);
            else assert_string_equal(t.report.model_hash, first);
        }
        plait_data_destroy(&data);
    }
}

/* With L1 and few weights auto takes newton, whose points are exact zeros; with exact sums, lbfgs. */
static void test_l1_takes_newton(void **state) {
    plait_data *data = points(400, 6, 2, 7);
    training    t = hinge_of(data), exact = hinge_of(data);
    (void)state;
    t.opts.model = exact.opts.model = "logistic";
    t.opts.l1 = exact.opts.l1 = 0.01;
    exact.opts.exact = 1;
    const double by_newton = trained(&t, 2, "newton"), by_lbfgs = trained(&exact, 2, "lbfgs");
    assert_near(by_newton, by_lbfgs, 2e-4 * by_lbfgs);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_known), cmocka_unit_test(test_default_is_least),
                                        cmocka_unit_test(test_loose), cmocka_unit_test(test_wide),
                                        cmocka_unit_test(test_exact_bits), cmocka_unit_test(test_l1_takes_newton) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
