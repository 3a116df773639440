/* Tests forests: bags are Poisson and independent of the workers; the bits are the same for each number of workers and
 * topology; the figures of rows left out foretell those of new rows; checkpoints; what is refused. */
#include "learn/train.h"

#include <unistd.h>

#include "learn/trees/trees.h"

enum { ROWS = 1500, COLS = 6 };

static float  x[ROWS * COLS];
static double label[ROWS];

/* kind 0: numbers; 1: two classes; 2: three. Columns 3 to 5 say nothing. part: other rows of the same kind. */
static plait_data *make_data(int kind, uint64_t part) {
    plait_data *data = NULL;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random r = pli_random_at(9 + part, PLI_RANDOM_DATA, 0, (uint64_t)i);
        float     *row = x + i * COLS;
        for (int64_t j = 0; j < COLS; j++) row[j] = (float)(floor(pli_random_f64(&r) * 100) / 100);
        const double z = 3 * sin(4 * (double)row[0]) + 2 * (double)(row[1] * row[2]) + 0.5 * pli_random_normal(&r);
        label[i] = kind == 0 ? z : kind == 1 ? z > 1.5 : (z > 0.5) + (z > 2.5);
    }
    assert_int_equal(plait_data_from_dense(ROWS, COLS, x, label, NULL, &data, NULL), PLAIT_OK);
    return data;
}

static training forest_of(const plait_data *data, int kind) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = "forest";
    t.opts.epochs = 12;
    if (kind == 0) t.opts.loss = "squared";
    return t;
}

/* --- bags --------------------------------------------------------------------------------------------------------- */

static void a_bag_is_poisson(void **state) {
    enum { DRAWS = 40000 };
    static const double means[] = { 1, 0.3, 4 };
    (void)state;
    for (int m = 0; m < 3; m++) {
        double sum = 0, square = 0, together = 0;
        int    none = 0;
        for (int64_t i = 0; i < DRAWS; i++) {
            const int32_t n = pli_bag_draw(3, 7, i, means[m]), other = pli_bag_draw(3, 8, i, means[m]);
            sum += n;
            square += n * n;
            together += n * other;
            none += n == 0;
        }
        const double mean = sum / DRAWS, error = 5 * sqrt(means[m] / DRAWS);
        assert_near(mean, means[m], error);
        assert_near(square / DRAWS - mean * mean, means[m], 8 * error * (1 + means[m]));
        assert_near((double)none / DRAWS, exp(-means[m]), 5 * sqrt(exp(-means[m]) / DRAWS));
        assert_near(together / DRAWS, means[m] * means[m], 8 * error * (1 + means[m])); /* rounds are independent */
    }
}

/* Means over trees become logarithms of shares, and stay finite. */
static void votes_become_scores(void **state) {
    double    base[3] = { 0, 0, 0 }, sum[3] = { 3, 0, 1 };
    pli_trees forest = { .columns = 3, .base = base, .shares = true };
    (void)state;
    pli_bag_scores(&forest, 4, sum);
    assert_near(sum[0], log(0.75), 1e-12);
    assert_near(sum[1], log(PLI_LEAST_SHARE), 1e-9);
    forest.columns = 1;
    sum[0] = 1;
    pli_bag_scores(&forest, 4, sum);
    assert_near(sum[0], log(0.25 / 0.75), 1e-12);
    forest.shares = false;
    base[0] = 10;
    sum[0] = 10 + 8;
    pli_bag_scores(&forest, 4, sum);
    assert_near(sum[0], 12, 1e-12);
}

/* --- the same bits ------------------------------------------------------------------------------------------------ */

static void bits_do_not_depend_on_the_workers(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    static const int32_t     workers[] = { 1, 2, 3, 4, 8 };
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        plait_data *data = make_data(kind, 0);
        training    t = forest_of(data, kind);
        char        hash[65] = "";
        double      loss = 0;
        t.opts.epochs = 4;
        for (int i = 0; i < 6; i++) {
            t.opts.topology = topologies[i % 3];
            must_train(&t, workers[i % 5]);
            if (i == 0) memcpy(hash, t.report.model_hash, 65), loss = t.report.oob_loss;
            assert_string_equal(t.report.model_hash, hash);
            assert_near(t.report.oob_loss, loss, 0);
            plait_model_destroy(&t.model);
        }
        t.opts.seed = 1;
        must_train(&t, 1);
        assert_string_not_equal(t.report.model_hash, hash);
        plait_model_destroy(&t.model);
        plait_data_destroy(&data);
    }
}

/* --- rows left out ------------------------------------------------------------------------------------------------ */

static void rows_left_out_foretell_new_ones(void **state) {
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        plait_data *data = make_data(kind, 0), *other = make_data(kind, 1);
        training    t = forest_of(data, kind);
        t.opts.test_memory = other;
        t.opts.epochs = 60;
        must_train(&t, 2);
        assert_true(t.report.train_loss < 0.6 * t.report.oob_loss);
        assert_near(t.report.oob_loss / t.report.test_loss, 1, 0.2);
        assert_true(kind == 0 ? isnan(t.report.oob_accuracy)
                              : fabs(t.report.oob_accuracy - t.report.test_accuracy) < 0.04);
        assert_true(kind > 0 || t.report.test_rmse < 0.75); /* the noise is 0.5 */
        assert_true(kind == 0 || t.report.test_accuracy > 0.8);
        plait_model_destroy(&t.model);
        plait_data_destroy(&data);
        plait_data_destroy(&other);
    }
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static void a_resumed_run_has_the_same_bits(void **state) {
    char folder[] = "/tmp/plait_forest_XXXXXX", at[64], command[96];
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int kind = 0; kind < 3; kind++) {
        plait_data *data = make_data(kind, 0);
        training    t = forest_of(data, kind);
        if (kind == 1) t.opts.validation = "0.2";
        must_train(&t, 1);
        const plait_report straight = t.report;
        plait_model_destroy(&t.model);
        snprintf(at, sizeof at, "%s/%d", folder, kind);
        t.opts.epochs = 5;
        t.opts.checkpoint = at;
        t.opts.checkpoint_clocks = 7;
        must_train(&t, 3);
        plait_model_destroy(&t.model);
        t.opts.epochs = 12;
        t.opts.checkpoint = NULL;
        t.opts.resume = at;
        t.opts.topology = "ps";
        must_train(&t, 2);
        assert_string_equal(t.report.model_hash, straight.model_hash);
        assert_near(t.report.oob_loss, straight.oob_loss, 0);
        assert_true(kind != 1 || t.report.validation_loss == straight.validation_loss);
        plait_model_destroy(&t.model);
        plait_data_destroy(&data);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static void refuse(training *t, int32_t workers, const char *text) {
    assert_int_equal(train(t, workers, 1), PLAIT_EREFUSED);
    if (strstr(t->error.text, text) == NULL) fail_msg("'%s' does not say '%s'", t->error.text, text);
}

static void what_makes_no_sense_is_refused_by_name(void **state) {
    plait_data *data = make_data(1, 0);
    training    t = forest_of(data, 1);
    pli_text    json = { 0 };
    (void)state;
    t.opts.loss = "huber";
    refuse(&t, 1, "loss huber with model forest is refused");
    t = forest_of(data, 1);
    t.opts.learning_rate = 0.1;
    refuse(&t, 1, "learning-rate with model forest is refused");
    t = forest_of(data, 1);
    t.opts.consistency = "ssp:1";
    refuse(&t, 2, "model forest with consistency ssp:1");
    t = forest_of(data, 1);
    must_train(&t, 1);
    plait_error error;
    assert_int_equal(pli_gbdt_xgboost(t.model, &json, &error), PLAIT_EREFUSED);
    assert_non_null(strstr(error.text, "--format onnx"));
    pli_text_free(&json);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bag_is_poisson),
        cmocka_unit_test(votes_become_scores),
        cmocka_unit_test(bits_do_not_depend_on_the_workers),
        cmocka_unit_test(rows_left_out_foretell_new_ones),
        cmocka_unit_test(a_resumed_run_has_the_same_bits),
        cmocka_unit_test(what_makes_no_sense_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
