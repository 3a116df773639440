/* Tests the values that a learner keeps for each row: a step finds what the last step left, whatever the number of
 * workers, and so does a resumed run; values that cannot be kept are refused. The learner here counts how often each
 * row was seen, and mixes what it reads from its table into the row's value, so that one lost or doubled step of one
 * row shows at the end. */
#include "learn/solve/balance.h"
#include "learn/solve/settled.h"
#include "learn/train.h"

#include <plait/learner.h>

#include <unistd.h>

enum { ROWS = 700, EPOCHS = 4, CLOCKS = 44 /* of an epoch of 16 rows a clock */ };

static float x[ROWS];
static int   stop;
static int   stop_at; /* the run stops after this clock, counted over all epochs; 0: never */

/* --- --balance dynamic: these wrap functions of the library (the linker's --wrap) --------------------------------- */

static _Atomic int moves; /* meetings behind which some block had another holder */

/* A rank says that each row has taken it a second, or four, or seven. */
void __real_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void __wrap_pli_balance_end_work(pli_balance *balance, uint64_t within_ns) {
    const uint64_t seconds = 1 + 3 * (uint64_t)plait_comm_rank(balance->run->comm);
    __real_pli_balance_end_work(balance, within_ns + (uint64_t)balance->batch_rows * seconds * 1000000000);
}

plait_status __real_pli_settled_meet(pli_run *run, bool *moved_out);
plait_status __wrap_pli_settled_meet(pli_run *run, bool *moved_out);
plait_status __wrap_pli_settled_meet(pli_run *run, bool *moved_out) {
    const plait_status status = __real_pli_settled_meet(run, moved_out);
    if (status >= 0 && *moved_out) moves++;
    return status;
}

/* --- the learner -------------------------------------------------------------------------------------------------- */

typedef struct visits {
    plait_table *table; /* one row: the sum of row values, the sum of squared counts, the number of rows */
    int64_t      clocks;
} visits;

static plait_status visits_begin(plait_training *run) {
    visits          *v = plait_training_state(run);
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "sums", opts.type = PLAIT_I64, opts.rows = 1, opts.cols = 3;
    return plait_training_table(run, &opts, &v->table);
}

static plait_status visits_step(plait_training *run, const plait_batch *batch, plait_step_sums *told) {
    visits *v = plait_training_state(run);
    int64_t read[3], sum[3] = { 0 };
    PLI_TRY(plait_table_get_range(v->table, 0, 1, read));
    for (int64_t i = 0; i < plait_batch_rows(batch); i++) {
        plait_row row;
        PLI_TRY(plait_batch_row(batch, i, &row));
        int64_t *own = plait_training_row_values(run, batch, i);
        if (own == NULL) return plait_training_fail(run, PLAIT_EINVAL, "a row has no values");
        own[0]++;
        own[1] = (own[1] * 31 + own[0] + read[0] + (int64_t)row.label) % 1000003;
        sum[0] += own[1], sum[1] += 2 * own[0] - 1, sum[2]++;
        told->rows++, told->weight++;
    }
    if (plait_training_row_values(run, batch, plait_batch_rows(batch)) != NULL)
        return plait_training_fail(run, PLAIT_EINVAL, "a row that is not there has values");
    if (++v->clocks == stop_at) __atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* pairs with pli_run_stopped */
    return plait_table_inc_range(v->table, 0, 1, sum, 1);
}

static plait_status visits_finish(plait_training *run, plait_model *model) {
    const visits *v = plait_training_state(run);
    const int64_t shape[1] = { 3 };
    int64_t       sum[3];
    PLI_TRY(plait_table_get_range(v->table, 0, 1, sum));
    return plait_model_put(model, "sums", PLAIT_I64, 1, shape, sum, plait_training_error(run));
}

static const plait_learner learner = { .size = sizeof learner,
                                       .name = "visits",
                                       .summary = "how often each row was seen",
                                       .labels = PLAIT_LABELS_NUMBERS,
                                       .state_bytes = sizeof(visits),
                                       .row_type = PLAIT_I64,
                                       .row_cols = 2,
                                       .begin = visits_begin,
                                       .step = visits_step,
                                       .finish = visits_finish };

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static plait_data *make_data(void) {
    plait_data *data = NULL;
    double      label[ROWS];
    for (int i = 0; i < ROWS; i++) x[i] = (float)i, label[i] = i % 17;
    assert_int_equal(plait_data_from_dense(ROWS, 1, x, label, NULL, &data, NULL), PLAIT_OK);
    return data;
}

static training training_of(const plait_data *data, const plait_learner *l) {
    training t = { .model = NULL };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.model = l->name;
    t.opts.learners = l, t.opts.n_learners = 1;
    t.opts.epochs = EPOCHS, t.opts.batch = 16;
    t.opts.topology = "ps", t.opts.consistency = "bsp";
    return t;
}

/* Every row is seen once an epoch: 1 + 3 + 5 + 7 adds up to 16. */
static int64_t sums_of(const training *t) {
    int64_t        shape[1];
    const int64_t *sum = plait_model_value(t->model, "sums", PLAIT_I64, 1, shape);
    assert_non_null(sum);
    assert_int_equal(sum[1], (int64_t)ROWS * EPOCHS * EPOCHS);
    assert_int_equal(sum[2], (int64_t)ROWS * EPOCHS);
    return sum[0];
}

static int64_t straight(const plait_data *data, int32_t workers) {
    training t = training_of(data, &learner);
    must_train(&t, workers);
    const int64_t sum = sums_of(&t);
    plait_model_destroy(&t.model);
    return sum;
}

static void test_whatever_the_workers(void **state) {
    plait_data   *data = make_data();
    const int64_t one = straight(data, 1);
    (void)state;
    assert_true(one > 0);
    assert_int_equal(straight(data, 2), one);
    assert_int_equal(straight(data, 4), one);
    plait_data_destroy(&data);
}

/* The run stops at this clock, and goes on with other workers from its checkpoint; balance NULL: as before. */
static void stop_and_go_on(training *t, int32_t from, int at, int32_t to, const char *balance, int64_t whole) {
    char dir[] = "/tmp/plait-rows-XXXXXX", command[64];
    assert_non_null(mkdtemp(dir));
    t->opts.checkpoint = dir;
    t->opts.stop = &stop;
    stop_at = at;
    must_train(t, from);
    assert_true(t->report.interrupted && t->report.checkpoint >= 0);
    plait_model_destroy(&t->model);
    stop_at = stop = 0;
    t->opts.stop = NULL;
    t->opts.checkpoint = NULL;
    t->opts.resume = dir;
    if (balance != NULL) t->opts.balance = balance;
    must_train(t, to);
    assert_int_equal(sums_of(t), whole);
    plait_model_destroy(&t->model);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

/* Runs stop in the middle of the second epoch, or before some block has had a row, and other numbers of workers resume
 * them. */
static void test_resumed_by_other_workers(void **state) {
    static const int32_t from[] = { 1, 3, 2 }, to[] = { 3, 2, 4 };
    static const int     at[] = { CLOCKS + 20, CLOCKS / 2, 1 };
    plait_data          *data = make_data();
    const int64_t        whole = straight(data, 1);
    (void)state;
    for (int i = 0; i < 3; i++) {
        training t = training_of(data, &learner);
        stop_and_go_on(&t, from[i], at[i], to[i], NULL, whole);
    }
    plait_data_destroy(&data);
}

/* Blocks that change hands take their rows' values along, whatever their size; and a checkpoint has each of them once,
 * by its last holder. */
static void test_values_go_with_their_rows(void **state) {
    plait_data   *data = make_data();
    const int64_t whole = straight(data, 1);
    (void)state;
    for (int i = 0; i < 2; i++) {
        training t = training_of(data, &learner);
        moves = 0;
        t.opts.balance = "dynamic";
        must_train(&t, 3);
        assert_int_equal(sums_of(&t), whole);
        plait_model_destroy(&t.model);
        assert_true(moves > 0);
        stop_and_go_on(&t, 3, 2 * CLOCKS + 20 /* of any worker that has rows in so many */, 2,
                       i == 0 ? "static" : "dynamic", whole);
    }
    plait_data_destroy(&data);
}

static void refused(training t, int32_t workers, plait_status status, const char *text) {
    assert_int_equal(train(&t, workers, 1), status);
    assert_non_null(strstr(t.error.text, text));
}

static void test_what_cannot_be_kept_is_refused(void **state) {
    plait_data   *data = make_data();
    plait_learner wrong = learner;
    (void)state;
    wrong.ways = PLAIT_LEARNER_STREAMS;
    refused(training_of(data, &wrong), 1, PLAIT_EINVAL, "0 for a learner that streams");
    wrong = learner, wrong.row_cols = -1;
    refused(training_of(data, &wrong), 1, PLAIT_EINVAL, "expected 0 to");
    plait_data_destroy(&data);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whatever_the_workers),
        cmocka_unit_test(test_resumed_by_other_workers),
        cmocka_unit_test(test_values_go_with_their_rows),
        cmocka_unit_test(test_what_cannot_be_kept_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
