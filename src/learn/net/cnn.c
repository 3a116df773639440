/* cnn: a network of convolutions for images. Each hidden width but the last is a convolution of 3 x 3 with as many
 * filters, a ReLU and a pooling of 2 x 2 by maximum; the last is a dense layer; another dense layer gives the scores
 * (LeCun et al., "Gradient-based learning applied to document recognition", Proceedings of the IEEE 1998).
 *
 * Rows are images [channels, height, width] or [height, width]. Other rows are read as the smallest square image that
 * holds their features, line by line, with zeros after the last. So images that came as CSV or LIBSVM are images again;
 * other features are neighbours if their numbers are. */
#include <math.h>

#include <plait/nn.h>

#include "learn/net/net.h"

enum { FILTER = 3, WINDOW = 2 };

/* Images between two layers: [rows, channels, height, width]. */
typedef struct image {
    plait_value value;
    int64_t     channels, height, width;
} image;

static int64_t halved(int64_t length) { return length > 1 ? WINDOW : 1; }

/* Adds a convolution that keeps the size, a ReLU, and the maximum of each window of 2 x 2. A length of 1 is not halved.
 */
static void convolve(pli_net *net, image *at, int64_t filters, int32_t layer) {
    static const int64_t around[] = { 1, 1, 1, 1 };
    plait_graph         *g = net->graph;
    const int64_t        window[] = { halved(at->height), halved(at->width) };
    const double         spread = sqrt(6.0 / (double)(at->channels * FILTER * FILTER)); /* as in a dense layer */
    const plait_shape    shape = plait_shape_4(filters, at->channels, FILTER, FILTER), plane = { 3, { filters, 1, 1 } };
    const plait_value    w = pli_net_variable(net, 'w', layer, shape, spread);
    const plait_value    b = pli_net_variable(net, 'b', layer, plane, 0);
    const plait_value    y = plait_op_add(g, plait_op_conv2d(g, at->value, w, NULL, around, NULL, 1), b);
    const plait_value    pooled = plait_op_pool2d(g, "max_pool2d", plait_op_relu(g, y), window, NULL, NULL);
    *at = (image){ pooled, filters, at->height / window[0], at->width / window[1] };
}

/* The features as an image. */
static image image_of(pli_net *net) {
    const int64_t n = net->row_values, *length = net->length;
    plait_value   x = net->x;
    image         at = { .channels = 1 };
    if (net->axes == 1) {
        while (at.height * at.height < n) at.height++;
        const int64_t none[] = { 0, 0 }, behind[] = { 0, at.height * at.height - n };
        at.width = at.height;
        if (behind[1] > 0) x = plait_op_pad(net->graph, x, 2, none, behind, 0);
    } else {
        if (net->axes == 3) at.channels = length[0];
        at.height = length[net->axes - 2];
        at.width = length[net->axes - 1];
    }
    at.value = plait_op_reshape(net->graph, x, plait_shape_4(-1, at.channels, at.height, at.width));
    return at;
}

static plait_status build(pli_net *net, const int64_t *width, int32_t n, plait_error *err) {
    plait_graph *g = net->graph;
    image        at = image_of(net);
    if (n < 1) return pli_fail(err, PLAIT_EINVAL, "layers: a cnn needs at least one, such as 32,64,128");
    for (int32_t i = 0; i < n - 1; i++) convolve(net, &at, width[i], i + 1);
    const int64_t     flat = at.channels * at.height * at.width;
    const plait_value x = plait_op_reshape(g, at.value, plait_shape_2(-1, flat));
    const plait_value h = plait_op_relu(g, pli_net_dense(net, x, flat, width[n - 1], n, 2));
    pli_net_last(net, h, width[n - 1], n + 1);
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
