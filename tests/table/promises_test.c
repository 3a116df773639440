/* What tables promise whatever the policy and the topology: any 64-bit number is a key, a dump is what a get sees, what
 * a barrier has shown stays in view until the clock, and vap's bound holds where an inc names a key more than once.
 * Over threads job by job; with an argument, mpi or sim, as one job with a table of each kind. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include <plait/table.h>

#define CHECK(is)                                                                                                      \
    do {                                                                                                               \
        if (!(is)) {                                                                                                   \
            fprintf(stderr, "rank %d, clock %d, line %d: %s\n", plait_comm_rank(plait_job_comm(job)),                  \
                    (int)plait_job_clock_now(job), __LINE__, #is);                                                     \
            return PLAIT_EDIVERGED;                                                                                    \
        }                                                                                                              \
    } while (0)

typedef struct way {
    const char *topology, *consistency;
} way;

static const way ways[] = {
    { "ps", "bsp" },          { "ps", "ssp:2" },           { "ps", "essp:2" },
    { "ps", "asp:2:5" },      { "ps", "downpour:3:2" },    { "ps", "bounded-delay:2" },
    { "ps", "vap:1e9" },      { "ps", "async" },           { "ps", "local-sgd:3" },
    { "ps", "sequential" },   { "allreduce", "bsp" },      { "allreduce", "bounded-delay:2" },
    { "local", "bsp" },       { "local", "ssp:2" },        { "allreduce", "local-sgd:3" },
    { "local", "asp:2:5" },   { "local", "vap:1e9" },      { "local", "bounded-delay:1" },
    { "local", "sequential" }, { "local", "async" },       { "gossip:ring", "bsp" },
    { "gossip:exp", "async" }, { "gossip:ring", "local-sgd:3" },
};
enum { WAYS = sizeof ways / sizeof ways[0], WORKERS = 3 };

static const char *transport = "threads";

/* Does the way go between processes? If all tables are in one job, workers that take turns would make the others
 * wait. */
static bool goes_in(const way *w, bool together) {
    return !together || (strcmp(w->topology, "local") != 0 && strcmp(w->consistency, "sequential") != 0);
}

static bool is(const way *w, const char *consistency) {
    return strncmp(w->consistency, consistency, strlen(consistency)) == 0;
}

typedef struct shape {
    int64_t     rows; /* 0: sparse */
    int         keyed;
    const char *rule;
} shape;

/* One job. */
typedef struct setting {
    const way  *way; /* [n] of its tables */
    int32_t     n;
    shape       shape;
    const char *filter;
} setting;

static plait_status make(plait_job *job, const setting *s, int32_t i, plait_table **table_out) {
    plait_table_opts opts;
    char             name[16];
    plait_table_opts_init(&opts);
    snprintf(name, sizeof name, "t%d", i);
    opts.name = name;
    opts.topology = s->way[i].topology;
    opts.consistency = s->way[i].consistency;
    opts.filter = s->filter;
    opts.type = PLAIT_F64;
    opts.rows = s->shape.rows;
    opts.keyed = s->shape.keyed;
    opts.rule.name = s->shape.rule;
    opts.rule.learning_rate = 0.5;
    return plait_table_create(job, &opts, table_out);
}

static plait_status run(plait_work_fn *work, const setting *s, int32_t workers, int32_t servers, plait_error *err) {
    plait_comm_opts comm_opts;
    plait_job_opts  job_opts;
    plait_comm_opts_init(&comm_opts);
    plait_job_opts_init(&job_opts);
    comm_opts.transport = transport;
    if (strcmp(transport, "mpi") != 0) comm_opts.workers = workers;
    comm_opts.servers = servers;
    comm_opts.timeout_ns = UINT64_C(60) * 1000000000;
    job_opts.topology = s->way[0].topology;
    job_opts.batch = WORKERS;
    return plait_run(&comm_opts, &job_opts, work, (void *)(uintptr_t)s, err);
}

static void must(plait_work_fn *work, const setting *s, int32_t workers, int32_t servers) {
    plait_error err = { 0 };
    if (run(work, s, workers, servers, &err) < 0)
        fail_msg("%s x %s%s, %s%s, %s, %d+%d: rank %d: %s", s->way[0].topology, s->way[0].consistency,
                 s->n > 1 ? " and others" : "", s->shape.rows > 0 ? s->shape.keyed ? "keyed" : "dense" : "sparse",
                 s->filter != NULL ? ", filtered" : "", s->shape.rule == NULL ? "additive" : s->shape.rule, workers,
                 servers, err.rank, err.text);
}

/* In a process of its own, as SimGrid wants it. */
static void must_in_sim(plait_work_fn *work, const setting *s) {
    int   status = 1;
    pid_t child = fork();
    if (child == 0) {
        plait_error err = { 0 };
        if (run(work, s, WORKERS, 2, &err) >= 0) _exit(0);
        fprintf(stderr, "%s: rank %d: %s\n", s->shape.rule == NULL ? "additive" : s->shape.rule, err.rank, err.text);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Tests each way by itself, or all that go in one job. */
static void run_all(plait_work_fn *work, const shape *of, bool sparse_only) {
    setting together = { .shape = *of };
    way     some[WAYS];
    for (int i = 0; i < WAYS; i++) {
        const setting alone = { .way = &ways[i], .n = 1, .shape = *of };
        if (sparse_only && strncmp(ways[i].topology, "gossip", 6) == 0) continue;
        if (!goes_in(&ways[i], strcmp(transport, "threads") != 0)) continue;
        if (goes_in(&ways[i], true)) some[together.n++] = ways[i];
        if (strcmp(transport, "threads") != 0) continue;
        for (int32_t workers = 1; workers <= WORKERS; workers += WORKERS - 1)
            must(work, &alone, workers, i % 2 > 0 && workers > 1 ? 2 : 0);
    }
    together.way = some;
    if (strcmp(transport, "sim") == 0) must_in_sim(work, &together);
    else must(work, &together, WORKERS, strcmp(transport, "mpi") == 0 ? 0 : 2);
}

static int near(double x, double y) { return fabs(x - y) <= 1e-9 * (1 + fabs(y)); }

/* --- any 64-bit number is a key ----------------------------------------------------------------------------------- */

static const uint64_t edges[] = {
    0, 1, UINT32_MAX, (uint64_t)UINT32_MAX + 1, INT64_MAX, (uint64_t)INT64_MAX + 1, (uint64_t)INT64_MAX + 2,
    UINT64_MAX - 1, UINT64_MAX,
};
enum { EDGES = sizeof edges / sizeof edges[0], KEY_CLOCKS = 7 };

/* In increasing order, or the last first. */
static void write_edges(bool reversed, uint64_t keys[EDGES], double values[EDGES]) {
    for (int i = 0; i < EDGES; i++) {
        int k = reversed ? EDGES - 1 - i : i;
        keys[i] = edges[k];
        values[i] = k + 1;
    }
}

/* Do its workers write rows side by side, so that one of two steps may be lost? */
static bool is_shared(const way *w) { return strcmp(w->topology, "local") == 0 && is(w, "async"); }

static plait_status check_edges(plait_job *job, plait_table *table, const setting *s, const way *w) {
    const int32_t workers = plait_comm_workers(plait_job_comm(job));
    double        values[EDGES], *dumped;
    uint64_t     *keys;
    int64_t       n;
    CHECK(plait_table_get(table, EDGES, edges, values) == PLAIT_OK);
    for (int i = 0; i < EDGES; i++) {
        if (s->shape.rule == NULL) CHECK(near(values[i], (double)(KEY_CLOCKS * workers * (i + 1))));
        else CHECK(values[i] < 0); /* each key has moved, by its gradients */
        if (!is_shared(w)) CHECK(near(values[i], values[0] * (i + 1)));
    }
    CHECK(plait_table_dump(table, &n, &keys, (void **)&dumped) == PLAIT_OK && n == EDGES);
    for (int i = 0; i < EDGES; i++) CHECK(keys[i] == edges[i] && dumped[i] == values[i]);
    plait_comm_free(keys);
    plait_comm_free(dumped);
    return PLAIT_OK;
}

static plait_status use_edges(plait_job *job, void *user) {
    const setting *s = user;
    plait_table   *table[WAYS];
    uint64_t       keys[EDGES];
    double         values[EDGES], seen[EDGES];
    const int      me = plait_comm_rank(plait_job_comm(job));
    for (int32_t i = 0; i < s->n; i++) CHECK(make(job, s, i, &table[i]) == PLAIT_OK);
    for (int clock = 0; clock < KEY_CLOCKS; clock++) {
        write_edges((clock + me) % 3 == 2, keys, values);
        for (int32_t i = 0; i < s->n; i++) {
            CHECK(plait_table_get(table[i], EDGES, keys, seen) == PLAIT_OK);
            CHECK(plait_table_inc(table[i], EDGES, keys, values, s->shape.rule != NULL) == PLAIT_OK);
        }
        CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    for (int32_t i = 0; i < s->n; i++) CHECK(check_edges(job, table[i], s, &s->way[i]) == PLAIT_OK);
    return PLAIT_OK;
}

static void test_any_number_is_a_key(void **state) {
    (void)state;
    run_all(use_edges, &(shape){ 0 }, true);
    if (strcmp(transport, "mpi") == 0) return; /* one job a process */
    run_all(use_edges, &(shape){ .rule = "sgd" }, true);
    if (strcmp(transport, "sim") == 0) return;
    must(use_edges, &(setting){ .way = ways, .n = 1, .filter = "key-cache,key-delta,zstd" }, WORKERS, 2);
}

/* --- a dump is what a get sees ---------------------------------------------------------------------------------- */

enum { KEYS = 24, DUMP_CLOCKS = 14 };

static uint64_t key_of(int i) { return (uint64_t)i * UINT64_C(0x0b21642c8590b216); } /* over all of the 64 bits */

/* A dump as values of all KEYS; a key that is not in it reads as zero. */
static plait_status dump_all(plait_job *job, plait_table *table, double values[KEYS]) {
    double   *dumped;
    uint64_t *keys;
    int64_t   n, found = 0;
    CHECK(plait_table_dump(table, &n, &keys, (void **)&dumped) == PLAIT_OK);
    for (int64_t i = 1; i < n; i++) CHECK(keys[i - 1] < keys[i]);
    for (int k = 0; k < KEYS; k++) {
        values[k] = 0;
        for (int64_t i = 0; i < n; i++) {
            if (keys[i] != key_of(k)) continue;
            values[k] = dumped[i];
            found++;
        }
    }
    CHECK(found == n);
    plait_comm_free(keys);
    plait_comm_free(dumped);
    return PLAIT_OK;
}

/* All incs have one sign, so values only grow (ruled: fall), and reads that never go back show it. */
static plait_status compare(plait_job *job, plait_table *table, const setting *s, pli_random *random) {
    const double sign = s->shape.rule == NULL ? 1 : -1;
    double       few[KEYS], dumped[KEYS], again[KEYS], got[KEYS];
    uint64_t     keys[KEYS], all[KEYS];
    int          place[KEYS], n = 0;
    for (int k = 0; k < KEYS; k++) {
        all[k] = key_of(k);
        if (pli_random_below(random, 3) == 0) place[n] = k, keys[n++] = key_of(k);
    }
    CHECK(plait_table_get(table, n, keys, few) == PLAIT_OK);
    CHECK(dump_all(job, table, dumped) == PLAIT_OK);
    CHECK(plait_table_get(table, KEYS, all, got) == PLAIT_OK);
    for (int i = 0; i < n; i++) CHECK(sign * few[i] <= sign * dumped[place[i]]);
    for (int k = 0; k < KEYS; k++) CHECK(sign * dumped[k] <= sign * got[k]);
    CHECK(dump_all(job, table, again) == PLAIT_OK);
    for (int k = 0; k < KEYS; k++) CHECK(sign * got[k] <= sign * again[k]);
    return PLAIT_OK;
}

static plait_status add_some(plait_job *job, plait_table *table, const setting *s, pli_random *random) {
    uint64_t keys[KEYS];
    double   ones[KEYS];
    int      n = 0;
    for (int k = 0; k < KEYS; k++)
        if (pli_random_below(random, 2) == 0) keys[n] = key_of(k), ones[n++] = 1 + (double)pli_random_below(random, 9);
    CHECK(plait_table_inc(table, n, keys, ones, s->shape.rule != NULL) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status dump_often(plait_job *job, void *user) {
    const setting *s = user;
    plait_table   *table[WAYS];
    const int      me = plait_comm_rank(plait_job_comm(job));
    pli_random     random = pli_random_at(1, PLI_RANDOM_SCHEDULE, (uint64_t)me, 0);
    for (int32_t i = 0; i < s->n; i++) CHECK(make(job, s, i, &table[i]) == PLAIT_OK);
    for (int clock = 0; clock < DUMP_CLOCKS; clock++) {
        for (int32_t i = 0; i < s->n; i++) {
            CHECK(compare(job, table[i], s, &random) == PLAIT_OK);
            CHECK(add_some(job, table[i], s, &random) == PLAIT_OK);
            CHECK(compare(job, table[i], s, &random) == PLAIT_OK);
        }
        CHECK(plait_job_clock(job) == PLAIT_OK);
        CHECK(plait_comm_barrier(plait_job_comm(job)) == PLAIT_OK); /* so that others' updates come between */
        if (clock % 5 != 3) continue;
        CHECK(plait_job_barrier(job) == PLAIT_OK);
        for (int32_t i = 0; i < s->n; i++) CHECK(compare(job, table[i], s, &random) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_a_dump_is_what_a_get_sees(void **state) {
    (void)state;
    run_all(dump_often, &(shape){ 0 }, true);
    if (strcmp(transport, "mpi") != 0) run_all(dump_often, &(shape){ .rule = "sgd" }, true);
}

/* --- what a barrier has shown ----------------------------------------------------------------------------------- */

enum { ROWS = 40, VIEW_CLOCKS = 8 };

/* Worker w adds w + 1 to row 7 and to row 20 + w in each clock. */
static plait_status add_own(plait_job *job, plait_table *table, const setting *s) {
    const int me = plait_comm_rank(plait_job_comm(job));
    CHECK(plait_table_inc(table, 2, (uint64_t[]){ 7, 20 + (uint64_t)me }, (double[]){ me + 1, me + 1 },
                          s->shape.rule != NULL) == PLAIT_OK);
    return PLAIT_OK;
}

/* Behind a barrier, before and behind incs to other rows, to the same and to the other tables. */
static plait_status look_behind_barrier(plait_job *job, plait_table *const *table, const setting *s, int64_t clocks) {
    const int      me = plait_comm_rank(plait_job_comm(job)), workers = plait_comm_workers(plait_job_comm(job));
    const double   sum = workers * (workers + 1) / 2.0;
    const uint64_t keys[] = { 7, 20 + (uint64_t)((me + 1) % workers), 30 + (uint64_t)me };
    double         seen[WAYS][3], now[3];
    for (int32_t i = 0; i < s->n; i++) CHECK(plait_table_get(table[i], 3, keys, seen[i]) == PLAIT_OK);
    for (int step = 0; step < 3; step++) {
        const uint64_t key = step == 0 ? 30 + (uint64_t)me : 7;
        for (int32_t i = 0; i < s->n && step < 2; i++)
            CHECK(plait_table_inc(table[i], 1, &key, &(double){ 1 }, s->shape.rule != NULL) == PLAIT_OK);
        for (int32_t i = 0; i < s->n; i++) {
            CHECK(plait_table_get(table[i], 3, keys, now) == PLAIT_OK);
            if (s->shape.rule == NULL) {
                const double others = (double)workers * (double)(clocks / 4 - 1); /* of barriers before */
                CHECK(near(now[0], (double)clocks * sum + others + (step > 0)));
                CHECK(near(now[1], (double)clocks * ((me + 1) % workers + 1)));
                CHECK(near(now[2], (double)(clocks / 4)));
            }
            for (int k = 0; s->shape.rule != NULL && k < 3; k++) CHECK(now[k] == seen[i][k]);
        }
    }
    return PLAIT_OK;
}

static plait_status meet_and_add(plait_job *job, void *user) {
    const setting *s = user;
    plait_table   *table[WAYS];
    for (int32_t i = 0; i < s->n; i++) CHECK(make(job, s, i, &table[i]) == PLAIT_OK);
    for (int clock = 0; clock < VIEW_CLOCKS; clock++) {
        for (int32_t i = 0; i < s->n; i++) CHECK(add_own(job, table[i], s) == PLAIT_OK);
        CHECK(plait_job_clock(job) == PLAIT_OK);
        if (clock % 4 != 3) continue;
        CHECK(plait_job_barrier(job) == PLAIT_OK);
        CHECK(look_behind_barrier(job, table, s, clock + 1) == PLAIT_OK);
        CHECK(plait_comm_barrier(plait_job_comm(job)) == PLAIT_OK); /* nobody's updates leave before all have looked */
    }
    return PLAIT_OK;
}

static void test_what_a_barrier_has_shown_stays(void **state) {
    (void)state;
    static const shape shapes[] = { { 0, 0, NULL }, { 0, 0, "sgd" }, { ROWS, 0, NULL }, { ROWS, 0, "sgd" },
                                    { ROWS, 1, NULL }, { ROWS, 1, "sgd" } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int w = 0; w < WAYS; w++) {
            const setting s = { .way = &ways[w], .n = 1, .shape = shapes[i] };
            if (is(&ways[w], "sequential")) continue; /* an inc waits for its turn, which comes with others' clocks */
            if (is_shared(&ways[w])) continue; /* incs are seen at once */
            if (shapes[i].rows == 0 && strncmp(ways[w].topology, "gossip", 6) == 0) continue;
            if (shapes[i].rule != NULL && is(&ways[w], "downpour")) continue; /* which shows own gradients at once */
            for (int32_t workers = 1; workers <= WORKERS; workers++) must(meet_and_add, &s, workers, w % 2 ? 2 : 0);
        }
        const way both[] = { { "ps", "local-sgd:3" }, { "allreduce", "local-sgd:3" }, { "ps", "ssp:1" } };
        must(meet_and_add, &(setting){ .way = both, .n = 3, .shape = shapes[i] }, WORKERS, 0);
    }
}

/* --- vap: an inc that names a key more than once ------------------------------------------------------------------ */

enum { BATCH = 16, VAP_STEPS = 30 };

/* Worker 0 adds. When that call has returned, the others look what they miss: less than V. */
static plait_status add_and_look(plait_job *job, void *user) {
    const setting *s = user;
    plait_comm    *comm = plait_job_comm(job);
    plait_table   *table;
    const double   bound = 3, scale = s->shape.rule == NULL ? 1 : -0.5 / WORKERS; /* of a gradient's sum, by the rule */
    double         added[8] = { 0 }, delta[BATCH], seen[8];
    uint64_t       keys[BATCH], all[8];
    pli_random     random = pli_random_at(3, PLI_RANDOM_SCHEDULE, 0, 0); /* all draw alike */
    for (uint64_t k = 0; k < 8; k++) all[k] = k;
    CHECK(make(job, s, 0, &table) == PLAIT_OK);
    for (int step = 0; step < VAP_STEPS; step++) {
        const int n = 1 + (int)pli_random_below(&random, BATCH);
        for (int i = 0; i < n; i++) {
            keys[i] = step == 0 ? 5 : pli_random_below(&random, 8);
            delta[i] = (step == 0 ? 2.9 : (double)pli_random_below(&random, 300) / 100) * (step % 4 == 3 ? 0.1 : 1);
            if (s->shape.rule != NULL) delta[i] *= WORKERS; /* the batch, by which the norm is divided */
            added[keys[i]] += delta[i] * scale;
        }
        if (plait_comm_rank(comm) == 0)
            CHECK(plait_table_inc(table, n, keys, delta, s->shape.rule != NULL) == PLAIT_OK);
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
        CHECK(plait_table_get(table, 8, all, seen) == PLAIT_OK);
        for (int k = 0; k < 8 && plait_comm_rank(comm) > 0; k++)
            CHECK(fabs(added[k] - seen[k]) < bound * (s->shape.rule == NULL ? 1 : 0.5));
        CHECK(plait_comm_barrier(comm) == PLAIT_OK);
        if (step % 10 == 9) CHECK(plait_job_clock(job) == PLAIT_OK);
    }
    return PLAIT_OK;
}

static void test_vap_adds_repeats_up(void **state) {
    (void)state;
    static const way   vaps[] = { { "ps", "vap:3" }, { "ps", "vap:3:weak" },
                                  { "local", "vap:3" }, { "local", "vap:3:weak" } };
    static const shape shapes[] = { { 0, 0, NULL }, { 8, 0, NULL }, { 8, 1, NULL }, { 0, 0, "sgd" }, { 8, 0, "sgd" } };
    for (size_t w = 0; w < sizeof vaps / sizeof *vaps; w++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            for (int32_t workers = 2; workers <= WORKERS; workers++)
                must(add_and_look, &(setting){ .way = &vaps[w], .n = 1, .shape = shapes[i] }, workers, (int32_t)i % 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_is_a_key),
        cmocka_unit_test(test_a_dump_is_what_a_get_sees),
        cmocka_unit_test(test_what_a_barrier_has_shown_stays),
        cmocka_unit_test(test_vap_adds_repeats_up),
    };
    const struct CMUnitTest of_one_job[] = { cmocka_unit_test(test_any_number_is_a_key),
                                             cmocka_unit_test(test_a_dump_is_what_a_get_sees) };
    if (argc > 1) transport = argv[1];
    if (argc > 2) cmocka_set_test_filter(argv[2]);
    return argc > 1 && strcmp(transport, "threads") != 0 ? cmocka_run_group_tests(of_one_job, NULL, NULL)
                                                           : cmocka_run_group_tests(tests, NULL, NULL);
}
