/* Tests what plait/checkpoint.h says of jobs that go on: chosen tables, and chosen variables of a table store or of a
 * session's own memory, get the values back that they had, at any clock, with the rule's state, and train on from there
 * to the same bits; the others keep theirs. The event log of such a run is proven. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <plait/checkpoint.h>
#include <plait/events.h>
#include <plait/ops.h>
#include <plait/table_store.h>

#include "base/base.h"
#include "check.h"
#include "learn/checkpoint_dir.h"
#include "watch/audit/audit.h"

enum { ROWS = 600, KEYS = 30, TABLES = 4, SAVED = 2, LOADED = 5, WORKERS_MAX = 3 };

typedef struct story {
    const char *topology, *consistency;
    int32_t     workers;
    bool        whole_clocks; /* what comes of the same pushes has the same bits */
} story;

/* What a worker reads of a table. */
typedef struct seen {
    float dense[ROWS], sparse[KEYS];
} seen;

static uint64_t key_of(int64_t i) { return (uint64_t)i * 1000003; }

static plait_status make_tables(plait_job *job, plait_table *table[TABLES]) {
    static const char *const names[TABLES] = { "momentum", "adam", "keys", "stays" };
    static const char *const rules[TABLES] = { "momentum", "adam", "adagrad", "adagrad" };
    plait_comm              *comm = plait_job_comm(job);
    for (int t = 0; t < TABLES; t++) {
        plait_table_opts opts;
        plait_table_opts_init(&opts);
        opts.name = names[t];
        opts.rows = t == 2 ? 0 : ROWS;
        opts.rule.name = rules[t];
        opts.rule.l1 = t == 2 ? 0.01 : 0; /* paid lazily */
        CHECK(plait_table_create(job, &opts, &table[t]) == PLAIT_OK);
    }
    return PLAIT_OK;
}

/* number: of the pushes, whatever the clock. */
static plait_status one_clock(plait_job *job, plait_table *const table[TABLES], int64_t number) {
    plait_comm   *comm = plait_job_comm(job);
    const int32_t me = plait_comm_rank(comm);
    float         delta[ROWS];
    uint64_t      key[KEYS / 2];
    for (int64_t i = 0; i < ROWS; i++)
        delta[i] = (float)((i * 31 + number * 7 + me * 17) % 101 - 50) / 64;
    for (int64_t i = 0; i < KEYS / 2; i++) key[i] = key_of(2 * i + number % 2);
    for (int t = 0; t < TABLES; t++)
        CHECK((t == 2 ? plait_table_inc(table[t], KEYS / 2, key, delta, 1)
                      : plait_table_inc_range(table[t], 0, ROWS, delta, 1)) == PLAIT_OK);
    CHECK(plait_job_clock(job) == PLAIT_OK);
    return PLAIT_OK;
}

static plait_status look(plait_job *job, plait_table *const table[TABLES], seen out[TABLES]) {
    plait_comm *comm = plait_job_comm(job);
    uint64_t    key[KEYS];
    for (int64_t i = 0; i < KEYS; i++) key[i] = key_of(i);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    memset(out, 0, TABLES * sizeof *out);
    for (int t = 0; t < TABLES; t++)
        CHECK((t == 2 ? plait_table_get(table[t], KEYS, key, out[t].sparse)
                      : plait_table_get_range(table[t], 0, ROWS, out[t].dense)) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    return PLAIT_OK;
}

static bool same(const seen *a, const seen *b) { return memcmp(a, b, sizeof *a) == 0; }

static plait_status load(plait_job *job, plait_table *const table[TABLES], seen *now) {
    plait_comm       *comm = plait_job_comm(job);
    plait_checkpoint *c = NULL;
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, table[0], "nothing") == PLAIT_EMISMATCH);
    CHECK(plait_checkpoint_load(c, table[0], "adam") == PLAIT_EMISMATCH); /* of another rule */
    CHECK(look(job, table, now) == PLAIT_OK);
    for (int t = 0; t < TABLES - 1; t++) CHECK(plait_checkpoint_load(c, table[t], NULL) == PLAIT_OK);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static plait_status save(plait_job *job, plait_table *const table[TABLES]) {
    plait_comm           *comm = plait_job_comm(job);
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = dir;
    CHECK(plait_checkpoint_save(job, table, TABLES, &opts) == PLAIT_OK);
    return PLAIT_OK;
}

/* After clock 5 three of four tables go back to what they were after clock 2, and the pushes of clocks 2 to 4 are made
 * again. */
static plait_status there_and_back(plait_job *job, void *user) {
    const story *s = user;
    plait_comm  *comm = plait_job_comm(job);
    plait_table *table[TABLES];
    seen        *kept = pli_calloc(4 * TABLES, sizeof *kept), *end = kept + TABLES, *now = end + TABLES,
         *again = now + TABLES;
    CHECK(kept != NULL && make_tables(job, table) == PLAIT_OK);
    for (int64_t k = 0; k < SAVED; k++) CHECK(one_clock(job, table, k) == PLAIT_OK);
    CHECK(look(job, table, kept) == PLAIT_OK && save(job, table) == PLAIT_OK);
    for (int64_t k = SAVED; k < LOADED; k++) CHECK(one_clock(job, table, k) == PLAIT_OK);
    CHECK(look(job, table, end) == PLAIT_OK && load(job, table, now) == PLAIT_OK);
    for (int t = 0; t < TABLES; t++) CHECK(same(&now[t], &end[t]));
    CHECK(look(job, table, now) == PLAIT_OK && plait_job_clock_now(job) == LOADED);
    for (int t = 0; t < TABLES; t++) CHECK(same(&now[t], t < TABLES - 1 ? &kept[t] : &end[t]));
    for (int64_t k = SAVED; k < LOADED; k++) CHECK(one_clock(job, table, k) == PLAIT_OK);
    CHECK(look(job, table, again) == PLAIT_OK);
    for (int t = 0; t < TABLES - 1 && s->whole_clocks; t++)
        CHECK(t == 1 || same(&again[t], &end[t])); /* adam corrects by the job's clock, which goes on */
    CHECK(!same(&again[TABLES - 1], &end[TABLES - 1]));
    pli_free(kept);
    return PLAIT_OK;
}

static plait_status run(const story *s, plait_work_fn *work, plait_events *events, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_comm_opts_init(&comm);
    comm.workers = s->workers;
    plait_job_opts_init(&job);
    job.topology = s->topology;
    job.consistency = s->consistency;
    job.batch = s->workers;
    job.exact = s->whole_clocks;
    job.events = events;
    return plait_run(&comm, &job, work, (void *)(uintptr_t)s, err);
}

static void prove(const char *path, const story *s) {
    pli_logfile *file = NULL;
    pli_audit   *audit = NULL;
    assert_int_equal(pli_logfile_open(&path, 1, &file, NULL), PLAIT_OK);
    assert_int_equal(pli_audit_run(file, NULL, &audit, NULL), PLAIT_OK);
    if (pli_audit_result(audit) != PLI_AUDIT_PROVEN)
        fail_msg("%s x %s: %s", s->topology, s->consistency,
                 pli_audit_first(audit) != NULL ? pli_audit_first(audit)->text : pli_audit_why(audit));
    pli_audit_free(&audit);
    pli_logfile_close(&file);
}

static void test_tables_of_a_job_that_has_ticked(void **unused) {
    static const story stories[] = {
        { "local", "bsp", 2, true },       { "ps", "bsp", 3, true },
        { "allreduce", "bsp", 3, true },   { "ps", "ssp:1", 2, false },
        { "ps", "essp:1", 3, false },      { "ps", "async", 2, false },
        { "local", "ssp:2", 3, false },    { "allreduce", "bounded-delay:1", 2, false },
        { "ps", "bounded-delay:2", 2, false },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        plait_events *events = NULL;
        plait_error   err = { 0 };
        char          path[80];
        snprintf(path, sizeof path, "%s.events", dir);
        assert_int_equal(plait_events_create(path, &events, &err), PLAIT_OK);
        if (run(&stories[i], there_and_back, events, &err) < 0)
            fail_msg("%s x %s: %s", stories[i].topology, stories[i].consistency, err.text);
        assert_int_equal(plait_events_close(&events, &err), PLAIT_OK);
        prove(path, &stories[i]);
        assert_int_equal(unlink(path), 0);
    }
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static plait_status too_late(plait_job *job, void *user) {
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *table[TABLES];
    plait_checkpoint *c = NULL;
    const float       one[ROWS] = { 1 };
    (void)user;
    CHECK(make_tables(job, table) == PLAIT_OK && one_clock(job, table, 0) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    CHECK(plait_table_inc_range(table[0], 0, ROWS, one, 1) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, table[0], NULL) == PLAIT_EINVAL); /* behind an inc of the clock */
    CHECK(plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, table[0], NULL) == PLAIT_OK);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static plait_status averaged(plait_job *job, void *user) {
    plait_comm       *comm = plait_job_comm(job);
    plait_table      *table;
    plait_table_opts  opts;
    plait_checkpoint *c = NULL;
    (void)user;
    plait_table_opts_init(&opts);
    opts.name = "momentum";
    opts.rows = ROWS;
    opts.rule.name = "momentum";
    CHECK(plait_table_create(job, &opts, &table) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, NULL, &c, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, table, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, table, "unknown") == PLAIT_EMISMATCH);
    plait_checkpoint_close(&c);
    return PLAIT_OK;
}

static void test_what_is_refused(void **unused) {
    plait_error err = { 0 };
    (void)unused;
    if (run(&(story){ "ps", "bsp", 2, true }, too_late, NULL, &err) < 0) fail_msg("%s", err.text);
    if (run(&(story){ "gossip:ring", "bsp", 2, false }, averaged, NULL, &err) < 0) fail_msg("%s", err.text);
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

/* Two variables, each with an inc of ones. */
typedef struct net {
    plait_graph *graph;
    plait_value  inc[2];
} net;

static net make_net(void) {
    static const float first[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, ones[8] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    net                n = { NULL, { PLAIT_NONE, PLAIT_NONE } };
    assert_int_equal(plait_graph_create(NULL, 0, &n.graph, NULL), PLAIT_OK);
    for (int k = 0; k < 2; k++) {
        const plait_shape shape = k == 0 ? plait_shape_2(4, 2) : plait_shape_1(8);
        const plait_value w = plait_graph_variable(n.graph, k == 0 ? "w" : "v",
                                                   plait_tensor_of(PLAIT_F32, shape, first));
        n.inc[k] = plait_op_inc(n.graph, w, plait_graph_constant(n.graph, plait_tensor_of(PLAIT_F32, shape, ones)));
    }
    return n;
}

static plait_status step(const net *n, plait_session *session) {
    plait_fetch fetch[2] = { { .value = n->inc[0] }, { .value = n->inc[1] } };
    return plait_session_run(session, NULL, 0, fetch, 2, NULL, 0, NULL);
}

static float first_of(plait_session *session, int32_t k) {
    float values[8];
    assert_int_equal(plait_session_variable(session, k, values, NULL), PLAIT_OK);
    for (int i = 1; i < 8; i++) assert_true(values[i] == values[0] + (float)i);
    return values[0];
}

static void save_session(plait_session *session, int32_t n, const int32_t *which, int64_t clock) {
    plait_checkpoint_opts opts;
    plait_error           err = { 0 };
    plait_checkpoint_opts_init(&opts);
    opts.dir = dir;
    opts.keep = 100;
    opts.note = "own";
    if (plait_checkpoint_save_session(session, n, which, clock, &opts, &err) < 0) fail_msg("%s", err.text);
}

static void test_variables_in_a_sessions_own_memory(void **unused) {
    net               n = make_net();
    plait_session    *session = NULL, *other = NULL;
    plait_checkpoint *c = NULL;
    plait_error       err = { 0 };
    (void)unused;
    assert_int_equal(plait_session_create(n.graph, NULL, &session, NULL), PLAIT_OK);
    assert_int_equal(plait_session_create(n.graph, NULL, &other, NULL), PLAIT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(step(&n, session), PLAIT_OK);
    save_session(session, 0, NULL, 30);
    for (int i = 0; i < 2; i++) assert_int_equal(step(&n, session), PLAIT_OK);
    save_session(session, 1, (const int32_t[]){ 1 }, 31);
    assert_int_equal(plait_checkpoint_open(dir, "checkpoint-000000000030", &c, &err), PLAIT_OK);
    assert_string_equal(plait_checkpoint_note(c), "own");
    assert_int_equal(plait_checkpoint_load_session(c, session, 0, NULL, &err), PLAIT_OK);
    assert_true(first_of(session, 0) == 4 && first_of(session, 1) == 6);
    assert_int_equal(plait_checkpoint_load_session(c, other, 1, NULL, &err), PLAIT_OK);
    assert_true(first_of(other, 0) == 1 && first_of(other, 1) == 4);
    assert_int_equal(plait_checkpoint_load_session(c, other, 0, "v", &err), PLAIT_EMISMATCH); /* another shape */
    assert_int_equal(plait_checkpoint_load_session(c, other, 2, NULL, &err), PLAIT_EINVAL);
    plait_checkpoint_close(&c);
    assert_int_equal(plait_checkpoint_open(dir, "checkpoint-000000000031", &c, &err), PLAIT_OK);
    assert_int_equal(plait_checkpoint_load_session(c, other, 0, NULL, &err), PLAIT_EMISMATCH); /* was not chosen */
    assert_non_null(strstr(err.text, "w.values"));
    assert_int_equal(plait_checkpoint_load_session(c, other, 1, NULL, &err), PLAIT_OK);
    assert_true(first_of(other, 1) == 6);
    plait_checkpoint_close(&c);
    assert_int_equal(step(&n, session), PLAIT_OK);
    assert_true(first_of(session, 0) == 5 && first_of(session, 1) == 7);
    plait_checkpoint_opts opts;
    plait_checkpoint_opts_init(&opts);
    opts.dir = dir;
    assert_int_equal(plait_checkpoint_save_session(session, 2, (const int32_t[]){ 1, 1 }, 32, &opts, &err),
                     PLAIT_EINVAL);
    assert_int_equal(plait_checkpoint_save_session(session, 1, (const int32_t[]){ 7 }, 32, &opts, &err), PLAIT_EINVAL);
    plait_session_destroy(&session);
    plait_session_destroy(&other);
    plait_graph_destroy(&n.graph);
}

/* The checkpoint of a session is loaded into tables of a job that has ticked, one variable and not the other, and one
 * of the tables into a session. */
static plait_status from_session_to_tables(plait_job *job, void *user) {
    plait_comm         *comm = plait_job_comm(job);
    const net          *n = user;
    plait_table_store  *store = NULL;
    plait_session      *session = NULL, *own = NULL;
    plait_session_opts  opts;
    plait_checkpoint   *c = NULL;
    plait_checkpoint_opts to;
    CHECK(plait_table_store_create(job, n->graph, NULL, &store) == PLAIT_OK);
    plait_session_opts_init(&opts);
    opts.store = plait_table_store_calls(store);
    opts.threads = 1;
    CHECK(plait_session_create(n->graph, &opts, &session, NULL) == PLAIT_OK);
    for (int i = 0; i < 2; i++) CHECK(step(n, session) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, "checkpoint-000000000030", &c, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_load(c, plait_table_store_table(store, 0), NULL) == PLAIT_OK);
    plait_checkpoint_close(&c);
    CHECK(plait_job_barrier(job) == PLAIT_OK);
    CHECK(first_of(session, 0) == 4 && first_of(session, 1) == 5); /* two clocks of two workers */
    CHECK(plait_job_barrier(job) == PLAIT_OK && step(n, session) == PLAIT_OK && plait_job_clock(job) == PLAIT_OK);
    CHECK(plait_job_barrier(job) == PLAIT_OK && first_of(session, 0) == 6 && first_of(session, 1) == 7);
    plait_checkpoint_opts_init(&to);
    to.dir = dir;
    to.keep = 100;
    plait_table *chosen[] = { plait_table_store_table(store, 1) };
    CHECK(plait_checkpoint_save(job, chosen, 1, &to) == PLAIT_OK);
    CHECK(plait_session_create(n->graph, NULL, &own, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_open(dir, "checkpoint-000000000003", &c, NULL) == PLAIT_OK);
    CHECK(plait_checkpoint_load_session(c, own, 1, NULL, NULL) == PLAIT_OK && first_of(own, 1) == 7);
    CHECK(plait_checkpoint_load_session(c, own, 0, NULL, NULL) == PLAIT_EMISMATCH);
    plait_checkpoint_close(&c);
    plait_session_destroy(&own);
    plait_session_destroy(&session);
    plait_table_store_destroy(&store);
    return PLAIT_OK;
}

static void test_variables_go_from_session_to_tables_and_back(void **unused) {
    static const char *const topologies[] = { "ps", "allreduce", "local" };
    (void)unused;
    for (int i = 0; i < 3; i++) {
        net             n = make_net();
        plait_comm_opts comm;
        plait_job_opts  job;
        plait_error     err = { 0 };
        plait_comm_opts_init(&comm);
        comm.workers = 2;
        plait_job_opts_init(&job);
        job.topology = topologies[i];
        if (plait_run(&comm, &job, from_session_to_tables, &n, &err) < 0) fail_msg("%s: %s", topologies[i], err.text);
        plait_graph_destroy(&n.graph);
        char command[120];
        snprintf(command, sizeof command, "rm -r %s/checkpoint-000000000003", dir);
        assert_int_equal(system(command), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables_of_a_job_that_has_ticked),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_variables_in_a_sessions_own_memory),
        cmocka_unit_test(test_variables_go_from_session_to_tables_and_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
