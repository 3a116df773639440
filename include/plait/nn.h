/* plait/nn.h - a short function for each op of neural networks; plait/ops.h has those of the other ops.
 *
 * Images are [n, channels, height, width]. padding [4] is rows above, columns left, rows below, columns right; NULL: 0.
 * If the gradient of an op needs statistics or states of the forward pass, the op has them as further outputs
 * (plait_graph_output).
 */
#ifndef PLAIT_NN_H
#define PLAIT_NN_H

#include <plait/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A sparse matrix times a dense one: y[row[e]] += value[e] dense[column[e]], row and column [entries] (i64), dense
 *  [columns, width], y [as many rows as like's first axis, width]. */
static inline plait_value plait_op_sparse_matmul(plait_graph *g, plait_value row, plait_value column, plait_value value,
                                                 plait_value dense, plait_value like) {
    const plait_value in[5] = { row, column, value, dense, like };
    return plait_graph_op(g, "sparse_matmul", in, 5, NULL, 0);
}
/** e^x divided by the sum of e^x along an axis. */
static inline plait_value plait_op_softmax(plait_graph *g, plait_value x, int64_t axis) {
    const plait_attr a = plait_attr_int("axis", axis);
    return plait_graph_op(g, "softmax", &x, 1, &a, 1);
}
/** The logarithm of softmax. */
static inline plait_value plait_op_log_softmax(plait_graph *g, plait_value x, int64_t axis) {
    const plait_attr a = plait_attr_int("axis", axis);
    return plait_graph_op(g, "log_softmax", &x, 1, &a, 1);
}
/** scores [.., classes], labels [..] (i64): -log of the label's softmax, [..]. */
static inline plait_value plait_op_softmax_cross_entropy(plait_graph *g, plait_value scores, plait_value labels) {
    return plait_op_2(g, "softmax_cross_entropy", scores, labels);
}
/** targets t in [0, 1]: -t log s - (1 - t) log(1 - s), where s is the sigmoid of a score. */
static inline plait_value plait_op_sigmoid_cross_entropy(plait_graph *g, plait_value scores, plait_value targets) {
    return plait_op_2(g, "sigmoid_cross_entropy", scores, targets);
}
/** (x - target)^2 / 2 */
static inline plait_value plait_op_squared_loss(plait_graph *g, plait_value x, plait_value target) {
    return plait_op_2(g, "squared_loss", x, target);
}
/** max(0, 1 - target x); targets are -1 or 1. */
static inline plait_value plait_op_hinge_loss(plait_graph *g, plait_value x, plait_value target) {
    return plait_op_2(g, "hinge_loss", x, target);
}
/** Sets each element to 0 with probability rate, drawn anew in each run, and divides the others by 1 - rate. */
static inline plait_value plait_op_dropout(plait_graph *g, plait_value x, double rate) {
    const plait_attr a = plait_attr_float("rate", rate);
    return plait_graph_op(g, "dropout", &x, 1, &a, 1);
}
/** filters [out channels, channels / groups, height, width]; stride [2], dilation [2] (NULL: 1), padding [4]. */
static inline plait_value plait_op_conv2d(plait_graph *g, plait_value images, plait_value filters,
                                          const int64_t *stride, const int64_t *padding, const int64_t *dilation,
                                          int64_t groups) {
    const plait_value in[2] = { images, filters };
    plait_attr        a[4];
    int32_t           n = 0;
    if (stride != NULL) a[n++] = plait_attr_ints("stride", 2, stride);
    if (padding != NULL) a[n++] = plait_attr_ints("padding", 4, padding);
    if (dilation != NULL) a[n++] = plait_attr_ints("dilation", 2, dilation);
    a[n++] = plait_attr_int("groups", groups);
    return plait_graph_op(g, "conv2d", in, 2, a, n);
}
/** op is "max_pool2d" or "avg_pool2d"; window [2], stride [2] (NULL: the window), padding [4]. */
static inline plait_value plait_op_pool2d(plait_graph *g, const char *op, plait_value images, const int64_t *window,
                                          const int64_t *stride, const int64_t *padding) {
    plait_attr a[3];
    int32_t    n = 0;
    a[n++] = plait_attr_ints("window", 2, window);
    if (stride != NULL) a[n++] = plait_attr_ints("stride", 2, stride);
    if (padding != NULL) a[n++] = plait_attr_ints("padding", 4, padding);
    return plait_graph_op(g, op, &images, 1, a, n);
}
/** (x - mean) / deviation, both over the axes from `axis` on. Outputs 1 and 2: mean and variance. */
static inline plait_value plait_op_layer_norm(plait_graph *g, plait_value x, int64_t axis, double epsilon) {
    const plait_attr a[2] = { plait_attr_int("axis", axis), plait_attr_float("epsilon", epsilon) };
    return plait_graph_op(g, "layer_norm", &x, 1, a, 2);
}
/** (x - mean) / deviation of each channel (axis 1), over all other axes. Outputs 1 and 2: mean and variance. */
static inline plait_value plait_op_batch_norm(plait_graph *g, plait_value x, double epsilon) {
    const plait_attr a = plait_attr_float("epsilon", epsilon);
    return plait_graph_op(g, "batch_norm", &x, 1, &a, 1);
}
/** z [steps, batch, 4 units]: x W + b of all steps; r [units, 4 units]; h0, c0 [batch, units]. Output 0: h, output 1:
 *  c, both [steps, batch, units]. The gates are in the order i, f, g, o. */
static inline plait_value plait_op_lstm(plait_graph *g, plait_value z, plait_value r, plait_value h0, plait_value c0) {
    const plait_value in[4] = { z, r, h0, c0 };
    return plait_graph_op(g, "lstm", in, 4, NULL, 0);
}

/** z [steps, batch, 3 units]: x W + b of all steps, gates in the order r, u, g; w [units, 3 units], b [units], h0
 *  [batch, units]. Output 0: h [steps, batch, units]. Gate r scales h w + b (ONNX: linear_before_reset). */
static inline plait_value plait_op_gru(plait_graph *g, plait_value z, plait_value w, plait_value b, plait_value h0) {
    const plait_value in[4] = { z, w, b, h0 };
    return plait_graph_op(g, "gru", in, 4, NULL, 0);
}

/* --- resizing images ---------------------------------------------------------------------------------- */

/** Adds `before` and `after` places at the ends of an axis, copies of existing ones. mode: "reflect", "edge",
 *  "wrap". */
static inline plait_value plait_op_extend(plait_graph *g, plait_value x, int64_t axis, int64_t before, int64_t after,
                                          const char *mode) {
    const plait_attr a[4] = { plait_attr_int("axis", axis), plait_attr_int("before", before),
                              plait_attr_int("after", after), plait_attr_text("mode", mode) };
    return plait_graph_op(g, "extend", &x, 1, a, 4);
}
/** Resizes an axis to this length, with half-pixel coordinates. mode: "nearest", "linear", "cubic". */
static inline plait_value plait_op_resize(plait_graph *g, plait_value x, int64_t axis, int64_t length,
                                          const char *mode) {
    const plait_attr a[3] = { plait_attr_int("axis", axis), plait_attr_int("length", length),
                              plait_attr_text("mode", mode) };
    return plait_graph_op(g, "resize", &x, 1, a, 3);
}

#ifdef __cplusplus
}
#endif
#endif
