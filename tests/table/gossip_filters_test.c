/* Filters between neighbours: whatever they leave out, mixing never changes the average of all mirrors, the mirrors
 * come together, and what was sent is mixed once, which the audit proves. Filters without loss change no bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/table.h>

#include "table/audited.h"
#include "table/state/own.h"
#include "table/sure.h"

enum { ROWS = 150, COLS = 2, VALUES = ROWS * COLS, MOVING = 20, WORKERS_MAX = 7 };

typedef struct story {
    const char *topology, *consistency, *filter;
    int32_t     workers;
    bool        meets; /* without rounds: else a worker may be done before another begins */
    int64_t     quiet; /* clocks without updates, in which mirrors only meet */
    uint64_t    seed;
    double      before[VALUES], after[VALUES];            /* the average, before and after them */
    double      early[WORKERS_MAX][VALUES], late[WORKERS_MAX][VALUES]; /* mirrors, before and after them */
} story;

static double update_of(const story *s, int32_t worker, int64_t clock, int64_t i) {
    pli_random random = pli_random_at(s->seed, PLI_RANDOM_SCHEDULE, (uint64_t)(worker * 1000 + clock), (uint64_t)i);
    return pli_random_normal(&random) * (i % 7 == 0 ? 10 : 1);
}

static plait_status move(plait_job *job, const story *s, plait_table *table) {
    const int32_t me = plait_comm_rank(plait_job_comm(job));
    double        delta[VALUES];
    for (int64_t clock = 0; clock < MOVING; clock++) {
        for (int64_t i = 0; i < VALUES; i++) delta[i] = update_of(s, me, clock, i);
        PLI_TRY(plait_table_inc_range(table, 0, ROWS, delta, 1));
        PLI_TRY(plait_job_clock(job));
    }
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    story           *s = user;
    const int32_t    me = plait_comm_rank(plait_job_comm(job));
    double           average[VALUES];
    plait_table     *table;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.cols = COLS;
    opts.type = PLAIT_F64;
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.filter = s->filter;
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 0.1;
    PLI_TRY(plait_table_create(job, &opts, &table));
    PLI_TRY(move(job, s, table));
    PLI_TRY(plait_table_get_range(table, 0, ROWS, s->early[me]));
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(plait_table_get_range(table, 0, ROWS, average));
    if (me == 0) memcpy(s->before, average, sizeof average);
    for (int64_t clock = 0; clock < s->quiet; clock++) {
        PLI_TRY(plait_job_clock(job));
        if (s->meets && clock + 1 < s->quiet) PLI_TRY(plait_job_barrier(job));
    }
    PLI_TRY(plait_table_get_range(table, 0, ROWS, s->late[me]));
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(plait_table_get_range(table, 0, ROWS, average));
    if (me == 0) memcpy(s->after, average, sizeof average);
    return plait_job_barrier(job);
}

static void fail_story(const story *s, const char *what) {
    fail_msg("%s x %s, %d workers, %s: %s PLAIT_SEED=%llu", s->topology, s->consistency, (int)s->workers,
             s->filter != NULL ? s->filter : "no filter", what, (unsigned long long)s->seed);
}

static void run(story *s) {
    plait_comm_opts comm;
    audited         a;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    comm.workers = s->workers;
    comm.timeout_ns = UINT64_C(60000000000);
    if (run_audited(&comm, work, s, &a, &err) < 0) fail_story(s, err.text);
    if (a.verdict != PLI_AUDIT_PROVEN) fail_story(s, a.said);
}

static double norm_of(const double *x) {
    double most = 0;
    for (int64_t i = 0; i < VALUES; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* How far mirrors are from the average, at most. */
static double spread(const story *s, const double mirror[WORKERS_MAX][VALUES], const double *average) {
    double most = 0;
    for (int32_t w = 0; w < s->workers; w++)
        for (int64_t i = 0; i < VALUES; i++) most = fmax(most, fabs(mirror[w][i] - average[i]));
    return most;
}

static void judge(const story *s) {
    const double size = norm_of(s->before);
    double       moved[VALUES];
    for (int64_t i = 0; i < VALUES; i++) moved[i] = s->after[i] - s->before[i];
    if (!(norm_of(moved) <= 1e-9 * size)) fail_story(s, "mixing has changed the average");
    if (!(spread(s, s->late, s->after) <= 0.05 * spread(s, s->early, s->before) + 1e-9 * size))
        fail_story(s, "the mirrors have not come together");
}

static uint64_t seed_given(void) { return getenv("PLAIT_SEED") != NULL ? strtoull(getenv("PLAIT_SEED"), NULL, 10) : 1; }

static void test_mirrors_meet_through_filters(void **state) {
    static const struct {
        const char *filter;
        int64_t     quiet[2]; /* in rounds, and without */
    } filters[] = {
        { "fp16", { 60, 400 } },     { "bf16", { 60, 400 } },       { "fixed16", { 60, 400 } },
        { "fixed8", { 60, 400 } },   { "onebit", { 1500, 3000 } },    { "topk:0.2", { 150, 800 } },
        { "randk:0.3", { 300, 1500 } }, { "topk:0.3,fixed8,zstd", { 150, 800 } }, { "key-cache,zstd", { 60, 400 } },
    };
    static const char *const pairs[][2] = { { "gossip:ring", "bsp" },         { "gossip:torus", "bsp" },
                                            { "gossip:exp", "bsp" },          { "gossip:ring", "local-sgd:2" },
                                            { "gossip:exp", "async" },        { "gossip:ring", "async" } };
    (void)state;
    story *s = pli_calloc(1, sizeof *s);
    for (size_t f = 0; f < sizeof filters / sizeof filters[0]; f++)
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
            *s = (story){ .topology = pairs[p][0], .consistency = pairs[p][1], .filter = filters[f].filter,
                          .workers = 2 + (int32_t)((f + 3 * p) % 4), .seed = seed_given() };
            const bool rounds = strcmp(s->consistency, "async") != 0, pauses = strncmp(s->consistency, "local", 5) == 0;
            s->meets = !rounds;
            s->quiet = filters[f].quiet[!rounds] * (pauses ? 2 : 1);
            run(s);
            judge(s);
        }
    pli_free(s);
}

static void test_filters_without_loss_change_no_bit(void **state) {
    static const char *const topologies[] = { "gossip:ring", "gossip:torus", "gossip:exp" };
    (void)state;
    story *plain = pli_calloc(1, sizeof *plain), *s = pli_calloc(1, sizeof *s);
    for (size_t t = 0; t < 3; t++) {
        *plain = (story){ .topology = topologies[t], .consistency = "bsp", .workers = 6, .quiet = 3,
                          .seed = seed_given() };
        *s = *plain;
        s->filter = "key-delta,zstd";
        run(plain);
        run(s);
        if (memcmp(plain->late, s->late, sizeof s->late) != 0) fail_story(s, "mirrors have other bits");
    }
    pli_free(plain);
    pli_free(s);
}

/* The average moves as it does without a filter. */
static void test_updates_count_once(void **state) {
    (void)state;
    story *plain = pli_calloc(1, sizeof *plain), *s = pli_calloc(1, sizeof *s);
    *plain = (story){ .topology = "gossip:ring", .consistency = "bsp", .workers = 5, .quiet = 1, .seed = seed_given() };
    *s = *plain;
    s->filter = "topk:0.1";
    run(plain);
    run(s);
    for (int64_t i = 0; i < VALUES; i++)
        if (!(fabs(s->before[i] - plain->before[i]) <= 1e-9 * norm_of(plain->before)))
            fail_story(s, "the average has moved otherwise");
    pli_free(plain);
    pli_free(s);
}

/* What a checkpoint lacks is named: without it the two ends of a link would know different things. */
static plait_status put_without(plait_job *job, void *user) {
    plait_table     *table;
    plait_table_opts opts;
    plait_error      err = { 0 };
    char             name[64];
    pli_own          own;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.topology = "gossip:ring";
    opts.filter = "topk:0.1";
    opts.rule.name = "sgd";
    opts.rule.learning_rate = 1;
    PLI_TRY(plait_table_create(job, &opts, &table));
    PLI_TRY(plait_job_barrier(job));
    PLI_TRY(pli_own_take(table, &own, &err));
    if (own.n_more < 3 || pli_own_put(table, &own, &err) < 0) return PLAIT_EDIVERGED;
    for (int32_t lacks = 0; lacks < own.n_more; lacks++) {
        const char kept = own.more[lacks].name[0];
        snprintf(name, sizeof name, "t.own.%d.%s is missing", (int)plait_comm_rank(plait_job_comm(job)),
                 own.more[lacks].name);
        own.more[lacks].name[0] = '?';
        if (pli_own_put(table, &own, &err) != PLAIT_EMISMATCH || strstr(err.text, name) == NULL) return PLAIT_EDIVERGED;
        own.more[lacks].name[0] = kept;
    }
    pli_own_free(&own);
    return PLAIT_OK;
}

static void test_a_missing_estimate_is_refused_by_name(void **state) {
    plait_comm_opts comm;
    plait_error     err = { 0 };
    (void)state;
    plait_comm_opts_init(&comm);
    comm.workers = 3;
    if (plait_run(&comm, NULL, put_without, NULL, &err) < 0) fail_msg("%s", err.text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mirrors_meet_through_filters),
        cmocka_unit_test(test_filters_without_loss_change_no_bit),
        cmocka_unit_test(test_updates_count_once),
        cmocka_unit_test(test_a_missing_estimate_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("gossip_filters", tests, NULL, NULL) != 0;
}
