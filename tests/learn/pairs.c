/* a9a with the defaults reaches the optimum's neighbourhood under every pair of topology and consistency. */
#include "learn/train.h"

/* Of (1/n) sum log(1 + exp(-y w x)) + ||w||^2 / 2n without intercept: LIBLINEAR's -s 0, C = 1. */
#define OPTIMUM 0.32337958

static const struct pair { const char *topology, *consistency; } pairs[] = {
    { "local", "bsp" }, { "local", "ssp:2" }, { "local", "async" }, { "allreduce", "bsp" },
    { "ps", "bsp" },    { "ps", "ssp:2" },    { "ps", "async" },
    { "local", "asp:4:50" }, { "local", "bounded-delay:0" }, { "local", "bounded-delay:2" }, { "local", "sequential" },
    { "local", "vap:0.02" }, { "ps", "essp:2" }, { "ps", "asp:4:50" }, { "ps", "bounded-delay:0" }, { "ps", "bounded-delay:2" },
    { "ps", "sequential" }, { "ps", "vap:0.02" }, { "ps", "vap:0.02:weak" }, { "ps", "downpour:4:4" }, { "ps", "downpour:1:4" },
    { "allreduce", "bounded-delay:0" }, { "allreduce", "bounded-delay:2" },
};

static plait_data *read_file(const char *name, const plait_data_opts *from) {
    char            path[1024];
    const char     *paths[] = { source_file(name, path) };
    plait_data_opts opts = *from;
    plait_data     *data = NULL;
    plait_error     error;
    opts.paths = paths;
    opts.n_paths = 1;
    if (plait_data_read(&opts, &data, &error) != PLAIT_OK) fail_msg("%s", error.text);
    return data;
}

static void test_every_pair(void **state) {
    (void)state;
    plait_data_opts from;
    plait_data_opts_init(&from);
    plait_data *a9a = read_file("tests/data/a9a/a9a.gz", &from), *test = read_file("tests/data/a9a/a9a.t.gz", &from);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        training t = { .model = NULL };
        plait_train_opts_init(&t.opts);
        t.opts.memory = a9a;
        t.opts.topology = pairs[i].topology;
        t.opts.consistency = pairs[i].consistency;
        t.opts.no_intercept = 1;
        t.opts.test_memory = test;
        if (train(&t, 4, 1) != PLAIT_OK) fail_msg("%s x %s: %s", pairs[i].topology, pairs[i].consistency, t.error.text);
        printf("%-9s %-6s objective %.6f, %.3f %% above the optimum; test loss %.5f, accuracy %.4f, %.2f s\n",
               pairs[i].topology, pairs[i].consistency, t.report.objective, (t.report.objective / OPTIMUM - 1) * 100,
               t.report.test_loss, t.report.test_accuracy, t.report.train_seconds);
        assert_true(t.report.objective > OPTIMUM * 0.99999);
        assert_true(t.report.objective < OPTIMUM * 1.01);
        assert_true(t.report.test_accuracy >= 0.848);
        assert_string_equal(t.report.topology, pairs[i].topology);
        assert_string_equal(t.report.consistency, pairs[i].consistency);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&a9a);
    plait_data_destroy(&test);
}

static void test_defaults(void **state) {
    (void)state;
    plait_data_opts from;
    plait_data_opts_init(&from);
    plait_data *a9a = read_file("tests/data/a9a/a9a.gz", &from), *test = read_file("tests/data/a9a/a9a.t.gz", &from);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = a9a;
    t.opts.test_memory = test;
    assert_int_equal(train(&t, 1, 2), PLAIT_OK);
    assert_true(t.report.test_accuracy >= 0.848);
    assert_true(t.report.test_loss <= 0.3245);
    assert_near(t.report.test_auc, 0.9022, 1e-3);
    assert_string_equal(t.report.optimizer, "adagrad");
    assert_int_equal(t.report.rows, 32561);
    assert_int_equal(t.report.features, 123);
    assert_int_equal(t.report.classes, 2);
    plait_model_destroy(&t.model);
    plait_data_destroy(&a9a);
    plait_data_destroy(&test);
}

/* Whatever is refused says so, with what goes instead. */
static void test_refused(void **state) {
    (void)state;
    plait_data *data = points(200, 3, 2, 1);
    training    t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.topology = "allreduce";
    t.opts.consistency = "ssp:2";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "nearest"));
    t.opts.topology = NULL;
    t.opts.optimizer = "lbfgs";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "bsp"));
    t.opts.consistency = NULL;
    t.opts.model = "hinge";
    assert_int_equal(train(&t, 1, 1), PLAIT_EREFUSED);
    t.opts.model = "logistic";
    t.opts.optimizer = "adagard";
    assert_int_equal(train(&t, 1, 1), PLAIT_ENAME);
    assert_non_null(strstr(t.error.text, "adagrad"));
    t.opts.optimizer = NULL;
    t.opts.patience = 2;
    assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
    t.opts.patience = 0;
    t.opts.l1 = -1;
    assert_int_equal(train(&t, 1, 1), PLAIT_EINVAL);
    t.opts.l1 = 0;
    t.opts.class_weight = "7:2";
    assert_int_equal(train(&t, 1, 1), PLAIT_ENAME);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_every_pair), cmocka_unit_test(test_defaults),
                                        cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
