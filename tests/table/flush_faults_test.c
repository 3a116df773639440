/* plait_table_flush where something goes wrong, or where leaving early would count half of a clock: no update is lost,
 * of the worker or of others, unless a call says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/copies/mirror.h"
#include "table/table.h"
#include "table/topology/buckets.h"

enum { LARGE = 20000 }; /* 80 kB: leaves at once, and lies in a bucket of its own or with others */

typedef struct job {
    const char *topology, *consistency, *aggregate;
    const plait_consistency *policy;
    int64_t     turn; /* of a list of cases */
    bool        departs; /* a flush sends at once */
    atomic_bool flushed;
    float      *own; /* what the workers sum themselves */
} job;

static plait_status try_run(job *j, int32_t workers, plait_work_fn *work, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = workers;
    comm.collective = "ring";
    comm.timeout_ns = UINT64_C(60) * 1000000000;
    opts.topology = j->topology;
    opts.consistency = j->consistency;
    opts.aggregate = j->aggregate;
    opts.policies = j->policy;
    opts.n_policies = j->policy != NULL;
    opts.batch = workers;
    memset(err, 0, sizeof *err);
    return plait_run(&comm, &opts, work, j, err);
}

static void run(job *j, int32_t workers, plait_work_fn *work) {
    plait_error err;
    if (try_run(j, workers, work, &err) < 0) fail_msg("%s, case %d: %s", j->topology, (int)j->turn, err.text);
}

static plait_status create(plait_job *pj, const char *name, int64_t rows, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.rows = rows;
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 1;
    return plait_table_create(pj, &opts, table_out);
}

static plait_status push(plait_table *table, float gradient) {
    const int64_t n = plait_table_rows(table);
    float        *values = malloc((size_t)n * sizeof *values);
    for (int64_t i = 0; i < n; i++) values[i] = gradient;
    plait_status status = plait_table_inc_range(table, 0, n, values, 1);
    free(values);
    return status;
}

static plait_status fails(plait_comm *comm, plait_status status, plait_status wanted, const char *text) {
    if (status == wanted && strstr(plait_comm_error(comm)->text, text) != NULL) return PLAIT_OK;
    return pli_fail(pli_comm_error(comm), PLAIT_EDIVERGED, "status %d, not %d with '%s'", (int)status, (int)wanted,
                    text);
}

/* --- a table that is created too late ----------------------------------------------------------------------------- */

static plait_status create_after(plait_job *pj, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *a, *b;
    float        value;
    PLI_TRY(create(pj, "a", LARGE, &a));
    PLI_TRY(push(a, 1));
    PLI_TRY(plait_table_flush(a));
    PLI_TRY(
        fails(comm, create(pj, "b", 4, &b), PLAIT_EINVAL, "plait_table_create in clock 0, part of which"));
    PLI_TRY(plait_job_clock(pj)); /* goes on */
    PLI_TRY(plait_table_get_range(a, LARGE - 1, 1, &value));
    CHECK(value == -1);
    return PLAIT_OK;
}

static void test_no_table_comes_after_a_flush(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) run(&(job){ .topology = k ? "ps" : "allreduce" }, 3, create_after);
}

static plait_status in_no_bucket(plait_job *pj, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *a;
    pli_sum     *sum;
    PLI_TRY(create(pj, "a", 4, &a));
    PLI_TRY(push(a, 1));
    PLI_TRY(pli_mirror_take(pli_mirror_of(a), 0, PLI_SUM_DENSE, false, &sum, pli_comm_error(comm)));
    PLI_TRY(fails(comm, pli_buckets_land(a, sum, pli_comm_error(comm)), PLAIT_ECOMM,
                  "table a: the sum of clock 0 is in no bucket"));
    return PLAIT_OK; /* and the job's end meets it again */
}

static void test_a_sum_in_no_bucket_has_not_landed(void **state) {
    (void)state;
    plait_error err;
    assert_int_equal(try_run(&(job){ .topology = "allreduce" }, 2, in_no_bucket, &err), PLAIT_ECOMM);
    assert_non_null(strstr(err.text, "is in no bucket"));
}

/* --- a collective between a flush and the clock, in another order here than there --------------------------------- */

enum { ROWS = 100000, BUCKET = ROWS + PLI_SUM_EXTRA };

static plait_status swap(plait_job *pj, void *user) {
    const job     *j = user;
    plait_comm    *comm = plait_job_comm(pj);
    const int32_t  rank = plait_comm_rank(comm);
    plait_table   *a;
    plait_request *request;
    PLI_TRY(create(pj, "a", ROWS, &a));
    PLI_TRY(push(a, 1));
    if (rank == 0) PLI_TRY(plait_table_flush(a));
    PLI_TRY(plait_comm_allreduce_begin(comm, j->own + rank * BUCKET, BUCKET, PLAIT_F32, PLAIT_SUM, &request));
    if (rank != 0) PLI_TRY(plait_table_flush(a));
    PLI_TRY(plait_request_wait(&request));
    return plait_job_clock(pj);
}

static void test_a_bucket_is_taken_for_no_other_sum(void **state) {
    (void)state;
    plait_error err;
    job         j = { .topology = "allreduce", .own = calloc(3 * BUCKET, sizeof(float)) };
    assert_int_equal(try_run(&j, 3, swap, &err), PLAIT_EMISMATCH);
    assert_non_null(strstr(err.text, "100003 f32 (sum) by ring, begun, of tables"));
    free(j.own);
}

/* --- no memory ---------------------------------------------------------------------------------------------------- */

static void wait_for(const atomic_bool *flag) {
    while (!atomic_load_explicit(flag, memory_order_acquire)) sched_yield();
}

/* Worker 0 has no memory somewhere in its flushes, and goes on. */
static plait_status starve(plait_job *pj, void *user) {
    job          *j = user;
    plait_comm   *comm = plait_job_comm(pj);
    const int64_t rows[3] = { 50, LARGE, 60 };
    const int32_t rank = plait_comm_rank(comm);
    plait_table  *table[3];
    plait_status  flushed = PLAIT_OK;
    for (int t = 0; t < 3; t++) PLI_TRY(create(pj, (const char *[]){ "a", "b", "c" }[t], rows[t], &table[t]));
    for (int t = 0; t < 3; t++) PLI_TRY(push(table[t], (float)(1 + rank)));
    PLI_TRY(plait_job_barrier(pj));
    if (rank == 0) {
        pli_alloc_fail_after(j->turn);
        for (int t = 2; t >= 0 && flushed >= 0; t--) flushed = plait_table_flush(table[t]);
        pli_alloc_fail_after(-1);
        atomic_store_explicit(&j->flushed, true, memory_order_release);
    } else {
        wait_for(&j->flushed);
    }
    CHECK(flushed == PLAIT_OK || flushed == PLAIT_ENOMEM);
    PLI_TRY(plait_job_clock(pj));
    for (int t = 0; t < 3; t++) {
        float value;
        PLI_TRY(plait_table_get_range(table[t], rows[t] - 1, 1, &value));
        CHECK(value == -2); /* the mean of 1, 2, 3 */
    }
    return PLAIT_OK;
}

static void test_without_memory_a_clock_fails_or_is_whole(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        int well = 0;
        for (int64_t turn = 0; turn < 12; turn++) {
            plait_error  err;
            job          j = { .topology = k ? "ps" : "allreduce", .turn = turn };
            int64_t      live = pli_alloc_live();
            plait_status status = try_run(&j, 3, starve, &err);
            if (status == PLAIT_EDIVERGED) fail_msg("%s, allocation %d: %s", j.topology, (int)turn, err.text);
            assert_int_equal(pli_alloc_live(), live);
            well += status >= 0;
        }
        assert_true(well > 0); /* the first ones are before anything has left */
    }
}

/* --- a clock that does not begin to end --------------------------------------------------------------------------- */

static plait_status clock_again(plait_job *pj, void *user) {
    (void)user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *a;
    float        value;
    PLI_TRY(create(pj, "a", 4, &a));
    PLI_TRY(push(a, 1));
    PLI_TRY(plait_table_flush(a));
    pli_alloc_fail_after(0);
    const plait_status status = plait_job_clock(pj);
    pli_alloc_fail_after(-1);
    CHECK(status == PLAIT_ENOMEM);
    PLI_TRY(fails(comm, plait_job_barrier(pj), PLAIT_EINVAL, "plait_job_barrier in clock 0"));
    PLI_TRY(fails(comm, push(a, 1), PLAIT_EINVAL, "inc after plait_table_flush in clock 0"));
    PLI_TRY(plait_job_clock(pj));
    PLI_TRY(plait_job_barrier(pj));
    PLI_TRY(push(a, 1));
    PLI_TRY(plait_job_clock(pj));
    PLI_TRY(plait_table_get_range(a, 0, 1, &value));
    CHECK(value == -2);
    return PLAIT_OK;
}

static void test_a_flush_outlasts_a_clock_that_fails(void **state) {
    (void)state;
    run(&(job){ .topology = "ps" }, 1, clock_again);
}

/* --- what leaves with the clock ----------------------------------------------------------------------------------- */

static plait_status parse(void *state, const char *parameters, const plait_setting *setting, plait_error *err) {
    (void)state, (void)parameters, (void)setting, (void)err;
    return PLAIT_OK;
}
static plait_apply applies(const void *state) {
    (void)state;
    return PLAIT_APPLY_AT_CLOCK;
}
static plait_read on_get(void *state, const plait_view *view) {
    (void)state;
    return view->fetched == view->clock ? PLAIT_SERVE : PLAIT_FETCH;
}
static plait_read always_fetch(void *state, const plait_view *view) {
    (void)state, (void)view;
    return PLAIT_FETCH;
}
static plait_read on_pull(void *state, const plait_view *view) {
    (void)state;
    return view->applied >= view->clock ? PLAIT_SERVE : PLAIT_WAIT;
}
/* All but one are enough; when that one's updates come is chance. */
static int64_t all_but_one(const void *state, const plait_view *view) {
    (void)state;
    int64_t least = INT64_MAX, second = INT64_MAX;
    for (int32_t w = 0; w < view->workers; w++) {
        const int64_t clocks = view->clocks[w];
        if (clocks < least) second = least, least = clocks;
        else if (clocks < second) second = clocks;
    }
    return second;
}

static const plait_consistency hasty = { .name = "hasty",
                                         .parameters = "",
                                         .summary = "",
                                         .state_bytes = 8,
                                         .parse = parse,
                                         .applies = applies,
                                         .worker.on_get = on_get,
                                         .server.on_pull = on_pull,
                                         .server.complete = all_but_one };
static const plait_consistency plain = { .name = "plain",
                                         .parameters = "",
                                         .summary = "",
                                         .state_bytes = 8,
                                         .parse = parse,
                                         .applies = applies,
                                         .worker.on_get = on_get,
                                         .server.on_pull = on_pull };
static const plait_consistency proud = { .name = "proud",
                                         .parameters = "",
                                         .summary = "",
                                         .state_bytes = 8,
                                         .sees_own = 1,
                                         .parse = parse,
                                         .applies = applies,
                                         .worker.on_get = always_fetch,
                                         .server.on_pull = on_pull };

static plait_status who_departs(plait_job *pj, void *user) {
    const job   *j = user;
    plait_comm  *comm = plait_job_comm(pj);
    plait_table *a;
    float        before, after;
    PLI_TRY(create(pj, "a", LARGE, &a));
    PLI_TRY(push(a, 1));
    PLI_TRY(plait_table_get_range(a, 0, 1, &before));
    PLI_TRY(plait_table_flush(a));
    CHECK((a->ops == &pli_served_ops ? pli_served_of(a)->pending.touched : pli_mirror_of(a)->taken == 0) ==
          !j->departs);
    PLI_TRY(plait_table_get_range(a, 0, 1, &after));
    CHECK(before == after);
    PLI_TRY(plait_job_clock(pj));
    return plait_job_barrier(pj);
}

static void test_what_leaves_with_the_clock(void **state) {
    (void)state;
    job jobs[] = {
        { .topology = "ps", .departs = true },
        { .topology = "ps", .policy = &plain, .consistency = "plain", .departs = true },
        { .topology = "ps", .policy = &hasty, .consistency = "hasty" },
        { .topology = "ps", .policy = &hasty, .consistency = "bsp", .departs = true }, /* no table has it */
        { .topology = "ps", .policy = &proud, .consistency = "proud" },
        { .topology = "allreduce", .departs = true },
        { .topology = "allreduce", .aggregate = "host" },
    };
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        jobs[k].turn = (int64_t)k;
        run(&jobs[k], 3, who_departs);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_table_comes_after_a_flush),
        cmocka_unit_test(test_a_sum_in_no_bucket_has_not_landed),
        cmocka_unit_test(test_a_bucket_is_taken_for_no_other_sum),
        cmocka_unit_test(test_without_memory_a_clock_fails_or_is_whole),
        cmocka_unit_test(test_a_flush_outlasts_a_clock_that_fails),
        cmocka_unit_test(test_what_leaves_with_the_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
