/* groups.h - what tests of groups' tables share. Four workers; two disjoint groups (even, odd), one that overlaps both
 * (back: 1, 2, 3), and a table of all workers beside them. count() is a job in which each table sums its members'
 * updates. */
#ifndef PLI_TESTS_TABLE_GROUPS_H
#define PLI_TESTS_TABLE_GROUPS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "table/table.h"

enum { WORKERS = 4, GROUPS = 3, ALL = GROUPS, TABLES = GROUPS + 1, ROWS = 700, KEYS = 9, CLOCKS = 6 };

static const char *const group_names[TABLES] = { "even", "odd", "back", "all" };
static const int32_t     sizes[TABLES] = { 2, 2, 3, WORKERS };
static const int32_t     members[TABLES][WORKERS] = { { 0, 2 }, { 3, 1 }, { 1, 2, 3 }, { 0, 1, 2, 3 } };

static inline bool has(int g, int32_t rank) {
    for (int32_t i = 0; i < sizes[g]; i++)
        if (members[g][i] == rank) return true;
    return false;
}

typedef struct setting {
    const char *transport, *topology, *consistency;
    bool        exact, begun;
    uint64_t    seed;
    bool        blind;   /* values are not judged: the audit is asked alone */
    bool        refused; /* set by the workers: the pair is */
} setting;

/* What a worker adds in a clock: whole numbers, so that every order has the same sum. */
static inline double term(const setting *s, int g, int32_t rank, int64_t clock, int64_t row) {
    return (double)(pli_hash_u64(s->seed ^ (uint64_t)(((g * 16 + rank) * 64 + clock) * 1024 + row)) % 1000);
}

static inline double sum_of(const setting *s, int g, int64_t row) {
    double sum = 0;
    for (int32_t r = 0; r < WORKERS; r++)
        for (int64_t clock = 0; has(g, r) && clock < CLOCKS; clock++) sum += term(s, g, r, clock, row);
    return sum;
}

static inline plait_status make_groups(plait_comm *comm, plait_group **group) {
    for (int g = 0; g < GROUPS; g++)
        CHECK(plait_group_create(comm, group_names[g], sizes[g], members[g], &group[g]) == PLAIT_OK);
    group[ALL] = NULL;
    return PLAIT_OK;
}

static inline plait_status make(plait_job *job, const setting *s, plait_group *group, int g, const char *what,
                                int64_t rows, plait_table **out) {
    char             name[64];
    plait_table_opts opts;
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "%s of %s", what, group_names[g]);
    opts.name = name;
    opts.type = PLAIT_F64;
    opts.rows = rows;
    opts.exact = s->exact;
    opts.topology = s->topology;
    opts.consistency = s->consistency;
    opts.group = group;
    return plait_table_create(job, &opts, out);
}

/* Behind a barrier each worker reads the average of all copies, which moves by what is added: up to rounding. */
static inline bool averages(const setting *s) { return strncmp(s->topology, "gossip", 6) == 0; }

static inline plait_status end_clock(plait_job *job, bool begun) {
    plait_request *request;
    if (!begun) return plait_job_clock(job);
    PLI_TRY(plait_job_clock_begin(job, &request));
    return plait_request_wait(&request);
}

static inline plait_status add(plait_comm *comm, const setting *s, int g, int64_t clock, plait_table *dense,
                        plait_table *sparse) {
    double   delta[ROWS];
    uint64_t keys[KEYS];
    int32_t  me = plait_comm_rank(comm);
    for (int64_t i = 0; i < ROWS; i++) delta[i] = term(s, g, me, clock, i);
    CHECK(plait_table_inc_range(dense, 0, ROWS, delta, 0) == PLAIT_OK);
    for (int64_t i = 0; i < KEYS; i++) keys[i] = (uint64_t)(i * 37);
    if (sparse != NULL) CHECK(plait_table_inc(sparse, KEYS, keys, delta, 0) == PLAIT_OK);
    return PLAIT_OK;
}

static inline plait_status look(plait_comm *comm, const setting *s, int g, plait_table *dense, plait_table *sparse) {
    double   value[ROWS];
    uint64_t keys[KEYS];
    double   close = averages(s) ? 1e-6 : 0;
    CHECK(plait_table_get_range(dense, 0, ROWS, value) == PLAIT_OK);
    for (int64_t i = 0; i < ROWS; i++) {
        const double off = s->blind ? 0 : value[i] - sum_of(s, g, i);
        CHECK(off <= close && off >= -close);
    }
    for (int64_t i = 0; i < KEYS; i++) keys[i] = (uint64_t)(i * 37);
    if (sparse == NULL) return PLAIT_OK;
    CHECK(plait_table_get(sparse, KEYS, keys, value) == PLAIT_OK);
    for (int64_t i = 0; i < KEYS; i++) CHECK(s->blind || value[i] == sum_of(s, g, i));
    return PLAIT_OK;
}

static inline plait_status count(plait_job *job, void *user) {
    setting     *s = user;
    plait_comm  *comm = plait_job_comm(job);
    int32_t      me = plait_comm_rank(comm);
    plait_group *group[TABLES];
    plait_table *dense[TABLES] = { NULL }, *sparse[TABLES] = { NULL };
    bool         served = strcmp(s->topology, "local") == 0 || strcmp(s->topology, "ps") == 0;
    PLI_TRY(make_groups(comm, group));
    plait_status whole = make(job, s, NULL, ALL, "dense", ROWS, &dense[ALL]);
    char         why[512];
    snprintf(why, sizeof why, "%s", plait_comm_error(comm)->text);
    if (whole < 0) s->refused = true;
    for (int g = 0; g < GROUPS; g++) {
        if (!has(g, me)) {
            CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == PLAIT_EREFUSED && dense[g] == NULL);
            CHECK(strstr(plait_comm_error(comm)->text, "no member") != NULL);
            continue;
        }
        CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == whole);
        if (served && whole == PLAIT_OK) CHECK(make(job, s, group[g], g, "sparse", 0, &sparse[g]) == PLAIT_OK);
        if (whole == PLAIT_OK) CHECK(make(job, s, group[g], g, "dense", ROWS, &dense[g]) == PLAIT_EINVAL); /* twice */
    }
    if (whole < 0) return whole == PLAIT_EREFUSED ? PLAIT_OK : whole;
    for (int64_t clock = 0; clock < CLOCKS; clock++) {
        for (int g = 0; g < TABLES; g++) {
            if (!has(g, me)) continue;
            double value;
            CHECK(plait_table_get_range(dense[g], (clock * 13 + me) % ROWS, 1, &value) == PLAIT_OK);
            PLI_TRY(add(comm, s, g, clock, dense[g], sparse[g]));
            CHECK(plait_table_get_range(dense[g], 5, 1, &value) ==
                  PLAIT_OK); /* the same in each clock, own sum in it */
        }
        pli_comm_work(comm, PLI_WORK_ENTRIES, pli_hash_u64(s->seed * 64 + (uint64_t)(clock * 8 + me)) % 100000);
        CHECK(end_clock(job, s->begun) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    for (int g = 0; g < TABLES; g++)
        if (has(g, me)) PLI_TRY(look(comm, s, g, dense[g], sparse[g]));
    return PLAIT_OK;
}

static inline plait_comm_opts opts_of(const char *transport, uint64_t seed) {
    plait_comm_opts opts;
    plait_comm_opts_init(&opts);
    opts.transport = transport;
    opts.workers = WORKERS;
    opts.seed = seed;
    opts.timeout_ns = UINT64_C(60) * 1000000000;
    return opts;
}

#endif
