/* mlp: a perceptron of any number of hidden layers, each x w + b and a ReLU, and a last one without (Rumelhart, Hinton and
 * Williams, "Learning representations by back-propagating errors", Nature 1986; ReLU: Glorot, Bordes and Bengio, AISTATS 2011). */
#include "graph/ops/ops.h"
#include "learn/net.h"

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    plait_value h = net->x;
    int64_t     in = net->linear->features;
    (void)err;
    for (int32_t i = 0; i < n; i++) {
        h = pli_op1(net->graph, &pli_op_relu, pli_net_dense(net, h, in, width[i], i + 1, 2));
        in = width[i];
    }
    net->scores = pli_net_dense(net, h, in, net->linear->columns, n + 1, 1);
    return PLAIT_OK;
}

const pli_net_kind pli_net_mlp = {
    .name = "mlp",
    .summary = "hidden layers of ReLUs, each connected to all of the one before",
    .layers = "128",
    .batch = 128,
    .build = build,
};
