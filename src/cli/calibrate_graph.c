/* The cost of a graph's nodes. Small graphs are run, each of nodes of one kind: nodes of one element give the time to
 * begin a node; copies, which do no operations, the time of a byte; products, convolutions and pooling the time of
 * their operations, less that of their bytes. Sizes are those of a net's layers for a batch of some hundred rows;
 * weights and their gradients are more than a core's own cache holds, as a net's are. */
#include <math.h>
#include <plait/nn.h>
#include <plait/ops.h>
#include <plait/session.h>
#include <stdio.h>

#include "base/base.h"
#include "cli/calibrate.h"

enum {
    ROUNDS = 40, CHAIN = 200, LAYERS = 8, ROWS = 128, WIDTH = 512, PRODUCTS = 3 * LAYERS - 1, LONG = 1 << 19,
    IMAGES = 64, CHANNELS = 8, FILTERS = 16, SIDE = 14
};

/* Passes are off, so each node of one element runs alone. */
static plait_value small_nodes(plait_graph *g) {
    plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(1));
    for (int32_t i = 0; i < CHAIN; i++) x = plait_op_relu(g, x);
    return x;
}

/* Of one value: the sum of all values of d [n]. */
static plait_value sum_of(plait_graph *g, int32_t n, const plait_value *d) {
    plait_value all = plait_op_sum(g, d[0], 0, NULL, 0);
    for (int32_t i = 1; i < n; i++) all = plait_op_add(g, all, plait_op_sum(g, d[i], 0, NULL, 0));
    return all;
}

/* Dense layers, forward and back, as training has them: of three products two have a transposed operand, and take
 * longer. */
static plait_value products(plait_graph *g) {
    plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_2(ROWS, WIDTH)), w[LAYERS], d[LAYERS];
    for (int32_t i = 0; i < LAYERS; i++) {
        const plait_tensor square = { .type = PLAIT_F32, .shape = plait_shape_2(WIDTH, WIDTH) };
        char               name[16];
        snprintf(name, sizeof name, "w%d", i);
        w[i] = plait_graph_variable(g, name, square);
        x = plait_op_matmul(g, x, w[i]);
    }
    return plait_graph_gradients(g, x, LAYERS, w, d) < 0 ? PLAIT_NONE : sum_of(g, LAYERS, d);
}

static plait_value copies(plait_graph *g) {
    const plait_value x = plait_graph_placeholder(g, "x", PLAIT_F32, plait_shape_1(LONG)), twice[] = { x, x };
    return plait_op_concat(g, 2, twice, 0);
}

/* The middle layer of a small net for images, forward, and its two derivatives. */
static plait_value convolutions(plait_graph *g) {
    const plait_tensor filters = { .type = PLAIT_F32, .shape = { 4, { FILTERS, CHANNELS, 3, 3 } } };
    const plait_shape  images = { 4, { IMAGES, CHANNELS, SIDE, SIDE } };
    const plait_value  x = plait_graph_placeholder(g, "x", PLAIT_F32, images);
    const plait_value  w = plait_graph_variable(g, "w", filters);
    static const int64_t padding[] = { 1, 1, 1, 1 };
    plait_value          d[2];
    const plait_value  y = plait_op_conv2d(g, x, w, NULL, padding, NULL, 1), of[] = { x, w };
    if (plait_graph_gradients(g, y, 2, of, d) < 0) return PLAIT_NONE;
    return sum_of(g, 2, d);
}

static plait_value windows(plait_graph *g) {
    static const int64_t window[] = { 2, 2 };
    const plait_shape    images = { 4, { IMAGES, CHANNELS, SIDE, SIDE } };
    const plait_value    x = plait_graph_placeholder(g, "x", PLAIT_F32, images);
    plait_value          d;
    const plait_value    y = plait_op_pool2d(g, "max_pool2d", x, window, NULL, NULL);
    return plait_graph_gradients(g, y, 1, &x, &d) < 0 ? PLAIT_NONE : d;
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
    const double values = (double)IMAGES * CHANNELS * SIDE * SIDE, made = values / CHANNELS * FILTERS;
    const double taps = 3 * 2.0 * made * CHANNELS * 9; /* forward, two derivatives */
    const double steps = 1.25 * values; /* forward and back */
    double       chain_ns, copy_ns, product_ns, conv_ns, window_ns;
    PLI_TRY(measure(small_nodes, &chain_ns, err));
    PLI_TRY(measure(copies, &copy_ns, err));
    PLI_TRY(measure(products, &product_ns, err));
    PLI_TRY(measure(convolutions, &conv_ns, err));
    PLI_TRY(measure(windows, &window_ns, err));
    const double node = chain_ns / CHAIN, moved = (copy_ns - node) / (16.0 * LONG);
    const double square = 4.0 * WIDTH * WIDTH, rows = 4.0 * ROWS * WIDTH; /* bytes */
    const double sums = LAYERS * (node + moved * square);
    const double product = (product_ns - sums) / PRODUCTS - node - moved * (2 * rows + square);
    const double conv = conv_ns - moved * 4 * 3 * (values + made), window = window_ns - moved * 4 * 3 * values;
    *cost_out = (pli_graph_cost){ .flop_ns = fmax(product, 0) / (2.0 * ROWS * WIDTH * WIDTH),
                                  .tap_ns = fmax(conv, 0) / taps,
                                  .step_ns = fmax(window, 0) / steps,
                                  .moved_ns = moved,
                                  .node_ns = node };
    return PLAIT_OK;
}
