/* ONNX's network ops: products, convolutions, pooling, norms, softmax. Images have one or two axes after [n, channels];
 * those with one axis are treated as images of height 1. */
#include <math.h>
#include <string.h>

#include "graph/form/import.h"
#include <plait/nn.h>

/* A vector on the left becomes a matrix of one row, a vector on the right one of one column; the added axis is removed
 * from the result. */
static plait_status matmul(pli_import *im) {
    plait_graph *g = im->g;
    plait_value  a = pli_import_in(im, 0), b = pli_import_in(im, 1);
    const bool row = a >= 0 && pli_import_shape(im, a).rank == 1, column = b >= 0 && pli_import_shape(im, b).rank == 1;
    const int64_t first[] = { 0 }, second[] = { 1 }, last[] = { -1 }, before[] = { -2 };
    if (row) a = plait_op_expand_dims(g, a, 1, first);
    if (column) b = plait_op_expand_dims(g, b, 1, second);
    plait_value y = plait_op_matmul(g, a, b);
    if (row) y = plait_op_squeeze(g, y, 1, before);
    if (column) y = plait_op_squeeze(g, y, 1, last);
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

static plait_value times(pli_import *im, plait_value x, double by) {
    return by == 1 ? x : plait_op_mul(im->g, x, pli_import_scalar(im, x, by));
}

static plait_status gemm(pli_import *im) {
    const plait_value in[] = { pli_import_in(im, 0), pli_import_in(im, 1) }, c = pli_import_in(im, 2);
    const plait_attr  attrs[] = { plait_attr_int("ta", pli_import_int(im, "transA", 0) != 0),
                                  plait_attr_int("tb", pli_import_int(im, "transB", 0) != 0) };
    plait_value       y = times(im, plait_graph_op(im->g, "matmul", in, 2, attrs, 2), pli_import_float(im, "alpha", 1));
    if (c >= 0) y = plait_op_add(im->g, y, times(im, c, pli_import_float(im, "beta", 1)));
    pli_import_out(im, 0, y);
    return PLAIT_OK;
}

/* --- windows over images -------------------------------------------------------------------------------------- */

/* A window over two axes. If the image has only one, entry 0 is for the axis of height 1. */
typedef struct window {
    bool    flat;
    int64_t size[2], stride[2], dilation[2], padding[4];
} window;

/* An attribute with one number for each axis, or two (pads). */
static plait_status list_of(pli_import *im, const char *name, const window *w, int64_t absent, bool pads,
                            int64_t *out) {
    const int32_t axes = w->flat ? 1 : 2;
    int64_t       given[4];
    const int32_t n = pli_import_list(im, name, 4, given), want = pads ? 2 * axes : axes;
    if (n != -1 && n != want) return pli_import_fail(im, PLAIT_ESHAPE, "%s are to be %d numbers", name, want);
    for (int32_t side = 0; side < (pads ? 2 : 1); side++) {
        out[2 * side] = w->flat ? (pads ? 0 : 1) : n < 0 ? absent : given[side * axes];
        out[2 * side + 1] = n < 0 ? absent : given[side * axes + axes - 1];
    }
    return PLAIT_OK;
}

/* Padding SAME: output length = input length / stride. If the number of pads is odd, the extra one is at the end, or
 * with SAME_LOWER at the beginning. */
static plait_status pad_alike(pli_import *im, const plait_shape *x, const char *how, window *w) {
    for (int32_t i = w->flat ? 1 : 0; i < 2; i++) {
        const int64_t length = x->dim[x->rank - 2 + i];
        if (length < 0)
            return pli_import_fail(im, PLAIT_EREFUSED, "auto_pad %.20s of images whose size a run decides is refused",
                                   how);
        const int64_t out = (length + w->stride[i] - 1) / w->stride[i];
        int64_t       all = (out - 1) * w->stride[i] + (w->size[i] - 1) * w->dilation[i] + 1 - length;
        if (all < 0) all = 0;
        w->padding[i] = strcmp(how, "SAME_LOWER") == 0 ? all - all / 2 : all / 2;
        w->padding[i + 2] = all - w->padding[i];
    }
    return PLAIT_OK;
}

/* Reads the window's attributes. size: of the window, if it is known; NULL: kernel_shape has it. */
static plait_status window_of(pli_import *im, const plait_shape *x, const int64_t *size, window *w) {
    const char *how = pli_import_text(im, "auto_pad", "NOTSET");
    *w = (window){ .flat = x->rank == 3 };
    if (x->rank != 3 && x->rank != 4)
        return pli_import_fail(im, PLAIT_EREFUSED,
                               "images of %d axes are refused; known are [n, channels, "
                               "width] and [n, channels, height, width]",
                               x->rank);
    PLI_TRY(list_of(im, "kernel_shape", w, 0, false, w->size));
    const bool said = pli_import_attr(im, "kernel_shape", PLI_ONNX_INTS) != NULL;
    if (size != NULL && said && memcmp(w->size, size, sizeof w->size) != 0)
        return pli_import_fail(im, PLAIT_ESHAPE, "kernel_shape is not that of the filters");
    if (size != NULL) memcpy(w->size, size, sizeof w->size);
    PLI_TRY(list_of(im, "strides", w, 1, false, w->stride));
    PLI_TRY(list_of(im, "dilations", w, 1, false, w->dilation));
    PLI_TRY(list_of(im, "pads", w, 0, true, w->padding));
    for (int i = 0; i < 2; i++)
        if (w->size[i] < 1 || w->size[i] > 1 << 20 || w->stride[i] < 1 || w->stride[i] > 1 << 20 ||
            w->dilation[i] < 1 || w->dilation[i] > 1 << 20)
            return pli_import_fail(im, PLAIT_ESHAPE, "windows, strides and dilations are from 1 to 1048576");
    if (strcmp(how, "NOTSET") == 0) return PLAIT_OK;
    for (int i = 0; i < 4; i++)
        if (w->padding[i] != 0)
            return pli_import_fail(im, PLAIT_EREFUSED, "pads beside auto_pad %.20s are refused: which are meant?", how);
    if (strcmp(how, "VALID") == 0) return PLAIT_OK;
    if (strcmp(how, "SAME_UPPER") == 0 || strcmp(how, "SAME_LOWER") == 0) return pad_alike(im, x, how, w);
    return pli_import_fail(im, PLAIT_ENAME, "auto_pad '%.20s' is not known", how);
}

static const int64_t height[] = { 2 };

static plait_value raised(pli_import *im, plait_value x, const window *w) {
    return w->flat ? plait_op_expand_dims(im->g, x, 1, height) : x;
}

static plait_value lowered(pli_import *im, plait_value x, const window *w) {
    return w->flat ? plait_op_squeeze(im->g, x, 1, height) : x;
}

/* Reshapes c, one number for each channel, to broadcast with [n, channels, ...] of this rank. */
static plait_value beside_channels(pli_import *im, plait_value c, int32_t rank) {
    plait_shape shape = { .rank = rank - 1, .dim = { -1, 1, 1, 1, 1, 1, 1, 1 } };
    return rank > 2 ? plait_op_reshape(im->g, c, shape) : c;
}

static plait_status conv(pli_import *im) {
    const plait_value x = pli_import_in(im, 0), f = pli_import_in(im, 1), bias = pli_import_in(im, 2);
    const plait_shape images = pli_import_shape(im, x), filters = pli_import_shape(im, f);
    window            w;
    PLI_TRY(plait_graph_check(im->g, im->err));
    if (filters.rank != images.rank || filters.rank < 3)
        return pli_import_fail(im, PLAIT_ESHAPE, "images of %d axes and filters of %d", images.rank, filters.rank);
    const int64_t size[] = { filters.rank == 3 ? 1 : filters.dim[2], filters.dim[filters.rank - 1] };
    PLI_TRY(window_of(im, &images, size, &w));
    plait_value y = plait_op_conv2d(im->g, raised(im, x, &w), raised(im, f, &w), w.stride, w.padding, w.dilation,
                                    pli_import_int(im, "group", 1));
    if (bias >= 0) y = plait_op_add(im->g, y, beside_channels(im, bias, 4));
    pli_import_out(im, 0, lowered(im, y, &w));
    return PLAIT_OK;
}

/* how: Plait's op. If padded places count in the mean, zeros are added to the image first. */
static plait_status pool(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_shape images = pli_import_shape(im, x);
    window            w;
    PLI_TRY(plait_graph_check(im->g, im->err));
    PLI_TRY(window_of(im, &images, NULL, &w));
    if (pli_import_int(im, "ceil_mode", 0) != 0 || w.dilation[0] != 1 || w.dilation[1] != 1)
        return pli_import_fail(im, PLAIT_EREFUSED, "ceil_mode and dilations of pooling are refused");
    plait_value y = raised(im, x, &w);
    const bool  mean = strcmp(im->op->how, "avg_pool2d") == 0;
    if (mean && pli_import_int(im, "count_include_pad", 0) != 0) {
        const int64_t before[] = { 0, 0, w.padding[0], w.padding[1] }, after[] = { 0, 0, w.padding[2], w.padding[3] };
        y = plait_op_pad(im->g, y, 4, before, after, 0);
        memset(w.padding, 0, sizeof w.padding);
    }
    pli_import_out(im, 0, lowered(im, plait_op_pool2d(im->g, im->op->how, y, w.size, w.stride, w.padding), &w));
    return PLAIT_OK;
}

/* how: Plait's reduction, over all axes but n and channels. */
static plait_status global_pool(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const int32_t     rank = pli_import_shape(im, x).rank;
    int64_t           axes[PLAIT_RANK_MAX];
    for (int32_t i = 2; i < rank; i++) axes[i - 2] = i;
    if (rank < 3) return pli_import_fail(im, PLAIT_ESHAPE, "images of %d axes", rank);
    pli_import_out(im, 0, plait_op_reduce(im->g, im->op->how, x, rank - 2, axes, 1));
    return PLAIT_OK;
}

/* --- norms ---------------------------------------------------------------------------------------------------- */

/* Normalizes by the running mean and variance, which are constants, or by those of the batch if training_mode is
 * set. */
static plait_status batch_norm(pli_import *im) {
    plait_graph      *g = im->g;
    const plait_value x = pli_import_in(im, 0);
    const int32_t     rank = pli_import_shape(im, x).rank;
    const double      epsilon = pli_import_float(im, "epsilon", (double)1e-5f);
    plait_value       y;
    if (rank < 2) return pli_import_fail(im, PLAIT_ESHAPE, "its input is to be [n, channels, ...]");
    if (pli_import_int(im, "training_mode", 0) != 0) {
        y = plait_op_batch_norm(g, x, epsilon);
    } else {
        const plait_value mean = pli_import_fixed(im, 3), variance = pli_import_fixed(im, 4);
        const plait_value deviation =
            plait_op_sqrt(g, plait_op_add(g, variance, pli_import_scalar(im, variance, epsilon)));
        y = plait_op_mul(g, plait_op_sub(g, x, beside_channels(im, mean, rank)),
                         beside_channels(im, plait_op_reciprocal(g, deviation), rank));
    }
    y = plait_op_mul(g, y, beside_channels(im, pli_import_in(im, 1), rank));
    pli_import_out(im, 0, plait_op_add(g, y, beside_channels(im, pli_import_in(im, 2), rank)));
    return PLAIT_OK;
}

static plait_status layer_norm(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    if (pli_import_int(im, "stash_type", 1) != 1)
        return pli_import_fail(im, PLAIT_EREFUSED, "stash_type is refused unless it is 1, float");
    plait_value y =
        plait_op_layer_norm(im->g, x, pli_import_int(im, "axis", -1), pli_import_float(im, "epsilon", (double)1e-5f));
    pli_import_out(im, 1, plait_graph_output(im->g, y, 1));
    y = plait_op_mul(im->g, y, pli_import_in(im, 1));
    pli_import_out(im, 0, pli_import_has(im, 2) ? plait_op_add(im->g, y, pli_import_in(im, 2)) : y);
    return PLAIT_OK;
}

/* x / (bias + alpha / size * s)^beta, where s is the sum of squares of the `size` channels around each channel. */
static plait_status local_response_norm(pli_import *im) {
    plait_graph      *g = im->g;
    const plait_value x = pli_import_in(im, 0);
    const int32_t     rank = pli_import_shape(im, x).rank;
    const int64_t     size = pli_import_int(im, "size", 0), axis[] = { 1 };
    int64_t           before[PLAIT_RANK_MAX] = { 0 }, after[PLAIT_RANK_MAX] = { 0 };
    if (rank < 2) return pli_import_fail(im, PLAIT_ESHAPE, "its input is to be [n, channels, ...]");
    if (size < 1 || size > 64)
        return pli_import_fail(im, PLAIT_EREFUSED, "a size of %lld is refused; known are 1 to 64", (long long)size);
    before[1] = (size - 1) / 2;
    after[1] = size - 1 - before[1];
    const plait_value squares = plait_op_pad(g, plait_op_square(g, x), rank, before, after, 0);
    plait_value       sum = PLAIT_NONE;
    for (int64_t from = 0; from < size; from++) {
        const int64_t     end = from == size - 1 ? INT64_MAX : from - size + 1;
        const plait_attr  a[] = { plait_attr_ints("axes", 1, axis), plait_attr_ints("starts", 1, &from),
                                  plait_attr_ints("ends", 1, &end) };
        const plait_value part = plait_graph_op(g, "slice", &squares, 1, a, 3);
        sum = from == 0 ? part : plait_op_add(g, sum, part);
    }
    const plait_value scale = plait_op_add(
        g, plait_op_mul(g, sum, pli_import_scalar(im, x, pli_import_float(im, "alpha", 1e-4) / (double)size)),
        pli_import_scalar(im, x, pli_import_float(im, "bias", 1)));
    pli_import_out(
        im, 0,
        plait_op_div(g, x, plait_op_pow(g, scale, pli_import_scalar(im, x, pli_import_float(im, "beta", 0.75)))));
    return PLAIT_OK;
}

/* --- softmax -------------------------------------------------------------------------------------------------- */

static plait_status softmax(pli_import *im) {
    const plait_value x = pli_import_in(im, 0);
    const plait_attr  axis = plait_attr_int("axis", pli_import_int(im, "axis", -1));
    pli_import_out(im, 0, plait_graph_op(im->g, im->op->how, &x, 1, &axis, 1));
    return PLAIT_OK;
}

/* Cross entropy of scores [n, classes] and labels [n]. */
static plait_status cross_entropy(pli_import *im) {
    plait_graph      *g = im->g;
    const char       *how = pli_import_text(im, "reduction", "mean");
    const plait_value scores = pli_import_in(im, 0);
    plait_value       labels = pli_import_in(im, 1);
    if (strcmp(how, "none") != 0 && strcmp(how, "sum") != 0 && strcmp(how, "mean") != 0)
        return pli_import_fail(im, PLAIT_ENAME, "reduction '%.20s'; known are none, sum and mean", how);
    if (pli_import_has(im, 2) || pli_import_attr(im, "ignore_index", PLI_ONNX_INT) != NULL ||
        pli_import_shape(im, scores).rank != 2)
        return pli_import_fail(im, PLAIT_EREFUSED,
                               "weights, ignore_index and scores other than [n, classes] are refused");
    if (labels >= 0 && plait_graph_describe(g, labels).type != PLAIT_I64) labels = plait_op_cast(g, labels, PLAIT_I64);
    const plait_value each = plait_op_softmax_cross_entropy(g, scores, labels);
    pli_import_out(im, 0,
                   strcmp(how, "none") == 0
                       ? each
                       : plait_op_reduce(g, strcmp(how, "sum") == 0 ? "sum" : "mean", each, 0, NULL, 0));
    if (pli_import_wants(im, 1)) pli_import_out(im, 1, plait_op_log_softmax(g, scores, 1));
    return PLAIT_OK;
}

#define WINDOW "auto_pad text, dilations ints, kernel_shape ints, pads ints, strides ints"

const pli_import_op pli_import_layers[] = {
    { "MatMul", matmul, NULL, NULL },
    { "Gemm", gemm, NULL, "alpha float, beta float, transA int, transB int" },
    { "Conv", conv, NULL, WINDOW ", group int" },
    { "MaxPool", pool, "max_pool2d", WINDOW ", ceil_mode int, storage_order int" },
    { "AveragePool", pool, "avg_pool2d", WINDOW ", ceil_mode int, count_include_pad int" },
    { "GlobalAveragePool", global_pool, "mean", NULL },
    { "GlobalMaxPool", global_pool, "max", NULL },
    { "BatchNormalization", batch_norm, NULL, "epsilon float, momentum float, training_mode int" },
    { "LayerNormalization", layer_norm, NULL, "axis int, epsilon float, stash_type int" },
    { "LRN", local_response_norm, NULL, "alpha float, beta float, bias float, size int" },
    { "Softmax", softmax, "softmax", "axis int" },
    { "LogSoftmax", softmax, "log_softmax", "axis int" },
    { "SoftmaxCrossEntropyLoss", cross_entropy, NULL, "ignore_index int, reduction text" },
    { NULL, NULL, NULL, NULL },
};
