/* Checks a convolution's attributes and infers its lengths; lays patches out as columns (im2col), and adds columns back
 * to the image (col2im), which is the derivative of im2col. */
#include "graph/conv.h"

#include <string.h>

static const int64_t ones[] = { 1, 1 }, zeros[] = { 0, 0, 0, 0 };

const plait_attr_spec pli_conv_attrs[PLI_CONV_ATTRS] = {
    [PLI_CONV_STRIDE] = { .preset = { .name = "stride", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = ones } },
    [PLI_CONV_PADDING] = { .preset = { .name = "padding", .kind = PLAIT_ATTR_INTS, .n = 4, .u.ints = zeros } },
    [PLI_CONV_DILATION] = { .preset = { .name = "dilation", .kind = PLAIT_ATTR_INTS, .n = 2, .u.ints = ones } },
    [PLI_CONV_GROUPS] = { .preset = { .name = "groups", .kind = PLAIT_ATTR_INT, .u.i = 1 } },
};

static plait_status check_attrs(const plait_call *call) {
    enum { MOST = 1 << 20 };
    const plait_attr *stride = &call->attr[PLI_CONV_STRIDE], *padding = &call->attr[PLI_CONV_PADDING];
    const plait_attr *dilation = &call->attr[PLI_CONV_DILATION];
    bool good = stride->n == 2 && padding->n == 4 && dilation->n == 2 && call->attr[PLI_CONV_GROUPS].u.i >= 1;
    for (int i = 0; good && i < 4; i++) good = padding->u.ints[i] >= 0 && padding->u.ints[i] < MOST;
    for (int i = 0; good && i < 2; i++)
        good = stride->u.ints[i] >= 1 && stride->u.ints[i] < MOST && dilation->u.ints[i] >= 1 &&
               dilation->u.ints[i] < MOST;
    if (good) return PLAIT_OK;
    return plait_call_fail(
        call, PLAIT_ESHAPE,
        "needs stride [2] and dilation [2] of 1 or more, padding [top, left, bottom, right] of 0 or more, "
        "groups of 1 or more");
}

/* Length of y along one axis; PLAIT_ANY: not known; -2: the filter is larger than the padded input. */
static int64_t out_length(const plait_attr *attrs, int axis, int64_t in, int64_t tap) {
    if (in == PLAIT_ANY || tap == PLAIT_ANY) return PLAIT_ANY;
    const int64_t *padding = attrs[PLI_CONV_PADDING].u.ints;
    const int64_t  padded = in + padding[axis] + padding[axis + 2],
                  reach = (tap - 1) * attrs[PLI_CONV_DILATION].u.ints[axis] + 1;
    return tap < 1 || reach > padded ? -2 : (padded - reach) / attrs[PLI_CONV_STRIDE].u.ints[axis] + 1;
}

plait_status pli_conv_infer(const plait_call *call, const plait_tensor *x, const plait_tensor *w, plait_shape *y_out) {
    const int64_t groups = call->attr[PLI_CONV_GROUPS].u.i, *xd = x->shape.dim, *wd = w->shape.dim;
    PLI_TRY(check_attrs(call));
    if (x->type != w->type || !pli_type_is_float(x->type))
        return plait_call_fail(call, PLAIT_ESHAPE, "needs floats of one type; cast one of them");
    if (x->shape.rank != 4 || w->shape.rank != 4)
        return plait_call_fail(
            call, PLAIT_ESHAPE,
            "needs images [n, channels, height, width] and filters [m, channels / groups, rows, columns]");
    if (xd[1] != PLAIT_ANY && wd[1] != PLAIT_ANY && (xd[1] % groups != 0 || xd[1] / groups != wd[1]))
        return plait_call_fail(call, PLAIT_ESHAPE, "%lld channels in %lld groups, but filters of %lld",
                               (long long)xd[1], (long long)groups, (long long)wd[1]);
    if (wd[0] != PLAIT_ANY && wd[0] % groups != 0)
        return plait_call_fail(call, PLAIT_ESHAPE, "%lld filters do not fall into %lld groups", (long long)wd[0],
                               (long long)groups);
    *y_out =
        plait_shape_4(xd[0], wd[0], out_length(call->attr, 0, xd[2], wd[2]), out_length(call->attr, 1, xd[3], wd[3]));
    if (y_out->dim[2] == -2 || y_out->dim[3] == -2)
        return plait_call_fail(call, PLAIT_ESHAPE, "a filter is empty, or reaches beyond the padded image");
    return PLAIT_OK;
}

pli_conv pli_conv_of(const plait_attr *attrs, const plait_shape *x, const plait_shape *w) {
    pli_conv c = { .images = x->dim[0], .groups = attrs[PLI_CONV_GROUPS].u.i, .channels = w->dim[1] };
    c.filters = w->dim[0] / c.groups;
    for (int i = 0; i < 2; i++) {
        c.in[i] = x->dim[2 + i];
        c.tap[i] = w->dim[2 + i];
        c.out[i] = out_length(attrs, i, c.in[i], c.tap[i]);
        c.stride[i] = attrs[PLI_CONV_STRIDE].u.ints[i];
        c.before[i] = attrs[PLI_CONV_PADDING].u.ints[i];
        c.dilation[i] = attrs[PLI_CONV_DILATION].u.ints[i];
    }
    c.taps = c.channels * c.tap[0] * c.tap[1];
    return c;
}

int64_t pli_conv_rows(const pli_conv *conv, int64_t taps) {
    enum { COLUMN_ELEMENTS = 1 << 16 }; /* 256 KiB */
    const int64_t row = taps * conv->out[1], rows = row > 0 ? COLUMN_ELEMENTS / row : 1;
    return rows < 1 ? 1 : rows < conv->out[0] ? rows : conv->out[0];
}

/* The outputs of a row whose tap s falls inside the image: j in first .. end - 1. */
static void inside(const pli_conv *c, int64_t s, int64_t *first_out, int64_t *end_out) {
    const int64_t stride = c->stride[1], shift = s * c->dilation[1] - c->before[1]; /* x = j stride + shift */
    int64_t       first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    int64_t       end = c->in[1] - shift > 0 ? (c->in[1] - shift + stride - 1) / stride : 0;
    if (end > c->out[1]) end = c->out[1];
    if (first > end) first = end;
    *first_out = first;
    *end_out = end;
}

void pli_im2col_f32(const pli_conv *c, int64_t channels, const float *x, int64_t first, int64_t rows, float *column) {
    const int64_t width = c->out[1], stride = c->stride[1];
    for (int64_t k = 0; k < channels * c->tap[0] * c->tap[1]; k++) {
        const int64_t s = k % c->tap[1], r = k / c->tap[1] % c->tap[0];
        const float  *plane = x + k / (c->tap[0] * c->tap[1]) * c->in[0] * c->in[1];
        int64_t       from, end;
        inside(c, s, &from, &end);
        for (int64_t i = first; i < first + rows; i++, column += width) {
            const int64_t y = i * c->stride[0] - c->before[0] + r * c->dilation[0];
            if (y < 0 || y >= c->in[0] || from == end) {
                memset(column, 0, (size_t)width * sizeof *column);
                continue;
            }
            const float *row = plane + y * c->in[1] + from * stride + s * c->dilation[1] - c->before[1];
            for (int64_t j = 0; j < from; j++) column[j] = 0;
            if (stride == 1)
                memcpy(column + from, row, (size_t)(end - from) * sizeof *column);
            else
                for (int64_t j = from; j < end; j++) column[j] = row[(j - from) * stride];
            for (int64_t j = end; j < width; j++) column[j] = 0;
        }
    }
}

void pli_col2im_f32(const pli_conv *c, int64_t channels, const float *column, int64_t first, int64_t rows, float *x) {
    const int64_t width = c->out[1], stride = c->stride[1];
    for (int64_t k = 0; k < channels * c->tap[0] * c->tap[1]; k++) {
        const int64_t s = k % c->tap[1], r = k / c->tap[1] % c->tap[0];
        float        *plane = x + k / (c->tap[0] * c->tap[1]) * c->in[0] * c->in[1];
        int64_t       from, end;
        inside(c, s, &from, &end);
        for (int64_t i = first; i < first + rows; i++, column += width) {
            const int64_t y = i * c->stride[0] - c->before[0] + r * c->dilation[0];
            if (y < 0 || y >= c->in[0] || from == end) continue;
            float *row = plane + y * c->in[1] + from * stride + s * c->dilation[1] - c->before[1];
            if (stride == 1)
                for (int64_t j = from; j < end; j++) row[j - from] += column[j];
            else
                for (int64_t j = from; j < end; j++) row[(j - from) * stride] += column[j];
        }
    }
}
