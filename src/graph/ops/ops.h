/* graph/ops/ops.h - Plait's own ops, one file each, and short words for gradient rules that build with them. */
#ifndef PLI_GRAPH_OPS_OPS_H
#define PLI_GRAPH_OPS_OPS_H

#include "graph/graph.h"

/* The list of ops: ops.c makes the registry of it. */
#define PLI_OPS(X)                                                                                                               \
    X(placeholder) X(constant) X(variable) X(get_rows) X(inc) X(inc_rows)                                                        \
    X(add) X(sub) X(mul) X(neg) X(add_n)                                                                                         \
    X(ones_like) X(zeros_like) X(sum_like) X(broadcast_like)                                                                     \
    X(gather) X(scatter_rows)                                                                                                    \
    X(matmul)                                                                                                                    \
    X(row_dot) X(row_scale) X(softmax) X(softmax_gradient) X(log_softmax) X(softmax_cross_entropy) X(softmax_cross_entropy_gradient)\
    X(conv2d) X(conv2d_input) X(conv2d_filter)                                                                                   \
    X(max_pool2d) X(plane_gather) X(plane_scatter) X(avg_pool2d) X(avg_pool2d_gradient)                                          \
    X(lstm) X(lstm_gradient) X(recurrent_product)                                                                                \
    X(layer_norm) X(layer_norm_gradient) X(batch_norm) X(batch_norm_gradient)

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
/** value, summed down to the shape of like where broadcasting had stretched it; value itself where their shapes are known
 *  to be equal. */
plait_value pli_unbroadcast(plait_graph *graph, plait_value value, plait_value like);
/** For the gradient of an op that has one that is not zero, and no rule for it: the graph fails by name. */
void pli_gradient_refuse(const plait_gradient *at, const char *what);

#endif
