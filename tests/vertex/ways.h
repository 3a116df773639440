/* tests/vertex/ways.h - a small graph, and shortest ways in it by a program that scatters: for the tests of such
 * programs (seam_test.c, paused_test.c). */
#ifndef PLAIT_TESTS_VERTEX_WAYS_H
#define PLAIT_TESTS_VERTEX_WAYS_H

#include "base/random.h"
#include "vertex/vertex.h"

enum { N = 40, M = 120 };

typedef struct graph {
    uint64_t from[M], to[M];
    float    weight[M];
    int      n; /* vertices that have an edge: numbers are those of plait_edges */
    plait_edges *edges;
} graph;

static graph draw(uint64_t seed) {
    pli_random  random = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    graph       g = { .n = N };
    plait_error err;
    for (int k = 0; k < M; k++) {
        g.from[k] = k < N ? (uint64_t)k : (uint64_t)(pli_random_f64(&random) * N); /* each vertex has an edge */
        g.to[k] = (uint64_t)(pli_random_f64(&random) * N);
        g.weight[k] = (float)(1 + (int)(pli_random_f64(&random) * 5));
    }
    if (plait_edges_from_memory(M, g.from, g.to, g.weight, NULL, &g.edges, &err) < 0) fail_msg("%s", err.text);
    assert_int_equal(plait_edges_vertices(g.edges), N);
    return g;
}

typedef struct setting {
    const char *topology, *consistency, *cut;
    int32_t     workers;
} setting;

static inline plait_vertex_program program_of(const char *name) {
    plait_vertex_program p;
    plait_vertex_program_init(&p);
    p.name = name;
    return p;
}

static double take_less(void *user, const plait_vertex *v, const void *gathered, void *value) {
    const double old = *(double *)value, new = *(const double *)gathered;
    (void)user;
    (void)v;
    if (new < old) *(double *)value = new;
    return new < old ? old - new : 0;
}
static int gets_nearer(void *user, const plait_vertex_edge *e) {
    (void)user;
    assert_true(*(const double *)e->was > *(const double *)e->told); /* a way only gets shorter */
    return *(const double *)e->told + (double)e->weight < *(const double *)e->value;
}
static int is_first(void *user, const plait_vertex *v) {
    (void)user;
    return v->index == 0;
}
static void plain_ways(const graph *g, double *way) {
    for (int v = 0; v < N; v++) way[v] = v == 0 ? 0 : 1e9;
    for (int round = 0; round < N; round++)
        for (int k = 0; k < M; k++)
            if (way[g->from[k]] + (double)g->weight[k] < way[g->to[k]])
                way[g->to[k]] = way[g->from[k]] + (double)g->weight[k];
}

/* The source must tell something new to signal anyone: it begins far away as well, and starts. */
static double source_or_less(void *user, const plait_vertex *v, const void *gathered, void *value) {
    if (v->index == 0 && *(double *)value > 0) {
        *(double *)value = 0;
        return 1;
    }
    return take_less(user, v, gathered, value);
}
static void all_far(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    *(double *)value = 1e9;
}

#endif
