/* graph/conv.h - what the three ops of a convolution share: its lengths, and columns of patches.
 *
 *     y[n, m, i, j] = sum over c, r, s of x[n, c, i stride - padding + r dilation, j ...] w[m, c, r, s]
 *
 * x is [images, channels, height, width], w [filters, channels / groups, rows, columns]. Filters are divided into
 * `groups`, each of which sees its own channels. x is 0 beyond its edges. Each of y, dx = conv2d_input and dw =
 * conv2d_filter is bilinear in its two inputs, so the three are each other's gradients.
 *
 * Fast kernels lay the patches of some output rows side by side as columns (im2col), so that the sum becomes a matrix
 * product: Chellapilla et al., "High Performance Convolutional Neural Networks for Document Processing", IWFHR 2006. */
#ifndef PLI_GRAPH_CONV_H
#define PLI_GRAPH_CONV_H

#include "graph/kernel.h"

enum { PLI_CONV_STRIDE, PLI_CONV_PADDING, PLI_CONV_DILATION, PLI_CONV_GROUPS, PLI_CONV_ATTRS };

/** With their presets: stride [2] = 1 1, padding [top, left, bottom, right] = 0, dilation [2] = 1 1, groups = 1. */
extern const plait_attr_spec pli_conv_attrs[PLI_CONV_ATTRS];

/* Lengths; [0] along the height, [1] along the width. */
typedef struct pli_conv {
    int64_t images, groups;
    int64_t channels, filters; /* in one group */
    int64_t in[2], tap[2], out[2], stride[2], before[2], dilation[2];
    int64_t taps; /* channels x tap[0] x tap[1]: the number of terms of the sum */
} pli_conv;

/** Infers the shape of y from the attributes, x and w. ESHAPE with the reason. Lengths may be PLAIT_ANY. */
plait_status pli_conv_infer(const plait_call *call, const plait_tensor *x, const plait_tensor *w, plait_shape *y_out);
/** The lengths, which are all known and checked. */
pli_conv pli_conv_of(const plait_attr *attrs, const plait_shape *x, const plait_shape *w);

/** How many output rows to lay out at a time, so that columns of `taps` terms stay in the second-level cache. */
int64_t pli_conv_rows(const pli_conv *conv, int64_t taps);
/** Fills column [channels x tap[0] x tap[1], rows x out[1]] with the patches of output rows first .. first + rows - 1,
 *  over some channels of an image. */
void pli_im2col_f32(const pli_conv *conv, int64_t channels, const float *x, int64_t first, int64_t rows, float *column);
/** The reverse: adds each element of column to its place in x. */
void pli_col2im_f32(const pli_conv *conv, int64_t channels, const float *column, int64_t first, int64_t rows, float *x);

#endif
