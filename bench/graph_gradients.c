/* bench/graph_gradients.c - measures the cost of differentiating a graph, as one JSON object.
 *
 *   graph_gradients [NODES]
 *
 *   build_ms         adding NODES (100,000) nodes one by one: add, mul, sub and tanh over the last few values
 *   gradients_ms     the first gradient of the last value, by 16 first values, on all of which it depends
 *   gradients_2x_ms  the same for twice as many nodes
 *   ratio            gradients_2x_ms / gradients_ms; linear is 2
 *   added            nodes that the first gradient added
 *   again_ns         another gradient of the same value by all values, for each node of the answer
 *
 * Times are the thread's processor time, so that load on the machine does not matter: the best of a few runs, each in
 * fresh memory. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <plait/ops.h>

#include "base/base.h"

enum { REPEATS = 9, BEGINNINGS = 16 };

typedef struct timing {
    double  build_ns, first_ns, again_ns;
    int64_t added;
} timing;

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static plait_value tangle(plait_graph *g, int64_t nodes, plait_value *value) {
    pli_random r = pli_random_at(1, PLI_RANDOM_DATA, 0, 0);
    int64_t    n = 0;
    for (; n < BEGINNINGS; n++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", (int)n);
        value[n] = plait_graph_placeholder(g, name, PLAIT_F32, plait_shape_2(4, 4));
    }
    for (; n < nodes; n++) {
        const plait_value a = value[n - 1], b = value[n - 1 - (int64_t)pli_random_below(&r, BEGINNINGS - 1)];
        switch (pli_random_below(&r, 4)) {
        case 0: value[n] = plait_op_add(g, a, b); break;
        case 1: value[n] = plait_op_mul(g, a, b); break;
        case 2: value[n] = plait_op_sub(g, a, b); break;
        default: value[n] = plait_op_tanh(g, a); break;
        }
    }
    return value[n - 1];
}

static int once(int64_t nodes, timing *best) {
    plait_graph *g = NULL;
    plait_error  err;
    plait_value *value = pli_array((size_t)nodes, sizeof *value), *dx = pli_array((size_t)nodes, sizeof *dx);
    if (value == NULL || dx == NULL || plait_graph_create(NULL, 0, &g, &err) != PLAIT_OK) return 1;
    const uint64_t    t0 = cpu_ns();
    const plait_value y = tangle(g, nodes, value);
    const uint64_t    t1 = cpu_ns();
    const int64_t     before = plait_graph_nodes(g);
    plait_status      status = plait_graph_gradients(g, y, BEGINNINGS, value, dx);
    const uint64_t    t2 = cpu_ns();
    const int64_t     added = plait_graph_nodes(g) - before;
    if (status == PLAIT_OK) status = plait_graph_gradients(g, y, (int32_t)nodes, value, dx);
    const uint64_t t3 = cpu_ns();
    const timing   now = { (double)(t1 - t0), (double)(t2 - t1), (double)(t3 - t2) / (double)nodes, added };
    if (best->added == 0 || now.build_ns < best->build_ns) best->build_ns = now.build_ns;
    if (best->added == 0 || now.first_ns < best->first_ns) best->first_ns = now.first_ns;
    if (best->added == 0 || now.again_ns < best->again_ns) best->again_ns = now.again_ns;
    best->added = added;
    if (plait_graph_check(g, &err) != PLAIT_OK) fprintf(stderr, "graph_gradients: %s\n", err.text);
    plait_graph_destroy(&g);
    pli_free(value);
    pli_free(dx);
    return status == PLAIT_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    const int64_t nodes = argc > 1 ? atoll(argv[1]) : 100000;
    timing        one = { 0 }, two = { 0 };
    if (nodes < BEGINNINGS + 1 || nodes > 100000000) {
        fprintf(stderr, "graph_gradients: NODES is %d to 100000000\n", BEGINNINGS + 1);
        return 2;
    }
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 17); /* large arrays get fresh pages each time, for both sizes */
    for (int i = 0; i < REPEATS; i++)
        if (once(nodes, &one) != 0 || once(2 * nodes, &two) != 0) return 1;
    printf("{\"nodes\": %lld, \"build_ms\": %.1f, \"gradients_ms\": %.1f, \"gradients_2x_ms\": %.1f, \"ratio\": %.2f, "
           "\"added\": %lld, "
           "\"again_ns\": %.1f}\n",
           (long long)nodes, one.build_ns * 1e-6, one.first_ns * 1e-6, two.first_ns * 1e-6, two.first_ns / one.first_ns,
           (long long)one.added, one.again_ns);
    return 0;
}
