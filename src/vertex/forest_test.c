/* A forest has the trees that a plain loop finds, on one thread and on several, whatever its great tree is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/sort.h"
#include "vertex/forest.h"

enum { MOST = 9000, EDGES = 3 * MOST };

typedef struct graph {
    int64_t       n, start[MOST + 1];
    uint32_t      near[EDGES];
    uint32_t      root[MOST]; /* by the plain loop: the least vertex */
    pli_neighbors rows;
} graph;

/* Families: sparse, so that there are many trees; a hub with all even vertices; one long path; two halves. */
static uint32_t draw_near(pli_random *r, uint64_t family, int64_t n, int64_t v) {
    const int64_t half = v < n / 2 ? 0 : n / 2;
    switch (family) {
    case 0: return (uint32_t)pli_random_below(r, (uint64_t)n);
    case 1: return (uint32_t)(v % 2 == 0 ? 0 : pli_random_below(r, (uint64_t)n / 2) * 2 + 1);
    case 2: return (uint32_t)(v > 0 ? v - 1 : 0);
    default: return (uint32_t)(half + (int64_t)pli_random_below(r, (uint64_t)(n - n / 2)) % (n / 2));
    }
}

static uint32_t plain_root(const graph *g, uint32_t v) {
    while (g->root[v] != v) v = g->root[v];
    return v;
}

static void draw(uint64_t seed, graph *g) {
    pli_random     r = pli_random_at(seed, PLI_RANDOM_DATA, 0, 0);
    const uint64_t family = seed % 4, most = family == 3 ? 3 : family == 0 ? 1 + seed / 4 % 2 : 1;
    int64_t        m = 0;
    g->n = seed % 3 == 0 ? MOST : 2 + (int64_t)pli_random_below(&r, 200);
    for (int64_t v = 0; v < g->n; v++) {
        g->start[v] = m;
        g->root[v] = (uint32_t)v;
        for (uint64_t k = family == 2 ? 1 : pli_random_below(&r, most + 1); k > 0; k--)
            g->near[m++] = draw_near(&r, family, g->n, v);
    }
    g->start[g->n] = m;
    g->rows = (pli_neighbors){ .n = g->n, .start = g->start, .near = g->near, .lent = true };
}

static void plain_join(graph *g, int64_t first, int64_t last) {
    for (int64_t v = 0; v < g->n; v++) g->root[v] = (uint32_t)v;
    for (int64_t v = first; v < last; v++)
        for (int64_t k = g->start[v]; k < g->start[v + 1]; k++) {
            const uint32_t a = plain_root(g, (uint32_t)v), b = plain_root(g, g->near[k]);
            g->root[a > b ? a : b] = a > b ? b : a;
        }
}

static void check(const pli_forest *f, const graph *g) {
    const uint64_t *great = (const uint64_t *)f->great;
    const uint32_t  top = plain_root(g, f->seed);
    for (uint32_t v = 0; v < g->n; v++) {
        const uint32_t root = plain_root(g, v);
        assert_int_equal(pli_bit_is(great, v), root == top);
        if (root == top) assert_false(pli_bit_is(f->small, v));
        if (root == top) continue;
        assert_int_equal(pli_forest_root(f, v), root);
        if (root != v) assert_true(pli_bit_is(f->small, v) && pli_bit_is(f->small, root));
    }
}

static void test_trees_are_those_of_a_plain_loop(void **state) {
    static graph g;
    (void)state;
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        pli_pool *pool = NULL;
        assert_int_equal(pli_pool_create(threads, &pool, NULL), PLAIT_OK);
        for (uint64_t seed = 0; seed < 60; seed++) {
            pli_forest f;
            draw(seed, &g);
            const int64_t first = seed % 5 == 4 ? g.n / 3 : 0, last = seed % 7 == 6 ? g.n - g.n / 3 : g.n;
            plain_join(&g, first, last);
            assert_int_equal(pli_forest_make(&f, pool, g.n, NULL), PLAIT_OK);
            pli_forest_join_rows(&f, &g.rows, first, last);
            pli_forest_split(&f);
            check(&f, &g);
            pli_forest_forget_great(&f);
            for (uint32_t v = 0; v < g.n; v++) {
                assert_int_equal(pli_forest_root(&f, v), plain_root(&g, v));
                if (plain_root(&g, v) != v) assert_true(pli_bit_is(f.small, v) && !pli_bit_is((uint64_t *)f.great, v));
            }
            pli_forest_destroy(&f);
        }
        pli_pool_destroy(&pool);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_trees_are_those_of_a_plain_loop) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
