/* lstm: layers of long short-term memory, each over the states of the layer before, and a dense last layer (Hochreiter
 * and Schmidhuber, "Long Short-Term Memory", Neural Computation 1997; layers: Graves, "Generating Sequences With
 * Recurrent Neural Networks", 2013; forget gates begin with a bias of 1: Jozefowicz, Zaremba and Sutskever, ICML 2015).
 * The steps of a row are:
 *
 *   text      its symbols. The first layer's weights have a row for each symbol; an unknown symbol counts as zeros.
 *   Each
 *             step answers: it predicts the next symbol
 *   images    the lines of pixels, from the top; the last step answers
 *   features  the features, in their order. Each has weights and biases of its own, so features may have any units (as
 *             the tokens of Gorishniy et al., "Revisiting Deep Learning Models for Tabular Data", NeurIPS 2021); the
 *             last step answers
 *
 * Inside, sequences are [steps, rows, ..], as in the op lstm. */
#include <math.h>

#include <plait/nn.h>

#include "learn/net/net.h"

enum { GATES = 4 /* i, f, g, o */, STEPS_MAX = 4096 };

/* Adds a layer's biases; they begin at 1 for the forget gates, else at 0. */
static plait_value biases(pli_net *net, plait_shape shape, int64_t units, int32_t layer) {
    const plait_value b = pli_net_variable(net, 'b', layer, shape, 0);
    if (b < 0) return b;
    net->param[net->n_params - 1].ones = units;
    net->param[net->n_params - 1].n_ones = units;
    return b;
}

/* x W + b, where x has n values in each step. */
static plait_value product(pli_net *net, plait_value x, int64_t n, int64_t units, int32_t layer) {
    const plait_shape shape = plait_shape_2(n, GATES * units);
    const plait_value w = pli_net_variable(net, 'w', layer, shape, sqrt(3.0 / (double)n));
    const plait_value b = biases(net, plait_shape_1(GATES * units), units, layer);
    return plait_op_add(net->graph, plait_op_matmul(net->graph, x, w), b);
}

/* x W + b of a one-hot x, whose numbers are given: a row of W, or the row of zeros after the last. */
static plait_value embed(pli_net *net, int64_t units) {
    static const int64_t swap[] = { 1, 0 }, first[] = { 0 }, second[] = { 1 };
    plait_graph         *g = net->graph;
    const plait_value    w = pli_net_variable(net, 'w', 1, plait_shape_2(net->symbols, GATES * units), 1);
    const plait_value    b = biases(net, plait_shape_1(GATES * units), units, 1);
    const plait_value    rows[] = { w, plait_op_1(g, "zeros_like", plait_op_slice(g, w, 1, first, second, NULL)) };
    const plait_value    numbers = plait_op_transpose(g, net->x, 2, swap);
    return plait_op_add(g, plait_op_gather(g, plait_op_concat(g, 2, rows, 0), numbers), b);
}

/* Each feature times its own weights, plus its own biases. */
static plait_value tokens(pli_net *net, int64_t units) {
    static const int64_t swap[] = { 1, 0 }, last[] = { 2 }, middle[] = { 1 };
    plait_graph         *g = net->graph;
    const plait_shape    shape = plait_shape_2(net->row_values, GATES * units);
    const plait_value    w = pli_net_variable(net, 'w', 1, shape, 1), b = biases(net, shape, units, 1);
    const plait_value    x = plait_op_expand_dims(g, plait_op_transpose(g, net->x, 2, swap), 1, last);
    const plait_value    each = plait_op_mul(g, x, plait_op_expand_dims(g, w, 1, middle));
    return plait_op_add(g, each, plait_op_expand_dims(g, b, 1, middle));
}

/* [rows, height width] or [rows, channels, height width] -> [height, rows, channels width]. */
static plait_value lines(pli_net *net, int64_t units) {
    static const int64_t order[] = { 2, 0, 1, 3 };
    plait_graph         *g = net->graph;
    const bool           plain = net->axes == 2;
    const int64_t        channels = plain ? 1 : net->length[0];
    const int64_t        height = net->length[plain ? 0 : 1], width = net->length[plain ? 1 : 2];
    const plait_shape    flat = { 3, { height, -1, channels * width } };
    const plait_value    x = plait_op_reshape(g, net->x, plait_shape_4(-1, channels, height, width));
    const plait_value    by_line = plait_op_reshape(g, plait_op_transpose(g, x, 4, order), flat);
    return product(net, by_line, channels * width, units, 1);
}

/* z [steps, rows, 4 units] -> states [steps, rows, units], from a state of zeros. */
static plait_value recur(pli_net *net, plait_value z, int64_t units, int32_t layer) {
    static const int64_t zeros[] = { 0, 0, 0 }, steps[] = { 0 };
    const int64_t        ends[] = { 1, INT64_MAX, units };
    plait_graph         *g = net->graph;
    const plait_shape    shape = plait_shape_2(units, GATES * units);
    const plait_value    r = pli_net_variable(net, 'r', layer, shape, sqrt(3.0 / (double)units));
    const plait_value    like = plait_op_squeeze(g, plait_op_slice(g, z, 3, zeros, ends, NULL), 1, steps);
    const plait_value    zero = plait_op_1(g, "zeros_like", like);
    return plait_op_lstm(g, z, r, zero, zero);
}

static plait_status refuse(const pli_net *net, plait_error *err) {
    const int64_t steps = net->symbols > 0 ? net->row_values
                          : net->axes == 1 ? net->features
                                           : net->length[net->axes - 2];
    if (net->symbols > 0 && net->goal->classes == 0)
        return pli_fail(err, PLAIT_EREFUSED,
                        "model lstm with a loss for numbers is refused on text: it predicts symbols; take --loss "
                        "logistic");
    if (steps > STEPS_MAX)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "model lstm over %lld steps is refused: each feature of a row is a step, and there may be at most %d; hash "
            "them, as with --hash-bits 8, or take --model mlp",
            (long long)steps, STEPS_MAX);
    return PLAIT_OK;
}

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    static const int64_t by_row[] = { 1, 0, 2 }, steps[] = { 0 }, last[] = { -1 }, end[] = { INT64_MAX };
    const int64_t        k = net->goal->columns;
    plait_graph         *g = net->graph;
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "layers: an lstm needs at least one, such as 128");
    PLI_TRY(refuse(net, err));
    net->even = net->axes > 1;
    plait_value z = net->symbols > 0 ? embed(net, width[0])
                    : net->axes > 1  ? lines(net, width[0])
                                     : tokens(net, width[0]);
    plait_value h = recur(net, z, width[0], 1);
    for (int32_t i = 1; i < n; i++)
        h = recur(net, product(net, h, width[i - 1], width[i], i + 1), width[i], i + 1);
    if (net->symbols == 0) h = plait_op_squeeze(g, plait_op_slice(g, h, 1, last, end, NULL), 1, steps);
    if (net->symbols > 0 && net->sampled > 0)
        h = plait_op_reshape(g, plait_op_transpose(g, h, 3, by_row), plait_shape_2(-1, width[n - 1]));
    pli_net_last(net, h, width[n - 1], n + 1);
    if (net->symbols > 0 && net->sampled == 0)
        net->scores = plait_op_reshape(g, plait_op_transpose(g, net->scores, 3, by_row), plait_shape_2(-1, k));
    return PLAIT_OK;
}

const pli_net_kind pli_net_lstm = {
    .name = "lstm",
    .summary = "layers of long short-term memory, for text by characters and other sequences",
    .layers = "128",
    .sequence = true,
    .batch = 16,
    .rate = 0.004,
    .build = build,
};
