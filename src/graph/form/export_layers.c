/* Writes Plait's network ops as ONNX: norms, products, windows, losses, random numbers, recurrent layers. */
#include "graph/form/export_node.h"

#include <string.h>

/* --- norms ------------------------------------------------------------------------------------------------------ */

/* (x - mean) / deviation over axes [n]. */
static const char *normed(pli_export *to, const plait_tensor *t, const char *x, int32_t n, const int64_t *axes,
                          double epsilon) {
    const char *centred = pli_export_2(to, "Sub", x, pli_export_reduced(to, "ReduceMean", x, n, axes, true));
    const char *variance =
        pli_export_reduced(to, "ReduceMean", pli_export_2(to, "Mul", centred, centred), n, axes, true);
    const char *deviation =
        pli_export_1(to, "Sqrt", pli_export_2(to, "Add", variance, pli_export_like(to, t, epsilon)));
    return pli_export_2(to, "Div", centred, deviation);
}

static void layer_norm(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    int64_t            axes[PLAIT_RANK_MAX], axis = pli_export_int_of(to, node, "axis");
    int32_t            n = 0;
    (void)op;
    for (int64_t i = axis < 0 ? axis + t.shape.rank : axis; i < t.shape.rank; i++) axes[n++] = i;
    pli_export_set(to, node,
                   normed(to, &t, pli_export_in(to, node, 0), n, axes, pli_export_float_of(to, node, "epsilon")));
}

static void softmax(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr axis = pli_export_int("axis", pli_export_int_of(to, node, "axis"));
    pli_export_set(to, node, pli_export_with(to, op->how, pli_export_in(to, node, 0), &axis, 1));
}

/* --- products, windows ------------------------------------------------------------------------------------------ */

static const char *turned(pli_export *to, const char *x, int32_t rank) {
    int64_t perm[PLAIT_RANK_MAX];
    for (int32_t i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    const pli_onnx_attr a = pli_export_list("perm", rank, perm);
    return pli_export_with(to, "Transpose", x, &a, 1);
}

static void matmul(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const char *a = pli_export_in(to, node, 0), *b = pli_export_in(to, node, 1);
    (void)op;
    if (pli_export_int_of(to, node, "ta") != 0) a = turned(to, a, pli_export_type_in(to, node, 0).shape.rank);
    if (pli_export_int_of(to, node, "tb") != 0) b = turned(to, b, pli_export_type_in(to, node, 1).shape.rank);
    pli_export_set(to, node, pli_export_2(to, "MatMul", a, b));
}

/* Attributes that a node leaves out are empty lists, for which ONNX's defaults hold: 1, 0, or the window. */
static int32_t windows(pli_export *to, const pli_node *node, const char *const (*names)[2], int32_t n,
                       pli_onnx_attr *attrs) {
    int32_t given = 0;
    for (int32_t i = 0; i < n; i++) {
        attrs[given] = pli_export_list_of(to, node, names[i][0], names[i][1]);
        if (attrs[given].n > 0) given++;
    }
    return given;
}

static void conv2d(pli_export *to, const pli_export_op *op, const pli_node *node) {
    static const char *const names[][2] = { { "stride", "strides" },
                                            { "padding", "pads" },
                                            { "dilation", "dilations" } };
    pli_onnx_attr            attrs[4];
    int32_t                  n = windows(to, node, names, 3, attrs);
    (void)op;
    attrs[n++] = pli_export_int("group", pli_export_int_of(to, node, "groups"));
    const char *const inputs[] = { pli_export_in(to, node, 0), pli_export_in(to, node, 1), NULL };
    pli_export_set(to, node, pli_export_node(to, "Conv", inputs, attrs, n));
}

static void pool(pli_export *to, const pli_export_op *op, const pli_node *node) {
    static const char *const names[][2] = { { "window", "kernel_shape" },
                                            { "stride", "strides" },
                                            { "padding", "pads" } };
    pli_onnx_attr            attrs[4];
    int32_t                  n = windows(to, node, names, 3, attrs);
    if (pli_export_attr(to, node, "stride")->n == 0) attrs[n++] = pli_export_list_of(to, node, "window", "strides");
    pli_export_set(to, node, pli_export_with(to, op->how, pli_export_in(to, node, 0), attrs, n));
}

/* --- losses, random numbers ---------------------------------------------------------------------------------- */

/* Minus the logarithm of the softmax at the label. */
static void softmax_cross_entropy(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const pli_onnx_attr axis = pli_export_int("axis", -1);
    const int64_t       last = -1;
    const char         *at = pli_export_ints(to, 1, &last);
    const char *const   inputs[] = { pli_export_with(to, "LogSoftmax", pli_export_in(to, node, 0), &axis, 1),
                                     pli_export_2(to, "Unsqueeze", pli_export_in(to, node, 1), at), NULL };
    (void)op;
    const char *each = pli_export_2(to, "Squeeze", pli_export_node(to, "GatherElements", inputs, &axis, 1), at);
    pli_export_set(to, node, pli_export_1(to, "Neg", each));
}

/* log(1 + e^x) - t x */
static void sigmoid_cross_entropy(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const char *x = pli_export_in(to, node, 0);
    (void)op;
    pli_export_set(to, node,
                   pli_export_2(to, "Sub", pli_export_1(to, "Softplus", x),
                                pli_export_2(to, "Mul", pli_export_in(to, node, 1), x)));
}

static void squared_loss(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const char        *r = pli_export_2(to, "Sub", pli_export_in(to, node, 0), pli_export_in(to, node, 1));
    (void)op;
    pli_export_set(to, node, pli_export_2(to, "Mul", pli_export_2(to, "Mul", r, r), pli_export_like(to, &t, 0.5)));
}

static void hinge_loss(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const plait_tensor t = pli_export_type_in(to, node, 0);
    const char        *margin = pli_export_2(to, "Mul", pli_export_in(to, node, 1), pli_export_in(to, node, 0));
    (void)op;
    pli_export_set(to, node, pli_export_1(to, "Relu", pli_export_2(to, "Sub", pli_export_like(to, &t, 1), margin)));
}

/* how: ONNX's op, without the ending "Like". */
static void random_numbers(pli_export *to, const pli_export_op *op, const pli_node *node) {
    const bool          uniform = strcmp(op->how, "RandomUniform") == 0, like = node->n_inputs > 0;
    const pli_onnx_attr attrs[] = {
        pli_export_int("dtype", pli_onnx_type((plait_type)pli_export_int_of(to, node, "type"))),
        pli_export_float(uniform ? "low" : "mean", pli_export_float_of(to, node, uniform ? "low" : "mean")),
        pli_export_float(uniform ? "high" : "scale", pli_export_float_of(to, node, uniform ? "high" : "deviation")),
        pli_export_list_of(to, node, "shape", "shape")
    };
    const char *const inputs[] = { like ? pli_export_in(to, node, 0) : NULL, NULL };
    const char       *name = uniform ? (like ? "RandomUniformLike" : "RandomUniform")
                             : like  ? "RandomNormalLike"
                                     : "RandomNormal";
    pli_export_set(to, node, pli_export_node(to, name, inputs, attrs, like ? 3 : 4));
}

/* --- recurrent layers ------------------------------------------------------------------------------------------- */

static const char *unsqueezed(pli_export *to, const char *x, int64_t axis) {
    return pli_export_2(to, "Unsqueeze", x, pli_export_ints(to, 1, &axis));
}

/* The weights W [1, gates units, gates units] of ONNX's layer. Plait has computed the products with the inputs already,
 * so W only puts the gates in order. */
static const char *ordering(pli_export *to, const int32_t *order, int64_t gates, int64_t units) {
    const int64_t n = gates * units;
    plait_tensor  t = { .type = PLAIT_F32, .shape = { .rank = 3, .dim = { 1, n, n } } };
    float        *one = t.data = pli_calloc((size_t)(n * n), sizeof *one);
    if (one == NULL) return pli_export_fail(to, PLAIT_ENOMEM, "no memory for an ONNX model");
    for (int64_t i = 0; i < n; i++) one[i * n + order[i / units] * units + i % units] = 1;
    const char *name = pli_export_array(to, "gates", &t, false);
    pli_free(one);
    return name;
}

/* Turns r [units, gates units] into [1, gates units, units] with the gates in ONNX's order. */
static const char *recurrence(pli_export *to, const char *r, const int32_t *order, int64_t gates, int64_t units) {
    const char         *part[5] = { NULL };
    const pli_onnx_attr axis = pli_export_int("axis", 0);
    const int64_t       rows = 0;
    const char         *t = turned(to, r, 2);
    for (int64_t k = 0; k < gates; k++) {
        const int64_t     from = order[k] * units, end = from + units;
        const char *const inputs[] = { t, pli_export_ints(to, 1, &from), pli_export_ints(to, 1, &end),
                                       pli_export_ints(to, 1, &rows), NULL };
        part[k] = pli_export_node(to, "Slice", inputs, NULL, 0);
    }
    return unsqueezed(to, pli_export_node(to, "Concat", part, &axis, 1), 0);
}

static const char *without_direction(pli_export *to, const char *y) {
    const int64_t one = 1;
    return pli_export_2(to, "Squeeze", y, pli_export_ints(to, 1, &one));
}

/* Gates i, f, g, o become i, o, f, g. Only output h is written. */
static void lstm(pli_export *to, const pli_export_op *op, const pli_node *node) {
    static const int32_t order[] = { 0, 3, 1, 2 };
    const int64_t        units = pli_export_type_in(to, node, 1).shape.dim[0];
    const pli_onnx_attr  size = pli_export_int("hidden_size", units);
    (void)op;
    if (pli_export_type_in(to, node, 0).type != PLAIT_F32)
        pli_export_fail(to, PLAIT_EREFUSED, "lstm of other than f32");
    const char *const inputs[] = { pli_export_in(to, node, 0),
                                   ordering(to, order, 4, units),
                                   recurrence(to, pli_export_in(to, node, 1), order, 4, units),
                                   "",
                                   "",
                                   unsqueezed(to, pli_export_in(to, node, 2), 0),
                                   unsqueezed(to, pli_export_in(to, node, 3), 0),
                                   NULL };
    pli_export_set(to, node, without_direction(to, pli_export_node(to, "LSTM", inputs, &size, 1)));
}

/* Gates r, u, g become u, r, g. The bias of g goes with h, where gate r scales it. */
static void gru(pli_export *to, const pli_export_op *op, const pli_node *node) {
    static const int32_t order[] = { 1, 0, 2 };
    const int64_t        units = pli_export_type_in(to, node, 1).shape.dim[0], pads[] = { 5 * units, 0 };
    const pli_onnx_attr  attrs[] = { pli_export_int("hidden_size", units), pli_export_int("linear_before_reset", 1) };
    (void)op;
    if (pli_export_type_in(to, node, 0).type != PLAIT_F32) pli_export_fail(to, PLAIT_EREFUSED, "gru of other than f32");
    const char       *bias = pli_export_2(to, "Pad", pli_export_in(to, node, 2), pli_export_ints(to, 2, pads));
    const char *const inputs[] = { pli_export_in(to, node, 0),
                                   ordering(to, order, 3, units),
                                   recurrence(to, pli_export_in(to, node, 1), order, 3, units),
                                   unsqueezed(to, bias, 0),
                                   "",
                                   unsqueezed(to, pli_export_in(to, node, 3), 0),
                                   NULL };
    pli_export_set(to, node, without_direction(to, pli_export_node(to, "GRU", inputs, attrs, 2)));
}

const pli_export_op pli_export_layers[] = {
    { "layer_norm", layer_norm, NULL },
    { "softmax", softmax, "Softmax" },
    { "log_softmax", softmax, "LogSoftmax" },
    { "matmul", matmul, NULL },
    { "conv2d", conv2d, NULL },
    { "max_pool2d", pool, "MaxPool" },
    { "avg_pool2d", pool, "AveragePool" },
    { "softmax_cross_entropy", softmax_cross_entropy, NULL },
    { "sigmoid_cross_entropy", sigmoid_cross_entropy, NULL },
    { "squared_loss", squared_loss, NULL },
    { "hinge_loss", hinge_loss, NULL },
    { "random_uniform", random_numbers, "RandomUniform" },
    { "random_normal", random_numbers, "RandomNormal" },
    { "lstm", lstm, NULL },
    { "gru", gru, NULL },
    { NULL, NULL, NULL },
};
