/* Checks a pooling op's attributes, infers its output's shape, and gives both to kernels as plain numbers. */
#include "graph/pooling.h"

static const int64_t zeros[] = { 0, 0, 0, 0 };

const plait_attr_spec pli_pooling_attrs[PLI_POOLING_ATTRS] = {
    [PLI_POOLING_WINDOW] = { .preset = { .name = "window", .kind = PLAIT_ATTR_INTS }, .required = 1 },
    [PLI_POOLING_STRIDE] = { .preset = { .name = "stride", .kind = PLAIT_ATTR_INTS } },
    [PLI_POOLING_PADDING] = { .preset = { .name = "padding", .kind = PLAIT_ATTR_INTS, .n = 4, .u.ints = zeros } },
};

static const int64_t *stride_of(const plait_attr *attrs) {
    return attrs[PLI_POOLING_STRIDE].n == 0 ? attrs[PLI_POOLING_WINDOW].u.ints : attrs[PLI_POOLING_STRIDE].u.ints;
}

static bool attrs_are_good(const plait_attr *attrs) {
    enum { MOST = 1 << 20 };
    const plait_attr *window = &attrs[PLI_POOLING_WINDOW], *stride = &attrs[PLI_POOLING_STRIDE],
                     *padding = &attrs[PLI_POOLING_PADDING];
    if (window->n != 2 || padding->n != 4 || (stride->n != 0 && stride->n != 2)) return false;
    for (int i = 0; i < 2; i++)
        if (window->u.ints[i] < 1 || window->u.ints[i] > MOST || stride_of(attrs)[i] < 1 || stride_of(attrs)[i] > MOST)
            return false;
    for (int i = 0; i < 4; i++)
        if (padding->u.ints[i] < 0 || padding->u.ints[i] >= window->u.ints[i % 2]) return false;
    return true;
}

/* Length of the output along one axis; PLAIT_ANY: not known; -2: the window is larger than the padded plane. */
static int64_t out_length(const plait_attr *attrs, int axis, int64_t in) {
    if (in == PLAIT_ANY) return PLAIT_ANY;
    const int64_t *padding = attrs[PLI_POOLING_PADDING].u.ints,
                  room = in + padding[axis] + padding[axis + 2] - attrs[PLI_POOLING_WINDOW].u.ints[axis];
    return in < 1 || room < 0 ? -2 : room / stride_of(attrs)[axis] + 1;
}

plait_status pli_pooling_infer(const plait_call *call, const plait_tensor *x, plait_shape *y_out) {
    if (!attrs_are_good(call->attr))
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs window [2] and stride [2] of 1 or more, and padding [top, left, bottom, right] "
                               "less than the window");
    if (!pli_type_is_float(x->type) || x->shape.rank != 4)
        return plait_call_fail(call, PLAIT_ESHAPE, "needs images of floats, [n, channels, height, width]");
    *y_out = plait_shape_4(x->shape.dim[0], x->shape.dim[1], out_length(call->attr, 0, x->shape.dim[2]),
                           out_length(call->attr, 1, x->shape.dim[3]));
    if (y_out->dim[2] == -2 || y_out->dim[3] == -2)
        return plait_call_fail(call, PLAIT_ESHAPE, "the window is larger than the padded image");
    return PLAIT_OK;
}

pli_pooling pli_pooling_of(const plait_attr *attrs, const plait_shape *x) {
    pli_pooling p = { .planes = x->dim[0] * x->dim[1] };
    for (int i = 0; i < 2; i++) {
        p.in[i] = x->dim[2 + i];
        p.out[i] = out_length(attrs, i, p.in[i]);
        p.window[i] = attrs[PLI_POOLING_WINDOW].u.ints[i];
        p.stride[i] = stride_of(attrs)[i];
        p.before[i] = attrs[PLI_POOLING_PADDING].u.ints[i];
    }
    return p;
}
