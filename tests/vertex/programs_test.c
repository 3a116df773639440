/* Vertex programs give what a plain loop gives: on random graphs, for each cut and number of workers, under each
 * topology and consistency that trains; ranks with the same bits whatever the number of workers; sums of whole numbers;
 * and an own program, whose gathered values are a weighted sum. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "named.h"
#include "vertex/vertex.h"

enum { N = 60, M = 150 };

typedef struct graph {
    int64_t  n;
    uint64_t from[M], to[M];
    float    weight[M];
} graph;

/* Ids are scattered, some vertices have many edges, and some edges are loops or doubles. */
static graph draw(uint64_t seed) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    graph      g = { .n = M };
    for (int k = 0; k < M; k++) {
        const double a = pli_random_f64(&random), b = pli_random_f64(&random);
        g.from[k] = (uint64_t)(a * a * N) * 7;
        g.to[k] = (uint64_t)(b * N) * 7;
        g.weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    return g;
}

/* --- plain loops, over ids 0, 7, 14, ... -------------------------------------------------------------------------- */

static int at(uint64_t id) { return (int)(id / 7); }

static void plain_ways(const graph *g, int source, bool weighted, double *way) {
    for (int v = 0; v < N; v++) way[v] = v == source ? 0 : (double)INFINITY;
    for (int round = 0; round < N; round++)
        for (int k = 0; k < M; k++) {
            const double to = way[at(g->from[k])] + (weighted ? (double)g->weight[k] : 1);
            if (to < way[at(g->to[k])]) way[at(g->to[k])] = to;
        }
}

static void plain_components(const graph *g, int *least) {
    for (int v = 0; v < N; v++) least[v] = v;
    for (int round = 0; round < N; round++)
        for (int k = 0; k < M; k++) {
            int *a = &least[at(g->from[k])], *b = &least[at(g->to[k])];
            *a = *b = *a < *b ? *a : *b;
        }
}

static void plain_ranks(const graph *g, int n, double *rank) {
    int out[N] = { 0 };
    for (int k = 0; k < M; k++) out[at(g->from[k])]++;
    for (int v = 0; v < N; v++) rank[v] = 1.0 / n;
    for (int step = 0; step < 400; step++) {
        double next[N];
        for (int v = 0; v < N; v++) next[v] = 0.15 / n;
        for (int k = 0; k < M; k++) next[at(g->to[k])] += 0.85 * rank[at(g->from[k])] / out[at(g->from[k])];
        memcpy(rank, next, sizeof next);
    }
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

typedef struct doing {
    const plait_edges          *edges;
    const plait_vertex_cut     *cut;
    const plait_vertex_program *program;
    const pli_vertex_named     *named; /* with a run of its own; NULL: the program's */
    int64_t                     value[N];
    plait_vertex_report         report;
} doing;

static plait_status body(plait_job *job, void *user) {
    doing              *d = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    void *const         values = lowest ? d->value : NULL;
    const plait_status  status = d->named != NULL
                                     ? d->named->run(job, d->program->user, d->cut, 0, values, &report)
                                     : plait_vertex_run(job, d->edges, d->cut, d->program, 0, values, &report);
    if (lowest) d->report = report;
    return status;
}

static const pli_vertex_named *own_run(const char *name) {
    plait_error             err;
    const pli_vertex_named *named = pli_vertex_find(name, &err);
    return named != NULL && named->run != NULL ? named : NULL;
}

static plait_status run(const setting *s, const plait_edges *edges, const plait_vertex_program *program, doing *d,
                        plait_error *err) {
    plait_comm_opts   comm;
    plait_job_opts    job;
    plait_vertex_cut *cut = NULL;
    options_of(s, &comm, &job);
    plait_status status = plait_vertex_cut_create(edges, program->near, s->cut, s->workers, &cut, err);
    *d = (doing){ .edges = edges, .cut = cut, .program = program, .named = own_run(program->name) };
    if (status == PLAIT_OK) status = plait_run(&comm, &job, body, d, err);
    plait_vertex_cut_destroy(&cut);
    return status;
}

static plait_edges *edges_of(const graph *g, bool weighted) {
    plait_edges *edges = NULL;
    plait_error  err;
    if (plait_edges_from_memory(M, g->from, g->to, weighted ? g->weight : NULL, NULL, &edges, &err) < 0)
        fail_msg("%s", err.text);
    return edges;
}

/* --- every setting ------------------------------------------------------------------------------------------------ */

static void check_ways(const graph *g, const setting *s, const char *name) {
    plait_edges         *edges = edges_of(g, true);
    const int            source = at(plait_edges_id(edges, 0));
    pli_vertex_choice    choice = { edges, 0, 0.85, 1e-15, 0, NULL };
    plait_vertex_program program;
    doing                d;
    plait_error          err;
    double               way[N];
    const bool           hops = pli_is(name, "bfs");
    make(name, &choice, &program);
    plain_ways(g, source, !hops, way);
    if (run(s, edges, &program, &d, &err) < 0) fail_msg("%s: %s", name, err.text);
    for (int64_t v = 0; v < plait_edges_vertices(edges); v++) {
        const double wanted = way[at(plait_edges_id(edges, v))],
                     got = !hops                      ? double_of(d.value[v])
                           : d.value[v] == INT64_MAX ? (double)INFINITY
                                                     : (double)d.value[v];
        if (got != wanted)
            fail_msg("%s over %s x %s, %s in %d: vertex %d is %g away instead of %g", name, s->topology, s->consistency,
                     s->cut, (int)s->workers, (int)v, got, wanted);
    }
    assert_true(d.report.still);
    plait_edges_destroy(&edges);
}

static void check_components(const graph *g, const setting *s) {
    plait_edges         *edges = edges_of(g, false);
    pli_vertex_choice    choice = { edges, -1, 0.85, 1e-15, 0, NULL };
    plait_vertex_program program;
    doing                d;
    plait_error          err;
    int                  least[N];
    make("components", &choice, &program);
    plain_components(g, least);
    if (run(s, edges, &program, &d, &err) < 0) fail_msg("components: %s", err.text);
    for (int64_t v = 0; v < plait_edges_vertices(edges); v++)
        assert_int_equal(at(plait_edges_id(edges, d.value[v])), least[at(plait_edges_id(edges, v))]);
    plait_edges_destroy(&edges);
}

static void check_ranks(const graph *g, const setting *s) {
    plait_edges         *edges = edges_of(g, false);
    pli_vertex_choice    choice = { edges, -1, 0.85, 1e-15, 0, NULL };
    plait_vertex_program program;
    doing                d;
    plait_error          err;
    double               rank[N];
    make("pagerank", &choice, &program);
    plain_ranks(g, (int)plait_edges_vertices(edges), rank);
    const plait_status status = run(s, edges, &program, &d, &err);
    if (status == PLAIT_EREFUSED && !pli_is(s->cut, "range") && !pli_is(s->consistency, "bsp")) {
        assert_non_null(strstr(err.text, "whole clocks"));
    } else {
        if (status < 0) fail_msg("pagerank: %s", err.text);
        pli_vertex_find("pagerank", NULL)->finish(&choice, d.value);
        for (int64_t v = 0; v < plait_edges_vertices(edges); v++)
            assert_true(fabs(double_of(d.value[v]) - rank[at(plait_edges_id(edges, v))]) < 1e-12);
    }
    plait_edges_destroy(&edges);
}

static void test_every_setting_gives_what_a_loop_gives(void **state) {
    static const char *const cuts[] = { "range", "random", "grid", "oblivious", "hdrf" };
    static const char *const pairs[][2] = { { "local", "bsp" }, { "allreduce", "bsp" }, { "ps", "bsp" },
                                            { "ps", "ssp:2" }, { "ps", "async" }, { "local", "async" } };
    (void)state;
    for (uint64_t seed = 0; seed < 6; seed++)
        for (size_t c = 0; c < 5; c++) {
            const size_t  p = (seed + c) % 6;
            const graph   g = draw(seed);
            const setting s = { pairs[p][0], pairs[p][1], cuts[c], (int32_t)(1 + (seed + 2 * c) % 4) };
            check_ways(&g, &s, "bfs");
            check_ways(&g, &s, "sssp");
            check_components(&g, &s);
            check_ranks(&g, &s);
        }
}

static void test_ranks_have_the_same_bits_for_any_number_of_workers(void **state) {
    const graph          g = draw(9);
    plait_edges         *edges = edges_of(&g, false);
    pli_vertex_choice    choice = { edges, -1, 0.85, 1e-12, 0, NULL };
    plait_vertex_program program;
    doing                one, d;
    plait_error          err;
    (void)state;
    make("pagerank", &choice, &program);
    assert_int_equal(run(&(setting){ "local", "bsp", "range", 1 }, edges, &program, &one, &err), PLAIT_OK);
    for (int32_t w = 2; w <= 5; w++) {
        assert_int_equal(run(&(setting){ "ps", "bsp", "range", w }, edges, &program, &d, &err), PLAIT_OK);
        assert_memory_equal(d.value, one.value, sizeof d.value);
        assert_int_equal(d.report.supersteps, one.report.supersteps);
    }
    plait_edges_destroy(&edges);
}

/* Neighbors have different owners, so nothing changes in a superstep that does not see what the others have pushed. */
static void test_stale_reads_do_not_end_a_run(void **state) {
    static const char *const pairs[][2] = { { "ps", "ssp:3" }, { "ps", "downpour:3:2" }, { "local", "ssp:3" },
                                            { "allreduce", "bounded-delay:2" }, { "ps", "async" } };
    enum { LONG = 20 };
    uint64_t             from[LONG], to[LONG];
    plait_edges         *edges = NULL;
    plait_vertex_program program;
    doing                one, d;
    plait_error          err;
    (void)state;
    for (uint64_t k = 0; k < LONG; k++) {
        from[k] = k % 2 * 100 + k;
        to[k] = (k + 1) % 2 * 100 + k + 1;
    }
    assert_int_equal(plait_edges_from_memory(LONG, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    pli_vertex_choice choice = { edges, plait_edges_find(edges, 0), 0.85, 1e-12, 0, NULL };
    make("pagerank", &choice, &program);
    assert_int_equal(run(&(setting){ "local", "bsp", "range", 1 }, edges, &program, &one, &err), PLAIT_OK);
    for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
        const setting s = { pairs[p][0], pairs[p][1], "range", 2 };
        if (run(&s, edges, &program, &d, &err) < 0) fail_msg("%s over %s: %s", s.consistency, s.topology, err.text);
        assert_int_equal(d.report.still, 1);
        for (int64_t v = 0; v <= LONG; v++)
            if (!(fabs(double_of(d.value[v]) - double_of(one.value[v])) < 1e-9))
                fail_msg("%s over %s: vertex %d has the rank %g instead of %g", s.consistency, s.topology, (int)v,
                         double_of(d.value[v]), double_of(one.value[v]));
    }
    plait_edges_destroy(&edges);
}

/* --- a program of the caller's own -------------------------------------------------------------------------------- */

/* How many ways of `steps` edges end at a vertex, each counted by the product of its weights. */
static void one(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    *(int64_t *)value = 1;
}
static double count(void *user, const plait_vertex *v, const void *gathered, void *value) {
    int *steps = user;
    (void)v;
    *(int64_t *)value = *(const int64_t *)gathered;
    return *steps;
}

/* The value of one vertex becomes no number, and says so. */
static double spoil(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)gathered;
    if (v->id == 4) *(double *)value = NAN;
    return v->id == 4 ? NAN : 0;
}

static void test_no_number_is_told_by_all_workers(void **state) {
    static const uint64_t from[] = { 1, 1, 2, 3 }, to[] = { 2, 3, 4, 4 };
    plait_edges          *edges = NULL;
    plait_error           err;
    plait_vertex_program  program;
    doing                 d;
    (void)state;
    assert_int_equal(plait_edges_from_memory(4, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    plait_vertex_program_init(&program);
    program.name = "spoil";
    program.apply = spoil;
    for (int32_t w = 1; w <= 3; w++) {
        assert_int_equal(run(&(setting){ "ps", "bsp", "range", w }, edges, &program, &d, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "no finite number"));
    }
    plait_edges_destroy(&edges);
}

static void test_own_program_sums_whole_numbers(void **state) {
    static const uint64_t from[] = { 1, 1, 2, 3 }, to[] = { 2, 3, 4, 4 };
    static const float    weight[] = { 2, 3, 5, 7 };
    plait_edges          *edges = NULL;
    plait_error           err;
    plait_vertex_program  program;
    int                   steps = 0;
    (void)state;
    assert_int_equal(plait_edges_from_memory(4, from, to, weight, NULL, &edges, &err), PLAIT_OK);
    plait_vertex_program_init(&program);
    program.name = "ways";
    program.type = PLAIT_I64;
    program.along = PLAIT_ALONG_TIMES;
    program.init = one;
    program.apply = count;
    program.user = &steps;
    for (int32_t w = 1; w <= 3; w++)
        for (int c = 0; c < 2; c++) {
            doing d;
            assert_int_equal(run(&(setting){ "ps", "bsp", c == 0 ? "range" : "hdrf", w }, edges, &program, &d, &err),
                             PLAIT_OK);
            const int64_t wanted[] = { 0, 2, 3, 12 }; /* after one superstep, in which it says that nothing changes */
            assert_memory_equal(d.value, wanted, sizeof wanted);
        }
    plait_edges_destroy(&edges);
}

/* One vertex of a ring, which belongs to one worker, makes of its value what is no number. */
static double divide(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)gathered;
    *(double *)value = v->index == 3 ? (double)NAN : 1;
    return v->index == 3 ? (double)NAN : 0;
}

static void test_what_is_no_number_ends_the_run_on_all_workers(void **state) {
    uint64_t             from[8], to[8];
    plait_edges         *edges = NULL;
    plait_error          err;
    plait_vertex_program program;
    (void)state;
    for (uint64_t k = 0; k < 8; k++) from[k] = k, to[k] = (k + 1) % 8;
    assert_int_equal(plait_edges_from_memory(8, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    plait_vertex_program_init(&program);
    program.name = "divide";
    program.apply = divide;
    for (int32_t w = 1; w <= 4; w++) {
        doing d;
        assert_int_equal(run(&(setting){ "ps", "bsp", "range", w }, edges, &program, &d, &err), PLAIT_EINVAL);
        assert_non_null(strstr(err.text, "no finite number"));
    }
    plait_edges_destroy(&edges);
}

static void test_loops_and_doubles_are_counted_and_dropped(void **state) {
    static const uint64_t from[] = { 1, 1, 2, 2, 1 }, to[] = { 2, 2, 2, 1, 2 };
    plait_edges          *edges = NULL;
    plait_edges_opts      opts;
    plait_error           err;
    (void)state;
    plait_edges_opts_init(&opts);
    assert_int_equal(plait_edges_from_memory(5, from, to, NULL, &opts, &edges, &err), PLAIT_OK);
    assert_int_equal(plait_edges_count(edges), 5);
    assert_int_equal(plait_edges_loops(edges), 1);
    assert_int_equal(plait_edges_doubles(edges), 2);
    plait_edges_destroy(&edges);
    opts.drop_loops = opts.drop_doubles = opts.undirected = 1;
    assert_int_equal(plait_edges_from_memory(5, from, to, NULL, &opts, &edges, &err), PLAIT_OK);
    assert_int_equal(plait_edges_count(edges), 2);
    plait_edges_destroy(&edges);
}

/* HDRF and oblivious replicate less than chance does, and parts have about equally many edges. */
static void test_cuts_replicate_as_they_promise(void **state) {
    plait_edges *edges = NULL;
    plait_error  err;
    double       factor[5], balance[5];
    pli_random   random = pli_random_at(3, PLI_RANDOM_DATA, 0, 0);
    enum { MANY = 20000 };
    uint64_t *from = malloc(MANY * sizeof *from), *to = malloc(MANY * sizeof *to);
    static const char *const cuts[] = { "range", "random", "grid", "oblivious", "hdrf" };
    (void)state;
    for (int k = 0; k < MANY; k++) { /* a power law: id x with a chance of about 1 / x */
        from[k] = (uint64_t)exp(pli_random_f64(&random) * log(4000));
        to[k] = (uint64_t)exp(pli_random_f64(&random) * log(4000));
    }
    assert_int_equal(plait_edges_from_memory(MANY, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    for (int c = 0; c < 5; c++) {
        plait_vertex_cut *cut = NULL;
        assert_int_equal(plait_vertex_cut_create(edges, PLAIT_NEAR_IN, cuts[c], 16, &cut, &err), PLAIT_OK);
        factor[c] = plait_vertex_cut_replication(cut);
        assert_true(factor[c] >= 1 && factor[c] <= 16);
        balance[c] = plait_vertex_cut_imbalance(cut);
        plait_vertex_cut_destroy(&cut);
    }
    assert_true(factor[4] <= 0.6 * factor[1] && factor[3] <= 0.6 * factor[1]);
    assert_true(balance[1] < 1.3 && balance[2] < 2 && balance[3] < 1.05 && balance[4] < 1.05);
    plait_edges_destroy(&edges);
    free(from);
    free(to);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_setting_gives_what_a_loop_gives),
        cmocka_unit_test(test_ranks_have_the_same_bits_for_any_number_of_workers),
        cmocka_unit_test(test_stale_reads_do_not_end_a_run),
        cmocka_unit_test(test_no_number_is_told_by_all_workers),
        cmocka_unit_test(test_own_program_sums_whole_numbers),
        cmocka_unit_test(test_what_is_no_number_ends_the_run_on_all_workers),
        cmocka_unit_test(test_loops_and_doubles_are_counted_and_dropped),
        cmocka_unit_test(test_cuts_replicate_as_they_promise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
