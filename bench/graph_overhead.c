/* bench/graph_overhead.c - measures the cost of a node of a dataflow graph beside its work: 10,000 ops of one element,
 * in chains, on one thread and on two.
 *
 *     graph_overhead [OPS]     prints nanoseconds an op, the least of 20 runs, for plans with and without fusion */
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include <plait/session.h>

enum { RUNS = 20, CHAINS = 10 };

static void measure(const plait_graph *g, plait_value x, const plait_value *y, int64_t ops, const char *passes,
                    int32_t threads) {
    plait_session_opts opts;
    plait_session     *s = NULL;
    plait_error        err;
    plait_session_opts_init(&opts);
    opts.passes = passes;
    opts.threads = threads;
    if (plait_session_create(g, &opts, &s, &err) != PLAIT_OK) {
        printf("%s\n", err.text);
        return;
    }
    const float      one = 1;
    float            out[CHAINS];
    plait_fetch      fetches[CHAINS];
    const plait_feed feed = { x, plait_tensor_of(PLAIT_F32, plait_shape_1(1), &one) };
    for (int c = 0; c < CHAINS; c++)
        fetches[c] = (plait_fetch){ .value = y[c], .tensor = { .data = &out[c] }, .bytes = sizeof out[c] };
    uint64_t best = UINT64_MAX, first = 0;
    for (int run = 0; run < RUNS; run++) {
        const uint64_t begin = pli_now_ns();
        if (plait_session_run(s, &feed, 1, fetches, CHAINS, NULL, 0, &err) != PLAIT_OK) printf("%s\n", err.text);
        const uint64_t took = pli_now_ns() - begin;
        if (run == 0)
            first = took;
        else if (took < best)
            best = took;
    }
    printf("%lld ops, passes %s, %d thread%s: %.0f ns an op; the first run, which makes the plan, %.0f ns\n",
           (long long)ops, passes == NULL ? "all" : passes, threads, pli_plural(threads), (double)best / (double)ops,
           (double)first / (double)ops);
    plait_session_destroy(&s);
}

int main(int argc, char **argv) {
    const int64_t ops = argc > 1 ? atoll(argv[1]) : 10000;
    plait_graph  *g = NULL;
    if (plait_graph_create(NULL, 0, &g, NULL) != PLAIT_OK) return 1;
    const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(1));
    plait_value       y[CHAINS], own[CHAINS]; /* own: makes the chains differ */
    for (int c = 0; c < CHAINS; c++) {
        y[c] = x;
        own[c] = plait_graph_scalar(g, PLAIT_F32, 0.5 + c);
    }
    for (int64_t i = 0; i < ops; i++) {
        const plait_value in[] = { y[i % CHAINS], i / CHAINS % 2 == 0 ? own[i % CHAINS] : x };
        y[i % CHAINS] = plait_graph_op(g, i % 3 == 0 ? "add" : i % 3 == 1 ? "mul" : "sub", in, 2, NULL, 0);
    }
    for (int32_t threads = 1; threads <= 2; threads++) {
        measure(g, x, y, ops, "none", threads);
        measure(g, x, y, ops, "memory", threads);
        measure(g, x, y, ops, NULL, threads);
    }
    plait_graph_destroy(&g);
    return 0;
}
