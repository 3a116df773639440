/* Tests blocks that change hands: one worker takes four times as long for its work, in a time that the test counts, so
 * runs repeat. Its share falls to a quarter of the others', each row is used once an epoch whoever has it, and under
 * bsp the model is that of a run in which every worker keeps its blocks. Without arguments the ranks are threads; with
 * a test's name, this process is one of an MPI job. */
#include "check.h"
#include "learn/train.h"

#include <stdatomic.h>

#include "comm/comm.h"
#include "learn/linear/linear.h"
#include "table/server/leases.h"

enum { ROWS = 4000, ROWS_MAX = 40000, FEATURES = 7, EPOCHS = 5, BATCH = 100, SLOW = 1, ROW_NS = 1000 };

/* --- time that the test counts: these wrap functions of the library (the linker's --wrap) ---------------------- */

static _Thread_local uint64_t time_ns;
static _Thread_local bool     is_slow;
static _Atomic int            used[ROWS_MAX]; /* how often each row was computed in this process */

plait_status __real_pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                     const pli_batch *batch, const uint32_t *local, const int64_t *local_start,
                                     plait_error *err);
plait_status __wrap_pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                     const pli_batch *batch, const uint32_t *local, const int64_t *local_start,
                                     plait_error *err);
uint64_t     __wrap_pli_comm_now(const plait_comm *comm);

plait_status __wrap_pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                     const pli_batch *batch, const uint32_t *local, const int64_t *local_start,
                                     plait_error *err) {
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        for (int64_t i = 0; i < part->rows; i++)
            used[part->block->first_row + (part->order != NULL ? (int64_t)part->order[i] : part->first + i)]++;
    }
    time_ns += (uint64_t)batch->rows * ROW_NS * (is_slow ? 4 : 1);
    return __real_pli_gradient_run(gradient, weights, rows, batch, local, local_start, err);
}

uint64_t __wrap_pli_comm_now(const plait_comm *comm) {
    (void)comm;
    return time_ns;
}

/* --- a run ----------------------------------------------------------------------------------------------------- */

typedef struct trial {
    plait_train_opts opts;
    const char      *transport;
    int64_t          rows[EPOCHS + 1][16]; /* computed in each epoch by each worker; rank 0 keeps them */
    int64_t          told, all;            /* all: rows of the data */
} trial;

static void keep_shares(void *user, const plait_shares *shares) {
    trial *t = user;
    t->told++;
    for (int32_t w = 0; w < shares->workers; w++) t->rows[shares->epoch][w] = shares->rows[w];
}

static plait_status check_shares(plait_comm *comm, const trial *t) {
    int32_t workers = plait_comm_workers(comm);
    CHECK(t->told == EPOCHS);
    for (int64_t e = 1; e <= EPOCHS; e++) {
        int64_t all = 0;
        for (int32_t w = 0; w < workers; w++) all += t->rows[e][w];
        CHECK(all == t->all);
    }
    /* under async any worker may end before another begins */
    if (t->opts.consistency != NULL && strcmp(t->opts.consistency, "async") == 0) return PLAIT_OK;
    double even = (double)t->all / (4 * workers - 3); /* the slow worker's fair share; others have four */
    CHECK((double)t->rows[1][SLOW] < 0.85 * (double)t->all / workers);
    CHECK((double)t->rows[EPOCHS][SLOW] > 0.6 * even && (double)t->rows[EPOCHS][SLOW] < 1.4 * even);
    for (int32_t w = 0; w < workers; w++) CHECK(w == SLOW || (double)t->rows[EPOCHS][w] > 0.8 * 4 * even);
    return PLAIT_OK;
}

/* Each row was used once an epoch, in both runs, by whatever worker. */
static plait_status check_used(plait_comm *comm, int64_t rows) {
    bool     apart = !plait_comm_one_process(comm);
    int64_t *sum = pli_array((size_t)rows, sizeof *sum);
    CHECK(sum != NULL);
    for (int64_t i = 0; i < rows; i++) sum[i] = used[i];
    plait_status status = apart ? plait_comm_allreduce(comm, sum, rows, PLAIT_I64, PLAIT_SUM) : PLAIT_OK;
    for (int64_t i = 0; status == PLAIT_OK && i < rows; i++)
        if (sum[i] != 2 * EPOCHS)
            status = pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "row %d was used %d times", (int)i, (int)sum[i]);
    pli_free(sum);
    return status;
}

/* Trains twice: first every worker keeps its blocks, then the run is balanced. */
static plait_status body(plait_comm *comm, void *user) {
    trial          *t = user;
    plait_model    *kept = NULL, *balanced = NULL;
    plait_report    report;
    plait_train_opts opts = t->opts;
    opts.user = t;
    is_slow = plait_comm_rank(comm) == SLOW;
    PLI_TRY(plait_train(comm, &opts, &report, &kept));
    double objective = report.objective;
    opts.balance = "dynamic";
    opts.shares = keep_shares;
    plait_status status = plait_train(comm, &opts, &report, &balanced);
    if (plait_comm_rank(comm) == 0) t->all = report.rows;
    if (status == PLAIT_OK && kept != NULL) {
        bool in_step = opts.consistency == NULL || strcmp(opts.consistency, "bsp") == 0;
        if (in_step ? !(distance(balanced, kept) <= 1e-5) : !(report.objective < objective * 1.03))
            status = pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "distance %g, objectives %g and %g",
                              distance(balanced, kept), report.objective, objective);
        if (status == PLAIT_OK && plait_comm_rank(comm) == 0) status = check_shares(comm, t);
    }
    if (status == PLAIT_OK) status = check_used(comm, report.rows);
    plait_model_destroy(&kept);
    plait_model_destroy(&balanced);
    return status;
}

static plait_status run(trial *t, int32_t workers, int32_t threads, plait_error *err) {
    plait_comm_opts c;
    plait_comm_opts_init(&c);
    c.transport = t->transport;
    c.workers = workers;
    c.threads = threads;
    c.timeout_ns = UINT64_C(60000000000);
    for (int i = 0; i < ROWS_MAX; i++) used[i] = 0;
    return plait_comm_run(&c, body, t, err);
}

static trial a_trial(const plait_data *data, const char *topology, const char *consistency) {
    trial t = { .transport = "threads" };
    plait_train_opts_init(&t.opts);
    t.opts.memory = data;
    t.opts.topology = topology;
    t.opts.consistency = consistency;
    t.opts.epochs = EPOCHS;
    t.opts.batch = BATCH;
    return t;
}

static void balance(const plait_data *data, const char *topology, const char *consistency, int32_t workers,
                    int32_t threads) {
    trial       t = a_trial(data, topology, consistency);
    plait_error err = { 0 };
    if (run(&t, workers, threads, &err) != PLAIT_OK) {
        for (int64_t e = 1; e <= EPOCHS; e++)
            for (int32_t w = 0; w < workers; w++) printf("%d%s", (int)t.rows[e][w], w + 1 < workers ? " " : "\n");
        fail_msg("%s x %s: rank %d: %s", topology, consistency, err.rank, err.text);
    }
}

static void test_pairs(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, 2, 11);
    balance(data, "local", "bsp", 4, 1);
    balance(data, "allreduce", "bsp", 4, 1);
    balance(data, "ps", "bsp", 4, 2);
    balance(data, "ps", "ssp:2", 4, 1);
    balance(data, "ps", "async", 4, 1);
    balance(data, "local", "ssp:1", 4, 1);
    balance(data, "local", "async", 4, 1);
    balance(data, "ps", "bsp", 2, 1);
    balance(data, "allreduce", "bsp", 7, 1);
    plait_data_destroy(&data);
}

/* With every rule, with softmax, and with numbers, the balanced model is the same as the other. */
static void test_rules(void **state) {
    static const char *const rules[] = { "sgd", "momentum", "adam", "ftrl" };
    (void)state;
    plait_data *data = points(ROWS, FEATURES, 3, 12);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        trial       t = a_trial(data, "ps", "bsp");
        plait_error err = { 0 };
        t.opts.optimizer = rules[i];
        if (run(&t, 3, 1, &err) != PLAIT_OK) fail_msg("%s: rank %d: %s", rules[i], err.rank, err.text);
    }
    plait_data_destroy(&data);
}

static void refused(trial *t, int32_t workers, plait_status want, const char *text) {
    plait_error err = { 0 };
    training    one = { .opts = t->opts };
    one.opts.balance = one.opts.balance != NULL ? one.opts.balance : "dynamic";
    assert_int_equal(train(&one, workers, 1), want);
    err = one.error;
    if (strstr(err.text, text) == NULL) fail_msg("'%s' does not say '%s'", err.text, text);
}

static void test_refusals(void **state) {
    (void)state;
    plait_data *data = points(ROWS, FEATURES, 2, 13);
    trial       t = a_trial(data, "local", "bsp");
    refused(&t, 33, PLAIT_EREFUSED, "33 workers is refused: the data have 64 blocks");
    t.opts.balance = "dynamik";
    refused(&t, 2, PLAIT_ENAME, "dynamic");
    plait_data_destroy(&data);
}

/* One of the processes of a job; each reads its blocks from the same file. */
static void processes(const char *topology, const char *consistency) {
    char            path[1024];
    const char     *paths[] = { source_file("tests/data/a9a/a9a.gz", path) };
    plait_data_opts files;
    plait_error     err = { 0 };
    trial           t = a_trial(NULL, topology, consistency);
    plait_data_opts_init(&files);
    files.paths = paths;
    files.n_paths = 1;
    t.opts.data = &files;
    t.opts.batch = 8 * BATCH;
    t.transport = "mpi";
    if (run(&t, 0, 1, &err) != PLAIT_OK) fail_msg("%s x %s: rank %d: %s", topology, consistency, err.rank, err.text);
}

static void test_mpi_allreduce(void **state) { (void)state; processes("allreduce", "bsp"); }
static void test_mpi_bsp(void **state) { (void)state; processes("ps", "bsp"); }
static void test_mpi_ssp(void **state) { (void)state; processes("ps", "ssp:2"); }
static void test_mpi_async(void **state) { (void)state; processes("ps", "async"); }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_pairs), cmocka_unit_test(test_rules),
                                        cmocka_unit_test(test_refusals) };
    const struct CMUnitTest as_process[] = { cmocka_unit_test(test_mpi_allreduce), cmocka_unit_test(test_mpi_bsp),
                                             cmocka_unit_test(test_mpi_ssp), cmocka_unit_test(test_mpi_async) };
    if (argc == 1) return cmocka_run_group_tests(tests, NULL, NULL);
    cmocka_set_test_filter(argv[1]); /* a process can be a rank of one run only */
    return cmocka_run_group_tests(as_process, NULL, NULL);
}
