/* conv2d_input: the derivative of conv2d by its images, from filters w and dy. Only the shape of input 2 is used; the
 * output has it. It is linear in w and dy; with U its derivative: d/dw = conv2d_filter(U, dy, w), d/d(dy) =
 * conv2d(U, w). */
#include <string.h>

#include "graph/conv.h"
#include "tensor/gemm/gemm.h"
#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/region.h"

static plait_status infer(const plait_call *call) {
    plait_shape y;
    PLI_TRY(pli_conv_infer(call, &call->in[2], &call->in[0], &y));
    if (call->in[1].type != call->in[0].type || !pli_shapes_agree(&y, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 is not of the shape of the convolution's output");
    call->out[0] = (plait_tensor){ .type = call->in[2].type, .shape = call->in[2].shape };
    return PLAIT_OK;
}

static pli_conv conv_of(const plait_call *call) {
    return pli_conv_of(call->attr, &call->in[2].shape, &call->in[0].shape);
}

/* --- reference: an item is a channel of an image; each place gathers from the outputs that saw it --------------- */

static int64_t ref_items(const plait_call *call) { return call->out[0].shape.dim[0] * call->out[0].shape.dim[1]; }

/* The output, along one axis, that reads place `at` through tap t; -1: none. */
static int64_t seen_by(const pli_conv *c, int axis, int64_t at, int64_t t) {
    const int64_t from = at + c->before[axis] - t * c->dilation[axis];
    return from >= 0 && from % c->stride[axis] == 0 && from / c->stride[axis] < c->out[axis] ? from / c->stride[axis]
                                                                                             : -1;
}

static double sum_at(const plait_call *call, const pli_conv *c, int64_t image_group, int64_t channel, int64_t p) {
    const int64_t group = image_group % c->groups;
    double        sum = 0;
    for (int64_t r = 0; r < c->tap[0]; r++) {
        for (int64_t s = 0; s < c->tap[1]; s++) {
            const int64_t i = seen_by(c, 0, p / c->in[1], r), j = seen_by(c, 1, p % c->in[1], s);
            for (int64_t m = 0; i >= 0 && j >= 0 && m < c->filters; m++)
                sum +=
                    pli_element(&call->in[0],
                                (((group * c->filters + m) * c->channels + channel) * c->tap[0] + r) * c->tap[1] + s) *
                    pli_element(&call->in[1], ((image_group * c->filters + m) * c->out[0] + i) * c->out[1] + j);
        }
    }
    return sum;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  plane = c.in[0] * c.in[1];
    for (int64_t p = 0; p < plane; p++)
        pli_element_set(&call->out[0], item * plane + p, sum_at(call, &c, item / c.channels, item % c.channels, p));
    return PLAIT_OK;
}

/* --- columns: an item is a group of an image -------------------------------------------------------------------- */

static int columns_suits(const plait_call *call) {
    const pli_conv c = conv_of(call);
    return call->in[0].type == PLAIT_F32 && pli_gemm_fits(c.filters, c.out[0] * c.out[1], c.taps);
}

static plait_status columns_open(const plait_call *call, void **state_out) {
    (void)call;
    (void)state_out;
    pli_gemm_open();
    return PLAIT_OK;
}

static int64_t columns_items(const plait_call *call) {
    const pli_conv c = conv_of(call);
    return c.images * c.groups;
}

static size_t columns_scratch(const plait_call *call) {
    const pli_conv c = conv_of(call);
    return sizeof(float) * (size_t)(c.taps * pli_conv_rows(&c, c.taps) * c.out[1]);
}

static plait_status columns_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  each = pli_conv_rows(&c, c.taps), plane = c.out[0] * c.out[1], size = c.channels * c.in[0] * c.in[1];
    const float   *w = (const float *)call->in[0].data + item % c.groups * c.filters * c.taps;
    const float   *dy = (const float *)call->in[1].data + item * c.filters * plane;
    float         *dx = (float *)call->out[0].data + item * size;
    memset(dx, 0, (size_t)size * sizeof *dx);
    for (int64_t first = 0; first < c.out[0]; first += each) {
        const int64_t rows = c.out[0] - first < each ? c.out[0] - first : each, n = rows * c.out[1];
        pli_gemm_f32(true, false, c.taps, n, c.filters, w, c.taps, dy + first * c.out[1], plane, 0, call->scratch, n);
        pli_col2im_f32(&c, c.channels, call->scratch, first, rows, dx);
    }
    return PLAIT_OK;
}

pli_region pli_conv2d_input_region(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  size = c.channels * c.in[0] * c.in[1];
    return (pli_region){ item * size, size, 0, 1 };
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) {
    const plait_value by_w[] = { at->d_out[0], at->in[1], at->in[0] }, by_dy[] = { at->d_out[0], at->in[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_conv2d_filter, by_w, 3, at->attr);
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_conv2d, by_dy, 2, at->attr);
}

static double flops(const plait_call *call) {
    return 2.0 * (double)plait_shape_elements(&call->in[1].shape) * (double)conv_of(call).taps;
}

const plait_kernel               pli_conv2d_input_columns = { .name = "columns f32",
                                                              .suits = columns_suits,
                                                              .open = columns_open,
                                                              .scratch = columns_scratch,
                                                              .items = columns_items,
                                                              .run = columns_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &pli_conv2d_input_columns, &ref, NULL };

const plait_op pli_op_conv2d_input = {
    .size = sizeof(plait_op),
    .name = "conv2d_input",
    .summary = "conv2d's derivative by its images",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = pli_conv_attrs,
    .n_attrs = PLI_CONV_ATTRS,
    .shape_only = 4,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
