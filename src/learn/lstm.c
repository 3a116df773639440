/* lstm: layers of long short-term memory, each over the sequence of states of the one before, and a dense last layer
 * (Hochreiter and Schmidhuber, "Long Short-Term Memory", Neural Computation 1997; layers: Graves, "Generating Sequences
 * With Recurrent Neural Networks", 2013; forget gates begin with a bias of 1: Jozefowicz, Zaremba and Sutskever, ICML
 * 2015). What a row is a sequence of:
 *
 *   text      its symbols; the first layer's weights have a row for each, and none, zeros, for what is not known. Each
 *             step is answered: by the symbol that follows
 *   images    their rows of pixels, from above; the last step is answered
 *   features  the features, in their order, each with weights and biases of its own, so that units are free (as the
 *             tokens of Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data", NeurIPS 2021); the last
 *             step is answered
 *
 * Inside, sequences are [steps, rows, ..], as the op lstm has them. */
#include <math.h>

#include <plait/nn.h>

#include "graph/ops/ops.h"
#include "learn/net.h"

enum { GATES = 4 /* i, f, g, o */, STEPS_MAX = 4096 };

static plait_value reshape(plait_graph *g, plait_value x, int32_t n, const int64_t *length) {
    const plait_attr shape = pli_attr_ints("shape", n, length);
    return plait_graph_op(g, "reshape", &x, 1, &shape, 1);
}

static plait_value transpose(plait_graph *g, plait_value x, int32_t n, const int64_t *perm) {
    const plait_attr order = pli_attr_ints("perm", n, perm);
    return plait_graph_op(g, "transpose", &x, 1, &order, 1);
}

static plait_value part(plait_graph *g, plait_value x, int64_t axis, int64_t from, int64_t to) {
    const plait_attr attr[] = { pli_attr_ints("axes", 1, &axis), pli_attr_ints("starts", 1, &from),
                                pli_attr_ints("ends", 1, &to) };
    return plait_graph_op(g, "slice", &x, 1, attr, 3);
}

/* A layer's biases: 0, of the forget gates 1. */
static plait_value biases(pli_net *net, plait_shape shape, int64_t units, int32_t layer) {
    const plait_value b = pli_net_variable(net, 'b', layer, shape, 0);
    if (b < 0) return b;
    net->param[net->n_params - 1].ones = units;
    net->param[net->n_params - 1].n_ones = units;
    return b;
}

/* x W + b of what has n values a step. */
static plait_value product(pli_net *net, plait_value x, int64_t n, int64_t units, int32_t layer) {
    const plait_value w = pli_net_variable(net, 'w', layer, plait_shape_2(n, GATES * units), sqrt(3.0 / (double)n));
    const plait_value b = biases(net, plait_shape_1(GATES * units), units, layer);
    const plait_value in[] = { x, w };
    return pli_op2(net->graph, &pli_op_add, plait_graph_op(net->graph, "matmul", in, 2, NULL, 0), b);
}

/* The same of a one-hot x, whose numbers are there: a row of W. */
static plait_value embed(pli_net *net, int64_t units) {
    static const int64_t swap[] = { 1, 0 };
    plait_graph         *g = net->graph;
    const plait_value    w = pli_net_variable(net, 'w', 1, plait_shape_2(net->symbols, GATES * units), 1);
    const plait_value    b = biases(net, plait_shape_1(GATES * units), units, 1);
    const plait_value    all[] = { w, pli_op1(g, &pli_op_zeros_like, part(g, w, 0, 0, 1)) };
    const plait_attr     axis = plait_attr_int("axis", 0);
    const plait_value    rows = plait_graph_op(g, "concat", all, 2, &axis, 1);
    return pli_op2(g, &pli_op_add, pli_op2(g, &pli_op_gather, rows, transpose(g, net->x, 2, swap)), b);
}

/* Each feature times weights of its own, and biases of its own. */
static plait_value tokens(pli_net *net, int64_t units) {
    static const int64_t swap[] = { 1, 0 }, last = 2, middle = 1;
    plait_graph         *g = net->graph;
    const plait_shape    shape = plait_shape_2(net->row_values, GATES * units);
    const plait_attr     at_end = pli_attr_ints("axes", 1, &last), between = pli_attr_ints("axes", 1, &middle);
    const plait_value    w = pli_net_variable(net, 'w', 1, shape, 1), b = biases(net, shape, units, 1);
    const plait_value    x = transpose(g, net->x, 2, swap);
    const plait_value    column = plait_graph_op(g, "expand_dims", &x, 1, &at_end, 1);
    const plait_value    each = pli_op2(g, &pli_op_mul, column, plait_graph_op(g, "expand_dims", &w, 1, &between, 1));
    return pli_op2(g, &pli_op_add, each, plait_graph_op(g, "expand_dims", &b, 1, &between, 1));
}

/* [rows, height width] or [rows, channels, height width] -> [height, rows, channels width]. */
static plait_value lines(pli_net *net, int64_t units) {
    static const int64_t plain_order[] = { 1, 0, 2 }, order[] = { 2, 0, 1, 3 };
    plait_graph         *g = net->graph;
    const bool           plain = net->axes == 2;
    const int64_t        channels = plain ? 1 : net->length[0], height = net->length[plain ? 0 : 1],
                  width = net->length[plain ? 1 : 2];
    const int64_t shape[] = { -1, height, width }, colored[] = { -1, channels, height, width },
                  flat[] = { height, -1, channels * width };
    const plait_value x = plain ? transpose(g, reshape(g, net->x, 3, shape), 3, plain_order)
                                : reshape(g, transpose(g, reshape(g, net->x, 4, colored), 4, order), 3, flat);
    return product(net, x, channels * width, units, 1);
}

/* z [steps, rows, 4 units] -> states [steps, rows, units], from a state of zeros. */
static plait_value recur(pli_net *net, plait_value z, int64_t units, int32_t layer) {
    static const int64_t steps = 0;
    plait_graph         *g = net->graph;
    const plait_attr     axis = pli_attr_ints("axes", 1, &steps);
    const plait_value    r =
        pli_net_variable(net, 'r', layer, plait_shape_2(units, GATES * units), sqrt(3.0 / (double)units));
    const plait_value first = part(g, part(g, z, 0, 0, 1), 2, 0, units);
    const plait_value zero = pli_op1(g, &pli_op_zeros_like, plait_graph_op(g, "squeeze", &first, 1, &axis, 1));
    return plait_op_lstm(g, z, r, zero, zero);
}

static plait_status refuse(const pli_net *net, plait_error *err) {
    const int64_t steps = net->symbols > 0 ? net->row_values
                          : net->axes == 1 ? net->linear->features
                                           : net->length[net->axes - 2];
    if (net->symbols > 0 && net->linear->classes == 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "model lstm with a loss of numbers is refused on text: its answers are symbols; take --loss "
                        "logistic");
    if (steps > STEPS_MAX)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "model lstm over %lld steps is refused: a row's features are its steps, at most %d; hash them, as "
            "--hash-bits 8, or take --model mlp",
            (long long)steps, STEPS_MAX);
    return PLAIT_OK;
}

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    static const int64_t by_row[] = { 1, 0, 2 }, steps = 0;
    const int64_t        k = net->linear->columns, flat[] = { -1, k };
    const plait_attr     axis = pli_attr_ints("axes", 1, &steps);
    plait_graph         *g = net->graph;
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "layers: an lstm has at least one, as 128");
    PLI_TRY(refuse(net, err));
    net->even = net->axes > 1;
    plait_value z = net->symbols > 0 ? embed(net, width[0])
                    : net->axes > 1  ? lines(net, width[0])
                                     : tokens(net, width[0]);
    plait_value h = recur(net, z, width[0], 1);
    for (int32_t i = 1; i < n; i++) h = recur(net, product(net, h, width[i - 1], width[i], i + 1), width[i], i + 1);
    if (net->symbols > 0) {
        net->scores = reshape(g, transpose(g, pli_net_dense(net, h, width[n - 1], k, n + 1, 1), 3, by_row), 2, flat);
    } else {
        const plait_value last = part(g, h, 0, -1, INT64_MAX);
        net->scores = pli_net_dense(net, plait_graph_op(g, "squeeze", &last, 1, &axis, 1), width[n - 1], k, n + 1, 1);
    }
    return PLAIT_OK;
}

const pli_net_kind pli_net_lstm = {
    .name = "lstm",
    .summary = "layers of long short-term memory, for text by characters and other sequences",
    .layers = "128",
    .sequence = true,
    .batch = 32,
    .build = build,
};
