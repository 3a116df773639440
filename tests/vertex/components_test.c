/* Components are those of a plain loop, by bits and by labels: over each topology, consistency, cut and number of
 * workers; where great trees meet, where they meet by a third one alone, and where each worker has another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/random.h"
#include "base/sort.h"
#include "named.h"
#include "vertex/direct.h"

enum { MOST = 400, EDGES = 4 * MOST, FAMILIES = 6 };

typedef struct graph {
    int64_t  n, m; /* ids drawn from 0 .. n - 1 */
    uint64_t from[EDGES], to[EDGES];
    int64_t  least[MOST]; /* of an id */
} graph;

static void edge(graph *g, uint64_t from, uint64_t to) {
    g->from[g->m] = from;
    g->to[g->m++] = to;
}

static uint64_t below(pli_random *r, int64_t n) { return pli_random_below(r, (uint64_t)n); }

/* An edge of the family: many small trees; low and high ids apart; the same, and one edge between; one long path in any
 * order; a hub with many, and pairs; even and odd ids apart, so that each worker has edges of both. */
static void draw_edges(pli_random *r, uint64_t family, graph *g) {
    const int64_t n = g->n, low = n * 3 / 5, even = n / 2 * 2;
    for (int64_t i = 0; i < even; i++) {
        const uint64_t u = below(r, n), v = below(r, n), first = i % 5 < 3 ? 0 : (uint64_t)low;
        const int64_t  ids = i % 5 < 3 ? low : n - low;
        if (family == 0 && i % 3 == 0) edge(g, u, v);
        if (family == 1 || family == 2) edge(g, first + below(r, ids), first + below(r, ids));
        if (family == 3 && i > 0) edge(g, (uint64_t)(i * 7 % even), (uint64_t)((i - 1) * 7 % even));
        if (family == 4) edge(g, i % 9 ? u : 3, i % 9 ? (u + (uint64_t)n / 2) % (uint64_t)n : v);
        if (family == 5) edge(g, u / 2 * 2 + (uint64_t)i % 2, v / 2 * 2 + (uint64_t)i % 2);
    }
    if (family == 2) edge(g, (uint64_t)low - 1, (uint64_t)low + below(r, n - low));
}

static void draw(uint64_t seed, graph *g) {
    pli_random r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    bool       fell = true;
    g->n = seed % 4 == 0 ? MOST - 1 : 4 + (int64_t)below(&r, 130);
    g->m = 0;
    draw_edges(&r, seed % FAMILIES, g);
    for (int64_t v = 0; v < MOST; v++) g->least[v] = v;
    while (fell) {
        fell = false;
        for (int64_t k = 0; k < g->m; k++) {
            int64_t *a = &g->least[g->from[k]], *b = &g->least[g->to[k]];
            fell |= *a != *b;
            *a = *b = pli_lesser(*a, *b);
        }
    }
}

typedef struct doing {
    pli_vertex_choice   choice;
    plait_vertex_cut   *cut;
    int64_t             limit, value[MOST];
    bool                by_bits;
    plait_vertex_report report;
} doing;

static plait_status body(plait_job *job, void *user) {
    doing              *d = user;
    const bool          lowest = plait_comm_rank(plait_job_comm(job)) == 0;
    plait_vertex_report report;
    const plait_status  status =
        pli_run_components(job, &d->choice, d->cut, d->limit, lowest ? d->value : NULL, &report);
    if (lowest) d->report = report;
    if (lowest) d->by_bits = pli_direct_reads_all(job);
    return status;
}

static plait_status run(const setting *s, const plait_edges *edges, int64_t limit, doing *d, plait_error *err) {
    plait_comm_opts comm;
    plait_job_opts  job;
    options_of(s, &comm, &job);
    *d = (doing){ .choice = { edges, -1, 0, 0, 0, NULL }, .limit = limit };
    plait_status status = pli_cut_create(edges, PLAIT_NEAR_IN, s->cut, s->workers, &d->cut, err);
    if (status == PLAIT_OK) status = plait_run(&comm, &job, body, d, err);
    for (int32_t p = 0; status == PLAIT_OK && p < s->workers && s->workers > 1; p++)
        d->by_bits &= !d->cut->splits && d->cut->part == NULL && d->cut->reads[p] * 2 > edges->n;
    plait_vertex_cut_destroy(&d->cut);
    return status;
}

static const setting settings[] = {
    { "local", "bsp", "range", 2 },     { "ps", "bsp", "range", 3 },     { "allreduce", "bsp", "range", 2 },
    { "local", "bsp", "range", 5 },     { "ps", "ssp:2", "range", 3 },   { "allreduce", "bsp", "hdrf", 3 },
    { "local", "async", "range", 4 },   { "ps", "bsp", "random", 4 },    { "ps", "async", "oblivious", 2 },
    { "allreduce", "bsp", "range", 4 }, { "ps", "bsp", "range", 2 },     { "local", "bsp", "range", 1 },
    { "hybrid", "bsp", "range", 3 },    { "ps", "essp:1", "range", 2 },
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void test_components_are_those_of_a_plain_loop(void **state) {
    static graph g;
    int          by_bits[FAMILIES] = { 0 }, by_labels = 0;
    (void)state;
    for (uint64_t seed = 0; seed < 24 * FAMILIES; seed++) {
        const setting *s = &settings[(seed / FAMILIES + 3 * seed) % SETTINGS];
        plait_edges   *edges = NULL;
        plait_error    err;
        doing          d;
        draw(seed, &g);
        assert_int_equal(plait_edges_from_memory(g.m, g.from, g.to, NULL, NULL, &edges, &err), PLAIT_OK);
        if (run(s, edges, 0, &d, &err) < 0) fail_msg("%s", err.text);
        for (int64_t v = 0; v < edges->n; v++) {
            const int64_t wanted = g.least[pli_edges_id(edges, v)], is = (int64_t)pli_edges_id(edges, d.value[v]);
            if (is != wanted)
                fail_msg("%s x %s, %s in %d, seed %d: vertex %d has %d instead of %d", s->topology, s->consistency,
                         s->cut, (int)s->workers, (int)seed, (int)v, (int)is, (int)wanted);
        }
        assert_int_equal(d.report.still, 1);
        by_bits[seed % FAMILIES] += d.by_bits && s->workers > 1;
        by_labels += !d.by_bits;
        plait_edges_destroy(&edges);
    }
    assert_true(by_labels > 10);
    for (int f = 0; f < FAMILIES; f++)
        if (f != 0 && by_bits[f] == 0) fail_msg("family %d: no run went by bits", f);
}

/* A limit leaves labels of the same component. */
static void test_a_limit_of_supersteps_is_kept(void **state) {
    static graph g;
    plait_edges *edges = NULL;
    plait_error  err;
    doing        d;
    (void)state;
    for (uint64_t seed = 3; seed < 60; seed += FAMILIES) { /* a long path */
        const setting *s = &settings[seed % 5];
        draw(seed, &g);
        assert_int_equal(plait_edges_from_memory(g.m, g.from, g.to, NULL, NULL, &edges, &err), PLAIT_OK);
        for (int64_t limit = 1; limit <= 2; limit++) {
            assert_int_equal(run(s, edges, limit, &d, &err), PLAIT_OK);
            assert_true(d.report.supersteps <= limit);
            for (int64_t v = 0; v < edges->n; v++) {
                const uint64_t id = pli_edges_id(edges, v);
                assert_true(d.value[v] >= 0 && d.value[v] <= v);
                assert_int_equal(g.least[pli_edges_id(edges, d.value[v])], g.least[id]);
            }
        }
        plait_edges_destroy(&edges);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_components_are_those_of_a_plain_loop),
        cmocka_unit_test(test_a_limit_of_supersteps_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
