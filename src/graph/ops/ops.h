/* graph/ops/ops.h - Plait's own ops, one file each, and short functions for gradient rules. */
#ifndef PLI_GRAPH_OPS_OPS_H
#define PLI_GRAPH_OPS_OPS_H

#include "graph/flops.h"
#include "graph/graph.h"

/* The list of ops, from which ops.c makes the registry. */
#define PLI_OPS(X)                                                                                                    \
    X(placeholder) X(constant) X(variable) X(get_rows) X(inc) X(inc_rows)                                             \
    X(add) X(sub) X(mul) X(neg) X(add_n)                                                                              \
    X(ones_like) X(zeros_like) X(sum_like) X(broadcast_like)                                                          \
    X(gather) X(scatter_rows)                                                                                         \
    X(div) X(pow) X(exp) X(log) X(sqrt) X(square) X(abs) X(sign) X(reciprocal) X(maximum) X(minimum) X(erf) X(clip)   \
    X(equal) X(not_equal) X(less) X(less_equal) X(greater) X(greater_equal) X(logical_and) X(logical_or)              \
    X(logical_not)                                                                                                    \
    X(where) X(cast)                                                                                                  \
    X(sigmoid) X(tanh) X(relu) X(leaky_relu) X(relu_gradient) X(elu) X(softplus) X(gelu)                              \
    X(sum) X(mean) X(max) X(min) X(count) X(argmax) X(top_k) X(gather_last) X(scatter_last)                           \
    X(reshape) X(reshape_like) X(squeeze) X(expand_dims) X(identity) X(stop_gradient)                                 \
    X(transpose) X(concat) X(concat_part) X(split) X(slice) X(unslice) X(pad) X(one_hot) X(scatter_add)               \
    X(random_uniform) X(random_normal) X(print) X(assert)                                                             \
    X(matmul) X(sparse_matmul)                                                                                        \
    X(row_dot) X(row_scale) X(softmax) X(softmax_gradient) X(log_softmax) X(softmax_cross_entropy)                    \
    X(softmax_cross_entropy_gradient)                                                                                 \
    X(conv2d) X(conv2d_input) X(conv2d_filter)                                                                        \
    X(max_pool2d) X(plane_gather) X(plane_scatter) X(avg_pool2d) X(avg_pool2d_gradient)                               \
    X(lstm) X(lstm_gradient) X(recurrent_product)                                                                     \
    X(layer_norm) X(layer_norm_gradient) X(batch_norm) X(batch_norm_gradient)                                         \
    X(sigmoid_cross_entropy) X(squared_loss) X(hinge_loss) X(dropout)                                                 \
    X(gru) X(gru_gradient)                                                                                            \
    X(extend) X(extend_gradient) X(resize) X(resize_gradient)

#define PLI_OP_DECLARE(name) extern const plait_op pli_op_##name;
PLI_OPS(PLI_OP_DECLARE)
#undef PLI_OP_DECLARE

static inline plait_value pli_op1(plait_graph *g, const plait_op *op, plait_value a) {
    return pli_graph_node(g, op, &a, 1, NULL);
}
static inline plait_value pli_op2(plait_graph *g, const plait_op *op, plait_value a, plait_value b) {
    const plait_value in[] = { a, b };
    return pli_graph_node(g, op, in, 2, NULL);
}
static inline plait_value pli_op3(plait_graph *g, const plait_op *op, plait_value a, plait_value b, plait_value c) {
    const plait_value in[] = { a, b, c };
    return pli_graph_node(g, op, in, 3, NULL);
}
/** A constant of rank 0 with the type of like. */
plait_value pli_scalar_like(plait_graph *graph, plait_value like, double value);
/** An attribute of n ints; n may be 0. */
static inline plait_attr pli_attr_ints(const char *name, int32_t n, const int64_t *ints) {
    return (plait_attr){ .name = name, .kind = PLAIT_ATTR_INTS, .n = n, .u.ints = ints };
}
static inline plait_attr pli_attr_int(const char *name, int64_t i) {
    return (plait_attr){ .name = name, .kind = PLAIT_ATTR_INT, .u.i = i };
}

/* Axes from attributes, where -1 is the last axis. */
typedef struct pli_axes {
    bool    in[PLAIT_RANK_MAX];
    int32_t n;
} pli_axes;
/** Reads axes from an attribute of ints; an empty list means every axis if none_is_all. Fails if an axis is out of
 *  range, or is listed twice. */
plait_status pli_axes_of(const plait_call *call, const plait_attr *attr, int32_t rank, bool none_is_all,
                         pli_axes *axes_out);
/** Reads one axis, 0 <= *axis_out < rank. */
plait_status pli_axis_find(const plait_call *call, int64_t attr, int32_t rank, int32_t *axis_out);

/** infer: output 0 is like input 0. */
plait_status pli_infer_as_input(const plait_call *call);
/** infer: output 0 is a scalar bool, which is true when the op has run. */
plait_status pli_infer_done(const plait_call *call);

/** Sums value along the axes that broadcasting had repeated, to the shape of like; returns value itself if the shapes
 *  are known to be equal. */
plait_value pli_unbroadcast(plait_graph *graph, plait_value value, plait_value like);
/** The gradient rule of an op whose output has the elements of input 0 in another shape. */
void pli_gradient_reshape(const plait_gradient *at);
/** Refuses to differentiate `what`, such as a gradient once more: the graph fails, with the name and the remedy. */
void pli_gradient_refuse(const plait_gradient *at, const char *what);

#endif
