/* plait_table_zero: over each topology and under each consistency nothing that was added before survives it, the next
 * get sees zeros, and what is added behind it counts, as in a table that was created then. A capture that is under way
 * keeps what it had. The audit proves each run from its event log. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "table/state/state.h"
#include "table/table.h"

#include "watched.h"

enum { ROWS = 90, COLS = 2, KEYS = 9, TABLES = 4, BEFORE = 3, BEHIND = 4 };

typedef struct setting {
    const char *topology, *consistency, *filter;
    int32_t     workers, servers, replicas;
} setting;

typedef struct kind {
    const char *name, *rule;
    plait_type  type;
    int64_t     rows;
    int         keyed;
} kind;

static const kind kinds[TABLES] = { { "dense", NULL, PLAIT_F64, ROWS, 0 },
                                    { "keyed", NULL, PLAIT_I64, ROWS, 1 },
                                    { "sparse", NULL, PLAIT_F32, 0, 0 },
                                    { "ruled", "adagrad", PLAIT_F64, ROWS, 0 } };

static bool is_known(const setting *s, const kind *k) {
    if (strncmp(s->topology, "gossip", 6) == 0) return k->type == PLAIT_F64;
    return s->filter == NULL || strcmp(s->filter, "fixed8") != 0 || k->rule != NULL;
}

static plait_status make(plait_job *job, const kind *k, plait_table **table_out) {
    plait_table_opts opts;
    double           initial[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++) initial[i] = 0.5;
    plait_table_opts_init(&opts);
    opts.name = k->name;
    opts.type = k->type;
    opts.rows = k->rows;
    opts.cols = COLS;
    opts.keyed = k->keyed;
    opts.rule.name = k->rule;
    opts.rule.learning_rate = k->rule != NULL ? 0.1 : 0;
    opts.initial = k->type == PLAIT_F64 ? initial : NULL;
    return plait_table_create(job, &opts, table_out);
}

static double at(plait_type type, const void *values, int64_t i) {
    if (type == PLAIT_I64) return (double)((const int64_t *)values)[i];
    return type == PLAIT_F64 ? ((const double *)values)[i] : (double)((const float *)values)[i];
}

static plait_status add(plait_table *table, const kind *k, double x) {
    double   room[ROWS * COLS];
    uint64_t keys[KEYS];
    for (int i = 0; i < ROWS * COLS; i++) {
        if (k->type == PLAIT_I64) ((int64_t *)room)[i] = (int64_t)x;
        else if (k->type == PLAIT_F64) room[i] = x;
        else ((float *)room)[i] = (float)x;
    }
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * 7;
    return k->rows > 0 && !k->keyed ? plait_table_inc_range(table, 0, ROWS, room, 1)
                                    : plait_table_inc(table, KEYS, keys, room, 0);
}

/* The rows that add() touches. */
static plait_status get(plait_table *table, const kind *k, double *values) {
    double   room[ROWS * COLS];
    uint64_t keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * 7;
    PLI_TRY(plait_table_get(table, KEYS, keys, room));
    for (int i = 0; i < KEYS * COLS; i++) values[i] = at(k->type, room, i);
    return PLAIT_OK;
}

static plait_status all_are(plait_table *table, const kind *k, double x, double tolerance) {
    plait_comm *comm = plait_job_comm(table->job);
    double      values[KEYS * COLS];
    PLI_TRY(get(table, k, values));
    for (int i = 0; i < KEYS * COLS; i++) CHECK(values[i] - x <= tolerance && x - values[i] <= tolerance);
    return PLAIT_OK;
}

static plait_status is_empty(plait_table *table, const kind *k) {
    plait_comm *comm = plait_job_comm(table->job);
    int64_t     n;
    uint64_t   *keys;
    void       *values;
    PLI_TRY(all_are(table, k, 0, 0));
    PLI_TRY(plait_table_dump(table, &n, &keys, &values));
    CHECK(n == k->rows);
    for (int64_t i = 0; i < n * COLS; i++) CHECK(at(k->type, values, i) == 0);
    plait_comm_free(keys);
    plait_comm_free(values);
    return PLAIT_OK;
}

static plait_status clocks(plait_job *job, plait_table *const *table, int n) {
    double values[KEYS * COLS];
    for (int i = 0; i < n; i++) {
        for (int t = 0; t < TABLES; t++)
            if (table[t] != NULL && (i + t) % 2 == 0) PLI_TRY(get(table[t], &kinds[t], values));
        for (int t = 0; t < TABLES; t++)
            if (table[t] != NULL) PLI_TRY(add(table[t], &kinds[t], kinds[t].rule != NULL ? 1 : 3));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

/* Additive ones hold what was added behind; gossip's copies hold averages, exact to the last bits. */
static plait_status check_end(plait_job *job, plait_table *const *table, int behind) {
    int32_t workers = plait_comm_workers(plait_job_comm(job));
    PLI_TRY(plait_job_barrier(job));
    for (int t = 0; t < TABLES; t++)
        if (table[t] != NULL && kinds[t].rule == NULL)
            PLI_TRY(all_are(table[t], &kinds[t], 3.0 * behind * workers, 1e-6));
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    const setting *s = user;
    plait_table   *table[TABLES] = { NULL };
    for (int t = 0; t < TABLES; t++)
        if (is_known(s, &kinds[t])) PLI_TRY(make(job, &kinds[t], &table[t]));
    for (int round = 0; round < 2; round++) {
        PLI_TRY(clocks(job, table, BEFORE));
        for (int t = 0; t < TABLES; t++)
            if (table[t] != NULL) PLI_TRY(plait_table_zero(table[t]));
        for (int t = 0; t < TABLES; t++)
            if (table[t] != NULL) PLI_TRY(is_empty(table[t], &kinds[t]));
        PLI_TRY(plait_comm_barrier(plait_job_comm(job))); /* what others add behind it counts */
    }
    PLI_TRY(clocks(job, table, BEHIND));
    return check_end(job, table, BEHIND);
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

static void play(setting *s, plait_work_fn *of) {
    watched run = watched_run_of(of, s, s->workers, s->servers);
    char    why[700];
    run.job.topology = s->topology;
    run.job.consistency = s->consistency;
    run.job.filter = s->filter;
    run.job.replicas = s->replicas;
    if (!watched_play(&run, why, sizeof why))
        fail_msg("%s x %s, %d workers: %s", s->topology, s->consistency, s->workers, why);
}

static const setting settings[] = {
    { .topology = "local", .consistency = "bsp" },
    { .topology = "local", .consistency = "async" },
    { .topology = "local", .consistency = "ssp:2" },
    { .topology = "allreduce", .consistency = "bsp" },
    { .topology = "allreduce", .consistency = "bounded-delay:2" },
    { .topology = "allreduce", .consistency = "local-sgd:2" },
    { .topology = "gossip:ring", .consistency = "bsp" },
    { .topology = "gossip:exp", .consistency = "async" },
    { .topology = "gossip:ring", .consistency = "local-sgd:2" },
    { .topology = "ps", .consistency = "bsp", .servers = 2, .filter = "key-cache,zstd" },
    { .topology = "ps", .consistency = "bsp", .filter = "fixed8" },
    { .topology = "ps", .consistency = "bsp", .replicas = 2 },
    { .topology = "ps", .consistency = "async", .replicas = 2 },
    { .topology = "ps", .consistency = "ssp:2" },
    { .topology = "ps", .consistency = "essp:2" },
    { .topology = "ps", .consistency = "asp:2:3" },
    { .topology = "ps", .consistency = "bounded-delay:1" },
    { .topology = "ps", .consistency = "sequential" },
    { .topology = "ps", .consistency = "vap:100" },
    { .topology = "ps", .consistency = "downpour:2:3" },
    { .topology = "ps", .consistency = "local-sgd:2" },
    { .topology = "ps", .consistency = "async" },
};

static void test_nothing_before_survives(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 3; workers++) {
            setting     s = settings[i];
            s.workers = workers;
            if (s.replicas == 2 && workers == 1) continue;
            play(&s, work);
        }
}

/* The rule's state is gone, too: behind the zeroing a table goes the way of one that has only known what came
 * behind. */
static plait_status twins(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    const kind   k[2] = { { "old", "adagrad", PLAIT_F64, ROWS, 0 }, { "new", "adagrad", PLAIT_F64, ROWS, 0 } };
    plait_table *table[2];
    double       values[2][KEYS * COLS];
    (void)user;
    for (int t = 0; t < 2; t++) PLI_TRY(make(job, &k[t], &table[t]));
    PLI_TRY(plait_table_zero(table[1])); /* no initial values */
    for (int clock = 0; clock < 6; clock++) {
        if (clock == 3) PLI_TRY(plait_table_zero(table[0]));
        for (int t = 0; t < 2; t++)
            if (t == 0 || clock >= 3) PLI_TRY(add(table[t], &k[t], clock));
        PLI_TRY(plait_job_clock(job));
    }
    for (int t = 0; t < 2; t++) PLI_TRY(get(table[t], &k[t], values[t]));
    CHECK(values[0][0] < 0 && memcmp(values[0], values[1], sizeof values[0]) == 0);
    return PLAIT_OK;
}

static void test_the_state_of_rules_goes_too(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    (void)state;
    for (size_t i = 0; i < 3; i++)
        play(&(setting){ .topology = topologies[i], .consistency = "bsp", .workers = 2 }, twins);
}

/* --- a capture ---------------------------------------------------------------------------------------------------- */

typedef struct captured {
    _Atomic int64_t rows, wrong;
} captured;

static captured seen;

static void take(void *user, pli_msg *rows) {
    const double *values = pli_msg_body(rows);
    (void)user;
    for (uint64_t i = 0; i < rows->head.body_bytes / 8; i++) seen.wrong += values[i] != 7;
    seen.rows += (int64_t)(rows->head.body_bytes / 8);
    pli_msg_free(&rows);
}

/* Keys are 7, as all values are. */
static plait_status zeroed_under_a_capture(plait_job *job, void *user) {
    const setting   *s = user;
    const kind       k = { "captured", NULL, PLAIT_F64, 0, 0 };
    plait_comm      *comm = plait_job_comm(job);
    plait_table     *table;
    pli_capture     *capture;
    double           room[COLS] = { 7, 7 };
    const uint64_t   key = 0x401C000000000000; /* the bits of 7.0 */
    bool             done = false;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = k.name;
    opts.type = k.type;
    opts.cols = COLS;
    (void)s;
    PLI_TRY(plait_table_create(job, &opts, &table));
    if (plait_comm_rank(comm) == 0) PLI_TRY(plait_table_inc(table, 1, &key, room, 0));
    PLI_TRY(plait_job_clock(job));
    PLI_TRY(pli_capture_begin(job, 1, &table, &capture, pli_comm_error(comm)));
    PLI_TRY(plait_table_zero(table));
    PLI_TRY(is_empty(table, &k));
    while (!done) PLI_TRY(pli_capture_pump(capture, INT64_MAX, true, take, NULL, &done, pli_comm_error(comm)));
    pli_capture_end(&capture);
    return PLAIT_OK;
}

static void test_a_capture_keeps_what_it_had(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        seen.rows = seen.wrong = 0;
        play(&(setting){ .topology = topologies[i], .consistency = "bsp", .workers = 2 }, zeroed_under_a_capture);
        assert_int_equal(seen.rows, COLS + 1); /* a row, and its key */
        assert_int_equal(seen.wrong, 0);
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status behind_an_inc(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, &kinds[0], &table));
    if (plait_comm_rank(comm) == 1) PLI_TRY(add(table, &kinds[0], 1));
    plait_status status = plait_table_zero(table);
    CHECK(status == (plait_comm_rank(comm) == 1 ? PLAIT_EINVAL : PLAIT_EMISMATCH));
    CHECK(plait_table_zero(NULL) == PLAIT_EINVAL);
    PLI_TRY(plait_job_clock(job));
    return plait_table_zero(table);
}

static plait_status in_other_clocks(plait_job *job, void *user) {
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, &kinds[0], &table));
    if (plait_comm_rank(comm) == 1) PLI_TRY(plait_job_clock(job));
    CHECK(plait_table_zero(table) == PLAIT_EMISMATCH);
    return plait_comm_rank(comm) == 1 ? PLAIT_OK : plait_job_clock(job);
}

static void test_it_is_at_a_clocks_edge(void **state) {
    (void)state;
    play(&(setting){ .topology = "ps", .consistency = "bsp", .workers = 2 }, behind_an_inc);
    play(&(setting){ .topology = "ps", .consistency = "ssp:2", .workers = 2 }, in_other_clocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_before_survives),
        cmocka_unit_test(test_the_state_of_rules_goes_too),
        cmocka_unit_test(test_a_capture_keeps_what_it_had),
        cmocka_unit_test(test_it_is_at_a_clocks_edge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
