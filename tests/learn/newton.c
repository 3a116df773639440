/* Tests newton, the sums of the workers' quadratic models: under every looseness it ends at the optimum that L-BFGS
 * finds, on rows in any order, and says so. */
#include "learn/train.h"

typedef struct pair {
    const char *topology, *consistency;
} pair;

static const pair pairs[] = {
    { "local", "async" },        { "local", "ssp:2" },     { "ps", "async" },        { "ps", "essp:3" },
    { "ps", "downpour:3:3" },    { "ps", "vap:0.05" },     { "ps", "bsp" },          { "ps", "local-sgd:3" },
    { "gossip:ring", "bsp" },    { "gossip:exp", "async" }, { "allreduce", "bounded-delay:2" },
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

static training training_of(const plait_data *data, const char *model, const char *optimizer) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = model;
    t.opts.optimizer = optimizer;
    return t;
}

static double optimum_of(const training *like) {
    training t = { .opts = like->opts };
    t.opts.optimizer = "lbfgs";
    t.opts.topology = t.opts.consistency = NULL;
    t.opts.tolerance = 1e-7;
    must_train(&t, 1);
    plait_model_destroy(&t.model);
    return t.report.objective;
}

/* Trains under the first n pairs by 4 workers. The objective is to be within `within` of the optimum's share. */
static void ends_at_the_optimum(training like, int n, double within) {
    const double least = optimum_of(&like);
    for (int i = 0; i < n; i++) {
        training t = { .opts = like.opts };
        t.opts.topology = pairs[i].topology;
        t.opts.consistency = pairs[i].consistency;
        if (train(&t, 4, 1) != PLAIT_OK) fail_msg("%s x %s: %s", pairs[i].topology, pairs[i].consistency, t.error.text);
        if (!(t.report.objective <= least * (1 + within)) || t.report.converged != 1)
            fail_msg("%s x %s: %.9g, but the optimum is %.9g; converged %d", pairs[i].topology, pairs[i].consistency,
                     t.report.objective, least, t.report.converged);
        assert_string_equal(t.report.optimizer, "newton");
        assert_true(t.report.gap <= 1e-4);
        plait_model_destroy(&t.model);
    }
}

static void test_losses(void **state) {
    static const struct {
        const char *model;
        int64_t     classes;
    } all[] = { { "logistic", 2 }, { "logistic", 3 }, { "squared", 0 }, { "huber", 0 } };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        plait_data *data = points(400, 5, all[i].classes, 3);
        ends_at_the_optimum(training_of(data, all[i].model, "newton"), PAIRS, 1e-4);
        plait_data_destroy(&data);
    }
}

/* Each worker has rows of one class, and the optimum is far out: nobody may run away. */
static void test_sorted_rows(void **state) {
    enum { ROWS = 240, COLS = 3 };
    float       x[ROWS][COLS];
    double      label[ROWS];
    plait_data *data = NULL;
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(5, PLI_RANDOM_DATA, 0, (uint64_t)i);
        label[i] = (double)(i / (ROWS / 4));
        for (int64_t j = 0; j < COLS; j++)
            x[i][j] = (float)(pli_random_normal(&r) + 4 * ((int64_t)label[i] == j) + 1000 * (j == 2));
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x[0], label, NULL, &data, NULL), PLAIT_OK);
    ends_at_the_optimum(training_of(data, "logistic", "newton"), PAIRS, 1e-4);
    plait_data_destroy(&data);
}

static void test_l1(void **state) {
    plait_data *data = points(400, 8, 2, 9);
    training    t = training_of(data, "logistic", "newton");
    (void)state;
    t.opts.l1 = 0.02;
    t.opts.l2 = 0;
    ends_at_the_optimum(t, PAIRS, 1e-4);
    plait_data_destroy(&data);
}

/* More weights than the whole curvature is kept of. */
static void test_many_weights(void **state) {
    plait_data *data = points(300, 1600, 2, 4);
    training    t = training_of(data, "logistic", "newton");
    (void)state;
    t.opts.l2 = 3000; /* in units of features up to 1,600 */
    ends_at_the_optimum(t, PAIRS, 2e-3);
    plait_data_destroy(&data);
}

/* `gap` is a bound: however early a run ends, by a tolerance as wide as that, the optimum is not below it. Weights are
 * uneven, and some rows lie far off. */
static void test_gap_is_a_bound(void **state) {
    enum { ROWS = 300, COLS = 4 };
    static const struct {
        const char *model;
        int64_t     classes;
        double      l1, l2;
        int32_t     no_intercept;
    } all[] = { { "logistic", 2, 0, 0.01, 0 }, { "logistic", 3, 0, 0.01, 0 }, { "logistic", 2, 0.02, 0.01, 0 },
                { "logistic", 3, 0, 0.02, 1 }, { "squared", 0, 0, 0.3, 0 },   { "squared", 0, 0.05, 0.1, 1 },
                { "huber", 0, 0, 0.05, 0 },    { "huber", -2, 0, 10, 0 },
                { "poisson", -1, 0, 0.02, 0 }, { "hinge", 2, 0, 0.02, 0 },     { "hinge", 3, 0, 0.02, 0 },
                { "hinge", 2, 0, 0.02, 1 } };
    static float  x[ROWS][COLS];
    static double label[ROWS], weight[ROWS];
    int32_t       told = 0;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        plait_data *data = NULL;
        for (int64_t r = 0; r < ROWS; r++) {
            pli_random draw = pli_random_at(11, PLI_RANDOM_DATA, i, (uint64_t)r);
            double     score = pli_random_normal(&draw) + (r % 50 == 0 ? 30 : 0);
            weight[r] = r % 7 == 0 ? 21 : 1;
            for (int64_t j = 0; j < COLS; j++) score += (double)(x[r][j] = (float)pli_random_normal(&draw));
            label[r] = all[i].classes > 0 ? (double)((score > 2) + (all[i].classes > 2 && score > 4))
                       : all[i].classes == -1 ? floor(exp(fmin(score, 4) / 2))
                       : all[i].classes == -2 ? 1000.0 * (r % 5 > 2) : score; /* all far from the first intercept */
        }
        assert_int_equal(plait_data_from_dense(ROWS, COLS, x[0], label, weight, &data, NULL), PLAIT_OK);
        training t = training_of(data, all[i].model, "newton");
        t.opts.l1 = all[i].l1;
        t.opts.l2 = all[i].l2;
        t.opts.no_intercept = all[i].no_intercept;
        t.opts.tolerance = 1e-7;
        t.opts.epochs = 20000;
        must_train(&t, 1);
        const double least = t.report.objective;
        assert_int_equal(t.report.converged, 1);
        plait_model_destroy(&t.model);
        for (int j = 0; j < PAIRS; j++)
            for (int end = 0; end < 5; end++) {
                const double tolerance = end < 3 ? 0.99 : end < 4 ? 0.03 : 1e-3;
                t.opts.tolerance = tolerance;
                t.opts.epochs = end < 3 ? end + 1 : 20000;
                t.opts.topology = pairs[j].topology;
                t.opts.consistency = pairs[j].consistency;
                must_train(&t, 3);
                plait_model_destroy(&t.model);
                if (!t.report.converged) continue;
                told += t.report.gap > 1e-4;
                const double below = t.report.objective * (1 - t.report.gap);
                if (t.report.gap <= tolerance && below <= least * (1 + 1e-9)) continue;
                fail_msg("%s %d, %s x %s: %.9g less %.3g of it is above %.9g", all[i].model, (int)all[i].classes,
                         pairs[j].topology, pairs[j].consistency, t.report.objective, t.report.gap, least);
            }
        plait_data_destroy(&data);
    }
    assert_true(told > 100);
}

/* Where mirrors are averaged in some clocks alone, a step by the mirror at hand would not come to rest: the sums are
 * read behind barriers, and few clocks do. */
static void test_seldom_averages(void **state) {
    static const char *const topology[] = { "ps", "gossip:ring" };
    plait_data *data = points(400, 5, 3, 3);
    training    t = training_of(data, "logistic", "newton");
    const double least = optimum_of(&t);
    (void)state;
    for (int i = 0; i < 2; i++) {
        t.opts.topology = topology[i];
        t.opts.consistency = "local-sgd:8";
        must_train(&t, 4);
        assert_true(t.report.converged == 1 && t.report.objective <= least * (1 + 1e-4));
        assert_in_range(t.report.epochs, 1, 16);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* A run that ends early hands out a point where somebody was, so it is no worse than the first point, where all begin:
 * the least point of its parabolas lies far out, where exp() is huge. How far a run has come by then is a matter of who
 * was faster. */
static void test_early_end(void **state) {
    enum { ROWS = 300, COLS = 3 };
    float       x[ROWS][COLS];
    double      label[ROWS];
    plait_data *data = NULL;
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(7, PLI_RANDOM_DATA, 0, (uint64_t)i);
        for (int64_t j = 0; j < COLS; j++) x[i][j] = (float)(2 * pli_random_normal(&r));
        label[i] = floor(exp((double)x[i][0] + (double)x[i][1]));
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x[0], label, NULL, &data, NULL), PLAIT_OK);
    training still = training_of(data, "poisson", "sgd"); /* stays at the first point */
    still.opts.learning_rate = 1e-12;
    still.opts.epochs = 1;
    must_train(&still, 1);
    plait_model_destroy(&still.model);
    training t = training_of(data, "poisson", "newton");
    t.opts.topology = "ps";
    t.opts.consistency = "ssp:2";
    for (int64_t epochs = 1; epochs <= 5; epochs++) {
        t.opts.epochs = epochs;
        must_train(&t, 2);
        assert_true(t.report.objective <= still.report.objective * (1 + 1e-6));
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

/* A column in tiny units has a penalty that is huge beside all curvature; it keeps no other weight from moving. */
static void test_units(void **state) {
    enum { ROWS = 400, COLS = 4 };
    float       x[ROWS][COLS];
    double      label[ROWS];
    plait_data *data = NULL;
    (void)state;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(9, PLI_RANDOM_DATA, 0, (uint64_t)i);
        double     score = pli_random_normal(&r);
        for (int64_t j = 0; j < COLS; j++) {
            x[i][j] = (float)pli_random_normal(&r);
            score += (double)x[i][j];
        }
        x[i][0] *= 1e-12F;
        label[i] = score > 0;
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x[0], label, NULL, &data, NULL), PLAIT_OK);
    ends_at_the_optimum(training_of(data, "logistic", "newton"), PAIRS, 1e-4);
    plait_data_destroy(&data);
}

/* Auto takes it where reads may be stale, and what does not suit goes by a rule, with the reason. */
static void test_auto(void **state) {
    plait_data *data = points(200, 4, 2, 6), *wide = points(100, 1600, 2, 6);
    (void)state;
    training t = training_of(data, "logistic", NULL);
    t.opts.topology = "ps";
    t.opts.consistency = "ssp:2";
    must_train(&t, 2);
    assert_string_equal(t.report.optimizer, "newton");
    plait_model_destroy(&t.model);
    t.opts.replicas = 2;
    must_train(&t, 2);
    assert_string_equal(t.report.optimizer, "newton");
    plait_model_destroy(&t.model);
    t.opts.replicas = 1;
    t.opts.filter = "fixed8";
    must_train(&t, 2);
    assert_string_equal(t.report.optimizer, "adagrad");
    assert_non_null(strstr(t.report.optimizer_why, "exact sums"));
    plait_model_destroy(&t.model);
    t = training_of(wide, "logistic", NULL);
    t.opts.topology = "gossip:ring";
    t.opts.consistency = "bsp"; /* newton too, but not since reads were stale */
    must_train(&t, 2);
    assert_string_equal(t.report.optimizer, "newton");
    assert_non_null(strstr(t.report.optimizer_why, "mirrors"));
    plait_model_destroy(&t.model);
    t.opts.l1 = 0.01;
    must_train(&t, 2);
    assert_string_equal(t.report.optimizer, "adagrad");
    assert_non_null(strstr(t.report.optimizer_why, "--l1"));
    plait_model_destroy(&t.model);
    t.opts.optimizer = "newton"; /* by name it is refused instead */
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "--l1"));
    plait_data_destroy(&data);
    plait_data_destroy(&wide);
}

/* The same bits for any number of threads, and from run to run under bsp. */
static void test_threads(void **state) {
    plait_data *data = points(500, 6, 3, 8);
    training    t = training_of(data, "logistic", "newton");
    char        first[65] = "";
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads++) {
        if (train(&t, 1, threads) != PLAIT_OK) fail_msg("%s", t.error.text);
        if (threads == 1) memcpy(first, t.report.model_hash, sizeof first);
        assert_string_equal(t.report.model_hash, first);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),       cmocka_unit_test(test_sorted_rows), cmocka_unit_test(test_l1),
        cmocka_unit_test(test_many_weights), cmocka_unit_test(test_auto),        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_early_end),    cmocka_unit_test(test_units),
        cmocka_unit_test(test_seldom_averages), cmocka_unit_test(test_gap_is_a_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
