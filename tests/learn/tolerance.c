/* Tests the end of L-BFGS: however far from the optimum it may stay, it says so, and keeps its word. The optima are
 * scipy's (L-BFGS-B in float64, to 1e-9), by the formulas of bench/defaults. */
#include "learn/train.h"

typedef struct known {
    const char *path;
    int64_t     label; /* its column, from 1; 0: LIBSVM text */
    double      optimum;
    int         exact;
} known;

static const known sets[] = {
    { "tests/data/a9a/a9a.gz", 0, 0.323349173261, 0 },
    { "tests/data/digits/digits.csv.gz", 65, 0.009478214905, 0 },
    { "tests/data/small/breast_cancer.csv.gz", 31, 0.094542367020, 0 },
    { "tests/data/small/breast_cancer.csv.gz", 31, 0.094542367020, 1 }, /* the metric is a diagonal */
    { "tests/data/small/iris.csv", 5, 0.192575444040, 1 },
    { "tests/data/a9a/a9a.gz", 0, 0.323349173261, 1 },
};
enum { SETS = sizeof sets / sizeof *sets };

static plait_data *read_set(const known *k) {
    char            path[1024], label[16];
    const char     *paths[] = { source_file(k->path, path) };
    plait_data_opts opts;
    plait_data     *data = NULL;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    snprintf(label, sizeof label, "%d", (int)k->label);
    if (k->label > 0) opts.label = label;
    assert_int_equal(plait_data_read(&opts, &data, NULL), PLAIT_OK);
    return data;
}

static void begin(training *t, const known *k, const plait_data *data, double tolerance) {
    *t = (training){ .model = NULL };
    plait_train_opts_init(&t->opts);
    t->opts.memory = data;
    t->opts.optimizer = "lbfgs";
    t->opts.exact = k->exact;
    t->opts.tolerance = tolerance;
}

static void test_tolerance_is_kept(void **state) {
    (void)state;
    static const double tolerances[] = { 1e-2, 1e-4, 1e-6 };
    for (int i = 0; i < SETS; i++) {
        plait_data *data = read_set(&sets[i]);
        int64_t     clocks = 0;
        for (int j = 0; j < 3 - (sets[i].exact != 0); j++) {
            training t;
            begin(&t, &sets[i], data, tolerances[j]);
            if (train(&t, j == 1 ? 3 : 1, 2) != PLAIT_OK) fail_msg("%s: %s", sets[i].path, t.error.text);
            const double gap = t.report.objective / sets[i].optimum - 1;
            if (!(gap <= tolerances[j]) || t.report.converged != 1 || !(t.report.gap <= tolerances[j]))
                fail_msg("%s, tolerance %g: %g above the optimum, said %g", sets[i].path, tolerances[j], gap,
                         t.report.gap);
            assert_true(t.report.clocks > clocks); /* a larger tolerance ends sooner */
            clocks = t.report.clocks;
            plait_model_destroy(&t.model);
        }
        plait_data_destroy(&data);
    }
}

static void test_too_few_epochs_are_told(void **state) {
    (void)state;
    for (int i = 0; i < SETS; i++) {
        plait_data *data = read_set(&sets[i]);
        training    t;
        begin(&t, &sets[i], data, 1e-4);
        t.opts.epochs = 3;
        must_train(&t, 2);
        assert_int_equal(t.report.epochs, 3);
        assert_int_equal(t.report.converged, 0);
        assert_true(t.report.gap > 1e-4);
        plait_model_destroy(&t.model);
        plait_data_destroy(&data);
    }
}

/* One model for all topologies and workers, but for rounding, and it is told whether it converged. */
static void test_all_topologies_agree(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid" };
    plait_data              *data = read_set(&sets[1]);
    double                   first = 0;
    for (int i = 0; i < 4; i++) {
        training t;
        begin(&t, &sets[1], data, 1e-6);
        t.opts.topology = topologies[i];
        must_train(&t, 1 + i);
        if (i == 0) first = t.report.objective;
        assert_near(t.report.objective, first, 1e-10);
        assert_int_equal(t.report.converged, 1);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* Labels that are always right, without a penalty: there is no optimum, and the run says that it has not found it. */
static void test_no_optimum(void **state) {
    (void)state;
    const known     apart = { "tests/data/small/breast_cancer.csv.gz", 31, 0, 0 };
    plait_data     *data = read_set(&apart);
    training        t;
    begin(&t, &apart, data, 1e-4);
    t.opts.l2 = 0;
    t.opts.epochs = 60;
    must_train(&t, 1);
    assert_int_equal(t.report.converged, 0);
    assert_true(t.report.objective < 0.05 && t.report.gap > 1e-4);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* Rows without features and a model without intercept: nothing can be learnt, which is said. */
static void test_no_weights(void **state) {
    (void)state;
    static const char path[] = "learn_no_weights.svm";
    const char       *paths[] = { path };
    const char       *models[] = { "logistic", "squared" };
    FILE             *file = fopen(path, "w");
    plait_data_opts   from;
    assert_non_null(file);
    fputs("1\n0\n1\n", file);
    fclose(file);
    plait_data_opts_init(&from);
    from.paths = paths;
    from.n_paths = 1;
    for (int i = 0; i < 2; i++) {
        training t = { .model = NULL };
        plait_train_opts_init(&t.opts);
        t.opts.data = &from;
        t.opts.model = models[i];
        t.opts.optimizer = "lbfgs";
        t.opts.no_intercept = 1;
        assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
        assert_non_null(strstr(t.error.text, "nothing to learn"));
    }
    remove(path);
}

/* Rows that are told apart, and no penalty: the weights grow without end, and the curvature falls to nothing. */
static void test_separable(void **state) {
    enum { ROWS = 200, COLS = 4 };
    float       x[ROWS][COLS];
    double      label[ROWS];
    plait_data *data = NULL;
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, (uint64_t)i);
        for (int64_t j = 0; j < COLS; j++) x[i][j] = (float)pli_random_normal(&r);
        label[i] = x[i][0] + x[i][1] > 0;
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x[0], label, NULL, &data, NULL), PLAIT_OK);
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.optimizer = "lbfgs";
    t.opts.l2 = 0;
    must_train(&t, 2);
    assert_true(t.report.objective < 1e-4);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_tolerance_is_kept),
                                        cmocka_unit_test(test_too_few_epochs_are_told),
                                        cmocka_unit_test(test_all_topologies_agree),
                                        cmocka_unit_test(test_no_optimum), cmocka_unit_test(test_separable),
                                        cmocka_unit_test(test_no_weights) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
