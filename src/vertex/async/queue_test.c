/* The queue of vertices against lists: each waits at most once, and comes out by its order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "vertex/async/queue.h"

enum { N = 130, STEPS = 4000 };

typedef struct plain {
    int64_t list[N], size, sweep;
    double  weight[N];
} plain;

static int64_t where(const plain *p, int64_t v) {
    for (int64_t i = 0; i < p->size; i++)
        if (p->list[i] == v) return i;
    return -1;
}

/* The place in the list of the one that comes next. */
static int64_t chosen(const plain *p, pli_queue_order order) {
    int64_t best = 0;
    for (int64_t i = 1; i < p->size; i++) {
        const int64_t a = p->list[i], b = p->list[best];
        const int64_t from_a = (a - p->sweep + N) % N, from_b = (b - p->sweep + N) % N;
        const bool    heavier = p->weight[a] > p->weight[b] || (p->weight[a] == p->weight[b] && a < b);
        if ((order == PLI_QUEUE_PRIORITY && heavier) || (order == PLI_QUEUE_SWEEP && from_a < from_b)) best = i;
    }
    return best;
}

static void test_orders_against_lists(void **state) {
    (void)state;
    for (int order = 0; order < 3; order++) {
        pli_random random = pli_random_at(5, PLI_RANDOM_DATA, (uint64_t)order, 0);
        plain      p = { .size = 0 };
        pli_queue  q;
        assert_true(pli_queue_init(&q, (pli_queue_order)order, N));
        for (int step = 0; step < STEPS; step++) {
            if (pli_random_below(&random, 2) == 0) {
                const int64_t v = (int64_t)pli_random_below(&random, N);
                const double  weight = (double)pli_random_below(&random, 4);
                pli_queue_push(&q, v, weight);
                p.weight[v] += weight;
                if (where(&p, v) < 0) p.list[p.size++] = v;
                assert_true(pli_queue_has(&q, v));
            } else {
                const int64_t got = pli_queue_pop(&q), at = chosen(&p, (pli_queue_order)order);
                assert_int_equal(got, p.size == 0 ? -1 : p.list[at]);
                if (got < 0) continue;
                memmove(&p.list[at], &p.list[at + 1], (size_t)(p.size - at - 1) * sizeof *p.list);
                p.size--;
                p.weight[got] = 0;
                p.sweep = (got + 1) % N;
                assert_false(pli_queue_has(&q, got));
            }
            assert_int_equal(q.size, p.size);
        }
        pli_queue_destroy(&q);
    }
}

static void test_names(void **state) {
    pli_queue_order order;
    plait_error     err;
    (void)state;
    assert_int_equal(pli_queue_find("sweep", &order, &err), PLAIT_OK);
    assert_int_equal(order, PLI_QUEUE_SWEEP);
    assert_int_equal(pli_queue_find(NULL, &order, &err), PLAIT_OK);
    assert_int_equal(order, PLI_QUEUE_FIFO);
    assert_int_equal(pli_queue_find("priorty", &order, &err), PLAIT_ENAME);
    assert_non_null(strstr(err.text, "priority"));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_orders_against_lists), cmocka_unit_test(test_names) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
