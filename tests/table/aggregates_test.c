/* Hosts that add up before anything leaves them, through the public calls. Servers hold what all workers have added,
 * even if some have nothing to add, or one ends its job in an earlier clock than others and another job follows. So do
 * the members of groups, which a seed draws: each table has what a book of the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <plait/group.h>
#include <plait/table.h>

#include "base/random.h"

#define CHECK(is)                                                                                   \
    do {                                                                                            \
        if (!(is)) {                                                                                \
            fprintf(stderr, "rank %d, line %d: %s\n",                                               \
                    plait_comm_rank(comm), __LINE__, #is);                                          \
            return PLAIT_EINVAL;                                                                    \
        }                                                                                           \
    } while (0)

enum { ROWS = 2000, KINDS = 3, CLOCKS = 5 };

typedef struct setting {
    const char *topology, *consistency;
    int         exact;
} setting;

static plait_status create(plait_job *job, int32_t kind, plait_table **table_out) {
    static const char *const names[KINDS] = { "dense", "keyed", "sparse" };
    plait_table_opts         opts;
    plait_table_opts_init(&opts);
    opts.name = names[kind];
    opts.type = PLAIT_F64;
    opts.rows = kind == 2 ? 0 : ROWS;
    opts.keyed = kind == 1;
    return plait_table_create(job, &opts, table_out);
}

/* In clock c every worker but worker c mod W adds rank + 1 to row 7 and to one row of its own. */
static plait_status add(plait_comm *comm, plait_table **table, int64_t clock) {
    int32_t  me = plait_comm_rank(comm);
    uint64_t keys[2] = { 7, 100 * ((uint64_t)me + 1) };
    double   delta[2] = { me + 1, me + 1 };
    for (int32_t k = 0; clock % plait_comm_workers(comm) != me && k < KINDS; k++)
        CHECK(plait_table_inc(table[k], 2, keys, delta, 1) == PLAIT_OK);
    return PLAIT_OK;
}

/* What the workers have added to row 7 in clocks below `clocks`, and what worker w has added of it. */
static double sum_of(int32_t workers, int64_t clocks, int32_t w) {
    double sum = 0;
    for (int64_t c = 0; c < clocks; c++) sum += c % workers != w ? w + 1 : 0;
    return sum;
}

static plait_status look(plait_comm *comm, plait_table **table, int64_t clocks) {
    int32_t workers = plait_comm_workers(comm);
    double  whole = 0;
    for (int32_t w = 0; w < workers; w++) whole += sum_of(workers, clocks, w);
    for (int32_t k = 0; k < KINDS; k++)
        for (int32_t w = 0; w < workers; w++) {
            uint64_t keys[2] = { 7, 100 * ((uint64_t)w + 1) };
            double   values[2];
            CHECK(plait_table_get(table[k], 2, keys, values) == PLAIT_OK);
            CHECK(values[0] == whole && values[1] == sum_of(workers, clocks, w));
        }
    return PLAIT_OK;
}

/* early: all workers but the last end the job a clock earlier. */
static plait_status run_job(plait_comm *comm, const setting *s, bool early) {
    plait_job_opts opts;
    plait_job     *job;
    plait_table   *table[KINDS] = { 0 };
    int32_t        me = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    plait_job_opts_init(&opts);
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.exact = s->exact;
    opts.aggregate = "host";
    CHECK(plait_job_create(comm, &opts, &job) == PLAIT_OK);
    if (me >= workers) return plait_job_destroy(&job);
    for (int32_t k = 0; k < KINDS; k++) CHECK(create(job, k, &table[k]) == PLAIT_OK);
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        if (add(comm, table, clock) < 0) return PLAIT_EINVAL;
        if (clock == 2) CHECK(plait_job_barrier(job) == PLAIT_OK); /* between an inc and its clock */
        CHECK(plait_job_clock(job) == PLAIT_OK);
        if (look(comm, table, clock + 1) < 0) return PLAIT_EINVAL;
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    if (look(comm, table, CLOCKS) < 0) return PLAIT_EINVAL;
    if (early && me == workers - 1) {
        if (add(comm, table, CLOCKS) < 0) return PLAIT_EINVAL;
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_destroy(&job) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status body(plait_comm *comm, void *user) {
    const setting *s = user;
    if (run_job(comm, s, strcmp(s->topology, "ps") == 0) < 0) return PLAIT_EINVAL;
    return run_job(comm, s, false);
}

static void test_sums_of_hosts(void **state) {
    (void)state;
    static const setting settings[] = {
        { "ps", "bsp", 0 }, { "ps", "bounded-delay:0", 0 }, { "ps", "bsp", 1 }, { "hybrid", "bsp", 0 }
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        for (int32_t workers = 1; workers <= 5; workers += 2)
            for (int32_t servers = 0; servers < 3; servers += 2) {
                setting         s = settings[i];
                plait_error     err = { 0 };
                plait_comm_opts opts;
                plait_comm_opts_init(&opts);
                opts.workers = workers;
                opts.servers = servers;
                opts.timeout_ns = UINT64_C(60) * 1000000000;
                if (plait_comm_run(&opts, body, &s, &err) < 0)
                    fail_msg("%s x %s%s, %d workers, %d servers: %s", s.topology, s.consistency,
                             s.exact ? ", exact" : "", workers, servers, err.text);
            }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

enum { GROUPS = 3, MOST = 6, DRAWS = 30, DRAWS_FULL = 1000 };

/* A job of groups that overlap, each with a table, and of one table of all: the last. */
typedef struct drawn {
    uint64_t    seed;
    const char *topology;
    int32_t     workers, groups;
    int32_t     n[GROUPS + 1], member[GROUPS + 1][MOST]; /* ascending */
    bool        idle[CLOCKS][MOST];                      /* who adds nothing in the clock */
} drawn;

static drawn draw(uint64_t seed) {
    static const char *const topologies[] = { "ps", "allreduce", "hybrid" };
    pli_random               r = pli_random_at(seed, PLI_RANDOM_SCHEDULE, 61, 0);
    drawn                    d = { .seed = seed, .topology = topologies[pli_random_below(&r, 3)] };
    d.workers = 2 + (int32_t)pli_random_below(&r, MOST - 1);
    d.groups = 1 + (int32_t)pli_random_below(&r, GROUPS);
    for (int32_t g = 0; g <= d.groups; g++)
        do {
            d.n[g] = 0;
            for (int32_t w = 0; w < d.workers; w++)
                if (g == d.groups || pli_random_below(&r, 3) > 0) d.member[g][d.n[g]++] = w;
        } while (d.n[g] == 0);
    for (int32_t c = 0; c < CLOCKS; c++)
        for (int32_t w = 0; w < d.workers; w++) d.idle[c][w] = pli_random_below(&r, 3) == 0;
    return d;
}

static double part_of(int32_t g, int32_t w) { return (g + 1) * (w + 1); }

/* The book: what the members of group g have added to row 7 in clocks below `clocks`. */
static double booked(const drawn *d, int32_t g, int64_t clocks) {
    double sum = 0;
    for (int64_t c = 0; c < clocks; c++)
        for (int32_t i = 0; i < d->n[g]; i++)
            if (!d->idle[c][d->member[g][i]]) sum += part_of(g, d->member[g][i]);
    return sum;
}

static plait_status keep_book(plait_comm *comm, const drawn *d, plait_table *const *table, int64_t clocks) {
    for (int32_t g = 0; g <= d->groups; g++) {
        const uint64_t key = 7;
        double         value;
        if (table[g] == NULL) continue;
        CHECK(plait_table_get(table[g], 1, &key, &value) == PLAIT_OK && value == booked(d, g, clocks));
    }
    return PLAIT_OK;
}

static plait_status run_groups(plait_comm *comm, void *user) {
    const drawn   *d = user;
    const int32_t  me = plait_comm_rank(comm);
    plait_job_opts opts;
    plait_job     *job;
    plait_table   *table[GROUPS + 1] = { NULL };
    plait_job_opts_init(&opts);
    opts.topology = d->topology;
    opts.aggregate = "host";
    CHECK(plait_job_create(comm, &opts, &job) == PLAIT_OK);
    for (int32_t g = 0; g <= d->groups; g++) {
        char             name[8];
        plait_group     *group = NULL;
        plait_table_opts t;
        snprintf(name, sizeof name, "g%d", (int)g);
        if (g < d->groups) CHECK(plait_group_create(comm, name, d->n[g], d->member[g], &group) == PLAIT_OK);
        if (group != NULL && plait_group_rank(group) < 0) continue;
        plait_table_opts_init(&t);
        t.name = name;
        t.type = PLAIT_F64;
        t.rows = ROWS;
        t.keyed = g % 2;
        t.group = group;
        CHECK(plait_table_create(job, &t, &table[g]) == PLAIT_OK);
    }
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        for (int32_t g = 0; g <= d->groups; g++) {
            const uint64_t key = 7;
            const double   delta = part_of(g, me);
            if (table[g] == NULL || d->idle[clock][me]) continue;
            CHECK(plait_table_inc(table[g], 1, &key, &delta, 1) == PLAIT_OK);
        }
        CHECK(plait_job_clock(job) == PLAIT_OK);
        if (keep_book(comm, d, table, clock + 1) < 0) return PLAIT_EINVAL;
    }
    CHECK(plait_job_destroy(&job) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_sums_of_hosts_in_groups(void **state) {
    (void)state;
    const char   *only = getenv("PLAIT_SEED");
    const int64_t draws = only != NULL ? 1 : getenv("PLAIT_TEST_FULL") != NULL ? DRAWS_FULL : DRAWS;
    for (int64_t i = 0; i < draws; i++) {
        drawn           d = draw(only != NULL ? strtoull(only, NULL, 10) : (uint64_t)i + 1);
        plait_error     err = { 0 };
        plait_comm_opts opts;
        plait_comm_opts_init(&opts);
        opts.workers = d.workers;
        opts.timeout_ns = UINT64_C(60) * 1000000000;
        if (plait_comm_run(&opts, run_groups, &d, &err) < 0)
            fail_msg("%s, %d workers, %d groups; PLAIT_SEED=%llu: %s", d.topology, (int)d.workers, (int)d.groups,
                     (unsigned long long)d.seed, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sums_of_hosts),
                                        cmocka_unit_test(test_sums_of_hosts_in_groups) };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0; /* 1: refuted (tests/audit/mutants.txt) */
}
