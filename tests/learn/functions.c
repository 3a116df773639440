/* Tests a learner that registers server functions of its own and calls them over ranges of its table: the model is the
 * same under each pair that has them and with any number of workers; other settings are refused by name. The learner
 * counts labels; after each epoch a function halves some of the counts on their shards, and another adds them up. */
#include "learn/train.h"

#include <plait/learner.h>

enum { ROWS = 900, KINDS = 1200 /* of labels: at ps three shards */, COLS = 2, EPOCHS = 3, HALF = 700 };

static float x[ROWS];

/* --- the learner -------------------------------------------------------------------------------------------------- */

static plait_status halve(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args; (void)args_bytes; (void)answer; (void)answer_bytes;
    for (int64_t i = 0; i < s->rows * s->cols; i++) ((double *)s->values)[i] /= 2;
    return PLAIT_OK;
}

static plait_status total(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args; (void)args_bytes; (void)answer_bytes;
    for (int64_t i = 0; i < s->rows * s->cols; i++) *(double *)answer += ((const double *)s->values)[i];
    return PLAIT_OK;
}

static plait_status counts_begin(plait_training *run) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "counts", opts.type = PLAIT_F64, opts.rows = KINDS, opts.cols = COLS;
    return plait_training_table(run, &opts, plait_training_state(run));
}

static plait_status counts_step(plait_training *run, const plait_batch *batch, plait_step_sums *told) {
    plait_table *table = *(plait_table **)plait_training_state(run);
    for (int64_t i = 0; i < plait_batch_rows(batch); i++) {
        const double one[COLS] = { 1, 3 };
        plait_row    row;
        PLI_TRY(plait_batch_row(batch, i, &row));
        PLI_TRY(plait_table_inc_range(table, (int64_t)row.label, 1, one, 1));
        told->rows++;
    }
    return PLAIT_OK;
}

static plait_status counts_epoch(plait_training *run, int64_t epoch, int *done_out) {
    plait_table **table = plait_training_state(run);
    const int64_t first = epoch % 2 == 0 ? 0 : KINDS - HALF;
    *done_out = 0;
    return plait_table_call_range(table, 1, first, HALF, "halve", NULL, 0, NULL, 0);
}

static plait_status counts_finish(plait_training *run, plait_model *model) {
    plait_table **table = plait_training_state(run);
    const int64_t shape[1] = { 3 };
    double        sum[3] = { 0 };
    PLI_TRY(plait_table_call_range(table, 1, 0, KINDS - HALF, "total", NULL, 0, &sum[0], sizeof sum[0]));
    PLI_TRY(plait_table_call_range(table, 1, KINDS - HALF, HALF, "total", NULL, 0, &sum[1], sizeof sum[1]));
    PLI_TRY(plait_table_call(table, 1, "total", NULL, 0, &sum[2], sizeof sum[2]));
    return plait_model_put(model, "sums", PLAIT_F64, 1, shape, sum, plait_training_error(run));
}

static const plait_function own[] = {
    { .name = "halve", .run = halve, .updates = 1 },
    { .name = "total", .run = total },
};
static const plait_learner learner = { .size = sizeof learner,
                                       .name = "counts",
                                       .summary = "how often each label was seen, of late",
                                       .labels = PLAIT_LABELS_NUMBERS,
                                       .state_bytes = sizeof(plait_table *),
                                       .functions = own,
                                       .n_functions = 2,
                                       .begin = counts_begin,
                                       .step = counts_step,
                                       .epoch = counts_epoch,
                                       .finish = counts_finish };

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static plait_data *make_data(void) {
    plait_data *data = NULL;
    double      label[ROWS];
    for (int i = 0; i < ROWS; i++) x[i] = (float)i, label[i] = i * 7 % KINDS;
    assert_int_equal(plait_data_from_dense(ROWS, 1, x, label, NULL, &data, NULL), PLAIT_OK);
    return data;
}

static training training_of(const plait_data *data, const plait_learner *l, const char *topology,
                            const char *consistency) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = l->name;
    t.opts.learners = l, t.opts.n_learners = 1;
    t.opts.epochs = EPOCHS, t.opts.batch = 16;
    t.opts.topology = topology, t.opts.consistency = consistency;
    return t;
}

/* What one loop over the data gives. */
static void expect(double sum[3]) {
    static double count[KINDS * COLS];
    memset(count, 0, sizeof count);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        const int64_t first = epoch % 2 == 0 ? 0 : KINDS - HALF;
        for (int i = 0; i < ROWS; i++) count[i * 7 % KINDS * COLS] += 1, count[i * 7 % KINDS * COLS + 1] += 3;
        for (int64_t i = first * COLS; i < (first + HALF) * COLS; i++) count[i] /= 2;
    }
    sum[0] = sum[1] = 0;
    for (int64_t i = 0; i < KINDS * COLS; i++) sum[i >= (KINDS - HALF) * COLS] += count[i];
    sum[2] = sum[0] + sum[1];
}

static void test_under_each_pair_with_functions(void **state) {
    static const char *const pairs[][2] = {
        { "local", "bsp" }, { "allreduce", "bsp" }, { "ps", "bsp" }, { "ps", "bounded-delay:0" }, { "hybrid", "bsp" },
        { "ps", "bsp" }, { "allreduce", "bsp" } /* with two replicas */
    };
    enum { PAIRS = sizeof pairs / sizeof *pairs, ONE_REPLICA = PAIRS - 2 };
    plait_data *data = make_data();
    double      right[3];
    (void)state;
    expect(right);
    for (size_t p = 0; p < PAIRS; p++)
        for (int32_t workers = p < ONE_REPLICA ? 1 : 2; workers <= 4; workers++) {
            training t = training_of(data, &learner, pairs[p][0], pairs[p][1]);
            int64_t  shape[1];
            t.opts.replicas = p < ONE_REPLICA ? 1 : 2;
            must_train(&t, workers);
            const double *sum = plait_model_value(t.model, "sums", PLAIT_F64, 1, shape);
            if (sum == NULL || memcmp(sum, right, sizeof right) != 0)
                fail_msg("%s x %s, %d workers: other sums", pairs[p][0], pairs[p][1], workers);
            plait_model_destroy(&t.model);
        }
    plait_data_destroy(&data);
}

/* A call that updates runs when all who are in have called: workers come and go before calls, behind them, and with the
 * last clock before one. Who has come counts on from the others' number of calls. */
static void test_while_workers_come_and_go(void **state) {
    static const char *const plans[] = { "10:4,57:3,58:2,114:4,120:3", "1:3,57:4,113:2", "56:4,57:2,60:4,115:2" };
    plait_data *data = make_data();
    double      right[3];
    (void)state;
    expect(right);
    const char *only = getenv("PLAIT_SEED"); /* this plan alone */
    for (int i = 0; i < (int)(sizeof plans / sizeof *plans); i++) {
        training t = training_of(data, &learner, "ps", "bsp");
        int64_t  shape[1];
        if (only != NULL && atoi(only) != i) continue;
        t.opts.replicas = 2, t.opts.slots = 2, t.opts.scale = plans[i];
        if (train(&t, 4, 1) < 0) fail_msg("PLAIT_SEED=%d, --scale %s: %s", i, plans[i], t.error.text);
        const double *sum = plait_model_value(t.model, "sums", PLAIT_F64, 1, shape);
        if (sum == NULL || memcmp(sum, right, sizeof right) != 0)
            fail_msg("PLAIT_SEED=%d, --scale %s: other sums", i, plans[i]);
        plait_model_destroy(&t.model);
    }
    plait_data_destroy(&data);
}

static void refused(training t, plait_status status, const char *text) {
    assert_int_equal(train(&t, 2, 1), status);
    if (strstr(t.error.text, text) == NULL) fail_msg("'%s' does not say '%s'", t.error.text, text);
}

static void test_what_has_no_functions_is_refused(void **state) {
    plait_data   *data = make_data();
    plait_learner wrong = learner, reads = learner;
    (void)state;
    refused(training_of(data, &learner, "ps", "ssp:2"), PLAIT_EREFUSED,
            "model counts with consistency ssp:2 is refused: it needs reads that hold all updates of earlier clocks");
    refused(training_of(data, &learner, "gossip:ring", "bsp"), PLAIT_EREFUSED,
            "model counts with topology gossip:ring");
    reads.functions = own + 1, reads.n_functions = 1; /* its epoch calls one that is not there */
    refused(training_of(data, &reads, "ps", "ssp:2"), PLAIT_ENAME, "total");
    refused(training_of(data, &reads, "ps", "local-sgd:2"), PLAIT_EREFUSED, "it needs server functions");
    wrong.functions = NULL;
    refused(training_of(data, &wrong, "ps", "bsp"), PLAIT_EINVAL, "model counts has 2 server functions, but no list");
    wrong = learner, wrong.n_functions = -1;
    refused(training_of(data, &wrong, "ps", "bsp"), PLAIT_EINVAL, "model counts has -1 server functions");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_under_each_pair_with_functions),
        cmocka_unit_test(test_while_workers_come_and_go),
        cmocka_unit_test(test_what_has_no_functions_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
