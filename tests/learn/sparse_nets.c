/* Tests nets over sparse data: only the rows of the first layer's weights that a batch names travel, and the model is
 * that of dense rows. */
#include "learn/train.h"

enum { ROWS = 600, FEATURES = 5000, USED = 30, WIDE = 300000 };

/* Two of USED features are given. The label says whether both are even or both odd, which no line can tell. */
static plait_data *pairs(int64_t features) {
    int64_t   start[ROWS + 1];
    uint32_t  column[2 * ROWS];
    float     value[2 * ROWS];
    double    label[ROWS];
    const int64_t step = features / USED;
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random     r = pli_random_at(3, PLI_RANDOM_DATA, 0, (uint64_t)i);
        const uint64_t a = pli_random_below(&r, USED / 2), b = USED / 2 + pli_random_below(&r, USED / 2);
        start[i] = 2 * i;
        column[2 * i] = (uint32_t)((int64_t)a * step);
        column[2 * i + 1] = (uint32_t)((int64_t)b * step + step - 1);
        value[2 * i] = value[2 * i + 1] = 1;
        label[i] = (a & 1) == (b & 1);
    }
    start[ROWS] = 2 * ROWS;
    plait_data *data = NULL;
    plait_error err;
    if (plait_data_from_csr(ROWS, features, start, column, value, label, NULL, &data, &err) != PLAIT_OK)
        fail_msg("%s", err.text);
    return data;
}

static training net(const plait_data *data) { return net_of(data, "16"); }

/* The loss of a model by its predictions. */
static double loss_of(const plait_model *model, const plait_data *data) {
    static double p[2 * ROWS];
    plait_error   err;
    double        loss = 0;
    assert_int_equal(plait_model_predict(model, data, 1, p, &err), PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        pli_random     r = pli_random_at(3, PLI_RANDOM_DATA, 0, (uint64_t)i);
        const uint64_t a = pli_random_below(&r, USED / 2), b = USED / 2 + pli_random_below(&r, USED / 2);
        loss -= log(p[2 * i + ((a & 1) == (b & 1))]) / ROWS;
    }
    return loss;
}

static void test_learns_what_no_line_can(void **state) {
    (void)state;
    plait_data *data = pairs(FEATURES);
    training    t = net(data), line = net(data);
    t.opts.epochs = 60;
    t.opts.learning_rate = 0.01;
    must_train(&t, 1);
    assert_true(t.report.test_accuracy > 0.95);
    assert_near(t.report.test_loss, loss_of(t.model, data), 1e-5);
    line.opts.model = "logistic";
    line.opts.layers = NULL;
    must_train(&line, 1);
    assert_true(line.report.test_accuracy < 0.75);
    plait_model_destroy(&t.model);
    plait_model_destroy(&line.model);
    plait_data_destroy(&data);
}

static void test_the_same_model_for_every_topology(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid" };
    plait_data *data = pairs(FEATURES);
    for (int exact = 0; exact < 2; exact++) {
        training first = net(data);
        first.opts.exact = exact;
        must_train(&first, 1);
        for (size_t i = 0; i < 4; i++) {
            training t = net(data);
            t.opts.topology = topologies[i];
            t.opts.exact = exact;
            must_train(&t, 3);
            if (exact) assert_string_equal(t.report.model_hash, first.report.model_hash);
            if (distance(t.model, first.model) > 1e-4)
                fail_msg("%s is %g off", topologies[i], distance(t.model, first.model));
            plait_model_destroy(&t.model);
        }
        plait_model_destroy(&first.model);
    }
    plait_data_destroy(&data);
}

/* Under hybrid the sparse layer lies on servers, and a clock moves only the rows of its batch: at most 30 of 5,000. */
static void test_few_rows_travel(void **state) {
    (void)state;
    plait_data *data = pairs(FEATURES);
    training    t = net(data);
    t.opts.topology = "hybrid";
    must_train(&t, 2);
    assert_string_equal(t.report.tables[0].topology, "ps");
    assert_string_equal(t.report.tables[1].topology, "allreduce");
    const double whole = 4.0 * FEATURES * 16 * (double)t.report.clocks;
    assert_true(t.report.bytes_sent > 0 && (double)t.report.bytes_sent < 0.1 * whole);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

static void test_stale_reads_learn_too(void **state) {
    (void)state;
    plait_data *data = pairs(FEATURES);
    training    t = net(data);
    t.opts.topology = "ps";
    t.opts.consistency = "ssp:2";
    t.opts.epochs = 60;
    t.opts.learning_rate = 0.01;
    must_train(&t, 2);
    assert_true(t.report.test_accuracy > 0.9);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

static void test_lbfgs(void **state) {
    (void)state;
    plait_data *data = pairs(FEATURES);
    training    t = net(data);
    t.opts.optimizer = "lbfgs";
    t.opts.batch = 0;
    t.opts.epochs = 40;
    must_train(&t, 2);
    assert_true(t.report.test_accuracy > 0.9);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* Data with more features than a dense row may have. */
static void test_wide(void **state) {
    (void)state;
    plait_data *data = pairs(WIDE);
    training    t = net(data);
    t.opts.layers = "2";
    t.opts.epochs = 1;
    must_train(&t, 1);
    assert_near(t.report.test_loss, loss_of(t.model, data), 1e-5);
    plait_model_destroy(&t.model);
    t.opts.model = "cnn";
    t.opts.layers = "4,4";
    assert_int_equal(train(&t, 1, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(t.error.text, "--hash-bits 14, or take --model mlp"));
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns_what_no_line_can), cmocka_unit_test(test_the_same_model_for_every_topology),
        cmocka_unit_test(test_few_rows_travel),         cmocka_unit_test(test_stale_reads_learn_too),
        cmocka_unit_test(test_lbfgs),                   cmocka_unit_test(test_wide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
