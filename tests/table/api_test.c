/* The public calls: server functions by every topology, misuse by name, departures, deaths, what a failed allocation
 * leaves behind, bytes sent. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/pairs/pairs.h"
#include "table/table.h"

static plait_status run_on(int32_t workers, int32_t servers, const char *topology, const char *consistency,
                           const plait_function *functions, int32_t n, plait_work_fn *work, void *user,
                           plait_error *err) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = "threads";
    comm_opts.workers = workers;
    comm_opts.servers = servers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = topology;
    job_opts.consistency = consistency;
    job_opts.functions = functions;
    job_opts.n_functions = n;
    memset(err, 0, sizeof *err);
    return plait_run(&comm_opts, &job_opts, work, user, err);
}

static void run_ok(int32_t workers, int32_t servers, const char *topology, const char *consistency,
                   const plait_function *functions, int32_t n, plait_work_fn *work, void *user) {
    plait_error err;
    int64_t     live = pli_alloc_live();
    if (run_on(workers, servers, topology, consistency, functions, n, work, user, &err) < 0)
        fail_msg("%s x %s, %d+%d ranks: rank %d: %s", topology, consistency, workers, servers, err.rank, err.text);
    assert_int_equal(pli_alloc_live(), live);
}

static plait_status make_table(plait_job *job, const char *name, int64_t rows, int64_t cols, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.cols = cols;
    opts.type = PLAIT_F64;
    return plait_table_create(job, &opts, table_out);
}

/* --- server functions --------------------------------------------------------------------------------------------- */

/* answer[0] = sum x y, answer[1] = rows */
static plait_status dot(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes, void *answer,
                        size_t answer_bytes) {
    (void)user; (void)args; (void)args_bytes;
    const double *x = s[0].values, *y = s[n - 1].values;
    double       *sum = answer;
    if (answer_bytes != 16) return PLAIT_ESHAPE;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) sum[0] += x[i] * y[i];
    sum[1] += (double)s[0].rows;
    return PLAIT_OK;
}

/* y += a x */
static plait_status axpy(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes, void *answer,
                         size_t answer_bytes) {
    (void)user; (void)answer; (void)answer_bytes;
    const double *x = s[0].values, *a = args;
    double       *y = s[1].values;
    if (n != 2 || args_bytes != sizeof *a) return PLAIT_EINVAL;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) y[i] += *a * x[i];
    return PLAIT_OK;
}

static plait_status scale(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args_bytes; (void)answer; (void)answer_bytes;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) ((double *)s[0].values)[i] *= *(const double *)args;
    return PLAIT_OK;
}

static plait_status largest(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                            void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args; (void)args_bytes; (void)answer_bytes;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++)
        *(double *)answer = fmax(*(double *)answer, ((double *)s[0].values)[i]);
    return PLAIT_OK;
}

static void merge_largest(void *user, void *answer, const void *other, size_t bytes) {
    (void)user; (void)bytes;
    *(double *)answer = fmax(*(double *)answer, *(const double *)other);
}

static const plait_function functions[] = {
    { .name = "dot", .run = dot },
    { .name = "axpy", .run = axpy, .updates = 1 },
    { .name = "scale", .run = scale, .updates = 1 },
    { .name = "largest", .run = largest, .merge = merge_largest },
};
enum { FUNCTIONS = 4 };

static plait_status call_functions(plait_job *job, void *user) {
    const int64_t rows = *(const int64_t *)user;
    plait_comm   *comm = plait_job_comm(job);
    plait_table  *x, *y, *sparse, *both[2];
    double        answer[2], some[6], a = 0.5, top = 0, workers = plait_comm_workers(comm);
    const double *read;
    double       *ones = malloc((size_t)rows * 2 * sizeof *ones);
    for (int64_t i = 0; i < rows * 2; i++) ones[i] = 1;
    CHECK(make_table(job, "x", rows, 2, &x) == PLAIT_OK && make_table(job, "y", rows, 2, &y) == PLAIT_OK);
    CHECK(make_table(job, "s", 0, 1, &sparse) == PLAIT_OK);
    both[0] = x;
    both[1] = y;
    uint64_t me = (uint64_t)plait_comm_rank(comm) * 1000;
    CHECK(plait_table_inc_range(x, 0, rows, ones, 0) == PLAIT_OK);
    CHECK(plait_table_inc(sparse, 1, &me, ones, 0) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_table_call(both, 2, "axpy", &a, sizeof a, NULL, 0) == PLAIT_OK); /* y = workers / 2 */
    CHECK(plait_table_call(both, 2, "dot", NULL, 0, answer, 16) == PLAIT_OK);
    CHECK(answer[0] == (double)rows * 2 * workers * workers / 2 && answer[1] == (double)rows);
    CHECK(plait_table_read(y, 0, rows, (const void **)&read) == PLAIT_OK && read[2 * rows - 1] == workers / 2);
    CHECK(plait_job_barrier(job) == PLAIT_OK); /* nobody reads y any more */
    CHECK(plait_table_call(both, 2, "axpy", &a, sizeof a, NULL, 0) == PLAIT_OK);
    CHECK(plait_table_read(y, 0, rows, (const void **)&read) == PLAIT_OK && read[0] == workers);
    CHECK(plait_table_call(&y, 1, "largest", NULL, 0, &top, sizeof top) == PLAIT_OK && top == workers);
    CHECK(plait_table_call(&sparse, 1, "dot", NULL, 0, answer, 16) == PLAIT_OK);
    CHECK(answer[0] == workers && answer[1] == workers);
    a = 3;
    CHECK(plait_table_get_range(x, 0, 3, some) == PLAIT_OK && some[5] == workers);
    CHECK(plait_table_call(&x, 1, "scale", &a, sizeof a, NULL, 0) == PLAIT_OK); /* no copy of before is read again */
    CHECK(plait_table_get_range(x, 0, 3, some) == PLAIT_OK && some[5] == 3 * workers);
    CHECK(plait_table_call(&sparse, 1, "scale", &a, sizeof a, NULL, 0) == PLAIT_OK);
    CHECK(plait_table_get(sparse, 1, &me, answer) == PLAIT_OK && answer[0] == 3);
    CHECK(plait_table_call(&x, 1, "dott", NULL, 0, answer, 16) == PLAIT_ENAME);
    CHECK(strstr(plait_comm_error(comm)->text, "dot") != NULL);
    CHECK(plait_table_call((plait_table *[]){ x, sparse }, 2, "dot", NULL, 0, answer, 16) == PLAIT_ESHAPE);
    CHECK(plait_table_call(&x, 1, "dot", NULL, 0, answer, 8) == PLAIT_ESHAPE); /* what the function returned */
    free(ones);
    return PLAIT_OK;
}

static void test_functions(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    static const int64_t     sizes[] = { 7, 3000 };
    for (int t = 0; t < 3; t++)
        for (int s = 0; s < 2; s++)
            for (int32_t workers = 1; workers <= 4; workers += workers)
                run_ok(workers, 0, topologies[t], "bsp", functions, FUNCTIONS, call_functions, (void *)&sizes[s]);
    run_ok(3, 2, "ps", "bsp", functions, FUNCTIONS, call_functions, (void *)&sizes[1]);
}

/* What read() lends stays until the clock, however much is lent. */
static plait_status read_many(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    plait_table  *x;
    enum { ROWS = 4000, READS = 40 };
    const double *read[READS];
    static double ones[ROWS];
    (void)user;
    CHECK(make_table(job, "x", ROWS, 1, &x) == PLAIT_OK);
    for (int clock = 0; clock < 3; clock++) {
        if (clock == 1) CHECK(plait_table_inc_range(x, 0, ROWS, ones, 0) == PLAIT_OK); /* own updates are laid over */
        for (int i = 0; i < READS; i++)
            CHECK(plait_table_read(x, i, ROWS - READS, (const void **)&read[i]) == PLAIT_OK);
        for (int i = 0; i < READS; i++)
            for (int64_t row = 0; row < ROWS - READS; row++) CHECK(read[i][row] == 0);
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_reads(void **state) {
    (void)state;
    static const char *const ways[][2] = {
        { "local", "bsp" }, { "local", "async" }, { "allreduce", "bsp" }, { "ps", "ssp:1" }, { "ps", "async" }
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        run_ok(3, 0, ways[i][0], ways[i][1], NULL, 0, read_many, NULL);
}

static plait_status refuse_update(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       a = 1, answer[2];
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    CHECK(plait_table_call(&x, 1, "scale", &a, sizeof a, NULL, 0) == PLAIT_EREFUSED);
    CHECK(plait_table_call(&x, 1, "dot", NULL, 0, answer, 16) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status differ(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       a = plait_comm_rank(comm);
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    CHECK(plait_table_call(&x, 1, "scale", &a, sizeof a, NULL, 0) == PLAIT_EMISMATCH);
    return PLAIT_OK;
}

static void test_functions_refused(void **state) {
    (void)state;
    run_ok(2, 0, "ps", "ssp:1", functions, FUNCTIONS, refuse_update, NULL);
    run_ok(2, 0, "local", "async", functions, FUNCTIONS, refuse_update, NULL);
    run_ok(2, 0, "ps", "bsp", functions, FUNCTIONS, differ, NULL);
}

/* --- misuse ------------------------------------------------------------------------------------------------------- */

static plait_status misuse_creation(plait_job *job) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *again = NULL;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    CHECK(plait_table_create(job, NULL, &again) == PLAIT_EINVAL);
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EINVAL && again == NULL);
    CHECK(make_table(job, "x", 10, 2, &again) == PLAIT_EINVAL && make_table(job, "z", -1, 2, &again) == PLAIT_EINVAL);
    CHECK(make_table(job, "z", INT64_MAX / 8, INT64_MAX / 8, &again) == PLAIT_EINVAL);
    /* so many bytes no number holds */
    CHECK(make_table(job, "z", PLI_TABLE_VALUES_MAX / 3 + 1, 3, &again) == PLAIT_EINVAL);
    opts.name = "z";
    opts.rows = 4;
    opts.rule.name = "adem";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_ENAME);
    CHECK(strstr(plait_comm_error(comm)->text, "adam") != NULL);
    opts.rule.name = "adam";
    opts.consistency = "spp:2";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_ENAME && strstr(plait_comm_error(comm)->text, "ssp") != NULL);
    opts.consistency = "ssp:x";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EINVAL);
    opts.consistency = "local-sgd:0";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EINVAL);
    opts.consistency = "ssp:1";
    opts.topology = "allreduce";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EREFUSED);
    opts.topology = "gossip:ring";
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EREFUSED);
    opts.topology = NULL;
    opts.size = 3;
    CHECK(plait_table_create(job, &opts, &again) == PLAIT_EINVAL);
    return PLAIT_OK;
}

static plait_status misuse(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x, *s, *again = NULL;
    double       value[4] = { 0 };
    const void  *read;
    uint64_t     far = 10, keys[2] = { 3, 9 };
    (void)user;
    CHECK(make_table(job, "x", 10, 2, &x) == PLAIT_OK && make_table(job, "s", 0, 1, &s) == PLAIT_OK);
    CHECK(misuse_creation(job) == PLAIT_OK);
    CHECK(plait_table_get(x, 1, &far, value) == PLAIT_EINVAL && strstr(plait_comm_error(comm)->text, "key 10") != NULL);
    CHECK(plait_table_get(x, -1, keys, value) == PLAIT_EINVAL && plait_table_get(x, 1, NULL, value) == PLAIT_EINVAL);
    CHECK(plait_table_get_range(x, 9, 2, value) == PLAIT_EINVAL &&
          plait_table_get_range(x, -1, 1, value) == PLAIT_EINVAL);
    CHECK(plait_table_get_range(x, INT64_MAX, INT64_MAX, value) == PLAIT_EINVAL);
    CHECK(plait_table_get_range(s, 0, 1, value) == PLAIT_EINVAL && plait_table_read(s, 0, 1, &read) == PLAIT_EINVAL);
    CHECK(plait_table_inc(x, 1, &far, value, 0) == PLAIT_EINVAL &&
          plait_table_inc(x, 1, keys, value, -1) == PLAIT_EINVAL);
    CHECK(plait_table_get(s, 2, keys, value) == PLAIT_OK && value[0] == 0 && value[1] == 0);
    CHECK(plait_table_get(x, 0, NULL, NULL) == PLAIT_OK && plait_table_inc(x, 0, NULL, NULL, 0) == PLAIT_OK);
    CHECK(plait_table_read(x, 3, 0, &read) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(make_table(job, "late", 10, 2, &again) == PLAIT_OK && plait_table_drop(&again) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status other_options(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    (void)user;
    CHECK(make_table(job, "x", 10 + plait_comm_rank(comm), 1, &x) == PLAIT_EMISMATCH);
    return PLAIT_OK;
}

static void test_misuse(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    for (int t = 0; t < 3; t++)
        for (int32_t workers = 1; workers <= 3; workers += 2) {
            run_ok(workers, 0, topologies[t], "bsp", NULL, 0, misuse, NULL);
            if (workers > 1) run_ok(workers, 0, topologies[t], "bsp", NULL, 0, other_options, NULL);
        }
    run_ok(2, 0, "local", "async", NULL, 0, misuse, NULL);
}

static plait_status check_pair(const char *topology, const char *consistency, bool one_process, plait_error *err) {
    return pli_pair_check(&(pli_pair){ .topology = topology, .consistency = consistency,
                                       .one_process = one_process }, err);
}

static void test_refused_pairs(void **state) {
    (void)state;
    plait_error err;
    static const struct {
        const char *consistency;
        bool local, allreduce;
    } matrix[] = {
        { "bsp", true, true },
        { "ssp:2", true, false },
        { "essp:2", false, false },
        { "asp:4:20", true, false },
        { "bounded-delay:2", true, true },
        { "sequential", true, false },
        { "async", true, false },
        { "vap:0.1", true, false },
        { "vap:0.1:weak", true, false },
        { "downpour:2:2", false, false },
        { "local-sgd:3", false, true },
    };
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) {
        const char *consistency = matrix[i].consistency;
        assert_int_equal(check_pair("local", consistency, true, &err), matrix[i].local ? PLAIT_OK : PLAIT_EREFUSED);
        assert_int_equal(check_pair("allreduce", consistency, true, &err),
                         matrix[i].allreduce ? PLAIT_OK : PLAIT_EREFUSED);
        assert_int_equal(check_pair("ps", consistency, true, &err), PLAIT_OK);
        assert_int_equal(check_pair("ps", consistency, false, &err), PLAIT_OK);
        assert_int_equal(check_pair("local", consistency, false, &err), PLAIT_EREFUSED);
    }
    assert_int_equal(check_pair("local", "essp:3", true, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "local x ssp:3"));
    assert_int_equal(check_pair("local", "bsp", false, &err), PLAIT_EREFUSED);
    assert_int_equal(check_pair("allreduce", "ssp:2", true, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "nearest is allreduce x bounded-delay:2, or ps x ssp:2"));
    assert_int_equal(check_pair("allreduce", "asp:4:20", true, &err), PLAIT_EREFUSED);
    assert_non_null(strstr(err.text, "nearest is allreduce x bounded-delay:4, or ps x asp:4:20"));
    assert_int_equal(check_pair("allreduce", "async", true, &err), PLAIT_EREFUSED);
    assert_int_equal(check_pair("ps", "ssp", false, &err), PLAIT_EINVAL);
    assert_int_equal(check_pair("ps", "bsp:1", false, &err), PLAIT_EINVAL);
    for (int one_process = 0; one_process < 2; one_process++) {
        pli_pair hybrid = { .topology = "hybrid", .consistency = "bsp", .one_process = one_process };
        for (hybrid.fill = PLI_FILL_ANY; hybrid.fill <= PLI_FILL_SPARSE; hybrid.fill++)
            assert_int_equal(pli_pair_check(&hybrid, &err), PLAIT_OK);
        hybrid.consistency = "ssp:2";
        for (hybrid.fill = PLI_FILL_ANY; hybrid.fill <= PLI_FILL_SPARSE; hybrid.fill++)
            assert_int_equal(pli_pair_check(&hybrid, &err), hybrid.fill == PLI_FILL_DENSE ? PLAIT_EREFUSED : PLAIT_OK);
        hybrid.fill = PLI_FILL_DENSE;
        assert_int_equal(pli_pair_check(&hybrid, &err), PLAIT_EREFUSED);
        assert_non_null(strstr(err.text, "under hybrid a table with dense updates travels by allreduce"));
        hybrid.consistency = "bps";
        assert_int_equal(pli_pair_check(&hybrid, &err), PLAIT_ENAME);
    }
    assert_int_equal(check_pair("pss", "bsp", false, &err), PLAIT_ENAME);
    assert_int_equal(check_pair("gosip:ring", "bsp", false, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "did you mean 'gossip'"));
    assert_int_equal(check_pair("ps:ring", "bsp", false, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "takes no parameters"));
}

/* What a refusal names as nearest, "T x C", and where there is one "or T x C", trains itself. */
static void check_nearest(const char *text, bool one_process) {
    char        topology[PLI_TOPOLOGY_TEXT], consistency[PLI_CONSISTENCY_TEXT];
    plait_error err;
    const char *at = strstr(text, "nearest is ");
    for (at += sizeof "nearest is " - 1; at != NULL;
         at = strstr(at, ", or ") == NULL ? NULL : strstr(at, ", or ") + 5) {
        assert_int_equal(sscanf(at, "%31[^ ] x %47[^ ,]", topology, consistency), 2);
        if (check_pair(topology, consistency, one_process, &err) < 0) fail_msg("%s: %s", text, err.text);
    }
}

static void test_the_nearest_trains(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps", "hybrid", "gossip:ring", "gossip:exp" };
    static const char *const consistencies[] = { "bsp",          "ssp:2",           "essp:3",
                                                 "asp:4:20",     "bounded-delay:2", "sequential",
                                                 "vap:0.1:weak", "downpour:2:3",    "async",
                                                 "local-sgd:4" };
    int32_t refused = 0;
    for (size_t t = 0; t < sizeof topologies / sizeof *topologies; t++)
        for (size_t c = 0; c < sizeof consistencies / sizeof *consistencies; c++)
            for (int one_process = 0; one_process < 2; one_process++) {
                plait_error err;
                if (check_pair(topologies[t], consistencies[c], one_process, &err) >= 0) continue;
                check_nearest(err.text, one_process);
                refused++;
            }
    assert_int_equal(refused, 10 + 3 + 2 * (7 + 2 * 7)); /* local across processes, local, allreduce, gossip */
}

/* --- a clock in two halves ---------------------------------------------------------------------------------------- */

/* Whatever comes between them ends the clock first. */
static plait_status between_halves(plait_job *job, void *user) {
    plait_comm    *comm = plait_job_comm(job);
    int32_t        w = plait_comm_workers(comm);
    plait_table   *x, *s;
    plait_request *ticked = NULL, *again = NULL;
    const double  *read;
    double         one = 1, value = 0;
    uint64_t       key = 7;
    (void)user;
    CHECK(make_table(job, "x", 1000, 1, &x) == PLAIT_OK && make_table(job, "s", 0, 1, &s) == PLAIT_OK);
    for (int64_t clock = 0; clock < 12; clock++) {
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK && plait_table_inc(s, 1, &key, &one, 0) == PLAIT_OK);
        CHECK(plait_job_clock_begin(job, &ticked) == PLAIT_OK && plait_job_clock_now(job) == clock);
        switch (clock % 6) {
        case 0: CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == (double)(w * (clock + 1))); break;
        case 1:
            CHECK(plait_table_read(x, 7, 1, (const void **)&read) == PLAIT_OK && *read == (double)(w * (clock + 1)));
            break;
        case 2: CHECK(plait_table_inc(x, 0, &key, &one, 0) == PLAIT_OK); break;
        case 3: CHECK(plait_job_barrier(job) == PLAIT_OK); break;
        case 4: CHECK(plait_table_get(s, 1, &key, &value) == PLAIT_OK && value == (double)(w * (clock + 1))); break;
        default: break;
        }
        CHECK(plait_job_clock_now(job) == clock + (clock % 6 < 5));
        CHECK(plait_request_wait(&ticked) == PLAIT_OK && plait_job_clock_now(job) == clock + 1);
    }
    CHECK(plait_job_clock_begin(job, &ticked) == PLAIT_OK && plait_job_clock_begin(job, &again) == PLAIT_OK);
    CHECK(plait_job_clock_now(job) == 13 && plait_request_wait(&ticked) == PLAIT_OK && plait_job_clock_now(job) == 13);
    CHECK(plait_request_wait(&again) == PLAIT_OK && plait_job_clock_now(job) == 14);
    return plait_job_clock_begin(job, &ticked) < 0 ? PLAIT_EDIVERGED : plait_request_wait(&ticked);
}

static void test_what_comes_between_the_halves_of_a_clock(void **state) {
    (void)state;
    for (int32_t workers = 1; workers < 5; workers++)
        for (int t = 0; t < 3; t++)
            run_ok(workers, 0, t == 0 ? "allreduce" : t == 1 ? "ps" : "hybrid", "bsp", NULL, 0, between_halves, NULL);
}

/* --- own updates, requests, reads --------------------------------------------------------------------------------- */

/* Two rows were given 1 + 4 and 2: the worker reads at least that. Under Hogwild others write between two reads, and
 * over what was written. */
static bool holds_own(const plait_table *table, const double *value) {
    bool races =
        strcmp(plait_table_topology(table), "local") == 0 && strcmp(plait_table_consistency(table), "async") == 0;
    return races ? value[0] > 0 && value[1] > 0 : value[0] >= 5 && value[1] >= 2 && value[2] == value[0];
}

static plait_status own_updates(plait_job *job, void *user) {
    plait_comm     *comm = plait_job_comm(job);
    plait_table    *x, *s;
    plait_request  *got = NULL, *pushed = NULL, *ticked = NULL;
    int64_t         n;
    uint64_t       *all, keys[3] = { 900, 2, 900 };
    double          one[3] = { 1, 2, 4 }, value[3], *values;
    const double   *read, *again;
    (void)user;
    CHECK(make_table(job, "x", 1000, 1, &x) == PLAIT_OK && make_table(job, "s", 0, 1, &s) == PLAIT_OK);
    CHECK(plait_table_inc(x, 3, keys, one, 0) == PLAIT_OK && plait_table_inc(s, 3, keys, one, 0) == PLAIT_OK);
    CHECK(plait_table_get(x, 3, keys, value) == PLAIT_OK && holds_own(x, value));
    CHECK(plait_table_get(s, 3, keys, value) == PLAIT_OK && holds_own(s, value));
    CHECK(plait_table_read(x, 0, 1000, (const void **)&read) == PLAIT_OK && read[900] >= 5 && read[2] >= 2);
    CHECK(plait_table_read(x, 900, 1, (const void **)&again) == PLAIT_OK && again[0] >= 5 && read[2] >= 2);
    CHECK(plait_table_get_begin(x, 3, keys, value, &got) == PLAIT_OK);
    CHECK(plait_table_inc_begin(s, 1, keys, one, 0, &pushed) == PLAIT_OK);
    CHECK(plait_request_wait(&pushed) == PLAIT_OK && pushed == NULL);
    CHECK(plait_job_clock_begin(job, &ticked) == PLAIT_OK && plait_request_wait(&ticked) == PLAIT_OK);
    CHECK(plait_request_wait(&got) == PLAIT_OK && value[0] >= 5);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    double workers = plait_comm_workers(comm);
    CHECK(plait_table_get(s, 3, keys, value) == PLAIT_OK && value[0] == 6 * workers && value[1] == 2 * workers);
    CHECK(plait_table_dump(s, &n, &all, (void **)&values) == PLAIT_OK);
    CHECK(n == 2 && all[0] == 2 && all[1] == 900 && values[0] == 2 * workers && values[1] == 6 * workers);
    plait_comm_free(all);
    plait_comm_free(values);
    return PLAIT_OK;
}

/* Updates sent while a get of their table is under way: that get misses nothing that was there when it began, a later
 * one misses nothing. Each worker has a row of its own; dense by range and by key, and sparse tables. */
static plait_status own_updates_under_way(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *x[3];
    plait_request   *got, *whole_got, *pushed;
    uint64_t         key = (uint64_t)plait_comm_rank(comm);
    double           one = 1, value, whole[20] = { 0 };
    const char      *rule = user;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.type = PLAIT_F64;
    opts.rule.name = rule;
    opts.rule.learning_rate = 1;
    for (int shape = 0; shape < 3; shape++) {
        opts.name = (const char *const[]){ "range", "keyed", "sparse" }[shape];
        opts.rows = shape == 2 ? 0 : 20;
        opts.keyed = shape == 1;
        CHECK(plait_table_create(job, &opts, &x[shape]) == PLAIT_OK);
    }
    for (int clock = 0; clock < 4; clock++)
        for (int shape = 0; shape < 3; shape++) {
            double had = 2 * clock, sure = rule == NULL ? had + 1 : had; /* on ruled tables: of clocks before */
            CHECK(plait_table_inc(x[shape], 1, &key, &one, 1) == PLAIT_OK);
            CHECK(plait_table_get_begin(x[shape], 1, &key, &value, &got) == PLAIT_OK);
            whole_got = NULL;
            if (shape < 2) CHECK(plait_table_get_range_begin(x[shape], 0, 20, whole, &whole_got) == PLAIT_OK);
            CHECK(plait_table_inc_begin(x[shape], 1, &key, &one, 1, &pushed) == PLAIT_OK);
            if (clock % 2 == 0) CHECK(plait_request_wait(&pushed) == PLAIT_OK);
            CHECK(plait_request_wait(&got) == PLAIT_OK && plait_request_wait(&whole_got) == PLAIT_OK);
            CHECK(fabs(value) >= sure && fabs(value) <= had + 2);
            CHECK(shape == 2 || (fabs(whole[key]) >= sure && fabs(whole[key]) <= had + 2));
            if (clock % 2 == 1) CHECK(plait_request_wait(&pushed) == PLAIT_OK);
            sure = rule == NULL ? had + 2 : had;
            CHECK(plait_table_get(x[shape], 1, &key, &value) == PLAIT_OK && fabs(value) >= sure &&
                  fabs(value) <= had + 2);
            CHECK(shape == 2 || plait_table_get_range(x[shape], 0, 20, whole) == PLAIT_OK);
            CHECK(shape == 2 || (fabs(whole[key]) >= sure && fabs(whole[key]) <= had + 2));
            if (shape == 2) CHECK(plait_job_clock(job) == PLAIT_OK);
        }
    return plait_job_barrier(job);
}

static const char *const pairs[][2] = { { "local", "bsp" },
                                        { "local", "ssp:1" },
                                        { "local", "async" },
                                        { "allreduce", "bsp" },
                                        { "ps", "bsp" },
                                        { "ps", "ssp:1" },
                                        { "ps", "async" },
                                        { "ps", "essp:1" },
                                        { "ps", "asp:2:3" },
                                        { "ps", "bounded-delay:1" },
                                        { "ps", "vap:1.5" },
                                        { "ps", "vap:3:weak" },
                                        { "ps", "downpour:2:2" },
                                        { "ps", "sequential" },
                                        { "local", "sequential" },
                                        { "allreduce", "bounded-delay:0" },
                                        { "allreduce", "bounded-delay:2" } };
enum { PAIRS = sizeof pairs / sizeof *pairs };

static void test_own_updates(void **state) {
    (void)state;
    for (int p = 0; p < PAIRS; p++)
        for (int32_t workers = 1; workers <= 4; workers += workers)
            run_ok(workers, 0, pairs[p][0], pairs[p][1], NULL, 0, own_updates, NULL);
    run_ok(2, 3, "ps", "ssp:1", NULL, 0, own_updates, NULL);
    for (int p = 0; p < PAIRS; p++)
        for (int32_t workers = 1; workers <= 3; workers += 2) {
            run_ok(workers, 0, pairs[p][0], pairs[p][1], NULL, 0, own_updates_under_way, NULL);
            if (strcmp(pairs[p][1], "bsp") != 0 && strcmp(pairs[p][0], "allreduce") != 0)
                run_ok(workers, 0, pairs[p][0], pairs[p][1], NULL, 0, own_updates_under_way, "sgd");
        }
}

/* --- backup workers ----------------------------------------------------------------------------------------------- */

enum { TAG_GO = 5, AHEAD = 10 };

/* Worker 0 goes ahead; worker 1 then hears that its clocks are over, and skips them. */
static plait_status fall_behind(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       one = 1, value;
    uint64_t     key = 4;
    bool         slow = plait_comm_rank(comm) == 1;
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    if (slow) {
        CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == 0 && !plait_job_is_late(job));
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK);
        CHECK(plait_comm_send(comm, 0, TAG_GO, NULL, 0) == PLAIT_OK);
        CHECK(plait_comm_recv(comm, 0, TAG_GO, NULL, 0, NULL, NULL) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK); /* dropped */
        CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == AHEAD && plait_job_is_late(job));
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK); /* dropped too, although it was told */
        int skipped = 0;
        for (; plait_job_is_late(job); skipped++) CHECK(plait_job_clock(job) == PLAIT_OK);
        CHECK(skipped == AHEAD - 2 && plait_job_clock_now(job) == AHEAD);
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK); /* is in time */
        CHECK(plait_comm_send(comm, 0, TAG_GO, NULL, 0) == PLAIT_OK);
    } else {
        CHECK(plait_comm_recv(comm, 1, TAG_GO, NULL, 0, NULL, NULL) == PLAIT_OK);
        for (int clock = 0; clock < AHEAD; clock++) {
            CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == clock && !plait_job_is_late(job));
            CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
        }
        CHECK(plait_comm_send(comm, 1, TAG_GO, NULL, 0) == PLAIT_OK);
        CHECK(plait_comm_recv(comm, 1, TAG_GO, NULL, 0, NULL, NULL) == PLAIT_OK);
        CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK && plait_job_dropped(job) == 2);
    CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == AHEAD + 1);
    return PLAIT_OK;
}

static plait_status refuse_backup(plait_job *job, void *user) {
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *x;
    plait_table_opts opts;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "x";
    opts.rows = 4;
    opts.topology = "ps";
    opts.consistency = "ssp:1";
    CHECK(plait_table_create(job, &opts, &x) == PLAIT_EREFUSED &&
          strstr(plait_comm_error(comm)->text, "backup") != NULL);
    opts.consistency = "bsp";
    opts.topology = "allreduce";
    CHECK(plait_table_create(job, &opts, &x) == PLAIT_EREFUSED &&
          strstr(plait_comm_error(comm)->text, "backup") != NULL);
    opts.topology = "ps";
    opts.rule.name = "sgd";
    opts.rule.staleness_aware = 1;
    CHECK(plait_table_create(job, &opts, &x) == PLAIT_EREFUSED &&
          strstr(plait_comm_error(comm)->text, "staleness") != NULL);
    opts.consistency = "essp:1";
    CHECK(plait_table_create(job, &opts, &x) == PLAIT_EREFUSED &&
          strstr(plait_comm_error(comm)->text, "unasked") != NULL);
    return PLAIT_OK;
}

static void test_backup_workers(void **state) {
    (void)state;
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.workers = 2;
    for (int32_t local = 0; local < 2; local++) {
        job_opts.topology = local ? "local" : "ps";
        job_opts.backup = 1;
        if (plait_run(&comm_opts, &job_opts, fall_behind, NULL, &err) < 0)
            fail_msg("%s: %s", job_opts.topology, err.text);
        if (plait_run(&comm_opts, &job_opts, refuse_backup, NULL, &err) < 0)
            fail_msg("%s: %s", job_opts.topology, err.text);
    }
    job_opts.backup = 2;
    assert_int_equal(plait_run(&comm_opts, &job_opts, refuse_backup, NULL, &err), PLAIT_EINVAL);
    assert_non_null(strstr(err.text, "2 backup workers of 2"));
}

/* --- leaving, dying, bytes ---------------------------------------------------------------------------------------- */

static plait_status leave_early(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       one = 1, value;
    uint64_t     key = 4;
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    for (int clock = 0; clock < 5; clock++) {
        CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK);
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK);
        if (clock == 2 && plait_comm_rank(comm) == 1) {
            CHECK(plait_job_leave(job) == PLAIT_OK);
            CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_EINVAL && plait_job_clock(job) == PLAIT_EINVAL);
            break;
        }
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK);
    double all = 5 * plait_comm_workers(comm) - 3; /* of the leaver's five, two ended a clock */
    bool   early =
        strncmp(plait_table_consistency(x), "vap", 3) == 0 || strncmp(plait_table_consistency(x), "downpour", 8) == 0;
    CHECK(value == all || (early && value == all + 1)); /* the third was sent already, or held back with the others */
    return PLAIT_OK;
}

/* A worker that has left takes part in the others' update-type calls, from the clock it has stayed in. */
static plait_status call_after_leaving(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       one = 1, three = 3, value;
    uint64_t     key = 4;
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    for (int clock = 0; clock < 4; clock++) {
        if (clock == 1 && plait_comm_rank(comm) == 1) {
            CHECK(plait_job_leave(job) == PLAIT_OK);
            break;
        }
        CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_table_call(&x, 1, "scale", &three, sizeof three, NULL, 0) == PLAIT_OK);
    CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == 3 * (4 * plait_comm_workers(comm) - 3));
    return PLAIT_OK;
}

static plait_status die_early(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    double       value;
    uint64_t     key = 4;
    (void)user;
    CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
    for (int clock = 0; clock < 5; clock++) {
        if (clock == 2 && plait_comm_rank(comm) == 1) return pli_fail(pli_comm_error(comm), PLAIT_EIO, "it died");
        plait_status status = plait_table_get(x, 1, &key, &value);
        if (status == PLAIT_EPEER || status == PLAIT_ECOMM) return status;
        CHECK(status == PLAIT_OK && plait_job_clock(job) >= PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_departures(void **state) {
    (void)state;
    plait_error err;
    for (int p = 0; p < PAIRS; p++) {
        if (strcmp(pairs[p][0], "allreduce") == 0) continue;
        if (strcmp(pairs[p][1], "async") == 0 && strcmp(pairs[p][0], "local") == 0) continue; /* incs are at once */
        run_ok(3, 0, pairs[p][0], pairs[p][1], NULL, 0, leave_early, NULL);
    }
    run_ok(3, 2, "ps", "bsp", NULL, 0, leave_early, NULL);
    run_ok(3, 2, "ps", "bsp", functions, FUNCTIONS, call_after_leaving, NULL);
    int64_t live = pli_alloc_live();
    for (int p = 0; p < PAIRS; p++) {
        assert_true(run_on(3, 0, pairs[p][0], pairs[p][1], NULL, 0, die_early, NULL, &err) < 0);
        assert_int_equal(err.rank, 1);
        assert_non_null(strstr(err.text, "it died"));
        assert_int_equal(pli_alloc_live(), live);
    }
}

/* Jobs one after the other on the same ranks: nothing of a job reaches the one before or after it. */
static plait_status many_jobs(plait_comm *comm, void *user) {
    const int jobs = *(const int *)user;
    for (int i = 0; i < jobs; i++) {
        plait_job_opts opts;
        plait_job     *job = NULL;
        plait_table   *x;
        double         one = 1, value;
        uint64_t       key = 3;
        plait_job_opts_init(&opts);
        opts.topology = i % 3 == 0 ? "local" : "ps";
        opts.consistency = i % 2 == 0 ? "bsp" : "async";
        PLI_TRY(plait_job_create(comm, &opts, &job));
        if (pli_comm_is_worker(comm)) {
            CHECK(make_table(job, "x", 10, 1, &x) == PLAIT_OK);
            CHECK(plait_table_inc(x, 1, &key, &one, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
            CHECK(plait_job_barrier(job) == PLAIT_OK);
            CHECK(plait_table_get(x, 1, &key, &value) == PLAIT_OK && value == plait_comm_workers(comm));
        }
        PLI_TRY(plait_job_destroy(&job));
    }
    return PLAIT_OK;
}

static void test_jobs_in_turn(void **state) {
    (void)state;
    static const int32_t ranks[][2] = { { 1, 0 }, { 3, 0 }, { 1, 1 }, { 2, 3 } };
    plait_error          err;
    plait_comm_opts      opts;
    int                  jobs = 200;
    for (size_t k = 0; k < sizeof ranks / sizeof *ranks; k++) {
        int64_t live = pli_alloc_live();
        plait_comm_opts_init(&opts);
        opts.transport = "threads";
        opts.workers = ranks[k][0];
        opts.servers = ranks[k][1];
        opts.timeout_ns = UINT64_C(60) * 1000000000;
        if (plait_comm_run(&opts, many_jobs, &jobs, &err) < 0)
            fail_msg("%d+%d ranks: rank %d: %s", ranks[k][0], ranks[k][1], err.rank, err.text);
        assert_int_equal(pli_alloc_live(), live);
    }
}

static plait_status one_round(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    const void  *read;
    double      *ones = calloc(2000, sizeof *ones);
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "x";
    opts.rows = 2000;
    opts.type = PLAIT_F64;
    opts.initial = ones;
    uint64_t before = plait_comm_bytes_sent(comm);
    CHECK(plait_table_create(job, &opts, &x) == PLAIT_OK);
    CHECK(plait_table_read(x, 0, 2000, &read) == PLAIT_OK);
    CHECK(plait_table_inc_range(x, 0, 2000, ones, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    *(uint64_t *)user = plait_comm_bytes_sent(comm) - before;
    free(ones);
    return PLAIT_OK;
}

static void test_bytes(void **state) {
    (void)state;
    uint64_t bytes = 0;
    run_ok(1, 0, "local", "bsp", NULL, 0, one_round, &bytes);
    assert_int_equal(bytes, 0);
    run_ok(1, 1, "local", "bsp", NULL, 0, one_round, &bytes);
    assert_int_equal(bytes, 0);
    run_ok(1, 1, "ps", "bsp", NULL, 0, one_round, &bytes);
    assert_true(bytes >= 32000 && bytes < 32000 + 1500); /* the first values, and one push */
}

/* --- the n-th allocation fails ------------------------------------------------------------------------------------ */

static plait_status small_job(plait_job *job, void *user) {
    const char  *rule = user;
    plait_table *x, *s;
    const void  *read;
    double       value[300] = { 0 };
    uint64_t     keys[3] = { 1, 7, 200 };
    int64_t      n;
    uint64_t    *all;
    void        *values;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "x";
    opts.rows = 300;
    opts.type = PLAIT_F64;
    opts.rule.name = rule;
    opts.initial = value;
    PLI_TRY(plait_table_create(job, &opts, &x));
    opts.name = "s";
    opts.rows = 0;
    opts.initial = NULL;
    PLI_TRY(plait_table_create(job, &opts, &s));
    for (int clock = 0; clock < 2; clock++) {
        PLI_TRY(plait_table_read(x, 0, 300, &read));
        PLI_TRY(plait_table_get(s, 3, keys, value));
        PLI_TRY(plait_table_inc_range(x, 0, 300, value, 1));
        PLI_TRY(plait_table_inc(s, 3, keys, value, 1));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_table_dump(s, &n, &all, &values));
    plait_comm_free(all);
    plait_comm_free(values);
    return plait_job_barrier(job);
}

static void test_failed_allocations(void **state) {
    (void)state;
    static const char *const rules[] = { NULL, "adam" };
    plait_error err;
    int64_t     live = pli_alloc_live(), points = 0;
    for (int p = 0; p < PAIRS; p++)
        for (int r = 0; r < 2; r++)
            for (int64_t k = 0;; k++, points++) {
                pli_alloc_fail_after(k);
                plait_status status =
                    run_on(1, 0, pairs[p][0], pairs[p][1], NULL, 0, small_job, (void *)rules[r], &err);
                pli_alloc_fail_after(-1);
                if (pli_alloc_live() != live)
                    fail_msg("%s x %s, allocation %d: %d blocks left (%s)", pairs[p][0], pairs[p][1], (int)k,
                             (int)(pli_alloc_live() - live), err.text);
                if (status == PLAIT_OK && k > 400) break; /* some are caches that may do without */
                if (status != PLAIT_OK && status != PLAIT_ENOMEM)
                    fail_msg("%s x %s, allocation %d: %s", pairs[p][0], pairs[p][1], (int)k, err.text);
            }
    assert_true(points > 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_functions_refused),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_refused_pairs),
        cmocka_unit_test(test_the_nearest_trains),
        cmocka_unit_test(test_backup_workers),
        cmocka_unit_test(test_own_updates),
        cmocka_unit_test(test_departures),
        cmocka_unit_test(test_what_comes_between_the_halves_of_a_clock),
        cmocka_unit_test(test_jobs_in_turn),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_failed_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
