/* Calls at the wrong moment, and counts too large for any memory: each call gets an answer, and the job goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/checkpoint.h>
#include <plait/model.h>
#include <plait/ops.h>
#include <plait/session.h>

/* For use in a rank, whose thread cmocka does not know: a failure becomes the rank's result. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, plait_comm_error(comm)->text);                  \
            return PLAIT_EDIVERGED;                                                                                    \
        }                                                                                                              \
    } while (0)
#define SAYS(words) (strstr(plait_comm_error(comm)->text, words) != NULL)

static plait_comm_opts threads(int32_t workers) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = "threads";
    opts.workers = workers;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    return opts;
}

static void run_comm(int32_t workers, plait_body_fn *body, void *user) {
    plait_error     err = { 0 };
    plait_comm_opts opts = threads(workers);
    if (plait_comm_run(&opts, body, user, &err) < 0) fail_msg("%s", err.text);
}

static void run_job(int32_t workers, const plait_job_opts *job, plait_work_fn *work, void *user) {
    plait_error     err = { 0 };
    plait_comm_opts opts = threads(workers);
    if (plait_run(&opts, job, work, user, &err) < 0) fail_msg("%s", err.text);
}

static plait_status make_table(plait_job *job, const char *name, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = 8;
    return plait_table_create(job, &opts, table_out);
}

/* --- the job of plait_run ----------------------------------------------------------------------------------------- */

static plait_status destroy_in_work(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_job   *mine = job;
    plait_table *table;
    (void)user;
    CHECK(plait_job_destroy(&mine) == PLAIT_EINVAL && mine == job);
    CHECK(SAYS("plait_job_destroy") && SAYS("plait_run"));
    CHECK(make_table(job, "w", &table) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_the_job_of_plait_run_is_not_destroyed_in_its_work(void **state) {
    (void)state;
    run_job(2, NULL, destroy_in_work, NULL);
}

/* --- server functions --------------------------------------------------------------------------------------------- */

/* What the functions use for their calls. */
typedef struct inside {
    plait_job   *job; /* worker 0's, set before the call */
    plait_table *table;
    int          which;
} inside;

static const char *const called[] = { "plait_job_clock",  "plait_job_barrier",   "plait_table_get",
                                      "plait_comm_send",  "plait_job_destroy",   "plait_table_call",
                                      "plait_table_dump", "plait_comm_allreduce" };
enum { CALLS = sizeof called / sizeof *called };

static plait_status call_plait(const inside *in) {
    static plait_job  *job;
    float              value = 0;
    int64_t            n;
    uint64_t          *keys, key = 0;
    void              *values;
    plait_table *const tables[1] = { in->table };
    switch (in->which) {
    case 0: return plait_job_clock(in->job);
    case 1: return plait_job_barrier(in->job);
    case 2: return plait_table_get(in->table, 1, &key, &value);
    case 3: return plait_comm_send(plait_job_comm(in->job), 0, 1, &value, sizeof value);
    case 4: job = in->job; return plait_job_destroy(&job);
    case 5: return plait_table_call(tables, 1, "calls", NULL, 0, &value, sizeof value);
    case 6: return plait_table_dump(in->table, &n, &keys, &values);
    default: return plait_comm_allreduce(plait_job_comm(in->job), &value, 1, PLAIT_F32, PLAIT_SUM);
    }
}

/* Ignores the answer of its call. */
static plait_status calls(void *user, const plait_slice *slices, int32_t n_slices, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    (void)slices, (void)n_slices, (void)args, (void)args_bytes, (void)answer, (void)answer_bytes;
    (void)call_plait(user);
    return PLAIT_OK;
}

static plait_status counts(void *user, const plait_slice *slices, int32_t n_slices, const void *args,
                           size_t args_bytes, void *answer, size_t answer_bytes) {
    const double rows = (double)slices[0].rows;
    (void)user, (void)n_slices, (void)args, (void)args_bytes, (void)answer_bytes;
    memcpy(answer, &rows, sizeof rows);
    return PLAIT_OK;
}

static void merges_by_a_call(void *user, void *answer, const void *other, size_t answer_bytes) {
    (void)answer, (void)other, (void)answer_bytes;
    (void)call_plait(user);
}

static plait_status call_functions(plait_job *job, void *user) {
    plait_comm        *comm = plait_job_comm(job);
    inside            *in = user;
    plait_table       *table = NULL;
    double             answer = 0;
    CHECK(make_table(job, "w", &table) == PLAIT_OK);
    plait_table *const tables[1] = { table };
    if (plait_comm_rank(comm) == 0) {
        in->job = job;
        in->table = table;
        CHECK(plait_table_call(tables, 1, "calls", NULL, 0, &answer, sizeof answer) == PLAIT_EINVAL);
        CHECK(SAYS("server function calls called") && SAYS(called[in->which]));
        CHECK(plait_table_call(tables, 1, "counts", NULL, 0, &answer, sizeof answer) == PLAIT_OK && answer == 8);
    }
    return plait_job_clock(job);
}

static void test_server_functions_cannot_call_plait(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "ps", "allreduce" };
    for (int t = 0; t < 3; t++)
        for (int which = 0; which < CALLS; which++) {
            inside               in = { .which = which };
            const plait_function functions[] = { { .name = "calls", .run = calls, .user = &in },
                                                 { .name = "counts", .run = counts } };
            plait_job_opts       opts;
            plait_job_opts_init(&opts);
            opts.topology = topologies[t];
            opts.functions = functions;
            opts.n_functions = 2;
            run_job(2, &opts, call_functions, &in);
        }
}

static plait_status merge_badly(plait_job *job, void *user) {
    plait_comm        *comm = plait_job_comm(job);
    inside            *in = user;
    double             answer = 0;
    plait_table_opts   opts;
    plait_table       *table = NULL;
    plait_table_opts_init(&opts);
    opts.name = "w"; /* sparse: each rank has a shard */
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_OK);
    plait_table *const tables[1] = { table };
    if (plait_comm_rank(comm) == 0) {
        in->job = job;
        CHECK(plait_table_call(tables, 1, "merges", NULL, 0, &answer, sizeof answer) == PLAIT_EINVAL);
        CHECK(SAYS("server function merges called plait_job_clock"));
    }
    return plait_job_clock(job);
}

static void test_nor_can_what_merges_their_answers(void **state) {
    (void)state;
    inside               in = { .which = 0 };
    const plait_function function = { .name = "merges", .run = counts, .merge = merges_by_a_call, .user = &in };
    plait_job_opts       opts;
    plait_job_opts_init(&opts);
    opts.topology = "ps";
    opts.functions = &function;
    opts.n_functions = 1;
    run_job(2, &opts, merge_badly, &in);
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

static plait_status count_too_far(plait_comm *comm, void *user) {
    static const int64_t counts_of[] = { INT64_MAX, INT64_MAX / 2, INT64_MAX / 8, INT64_MAX / 16, -1, INT64_MIN };
    plait_request       *request = NULL;
    (void)user;
    for (size_t i = 0; i < sizeof counts_of / sizeof *counts_of; i++) {
        const int64_t n = counts_of[i];
        double        buf[2] = { 1, 2 };
        CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_EINVAL);
        CHECK(SAYS("plait_comm_allreduce: n is"));
        CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_I64, PLAIT_MAX) == PLAIT_EINVAL);
        CHECK(plait_comm_allreduce(comm, buf, n, PLAIT_F32, PLAIT_SUM_EXACT) == PLAIT_EINVAL);
        CHECK(plait_comm_allreduce_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM, &request) == PLAIT_EINVAL);
        CHECK(plait_comm_reduce_scatter(comm, buf, n, PLAIT_F64, PLAIT_SUM) == PLAIT_EINVAL);
        CHECK(plait_comm_reduce_scatter_begin(comm, buf, n, PLAIT_F64, PLAIT_SUM, &request) == PLAIT_EINVAL);
    }
    static const size_t sizes_of[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 2 + 1, SIZE_MAX / 4 };
    for (size_t i = 0; i < sizeof sizes_of / sizeof *sizes_of; i++) {
        char   buf[64];
        size_t sizes[4];
        void  *all = NULL;
        CHECK(plait_comm_send(comm, 0, 1, buf, sizes_of[i]) == PLAIT_EINVAL);
        CHECK(plait_comm_broadcast(comm, buf, sizes_of[i], 0) == PLAIT_EINVAL);
        CHECK(plait_comm_allgather(comm, buf, sizes_of[i], buf) == PLAIT_EINVAL);
        CHECK(plait_comm_allgatherv(comm, buf, sizes_of[i], sizes, &all) == PLAIT_EINVAL);
        CHECK(plait_comm_allgatherv_begin(comm, buf, sizes_of[i], sizes, &all, &request) == PLAIT_EINVAL);
        CHECK(SAYS("plait_comm_allgatherv_begin: bytes is"));
    }
    int64_t one = 1, first = -1, count = -1;
    CHECK(plait_comm_allreduce(comm, &one, 1, PLAIT_I64, PLAIT_SUM) == PLAIT_OK && one == plait_comm_workers(comm));
    plait_comm_slice(comm, INT64_MAX, plait_comm_workers(comm) - 1, &first, &count);
    CHECK(first >= 0 && count > 0 && first == INT64_MAX - count);
    return PLAIT_OK;
}

static void test_collectives_refuse_counts_without_measure(void **state) {
    (void)state;
    for (int32_t workers = 1; workers <= 3; workers++) run_comm(workers, count_too_far, NULL);
}

static plait_status count_rows_too_far(plait_job *job, void *user) {
    static const int64_t counts_of[] = { INT64_MAX, INT64_MAX / 8, -1, INT64_MIN };
    plait_comm          *comm = plait_job_comm(job);
    plait_table         *table = NULL;
    plait_request       *request = NULL;
    const void          *rows;
    float                values[8] = { 0 };
    uint64_t             keys[8] = { 0 };
    plait_table         *tables[1];
    (void)user;
    CHECK(make_table(job, "w", &table) == PLAIT_OK);
    tables[0] = table;
    for (size_t i = 0; i < sizeof counts_of / sizeof *counts_of; i++) {
        const int64_t n = counts_of[i];
        CHECK(plait_table_get(table, n, keys, values) == PLAIT_EINVAL);
        CHECK(plait_table_get_begin(table, n, keys, values, &request) == PLAIT_EINVAL);
        CHECK(plait_table_get_range(table, 1, n, values) == PLAIT_EINVAL);
        CHECK(plait_table_get_range(table, n, 1, values) == PLAIT_EINVAL);
        CHECK(plait_table_get_range_begin(table, 1, n, values, &request) == PLAIT_EINVAL);
        CHECK(plait_table_read(table, 1, n, &rows) == PLAIT_EINVAL);
        CHECK(plait_table_inc(table, n, keys, values, 0) == PLAIT_EINVAL);
        CHECK(plait_table_inc_begin(table, n, keys, values, 0, &request) == PLAIT_EINVAL);
        CHECK(plait_table_inc_range(table, 1, n, values, 0) == PLAIT_EINVAL);
        CHECK(plait_table_inc_range_begin(table, n, 1, values, 0, &request) == PLAIT_EINVAL);
        CHECK(plait_table_call(tables, 1, "x", values, (size_t)n, values, 4) == (n == -1 || n == INT64_MIN
                                                                                   ? PLAIT_EINVAL
                                                                                   : PLAIT_ENAME));
        CHECK(plait_table_call(tables, 1, "x", values, 4, values, (size_t)n) == PLAIT_EINVAL);
    }
    CHECK(plait_table_call(tables, 0, "x", NULL, 0, NULL, 0) == PLAIT_EINVAL);
    CHECK(plait_table_call(tables, -1, "x", NULL, 0, NULL, 0) == PLAIT_EINVAL);
    return PLAIT_OK;
}

static void test_tables_refuse_counts_without_measure(void **state) {
    (void)state;
    run_job(2, NULL, count_rows_too_far, NULL);
}

static void test_data_refuse_counts_without_measure(void **state) {
    (void)state;
    static const int64_t  start[3] = { 0, 1, 2 };
    static const uint32_t column[2] = { 0, 1 };
    static const double   label[2] = { 0, 1 };
    static const float    x[4] = { 0 };
    plait_error           err;
    plait_data           *data = NULL;
    static const int64_t  counts_of[] = { INT64_MAX, INT64_MAX / 8, -1, INT64_MIN };
    for (size_t i = 0; i < sizeof counts_of / sizeof *counts_of; i++) {
        const int64_t n = counts_of[i];
        assert_int_equal(plait_data_from_csr(n, 2, start, column, NULL, label, NULL, &data, &err), PLAIT_EINVAL);
        assert_int_equal(plait_data_from_csr(2, n, start, column, NULL, label, NULL, &data, &err), PLAIT_EINVAL);
        assert_int_equal(plait_data_from_dense(n, 2, x, label, NULL, &data, &err), PLAIT_EINVAL);
        assert_int_equal(plait_data_from_dense(2, n, x, label, NULL, &data, &err), PLAIT_EINVAL);
    }
    /* Each count alone would fit, but their product does not. */
    assert_int_equal(plait_data_from_dense(INT64_C(1) << 40, INT64_C(1) << 31, x, label, NULL, &data, &err),
                     PLAIT_EINVAL);
    assert_null(data);
}

static void test_graphs_refuse_counts_without_measure(void **state) {
    (void)state;
    static const int32_t ranks[] = { INT32_MAX, 9, -1, INT32_MIN };
    plait_error          err;
    float                value = 0;
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++) {
        const plait_shape  shape = { .rank = ranks[i] };
        const plait_tensor empty = { .type = PLAIT_F32, .shape = shape }, full = { PLAIT_F32, shape, &value };
        plait_graph       *g[4] = { NULL };
        assert_int_equal(plait_shape_elements(&shape), -1);
        for (int k = 0; k < 4; k++) assert_int_equal(plait_graph_create(NULL, 0, &g[k], &err), PLAIT_OK);
        assert_int_equal(plait_graph_placeholder(g[0], "x", PLAIT_F32, shape), PLAIT_NONE);
        assert_int_equal(plait_graph_constant(g[1], empty), PLAIT_NONE);
        assert_int_equal(plait_graph_constant(g[2], full), PLAIT_NONE);
        assert_int_equal(plait_graph_variable(g[3], "v", empty), PLAIT_NONE);
        for (int k = 0; k < 4; k++) {
            assert_true(plait_graph_check(g[k], &err) < 0);
            plait_graph_destroy(&g[k]);
        }
    }
}

/* --- jobs on one communicator ------------------------------------------------------------------------------------- */

static plait_status another(plait_job *job, void *user) {
    plait_comm *comm = plait_job_comm(job);
    (void)user;
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status two_jobs(plait_comm *comm, void *user) {
    static const float  x[4] = { 0, 1, 1, 0 };
    static const double label[2] = { 0, 1 };
    plait_job          *first = NULL, *second = NULL;
    plait_data         *data = NULL;
    plait_model        *model = NULL;
    plait_train_opts    opts;
    plait_comm_opts     own = threads(1);
    (void)user;
    for (int round = 0; round < 2; round++) {
        CHECK(plait_job_create(comm, NULL, &first) == PLAIT_OK);
        CHECK(plait_job_create(comm, NULL, &second) == PLAIT_EINVAL && second == NULL);
        CHECK(SAYS("already in a job") && SAYS("plait_job_destroy") && SAYS("plait_run"));
        plait_train_opts_init(&opts);
        CHECK(plait_data_from_dense(2, 2, x, label, NULL, &data, NULL) == PLAIT_OK);
        opts.memory = data;
        plait_status status = plait_train(comm, &opts, NULL, &model);
        plait_data_destroy(&data);
        CHECK(status == PLAIT_EINVAL && model == NULL && SAYS("already in a job"));
        CHECK(plait_run(&own, NULL, another, NULL, NULL) == PLAIT_OK); /* a second job on a communicator of its own */
        CHECK(plait_job_clock(first) == PLAIT_OK);
        CHECK(plait_job_destroy(&first) == PLAIT_OK && first == NULL);
    }
    /* A job that could not begin leaves room for the next. */
    plait_job_opts bad;
    plait_job_opts_init(&bad);
    bad.batch = -1;
    CHECK(plait_job_create(comm, &bad, &first) == PLAIT_EINVAL);
    CHECK(plait_job_create(comm, NULL, &first) == PLAIT_OK);
    return plait_job_destroy(&first);
}

static void test_a_communicator_has_one_job_at_a_time(void **state) {
    (void)state;
    run_comm(1, two_jobs, NULL);
    run_comm(3, two_jobs, NULL);
}

/* --- NULL inside of arguments ------------------------------------------------------------------------------------- */

static plait_status null_inside_of_jobs(plait_job *job, void *user) {
    plait_comm           *comm = plait_job_comm(job);
    plait_table          *table = NULL, *none = NULL;
    plait_checkpoint_opts to;
    double                answer;
    (void)user;
    CHECK(make_table(job, NULL, &table) == PLAIT_EINVAL && SAYS("needs a name"));
    CHECK(make_table(job, "w", &table) == PLAIT_OK);
    plait_table *const one_is_null[2] = { table, NULL }, *const first_is_null[1] = { NULL };
    CHECK(plait_table_call(one_is_null, 2, "x", NULL, 0, &answer, sizeof answer) == PLAIT_EINVAL);
    CHECK(SAYS("plait_table_call: tables[1] is NULL"));
    CHECK(plait_table_call(first_is_null, 1, "x", NULL, 0, &answer, sizeof answer) == PLAIT_EINVAL);
    plait_checkpoint_opts_init(&to);
    CHECK(plait_checkpoint_save(job, &table, 1, &to) == PLAIT_EINVAL && SAYS("dir is NULL"));
    to.dir = "never-made";
    CHECK(plait_checkpoint_save(job, &none, 1, &to) == PLAIT_EINVAL && SAYS("tables[0] is NULL"));
    plait_request *request = NULL;
    CHECK(plait_request_wait(NULL) == PLAIT_OK && plait_request_wait(&request) == PLAIT_OK);
    return PLAIT_OK;
}

static void expect_no_run(plait_job_opts opts, const char *says) {
    plait_error     err = { 0 };
    plait_comm_opts comm = threads(1);
    assert_int_equal(plait_run(&comm, &opts, another, NULL, &err), PLAIT_EINVAL);
    if (strstr(err.text, says) == NULL) fail_msg("'%s' is not in: %s", says, err.text);
}

static void test_null_inside_of_options(void **state) {
    (void)state;
    static const plait_function unnamed = { .run = counts }, empty = { .name = "f" };
    plait_job_opts              opts;
    run_job(2, NULL, null_inside_of_jobs, NULL);
    plait_job_opts_init(&opts);
    opts.n_functions = opts.n_policies = opts.n_filters = opts.n_rules = 0;
    plait_job_opts some = opts;
    some.n_functions = 1;
    expect_no_run(some, "1 server functions");
    some.functions = &unnamed;
    expect_no_run(some, "no name");
    some.functions = &empty;
    expect_no_run(some, "nothing to run");
    some = opts;
    some.n_policies = 1;
    expect_no_run(some, "");
    some = opts;
    some.n_filters = 1;
    expect_no_run(some, "");
    some = opts;
    some.n_rules = 1;
    expect_no_run(some, "");
}

static plait_status train_on_nothing(plait_comm *comm, void *user) {
    plait_train_opts opts;
    plait_model     *model = NULL;
    (void)user;
    plait_train_opts_init(&opts);
    CHECK(plait_train(comm, &opts, NULL, &model) == PLAIT_EINVAL && model == NULL);
    plait_data_opts files;
    plait_data_opts_init(&files);
    files.n_paths = 1;
    opts.data = &files;
    CHECK(plait_train(comm, &opts, NULL, &model) == PLAIT_EINVAL && SAYS("paths is NULL"));
    opts.n_tables = 1;
    CHECK(plait_train(comm, &opts, NULL, &model) == PLAIT_EINVAL && SAYS("opts->tables is NULL"));
    opts.model = NULL;
    CHECK(plait_train(comm, &opts, NULL, &model) == PLAIT_EINVAL && SAYS("opts->model is NULL"));
    return PLAIT_OK;
}

static void test_null_inside_of_data_and_graphs(void **state) {
    (void)state;
    plait_error     err = { 0 };
    plait_data     *data = NULL;
    plait_data_opts opts;
    const char     *no_path = NULL;
    plait_data_opts_init(&opts);
    opts.n_paths = 1;
    assert_int_equal(plait_data_read(&opts, &data, &err), PLAIT_EINVAL);
    opts.paths = &no_path;
    assert_int_equal(plait_data_read(&opts, &data, &err), PLAIT_EINVAL);
    assert_null(data);
    run_comm(1, train_on_nothing, NULL);

    plait_graph     *g = NULL;
    const plait_attr unnamed = plait_attr_int(NULL, 1), no_ints = plait_attr_ints("axes", 2, NULL),
                     no_text = plait_attr_text("text", NULL);
    const struct {
        const char       *op;
        const plait_attr *attr;
    } bad[] = { { "softmax", &unnamed }, { "sum", &no_ints }, { "print", &no_text } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(plait_graph_create(NULL, 0, &g, &err), PLAIT_OK);
        const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(2, 2));
        assert_int_equal(plait_graph_op(g, bad[i].op, &x, 1, bad[i].attr, 1), PLAIT_NONE);
        assert_int_equal(plait_graph_check(g, &err), PLAIT_EINVAL);
        plait_graph_destroy(&g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_job_of_plait_run_is_not_destroyed_in_its_work),
        cmocka_unit_test(test_server_functions_cannot_call_plait),
        cmocka_unit_test(test_nor_can_what_merges_their_answers),
        cmocka_unit_test(test_collectives_refuse_counts_without_measure),
        cmocka_unit_test(test_tables_refuse_counts_without_measure),
        cmocka_unit_test(test_data_refuse_counts_without_measure),
        cmocka_unit_test(test_graphs_refuse_counts_without_measure),
        cmocka_unit_test(test_a_communicator_has_one_job_at_a_time),
        cmocka_unit_test(test_null_inside_of_options),
        cmocka_unit_test(test_null_inside_of_data_and_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
