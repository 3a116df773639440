/* What tables make of pushed values: the least, the greatest, the last, over each topology and under each consistency
 * that has them, beside tables that add; what NaN and the two zeros do; and what is refused, by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "watched.h"

enum { ROWS = 40, COLS = 2, CLOCKS = 4, KEYS = 5 };

typedef struct setting {
    const char *topology, *consistency, *filter, *aggregate, *combine, *rule;
    int32_t     workers, servers, replicas;
} setting;

static plait_status make(plait_job *job, const char *name, const char *combine, plait_type type, int64_t rows,
                         int keyed, plait_table **table_out) {
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = name;
    opts.combine = combine;
    opts.type = type;
    opts.rows = rows;
    opts.keyed = keyed;
    opts.cols = COLS;
    return plait_table_create(job, &opts, table_out);
}

/* Worker w pushes in clock c the values (w + 1) * 10 + c and minus that. */
static float value_of(int32_t worker, int64_t clock, int64_t col) {
    return (float)((worker + 1) * 10 + (int)clock) * (col == 0 ? 1.0F : -1.0F);
}

static plait_status push(plait_table *table, bool by_key, int32_t worker, int64_t clock) {
    float    values[ROWS * COLS];
    uint64_t keys[KEYS];
    for (int i = 0; i < ROWS * COLS; i++) values[i] = value_of(worker, clock, i % COLS);
    for (uint64_t i = 0; i < KEYS; i++) keys[i] = i * 5;
    return by_key ? plait_table_inc(table, KEYS, keys, values, 0) : plait_table_inc_range(table, 0, ROWS, values, 0);
}

static plait_status check_row(plait_table *table, uint64_t key, float first, float second) {
    plait_comm *comm = plait_job_comm(table->job);
    float       values[COLS];
    PLI_TRY(plait_table_get(table, 1, &key, values));
    CHECK(values[0] == first && values[1] == second);
    return PLAIT_OK;
}

/* Checks the extremes of all that was pushed; rows that nobody has pushed to hold what they began with. */
static plait_status check_end(plait_table *const table[6], int32_t workers) {
    const float least = 10, greatest = (float)(workers * 10 + CLOCKS - 1);
    for (int t = 0; t < 2; t++) PLI_TRY(check_row(table[3 * t], 5, least, -greatest));
    for (int t = 0; t < 2; t++) PLI_TRY(check_row(table[3 * t + 1], 5, greatest, -least));
    PLI_TRY(check_row(table[3], 1, INFINITY, INFINITY));
    return check_row(table[4], 1, -INFINITY, -INFINITY);
}

static plait_status work(plait_job *job, void *user) {
    static const char *const combines[] = { "min", "max", NULL };
    plait_comm              *comm = plait_job_comm(job);
    plait_table             *table[6];
    int32_t                  me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    char                     name[16];
    (void)user;
    for (int t = 0; t < 6; t++) {
        snprintf(name, sizeof name, "t%d", t);
        PLI_TRY(make(job, name, combines[t % 3], PLAIT_F32, t < 3 ? ROWS : 0, 0, &table[t]));
    }
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        for (int t = 0; t < 6; t++) {
            float    now[COLS];
            uint64_t key = 5;
            PLI_TRY(push(table[t], t >= 3, me, clock));
            PLI_TRY(plait_table_get(table[t], 1, &key, now));
            if (t % 3 == 0) CHECK(now[0] <= value_of(me, clock, 0)); /* own ones at once */
            if (t % 3 == 1) CHECK(now[0] >= value_of(me, clock, 0));
        }
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_job_barrier(job));
    return check_end(table, workers);
}

static bool play(const setting *s, plait_work_fn *of, char *why, size_t bytes) {
    watched run = watched_run_of(of, (void *)s, s->workers, s->servers);
    run.logs = s->aggregate == NULL;
    run.job.topology = s->topology;
    run.job.consistency = s->consistency;
    run.job.filter = s->filter;
    run.job.aggregate = s->aggregate;
    run.job.replicas = s->replicas;
    return watched_play(&run, why, bytes);
}

static const setting settings[] = {
    { .topology = "local", .consistency = "bsp" },
    { .topology = "local", .consistency = "async" },
    { .topology = "local", .consistency = "ssp:1" },
    { .topology = "local", .consistency = "sequential" },
    { .topology = "allreduce", .consistency = "bsp" },
    { .topology = "allreduce", .consistency = "bsp", .aggregate = "host" },
    { .topology = "allreduce", .consistency = "bounded-delay:2" },
    { .topology = "hybrid", .consistency = "bsp", .servers = 2 },
    { .topology = "ps", .consistency = "bsp", .servers = 3, .filter = "key-cache,key-delta,zstd" },
    { .topology = "ps", .consistency = "bsp", .aggregate = "host" },
    { .topology = "ps", .consistency = "bsp", .replicas = 2 },
    { .topology = "ps", .consistency = "async", .replicas = 2 },
    { .topology = "ps", .consistency = "ssp:2", .servers = 2 },
    { .topology = "ps", .consistency = "essp:2" },
    { .topology = "ps", .consistency = "asp:2:3" },
    { .topology = "ps", .consistency = "bounded-delay:1" },
    { .topology = "ps", .consistency = "sequential" },
    { .topology = "ps", .consistency = "downpour:2:2" },
    { .topology = "ps", .consistency = "async" },
};

static void test_the_extremes_are_kept(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 4; workers++) {
            setting s = settings[i];
            char    why[700];
            s.workers = workers;
            if (s.replicas == 2 && workers == 1) continue;
            if (!play(&s, work, why, sizeof why))
                fail_msg("%s x %s, %d workers: %s", s.topology, s.consistency, workers, why);
        }
}

/* --- the last ----------------------------------------------------------------------------------------------------- */

/* All workers push to key 5 in every clock, twice; worker w to key 10 in clock workers - 1 - w alone: the higher the
 * worker, the earlier. What a worker has pushed in its clock it reads. */
static plait_status push_in_turn(plait_table *table, int32_t me, int32_t workers, int64_t clock) {
    plait_comm    *comm = plait_job_comm(table->job);
    const uint64_t keys[3] = { 5, 10, 5 };
    float          values[3 * COLS], got[COLS];
    for (int i = 0; i < 3 * COLS; i++) values[i] = value_of(me, clock, i % COLS);
    values[0] = values[1] = 7777; /* the same key comes once more */
    if (clock == workers - 1 - me) PLI_TRY(plait_table_inc(table, 1, &keys[1], &values[2], 0));
    PLI_TRY(plait_table_inc(table, 1, keys, values, 0));
    const uint64_t twice[2] = { 5, 5 };
    const float    both[2 * COLS] = { 7777, 7777, values[2], values[3] };
    PLI_TRY(plait_table_inc(table, 2, twice, both, 0));
    PLI_TRY(plait_table_get(table, 1, keys, got));
    CHECK(got[0] == value_of(me, clock, 0) && got[1] == value_of(me, clock, 1));
    return PLAIT_OK;
}

static plait_status work_last(plait_job *job, void *user) {
    plait_comm   *comm = plait_job_comm(job);
    plait_table  *table[3];
    const int32_t me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    float         whole[ROWS * COLS];
    (void)user;
    PLI_TRY(make(job, "dense", "last", PLAIT_F32, ROWS, 0, &table[0]));
    PLI_TRY(make(job, "keyed", "last", PLAIT_F32, ROWS, 1, &table[1]));
    PLI_TRY(make(job, "sparse", "last", PLAIT_F32, 0, 0, &table[2]));
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        for (int t = 0; t < 3; t++) PLI_TRY(push_in_turn(table[t], me, workers, clock));
        PLI_TRY(plait_job_clock(job));
    }
    PLI_TRY(plait_job_barrier(job));
    for (int t = 0; t < 3; t++) {
        PLI_TRY(check_row(table[t], 5, value_of(workers - 1, CLOCKS - 1, 0), value_of(workers - 1, CLOCKS - 1, 1)));
        PLI_TRY(check_row(table[t], 10, value_of(0, workers - 1, 0), value_of(0, workers - 1, 1)));
        PLI_TRY(check_row(table[t], 11, 0, 0));
    }
    PLI_TRY(plait_table_get_range(table[0], 0, ROWS, whole));
    CHECK(whole[10 * COLS] == value_of(0, workers - 1, 0) && whole[11 * COLS] == 0);
    return PLAIT_OK;
}

static const setting settings_of_last[] = {
    { .topology = "local", .consistency = "bsp" },
    { .topology = "local", .consistency = "ssp:1" },
    { .topology = "local", .consistency = "sequential" },
    { .topology = "allreduce", .consistency = "bsp" },
    { .topology = "allreduce", .consistency = "bounded-delay:2" },
    { .topology = "hybrid", .consistency = "bsp", .servers = 2 },
    { .topology = "ps", .consistency = "bsp", .servers = 3, .filter = "key-cache,key-delta,zstd" },
    { .topology = "ps", .consistency = "ssp:2", .servers = 2 },
    { .topology = "ps", .consistency = "essp:2" },
    { .topology = "ps", .consistency = "asp:2:3" },
    { .topology = "ps", .consistency = "bounded-delay:1" },
    { .topology = "ps", .consistency = "sequential" },
    { .topology = "ps", .consistency = "async", .filter = "key-cache" },
    { .topology = "ps", .consistency = "bsp", .replicas = 2 },
    { .topology = "ps", .consistency = "ssp:1", .replicas = 2 },
    { .topology = "allreduce", .consistency = "bsp", .replicas = 2 },
};

static void test_the_last_is_kept(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof settings_of_last / sizeof *settings_of_last; i++)
        for (int32_t workers = 1; workers <= 4; workers++) {
            setting s = settings_of_last[i];
            char    why[700];
            s.workers = workers;
            if (s.replicas == 2 && workers == 1) continue;
            if (!play(&s, work_last, why, sizeof why))
                fail_msg("%s x %s, %d workers: %s", s.topology, s.consistency, workers, why);
        }
}

/* --- odd values --------------------------------------------------------------------------------------------------- */

static plait_status push_odd(plait_job *job, void *user) {
    static const char *const combines[] = { "min", "max" };
    plait_comm              *comm = plait_job_comm(job);
    const uint64_t           keys[3] = { 1, 2, 3 };
    (void)user;
    for (int k = 0; k < 2; k++) {
        plait_table *floats, *whole;
        const float  me = (float)plait_comm_rank(comm);
        const float  odd[3 * COLS] = { NAN, -0.0F, me, NAN, NAN, NAN };
        const int64_t large[3 * COLS] = { INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1, 0 };
        float        got[3 * COLS];
        int64_t      kept[3 * COLS];
        char         name[2][16];
        snprintf(name[0], 16, "f%d", k);
        snprintf(name[1], 16, "i%d", k);
        PLI_TRY(make(job, name[0], combines[k], PLAIT_F32, ROWS, 0, &floats));
        PLI_TRY(make(job, name[1], combines[k], PLAIT_I64, 0, 0, &whole));
        PLI_TRY(plait_table_inc(floats, 3, keys, odd, 0));
        PLI_TRY(plait_table_inc(whole, 3, keys, large, 0));
        PLI_TRY(plait_job_barrier(job)); /* what is added in this clock leaves with it */
        PLI_TRY(plait_table_get(floats, 3, keys, got));
        PLI_TRY(plait_table_get(whole, 3, keys, kept));
        CHECK(isinf(got[0]) && (got[0] > 0) == (k == 0));            /* a NaN is passed over */
        CHECK(got[1] == 0 && !signbit(got[1]));                       /* -0 is 0 */
        CHECK(isinf(got[5]) && memcmp(kept, large, sizeof kept) == 0); /* no float in between */
    }
    return PLAIT_OK;
}

static void test_odd_values(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    char                     why[700];
    (void)state;
    for (int t = 0; t < 3; t++) {
        const setting s = { .topology = topologies[t], .consistency = "bsp", .workers = 2 };
        if (!play(&s, push_odd, why, sizeof why)) fail_msg("%s: %s", topologies[t], why);
    }
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */

static plait_status create(plait_job *job, void *user) {
    const setting   *s = user;
    plait_table     *table;
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    opts.name = "t";
    opts.rows = ROWS;
    opts.combine = s->combine;
    opts.rule.name = s->rule;
    return plait_table_create(job, &opts, &table);
}

static void test_what_is_no_sum_is_refused(void **state) {
    static const struct {
        setting     s;
        const char *words;
    } wrong[] = {
        { { .topology = "ps", .consistency = "bsp", .combine = "mim" }, "unknown combine 'mim'" },
        { { .topology = "ps", .consistency = "bsp", .combine = "min", .rule = "sgd" }, "an update rule takes sums" },
        { { .topology = "gossip:ring", .consistency = "bsp", .combine = "max" }, "max with topology gossip:ring" },
        { { .topology = "ps", .consistency = "local-sgd:2", .combine = "max" }, "an average of the workers' values" },
        { { .topology = "allreduce", .consistency = "local-sgd:2", .combine = "min" }, "an average of the workers'" },
        { { .topology = "ps", .consistency = "vap:2", .combine = "min" }, "bounds what is added" },
        { { .topology = "ps", .consistency = "async", .combine = "min", .filter = "topk:0.1" },
          "filter topk with combine min is refused" },
        { { .topology = "ps", .consistency = "bsp", .combine = "last", .rule = "sgd" }, "an update rule takes sums" },
        { { .topology = "ps", .consistency = "async", .combine = "last", .filter = "fixed8" },
          "filter fixed8 with combine last is refused" },
        { { .topology = "ps", .consistency = "downpour:2:2", .combine = "last" },
          "combine last with consistency downpour:2:2 is refused" },
        { { .topology = "ps", .consistency = "vap:2", .combine = "last" }, "bounds what is added" },
        { { .topology = "ps", .consistency = "local-sgd:2", .combine = "last" }, "an average of the workers' values" },
        { { .topology = "gossip:ring", .consistency = "bsp", .combine = "last" }, "last with topology gossip:ring" },
        { { .topology = "local", .consistency = "async", .combine = "last" }, "no owner knows which value came last" },
        { { .topology = "ps", .consistency = "bsp", .combine = "last", .aggregate = "host" },
          "aggregation by host with combine last is refused" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setting s = wrong[i].s;
        char    why[700];
        s.workers = 2;
        assert_false(play(&s, create, why, sizeof why));
        if (strstr(why, wrong[i].words) == NULL) fail_msg("'%s' is not in: %s", wrong[i].words, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_extremes_are_kept),
        cmocka_unit_test(test_the_last_is_kept),
        cmocka_unit_test(test_odd_values),
        cmocka_unit_test(test_what_is_no_sum_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
