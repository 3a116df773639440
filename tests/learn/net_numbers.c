/* Tests nets whose labels are numbers: they are trained in units of the labels' mean and spread, so their unit does not
 * matter, while the objective and its penalties stay in the data's units. */
#include <unistd.h>

#include "learn/train.h"

enum { ROWS = 800, FEATURES = 4 };

/* A bend and a product of features in units from 1 to 1000. Labels have a spread of about `by`, and a mean of 6 by. All
 * are above 0. */
static plait_data *hills(double by) {
    float      *x = pli_array(ROWS * FEATURES, sizeof *x);
    double     *label = pli_array(ROWS, sizeof *label);
    pli_random  random = pli_random_at(11, PLI_RANDOM_DATA, 0, 0);
    plait_data *data = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        double u[FEATURES];
        for (int64_t j = 0; j < FEATURES; j++) {
            u[j] = 2 * pli_random_f64(&random) - 1;
            x[i * FEATURES + j] = (float)(u[j] * pow(10, (double)j));
        }
        label[i] = by * (5 + 2 * fabs(u[0]) + 2 * u[1] * u[2] + u[3]);
    }
    assert_int_equal(plait_data_from_dense(ROWS, FEATURES, x, label, NULL, &data, NULL), PLAIT_OK);
    pli_free(x);
    pli_free(label);
    return data;
}

static training numbers_of(const plait_data *data, const char *layers) {
    training t = net_of(data, layers);
    t.opts.loss = "squared";
    t.opts.epochs = 20;
    t.opts.batch = 0;
    return t;
}

/* Trains, and gives up the model. The error is of the rows that were trained on. */
static double error_of(training *t, int32_t workers) {
    must_train(t, workers);
    plait_model_destroy(&t->model);
    return t->report.test_rmse;
}

static void test_large_labels_are_learnt(void **state) {
    (void)state;
    static const struct {
        const char *topology, *optimizer, *loss;
        double      delta;
        int32_t     workers;
    } runs[] = { { "local", "adam", "squared", 1, 1 },     { "allreduce", "adam", "squared", 1, 3 },
                 { "ps", "adam", "squared", 1, 3 },        { "hybrid", "adam", "squared", 1, 2 },
                 { "gossip:ring", "adam", "squared", 1, 3 }, { "local", "lbfgs", "squared", 1, 2 },
                 { "local", "momentum", "squared", 1, 1 }, { "local", "adagrad", "squared", 1, 1 },
                 { "local", "adam", "huber", 1e5, 1 },     { "local", "adam", "huber", 1, 2 },
                 { "local", "sgd", "huber", 10, 1 },       { "ps", "lbfgs", "huber", 1e5, 2 },
                 { "local", "adam", "quantile", 1, 1 } };
    plait_data *data = hills(1e5);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        training t = numbers_of(data, "32");
        t.opts.topology = runs[i].topology;
        t.opts.optimizer = runs[i].optimizer;
        t.opts.loss = runs[i].loss;
        t.opts.huber_delta = runs[i].delta;
        const double error = error_of(&t, runs[i].workers);
        if (!(error < 0.7e5)) /* the mean label has 1.05e5; a linear model has 0.87e5 */
            fail_msg("%s %s %s: %g", runs[i].topology, runs[i].optimizer, runs[i].loss, error);
    }
    plait_data_destroy(&data);
}

/* Without penalties the objective scales by the square of the labels' factor; the default penalty keeps out of the way
 * of small labels. */
static void test_the_unit_of_labels_does_not_matter(void **state) {
    (void)state;
    plait_data *one = hills(1), *thousand = hills(1000), *tiny = hills(1e-4);
    for (int lbfgs = 0; lbfgs < 2; lbfgs++) {
        training a = numbers_of(one, "16,8"), b = numbers_of(thousand, "16,8"), c = numbers_of(tiny, "16,8");
        training *const all[] = { &a, &b, &c };
        for (int i = 0; i < 3; i++) {
            all[i]->opts.l2 = 0;
            all[i]->opts.optimizer = lbfgs ? "lbfgs" : "adam";
            if (lbfgs) all[i]->opts.epochs = 8; /* rounding grows by the iteration */
            (void)error_of(all[i], 2);
        }
        const double by = lbfgs ? 1e-2 : 1e-4;
        assert_near(b.report.test_rmse / 1000 / a.report.test_rmse, 1, by);
        assert_near(c.report.test_rmse / 1e-4 / a.report.test_rmse, 1, by);
        assert_near(b.report.objective / 1e6 / a.report.objective, 1, 2 * by);
    }
    training none = numbers_of(tiny, "16,8"), defaults = none;
    none.opts.l2 = 0;
    assert_true(error_of(&none, 1) < 0.6e-4); /* the mean label has 1.05e-4 */
    assert_true(error_of(&defaults, 1) < 1.05 * none.report.test_rmse);
    plait_data_destroy(&one);
    plait_data_destroy(&thousand);
    plait_data_destroy(&tiny);
}

/* A net without hidden layers is a linear model: both have the same optimum, with any penalty, if the penalties are of
 * the weights in the data's units. */
static void test_penalties_are_in_the_datas_units(void **state) {
    (void)state;
    static const struct {
        const char *optimizer, *loss;
        double      l1, l2, close;
    } runs[] = { { "lbfgs", "squared", 0, 0.02, 1e-4 },  { "lbfgs", "squared", 20, 0, 1e-4 },
                 { "lbfgs", "squared", 20, 0.02, 1e-4 }, { "lbfgs", "huber", 0, 0.02, 1e-4 },
                 { "adam", "squared", 0, 0.02, 1e-3 },   { "adam", "squared", 20, 0, 1e-3 },
                 { "adam", "huber", 0, 0.02, 1e-3 } };
    plait_data *data = hills(100);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        training net = numbers_of(data, ""), line = numbers_of(data, NULL);
        line.opts.model = runs[i].loss;
        line.opts.loss = NULL;
        line.opts.optimizer = "lbfgs";
        line.opts.epochs = net.opts.epochs = 200;
        net.opts.loss = runs[i].loss;
        net.opts.optimizer = runs[i].optimizer;
        if (strcmp(runs[i].optimizer, "adam") == 0) net.opts.learning_rate = 0.02;
        net.opts.l1 = line.opts.l1 = runs[i].l1;
        net.opts.l2 = line.opts.l2 = runs[i].l2;
        net.opts.huber_delta = line.opts.huber_delta = 30;
        (void)error_of(&line, 1);
        (void)error_of(&net, 2);
        if (!(net.report.objective <= line.report.objective * (1 + runs[i].close)) ||
            !(net.report.objective >= line.report.objective * (1 - 1e-4)))
            fail_msg("%s %s l1 %g l2 %g: %.9g, not %.9g", runs[i].optimizer, runs[i].loss, runs[i].l1, runs[i].l2,
                     net.report.objective, line.report.objective);
    }
    plait_data_destroy(&data);
}

static double penalty_of(const plait_model *model) {
    double sum = 0;
    for (int64_t i = 0; i < plait_model_rows(model); i++) {
        if (plait_model_feature(model, i)[0] == 'w') sum += pow(plait_model_weight(model, i, 0), 2);
    }
    return sum / 2;
}

/* The report's objective is that of the weights in the file, and a run that starts from them begins there. */
static void test_a_model_is_in_the_datas_units(void **state) {
    (void)state;
    char        path[] = "/tmp/plait-net-numbers-XXXXXX";
    plait_data *data = hills(1e5), *other = hills(2e3);
    training    t = numbers_of(data, "16,8");
    plait_error err;
    const int   fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    t.opts.l2 = 3;
    must_train(&t, 2);
    assert_near((t.report.train_loss + 3 * penalty_of(t.model)) / t.report.objective, 1, 1e-6);
    assert_int_equal(plait_model_save(t.model, path, &err), PLAIT_OK);
    training again = numbers_of(data, NULL);
    again.opts.init_model = path;
    again.opts.epochs = 1;
    again.opts.learning_rate = 1e-12;
    assert_near(error_of(&again, 1) / t.report.test_rmse, 1, 1e-4);
    again.opts.memory = other; /* whose labels have another mean and spread */
    assert_near(error_of(&again, 1) / t.report.test_rmse, 1, 1e-4);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
    plait_data_destroy(&other);
    remove(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_labels_are_learnt),
        cmocka_unit_test(test_the_unit_of_labels_does_not_matter),
        cmocka_unit_test(test_penalties_are_in_the_datas_units),
        cmocka_unit_test(test_a_model_is_in_the_datas_units),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
