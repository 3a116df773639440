/* ONNX's LSTM and GRU: each direction becomes one of Plait's layers, whose gates are in another order.
 *
 *     W [directions, gates units, inputs], R [directions, gates units, units], B [directions, 2 gates units]: biases of
 *     x, then of h
 *     LSTM: i, o, f, g -> i, f, g, o        GRU: u, r, g -> r, u, g
 *
 * A backward direction runs over the steps in reverse. GRU with linear_before_reset 0 (gate r scales h, not the
 * product) is refused: it differs from Plait's and cuDNN's function. */
#include <string.h>
#include <strings.h>

#include "graph/form/import.h"
#include <plait/nn.h>

enum { X, W, R, B, LENGTHS, H0, C0, P };

/* One direction of a layer. */
typedef struct layer {
    plait_value x; /* [steps, batch, inputs] */
    int32_t     number, gates;
    int64_t     units;
    bool        backward;
} layer;

static plait_value slice(pli_import *im, plait_value x, int64_t axis, int64_t from, int64_t to, int64_t step) {
    const plait_attr a[] = { plait_attr_ints("axes", 1, &axis), plait_attr_ints("starts", 1, &from),
                             plait_attr_ints("ends", 1, &to), plait_attr_ints("steps", 1, &step) };
    return plait_graph_op(im->g, "slice", &x, 1, a, 4);
}

static plait_value reversed(pli_import *im, plait_value x) { return slice(im, x, 0, -1, INT64_MIN, -1); }

/* The part of x [directions, ...] for this direction. */
static plait_value own(pli_import *im, plait_value x, const layer *l) {
    const int64_t first[] = { 0 };
    return x < 0 ? x : plait_op_squeeze(im->g, slice(im, x, 0, l->number, l->number + 1, 1), 1, first);
}

/* Puts the gates along axis 0 in Plait's order. */
static plait_value ordered(pli_import *im, plait_value x, const layer *l) {
    static const int32_t lstm[] = { 0, 2, 3, 1 }, gru[] = { 1, 0, 2 };
    const int32_t       *order = l->gates == 4 ? lstm : gru;
    plait_value          part[4];
    for (int32_t k = 0; k < l->gates; k++) part[k] = slice(im, x, 0, order[k] * l->units, (order[k] + 1) * l->units, 1);
    return plait_op_concat(im->g, l->gates, part, 0);
}

/* Half 0 or 1 of the biases; PLAIT_NONE: there are none. */
static plait_value bias_of(pli_import *im, const layer *l, int32_t half) {
    const plait_value b = own(im, pli_import_in(im, B), l);
    const int64_t     n = l->gates * l->units;
    return b < 0 ? b : ordered(im, slice(im, b, 0, half * n, (half + 1) * n, 1), l);
}

/* This direction's first state [batch, units] from input k, or zeros if it is not given; z [steps, batch, ..] has the
 * length of the batch. */
static plait_value state(pli_import *im, const layer *l, int32_t k, plait_value z) {
    const int64_t first[] = { 0 };
    if (pli_import_has(im, k)) return own(im, pli_import_in(im, k), l);
    return plait_op_1(im->g, "zeros_like",
                      slice(im, plait_op_squeeze(im->g, slice(im, z, 0, 0, 1, 1), 1, first), 1, 0, l->units, 1));
}

/* x W + b of all steps. `more` is the part of the other bias that can be added here, too. */
static plait_value product(pli_import *im, const layer *l, plait_value more) {
    const plait_value in[] = { l->x, ordered(im, own(im, pli_import_in(im, W), l), l) }, b = bias_of(im, l, 0);
    const plait_attr  tb = plait_attr_int("tb", 1);
    plait_value       z = plait_graph_op(im->g, "matmul", in, 2, &tb, 1);
    if (b >= 0) z = plait_op_add(im->g, z, b);
    return more >= 0 ? plait_op_add(im->g, z, more) : z;
}

static plait_value turned(pli_import *im, const layer *l) {
    return plait_op_transpose(im->g, ordered(im, own(im, pli_import_in(im, R), l), l), 0, NULL);
}

/* h [steps, batch, units]; LSTM: output 1 is c. */
static plait_value lstm(pli_import *im, const layer *l) {
    const plait_value z = product(im, l, bias_of(im, l, 1));
    return plait_op_lstm(im->g, z, turned(im, l), state(im, l, H0, z), state(im, l, C0, z));
}

/* The biases of h are added with those of x, except that of g, which gate r scales. */
static plait_value gru(pli_import *im, const layer *l) {
    plait_value   b = bias_of(im, l, 1), early = PLAIT_NONE;
    const int64_t n = l->units, none[] = { 0 }, after[] = { n };
    if (b >= 0) early = plait_op_pad(im->g, slice(im, b, 0, 0, 2 * n, 1), 1, none, after, 0);
    const plait_value z = product(im, l, early);
    const plait_value r = turned(im, l);
    if (b >= 0)
        b = slice(im, b, 0, 2 * n, 3 * n, 1);
    else
        b = plait_op_1(im->g, "zeros_like", plait_op_sum(im->g, slice(im, r, 1, 0, n, 1), 1, none, 0));
    return plait_op_gru(im->g, z, r, b, state(im, l, H0, z));
}

/* Activations may be given if they are the usual ones in every direction. */
static plait_status check_activations(pli_import *im, int32_t gates, int32_t directions) {
    static const char *const usual[] = { "Sigmoid", "Tanh", "Tanh" };
    const pli_onnx_attr     *said = pli_import_attr(im, "activations", PLI_ONNX_TEXTS);
    const int32_t            each = gates == 4 ? 3 : 2;
    for (int32_t i = 0; said != NULL && i < said->n; i++)
        if (strcasecmp(said->texts[i], usual[i % each]) != 0)
            return pli_import_fail(im, PLAIT_EREFUSED, "activation '%.20s' is refused: number %d is to be %s",
                                   said->texts[i], i, usual[i % each]);
    if (said != NULL && said->n != each * directions)
        return pli_import_fail(im, PLAIT_ESHAPE, "%d activations; %d directions have %d each", said->n, directions,
                               each);
    return PLAIT_OK;
}

static plait_status check(pli_import *im, int32_t gates) {
    if (pli_import_has(im, LENGTHS))
        return pli_import_fail(im, PLAIT_EREFUSED, "sequence_lens are refused: all sequences have all steps");
    if (gates == 4 && pli_import_has(im, P)) return pli_import_fail(im, PLAIT_EREFUSED, "peepholes are refused");
    if (pli_import_int(im, "layout", 0) != 0)
        return pli_import_fail(im, PLAIT_EREFUSED, "layout 1 is refused: x is [steps, batch, inputs]");
    if (pli_import_int(im, "input_forget", 0) != 0 || pli_import_attr(im, "clip", PLI_ONNX_FLOAT) != NULL)
        return pli_import_fail(im, PLAIT_EREFUSED, "input_forget and clip are refused");
    if (gates == 3 && pli_import_int(im, "linear_before_reset", 0) == 0)
        return pli_import_fail(
            im, PLAIT_EREFUSED,
            "linear_before_reset 0 is refused: the gate works on the product, as in cuDNN and PyTorch");
    return PLAIT_OK;
}

static plait_value last_of(pli_import *im, plait_value h) { return slice(im, h, 0, -1, INT64_MAX, 1); }

/* how: "lstm", "gru". Outputs: all h [steps, directions, batch, units], the last h, the last c [directions, batch,
 * units]. */
static plait_status recurrent(pli_import *im) {
    plait_graph      *g = im->g;
    const bool        is_lstm = im->op->how[0] == 'l';
    const char       *way = pli_import_text(im, "direction", "forward");
    const int32_t     n = strcmp(way, "bidirectional") == 0 ? 2 : 1;
    const plait_value x = pli_import_in(im, X), r = pli_import_in(im, R);
    const plait_shape weights = pli_import_shape(im, r);
    const int64_t     second[] = { 1 };
    plait_value       all[2], h[2], c[2];
    PLI_TRY(plait_graph_check(g, im->err));
    PLI_TRY(check(im, is_lstm ? 4 : 3));
    PLI_TRY(check_activations(im, is_lstm ? 4 : 3, n));
    if (n == 1 && strcmp(way, "forward") != 0 && strcmp(way, "reverse") != 0)
        return pli_import_fail(im, PLAIT_ENAME, "direction '%.20s' is not known", way);
    if (weights.rank != 3 || weights.dim[0] != n || weights.dim[2] < 1)
        return pli_import_fail(im, PLAIT_ESHAPE, "R is to be [%d, %d units, units]", n, is_lstm ? 4 : 3);
    if (pli_import_int(im, "hidden_size", weights.dim[2]) != weights.dim[2])
        return pli_import_fail(im, PLAIT_ESHAPE, "hidden_size %lld, but R has %lld units",
                               (long long)pli_import_int(im, "hidden_size", 0), (long long)weights.dim[2]);
    for (int32_t d = 0; d < n; d++) {
        layer l = {
            .number = d, .gates = is_lstm ? 4 : 3, .units = weights.dim[2], .backward = d == 1 || way[0] == 'r'
        };
        l.x = l.backward ? reversed(im, x) : x;
        const plait_value y = is_lstm ? lstm(im, &l) : gru(im, &l);
        all[d] = plait_op_expand_dims(g, l.backward ? reversed(im, y) : y, 1, second);
        h[d] = last_of(im, y);
        c[d] = is_lstm && pli_import_wants(im, 2) ? last_of(im, plait_graph_output(g, y, 1)) : PLAIT_NONE;
    }
    pli_import_out(im, 0, n == 2 ? plait_op_concat(g, 2, all, 1) : all[0]);
    if (pli_import_wants(im, 1)) pli_import_out(im, 1, n == 2 ? plait_op_concat(g, 2, h, 0) : h[0]);
    if (pli_import_wants(im, 2) && is_lstm) pli_import_out(im, 2, n == 2 ? plait_op_concat(g, 2, c, 0) : c[0]);
    return PLAIT_OK;
}

#define RECURRENT "activations texts, direction text, hidden_size int, input_forget int, layout int, clip float"

const pli_import_op pli_import_recurrent[] = {
    { "LSTM", recurrent, "lstm", RECURRENT },
    { "GRU", recurrent, "gru", RECURRENT ", linear_before_reset int" },
    { NULL, NULL, NULL, NULL },
};
