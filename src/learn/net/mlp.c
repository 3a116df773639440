/* mlp: a perceptron of any number of hidden layers, each x w + b and a ReLU, and a last layer without ReLU (Rumelhart,
 * Hinton and Williams, "Learning representations by back-propagating errors", Nature 1986; ReLU: Glorot, Bordes and
 * Bengio, AISTATS 2011). */
#include <plait/ops.h>

#include "learn/net/net.h"

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    if (net->columns > 1) return pli_columns_build(net, width, n, err);
    if (n == 0) {
        net->scores = pli_net_first(net, net->goal->columns, 1);
        return PLAIT_OK;
    }
    plait_value h = plait_op_relu(net->graph, pli_net_first(net, width[0], 2));
    for (int32_t i = 1; i < n; i++)
        h = plait_op_relu(net->graph, pli_net_dense(net, h, width[i - 1], width[i], i + 1, 2));
    pli_net_last(net, h, width[n - 1], n + 1);
    return PLAIT_OK;
}

const pli_net_kind pli_net_mlp = {
    .name = "mlp",
    .summary = "hidden layers of ReLUs, each connected to the whole layer before it",
    .layers = "128",
    .entries = true,
    .batch = 128,
    .build = build,
};
