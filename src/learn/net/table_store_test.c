/* Tests variables in tables. A run gets and pushes what a session's own memory would have: the same bits with one
 * worker, the same up to the order of sums with several. Rows are got and pushed as rows; examples are counted once for
 * each run and table; a variable that no table can hold is refused by name; a failed run gives back what it has asked
 * for. A store that is bound to tables keeps what it got until the next clock, and learns the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <plait/nn.h>
#include <plait/table_store.h>

#include "comm/comm.h"
#include "learn/net/table_store.h"

enum { WORDS = 9, WIDTH = 3, ROWS = 12, CLOCKS = 8 };

/* Three variables, of ranks 2, 1 and 0: word vectors as rows of a table, a layer, and a number. */
typedef struct net {
    plait_graph *g;
    plait_value  word, target, loss, v[3], push[6];
    int32_t      pushes;
} net;

static void build(net *n, double rate, bool whole) {
    float first[WORDS * WIDTH], layer[WIDTH];
    for (int i = 0; i < WORDS * WIDTH; i++) first[i] = (float)sin(i + 1);
    for (int i = 0; i < WIDTH; i++) layer[i] = (float)cos(i);
    assert_int_equal(plait_graph_create(NULL, 0, &n->g, NULL), PLAIT_OK);
    plait_graph *g = n->g;
    n->word = plait_graph_placeholder(g, "word", PLAIT_I64, plait_shape_1(PLAIT_ANY));
    n->target = plait_graph_placeholder(g, "target", PLAIT_F32, plait_shape_1(PLAIT_ANY));
    n->v[0] = plait_graph_variable(g, "rows", plait_tensor_of(PLAIT_F32, plait_shape_2(WORDS, WIDTH), first));
    n->v[1] = plait_graph_variable(g, "layer", plait_tensor_of(PLAIT_F32, plait_shape_1(WIDTH), layer));
    n->v[2] = plait_graph_variable(g, "number", (plait_tensor){ .type = PLAIT_F32, .shape = { .rank = 0 } });
    const int64_t last = 1;
    plait_value   in[2] = { n->v[0], n->word }, d[3];
    plait_value   rows = plait_graph_op(g, "get_rows", in, 2, NULL, 0);
    plait_value   score = plait_op_add(g, plait_op_sum(g, plait_op_mul(g, rows, n->v[1]), 1, &last, 0), n->v[2]);
    n->loss = plait_op_sum(g, plait_op_squared_loss(g, score, n->target), 0, NULL, 0);
    plait_graph_gradients(g, n->loss, 3, n->v, d);
    plait_value scale = plait_graph_scalar(g, PLAIT_F32, rate);
    /* gradients for a rule are pushed in two pieces, whose examples count once */
    plait_value quarter = plait_graph_scalar(g, PLAIT_F32, 0.25), rest = plait_graph_scalar(g, PLAIT_F32, 0.75);
    n->pushes = 0;
    for (int i = 0; i < 3; i++) {
        n->push[n->pushes++] =
            plait_op_inc(g, n->v[i], whole ? d[i] : plait_op_mul(g, d[i], rate == 0 ? quarter : scale));
        if (rate == 0 && !whole) n->push[n->pushes++] = plait_op_inc(g, n->v[i], plait_op_mul(g, d[i], rest));
    }
    assert_int_equal(plait_graph_check(g, NULL), PLAIT_OK);
}

/* Runs the rows i of the clock with i % of == worker. */
static plait_status step(const net *n, plait_session *session, int clock, int worker, int of, plait_error *err) {
    int64_t word[ROWS];
    float   target[ROWS], loss;
    int     m = 0;
    for (int i = worker; i < ROWS; i += of, m++) {
        word[m] = (i * 5 + clock) % WORDS;
        target[m] = (float)((i + clock) % 4) / 2;
    }
    const plait_feed feeds[] = { { n->word, plait_tensor_of(PLAIT_I64, plait_shape_1(m), word) },
                                 { n->target, plait_tensor_of(PLAIT_F32, plait_shape_1(m), target) } };
    plait_fetch      fetches[7] = { { n->loss, { .data = &loss }, sizeof loss } };
    for (int32_t p = 0; p < n->pushes; p++) fetches[1 + p].value = n->push[p];
    return plait_session_run(session, feeds, 2, fetches, 1 + n->pushes, NULL, 0, err);
}

typedef struct outcome {
    float rows[WORDS * WIDTH], layer[WIDTH], number;
} outcome;

static plait_status read_all(plait_session *session, outcome *to, plait_error *err) {
    plait_status status = plait_session_variable(session, 0, to->rows, err);
    if (status >= 0) status = plait_session_variable(session, 1, to->layer, err);
    return status < 0 ? status : plait_session_variable(session, 2, &to->number, err);
}

static void in_memory(outcome *to) {
    net            n;
    plait_session *session = NULL;
    plait_error    err = { 0 };
    build(&n, -0.01, false);
    assert_int_equal(plait_session_create(n.g, NULL, &session, &err), PLAIT_OK);
    for (int clock = 0; clock < CLOCKS; clock++) assert_int_equal(step(&n, session, clock, 0, 1, &err), PLAIT_OK);
    assert_int_equal(read_all(session, to, &err), PLAIT_OK);
    plait_session_destroy(&session);
    plait_graph_destroy(&n.g);
}

typedef struct setting {
    const char *topology;
    int         ruled, keyed, workers, flushes; /* flushes: gradients leave in one piece */
    int         bound;
    outcome     found; /* of worker 0 */
} setting;

static void rows_by_key(void *user, int32_t variable, plait_table_opts *opts) {
    const setting *s = user;
    if (variable == 0) opts->keyed = s->keyed;
}

/* Makes a table for each variable, and a store bound to them that gets values to `values`. */
static plait_status bind(plait_job *job, const net *n, const setting *s, outcome *values,
                         plait_table_store **store_out) {
    pli_stored   stored[3] = { { .values = values->rows, .by_row = s->keyed },
                               { .values = values->layer },
                               { .values = &values->number } };
    plait_status status = PLAIT_OK;
    for (int32_t k = 0; status >= 0 && k < 3; k++) {
        const plait_tensor initial = plait_graph_variable_initial(n->g, k);
        plait_table_opts   t;
        plait_table_opts_init(&t);
        t.name = plait_graph_variable_name(n->g, k);
        t.rows = k == 0 ? WORDS : k == 1 ? WIDTH : 1;
        t.cols = k == 0 ? WIDTH : 1;
        t.initial = initial.data;
        t.keyed = s->keyed && k == 0;
        if (s->ruled) {
            t.rule.name = "sgd";
            t.rule.learning_rate = 0.01 * ROWS;
        }
        status = plait_table_create(job, &t, &stored[k].table);
    }
    return status < 0 ? status : pli_table_store_bind(plait_job_comm(job), 3, stored, store_out);
}

/* Opens a store with tables of its own, or one bound to tables, as learners have it. */
static plait_status open_store(plait_job *job, const net *n, setting *s, outcome *values,
                               plait_table_store **store_out) {
    plait_table_opts       like;
    plait_table_store_opts opts;
    if (s->bound) return bind(job, n, s, values, store_out);
    plait_table_opts_init(&like);
    if (s->ruled) { /* a step of 0.01 on the sum equals a step of 0.01 ROWS on the mean */
        like.rule.name = "sgd";
        like.rule.learning_rate = 0.01 * ROWS;
    }
    plait_table_store_opts_init(&opts);
    opts.like = &like;
    opts.each = rows_by_key;
    opts.user = s;
    opts.flushes = s->flushes;
    return plait_table_store_create(job, n->g, &opts, store_out);
}

static plait_status work(plait_job *job, void *user) {
    setting           *s = user;
    plait_comm        *comm = plait_job_comm(job);
    net                n;
    plait_table_store *store = NULL;
    plait_session     *session = NULL;
    plait_session_opts session_opts;
    plait_error        err = { 0 };
    outcome            found;
    build(&n, s->ruled ? 0 : -0.01, s->flushes != 0);
    plait_status status = open_store(job, &n, s, NULL, &store);
    plait_session_opts_init(&session_opts);
    if (status >= 0) {
        session_opts.store = plait_table_store_calls(store);
        status = plait_session_create(n.g, &session_opts, &session, &err);
    }
    const int me = plait_comm_rank(comm);
    if (status >= 0 && s->ruled) plait_table_store_examples(store, ROWS / s->workers);
    for (int clock = 0; status >= 0 && clock < CLOCKS; clock++) {
        status = step(&n, session, clock, me, s->workers, &err);
        if (status >= 0) status = plait_job_clock(job);
    }
    if (status >= 0) status = plait_job_barrier(job);
    if (status >= 0) status = read_all(session, &found, &err);
    if (status >= 0 && me == 0) s->found = found;
    /* a run asks for tables, then fails: it gives them back, and the next run is not harmed */
    if (status >= 0) {
        int64_t          bad[2] = { 0, WORDS };
        float            target[2] = { 0 }, loss;
        const plait_feed feeds[] = { { n.word, plait_tensor_of(PLAIT_I64, plait_shape_1(2), bad) },
                                     { n.target, plait_tensor_of(PLAIT_F32, plait_shape_1(2), target) } };
        plait_fetch      fetch = { n.loss, { .data = &loss }, sizeof loss };
        outcome          again;
        if (plait_session_run(session, feeds, 2, &fetch, 1, NULL, 0, NULL) == PLAIT_OK) status = PLAIT_EDIVERGED;
        if (status >= 0) status = read_all(session, &again, &err);
        if (status >= 0 && memcmp(&again, &found, sizeof found) != 0) status = PLAIT_EDIVERGED;
        if (plait_session_set_variable(session, 1, target, NULL) != PLAIT_EREFUSED) status = PLAIT_EDIVERGED;
        plait_variable_info info;
        if (plait_session_variable_info(session, 2, &info, &err) != PLAIT_OK || strcmp(info.name, "number") != 0 ||
            strcmp(info.owner, s->topology) != 0 || info.version != CLOCKS * (s->ruled && !s->flushes ? 2 : 1) ||
            info.last_inc != CLOCKS || info.last_get != CLOCKS)
            status = PLAIT_EDIVERGED;
        if (plait_table_store_table(store, 3) != NULL ||
            strcmp(plait_table_name(plait_table_store_table(store, 1)), "layer") != 0)
            status = PLAIT_EDIVERGED;
    }
    plait_session_destroy(&session);
    plait_table_store_destroy(&store);
    plait_graph_destroy(&n.g);
    return status;
}

static void run_by(plait_status (*by)(plait_job *job, void *user), setting *s) {
    plait_comm_opts comm;
    plait_job_opts  job;
    plait_error     err = { 0 };
    plait_comm_opts_init(&comm);
    plait_job_opts_init(&job);
    comm.workers = s->workers;
    job.topology = s->topology;
    job.batch = ROWS;
    if (plait_run(&comm, &job, by, s, &err) < 0) fail_msg("%s, %d workers: %s", s->topology, s->workers, err.text);
}

static void run(setting *s) { run_by(work, s); }

static void assert_near(const outcome *a, const outcome *b) {
    const float *x = a->rows, *y = b->rows;
    for (size_t i = 0; i < sizeof *a / sizeof *x; i++) assert_true(fabsf(x[i] - y[i]) < 1e-5F);
}

static void test_as_in_memory(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    outcome                  expected;
    (void)state;
    in_memory(&expected);
    for (int t = 0; t < 3; t++)
        for (int keyed = 0; keyed < 2; keyed++)
            for (int workers = 1; workers <= 3; workers++)
                for (int ruled = 0; ruled < 2; ruled++) {
                    if (t == 1 && keyed) continue; /* src/table tests the sums of keyed tables */
                    setting s = { .topology = topologies[t], .ruled = ruled, .keyed = keyed, .workers = workers };
                    run(&s);
                    assert_near(&expected, &s.found);
                    if (workers == 1 && !ruled) assert_memory_equal(&expected, &s.found, sizeof expected);
                    if (!ruled) continue;
                    s.flushes = 1;
                    run(&s);
                    assert_near(&expected, &s.found);
                }
}

/* --- bound to tables --------------------------------------------------------------------------------------------- */

/* Runs twice a clock; gradients leave in the second run. */
static plait_status two_runs(plait_job *job, const net *n, setting *s, plait_session *session, plait_table_store *store,
                             int clock, plait_error *err) {
    const int    me = plait_comm_rank(plait_job_comm(job));
    plait_status status = s->bound ? pli_table_store_clock(store) : PLAIT_OK;
    for (int half = 0; status >= 0 && half < 2; half++) {
        if (s->bound) pli_table_store_flushes(store, half == 1);
        status = step(n, session, 2 * clock + half, me, s->workers, err);
    }
    return status < 0 ? status : plait_job_clock(job);
}

static plait_status work_twice(plait_job *job, void *user) {
    setting           *s = user;
    net                n;
    outcome            values, found;
    plait_table_store *store = NULL;
    plait_session     *session = NULL;
    plait_session_opts opts;
    plait_error        err = { 0 };
    build(&n, 0, true);
    plait_status status = open_store(job, &n, s, &values, &store);
    plait_session_opts_init(&opts);
    if (status >= 0) {
        opts.store = plait_table_store_calls(store);
        plait_table_store_examples(store, ROWS / s->workers / 2);
        status = plait_session_create(n.g, &opts, &session, &err);
    }
    for (int clock = 0; status >= 0 && clock < CLOCKS; clock++)
        status = two_runs(job, &n, s, session, store, clock, &err);
    if (status >= 0) status = plait_job_barrier(job);
    if (status >= 0 && s->bound) status = pli_table_store_clock(store);
    if (status >= 0) status = read_all(session, &found, &err);
    if (status >= 0 && s->bound) {
        status = pli_table_store_read(store, true);
        if (status >= 0 && memcmp(&values, &found, sizeof found) != 0) status = PLAIT_EDIVERGED;
    }
    if (status >= 0 && plait_comm_rank(plait_job_comm(job)) == 0) s->found = found;
    plait_session_destroy(&session);
    plait_table_store_destroy(&store);
    plait_graph_destroy(&n.g);
    return status;
}

static void test_bound_learns_the_same(void **state) {
    static const char *const topologies[] = { "local", "allreduce", "ps" };
    (void)state;
    for (int t = 0; t < 3; t++)
        for (int keyed = 0; keyed < 2; keyed++)
            for (int workers = 1; workers <= 3; workers++) {
                if (t == 1 && keyed) continue;
                setting own = { .topology = topologies[t], .ruled = 1, .keyed = keyed, .workers = workers };
                setting bound = own;
                bound.bound = 1;
                run_by(work_twice, &own);
                run_by(work_twice, &bound);
                assert_memory_equal(&own.found, &bound.found, sizeof own.found);
            }
}

/* In an additive table own pushes are visible at once. A bound store sees them in the next clock only, except for rows,
 * which it gets from the table each time. */
static plait_status work_keeping(plait_job *job, void *user) {
    setting           *s = user;
    net                n;
    outcome            values, first, next;
    plait_table_store *store = NULL;
    plait_session     *session = NULL;
    plait_session_opts opts;
    plait_error        err = { 0 };
    build(&n, -0.01, false);
    plait_status status = bind(job, &n, s, &values, &store);
    plait_session_opts_init(&opts);
    if (status >= 0) {
        opts.store = plait_table_store_calls(store);
        status = plait_session_create(n.g, &opts, &session, &err);
    }
    if (status >= 0) status = pli_table_store_clock(store);
    if (status >= 0) status = step(&n, session, 0, 0, 1, &err);
    first = values;
    if (status >= 0) status = step(&n, session, 1, 0, 1, &err);
    assert_true(status < 0 || memcmp(first.layer, values.layer, sizeof first.layer) == 0);
    assert_true(status < 0 || first.number == values.number);
    if (status >= 0) status = read_all(session, &next, &err);
    assert_true(status < 0 || memcmp(next.layer, first.layer, sizeof first.layer) == 0);
    if (status >= 0) status = pli_table_store_clock(store);
    for (int i = 0; i < WORDS * WIDTH; i++) values.rows[i] = 77;
    if (status >= 0) status = pli_table_store_read(store, false);
    assert_true(status < 0 || (values.rows[0] != 77 && (values.rows[WIDTH] == 77) == s->keyed));
    if (status >= 0) status = read_all(session, &next, &err);
    assert_true(status < 0 || memcmp(next.layer, first.layer, sizeof first.layer) != 0);
    assert_true(status < 0 || next.number != first.number);
    plait_session_destroy(&session);
    plait_table_store_destroy(&store);
    plait_graph_destroy(&n.g);
    return status < 0 ? status : plait_job_clock(job);
}

static void test_bound_keeps_values_for_a_clock(void **state) {
    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        setting s = { .topology = "ps", .keyed = keyed, .workers = 1 };
        run_by(work_keeping, &s);
    }
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static plait_status refuse(plait_job *job, void *user) {
    plait_graph       *g = NULL;
    plait_table_store *store = NULL;
    const int          kind = *(const int *)user;
    plait_tensor       bad = { .type = kind == 0 ? PLAIT_I64 : PLAIT_F32, .shape = plait_shape_1(kind == 0 ? 3 : 0) };
    assert_int_equal(plait_graph_create(NULL, 0, &g, NULL), PLAIT_OK);
    plait_graph_variable(g, "counts", bad);
    plait_status status = plait_table_store_create(job, g, NULL, &store);
    const char  *text = plait_comm_error(plait_job_comm(job))->text;
    if (status != PLAIT_EINVAL || store != NULL || strstr(text, "variable 'counts'") == NULL)
        status = PLAIT_EDIVERGED;
    else
        status = PLAIT_OK;
    plait_graph_destroy(&g);
    return status;
}

static void test_refusals(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        plait_error err = { 0 };
        if (plait_run(NULL, NULL, refuse, &kind, &err) < 0) fail_msg("%s", err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_as_in_memory),
                                        cmocka_unit_test(test_bound_learns_the_same),
                                        cmocka_unit_test(test_bound_keeps_values_for_a_clock),
                                        cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
