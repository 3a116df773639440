/* Tests principal components: they are eigenvectors of the covariance; with exact sums they have the same bits under
 * every topology, with any number of workers, and after a resume from a checkpoint. */
#include "learn/train.h"

#include <unistd.h>

enum { ROWS = 400, COLS = 12, K = 4 };

static float x[ROWS * COLS];

/* Columns of very different variance; one has a mean far from zero. */
static plait_data *make_data(void) {
    plait_data *data = NULL;
    plait_error err;
    for (int64_t i = 0; i < ROWS; i++) {
        double hidden[3];
        for (int h = 0; h < 3; h++) {
            pli_random r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)i, (uint64_t)h);
            hidden[h] = pli_random_f64(&r) - 0.5;
        }
        for (int64_t j = 0; j < COLS; j++) {
            pli_random r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)i, (uint64_t)(j + 3));
            x[i * COLS + j] = (float)(hidden[j % 3] * (double)(1 + j) + 0.1 * pli_random_f64(&r) + (j == 5 ? 1000 : 0));
        }
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, NULL, NULL, &data, &err), PLAIT_OK);
    return data;
}

static training pca_of(const plait_data *data, const plait_learner_setting *settings, int32_t n) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = "pca";
    t.opts.settings = settings;
    t.opts.n_settings = n;
    return t;
}

static void covariance(double c[COLS][COLS]) {
    double mean[COLS] = { 0 };
    for (int64_t i = 0; i < ROWS * COLS; i++) mean[i % COLS] += (double)x[i] / ROWS;
    for (int64_t a = 0; a < COLS; a++)
        for (int64_t b = 0; b < COLS; b++) {
            c[a][b] = 0;
            for (int64_t i = 0; i < ROWS; i++)
                c[a][b] += ((double)x[i * COLS + a] - mean[a]) * ((double)x[i * COLS + b] - mean[b]) / (ROWS - 1);
        }
}

/* C v = lambda v, lengths are 1, variances are in order. */
static void check_components(const plait_model *model, double by) {
    int64_t       shape[2] = { 0 }, n = 0;
    double        c[COLS][COLS];
    const double *v = plait_model_value(model, "components", PLAIT_F64, 2, shape),
                 *variance = plait_model_value(model, "variance", PLAIT_F64, 1, &n);
    assert_non_null(v);
    assert_non_null(variance);
    assert_int_equal(shape[0], K);
    assert_int_equal(shape[1], COLS);
    covariance(c);
    for (int64_t k = 0; k < K; k++) {
        double length = 0;
        assert_true(k == 0 || variance[k] <= variance[k - 1]);
        for (int64_t a = 0; a < COLS; a++) {
            double at = 0;
            for (int64_t b = 0; b < COLS; b++) at += c[a][b] * v[k * COLS + b];
            assert_near(at, variance[k] * v[k * COLS + a], by * variance[0]);
            length += v[k * COLS + a] * v[k * COLS + a];
        }
        assert_near(length, 1, 1e-9);
    }
}

static const plait_learner_setting four[] = { { "components", "4" } };
static const plait_learner_setting power[] = { { "components", "4" },
                                               { "pca-solver", "randomised" },
                                               { "power-passes", "12" } };

static void test_components_are_eigenvectors(void **state) {
    plait_data *data = make_data();
    (void)state;
    for (int32_t workers = 1; workers <= 3; workers++) {
        training a = pca_of(data, four, 1), b = pca_of(data, power, 3);
        must_train(&a, workers);
        check_components(a.model, 1e-12);
        must_train(&b, workers);
        check_components(b.model, 1e-7);
        plait_model_destroy(&a.model);
        plait_model_destroy(&b.model);
    }
    plait_data_destroy(&data);
}

/* Transformed rows have mean 0, the model's variances (with --whiten: 1), and no covariance. */
static void test_transform(void **state) {
    static const plait_learner_setting white[] = { { "components", "4" }, { "whiten", "1" } };
    static double                      out[ROWS * K];
    plait_data                        *data = make_data();
    plait_error                        err;
    (void)state;
    for (int whiten = 0; whiten < 2; whiten++) {
        int64_t  n = 0;
        training t = pca_of(data, whiten ? white : four, 1 + whiten);
        must_train(&t, 2);
        assert_int_equal(plait_model_width(t.model, PLAIT_ANSWER_TRANSFORM), K);
        assert_int_equal(plait_model_width(t.model, PLAIT_ANSWER_LABEL), 0);
        assert_int_equal(plait_model_predict(t.model, data, 0, out, &err), PLAIT_EREFUSED);
        assert_int_equal(plait_model_transform(t.model, data, out, &err), PLAIT_OK);
        const double *variance = plait_model_value(t.model, "variance", PLAIT_F64, 1, &n);
        for (int a = 0; a < K; a++)
            for (int b = 0; b <= a; b++) {
                double sum = 0, mean = 0;
                for (int i = 0; i < ROWS; i++) {
                    mean += out[i * K + a] / ROWS;
                    sum += out[i * K + a] * out[i * K + b] / (ROWS - 1);
                }
                assert_near(mean, 0, 1e-8);
                assert_near(sum, a != b ? 0 : whiten ? 1 : variance[a], 1e-6 * (whiten ? 1 : variance[0]));
            }
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

static void hash_of(training *t, int32_t workers, char hex[65]) {
    must_train(t, workers);
    plait_model_hash(t->model, hex);
    plait_model_destroy(&t->model);
}

static void test_exact_sums_have_the_same_bits(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    plait_data              *data = make_data();
    (void)state;
    for (int solver = 0; solver < 2; solver++) {
        char first[65] = "", hex[65];
        for (size_t i = 0; i < sizeof topologies / sizeof *topologies; i++)
            for (int32_t workers = 1; workers <= 4; workers++) {
                training t = pca_of(data, solver ? power : four, solver ? 3 : 1);
                t.opts.exact = 1;
                t.opts.topology = topologies[i];
                hash_of(&t, workers, hex);
                if (first[0] == '\0') memcpy(first, hex, sizeof first);
                assert_string_equal(hex, first);
            }
    }
    plait_data_destroy(&data);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static void test_goes_on_from_a_checkpoint(void **state) {
    char        dir[] = "/tmp/plait-pca-XXXXXX", whole[65], resumed[65], command[64];
    plait_data *data = make_data();
    (void)state;
    assert_non_null(mkdtemp(dir));
    training t = pca_of(data, power, 3);
    t.opts.exact = 1;
    hash_of(&t, 2, whole);
    t.opts.epochs = 6; /* another run does the other epochs */
    t.opts.checkpoint = dir;
    t.opts.checkpoint_clocks = 1;
    must_train(&t, 3);
    assert_true(t.report.clocks == 6);
    plait_model_destroy(&t.model);
    training again = pca_of(data, power, 3);
    again.opts.exact = 1;
    again.opts.resume = dir;
    hash_of(&again, 4, resumed);
    assert_true(again.report.clocks == 13);
    assert_string_equal(resumed, whole);
    plait_data_destroy(&data);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}

/* --- refused ------------------------------------------------------------------------------------------------------ */

static void refuses(plait_data *data, plait_learner_setting setting, plait_status status, const char *text) {
    training t = pca_of(data, &setting, 1);
    assert_int_equal(train(&t, 2, 1), status);
    if (strstr(t.error.text, text) == NULL) fail_msg("'%s' says nothing of '%s'", t.error.text, text);
}

static void test_refusals(void **state) {
    plait_data *data = make_data();
    (void)state;
    refuses(data, (plait_learner_setting){ "components", "13" }, PLAIT_EINVAL, "at most 12");
    refuses(data, (plait_learner_setting){ "components", "four" }, PLAIT_EINVAL, "expected an integer");
    refuses(data, (plait_learner_setting){ "pca-solver", "fast" }, PLAIT_EINVAL, "auto exact randomised");
    refuses(data, (plait_learner_setting){ "component", "4" }, PLAIT_ENAME, "components");
    training t = pca_of(data, four, 1);
    t.opts.consistency = "ssp:2";
    t.opts.topology = "ps";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    t = pca_of(data, four, 1);
    t.opts.optimizer = "adam";
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    t = pca_of(data, four, 1);
    t.opts.epochs = 1;
    assert_int_equal(train(&t, 2, 1), PLAIT_EREFUSED);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_components_are_eigenvectors),
        cmocka_unit_test(test_transform),
        cmocka_unit_test(test_exact_sums_have_the_same_bits),
        cmocka_unit_test(test_goes_on_from_a_checkpoint),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
