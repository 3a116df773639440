/* Cached gathers: a vertex gathers along its edges once, and from there on its sum changes by what the program posts
 * along those that change. Counted, against a plain loop, under whole clocks and stale ones, where some edges post no
 * delta, and without any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "drawn.h"

/* A vertex lives while 2 edges come to it from the living. */
typedef struct counted {
    int64_t gathers, changes; /* atomic: edges that were gathered along; that posted a delta */
    int64_t refuses;          /* every so many-th edge posts none; 0: all do                 */
} counted;

static void alive(void *user, const plait_vertex *v, void *value) {
    (void)user;
    (void)v;
    *(int64_t *)value = 1;
}

static void count_living(void *user, const plait_vertex_edge *e, void *gathered) {
    __atomic_fetch_add(&((counted *)user)->gathers, 1, __ATOMIC_RELAXED);
    *(int64_t *)gathered += *(const int64_t *)e->told;
}

static double live_or_die(void *user, const plait_vertex *v, const void *gathered, void *value) {
    int64_t      *living = value;
    const int64_t old = *living;
    (void)user;
    (void)v;
    *living = old != 0 && *(const int64_t *)gathered >= 2;
    return (double)(old - *living);
}

static int has_died(void *user, const plait_vertex_edge *e) {
    (void)user;
    return *(const int64_t *)e->told != *(const int64_t *)e->was;
}

static int post_death(void *user, const plait_vertex_edge *e, void *gathered) {
    counted *c = user;
    __atomic_fetch_add(&c->changes, 1, __ATOMIC_RELAXED);
    if (c->refuses > 0 && (e->at->index + e->other->index) % c->refuses == 0) return 0;
    *(int64_t *)gathered += *(const int64_t *)e->told - *(const int64_t *)e->was;
    return 1;
}

static void plain_core(const graph *g, int64_t *lives) {
    bool dies = true;
    for (int v = 0; v < N; v++) lives[v] = 1;
    while (dies) {
        int64_t from[N] = { 0 };
        dies = false;
        for (int k = 0; k < M; k++) from[g->to[k]] += lives[g->from[k]];
        for (int v = 0; v < N; v++) {
            dies = dies || (lives[v] != 0 && from[v] < 2);
            lives[v] = lives[v] != 0 && from[v] >= 2;
        }
    }
}

enum { NO_DELTAS, ALL_DELTAS, SOME_DELTAS };

static void check(const graph *g, const setting *s, int deltas) {
    counted              c = { .refuses = deltas == SOME_DELTAS ? 3 : 0 };
    plait_vertex_program p = program_of("core");
    const bool           whole = pli_is(s->consistency, "bsp");
    int64_t              lives[N];
    doing                d;
    plait_error          err;
    p.user = &c, p.type = PLAIT_I64;
    p.init = alive, p.gather = count_living, p.apply = live_or_die, p.scatter = has_died;
    p.post_delta = deltas != NO_DELTAS ? post_death : NULL;
    if (run(s, g->edges, &p, 0, &d, &err) < 0) fail_msg("%s", err.text);
    plain_core(g, lives);
    assert_memory_equal(d.value, lives, sizeof lives);
    if (whole && deltas == ALL_DELTAS) assert_int_equal(c.gathers, M);
    else if (whole) assert_true(c.gathers > M);
    assert_true((c.changes > 0) == (deltas != NO_DELTAS));
}

static void test_an_edge_is_gathered_along_once(void **state) {
    static const setting pairs[] = { { "local", "bsp", "range", 1 }, { "ps", "bsp", "range", 3 },
                                     { "allreduce", "bsp", "range", 2 }, { "ps", "ssp:2", "range", 3 },
                                     { "ps", "async", "range", 4 } };
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        graph g = draw(30 + seed);
        for (size_t s = 0; s < sizeof pairs / sizeof *pairs; s++)
            for (int deltas = NO_DELTAS; deltas <= SOME_DELTAS; deltas++) check(&g, &pairs[s], deltas);
        plait_edges_destroy(&g.edges);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_edge_is_gathered_along_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
