/* The cost of a graph's nodes: three graphs are run, and three unknowns follow. Small nodes give the time to begin one;
 * matrix products, which do many operations on each byte, the time of an operation; sums of arrays, which do one operation
 * on twelve bytes, the time of a byte. Sizes are those of a net's layers for a batch of some hundred rows. */
#include <math.h>
#include <plait/ops.h>
#include <plait/session.h>
#include <stdio.h>

#include "base/base.h"
#include "cli/calibrate.h"

enum { ROUNDS = 40, CHAIN = 200, LAYERS = 4, ROWS = 128, WIDTH = 256, PASSES = 8, LONG = 1 << 17 };

/* Nodes of one element, which cannot be fused because each is run alone: no passes. */
static plait_value small_nodes(plait_graph *g) {
    plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(1));
    for (int32_t i = 0; i < CHAIN; i++) x = plait_op_relu(g, x);
    return x;
}

static plait_value products(plait_graph *g) {
    plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(ROWS, WIDTH));
    for (int32_t i = 0; i < LAYERS; i++) {
        const plait_tensor w = { .type = PLAIT_F32, .shape = plait_shape_2(WIDTH, WIDTH) };
        char               name[16];
        snprintf(name, sizeof name, "w%d", i);
        x = plait_op_matmul(g, x, plait_graph_variable(g, name, w));
    }
    return x;
}

static plait_value passes(plait_graph *g) {
    const plait_value first = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(LONG));
    plait_value       x = first;
    for (int32_t i = 0; i < PASSES; i++) x = plait_op_add(g, x, first);
    return x;
}

static plait_status time_run(plait_session *s, plait_value y, const plait_feed *feed, double *least_ns,
                             plait_error *err) {
    plait_fetch fetch = { .value = y };
    for (int32_t round = 0; round < ROUNDS; round++) {
        const uint64_t begun_ns = pli_now_ns();
        PLI_TRY(plait_session_run(s, feed, 1, &fetch, 1, NULL, 0, err));
        const double ns = (double)(pli_now_ns() - begun_ns);
        if (ns < *least_ns) *least_ns = ns;
    }
    return PLAIT_OK;
}

/* The best time of several runs of a graph, in nanoseconds. */
static plait_status measure(plait_value (*build)(plait_graph *), double *least_ns, plait_error *err) {
    plait_graph       *g = NULL;
    plait_session     *s = NULL;
    plait_session_opts opts;
    plait_session_opts_init(&opts);
    opts.threads = 1;
    opts.passes = "memory";
    *least_ns = INFINITY;
    PLI_TRY(plait_graph_create(NULL, 0, &g, err));
    const plait_value y = build(g);
    plait_status      status = plait_session_create(g, &opts, &s, err);
    plait_feed        feed = { .value = plait_graph_find(g, "x") };
    if (status == PLAIT_OK) feed.tensor = plait_graph_describe(g, feed.value);
    feed.tensor.data = status == PLAIT_OK ? pli_calloc((size_t)plait_shape_elements(&feed.tensor.shape), 4) : NULL;
    if (status == PLAIT_OK)
        status = feed.tensor.data != NULL ? time_run(s, y, &feed, least_ns, err)
                                          : pli_fail(err, PLAIT_ENOMEM, "no memory to measure a graph in");
    pli_free(feed.tensor.data);
    plait_session_destroy(&s);
    plait_graph_destroy(&g);
    return status;
}

plait_status pli_calibrate_graph(pli_graph_cost *cost_out, plait_error *err) {
    const double flops = 2.0 * ROWS * WIDTH * WIDTH, product_bytes = 4.0 * (2.0 * ROWS * WIDTH + WIDTH * WIDTH);
    const double pass_bytes = 12.0 * LONG;
    double       chain_ns, product_ns, pass_ns;
    PLI_TRY(measure(small_nodes, &chain_ns, err));
    PLI_TRY(measure(products, &product_ns, err));
    PLI_TRY(measure(passes, &pass_ns, err));
    const double node_ns = chain_ns / CHAIN, product = product_ns / LAYERS - node_ns, pass = pass_ns / PASSES - node_ns;
    /* product = flops f + product_bytes m, pass = LONG f + pass_bytes m */
    const double flop_ns = (product * pass_bytes - pass * product_bytes) / (flops * pass_bytes - LONG * product_bytes);
    const double moved_ns = (pass - LONG * flop_ns) / pass_bytes;
    *cost_out = (pli_graph_cost){ .flop_ns = fmax(flop_ns, 0), .moved_ns = fmax(moved_ns, 0), .node_ns = node_ns };
    return PLAIT_OK;
}
