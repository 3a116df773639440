/* The asynchronous engine: each scope and order gives what a plain loop gives; colors that neighbors would clash in,
 * and swaps that would lose values, come out right under the scopes that promise it, with several workers. What does
 * not go together is refused by name. A run that an interrupt ends is paused first, if it was not at rest. Schedules by
 * seed are the lock machines' own test's (locks_test.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "named.h"
#include "settings.h"
#include "vertex/vertex.h"

enum { N = 50, M = 160 };

typedef struct graph {
    uint64_t     from[M], to[M];
    float        weight[M];
    plait_edges *edges;
} graph;

static graph draw(uint64_t seed) {
    pli_random  random = pli_random_at(seed, PLI_RANDOM_DATA, 2, 0);
    graph       g = { .edges = NULL };
    plait_error err;
    for (int k = 0; k < M; k++) {
        g.from[k] = k < N ? (uint64_t)k : (uint64_t)(pli_random_f64(&random) * N);
        g.to[k] = (uint64_t)(pli_random_f64(&random) * N);
        g.weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    if (plait_edges_from_memory(M, g.from, g.to, g.weight, NULL, &g.edges, &err) < 0) fail_msg("%s", err.text);
    return g;
}

/* Values of a run, and its report. */
typedef struct outcome {
    int64_t             value[N];
    plait_vertex_report report;
} outcome;

static plait_status run(const engine_setting *s, const graph *g, const plait_vertex_program *program, int64_t limit,
                        outcome *out, plait_error *err) {
    *out = (outcome){ .report = { 0 } };
    return run_setting(s, g->edges, program, limit, out->value, &out->report, err);
}

/* One of the engine async over whole rows. */
#define ASYNC(topology_, scope_, order_, workers_) \
    { .topology = topology_, .engine = "async", .scope = scope_, .order = order_, .workers = workers_ }

static const engine_setting settings[] = {
    ASYNC("local", "vertex", "fifo", 1), ASYNC("local", "full", "sweep", 3), ASYNC("ps", "edge", "priority", 4),
    ASYNC("ps", "vertex", "sweep", 3),   ASYNC("ps", "full", "fifo", 2),     ASYNC("allreduce", "edge", "fifo", 2),
    ASYNC("ps", "full", "priority", 5),  ASYNC("local", "edge", "sweep", 2),
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* --- programs that are there -------------------------------------------------------------------------------------- */

static void plain(const graph *g, double *way, int *least, double *rank) {
    int out[N] = { 0 };
    for (int v = 0; v < N; v++) way[v] = v == 0 ? 0 : (double)INFINITY, least[v] = v, rank[v] = 1.0 / N;
    for (int k = 0; k < M; k++) out[g->from[k]]++;
    for (int round = 0; round < 300; round++) {
        double next[N];
        for (int v = 0; v < N; v++) next[v] = 0.15 / N;
        for (int k = 0; k < M; k++) {
            const int a = (int)g->from[k], b = (int)g->to[k], low = least[a] < least[b] ? least[a] : least[b];
            if (way[a] + (double)g->weight[k] < way[b]) way[b] = way[a] + (double)g->weight[k];
            least[a] = least[b] = low;
            next[b] += 0.85 * rank[a] / out[a];
        }
        memcpy(rank, next, sizeof next);
    }
}

static void test_programs_give_what_a_loop_gives(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++)
        for (int s = 0; s < SETTINGS; s++) {
            const graph          g = draw(seed);
            pli_vertex_choice    choice = { g.edges, 0, 0.85, 1e-14, 0, NULL },
                                 all = { g.edges, -1, 0.85, 1e-14, 0, NULL };
            plait_vertex_program p;
            outcome              d;
            plait_error          err;
            double               way[N], rank[N];
            int                  least[N];
            plain(&g, way, least, rank);
            make("sssp", &choice, &p);
            if (run(&settings[s], &g, &p, 0, &d, &err) < 0) fail_msg("sssp: %s", err.text);
            for (int v = 0; v < N; v++) assert_true(double_of(d.value[v]) == way[v]);
            make("components", &all, &p);
            if (run(&settings[s], &g, &p, 0, &d, &err) < 0) fail_msg("components: %s", err.text);
            for (int v = 0; v < N; v++) assert_int_equal(d.value[v], least[v]);
            assert_int_equal(d.report.still, 1);
            make("pagerank", &all, &p);
            if (run(&settings[s], &g, &p, 0, &d, &err) < 0) fail_msg("pagerank: %s", err.text);
            pli_vertex_find("pagerank", NULL)->finish(&all, d.value);
            for (int v = 0; v < N; v++)
                if (!(fabs(double_of(d.value[v]) - rank[v]) < 1e-11))
                    fail_msg("setting %d: vertex %d has the rank %.17g instead of %.17g", s, v, double_of(d.value[v]),
                             rank[v]);
            plait_edges_destroy((plait_edges **)&g.edges);
        }
}

/* --- programs that need locks ------------------------------------------------------------------------------------- */

static double recolor(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *e, void *value) {
    int64_t *color = value;
    bool     clash = *color == 0;
    (void)user;
    for (int64_t i = 0; i < n; i++)
        clash = clash || (e[i].other->index != v->index && *(const int64_t *)e[i].told == *color);
    if (!clash) return 0;
    for (*color = 1;; ++*color) {
        bool taken = false;
        for (int64_t i = 0; i < n; i++)
            taken = taken || (e[i].other->index != v->index && *(const int64_t *)e[i].told == *color);
        if (!taken) return 1;
    }
}
static int never(void *user, const plait_vertex_edge *e) {
    (void)user;
    (void)e;
    return 0;
}

/* Each vertex is colored once, and nobody looks again: neighbors that were colored side by side would clash. */
static void test_colors_never_clash_under_edge_and_full(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 30; seed++) {
        const graph          g = draw(100 + seed);
        const engine_setting s = ASYNC("local", seed % 2 ? "edge" : "full", seed % 3 ? "fifo" : "sweep",
                                       (int32_t)(1 + seed % 5));
        plait_vertex_program p;
        outcome              d;
        plait_error          err;
        plait_vertex_program_init(&p);
        p.name = "colors", p.type = PLAIT_I64, p.near = PLAIT_NEAR_BOTH, p.update = recolor, p.scatter = never;
        if (run(&s, &g, &p, 0, &d, &err) < 0) fail_msg("%s", err.text);
        for (int k = 0; k < M; k++)
            if (g.from[k] != g.to[k] && d.value[g.from[k]] == d.value[g.to[k]])
                fail_msg("seed %d: %d and %d have color %d", (int)seed, (int)g.from[k], (int)g.to[k],
                         (int)d.value[g.to[k]]);
        assert_int_equal(d.report.updates, N);
        plait_edges_destroy((plait_edges **)&g.edges);
    }
}

static void own_number(void *user, const plait_vertex *v, void *value) {
    (void)user;
    *(int64_t *)value = v->index;
}
/* Exchanges its number with the neighbor whose number is least, and that is not itself. */
static double swap(void *user, const plait_vertex *v, int64_t n, const plait_vertex_edge *e, void *value) {
    int64_t *mine = value, *least = NULL;
    (void)user;
    for (int64_t i = 0; i < n; i++) {
        int64_t *theirs = e[i].told;
        if (e[i].other->index != v->index && (least == NULL || *theirs < *least)) least = theirs;
    }
    if (least == NULL || *least > *mine) return 0;
    const int64_t kept = *mine;
    *mine = *least;
    *least = kept;
    return 1;
}
static int likes_more(void *user, const plait_vertex_edge *e) {
    (void)user;
    return e->other->index > e->at->index; /* so it comes to an end: see the limit */
}

static void test_swaps_lose_nothing_under_full(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        const graph          g = draw(200 + seed);
        const engine_setting s = ASYNC("local", "full", seed % 2 ? "fifo" : "priority", (int32_t)(1 + seed % 5));
        plait_vertex_program p;
        outcome              d;
        plait_error          err;
        int                  seen[N] = { 0 };
        plait_vertex_program_init(&p);
        p.name = "swaps", p.type = PLAIT_I64, p.near = PLAIT_NEAR_BOTH, p.init = own_number, p.update = swap;
        p.scatter = likes_more;
        if (run(&s, &g, &p, 4, &d, &err) < 0) fail_msg("%s", err.text);
        for (int v = 0; v < N; v++) {
            assert_in_range(d.value[v], 0, N - 1);
            if (seen[d.value[v]]++ > 0) fail_msg("seed %d: %d is there twice", (int)seed, (int)d.value[v]);
        }
        assert_in_range(d.report.supersteps, 1, 4);
        plait_edges_destroy((plait_edges **)&g.edges);
    }
}

/* --- what does not go together ------------------------------------------------------------------------------------ */

static double spoil(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)user;
    (void)gathered;
    *(double *)value = v->index == 4 ? (double)NAN : 1;
    return v->index == 4 ? (double)NAN : 0;
}

static void refused(const graph *g, const plait_vertex_program *p, const engine_setting *s, plait_status code,
                    const char *words) {
    outcome            d;
    plait_error        err = { .text = "" };
    const plait_status status = run(s, g, p, 0, &d, &err);
    if (status != code || strstr(err.text, words) == NULL)
        fail_msg("expected %d and '%s', and got %d: %s", code, words, status, err.text);
}

/* --- interrupted -------------------------------------------------------------------------------------------------- */

typedef struct stopping {
    const plait_edges      *edges;
    const plait_vertex_cut *cut;
    double                  change; /* of each vertex, in each superstep */
    int64_t                 limit;  /* of supersteps */
    _Atomic int             pauses; /* of all workers */
    plait_vertex_report     report; /* of the lowest */
} stopping;

static double changes_by(void *user, const plait_vertex *v, const void *gathered, void *value) {
    (void)v, (void)gathered;
    *(double *)value += ((const stopping *)user)->change;
    return ((const stopping *)user)->change;
}

static int is_interrupted(void *user) { return (void)user, 1; }

static plait_status count_pause(void *user, plait_job *job, plait_table *const *tables, int32_t n) {
    (void)job, (void)tables, (void)n;
    ((stopping *)user)->pauses++;
    return PLAIT_OK;
}

static plait_status stop_body(plait_job *job, void *user) {
    stopping            *s = user;
    plait_vertex_program p;
    plait_vertex_opts    opts;
    plait_vertex_report  report;
    plait_vertex_program_init(&p);
    plait_vertex_opts_init(&opts);
    p.name = "stops", p.apply = changes_by, p.user = s;
    opts.interrupted = is_interrupted, opts.pause = count_pause, opts.user = s, opts.supersteps = s->limit;
    const plait_status status = plait_vertex_run_with(job, s->edges, s->cut, &p, &opts, NULL, &report);
    if (plait_comm_rank(plait_job_comm(job)) == 0) s->report = report;
    return status;
}

/* A run that an interrupt ends is paused, once on each worker, so that it can be saved. One that has just come to rest
 * or reached its limit has nothing to go on with: it was not interrupted. */
static void test_a_run_at_its_end_is_not_interrupted(void **state) {
    const graph g = draw(400);
    (void)state;
    for (int k = 0; k < 3; k++) {
        const bool        rests = k == 1, limited = k == 2;
        stopping          s = { .edges = g.edges, .change = rests ? 0 : 1, .limit = limited };
        plait_comm_opts   comm;
        plait_job_opts    job;
        plait_error       err;
        plait_vertex_cut *cut = NULL;
        plait_comm_opts_init(&comm);
        plait_job_opts_init(&job);
        comm.workers = 2, job.topology = "ps";
        assert_int_equal(plait_vertex_cut_create(g.edges, PLAIT_NEAR_IN, NULL, 2, &cut, &err), PLAIT_OK);
        s.cut = cut;
        if (plait_run(&comm, &job, stop_body, &s, &err) < 0) fail_msg("%s", err.text);
        assert_int_equal(s.report.supersteps, 1);
        assert_int_equal(s.report.still, rests);
        assert_int_equal(s.report.interrupted, !rests && !limited);
        assert_int_equal(s.pauses, rests ? 0 : 2);
        plait_vertex_cut_destroy(&cut);
    }
    plait_edges_destroy((plait_edges **)&g.edges);
}

static void test_refusals(void **state) {
    const graph          g = draw(300);
    pli_vertex_choice    choice = { g.edges, 0, 0.85, 1e-14, 0, NULL };
    plait_vertex_program p;
    (void)state;
    make("sssp", &choice, &p);
    refused(&g, &p, &(engine_setting){ "ps", "async", "edge", "hdrf", 2, NULL }, PLAIT_EREFUSED,
            "engine async over a vertex cut");
    refused(&g, &p, &(engine_setting)ASYNC("ps", "edges", NULL, 2), PLAIT_ENAME, "did you mean 'edge'");
    refused(&g, &p, &(engine_setting)ASYNC("ps", "edge", "fifth", 2), PLAIT_ENAME, "did you mean 'fifo'");
    plait_vertex_program_init(&p);
    p.name = "spoil", p.apply = spoil;
    for (int32_t w = 1; w <= 3; w++)
        refused(&g, &p, &(engine_setting)ASYNC("ps", "edge", NULL, w), PLAIT_EINVAL, "no finite number");
    plait_edges_destroy((plait_edges **)&g.edges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_programs_give_what_a_loop_gives),
        cmocka_unit_test(test_colors_never_clash_under_edge_and_full),
        cmocka_unit_test(test_swaps_lose_nothing_under_full),
        cmocka_unit_test(test_a_run_at_its_end_is_not_interrupted),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
