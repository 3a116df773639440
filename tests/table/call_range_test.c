/* Server functions over ranges of rows: what they see and update, by every topology that has them; which shards are
 * asked, counted by messages (the linker's --wrap); exact sums whose bits do not depend on the shards; an event log
 * that the audit proves; snapshots; and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/server/functions.h"
#include "table/state/snap.h"
#include "tensor/exact_cells.h"
#include "watched.h"

enum { ROWS = 3000, COLS = 2, DRAWS = 30 };

/* --- what shards are asked ---------------------------------------------------------------------------------------- */

static _Atomic int64_t calls_received; /* by all servers */
static _Atomic int64_t runs;           /* of functions, on all shards */

bool __real_pli_server_check_call(const pli_server *server, const pli_msg *msg, plait_error *err);
bool __wrap_pli_server_check_call(const pli_server *server, const pli_msg *msg, plait_error *err);

bool __wrap_pli_server_check_call(const pli_server *server, const pli_msg *msg, plait_error *err) {
    atomic_fetch_add(&calls_received, 1);
    return __real_pli_server_check_call(server, msg, err);
}

/* --- functions ---------------------------------------------------------------------------------------------------- */

typedef struct totals {
    double sum, rows, of_numbers; /* of x y; how many rows; sum of their numbers in the table */
} totals;

static plait_status dot(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes, void *answer,
                        size_t answer_bytes) {
    const double *x = s[0].values, *y = s[n - 1].values;
    totals       *t = answer;
    (void)user; (void)args; (void)args_bytes; (void)answer_bytes;
    atomic_fetch_add(&runs, 1);
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) t->sum += x[i] * y[i];
    for (int64_t row = 0; row < s[0].rows; row++) t->of_numbers += (double)(s[0].first + row);
    t->rows += (double)s[0].rows;
    return PLAIT_OK;
}

static plait_status scale(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                          void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args_bytes; (void)answer; (void)answer_bytes;
    atomic_fetch_add(&runs, 1);
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) ((double *)s[0].values)[i] *= *(const double *)args;
    return PLAIT_OK;
}

/* answer: one exact sum of all values, in the form that pli_cells_round rounds. */
static plait_status exact_sum(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes,
                              void *answer, size_t answer_bytes) {
    (void)user; (void)n; (void)args; (void)args_bytes;
    if (answer_bytes != PLI_CELL_BYTES_F64) return PLAIT_ESHAPE;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++)
        pli_cells_add(true, 1, (const double *)s[0].values + i, answer);
    return PLAIT_OK;
}

static void merge_exactly(void *user, void *answer, const void *other, size_t bytes) {
    (void)user;
    pli_cells_merge(true, (int64_t)(bytes / PLI_CELL_BYTES_F64), answer, other, answer);
}

static const plait_function functions[] = {
    { .name = "dot", .run = dot },
    { .name = "scale", .run = scale, .updates = 1 },
    { .name = "exact", .run = exact_sum, .merge = merge_exactly },
};

static plait_status make(plait_job *job, const char *name, int64_t rows, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.cols = COLS;
    opts.type = PLAIT_F64;
    return plait_table_create(job, &opts, table_out);
}

static void run_ok(const char *topology, const char *consistency, int32_t workers, int32_t servers, bool logs,
                   plait_work_fn *work, void *user) {
    watched run = watched_run_of(work, user, workers, servers);
    char    why[640];
    run.job.topology = topology;
    run.job.consistency = consistency;
    run.job.functions = functions;
    run.job.n_functions = sizeof functions / sizeof *functions;
    run.logs = logs;
    if (!watched_play(&run, why, sizeof why))
        fail_msg("%s x %s, %d+%d ranks: %s", topology, consistency, workers, servers, why);
}

/* --- what a call sees and updates --------------------------------------------------------------------------------- */

static double first_value(int64_t i) { return (double)(i % 97 + 1); }

static plait_status fill(plait_table *x, plait_table *y) {
    static _Thread_local double delta[ROWS * COLS];
    plait_comm                 *comm = plait_job_comm(x->job);
    for (int64_t i = 0; i < ROWS * COLS; i++) delta[i] = plait_comm_rank(comm) == 0 ? first_value(i) : 0;
    PLI_TRY(plait_table_inc_range(x, 0, ROWS, delta, 0));
    for (int64_t i = 0; i < ROWS * COLS; i++) delta[i] = plait_comm_rank(comm) == 0 ? 2 : 0;
    PLI_TRY(plait_table_inc_range(y, 0, ROWS, delta, 0));
    return plait_job_clock(x->job);
}

static totals totals_of(int64_t first, int64_t n, const double *values) {
    totals t = { .rows = (double)n };
    for (int64_t i = first * COLS; i < (first + n) * COLS; i++) t.sum += values[i] * 2;
    for (int64_t row = first; row < first + n; row++) t.of_numbers += (double)row;
    return t;
}

/* Ranges of all sizes; the same on all workers. */
static void draw_range(pli_random *r, int draw, int64_t *first_out, int64_t *n_out) {
    *first_out = (int64_t)pli_random_below(r, ROWS + 1);
    *n_out = (int64_t)pli_random_below(r, (uint64_t)(ROWS - *first_out) + 1);
    if (draw % 4 == 1 && *n_out > 3) *n_out = 3;
    if (draw == 2) *n_out = 0;
    if (draw == 3) *first_out = 0, *n_out = ROWS;
}

static plait_status see_and_update(plait_job *job, void *user) {
    static _Thread_local double expected[ROWS * COLS], got[ROWS * COLS];
    const bool                  updates = *(const bool *)user;
    plait_comm                 *comm = plait_job_comm(job);
    plait_table                *x, *y;
    pli_random                  r = pli_random_at(11, PLI_RANDOM_DATA, 0, 0);
    for (int64_t i = 0; i < ROWS * COLS; i++) expected[i] = first_value(i);
    CHECK(make(job, "x", ROWS, &x) == PLAIT_OK && make(job, "y", ROWS, &y) == PLAIT_OK);
    CHECK(fill(x, y) == PLAIT_OK && plait_job_barrier(job) == PLAIT_OK);
    plait_table *const both[2] = { x, y };
    for (int draw = 0; draw < DRAWS; draw++) {
        int64_t first, n;
        totals  answer = { .sum = -1, .rows = -1 };
        draw_range(&r, draw, &first, &n);
        CHECK(plait_table_call_range(both, 2, first, n, "dot", NULL, 0, &answer, sizeof answer) == PLAIT_OK);
        const totals right = totals_of(first, n, expected);
        CHECK(answer.sum == right.sum && answer.rows == right.rows && answer.of_numbers == right.of_numbers);
        if (!updates) continue;
        CHECK(plait_table_get_range(x, 0, ROWS, got) == PLAIT_OK); /* a copy, which must not be read again */
        const double factor = draw % 2 == 0 ? 2 : 0.5;
        CHECK(plait_table_call_range(&x, 1, first, n, "scale", &factor, sizeof factor, NULL, 0) == PLAIT_OK);
        for (int64_t i = first * COLS; i < (first + n) * COLS; i++) expected[i] *= factor;
        CHECK(plait_table_get_range(x, 0, ROWS, got) == PLAIT_OK);
        CHECK(memcmp(got, expected, sizeof got) == 0);
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_a_call_sees_and_updates_its_range(void **state) {
    static const char *const with_updates[] = { "local", "allreduce", "hybrid", "ps" };
    static const char *const stale[][2] = { { "local", "async" }, { "local", "ssp:1" }, { "ps", "ssp:1" },
                                            { "ps", "async" }, { "allreduce", "bounded-delay:1" } };
    static bool              yes = true, no = false;
    (void)state;
    for (int32_t workers = 1; workers <= 4; workers++)
        for (size_t t = 0; t < sizeof with_updates / sizeof *with_updates; t++)
            run_ok(with_updates[t], "bsp", workers, 0, true, see_and_update, &yes);
    run_ok("ps", "bsp", 2, 3, true, see_and_update, &yes);
    run_ok("ps", "bounded-delay:0", 3, 0, true, see_and_update, &yes);
    for (size_t i = 0; i < sizeof stale / sizeof *stale; i++)
        run_ok(stale[i][0], stale[i][1], 3, 0, strcmp(stale[i][1], "async") != 0, see_and_update, &no);
}

/* --- which shards are asked --------------------------------------------------------------------------------------- */

/* x has 750 rows on each of four servers. One worker. */
static plait_status count_messages(plait_job *job, void *user) {
    static const struct { int64_t first, n, owners; } ranges[] = {
        { 0, ROWS, 4 }, { 0, 750, 1 }, { 749, 1, 1 }, { 749, 2, 2 }, { 751, 749, 1 }, { 1500, 751, 2 },
        { 10, ROWS - 20, 4 }, { 1500, 0, 0 }, { ROWS, 0, 0 },
    };
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x;
    const double one = 1;
    (void)user;
    CHECK(make(job, "x", ROWS, &x) == PLAIT_OK && x->spec.placement.shards == 4);
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        totals        answer;
        const int64_t first = ranges[i].first, n = ranges[i].n;
        atomic_store(&calls_received, 0), atomic_store(&runs, 0);
        CHECK(plait_table_call_range(&x, 1, first, n, "dot", NULL, 0, &answer, sizeof answer) == PLAIT_OK);
        CHECK(atomic_load(&calls_received) == ranges[i].owners && atomic_load(&runs) == ranges[i].owners);
        CHECK(plait_table_call_range(&x, 1, first, n, "scale", &one, sizeof one, NULL, 0) == PLAIT_OK);
        CHECK(atomic_load(&calls_received) == ranges[i].owners + 4 && atomic_load(&runs) == 2 * ranges[i].owners);
    }
    return PLAIT_OK;
}

static void test_only_owners_are_asked(void **state) {
    (void)state;
    run_ok("ps", "bsp", 1, 4, false, count_messages, NULL);
}

/* --- exact sums --------------------------------------------------------------------------------------------------- */

typedef struct exact_case {
    double sum[DRAWS]; /* of the first run */
    bool   known;
} exact_case;

static plait_status sum_exactly(plait_job *job, void *user) {
    static _Thread_local double delta[ROWS * COLS];
    exact_case                 *to = user;
    plait_comm                 *comm = plait_job_comm(job);
    plait_table                *x;
    pli_random                  r = pli_random_at(5, PLI_RANDOM_DATA, 0, 0);
    const bool                  mine = plait_comm_rank(comm) == 0;
    for (int64_t i = 0; i < ROWS * COLS; i++)
        delta[i] = pli_random_normal(&r) * (double)(UINT64_C(1) << pli_random_below(&r, 40)) * (mine ? 1 : 0);
    CHECK(make(job, "x", ROWS, &x) == PLAIT_OK);
    CHECK(plait_table_inc_range(x, 0, ROWS, delta, 0) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    r = pli_random_at(6, PLI_RANDOM_DATA, 0, 0);
    for (int draw = 0; draw < DRAWS; draw++) {
        int64_t first, n;
        double  sum;
        uint64_t cell[PLI_CELL_BYTES_F64 / 8];
        draw_range(&r, draw, &first, &n);
        PLI_TRY(plait_table_call_range(&x, 1, first, n, "exact", NULL, 0, cell, sizeof cell));
        pli_cells_round(true, 1, cell, &sum);
        if (!mine) continue;
        CHECK(!to->known || to->sum[draw] == sum);
        to->sum[draw] = sum;
    }
    return PLAIT_OK;
}

static void test_exact_sums_do_not_depend_on_shards(void **state) {
    exact_case to = { .known = false };
    (void)state;
    for (int32_t workers = 1; workers <= 4; workers++) {
        run_ok("ps", "bsp", workers, 0, false, sum_exactly, &to);
        to.known = true;
    }
    run_ok("ps", "bsp", 1, 3, false, sum_exactly, &to);
    run_ok("local", "bsp", 2, 0, false, sum_exactly, &to);
    run_ok("allreduce", "bsp", 2, 0, false, sum_exactly, &to);
    double any = 0;
    for (int i = 0; i < DRAWS; i++) any += fabs(to.sum[i]);
    assert_true(any > 0);
}

/* --- snapshots ---------------------------------------------------------------------------------------------------- */

static plait_status ones(void *user, const plait_slice *s, int32_t n, const void *args, size_t args_bytes, void *answer,
                         size_t answer_bytes) {
    (void)user; (void)n; (void)args; (void)args_bytes; (void)answer; (void)answer_bytes;
    for (int64_t i = 0; i < s[0].rows * s[0].cols; i++) ((double *)s[0].values)[i] = 1;
    return PLAIT_OK;
}

/* A snapshot holds zeros, whatever a function writes into the shard's range meanwhile; other pieces are not copied. */
static void test_a_snapshot_keeps_what_it_began_with(void **state) {
    static const plait_function fn = { .name = "ones", .run = ones, .updates = 1 };
    plait_table_opts opts;
    pli_spec         spec;
    pli_shard        shard, *const shards[1] = { &shard };
    pli_snap        *snap = NULL;
    plait_error      err;
    (void)state;
    plait_table_opts_init(&opts);
    opts.name = "x", opts.rows = ROWS, opts.cols = COLS, opts.type = PLAIT_F64;
    pli_snap_piece_bytes = 160; /* ten rows */
    assert_int_equal(pli_spec_make(0, &opts, "ps", "bsp", 1, NULL, &spec, NULL), PLAIT_OK);
    spec.placement = pli_placement_make(ROWS, pli_row_bytes(&spec), 0, 2, 0);
    assert_int_equal(pli_shard_open(&shard, &spec, 1, true, NULL, NULL, NULL), PLAIT_OK);
    assert_int_equal(shard.first, ROWS / 2);
    assert_int_equal(pli_snap_begin(&shard.store, 0, shard.rows, &snap, NULL), PLAIT_OK);
    const pli_function_call call = { .fn = &fn, .first = ROWS / 2 + 95, .rows = 20 };
    assert_int_equal(pli_function_run(&call, shards, 1, NULL, &err), PLAIT_OK);
    for (int64_t first = 0; first < shard.rows; first += snap->piece_rows) {
        pli_msg      *msg = NULL;
        const int64_t n = shard.rows - first < snap->piece_rows ? shard.rows - first : snap->piece_rows;
        assert_int_equal(pli_snap_take(snap, PLI_STATE_VALUES, first, n, &msg, NULL), PLAIT_OK);
        for (int64_t i = 0; i < n * COLS; i++) assert_true(((const double *)pli_msg_body(msg))[i] == 0);
        pli_msg_free(&msg);
    }
    const double *now = shard.store.slab->memory;
    for (int64_t row = 0; row < shard.rows; row++) assert_true(now[row * COLS] == (row >= 95 && row < 115));
    pli_snap_end(&snap);
    pli_shard_close(&shard);
}

/* --- refused ------------------------------------------------------------------------------------------------------ */

#define SAYS(words) (strstr(plait_comm_error(comm)->text, words) != NULL)

static plait_status misuse(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *x, *shorter, *sparse;
    totals       t;
    const double one = 1;
    (void)user;
    CHECK(make(job, "x", ROWS, &x) == PLAIT_OK && make(job, "shorter", 40, &shorter) == PLAIT_OK);
    CHECK(make(job, "sparse", 0, &sparse) == PLAIT_OK);
    static const int64_t wrong[][2] = { { -1, 2 }, { 0, -1 }, { 1, ROWS }, { ROWS + 1, 0 }, { INT64_MAX, INT64_MAX },
                                        { 5, INT64_MAX }, { INT64_MIN, 1 }, { 0, INT64_MIN } };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(plait_table_call_range(&x, 1, wrong[i][0], wrong[i][1], "dot", NULL, 0, &t, sizeof t) == PLAIT_EINVAL);
        CHECK(SAYS("table x: first is") && SAYS("expected rows among its 3000"));
    }
    CHECK(plait_table_call_range(&sparse, 1, 0, 3, "dot", NULL, 0, &t, sizeof t) == PLAIT_EINVAL);
    CHECK(SAYS("table sparse is sparse"));
    plait_table *const differ[2] = { x, shorter };
    CHECK(plait_table_call_range(differ, 2, 0, 3, "dot", NULL, 0, &t, sizeof t) == PLAIT_ESHAPE);
    CHECK(SAYS("tables x and shorter differ in rows"));
    CHECK(plait_table_call_range(&x, 1, 0, 3, "dat", NULL, 0, &t, sizeof t) == PLAIT_ENAME && SAYS("dot"));
    if (strcmp(plait_table_consistency(x), "bsp") != 0)
        CHECK(plait_table_call_range(&x, 1, 0, 3, "scale", &one, sizeof one, NULL, 0) == PLAIT_EREFUSED);
    return plait_job_barrier(job);
}

/* Workers that name different ranges, which may have no shard in common, are all told; and the job goes on. */
static plait_status ranges_differ(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    const int64_t first = plait_comm_rank(comm) == 0 ? 0 : 2000;
    const double  two = 2;
    totals        t;
    plait_table  *x, *y;
    (void)user;
    CHECK(make(job, "x", ROWS, &x) == PLAIT_OK && make(job, "y", ROWS, &y) == PLAIT_OK && fill(x, y) == PLAIT_OK);
    CHECK(plait_table_call_range(&y, 1, first, 10, "scale", &two, sizeof two, NULL, 0) == PLAIT_EMISMATCH);
    CHECK(SAYS("call server functions with different arguments"));
    CHECK(plait_table_call_range(&y, 1, 1, 2500, "scale", &two, sizeof two, NULL, 0) == PLAIT_OK);
    CHECK(plait_table_call_range(&y, 1, 0, 4, "dot", NULL, 0, &t, sizeof t) == PLAIT_OK);
    CHECK(t.sum == COLS * (4 + 3 * 16)); /* row 0 is as it was */
    return PLAIT_OK;
}

static void test_misuse_is_told(void **state) {
    (void)state;
    run_ok("ps", "bsp", 2, 0, false, misuse, NULL);
    run_ok("ps", "ssp:1", 2, 0, false, misuse, NULL);
    run_ok("local", "async", 2, 0, false, misuse, NULL);
    run_ok("allreduce", "bsp", 2, 0, false, misuse, NULL);
    run_ok("ps", "bsp", 3, 0, false, ranges_differ, NULL);
    run_ok("ps", "bsp", 2, 3, false, ranges_differ, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_call_sees_and_updates_its_range),
        cmocka_unit_test(test_only_owners_are_asked),
        cmocka_unit_test(test_exact_sums_do_not_depend_on_shards),
        cmocka_unit_test(test_a_snapshot_keeps_what_it_began_with),
        cmocka_unit_test(test_misuse_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
