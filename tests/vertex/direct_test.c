/* Programs with a run of their own give what a plain loop over a small graph gives: triangles, clustering, cores,
 * colors, labels, strong components, distances; for each cut and number of workers. What needs whole rows or whole
 * clocks is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/cutter.h"
#include "base/module.h"
#include "base/random.h"
#include "named.h"
#include "vertex/direct.h"

enum { N = 70, M = 260 };

/* Ids 0, 3, 6, ...; the dense end has triangles and cores, and pairs of one direction make strong components. */
typedef struct graph {
    uint64_t from[M], to[M];
    bool     edge[N][N]; /* [from][to] */
    int      times[N][N];
    int      n;          /* vertices that edges name */
    int      id[N];      /* by number: the id / 3 */
} graph;

static void draw(uint64_t seed, graph *g) {
    pli_random random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    bool       named[N] = { false };
    int        number[N];
    memset(g, 0, sizeof *g);
    for (int k = 0; k < M; k++) {
        const double a = pli_random_f64(&random), b = pli_random_f64(&random);
        const int    u = (int)(a * a * N), v = k % 5 == 0 ? (u + 1) % N : (int)(b * b * N);
        g->from[k] = (uint64_t)u * 3;
        g->to[k] = (uint64_t)v * 3;
        named[u] = named[v] = true;
    }
    for (int v = 0; v < N; v++)
        if (named[v]) {
            number[v] = g->n;
            g->id[g->n++] = v;
        }
    for (int k = 0; k < M; k++) {
        const int u = number[g->from[k] / 3], v = number[g->to[k] / 3];
        g->edge[u][v] = true;
        g->times[u][v]++;
    }
}

static bool joined(const graph *g, int u, int v) { return u != v && (g->edge[u][v] || g->edge[v][u]); }

static int degree(const graph *g, int v) {
    int n = 0;
    for (int u = 0; u < g->n; u++) n += joined(g, u, v);
    return n;
}

/* --- plain loops -------------------------------------------------------------------------------------------------- */

static void plain_triangles(const graph *g, int64_t *value) {
    memset(value, 0, N * sizeof *value);
    for (int u = 0; u < g->n; u++)
        for (int v = u + 1; v < g->n; v++)
            for (int w = v + 1; joined(g, u, v) && w < g->n; w++)
                if (joined(g, u, w) && joined(g, v, w)) value[u]++, value[v]++, value[w]++;
}

static void plain_clustering(const graph *g, int64_t *value) {
    plain_triangles(g, value);
    for (int v = 0; v < g->n; v++) {
        const double d = degree(g, v), share = d > 1 ? 2 * (double)value[v] / (d * (d - 1)) : 0;
        memcpy(&value[v], &share, sizeof share);
    }
}

static void plain_kcore(const graph *g, int64_t *value) {
    for (int v = 0; v < g->n; v++) value[v] = 0;
    for (int k = 1; k < N; k++) { /* the k-core: take away what has fewer neighbors, until nothing has */
        bool in[N], fell = true;
        for (int v = 0; v < g->n; v++) in[v] = true;
        while (fell) {
            fell = false;
            for (int v = 0; v < g->n; v++) {
                int n = 0;
                for (int u = 0; u < g->n; u++) n += in[u] && joined(g, u, v);
                if (in[v] && n < k) in[v] = false, fell = true;
            }
        }
        for (int v = 0; v < g->n; v++)
            if (in[v]) value[v] = k;
    }
}

static void plain_coloring(const graph *g, int64_t *value) {
    for (int v = 0; v < g->n; v++) value[v] = -1;
    for (int round = 0; round < g->n; round++) {
        int next = -1;
        for (int v = 0; v < g->n; v++)
            if (value[v] < 0 && (next < 0 || degree(g, v) > degree(g, next))) next = v;
        bool taken = true;
        for (value[next] = -1; taken;) {
            value[next]++;
            taken = false;
            for (int u = 0; u < g->n; u++) taken = taken || (joined(g, u, next) && value[u] == value[next]);
        }
    }
}

static void plain_labels(const graph *g, int64_t *value) {
    for (int v = 0; v < g->n; v++) value[v] = v;
    for (int step = 0; step < 10; step++) {
        int64_t next[N];
        for (int v = 0; v < g->n; v++) {
            int count[N] = { 0 }, best = (int)value[v];
            for (int u = 0; u < g->n; u++) count[value[u]] += g->times[u][v] + g->times[v][u];
            for (int l = g->n - 1, most = 0; l >= 0; l--)
                if (count[l] > 0 && count[l] >= most) most = count[l], best = l;
            next[v] = best;
        }
        memcpy(value, next, sizeof next);
    }
}

static void plain_strong(const graph *g, int64_t *value) {
    bool reaches[N][N];
    for (int u = 0; u < g->n; u++)
        for (int v = 0; v < g->n; v++) reaches[u][v] = u == v || g->edge[u][v];
    for (int w = 0; w < g->n; w++)
        for (int u = 0; u < g->n; u++)
            for (int v = 0; v < g->n; v++) reaches[u][v] = reaches[u][v] || (reaches[u][w] && reaches[w][v]);
    for (int v = 0; v < g->n; v++)
        for (int u = g->n - 1; u >= 0; u--)
            if (reaches[u][v] && reaches[v][u]) value[v] = u;
}

static void plain_bfs(const graph *g, int64_t *value) {
    for (int v = 0; v < g->n; v++) value[v] = v == 0 ? 0 : INT64_MAX;
    for (int64_t level = 0; level < g->n; level++)
        for (int u = 0; u < g->n; u++)
            for (int v = 0; value[u] == level && v < g->n; v++)
                if (g->edge[u][v] && value[v] == INT64_MAX) value[v] = level + 1;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

typedef struct doing {
    const pli_vertex_named *named;
    pli_vertex_choice       choice;
    plait_vertex_cut       *cut;
    int64_t                 value[N];
    plait_vertex_report     report;
} doing;

static plait_status body(plait_job *job, void *user) {
    doing              *d = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    const plait_status  status = d->named->run(job, &d->choice, d->cut, 0, lowest ? d->value : NULL, &report);
    if (lowest) d->report = report;
    return status;
}

static plait_status run(const setting *s, const char *name, const plait_edges *edges, doing *d, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  job;
    options_of(s, &comm, &job);
    *d = (doing){ .named = pli_vertex_find(name, err), .choice = { edges, -1, 0, 0, 0, NULL } };
    assert_non_null(d->named);
    if (d->named->sourced) d->choice.source = 0;
    plait_status status = pli_cut_create(edges, d->named->near, s->cut, s->workers, &d->cut, err);
    if (status == PLAIT_OK) status = plait_run(&comm, &job, body, d, err);
    plait_vertex_cut_destroy(&d->cut);
    return status;
}

static const struct plain {
    const char *name;
    void (*loop)(const graph *g, int64_t *value);
    bool rows;  /* it needs whole rows */
    bool clocks; /* and whole clocks */
} plains[] = {
    { "triangles", plain_triangles, false, false }, { "clustering", plain_clustering, false, false },
    { "kcore", plain_kcore, false, true },          { "coloring", plain_coloring, true, true },
    { "labels", plain_labels, true, true },         { "strong", plain_strong, false, true },
    { "bfs", plain_bfs, false, false },
};

static bool has_metis(void) {
    void       *handle = NULL;
    const void *given = NULL;
    plait_error err;
    const bool  has = pli_module_load("metis", PLI_CUTTER_ABI, &handle, &given, &err) == PLAIT_OK;
    if (has) pli_module_close(&handle);
    return has;
}

static void test_every_program_gives_what_a_loop_gives(void **state) {
    static const char *const cuts[] = { "range", "random", "grid", "oblivious", "hdrf", "metis" };
    const size_t             n_cuts = has_metis() ? 6 : 5;
    static const char *const pairs[][2] = { { "local", "bsp" }, { "allreduce", "bsp" }, { "ps", "bsp" } };
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++)
        for (size_t p = 0; p < sizeof plains / sizeof *plains; p++)
            for (size_t c = 0; c < n_cuts; c++) {
                const size_t        pair = (seed + c) % 3;
                const setting       s = { pairs[pair][0], pairs[pair][1], cuts[c], (int32_t)(1 + (seed + c + p) % 5) };
                const struct plain *is = &plains[p];
                graph               g;
                plait_edges        *edges = NULL;
                plait_error         err;
                doing               d;
                int64_t             wanted[N];
                draw(seed, &g);
                assert_int_equal(plait_edges_from_memory(M, g.from, g.to, NULL, NULL, &edges, &err), PLAIT_OK);
                is->loop(&g, wanted);
                const plait_status status = run(&s, is->name, edges, &d, &err);
                if (is->rows && c > 0 && s.workers > 1) {
                    assert_int_equal(status, PLAIT_EREFUSED);
                    assert_non_null(strstr(err.text, "nearest is the cut 'range'"));
                } else {
                    if (status < 0) fail_msg("%s: %s", is->name, err.text);
                    for (int v = 0; v < g.n; v++)
                        if (d.value[v] != wanted[v])
                            fail_msg("%s over %s, %s in %d, seed %d: vertex %d has %lld instead of %lld", is->name,
                                     s.topology, s.cut, (int)s.workers, (int)seed, v, (long long)d.value[v],
                                     (long long)wanted[v]);
                }
                plait_edges_destroy(&edges);
            }
}

static void test_what_counts_clock_by_clock_needs_whole_clocks(void **state) {
    graph        g;
    plait_edges *edges = NULL;
    plait_error  err;
    doing        d;
    int64_t      wanted[N];
    (void)state;
    draw(7, &g);
    assert_int_equal(plait_edges_from_memory(M, g.from, g.to, NULL, NULL, &edges, &err), PLAIT_OK);
    for (size_t p = 0; p < sizeof plains / sizeof *plains; p++) {
        const plait_status status = run(&(setting){ "ps", "ssp:2", "range", 3 }, plains[p].name, edges, &d, &err);
        if (plains[p].clocks) {
            assert_int_equal(status, PLAIT_EREFUSED);
            assert_non_null(strstr(err.text, "whole clocks"));
            continue;
        }
        assert_int_equal(status, PLAIT_OK);
        plains[p].loop(&g, wanted);
        assert_memory_equal(d.value, wanted, (size_t)g.n * sizeof *wanted);
    }
    plait_edges_destroy(&edges);
}

/* Two rings that one edge joins: METIS finds the two, whose vertices are all in one part but the ends of the edge, and
 * keeps each row's edges together. */
static void test_metis_cuts_where_few_edges_are(void **state) {
    enum { RING = 40 };
    uint64_t          from[2 * RING + 1], to[2 * RING + 1];
    plait_edges      *edges = NULL;
    plait_vertex_cut *cut = NULL;
    plait_error       err;
    (void)state;
    for (uint64_t k = 0; k < 2 * RING; k++) { /* even ids one ring, odd ids the other: a range cuts both */
        from[k] = k;
        to[k] = (k + 2) % (2 * RING);
    }
    from[2 * RING] = 0;
    to[2 * RING] = 1;
    assert_int_equal(plait_edges_from_memory(2 * RING + 1, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    const plait_status status = plait_vertex_cut_create(edges, PLAIT_NEAR_IN, "metis", 2, &cut, &err);
    if (!has_metis()) {
        assert_int_equal(status, PLAIT_EMODULE);
    } else {
        assert_int_equal(status, PLAIT_OK);
        assert_true(plait_vertex_cut_replication(cut) <= 1 + 4.0 / (2 * RING));
        assert_true(plait_vertex_cut_imbalance(cut) < 1.1);
        for (int64_t v = 0; v < edges->n; v++)
            for (int64_t k = cut->rows.start[v]; k < cut->rows.start[v + 1]; k++)
                assert_int_equal(cut->part[k], cut->part[cut->rows.start[v]]);
    }
    plait_vertex_cut_destroy(&cut);
    plait_edges_destroy(&edges);
}

/* What the summary prints of a triangle with a tail, whose edges go 1 -> 2 -> 3 -> 1 and 3 -> 4. */
static void test_figures_of_a_triangle_with_a_tail(void **state) {
    static const uint64_t from[] = { 1, 2, 3, 3, 4 }, to[] = { 2, 3, 1, 4, 4 };
    static const struct { const char *name; int64_t whole; } wanted[] = {
        { "triangles", 1 }, { "clustering", 1 }, { "kcore", 2 },
        { "coloring", 3 },  { "strong", 2 },     { "components", 1 },
    };
    plait_edges *edges = NULL;
    plait_error  err;
    doing        d;
    pli_figure   figure[PLI_FIGURES];
    (void)state;
    assert_int_equal(plait_edges_from_memory(5, from, to, NULL, NULL, &edges, &err), PLAIT_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_int_equal(run(&(setting){ "ps", "bsp", "range", 2 }, wanted[i].name, edges, &d, &err), PLAIT_OK);
        assert_true(d.named->figures(&d.choice, d.value, figure) >= 1);
        assert_int_equal(figure[0].whole, wanted[i].whole);
        assert_int_equal(d.report.still, 1);
        if (strcmp(wanted[i].name, "clustering") == 0) assert_true(fabs(figure[1].real - 0.6) < 1e-12);
    }
    plait_edges_destroy(&edges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_program_gives_what_a_loop_gives),
        cmocka_unit_test(test_what_counts_clock_by_clock_needs_whole_clocks),
        cmocka_unit_test(test_metis_cuts_where_few_edges_are),
        cmocka_unit_test(test_figures_of_a_triangle_with_a_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
