/* The simple graph by ranks: what a plain loop says, whoever makes it and however many at once; and after any lack of
 * memory it can be made anew. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"
#include "base/random.h"
#include "vertex/ranked.h"

enum { N = 3000, M = 40000, CALLERS = 6 };

static plait_edges *draw(uint64_t seed) {
    static uint64_t from[M], to[M];
    pli_random      random = pli_random_at(seed, PLI_RANDOM_DATA, 7, 0);
    plait_edges    *edges = NULL;
    for (int k = 0; k < M; k++) {
        const double a = pli_random_f64(&random);
        from[k] = (uint64_t)(a * a * a * N);
        to[k] = (uint64_t)(pli_random_f64(&random) * N);
    }
    assert_int_equal(plait_edges_from_memory(M, from, to, NULL, NULL, &edges, NULL), PLAIT_OK);
    return edges;
}

static int64_t length(const pli_neighbors *h, int64_t v) { return h->start[v + 1] - h->start[v]; }

static void check(const pli_neighbors *simple, const pli_ranked *r) {
    int64_t all = 0;
    for (int64_t rank = 0; rank < simple->n; rank++) {
        const int64_t v = r->vertex_of[rank];
        int64_t       above = 0;
        assert_int_equal(r->rank_of[v], rank);
        if (rank > 0) assert_true(length(simple, r->vertex_of[rank - 1]) <= length(simple, v));
        for (int64_t k = simple->start[v]; k < simple->start[v + 1]; k++)
            above += (int64_t)r->rank_of[simple->near[k]] > rank;
        assert_int_equal(length(&r->up, rank), above);
        for (int64_t k = r->up.start[rank]; k < r->up.start[rank + 1]; k++) {
            bool is_near = false;
            for (int64_t j = simple->start[v]; j < simple->start[v + 1]; j++)
                is_near = is_near || r->rank_of[simple->near[j]] == r->up.near[k];
            assert_true(is_near && r->up.near[k] > rank);
            if (k > r->up.start[rank]) assert_true(r->up.near[k - 1] < r->up.near[k]);
        }
        all += above;
    }
    assert_int_equal(2 * all, simple->start[simple->n]);
}

typedef struct caller {
    const plait_edges *edges;
    pli_pool          *pool;
    const pli_ranked  *got;
} caller;

static void *call(void *user) {
    caller *c = user;
    c->got = pli_edges_ranked(c->edges, c->pool);
    return NULL;
}

static void test_all_who_ask_at_once_get_the_same(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        plait_edges *edges = draw(seed);
        pli_pool    *pool = NULL;
        pthread_t    thread[CALLERS];
        caller       who[CALLERS];
        assert_int_equal(pli_pool_create(2, &pool, NULL), PLAIT_OK);
        for (int i = 0; i < CALLERS; i++) {
            who[i] = (caller){ edges, i == 0 ? pool : NULL, NULL };
            assert_int_equal(pthread_create(&thread[i], NULL, call, &who[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) pthread_join(thread[i], NULL);
        for (int i = 0; i < CALLERS; i++) assert_ptr_equal(who[i].got, who[0].got);
        check(pli_edges_simple(edges, NULL), who[0].got);
        pli_pool_destroy(&pool);
        plait_edges_destroy(&edges);
    }
}

static void test_after_a_lack_of_memory_it_is_made_anew(void **state) {
    plait_edges      *edges = draw(9);
    const pli_ranked *r = NULL;
    int64_t           fails = 0;
    (void)state;
    assert_non_null(pli_edges_simple(edges, NULL));
    for (; r == NULL; fails++) {
        pli_alloc_fail_after(fails);
        r = pli_edges_ranked(edges, NULL);
        pli_alloc_fail_after(-1);
    }
    assert_true(fails > 4);
    check(pli_edges_simple(edges, NULL), r);
    plait_edges_destroy(&edges);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_who_ask_at_once_get_the_same),
        cmocka_unit_test(test_after_a_lack_of_memory_it_is_made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
