/* Tests nets in stages: cut by layers, a net has the bits of the whole one, however many stages and whatever the
 * pipeline; micro-batches round gradients otherwise, and no more; replicas of a cut net are workers as others are. */
#include "learn/train.h"

#include <stdatomic.h>
#include <unistd.h>

#include <plait/job.h>

#include "learn/supervised/solution.h"

enum { ROWS = 500, FEATURES = 9 };

static training net(const plait_data *data) { return net_of(data, "12,8,6"); } /* 4 layers */

static void finish(training *t, int32_t workers, char hash[65]) {
    must_train(t, workers);
    memcpy(hash, t->report.model_hash, 65);
    plait_model_destroy(&t->model);
}

static void test_stages_have_the_bits_of_the_whole(void **state) {
    (void)state;
    static const char *const models[] = { "mlp", "cnn", "lstm" }, *const topologies[] = { "local", "allreduce", "ps" };
    plait_data              *data = points(ROWS, FEATURES, 3, 5);
    for (int m = 0; m < 3; m++) {
        char     whole[65], cut[65];
        training t = net(data);
        t.opts.model = models[m];
        t.opts.optimizer = "adam";
        finish(&t, 1, whole);
        for (int32_t stages = 2; stages <= 4; stages++) {
            t.opts.cut = stages;
            t.opts.topology = topologies[stages - 2];
            const double loss = t.report.train_loss, progressive = t.report.progressive_loss;
            finish(&t, stages, cut);
            if (strcmp(whole, cut) != 0) fail_msg("%s in %d stages: %s instead of %s", models[m], stages, cut, whole);
            assert_near(t.report.train_loss, loss, 0);
            assert_near(t.report.progressive_loss, progressive, 0);
        }
    }
    plait_data_destroy(&data);
}

/* Micro-batches of several sizes; the most are more than a batch has rows. */
static void test_micro_batches_round_alone(void **state) {
    (void)state;
    static const char *const pipelines[] = { "gpipe", "1f1b", "interleaved" };
    plait_data              *data = points(ROWS + 3, FEATURES, 0, 6);
    training                 whole = net(data);
    whole.opts.batch = 56; /* the last batch of an epoch is small */
    whole.opts.optimizer = "sgd";
    must_train(&whole, 1);
    for (int32_t n = 2; n <= 128; n *= 8) {
        training t = whole;
        char     hash[3][65];
        t.opts.micro_batches = n;
        must_train(&t, 1);
        const double off = distance(t.model, whole.model);
        if (!(off < 1e-5)) fail_msg("%d micro-batches: off by %g", n, off);
        assert_string_not_equal(t.report.model_hash, whole.report.model_hash);
        for (int p = 0; p < 3; p++) {
            training cut = t;
            cut.opts.cut = 2;
            cut.opts.pipeline = pipelines[p];
            finish(&cut, 2, hash[p]);
        }
        assert_string_equal(hash[0], t.report.model_hash);
        assert_string_equal(hash[1], t.report.model_hash);
        assert_string_equal(hash[2], t.report.model_hash); /* blank rows add nothing */
        plait_model_destroy(&t.model);
    }
    plait_model_destroy(&whole.model);
    plait_data_destroy(&data);
}

static void test_replicas_are_workers(void **state) {
    (void)state;
    static const char *const pairs[][2] = {
        { "ps", "bsp" },     { "allreduce", "bsp" },       { "local", "bsp" },
        { "hybrid", "bsp" }, { "allreduce", "local-sgd:2" }, { "gossip:ring", "bsp" }
    };
    plait_data *data = points(ROWS, FEATURES, 3, 7);
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        training whole = net(data), cut = net(data);
        whole.opts.topology = cut.opts.topology = pairs[k][0];
        whole.opts.consistency = cut.opts.consistency = pairs[k][1];
        cut.opts.cut = 2;
        cut.opts.micro_batches = 3;
        cut.opts.validation = whole.opts.validation = "0.2";
        must_train(&whole, 3);
        must_train(&cut, 6);
        const double off = distance(cut.model, whole.model);
        if (!(off < 1e-5)) fail_msg("%s x %s: off by %g", pairs[k][0], pairs[k][1], off);
        assert_near(cut.report.validation_loss, whole.report.validation_loss, 1e-5);
        assert_near(cut.report.test_accuracy, whole.report.test_accuracy, 0.005);
        plait_model_destroy(&whole.model);
        plait_model_destroy(&cut.model);
    }
    plait_data_destroy(&data);
}

static void test_exact_sums_know_no_stages(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, 3, 8);
    char        whole[65], cut[65];
    training    t = net(data);
    t.opts.exact = 1;
    finish(&t, 1, whole);
    const double loss = t.report.progressive_loss;
    for (int32_t stages = 2; stages <= 4; stages++) {
        t.opts.cut = stages;
        finish(&t, 2 * stages, cut);
        assert_string_equal(whole, cut);
        assert_near(t.report.progressive_loss, loss, 0);
    }
    plait_data_destroy(&data);
}

/* Sums over columns round otherwise, and nothing else differs: penalties and first values are those of the whole. */
static void check_columns(const char *layers, plait_data *data) {
    training whole = net(data);
    whole.opts.layers = layers;
    whole.opts.optimizer = "sgd";
    whole.opts.l1 = 1e-3;
    must_train(&whole, 1);
    for (int32_t columns = 2; columns <= 3; columns++) {
        training t = whole;
        t.opts.columns = columns;
        t.opts.micro_batches = columns - 1;
        must_train(&t, columns);
        const double off = distance(t.model, whole.model);
        if (!(off < 1e-5)) fail_msg("layers %s in %d columns: off by %g", layers, columns, off);
        assert_near(t.report.objective, whole.report.objective, 1e-5);
        plait_model_destroy(&t.model);
        t.opts.exact = 1; /* so that replicas add no rounding of their own */
        char one[65], two[65];
        finish(&t, columns, one);
        t.opts.topology = "allreduce";
        finish(&t, 2 * columns, two);
        assert_string_equal(one, two);
    }
    plait_model_destroy(&whole.model);
    plait_data_destroy(&data);
}

static void test_columns_round_alone(void **state) {
    (void)state;
    static const char *const layers[] = { "12", "12,8", "13,8,6", "16,8,8,5" };
    for (int k = 0; k < 4; k++) check_columns(layers[k], points(ROWS, FEATURES, k % 2 == 0 ? 3 : 0, 11));
}

/* More classes than the last hidden layer has units: the softmax is cut by classes, and its loss is joined. */
static void test_classes_round_alone(void **state) {
    (void)state;
    static const char *const layers[] = { "", "5", "9,6", "8,8,4" };
    for (int k = 0; k < 4; k++) check_columns(layers[k], points(ROWS, FEATURES, 11, 12));
}

/* --- what the job says of its tables ------------------------------------------------------------------------------ */

typedef struct described {
    training    t;
    plait_comm *comm; /* of rank 0, whose trained() asks while the others wait */
    int32_t     seen;
} described;

/* Each weight of the model is in a table of one stage's group; all clocks are in all its rows. */
static void look(void *user, const plait_report *report, const plait_model *model) {
    described        *d = user;
    plait_table_part *part;
    int64_t           n, values = 0, held = 0;
    assert_int_equal(plait_job_describe(d->comm, UINT64_C(60000000000), &n, &part, NULL), PLAIT_OK);
    for (int64_t i = 0; i < n; i++) {
        const bool first = i == 0 || strcmp(part[i].name, part[i - 1].name) != 0 ||
                           strcmp(part[i].group, part[i - 1].group) != 0;
        const int64_t size = part[i].rows * part[i].cols;
        if (first) assert_true(held == values);
        if (first) values += size;
        held += part[i].copy ? (first ? size : 0) : part[i].held * part[i].cols;
        assert_int_equal(part[i].members, 2);
        assert_true(strncmp(part[i].group, "stage ", 6) == 0 && part[i].rank / 2 == part[i].group[6] - '0');
        assert_int_equal(part[i].clock, report->clocks);
        assert_int_equal(part[i].last_push, report->clocks - 1);
        if (part[i].held > 0) assert_int_equal(part[i].version, report->clocks);
    }
    assert_true(held == values && values == plait_model_rows(model));
    plait_comm_free(part);
    d->seen++;
}

static plait_status describe_body(plait_comm *comm, void *user) {
    described *d = user;
    if (plait_comm_rank(comm) == 0) d->comm = comm;
    return train_body(comm, &d->t);
}

static void test_metadata_is_what_the_stages_hold(void **state) {
    (void)state;
    static const char *const topologies[] = { "ps", "allreduce", "hybrid", "local" };
    plait_data              *data = points(ROWS, FEATURES, 3, 12);
    for (int k = 0; k < 8; k++) {
        plait_comm_opts c;
        described       d = { .t = net(data) };
        plait_comm_opts_init(&c);
        c.transport = "threads";
        c.workers = 4;
        d.t.opts.topology = topologies[k % 4];
        d.t.opts.optimizer = "adam";
        if (k < 4) d.t.opts.cut = 2;
        else d.t.opts.columns = 2;
        d.t.opts.trained = look;
        d.t.opts.user = &d;
        if (plait_comm_run(&c, describe_body, &d, &d.t.error) != PLAIT_OK) fail_msg("%s", d.t.error.text);
        assert_int_equal(d.seen, 1);
        plait_model_destroy(&d.t.model);
    }
    plait_data_destroy(&data);
}

/* --- no rank needs the whole net ---------------------------------------------------------------------------------- */

static _Atomic int64_t largest; /* number of values for which a rank took memory */

plait_status __real_pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err);
plait_status __wrap_pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err);
plait_status __wrap_pli_solution_make_flat(int64_t values, pli_solution *solution_out, plait_error *err) {
    int64_t before = atomic_load(&largest);
    while (values > before && !atomic_compare_exchange_weak(&largest, &before, values)) {}
    return __real_pli_solution_make_flat(values, solution_out, err);
}

/* The sum of all weights of an epoch, told by table. */
static void on_weights(void *user, const plait_weights *w) {
    double *sum = user;
    for (int64_t i = 0; i < w->n; i++) sum[w->epoch % 8] += (double)((const float *)w->values)[i] * (double)(i % 7 + 1);
}

/* It validates, keeps the best weights, tells them, starts from a model, and is judged, by its pieces alone. */
static void check_pieces(const char *from, int32_t cut, int32_t columns, const training *whole,
                         const double *told) {
    double   sum[8] = { 0 };
    training t = *whole;
    t.opts.cut = cut;
    t.opts.columns = columns;
    t.opts.init_model = from;
    t.opts.weights = on_weights;
    t.opts.user = sum;
    atomic_store(&largest, 0);
    must_train(&t, 2);
    const int64_t values = plait_model_rows(t.model);
    if (!(atomic_load(&largest) < values * 4 / 5))
        fail_msg("a rank took memory for %lld of %lld values", (long long)atomic_load(&largest), (long long)values);
    assert_true(atomic_load(&largest) > 0);
    const double by = cut > 1 ? 0 : 1e-5;
    if (cut > 1) assert_string_equal(t.report.model_hash, whole->report.model_hash);
    if (!(distance(t.model, whole->model) <= by)) fail_msg("off by %g", distance(t.model, whole->model));
    assert_near(t.report.validation_loss, whole->report.validation_loss, by);
    assert_near(t.report.train_loss, whole->report.train_loss, by);
    assert_near(t.report.test_loss, whole->report.test_loss, by);
    assert_near(t.report.objective, whole->report.objective, 1e-5);
    assert_int_equal(t.report.best_epoch, whole->report.best_epoch);
    if (whole->report.classes == 2) assert_near(t.report.test_auc, whole->report.test_auc, by);
    for (int e = 0; e < 8; e++) assert_near(sum[e], told[e], 1e-4 * (1 + fabs(told[e])));
    plait_model_destroy(&t.model);
}

static void test_no_rank_needs_the_whole_net(void **state) {
    (void)state;
    static const int64_t classes[] = { 2, 3, 0 };
    char                 path[] = "/tmp/plait-start-XXXXXX";
    const int            fd = mkstemp(path);
    assert_true(fd >= 0 && close(fd) == 0);
    for (int k = 0; k < 3; k++) {
        plait_data *data = points(ROWS, FEATURES, classes[k], 14 + (uint64_t)k);
        training    first = net(data);
        first.opts.epochs = 1;
        must_train(&first, 1);
        assert_int_equal(plait_model_save(first.model, path, NULL), PLAIT_OK);
        plait_model_destroy(&first.model);
        double   told[8] = { 0 };
        training whole = net(data);
        whole.opts.init_model = path;
        whole.opts.validation = "0.2";
        whole.opts.weights = on_weights;
        whole.opts.user = told;
        whole.opts.optimizer = "adagrad";
        must_train(&whole, 1);
        check_pieces(path, 2, 0, &whole, told);
        check_pieces(path, 0, 2, &whole, told);
        plait_model_destroy(&whole.model);
        plait_data_destroy(&data);
    }
    assert_int_equal(unlink(path), 0);
}

static void refused(training t, int32_t workers, plait_status code, const char *text) {
    if (train(&t, workers, 1) != code || strstr(t.error.text, text) == NULL) fail_msg("%s", t.error.text);
    plait_model_destroy(&t.model);
}

static void test_refusals(void **state) {
    (void)state;
    plait_data *data = points(60, FEATURES, 3, 9);
    training    t = net(data);
    t.opts.cut = 2;
    refused(t, 3, PLAIT_EINVAL, "cut 2 over 3 workers");
    t.opts.cut = 5;
    refused(t, 5, PLAIT_EREFUSED, "a net of 4 layers (w1, w2, w3, w4) in 5 stages is refused");
    t.opts.columns = 2;
    refused(t, 10, PLAIT_EINVAL, "a net is cut in one way");
    t.opts.cut = 0;
    refused(t, 3, PLAIT_EINVAL, "columns 2 over 3 workers");
    t.opts.layers = "12,1";
    refused(t, 2, PLAIT_EREFUSED, "a layer of 1 units in 2 columns is refused");
    t.opts.layers = "";
    t.opts.columns = 4; /* more than classes */
    refused(t, 4, PLAIT_EREFUSED, "without hidden layers is refused");
    t.opts.columns = 2;
    t.opts.layers = NULL;
    t.opts.model = "cnn";
    refused(t, 2, PLAIT_EREFUSED, "columns with model cnn is refused");
    t = net(data);
    t.opts.cut = -1;
    refused(t, 1, PLAIT_EINVAL, "expected 1 or more");
    t.opts.cut = 0;
    t.opts.pipeline = "gpipe";
    refused(t, 1, PLAIT_EINVAL, "needs stages");
    t.opts.cut = 2;
    t.opts.pipeline = "gpip";
    refused(t, 2, PLAIT_ENAME, "did you mean 'gpipe'");
    t.opts.pipeline = "interleaved";
    t.opts.micro_batches = 3;
    refused(t, 2, PLAIT_EINVAL, "a multiple of 2 micro-batches, not 3; take 4");
    t.opts.pipeline = NULL;
    t.opts.optimizer = "lbfgs";
    refused(t, 2, PLAIT_EREFUSED, "cut with lbfgs is refused");
    t.opts.cut = 0;
    refused(t, 1, PLAIT_EREFUSED, "micro-batches with lbfgs are refused");
    t = net(data);
    t.opts.cut = 2;
    t.opts.curve = 3;
    refused(t, 2, PLAIT_EREFUSED, "a curve of a cut model is refused");
    t.opts.curve = 0;
    t.opts.layers = NULL;
    t.opts.model = "logistic";
    refused(t, 2, PLAIT_EREFUSED, "cut with model logistic is refused");
    t.opts.cut = 0;
    t.opts.micro_batches = 2;
    refused(t, 1, PLAIT_EREFUSED, "micro-batches with model logistic are refused");
    plait_data_destroy(&data);
}

/* A loss that is not finite is seen by the last stage; all ranks say so, and none waits. */
static void test_a_loss_that_is_not_finite_ends_all(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, 0, 10);
    training    t = net(data);
    t.opts.cut = 4;
    t.opts.micro_batches = 2;
    t.opts.optimizer = "sgd";
    t.opts.learning_rate = 1e30;
    t.opts.epochs = 50;
    refused(t, 8, PLAIT_EDIVERGED, "the loss is not finite");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages_have_the_bits_of_the_whole),
        cmocka_unit_test(test_micro_batches_round_alone),
        cmocka_unit_test(test_replicas_are_workers),
        cmocka_unit_test(test_exact_sums_know_no_stages),
        cmocka_unit_test(test_columns_round_alone),
        cmocka_unit_test(test_classes_round_alone),
        cmocka_unit_test(test_metadata_is_what_the_stages_hold),
        cmocka_unit_test(test_no_rank_needs_the_whole_net),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_loss_that_is_not_finite_ends_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
