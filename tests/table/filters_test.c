/* Filters by the public calls: what they save, to the byte; what a barrier brings home; and what is refused when a
 * table is made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "table/table.h"

enum { ROWS = 50000, KEYS = 4000, CLOCKS = 30 };

typedef struct job {
    const char  *filter, *consistency, *rule;
    double       l1;
    plait_work_fn *work;
    uint64_t     pulled; /* by rank 0: bytes of the pulls of CLOCKS clocks, both ways */
    double       sum;    /* of what rank 0 has read at the end                        */
} job;

static plait_status run(job *j, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = 2;
    opts.topology = "ps";
    opts.consistency = j->consistency;
    opts.filter = j->filter;
    opts.batch = 2;
    return plait_run(&comm, &opts, j->work, j, err);
}

static plait_status make_table(plait_job *with, const job *j, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.keyed = 1;
    opts.rule.name = j->rule;
    opts.rule.learning_rate = j->rule == NULL ? 0 : 1;
    opts.rule.l1 = j->l1;
    return plait_table_create(with, &opts, table_out);
}

static void make_keys(uint64_t *keys) {
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * (ROWS / KEYS) + i % 5;
}

/* --- pulls -------------------------------------------------------------------------------------------------------- */

/* For both ranks together: each holds half of the rows, and asks the other for them. */
static plait_status bytes_so_far(plait_comm *comm, double *bytes_out) {
    *bytes_out = (double)plait_comm_bytes_sent(comm);
    return plait_comm_allreduce(comm, bytes_out, 1, PLAIT_F64, PLAIT_SUM);
}

static plait_status pull_again_and_again(plait_job *with, void *user) {
    static uint64_t keys[2][KEYS];
    static float    values[2][KEYS];
    job            *j = user;
    plait_comm     *comm = plait_job_comm(with);
    int32_t         me = plait_comm_rank(comm);
    plait_table    *table;
    double          bytes[2] = { 0, 0 };
    PLI_TRY(make_table(with, j, &table));
    make_keys(keys[me]);
    for (int clock = 0; clock <= CLOCKS; clock++) {
        PLI_TRY(plait_table_get(table, KEYS, keys[me], values[me]));
        PLI_TRY(plait_job_clock(with));
        if (clock == 0 || clock == CLOCKS) PLI_TRY(bytes_so_far(comm, &bytes[clock > 0]));
    }
    if (me == 0) j->pulled = (uint64_t)(bytes[1] - bytes[0]);
    return PLAIT_OK;
}

/* With a pull of known keys, all that travels in a clock, its end included, is little more than the values. */
static void test_pulls_of_known_keys_cost_their_values(void **unused) {
    job         plain = { .consistency = "bsp", .work = pull_again_and_again }, cached = plain;
    plait_error err = { 0 };
    double      values = (double)CLOCKS * KEYS * sizeof(float);
    (void)unused;
    cached.filter = "key-cache";
    assert_int_equal(run(&plain, &err), PLAIT_OK);
    assert_int_equal(run(&cached, &err), PLAIT_OK);
    assert_true((double)plain.pulled > 3 * values);
    assert_true((double)cached.pulled >= values && (double)cached.pulled <= 1.05 * values);
}

/* --- what a barrier brings home ----------------------------------------------------------------------------------- */

static plait_status push_and_meet(plait_job *with, void *user) {
    static uint64_t keys[2][KEYS];
    static float    g[2][KEYS];
    job            *j = user;
    int32_t         me = plait_comm_rank(plait_job_comm(with));
    plait_table    *table;
    PLI_TRY(make_table(with, j, &table));
    make_keys(keys[me]);
    for (int i = 0; i < KEYS; i++) g[me][i] = (float)(i % 7 == 0 ? -8 : 1);
    for (int clock = 0; clock < 4; clock++) {
        PLI_TRY(plait_table_inc(table, KEYS, keys[me], g[me], 1));
        PLI_TRY(plait_job_clock(with));
    }
    PLI_TRY(plait_job_barrier(with));
    PLI_TRY(plait_table_get(table, KEYS, keys[me], g[me]));
    for (int i = 0; i < KEYS && me == 0; i++) {
        j->sum += (double)g[me][i];
        if (g[me][i] != (float)(i % 7 == 0 ? 32 : -4)) j->pulled++; /* rows that are not what they should be */
    }
    return plait_job_barrier(with);
}

/* Rows that were kept back for any number of clocks are all there after a barrier. */
static void test_a_barrier_brings_home_what_was_kept_back(void **unused) {
    static const char *const filters[] = { NULL, "topk:0.01", "randk:0.1,key-delta", "significant:3",
                                           "key-cache,significant:100,zstd" };
    (void)unused;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        job         j = { .filter = filters[i], .consistency = "async", .rule = "sgd", .work = push_and_meet };
        plait_error err = { 0 };
        if (run(&j, &err) < 0) fail_msg("%s: %s", filters[i], err.text);
        if (j.pulled > 0) fail_msg("%s: %d rows are not home", filters[i], (int)j.pulled);
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status only_create(plait_job *with, void *user) {
    plait_table *table;
    return make_table(with, user, &table);
}

static void refused(const char *filter, const char *consistency, const char *rule, double l1, plait_status status,
                    const char *text) {
    job         j = { .filter = filter, .consistency = consistency, .rule = rule, .l1 = l1, .work = only_create };
    plait_error err = { 0 };
    assert_int_equal(run(&j, &err), status);
    if (strstr(err.text, text) == NULL) fail_msg("'%s' is not in '%s'", text, err.text);
}

static void test_refusals_name_filter_and_reason(void **unused) {
    (void)unused;
    refused("topk:0.1", "sequential", "sgd", 0, PLAIT_EREFUSED, "filter topk with consistency sequential");
    refused("fixed8", "bsp", NULL, 0, PLAIT_EREFUSED, "additive");
    refused("kkt", "bsp", "sgd", 0, PLAIT_EREFUSED, "l1");
    refused("kkt", "bsp", "adam", 0.1, PLAIT_EREFUSED, "adam");
    refused("zstd,kkt", "bsp", "sgd", 0.1, PLAIT_EREFUSED, "write kkt,zstd");
    refused("key-cash", "bsp", "sgd", 0, PLAIT_ENAME, "key-cache");
}

/* --- of one's own ------------------------------------------------------------------------------------------------- */

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)state, (void)parameters, (void)table, (void)err;
    return PLAIT_OK;
}

static plait_status choose(void *state, const plait_part *part, const void *values, unsigned char *keep) {
    (void)state, (void)part, (void)values, (void)keep;
    return PLAIT_OK;
}

static void test_own_filters_are_looked_at(void **unused) {
    const plait_filter good = { .name = "own", .parameters = "", .summary = "", .parse = parse, .rows.choose = choose };
    plait_filter       f[2] = { good, good };
    plait_error        err = { 0 };
    (void)unused;
    assert_int_equal(pli_filters_check_own(f, 1, &err), PLAIT_OK);
    assert_int_equal(pli_filters_check_own(f, 2, &err), PLAIT_EINVAL); /* twice */
    f[0].name = "zstd";
    assert_int_equal(pli_filters_check_own(f, 1, &err), PLAIT_EINVAL);
    f[0].name = "a,b";
    assert_int_equal(pli_filters_check_own(f, 1, &err), PLAIT_EINVAL);
    f[0] = good;
    f[0].rows.choose = NULL;
    assert_int_equal(pli_filters_check_own(f, 1, &err), PLAIT_EINVAL); /* does nothing */
    assert_int_equal(pli_filters_check_own(NULL, 1, &err), PLAIT_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pulls_of_known_keys_cost_their_values),
        cmocka_unit_test(test_a_barrier_brings_home_what_was_kept_back),
        cmocka_unit_test(test_refusals_name_filter_and_reason),
        cmocka_unit_test(test_own_filters_are_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
