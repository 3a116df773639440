/* An mlp whose layers lie in columns over ranks (--columns N): the graph that is trained.
 *
 *     rank k:   h_k = relu(x W1[:, k] + b1[k])      z_k = h_k W2[k, :]
 *     rank 0:   z = z_0 + ... + z_N-1 + b2
 *
 * The first layer of a pair is cut by columns and the second by rows, so nothing but x and z travels (Shoeybi et al.,
 * "Megatron-LM", 2019, section 3; layers over machines: Dean et al., "Large Scale Distributed Deep Networks", NIPS
 * 2012). A last layer without a partner stays whole on rank 0. Sums over columns round otherwise than those of the
 * whole net. A piece is a parameter of this graph, and says which values of the whole net's parameter it has.
 *
 * A softmax of more classes than the layer before it has units is cut by classes instead (classes.c): its scores would
 * be more than its inputs. Every rank then has the whole input of that layer:
 *
 *     rank k:   h_k = relu(x W1[:, k] + b1[k])      h = h_0 .. h_N-1 side by side
 *               scores_k = h W2[:, classes of k] + b2[classes of k] */
#include <stdio.h>
#include <string.h>

#include <plait/nn.h>

#include "graph/graph.h"
#include "learn/net/net.h"

/* Each rank has a unit at least. */
int64_t pli_columns_edge(const pli_net *net, int64_t n, int32_t k) {
    int64_t at = 0, shares = 0;
    if (net->share[0] == 0) return n * k / net->columns;
    for (int32_t i = 0; i < k; i++) {
        const int64_t most = n - (net->columns - i - 1);
        shares += net->share[i];
        const int64_t even = n * shares / PLI_COLUMN_SHARES;
        at = even <= at ? at + 1 : even > most ? most : even;
    }
    return at;
}

void pli_columns_place(pli_net *net, int64_t first, int32_t part) {
    const int64_t nodes = plait_graph_nodes(net->graph);
    if (net->columns == 1) return;
    if (!pli_grow((void **)&net->place, &net->place_capacity, nodes, sizeof *net->place)) {
        pli_graph_failed(net->graph, PLAIT_ENOMEM, "no memory for the columns of a net");
        return;
    }
    for (; net->n_place < nodes; net->n_place++) net->place[net->n_place] = net->n_place < first ? -1 : part;
}

/* Adds a piece of a layer's weights or biases, whose first value is at row0, col0 of the whole. */
static plait_value piece(pli_net *net, char letter, int32_t layer, int32_t part, plait_shape shape, int64_t row0,
                         int64_t col0) {
    const int64_t n = plait_shape_elements(&shape), rows = shape.rank > 1 ? shape.dim[0] : 1;
    char          name[80];
    if (n < 1 || net->n_params == PLI_NET_PARAMS)
        return pli_graph_failed(net->graph, PLAIT_EREFUSED,
                                "an mlp in %d columns has more than %d pieces; take fewer columns or layers",
                                net->columns, (int)PLI_NET_PARAMS);
    pli_net_param p = { .rows = rows, .cols = n / rows, .penalised = letter != 'b',
                        .of = 2 * (layer - 1) + (letter == 'b'), .row0 = row0, .col0 = col0 };
    snprintf(p.name, sizeof p.name, "%c%d", letter, (int)layer); /* its table's: no rank has two pieces of a layer */
    snprintf(name, sizeof name, "%c%d.%d", letter, (int)layer, (int)part);
    return pli_net_piece(net, &p, name, shape);
}

static plait_value product(pli_net *net, plait_value x, plait_value w) {
    if (x != net->x || !net->sparse) return plait_op_matmul(net->graph, x, w);
    const plait_value rows = plait_op_get_rows(net->graph, w, net->keys);
    return plait_op_sparse_matmul(net->graph, net->row, net->column, net->value, rows, net->x);
}

/* Two layers, from n values over `width` to `out`; the first is number `layer`. */
static plait_value pair(pli_net *net, plait_value x, int64_t n, int64_t width, int64_t out, int32_t layer) {
    plait_graph *g = net->graph;
    plait_value  z[PLI_NET_PARAMS];
    for (int32_t k = 0; k < net->columns; k++) {
        const int64_t     from = pli_columns_edge(net, width, k), cols = pli_columns_edge(net, width, k + 1) - from;
        const int64_t     first = plait_graph_nodes(g);
        const plait_value w = piece(net, 'w', layer, k, plait_shape_2(n, cols), 0, from);
        const plait_value b = piece(net, 'b', layer, k, plait_shape_1(cols), 0, from);
        const plait_value v = piece(net, 'w', layer + 1, k, plait_shape_2(cols, out), from, 0);
        const plait_value h = plait_op_relu(g, plait_op_add(g, product(net, x, w), b));
        z[k] = plait_op_matmul(g, h, v);
        pli_columns_place(net, first, k);
    }
    const int64_t first = plait_graph_nodes(g);
    /* One op of its own: as part of rank 0's product, the sum would keep that waiting for the others' terms. */
    plait_value sum = plait_graph_op(g, "add_n", z, net->columns, NULL, 0);
    sum = plait_op_add(g, sum, piece(net, 'b', layer + 1, 0, plait_shape_1(out), 0, 0));
    pli_columns_place(net, first, 0);
    return sum;
}

/* A last layer without a partner. */
static plait_value whole(pli_net *net, plait_value x, int64_t n, int64_t out, int32_t layer) {
    const int64_t     first = plait_graph_nodes(net->graph);
    const plait_value w = piece(net, 'w', layer, 0, plait_shape_2(n, out), 0, 0);
    const plait_value b = piece(net, 'b', layer, 0, plait_shape_1(out), 0, 0);
    const plait_value y = plait_op_add(net->graph, product(net, x, w), b);
    pli_columns_place(net, first, 0);
    return y;
}

/* A hidden layer without a partner, before a softmax by classes: h [columns] are its columns. */
static void lone(pli_net *net, plait_value x, int64_t n, int64_t width, int32_t layer, plait_value *h) {
    for (int32_t k = 0; k < net->columns; k++) {
        const int64_t     from = pli_columns_edge(net, width, k), cols = pli_columns_edge(net, width, k + 1) - from;
        const int64_t     first = plait_graph_nodes(net->graph);
        const plait_value w = piece(net, 'w', layer, k, plait_shape_2(n, cols), 0, from);
        const plait_value b = piece(net, 'b', layer, k, plait_shape_1(cols), 0, from);
        h[k] = plait_op_relu(net->graph, plait_op_add(net->graph, product(net, x, w), b));
        pli_columns_place(net, first, k);
    }
}

/* A softmax by classes, of n inputs: x [parts], which every rank puts side by side. */
static void by_classes(pli_net *net, const plait_value *x, int32_t parts, int64_t n, int32_t layer) {
    plait_graph *g = net->graph;
    plait_value  scores[PLI_NET_PARAMS];
    if (net->sampled > 0) {
        pli_classes_sample(net, x, parts, n, layer);
        return;
    }
    for (int32_t k = 0; k < net->columns; k++) {
        const int64_t     from = pli_columns_edge(net, net->goal->columns, k);
        const int64_t     cols = pli_columns_edge(net, net->goal->columns, k + 1) - from, first = plait_graph_nodes(g);
        const plait_value h = parts > 1 ? plait_op_concat(g, parts, x, 1) : x[0];
        const plait_value w = piece(net, 'w', layer, k, plait_shape_2(n, cols), 0, from);
        const plait_value b = piece(net, 'b', layer, k, plait_shape_1(cols), 0, from);
        scores[k] = plait_op_add(g, product(net, h, w), b);
        pli_columns_place(net, first, k);
    }
    pli_classes_lose(net, scores);
}

/* A net whose softmax is cut by classes. */
static void build_by_classes(pli_net *net, const int64_t *width, int32_t n) {
    plait_value h[PLI_NET_PARAMS] = { net->x };
    int32_t     parts = 1, i = 0;
    int64_t     in = net->features;
    for (; i + 1 < n; i += 2) {
        h[0] = pair(net, h[0], in, width[i], width[i + 1], i + 1);
        const int64_t first = plait_graph_nodes(net->graph);
        h[0] = plait_op_relu(net->graph, h[0]);
        pli_columns_place(net, first, 0);
        in = width[i + 1];
    }
    if (i < n) {
        lone(net, h[0], in, width[i], i + 1, h);
        parts = net->columns;
        in = width[i];
    }
    by_classes(net, h, parts, in, n + 1);
}

plait_status pli_columns_build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    const int64_t k = net->goal->columns;
    const bool    classes = net->columns <= PLI_NET_PARAMS &&
                         (net->sampled > 0 || pli_classes_suit(net, n > 0 ? width[n - 1] : 0));
    plait_value   h = net->x;
    int64_t       in = net->features;
    if (n == 0 && !classes)
        return pli_fail(err, PLAIT_EREFUSED,
                        "columns %d of a net without hidden layers is refused: its only layer has a column for each "
                        "score; take --layers",
                        net->columns);
    for (int32_t i = 0; i < n; i++)
        if (width[i] < net->columns)
            return pli_fail(err, PLAIT_EREFUSED,
                            "a layer of %lld units in %d columns is refused: each rank needs one; take fewer "
                            "--columns, or larger --layers",
                            (long long)width[i], net->columns);
    pli_columns_place(net, plait_graph_nodes(net->graph), 0); /* what is there already has no place */
    if (classes) {
        build_by_classes(net, width, n);
        return PLAIT_OK;
    }
    for (int32_t i = 0; i <= n; i += 2) {
        const int64_t out = i + 1 < n ? width[i + 1] : k, first = plait_graph_nodes(net->graph);
        if (i > 0) h = plait_op_relu(net->graph, h);
        pli_columns_place(net, first, 0);
        h = i == n ? whole(net, h, in, k, i + 1) : pair(net, h, in, width[i], out, i + 1);
        in = out;
    }
    net->scores = h;
    return PLAIT_OK;
}

pli_net_span pli_columns_span(const pli_net_param *part) {
    return part->by_class ? (pli_net_span){ .row0 = part->col0, .col0 = part->row0, .rows = part->cols,
                                            .cols = part->rows, .row_step = 1, .col_step = part->cols }
                          : (pli_net_span){ .row0 = part->row0, .col0 = part->col0, .rows = part->rows,
                                            .cols = part->cols, .row_step = part->cols, .col_step = 1 };
}

void pli_columns_take(const pli_net_param *whole_param, const pli_net_param *part, const float *from, float *to) {
    const pli_net_span at = pli_columns_span(part);
    for (int64_t r = 0; r < at.rows; r++) {
        const float *row = from + (at.row0 + r) * whole_param->cols + at.col0;
        for (int64_t c = 0; c < at.cols; c++) to[r * at.row_step + c * at.col_step] = row[c];
    }
}

void pli_columns_put(const pli_net_param *whole_param, const pli_net_param *part, const float *from, float *to) {
    const pli_net_span at = pli_columns_span(part);
    for (int64_t r = 0; r < at.rows; r++) {
        float *row = to + (at.row0 + r) * whole_param->cols + at.col0;
        for (int64_t c = 0; c < at.cols; c++) row[c] = from[r * at.row_step + c * at.col_step];
    }
}
