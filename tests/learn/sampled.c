/* Tests of a softmax that draws classes (--sampled): with all classes drawn it is the whole softmax; no setting of a
 * run changes which classes are drawn; few rows of the last layer travel; and it learns what the whole one learns. */
#include <unistd.h>

#include <plait/checkpoint.h>

#include "learn/checkpoint_dir.h"
#include "learn/train.h"

enum { ROWS = 400, FEATURES = 6, CLASSES = 30 };

static training net(const plait_data *data, int64_t sampled) {
    training t = net_of(data, "12");
    t.opts.sampled = sampled;
    return t;
}

/* --- the same ----------------------------------------------------------------------------------------------------- */

static void test_all_classes_drawn_are_the_whole_softmax(void **state) {
    (void)state;
    static const char *const models[] = { "mlp", "cnn", "lstm" };
    plait_data *data = points(ROWS, FEATURES, CLASSES, 1);
    for (int m = 0; m < 3; m++) {
        training whole = net(data, 0), drawn;
        whole.opts.model = models[m];
        must_train(&whole, 1);
        drawn = whole;
        drawn.opts.sampled = whole.report.classes;
        must_train(&drawn, 1);
        if (strcmp(drawn.report.model_hash, whole.report.model_hash) != 0 && distance(drawn.model, whole.model) > 1e-5)
            fail_msg("%s is off by %g", models[m], distance(drawn.model, whole.model));
        assert_near(drawn.report.progressive_loss, whole.report.progressive_loss, 1e-5);
        plait_model_destroy(&whole.model);
        plait_model_destroy(&drawn.model);
    }
    plait_data_destroy(&data);
}

static void test_the_same_bits_with_any_workers_and_topology(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid" };
    plait_data *data = points(ROWS, FEATURES, CLASSES, 1);
    training    first = net(data, 7);
    first.opts.exact = 1;
    must_train(&first, 1);
    for (int i = 0; i < 4; i++)
        for (int32_t workers = 2; workers <= 4; workers += 2) {
            training t = net(data, 7);
            t.opts.exact = 1;
            t.opts.topology = topologies[i];
            must_train(&t, workers);
            assert_string_equal(t.report.model_hash, first.report.model_hash);
            plait_model_destroy(&t.model);
            t.opts.exact = 0; /* sums round alone */
            must_train(&t, workers);
            if (distance(t.model, first.model) > 1e-4) fail_msg("off by %g", distance(t.model, first.model));
            plait_model_destroy(&t.model);
        }
    training other = net(data, 7);
    other.opts.exact = 1;
    other.opts.seed = 2;
    must_train(&other, 1);
    assert_string_not_equal(other.report.model_hash, first.report.model_hash);
    plait_model_destroy(&other.model);
    plait_model_destroy(&first.model);
    plait_data_destroy(&data);
}

/* Each rank has the drawn ones of its own classes; rows are judged by all classes, through all ranks. */
static void test_columns_round_alone(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, CLASSES, 1);
    for (int k = 0; k < 2; k++) {
        training whole = net(data, k == 0 ? 3 : 12);
        whole.opts.layers = k == 0 ? "12" : "12,8";
        whole.opts.validation = "0.2";
        whole.opts.optimizer = "adagrad";
        must_train(&whole, 1);
        for (int32_t columns = 2; columns <= 4; columns += 2)
            for (int32_t replicas = 1; replicas <= 2; replicas++) {
                training t = whole;
                t.opts.columns = columns;
                t.opts.micro_batches = replicas;
                must_train(&t, columns * replicas);
                if (distance(t.model, whole.model) > 1e-5) fail_msg("off by %g", distance(t.model, whole.model));
                assert_near(t.report.validation_loss, whole.report.validation_loss, 1e-5);
                assert_near(t.report.train_loss, whole.report.train_loss, 1e-5);
                assert_near(t.report.test_loss, whole.report.test_loss, 1e-5);
                assert_near(t.report.test_accuracy, whole.report.test_accuracy, 1e-9);
                assert_near(t.report.objective, whole.report.objective, 1e-5);
                plait_model_destroy(&t.model);
            }
        plait_model_destroy(&whole.model);
    }
    plait_data_destroy(&data);
}

/* --- kept --------------------------------------------------------------------------------------------------------- */

/* A run that goes on from a checkpoint, with other workers, or from columns to others. */
static void check_resumed(const plait_data *data, int32_t columns_before, int32_t columns) {
    training whole = net(data, 6);
    whole.opts.exact = 1;
    whole.opts.optimizer = "adam";
    whole.opts.columns = columns_before;
    must_train(&whole, columns_before > 1 ? columns_before : 2);
    training before = whole, after;
    before.opts.epochs = 4;
    before.opts.checkpoint = dir;
    before.opts.checkpoint_clocks = 13;
    before.opts.checkpoint_keep = 1;
    must_train(&before, columns_before > 1 ? columns_before : 3);
    assert_string_equal(before.report.model_hash, whole.report.model_hash);
    after = whole;
    after.opts.resume = dir;
    after.opts.columns = columns;
    must_train(&after, columns > 1 ? columns : 4);
    if (columns == columns_before) assert_string_equal(after.report.model_hash, whole.report.model_hash);
    else assert_true(distance(after.model, whole.model) < 1e-5);
    plait_model_destroy(&after.model);
    after.opts.sampled = 5;
    assert_int_equal(train(&after, columns > 1 ? columns : 4, 1), PLAIT_EREFUSED);
    assert_non_null(strstr(after.error.text, "--sampled"));
    plait_model_destroy(&before.model);
    plait_model_destroy(&whole.model);
    char command[200];
    snprintf(command, sizeof command, "rm -rf '%s'/*", dir);
    assert_int_equal(system(command), 0);
}

static void test_a_resumed_run_draws_what_the_run_would_have(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, CLASSES, 1);
    check_resumed(data, 0, 0);
    check_resumed(data, 2, 2);
    check_resumed(data, 2, 3);
    plait_data_destroy(&data);
}

/* The model is one of a whole softmax: it is saved, read, predicts, and a run begins from it, whole or in columns. */
static void test_a_model_is_as_any_other(void **state) {
    (void)state;
    static double p[ROWS * CLASSES], q[ROWS * CLASSES];
    char          path[300];
    plait_data   *data = points(ROWS, FEATURES, CLASSES, 1);
    training      t = net(data, 6), none;
    plait_model  *read = NULL;
    plait_error   err = { 0 };
    snprintf(path, sizeof path, "%s/sampled.model", dir);
    must_train(&t, 2);
    assert_int_equal(plait_model_save(t.model, path, &err), PLAIT_OK);
    if (plait_model_load(path, &read, &err) != PLAIT_OK) fail_msg("%s", err.text);
    assert_int_equal(plait_model_predict(t.model, data, 1, p, &err), PLAIT_OK);
    assert_int_equal(plait_model_predict(read, data, 1, q, &err), PLAIT_OK);
    assert_memory_equal(p, q, sizeof p);
    for (int32_t columns = 1; columns <= 3; columns += 2) { /* steps of length 0 show where a run begins */
        none = net(data, 6);
        none.opts.init_model = path;
        none.opts.epochs = 1;
        none.opts.optimizer = "sgd";
        none.opts.learning_rate = 1e-30;
        none.opts.columns = columns;
        must_train(&none, columns);
        assert_true(distance(none.model, t.model) < 1e-5);
        plait_model_destroy(&none.model);
    }
    plait_model_destroy(&read);
    plait_model_destroy(&t.model);
    plait_data_destroy(&data);
}

/* --- it learns, and costs little ---------------------------------------------------------------------------------- */

static void on_point(void *user, const plait_point *point) {
    double *last = user;
    if (point->clock == 0) assert_true(point->objective > 2.5); /* about log 30 */
    *last = point->objective;
}

static void test_it_learns_what_the_whole_softmax_learns(void **state) {
    (void)state;
    static const struct {
        const char *topology, *consistency;
    } pairs[] = { { "local", "bsp" }, { "allreduce", "bsp" }, { "ps", "ssp:2" }, { "ps", "async" },
                  { "allreduce", "bounded-delay:1" }, { "gossip:ring", "bsp" }, { "allreduce", "local-sgd:2" } };
    plait_data *data = points(2000, FEATURES, CLASSES, 1);
    training    whole = net(data, 0);
    double      objective = 0;
    whole.opts.epochs = 15;
    must_train(&whole, 1);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        training t = whole;
        t.opts.sampled = 10;
        t.opts.topology = pairs[i].topology;
        t.opts.consistency = pairs[i].consistency;
        t.opts.curve = i == 0 ? 4 : 0;
        t.opts.point = on_point;
        t.opts.user = &objective;
        must_train(&t, 2);
        print_message("%s %s: test loss %.3f, accuracy %.3f; whole %.3f, %.3f\n", pairs[i].topology,
                      pairs[i].consistency, t.report.test_loss, t.report.test_accuracy, whole.report.test_loss,
                      whole.report.test_accuracy);
        assert_true(t.report.test_loss < 1.25 * whole.report.test_loss);
        assert_true(t.report.test_accuracy > whole.report.test_accuracy - 0.06);
        if (i == 0) assert_near(objective, t.report.objective, 1e-9);
        plait_model_destroy(&t.model);
    }
    plait_model_destroy(&whole.model);
    plait_data_destroy(&data);
}

/* Of 20,000 declared classes a clock moves those drawn and those of its rows. */
static void test_few_rows_travel(void **state) {
    (void)state;
    static const char *const topologies[] = { "ps", "hybrid", "allreduce" };
    enum { MANY = 20000, DRAWN = 100, CLOCKS = 8 };
    plait_data *data = points(CLOCKS * 50, FEATURES, CLASSES, 1);
    for (int i = 0; i < 3; i++) {
        training t = net(data, DRAWN);
        t.opts.classes = MANY;
        t.opts.epochs = 1;
        t.opts.topology = topologies[i];
        t.opts.test_memory = NULL;
        int64_t bytes[2];
        for (int k = 0; k < 2; k++) { /* the clocks of a second epoch cost what they cost alone */
            t.opts.epochs = 1 + k;
            must_train(&t, 2);
            assert_int_equal(t.report.clocks, CLOCKS * (1 + k));
            bytes[k] = t.report.bytes_sent;
            plait_model_destroy(&t.model);
        }
        const double each = (double)(bytes[1] - bytes[0]) / CLOCKS, whole = 4.0 * MANY * 13;
        print_message("%s: %.0f bytes a clock; the last layer has %.0f\n", topologies[i], each, whole);
        assert_true(each > 0 && each < 0.05 * whole);
    }
    plait_data_destroy(&data);
}

/* --- refused ------------------------------------------------------------------------------------------------------ */

static void refused(training t, int32_t workers, plait_status code, const char *text) {
    if (train(&t, workers, 1) != code || strstr(t.error.text, text) == NULL) fail_msg("%s", t.error.text);
    plait_model_destroy(&t.model);
}

static void test_refusals(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, CLASSES, 9), *two = points(ROWS, FEATURES, 2, 9),
               *numbers = points(ROWS, FEATURES, 0, 9);
    training    t = net(data, -1);
    refused(t, 1, PLAIT_EINVAL, "sampled -1: expected 1 or more");
    t.opts.sampled = CLASSES + 1;
    refused(t, 1, PLAIT_EINVAL, "there are 30 classes, and no more can be drawn; take --sampled 30 or less");
    t.opts.sampled = 5;
    t.opts.layers = "";
    refused(t, 1, PLAIT_EREFUSED, "of a net without hidden layers is refused");
    t = net(data, 5);
    t.opts.loss = "hinge";
    refused(t, 1, PLAIT_EREFUSED, "only a softmax draws classes");
    refused(net(two, 2), 1, PLAIT_EREFUSED, "here the loss is logistic of two; leave --sampled out");
    refused(net(numbers, 2), 1, PLAIT_EREFUSED, "here the loss is squared; leave --sampled out");
    t = net(data, 5);
    t.opts.optimizer = "lbfgs";
    refused(t, 1, PLAIT_EREFUSED, "with optimizer lbfgs is refused: it needs the whole gradient; nearest is adam");
    t = net(data, 5);
    t.opts.cut = 2;
    refused(t, 2, PLAIT_EREFUSED, "nearest is --columns 2");
    t.opts.cut = 0;
    t.opts.columns = 2;
    t.opts.balance = "dynamic";
    refused(t, 2, PLAIT_EREFUSED, "classes of which some are drawn stay with their ranks");
    t = net(data, 5);
    t.opts.model = "logistic";
    t.opts.layers = NULL;
    refused(t, 1, PLAIT_EINVAL, "only these have a softmax that may draw classes: mlp, cnn, lstm; take one of them");
    plait_data_destroy(&data);
    plait_data_destroy(&two);
    plait_data_destroy(&numbers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_classes_drawn_are_the_whole_softmax),
        cmocka_unit_test(test_the_same_bits_with_any_workers_and_topology),
        cmocka_unit_test(test_columns_round_alone),
        cmocka_unit_test(test_a_resumed_run_draws_what_the_run_would_have),
        cmocka_unit_test(test_a_model_is_as_any_other),
        cmocka_unit_test(test_it_learns_what_the_whole_softmax_learns),
        cmocka_unit_test(test_few_rows_travel),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
