/* Tables that come behind the first clock, and tables that go: over each topology and consistency that has them, beside
 * tables that stay, with a log that the audit proves; what is refused, by name. (Over processes: mpi_test.c; over
 * simulated ranks: tests/sim/schedules_test.c.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "watched.h"

enum { ROWS = 200, COLS = 2, KEYS = 6, ROUNDS = 3, CLOCKS = 3 };

typedef struct setting {
    const char *topology, *consistency, *filter;
    int32_t     workers, servers, replicas;
} setting;

static plait_status make(plait_job *job, const char *name, int64_t rows, const char *rule, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.type = PLAIT_F64;
    opts.rows = rows;
    opts.cols = COLS;
    opts.rule.name = rule;
    return plait_table_create(job, &opts, table_out);
}

static plait_status add(plait_table *table, double x) {
    double   delta[KEYS * COLS];
    uint64_t keys[KEYS];
    for (int i = 0; i < KEYS * COLS; i++) delta[i] = x;
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = 31 * i;
    return plait_table_inc(table, KEYS, keys, delta, 0);
}

static plait_status all_are(plait_table *table, double x) {
    plait_comm *comm = plait_job_comm(table->job);
    double      values[KEYS * COLS];
    uint64_t    keys[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = 31 * i;
    PLI_TRY(plait_table_get(table, KEYS, keys, values));
    for (int i = 0; i < KEYS * COLS; i++) CHECK(values[i] == x);
    return PLAIT_OK;
}

/* The table that stays sees all rounds. A table of one round sees its own round only, under the same names each
 * time. */
static plait_status play_round(plait_job *job, plait_table *stays, int round) {
    const int32_t workers = plait_comm_workers(plait_job_comm(job));
    plait_table  *dense, *sparse;
    PLI_TRY(make(job, "dense", ROWS, NULL, &dense));
    PLI_TRY(make(job, "sparse", 0, NULL, &sparse));
    PLI_TRY(plait_job_barrier(job)); /* so that the gets take no turn */
    PLI_TRY(all_are(dense, 0));
    PLI_TRY(plait_job_barrier(job)); /* nobody has added before all have read */
    for (int c = 0; c < CLOCKS; c++) {
        PLI_TRY(add(dense, 1));
        PLI_TRY(add(sparse, 2));
        PLI_TRY(add(stays, 1));
        double   seen[COLS];
        uint64_t key = 31;
        PLI_TRY(plait_table_get(sparse, 1, &key, seen));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(round % 2 == 0 ? plait_table_drop(&sparse) : PLAIT_OK); /* another table is there while it goes */
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(all_are(dense, CLOCKS * workers));
    if (sparse != NULL) PLI_TRY(all_are(sparse, 2.0 * CLOCKS * workers));
    PLI_TRY(plait_table_drop(&dense));
    PLI_TRY(plait_table_drop(&sparse));
    PLI_TRY(plait_table_drop(&sparse)); /* NULL */
    return all_are(stays, (double)(round + 1) * CLOCKS * workers);
}

static plait_status work(plait_job *job, void *user) {
    plait_table *stays, *first;
    (void)user;
    PLI_TRY(make(job, "first", ROWS, NULL, &first));
    PLI_TRY(make(job, "stays", ROWS, NULL, &stays));
    for (int round = 0; round < ROUNDS; round++) {
        if (round == 1) PLI_TRY(plait_table_drop(&first));
        PLI_TRY(play_round(job, stays, round));
    }
    return PLAIT_OK;
}

/* No table until the third clock, and none from the fifth on. */
static plait_status work_without(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    for (int c = 0; c < 2; c++) PLI_TRY(plait_job_clock(job));
    PLI_TRY(make(job, "late", ROWS, NULL, &table));
    for (int c = 0; c < 2; c++) {
        PLI_TRY(add(table, 1));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(all_are(table, 2.0 * plait_comm_workers(plait_job_comm(job))));
    PLI_TRY(plait_table_drop(&table));
    for (int c = 0; c < 2; c++) PLI_TRY(plait_job_clock(job));
    return plait_job_barrier(job);
}

static bool play(const setting *s, plait_work_fn *of, char *why, size_t bytes) {
    watched run = watched_run_of(of, (void *)s, s->workers, s->servers);
    run.job.topology = s->topology;
    run.job.consistency = s->consistency;
    run.job.filter = s->filter;
    run.job.replicas = s->replicas;
    return watched_play(&run, why, bytes);
}

static const setting settings[] = {
    { .topology = "local", .consistency = "bsp" },
    { .topology = "local", .consistency = "ssp:1" },
    { .topology = "local", .consistency = "async" },
    { .topology = "allreduce", .consistency = "bsp" },
    { .topology = "allreduce", .consistency = "bounded-delay:2" },
    { .topology = "hybrid", .consistency = "bsp", .servers = 2 },
    { .topology = "ps", .consistency = "bsp", .servers = 3, .filter = "key-cache,key-delta,zstd" },
    { .topology = "ps", .consistency = "ssp:2", .servers = 2 },
    { .topology = "ps", .consistency = "essp:2" },
    { .topology = "ps", .consistency = "asp:2:3" },
    { .topology = "ps", .consistency = "bounded-delay:1" },
    { .topology = "ps", .consistency = "sequential" },
    { .topology = "ps", .consistency = "vap:100" },
    { .topology = "ps", .consistency = "downpour:2:2" },
    { .topology = "ps", .consistency = "async", .filter = "key-cache" },
};

static void test_tables_come_and_go(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 3; workers++)
            for (int k = 0; k < 2; k++) {
                setting s = settings[i];
                char    why[700];
                s.workers = workers;
                if (!play(&s, k == 0 ? work : work_without, why, sizeof why))
                    fail_msg("%s x %s, %d workers, %d: %s", s.topology, s.consistency, workers, k, why);
            }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status create_late(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, "w", ROWS, NULL, &table));
    PLI_TRY(plait_job_clock(job));
    return make(job, "late", ROWS, NULL, &table);
}

static plait_status drop_it(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, "w", ROWS, NULL, &table));
    return plait_table_drop(&table);
}

static plait_status drop_behind_an_inc(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, "w", ROWS, NULL, &table));
    PLI_TRY(add(table, 1));
    return plait_table_drop(&table);
}

static plait_status drop_different_ones(plait_job *job, void *user) {
    plait_table *table[2];
    (void)user;
    PLI_TRY(make(job, "a", ROWS, NULL, &table[0]));
    PLI_TRY(make(job, "b", ROWS, NULL, &table[1]));
    return plait_table_drop(&table[plait_comm_rank(plait_job_comm(job))]);
}

static plait_status create_in_other_clocks(plait_job *job, void *user) {
    plait_table *table;
    (void)user;
    PLI_TRY(make(job, "a", ROWS, NULL, &table));
    for (int32_t i = 0; i <= plait_comm_rank(plait_job_comm(job)); i++) PLI_TRY(plait_job_clock(job));
    return make(job, "b", ROWS, NULL, &table);
}

static void test_what_is_refused(void **state) {
    static const struct {
        setting        s;
        plait_work_fn *work;
        const char    *words;
    } wrong[] = {
        { { .topology = "gossip:ring", .consistency = "bsp" }, create_late, "table late behind the first clock" },
        { { .topology = "gossip:ring", .consistency = "bsp" }, drop_it, "rounds of averages begin with the job" },
        { { .topology = "ps", .consistency = "local-sgd:2" }, create_late, "rounds of averages begin with the job" },
        { { .topology = "ps", .consistency = "bsp", .replicas = 2 }, create_late, "with 2 replicas is refused" },
        { { .topology = "ps", .consistency = "async", .replicas = 2 }, drop_it, "with 2 replicas is refused" },
        { { .topology = "ps", .consistency = "bsp" }, drop_behind_an_inc, "plait_table_drop behind an inc of clock 0" },
        { { .topology = "ps", .consistency = "bsp" }, drop_different_ones, "a table's end: the options of rank" },
        { { .topology = "ps", .consistency = "async" }, create_in_other_clocks, "a table's creation: the options" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setting s = wrong[i].s;
        char    why[700];
        s.workers = 2;
        assert_false(play(&s, wrong[i].work, why, sizeof why));
        if (strstr(why, wrong[i].words) == NULL) fail_msg("'%s' is not in: %s", wrong[i].words, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_come_and_go),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
