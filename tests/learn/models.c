/* Tests linear models: L-BFGS reaches the optimum that other programs find; warm start, weights, early stopping,
 * interruption. */
#include "learn/train.h"

static plait_data *a9a(const char *name) {
    char            path[1024];
    const char     *paths[] = { source_file(name, path) };
    plait_data_opts opts;
    plait_data     *data = NULL;
    plait_data_opts_init(&opts);
    opts.paths = paths;
    opts.n_paths = 1;
    assert_int_equal(plait_data_read(&opts, &data, NULL), PLAIT_OK);
    return data;
}

/* Optima by scipy's L-BFGS-B (logistic, with and without intercept; balanced: scikit-learn) to 1e-9. */
static void test_optimum(void **state) {
    (void)state;
    plait_data *data = a9a("tests/data/a9a/a9a.gz");
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.optimizer = "lbfgs";
    t.opts.tolerance = 1e-7;
    t.opts.no_intercept = 1;
    assert_int_equal(train(&t, 2, 1), PLAIT_OK);
    assert_near(t.report.objective, 0.3233795825, 1e-6);
    assert_true(isnan(t.report.progressive_loss));
    plait_model_destroy(&t.model);
    t.opts.no_intercept = 0;
    t.opts.class_weight = "balanced";
    assert_int_equal(train(&t, 1, 2), PLAIT_OK);
    assert_near(t.report.objective, 0.3842388424, 1e-5);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* With L1 the solution meets the conditions of an optimum: |gradient| <= l1 where w = 0, else gradient = -l1
 * sign(w). */
static void test_l1(void **state) {
    (void)state;
    enum { ROWS = 600, FEATURES = 6 };
    plait_data *data = points(ROWS, FEATURES, 0, 12);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.model = "squared";
    t.opts.memory = data;
    t.opts.optimizer = "lbfgs";
    t.opts.l1 = 1;
    t.opts.l2 = 0;
    assert_int_equal(train(&t, 1, 1), PLAIT_OK);
    double   score[ROWS], gradient[FEATURES] = { 0 };
    int      zeros = 0;
    assert_int_equal(plait_model_predict(t.model, data, 0, score, NULL), PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) { /* the same points as points() makes */
        pli_random r = pli_random_at(12, PLI_RANDOM_DATA, 0, (uint64_t)i);
        double     x[FEATURES], y;
        for (int j = 0; j < FEATURES; j++) x[j] = (double)(float)(pli_random_normal(&r) * (double)(1 + j) + 3);
        y = 0.7 * pli_random_normal(&r);
        for (int j = 0; j < FEATURES; j++) y += sin((double)(j * 5 + 1)) * (x[j] - 3) / (double)(1 + j);
        for (int j = 0; j < FEATURES; j++) gradient[j] += (score[i] - y - 10) * x[j] / ROWS;
    }
    for (int j = 0; j < FEATURES; j++) {
        double w = plait_model_weight(t.model, j, 0);
        zeros += w == 0;
        if (w == 0) assert_true(fabs(gradient[j]) <= 1 + 1e-3);
        else assert_near(gradient[j], w > 0 ? -1.0 : 1.0, 1e-3);
    }
    assert_true(zeros > 0 && zeros < FEATURES);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

static void test_classes(void **state) {
    (void)state;
    plait_data *data = points(2000, 5, 4, 3), *more = points(500, 7, 4, 3);
    training    best = { .model = NULL }, t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    best.opts = t.opts;
    best.opts.optimizer = "lbfgs";
    assert_int_equal(train(&best, 1, 1), PLAIT_OK);
    t.opts.test_memory = data;
    assert_int_equal(train(&t, 2, 1), PLAIT_OK);
    assert_true(t.report.objective >= best.report.objective - 1e-9);
    assert_true(t.report.objective < best.report.objective * 1.02);
    assert_near(t.report.test_loss, t.report.train_loss, 1e-12);
    double sum = 0, p[500 * 4];
    assert_int_equal(plait_model_predict(t.model, more, 1, p, NULL), PLAIT_OK); /* features 5 and 6 are not known */
    for (int k = 0; k < 4; k++) sum += p[k];
    assert_near(sum, 1, 1e-12);
    plait_model_destroy(&best.model);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    plait_data_destroy(&more);
}

/* A run that starts from the optimum stays there: the weights survive the way into training's units and back. */
static void test_warm_start(void **state) {
    (void)state;
    static const char path[] = "learn_warm.safetensors";
    plait_data       *data = points(2000, 5, 2, 9);
    training          t = { .model = NULL }, again = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.optimizer = "lbfgs";
    assert_int_equal(train(&t, 1, 1), PLAIT_OK);
    assert_int_equal(plait_model_save(t.model, path, NULL), PLAIT_OK);
    again.opts = t.opts;
    again.opts.init_model = path;
    again.opts.epochs = 1;
    assert_int_equal(train(&again, 2, 1), PLAIT_OK);
    assert_true(distance(again.model, t.model) < 1e-4);
    assert_near(again.report.objective, t.report.objective, 1e-8);
    static const char *const optimizers[] = { "adagrad", "adam", "ftrl" };
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) { /* the first steps do not undo the start */
        plait_model_destroy(&again.model);
        again.opts.optimizer = optimizers[o];
        assert_int_equal(train(&again, 1, 1), PLAIT_OK);
        if (again.report.progressive_loss > 1.05 * t.report.train_loss)
            fail_msg("%s: the start has a loss of %g, the first epoch %g", optimizers[o], t.report.train_loss,
                     again.report.progressive_loss);
    }
    plait_data *other = points(2000, 5, 3, 9);
    plait_model_destroy(&again.model);
    again.opts.memory = other;
    assert_int_equal(train(&again, 1, 1), PLAIT_EMISMATCH);
    remove(path);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    plait_data_destroy(&other);
}

/* The defaults reach the optimum, whatever the unit and the offset of the labels. */
static void test_units_of_labels(void **state) {
    (void)state;
    enum { ROWS = 400, FEATURES = 3 };
    static float  x[ROWS * FEATURES];
    static double label[ROWS];
    for (int i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(3, PLI_RANDOM_DATA, 0, (uint64_t)i);
        label[i] = 50000 + 1000 * pli_random_normal(&r);
        for (int j = 0; j < FEATURES; j++) {
            x[i * FEATURES + j] = (float)pli_random_normal(&r);
            label[i] += 5000 * sin(j + 1.0) * (double)x[i * FEATURES + j];
        }
    }
    static const char *const optimizers[] = { "adagrad", "adam", "sgd", "ftrl" };
    for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
        training    by_rule = { .model = NULL }, best = { .model = NULL };
        plait_data *data = NULL;
        assert_int_equal(plait_data_from_dense(ROWS, FEATURES, x, label, NULL, &data, NULL), PLAIT_OK);
        plait_train_opts_init(&by_rule.opts);
        by_rule.opts.model = "squared";
        by_rule.opts.memory = data;
        best.opts = by_rule.opts;
        by_rule.opts.optimizer = optimizers[o];
        best.opts.optimizer = "lbfgs";
        assert_int_equal(train(&by_rule, 2, 1), PLAIT_OK);
        assert_int_equal(train(&best, 1, 1), PLAIT_OK);
        if (by_rule.report.objective > 1.02 * best.report.objective)
            fail_msg("%s: objective %g, at best %g", optimizers[o], by_rule.report.objective, best.report.objective);
        plait_model_destroy(&by_rule.model);
        plait_model_destroy(&best.model);
        plait_data_destroy(&data);
    }
}

/* If all residuals are beyond delta, Huber's loss is straight: its only curvature is rounding. */
static void test_straight_loss(void **state) {
    (void)state;
    static const double deltas[] = { 1, 0.5, 0.3, 0.01 };
    plait_data         *data = points(1000, 5, 0, 4);
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++) {
        for (int no_intercept = 0; no_intercept < 2; no_intercept++) {
            training by_rule = { .model = NULL }, best = { .model = NULL };
            plait_train_opts_init(&by_rule.opts);
            by_rule.opts.model = "huber";
            by_rule.opts.memory = data;
            by_rule.opts.huber_delta = deltas[i];
            by_rule.opts.no_intercept = no_intercept;
            best.opts = by_rule.opts;
            best.opts.optimizer = "lbfgs";
            assert_int_equal(train(&by_rule, 1, 1), PLAIT_OK);
            assert_int_equal(train(&best, 2, 1), PLAIT_OK);
            if (best.report.objective > 1.0001 * by_rule.report.objective)
                fail_msg("delta %g: lbfgs' objective %g, adagrad's %g", deltas[i], best.report.objective,
                         by_rule.report.objective);
            plait_model_destroy(&by_rule.model);
            plait_model_destroy(&best.model);
        }
    }
    plait_data_destroy(&data);
}

static void test_early_stop(void **state) {
    (void)state;
    plait_data *data = points(3000, 5, 2, 4);
    training    one = { .model = NULL }, four = { .model = NULL };
    plait_train_opts_init(&one.opts);
    one.opts.memory = data;
    one.opts.validation = "0.2";
    one.opts.patience = 2;
    one.opts.epochs = 200;
    four.opts = one.opts;
    assert_int_equal(train(&one, 1, 1), PLAIT_OK);
    assert_int_equal(train(&four, 4, 1), PLAIT_OK);
    assert_true(one.report.epochs < 200);
    assert_int_equal(one.report.epochs, four.report.epochs);
    assert_true(one.report.validation_loss > 0 && one.report.validation_loss < 0.7);
    assert_true(distance(one.model, four.model) < 1e-5);
    plait_model_destroy(&one.model);
    plait_model_destroy(&four.model);
    plait_data_destroy(&data);
}

static void stop_soon(void *user, const plait_progress *progress) {
    if (progress->epoch >= 2) __atomic_store_n((int *)user, 1, __ATOMIC_RELAXED);
}

static void test_interruption(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    static const char *const consistencies[] = { "bsp", "bsp", "async" };
    plait_data              *data = points(3000, 5, 2, 4);
    for (int i = 0; i < 3; i++) {
        int      stop = 0;
        training t = { .model = NULL };
        plait_train_opts_init(&t.opts);
        t.opts.memory = data;
        t.opts.topology = topologies[i];
        t.opts.consistency = consistencies[i];
        t.opts.epochs = 100000;
        t.opts.stop = &stop;
        t.opts.progress = stop_soon;
        t.opts.user = &stop;
        if (train(&t, 3, 1) != PLAIT_OK) fail_msg("%s: %s", topologies[i], t.error.text);
        assert_true(t.report.interrupted);
        assert_true(t.report.epochs < 100000);
        assert_non_null(t.model);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* A stopped run of lbfgs leaves out its validation, too, since it has no better weights to choose. */
static void test_interruption_of_lbfgs(void **state) {
    (void)state;
    plait_data *data = points(3000, 5, 2, 4);
    for (int stop = 0; stop < 2; stop++) {
        training t = { .model = NULL };
        plait_train_opts_init(&t.opts);
        t.opts.memory = data;
        t.opts.optimizer = "lbfgs";
        t.opts.validation = "0.2";
        t.opts.stop = &stop;
        if (train(&t, 2, 1) != PLAIT_OK) fail_msg("%s", t.error.text);
        assert_int_equal(t.report.interrupted, stop);
        assert_true(stop ? isnan(t.report.validation_loss) : t.report.validation_loss > 0);
        assert_non_null(t.model);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

static void test_divergence(void **state) {
    (void)state;
    plait_data *data = points(500, 5, 0, 4);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.model = "squared";
    t.opts.memory = data;
    t.opts.optimizer = "sgd";
    t.opts.learning_rate = 1e6;
    t.opts.l2 = 0;
    assert_int_equal(train(&t, 2, 1), PLAIT_EDIVERGED);
    assert_non_null(strstr(t.error.text, "--learning-rate 500000"));
    plait_data_destroy(&data);
}

/* --- many weights: vectors in float32, history and columns packed ----------------------------------------------- */

enum { WIDE_ROWS = 1000, WIDE_PER_ROW = 8, WIDE_FEATURES = 40 };

/* The thread sanitizer slows each access, and needs each path once, not every objective: it takes values on two
 * workers, and classes. */
#if defined(__SANITIZE_THREAD__)
enum { WIDE_FIRST = 1, WIDE_STEP = 4 };
#elif defined(__SANITIZE_ADDRESS__)
enum { WIDE_FIRST = 1, WIDE_STEP = 3 };
#else
enum { WIDE_FIRST = 0, WIDE_STEP = 1 };
#endif

typedef struct wide_case {
    const char *name;
    int         classes;
    double      largest; /* of the values; 0: all are 1 */
    double      l1;
    int32_t     workers;
} wide_case;

/* Writes rows with some of the features. Feature numbers are multiplied by `apart`, which does not change the
 * problem. */
static void write_wide(const char *path, const wide_case *c, int64_t apart) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < WIDE_ROWS; i++) {
        pli_random r = pli_random_at(8, PLI_RANDOM_DATA, 0, (uint64_t)i);
        double     score = 0.5 * pli_random_normal(&r), value[WIDE_PER_ROW];
        int64_t    feature[WIDE_PER_ROW];
        for (int64_t k = 0, from = 0; k < WIDE_PER_ROW; k++) {
            feature[k] = from + (int64_t)pli_random_below(&r, WIDE_FEATURES / WIDE_PER_ROW);
            from = (k + 1) * (WIDE_FEATURES / WIDE_PER_ROW);
            value[k] = c->largest > 0 ? c->largest * pli_random_f64(&r) : 1;
            score += sin((double)feature[k] * 7) * value[k] / (c->largest > 0 ? c->largest : 1);
        }
        fprintf(file, "%d", c->classes == 2 ? score > 0 : score < -0.5 ? 0 : score < 0.5 ? 1 : 2);
        for (int k = 0; k < WIDE_PER_ROW; k++)
            fprintf(file, " %lld:%.6g", (long long)(feature[k] * apart + 1), value[k]);
        fputc('\n', file);
    }
    fclose(file);
}

static double wide_objective(const wide_case *c, int64_t apart) {
    static const char path[] = "learn_wide.svm";
    const char       *paths[] = { path };
    plait_data_opts   data;
    training          t = { .model = NULL };
    write_wide(path, c, apart);
    plait_data_opts_init(&data);
    data.paths = paths;
    data.n_paths = 1;
    plait_train_opts_init(&t.opts);
    t.opts.data = &data;
    t.opts.optimizer = "lbfgs";
    t.opts.topology = "ps";
    t.opts.l1 = c->l1;
    if (train(&t, c->workers, 2) != PLAIT_OK) fail_msg("%s: %s", c->name, t.error.text);
    double loss = t.report.train_loss;
    assert_true(loss < 0.9 * log(c->classes)); /* the model's answers, on the rows trained on */
    double objective = t.report.objective;
    plait_model_destroy(&t.model);
    remove(path);
    return objective;
}

static void test_wide(void **state) {
    (void)state;
    static const wide_case cases[] = {
        { "ones", 2, 0, 0, 1 },          { "values", 2, 1, 0, 2 }, { "scaled values", 2, 9, 0, 1 },
        { "l1", 2, 0, 1e-2, 1 },         { "classes", 3, 0, 0, 1 },
    };
    for (size_t i = WIDE_FIRST; i < sizeof cases / sizeof *cases; i += WIDE_STEP) {
        double narrow = wide_objective(&cases[i], 1), wide = wide_objective(&cases[i], 4096);
        if (!(fabs(wide - narrow) <= 5e-4 * narrow))
            fail_msg("%s: objective %.9g of few weights, %.9g of many", cases[i].name, narrow, wide);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_optimum),
                                        cmocka_unit_test(test_l1),
                                        cmocka_unit_test(test_classes),
                                        cmocka_unit_test(test_warm_start),
                                        cmocka_unit_test(test_units_of_labels),
                                        cmocka_unit_test(test_straight_loss),
                                        cmocka_unit_test(test_early_stop),
                                        cmocka_unit_test(test_interruption),
                                        cmocka_unit_test(test_interruption_of_lbfgs),
                                        cmocka_unit_test(test_divergence),
                                        cmocka_unit_test(test_wide) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
