/* cnn: a network of convolutions for images: each hidden width but the last is a convolution of 3 x 3 with as many filters, a
 * ReLU and a pooling of 2 x 2 by maximum; the last is a dense layer; another gives the scores (LeCun et al., "Gradient-based
 * learning applied to document recognition", Proceedings of the IEEE 1998). Rows are images by channel, height and width, or
 * by height and width. */
#include <math.h>

#include "graph/ops/ops.h"
#include "learn/net.h"

enum { FILTER = 3, WINDOW = 2 };

/* An image on its way: [rows, channels, height, width]. */
typedef struct image {
    plait_value value;
    int64_t     channels, height, width;
} image;

static plait_value reshape(plait_graph *g, plait_value x, int32_t n, const int64_t *length) {
    const plait_attr shape = { .name = "shape", .kind = PLAIT_ATTR_INTS, .n = n, .u.ints = length };
    return plait_graph_op(g, "reshape", &x, 1, &shape, 1);
}

/* A convolution that keeps the size, a ReLU, and the largest of each window of 2 x 2. */
static void convolve(pli_net *net, image *at, int64_t filters, int32_t layer) {
    static const int64_t  around[] = { 1, 1, 1, 1 }, window[] = { WINDOW, WINDOW };
    const plait_attr      same = { .name = "padding", .kind = PLAIT_ATTR_INTS, .n = 4, .u.ints = around };
    const plait_attr      pool[] = { { .name = "window", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = window },
                                     { .name = "stride", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = window } };
    const int64_t         taps = at->channels * FILTER * FILTER;
    const plait_value     w = pli_net_variable(net, 'w', layer, plait_shape_4(filters, at->channels, FILTER, FILTER), sqrt(6.0 / (double)taps));
    const plait_shape     plane = { 3, { filters, 1, 1 } };
    const plait_value     b = pli_net_variable(net, 'b', layer, plane, 0);
    const plait_value     in[] = { at->value, w };
    const plait_value     y = plait_graph_op(net->graph, "conv2d", in, 2, &same, 1);
    const plait_value     active = pli_op1(net->graph, &pli_op_relu, pli_op2(net->graph, &pli_op_add, y, b));
    *at = (image){ plait_graph_op(net->graph, "max_pool2d", &active, 1, pool, 2), filters, at->height / WINDOW, at->width / WINDOW };
}

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    const bool plain = net->axes == 2;
    image      at = { .channels = plain ? 1 : net->length[0], .height = net->length[plain ? 0 : 1], .width = net->length[plain ? 1 : 2] };
    if (net->axes != 2 && net->axes != 3)
        return pli_fail(err, PLAIT_EREFUSED, "model cnn is refused for rows that are no images: it needs idx data of two or three axes a row; "
                        "take --model mlp");
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "layers: a cnn has at least one, as 32,64,128");
    if (at.height >> (n - 1) < 1 || at.width >> (n - 1) < 1)
        return pli_fail(err, PLAIT_EINVAL, "layers %s: images of %lld x %lld can be halved no %d times", net->layers, (long long)at.height,
                        (long long)at.width, n - 1);
    const int64_t shape[] = { -1, at.channels, at.height, at.width };
    at.value = reshape(net->graph, net->x, 4, shape);
    for (int32_t i = 0; i < n - 1; i++) convolve(net, &at, width[i], i + 1);
    const int64_t flat[] = { -1, at.channels * at.height * at.width };
    const plait_value h = pli_net_dense(net, reshape(net->graph, at.value, 2, flat), flat[1], width[n - 1], n, 2);
    net->scores = pli_net_dense(net, pli_op1(net->graph, &pli_op_relu, h), width[n - 1], net->linear->columns, n + 1, 1);
    return PLAIT_OK;
}

const pli_net_kind pli_net_cnn = {
    .name = "cnn",
    .summary = "convolutions of 3 x 3 with pooling, then dense layers: for images",
    .layers = "32,64,128",
    .even = true,
    .batch = 128,
    .build = build,
};
