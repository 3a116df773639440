/* Tests that a checkpoint holds mirrors that differ (table/state/own.h): a run that saves in the middle, and one that
 * goes on from there with as many workers, end with the bits of a run that never saved, where the pair promises bits;
 * with other workers, or another way, all begin with the average. What a worker pushes depends on what it reads, so a
 * mirror, a state of the rule or a round that is not as it was shows in the end. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/checkpoint.h>

#include "base/base.h"
#include "check.h"
#include "learn/checkpoint_dir.h"

enum { ROWS = 1300, COLS = 2, VALUES = ROWS * COLS, EXAMPLES = 24, TABLES = 3, BEFORE = 5, AFTER = 7, WORKERS_MAX = 6 };

typedef struct way {
    const char *topology, *consistency;
    int32_t     workers, servers;
} way;

typedef struct story {
    way         of;
    const char *rule, *filter;
    double      l2;      /* what a row owes is not in an average */
    bool        dense;   /* there is no sparse table */
    bool        meets;   /* all meet at a barrier before the checkpoint, and read the average behind it */
    bool        saves, ends, restores;
    float       end[TABLES][VALUES];  /* what all read at the end, or of `ends` not set right behind the cut */
    float       begin[TABLES][VALUES]; /* what worker 0 reads first of all */
} story;

static uint64_t seed = 1; /* of the updates: PLAIT_SEED */

static bool has_keys(const way *w) { return strncmp(w->topology, "gossip", 6) != 0; }

static uint64_t key_of(int64_t i) { return (uint64_t)i * 1000003; }

/* A third of the rows, others in each clock and of each worker. */
static bool is_touched(int table, int64_t row, int32_t worker, int64_t clock) {
    const uint64_t who = seed * 1000 + (uint64_t)(worker + 10 * clock);
    return table == 0 || pli_hash_u64((uint64_t)row ^ pli_hash_u64(who)) % 3 == 0;
}

static float update_of(int table, int64_t i, int32_t worker, int64_t clock, float value) {
    const uint64_t which = (uint64_t)(((table * VALUES + i) * 100 + worker) * 1000 + clock);
    return (float)((int64_t)(pli_hash_u64(which ^ pli_hash_u64(seed)) % 199) - 99) / 16 + value;
}

static plait_status make_tables(plait_job *job, const story *s, plait_table *table[TABLES]) {
    static const char *const names[TABLES] = { "dense", "keyed", "sparse" };
    plait_comm              *comm = plait_job_comm(job);
    for (int t = 0; t < TABLES; t++) {
        plait_table_opts opts;
        plait_table_opts_init(&opts);
        opts.name = names[t];
        opts.rows = t < 2 ? ROWS : 0;
        opts.cols = COLS;
        opts.keyed = t == 1;
        opts.rule.name = s->rule;
        opts.rule.learning_rate = 0.05;
        opts.rule.l2 = s->l2;
        opts.filter = s->filter;
        table[t] = NULL;
        if (t == 2 && (!has_keys(&s->of) || s->dense)) continue;
        CHECK(plait_table_create(job, &opts, &table[t]) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static int64_t rows_touched(int t, int32_t worker, int64_t clock, uint64_t key[ROWS]) {
    int64_t n = 0;
    for (int64_t i = 0; i < ROWS; i++)
        if (is_touched(t, i, worker, clock)) key[n++] = t == 2 ? key_of(i) : (uint64_t)i;
    return n;
}

static plait_status push(plait_job *job, const way *w, plait_table *const table[TABLES]) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    const int64_t clock = plait_job_clock_now(job);
    uint64_t      key[ROWS];
    float         value[VALUES];
    for (int t = 0; t < TABLES; t++) {
        if (table[t] == NULL) continue;
        const int64_t n = rows_touched(t, me, clock, key);
        CHECK((t == 0 ? plait_table_get_range(table[t], 0, ROWS, value) : plait_table_get(table[t], n, key, value)) ==
              PLAIT_OK);
        for (int64_t i = 0; i < n * COLS; i++) value[i] = update_of(t, (int64_t)key[i / COLS], me, clock, value[i]);
        CHECK((t == 0 ? plait_table_inc_range(table[t], 0, ROWS, value, EXAMPLES / w->workers)
                      : plait_table_inc(table[t], n, key, value, EXAMPLES / w->workers)) == PLAIT_OK);
    }
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status read_all(plait_job *job, plait_table *const table[TABLES], float to[TABLES][VALUES]) {
    plait_comm *comm = plait_job_comm(job);
    float       value[VALUES];
    uint64_t    key[ROWS];
    for (int64_t i = 0; i < ROWS; i++) key[i] = key_of(i);
    for (int t = 0; t < TABLES; t++) {
        if (table[t] == NULL) continue;
        CHECK((t < 2 ? plait_table_get_range(table[t], 0, ROWS, value) : plait_table_get(table[t], ROWS, key, value)) ==
              PLAIT_OK);
        if (plait_comm_rank(comm) == 0) memcpy(to[t], value, sizeof value);
    }
    return PLAIT_OK;
}

static plait_status save(plait_job *job, plait_table *const table[TABLES]) {
    plait_comm           *comm = plait_job_comm(job);
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = dir;
    CHECK(plait_checkpoint_save(job, table, table[2] != NULL ? TABLES : TABLES - 1, &opts) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status restore(plait_job *job, plait_table *const table[TABLES]) {
    plait_comm       *comm = plait_job_comm(job);
    plait_checkpoint *c = NULL;
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    for (int t = 0; t < TABLES; t++)
        if (table[t] != NULL) CHECK(plait_checkpoint_restore(c, table[t], NULL) == PLAIT_OK);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static plait_status work(plait_job *job, void *user) {
    story       *s = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table[TABLES];
    CHECK(make_tables(job, s, table) == PLAIT_OK);
    if (s->restores) CHECK(restore(job, table) == PLAIT_OK);
    for (int c = 0; !s->restores && c < BEFORE; c++) CHECK(push(job, &s->of, table) == PLAIT_OK);
    if (s->meets && !s->restores) CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (s->saves) CHECK(save(job, table) == PLAIT_OK);
    CHECK(read_all(job, table, s->begin) == PLAIT_OK);
    for (int c = 0; s->ends && c < AFTER; c++) CHECK(push(job, &s->of, table) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(read_all(job, table, s->end) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    return PLAIT_OK;
}

static void fail_story(const story *s, const char *what) {
    fail_msg("%s x %s, %d workers, %s, filter %s%s: %s PLAIT_SEED=%llu", s->of.topology, s->of.consistency,
             (int)s->of.workers, s->rule, s->filter != NULL ? s->filter : "none", s->meets ? ", met" : "", what,
             (unsigned long long)seed);
}

static void run(story *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    comm.workers = s->of.workers;
    comm.servers = s->of.servers;
    plait_job_opts_init(&job);
    job.topology = s->of.topology;
    job.consistency = s->of.consistency;
    job.batch = EXAMPLES;
    job.first_clock = s->restores ? BEFORE : 0;
    if (plait_run(&comm, &job, work, s, &err) < 0) fail_story(s, err.text);
}

static bool are_near(const story *s, const float a[TABLES][VALUES], const float b[TABLES][VALUES], double by) {
    for (int t = 0; t < TABLES; t++)
        for (int64_t i = 0; (t < 2 || (has_keys(&s->of) && !s->dense)) && i < VALUES; i++)
            if (!(fabs((double)a[t][i] - (double)b[t][i]) <= by * (1 + fabs((double)b[t][i])))) return false;
    return true;
}

static story *new_story(const way *of, const char *rule, const char *filter, bool meets) {
    story *s = pli_calloc(1, sizeof *s);
    assert_non_null(s);
    s->of = *of;
    s->rule = rule;
    s->filter = filter;
    s->meets = meets;
    return s;
}

static void test_a_run_goes_on_to_the_same_bits(void **state) {
    static const struct {
        way         of;
        const char *filter;
    } all[] = {
        { { "gossip:ring", "bsp", 4, 0 }, NULL },       { { "gossip:torus", "bsp", 6, 0 }, NULL },
        { { "gossip:exp", "bsp", 3, 0 }, NULL },        { { "gossip:exp", "local-sgd:3", 4, 0 }, NULL },
        { { "allreduce", "local-sgd:3", 4, 0 }, NULL }, { { "allreduce", "local-sgd:3", 3, 0 }, "topk:0.3" },
        { { "ps", "local-sgd:3", 3, 0 }, NULL },        { { "ps", "local-sgd:5", 2, 2 }, NULL },
        { { "hybrid", "local-sgd:3", 3, 0 }, NULL },    { { "gossip:ring", "bsp", 4, 0 }, "topk:0.2" },
        { { "gossip:exp", "bsp", 4, 0 }, "fixed8,zstd" }, { { "gossip:torus", "local-sgd:3", 6, 0 }, "onebit" },
        { { "gossip:exp", "bsp", 3, 0 }, "zstd" },
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        const way   *of = &all[i / 2].of;
        const char  *rule = i % 3 == 0 ? "adam" : i % 3 == 1 ? "adagrad" : "momentum";
        story       *whole = new_story(of, rule, all[i / 2].filter, i % 2);
        whole->ends = true;
        whole->l2 = 0.01;
        run(whole);
        story *saved = new_story(of, rule, all[i / 2].filter, i % 2);
        saved->saves = saved->ends = true;
        saved->l2 = whole->l2;
        run(saved);
        if (!are_near(whole, saved->end, whole->end, 0)) fail_story(saved, "a checkpoint has changed the run");
        story *on = new_story(of, rule, all[i / 2].filter, i % 2);
        on->restores = on->ends = true;
        on->l2 = whole->l2;
        run(on);
        if (!are_near(whole, on->begin, saved->begin, 0)) fail_story(on, "it begins with other values");
        if (!are_near(whole, on->end, whole->end, 0)) fail_story(on, "it ends with other bits");
        pli_free(whole);
        pli_free(saved);
        pli_free(on);
    }
}

/* The average at the cut, as the run before reads it at its end; the run after begins with it, in each mirror. */
static void test_other_workers_begin_with_the_average(void **state) {
    static const struct {
        way         before, after;
        const char *rule;
    } all[] = {
        { { "gossip:ring", "bsp", 4, 0 }, { "gossip:ring", "bsp", 2, 0 }, "adam" },
        { { "gossip:ring", "bsp", 2, 0 }, { "gossip:torus", "bsp", 6, 0 }, "adagrad" },
        { { "gossip:exp", "async", 4, 0 }, { "gossip:exp", "async", 3, 0 }, "adam" },
        { { "gossip:exp", "async", 3, 0 }, { "gossip:ring", "bsp", 2, 0 }, "adagrad" },
        { { "gossip:ring", "local-sgd:3", 3, 0 }, { "allreduce", "local-sgd:3", 3, 0 }, "adagrad" },
        { { "allreduce", "local-sgd:3", 4, 0 }, { "ps", "local-sgd:3", 3, 2 }, "adagrad" },
        { { "ps", "local-sgd:3", 3, 0 }, { "allreduce", "local-sgd:2", 4, 0 }, "adam" },
        { { "ps", "local-sgd:4", 3, 0 }, { "gossip:ring", "local-sgd:3", 2, 0 }, "adam" },
        { { "hybrid", "local-sgd:3", 4, 0 }, { "hybrid", "local-sgd:3", 2, 0 }, "momentum" },
        { { "allreduce", "bsp", 3, 0 }, { "gossip:ring", "bsp", 4, 0 }, "adam" },
        { { "ps", "bsp", 3, 0 }, { "ps", "local-sgd:3", 2, 0 }, "adagrad" },
        { { "gossip:exp", "bsp", 3, 0 }, { "allreduce", "bsp", 2, 0 }, "sgd" },
        { { "ps", "local-sgd:3", 3, 0 }, { "ps", "bsp", 2, 0 }, "sgd" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        story *before = new_story(&all[i].before, all[i].rule, NULL, false);
        before->saves = true;
        before->dense = !has_keys(&all[i].after);
        run(before);
        story *after = new_story(&all[i].after, all[i].rule, NULL, false);
        after->restores = true;
        after->dense = !has_keys(&all[i].before);
        run(after);
        if (!are_near(after, after->begin, before->end, 1e-5))
            fail_story(after, "a mirror does not begin with the average");
        if (!are_near(after, after->end, before->end, 1e-5)) fail_story(after, "the average is another");
        pli_free(before);
        pli_free(after);
    }
}

/* A mirror's own weight goes on, so that the average counts as before; what is on its way at the cut is in mirrors. */
static void test_weights_go_on(void **state) {
    const way of = { "gossip:exp", "async", 4, 0 };
    (void)state;
    for (int filtered = 0; filtered < 2; filtered++) {
        const char *filter = filtered ? "topk:0.2" : NULL;
        story      *before = new_story(&of, "adagrad", filter, false);
        before->saves = true;
        run(before);
        story *after = new_story(&of, "adagrad", filter, false);
        after->restores = true;
        run(after);
        if (!are_near(before, after->begin, before->begin, 0)) fail_story(after, "a mirror is another");
        if (!are_near(before, after->end, before->end, 1e-6)) fail_story(after, "the average is another");
        pli_free(before);
        pli_free(after);
    }
}

/* Of many states of a rule nobody makes one. */
static plait_status one_state(plait_job *job, void *user) {
    story            *s = user;
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *table[TABLES];
    plait_checkpoint *c = NULL;
    CHECK(make_tables(job, s, table) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_restore(c, table[0], NULL) == PLAIT_EMISMATCH);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static void refused(const way *of, const char *rule) {
    story          *s = new_story(of, rule, NULL, false);
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    comm.workers = of->workers;
    plait_job_opts_init(&job);
    job.topology = of->topology;
    job.consistency = of->consistency;
    job.first_clock = BEFORE;
    if (plait_run(&comm, &job, one_state, s, &err) < 0) fail_msg("%s", err.text);
    pli_free(s);
}

static void test_what_is_refused(void **state) {
    const way of = { "gossip:ring", "bsp", 2, 0 };
    (void)state;
    story *before = new_story(&of, "adam", NULL, false);
    before->saves = true;
    run(before);
    refused(&(way){ "allreduce", "bsp", 2, 0 }, "adam");
    refused(&(way){ "gossip:ring", "bsp", 2, 0 }, "adagrad");
    refused(&(way){ "gossip:ring", "bsp", 3, 0 }, "adagrad");
    pli_free(before);
}

int main(void) {
    if (getenv("PLAIT_SEED") != NULL) seed = strtoull(getenv("PLAIT_SEED"), NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_goes_on_to_the_same_bits),
        cmocka_unit_test(test_other_workers_begin_with_the_average),
        cmocka_unit_test(test_weights_go_on),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("mirrors_kept", tests, set_up, tear_down) != 0;
}
