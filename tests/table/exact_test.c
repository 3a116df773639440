/* Tables that are summed exactly: the same bits however many workers push the terms, over each topology; and what is
 * refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "table/table.h"

enum { TERMS = 16, CLOCKS = 6, ROWS = 3000, KEYS = 40, TABLES = 4 };

/* Terms are the updates of a table in a clock. They are dealt out to the workers; terms of keyed tables touch rows
 * that they choose themselves. */
typedef struct kind {
    const char *name, *rule;
    plait_type  type;
    int64_t     rows, cols;
    int         keyed;
} kind;

static const kind kinds[TABLES] = {
    { "dense", "adam", PLAIT_F32, ROWS, 1, 0 },
    { "wide", NULL, PLAIT_F64, ROWS / 3, 3, 0 },
    { "keyed", "sgd", PLAIT_F32, ROWS, 2, 1 },
    { "sparse", "adagrad", PLAIT_F64, 0, 1, 0 },
};

typedef struct setting {
    const char *topology, *filter;
    const char *consistency; /* NULL: bsp */
    int32_t     workers, servers;
    bool        plain; /* not exact: to see that sums of these terms do differ */
    bool        few;   /* keyed tables: few keys, so that allreduce gathers lists */
    uint64_t    hash[TABLES];
} setting;

static plait_status create(plait_job *job, const kind *k, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = k->name;
    opts.type = k->type;
    opts.rows = k->rows;
    opts.cols = k->cols;
    opts.keyed = k->keyed;
    opts.rule.name = k->rule;
    opts.rule.learning_rate = k->rule == NULL ? 0 : 0.1;
    opts.rule.l2 = k->rule == NULL ? 0 : 0.01;
    return plait_table_create(job, &opts, table_out);
}

/* A number whose size may lie anywhere within a factor of 2^30; it depends on place and clock alone. */
static double draw(pli_random *r, const void *seen) {
    double read = seen == NULL ? 0 : fmod(fabs(*(const double *)seen), 1);
    return (pli_random_normal(r) + read) * (double)(UINT64_C(1) << pli_random_below(r, 30)) * 0x1p-15;
}

static void fill(plait_type type, int64_t n, pli_random *r, const double *seen, void *delta) {
    for (int64_t i = 0; i < n; i++) {
        double x = draw(r, seen);
        if (type == PLAIT_F32) ((float *)delta)[i] = (float)x;
        else ((double *)delta)[i] = x;
    }
}

static plait_status push_term(plait_table *table, const kind *k, bool few, int64_t clock, int term, double seen) {
    static _Thread_local double delta[ROWS * 3];
    pli_random                  r = pli_random_at(7, PLI_RANDOM_DATA, (uint64_t)clock, (uint64_t)term);
    uint64_t                    keys[KEYS];
    if (k->rows > 0 && !k->keyed) {
        int64_t first = (int64_t)pli_random_below(&r, (uint64_t)k->rows),
                n = (int64_t)pli_random_below(&r, (uint64_t)(k->rows - first)) + 1;
        fill(k->type, n * k->cols, &r, &seen, delta);
        return plait_table_inc_range(table, first, n, delta, 1);
    }
    /* with repeats */
    for (int64_t i = 0; i < KEYS; i++)
        keys[i] = pli_random_below(&r, few ? 60 : k->rows > 0 ? (uint64_t)k->rows / 20 : 500);
    if (!few && k->rows > 0)
        for (int64_t from = 0; from < k->rows; from += KEYS) { /* and nearly all rows once, so that allreduce marks
                                                                  them */
            uint64_t all[KEYS];
            int64_t  n = k->rows - from < KEYS ? k->rows - from : KEYS;
            for (int64_t i = 0; i < n; i++) all[i] = (uint64_t)(from + i);
            fill(k->type, n * k->cols, &r, &seen, delta);
            PLI_TRY(plait_table_inc(table, n, all, delta, 0));
        }
    fill(k->type, KEYS * k->cols, &r, &seen, delta);
    return plait_table_inc(table, KEYS, keys, delta, 1);
}

static plait_status work(plait_job *job, void *user) {
    setting     *s = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table[TABLES];
    int32_t      me = plait_comm_rank(comm), w = plait_comm_workers(comm);
    for (int t = 0; t < TABLES; t++) PLI_TRY(create(job, &kinds[t], &table[t]));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        double   seen[3];
        uint64_t key = 5;
        PLI_TRY(plait_table_get(table[1], 1, &key, seen)); /* what is read goes into what is pushed */
        for (int term = 0; term < TERMS; term++)
            for (int t = 0; t < TABLES && term % w == (me + clock) % w; t++)
                PLI_TRY(push_term(table[t], &kinds[t], s->few, clock, term, seen[0]));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_job_barrier(job));
    for (int t = 0; t < TABLES; t++) {
        int64_t   n;
        uint64_t *keys;
        void     *values;
        PLI_TRY(plait_table_dump(table[t], &n, &keys, &values));
        uint64_t hash = pli_hash_bytes(values, (size_t)(n * kinds[t].cols) * (kinds[t].type == PLAIT_F32 ? 4 : 8),
                                       pli_hash_bytes(keys, (size_t)n * 8, 0));
        if (me == 0) s->hash[t] = hash;
        plait_comm_free(keys);
        plait_comm_free(values);
    }
    return PLAIT_OK;
}

static plait_status run(setting *s, const char *consistency, int32_t backup, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  opts;
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&opts);
    comm.transport = "threads";
    comm.workers = s->workers;
    comm.servers = s->servers;
    comm.collective = s->workers % 2 ? "messages" : "auto";
    opts.topology = s->topology;
    opts.consistency = consistency;
    opts.filter = s->filter;
    opts.backup = backup;
    opts.exact = !s->plain;
    opts.batch = TERMS;
    return plait_run(&comm, &opts, work, s, err);
}

static void run_ok(setting *s) {
    plait_error err;
    if (run(s, s->consistency != NULL ? s->consistency : "bsp", 0, &err) < 0)
        fail_msg("%s, %d+%d: %s", s->topology, s->workers, s->servers, err.text);
}

static void test_bits_do_not_depend_on_who_pushes(void **state) {
    (void)state;
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    static const int32_t     workers[] = { 2, 3, 8 };
    for (int few = 0; few < 2; few++) {
        setting want = { .topology = "local", .workers = 1, .few = few };
        run_ok(&want);
        for (int t = 0; t < 3; t++)
            for (int w = 0; w < 3; w++) {
                setting got = { .topology = topologies[t], .workers = workers[w], .few = few };
                if (w == 1) got.consistency = "bounded-delay:0"; /* which is bsp's model, too */
                run_ok(&got);
                assert_memory_equal(got.hash, want.hash, sizeof want.hash);
            }
        setting apart = { .topology = "ps", .workers = 3, .servers = 2, .few = few,
                          .filter = "key-cache,key-delta,zstd" };
        run_ok(&apart);
        assert_memory_equal(apart.hash, want.hash, sizeof want.hash);
    }
}

/* Plain sums of these terms do differ; otherwise the test above would show nothing. */
static void test_plain_sums_differ(void **state) {
    (void)state;
    setting one = { .topology = "ps", .workers = 1, .plain = true }, three = { .topology = "ps", .workers = 3,
                                                                               .plain = true };
    run_ok(&one);
    run_ok(&three);
    for (int t = 0; t < TABLES; t++) assert_true(one.hash[t] != three.hash[t]);
}

static void refused(const char *topology, const char *consistency, const char *filter, int32_t backup,
                    const char *word) {
    setting     s = { .topology = topology, .filter = filter, .workers = 3 };
    plait_error err;
    assert_int_equal(run(&s, consistency, backup, &err), PLAIT_EREFUSED);
    if (strstr(err.text, word) == NULL) fail_msg("'%s' does not say '%s'", err.text, word);
}

static void test_what_has_no_whole_clocks_is_refused(void **state) {
    (void)state;
    refused("ps", "ssp:2", NULL, 0, "exact sums with consistency ssp:2 are refused");
    refused("allreduce", "bounded-delay:2", NULL, 0, "nearest is bsp");
    refused("local", "async", NULL, 0, "exact sums with consistency async");
    refused("gossip:ring", "bsp", NULL, 0, "exact sums with topology gossip:ring are refused");
    refused("ps", "bsp", NULL, 1, "backup workers are refused");
    refused("ps", "bsp", "key-cache,kkt", 0, "filter kkt with exact sums is refused");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits_do_not_depend_on_who_pushes),
        cmocka_unit_test(test_plain_sums_differ),
        cmocka_unit_test(test_what_has_no_whole_clocks_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
