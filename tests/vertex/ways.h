/* tests/vertex/ways.h - a small graph, and shortest ways in it by a program that scatters: for the tests of such
 * programs (seam_test.c, paused_test.c). */
#ifndef PLAIT_TESTS_VERTEX_WAYS_H
#define PLAIT_TESTS_VERTEX_WAYS_H

#include "drawn.h"

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
