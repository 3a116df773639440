/* conv2d: convolves images with filters (conv.h). With G = dy: dx = conv2d_input(w, G, x), dw = conv2d_filter(x, G,
 * w). */
#include "graph/conv.h"
#include "tensor/gemm/gemm.h"
#include "graph/ops/ops.h"
#include "graph/region.h"

static plait_status infer(const plait_call *call) {
    call->out[0].type = call->in[0].type;
    return pli_conv_infer(call, &call->in[0], &call->in[1], &call->out[0].shape);
}

static pli_conv conv_of(const plait_call *call) {
    return pli_conv_of(call->attr, &call->in[0].shape, &call->in[1].shape);
}

/* --- reference: an item is a filter of an image ------------------------------------------------------------------ */

static int64_t ref_items(const plait_call *call) { return call->out[0].shape.dim[0] * call->out[0].shape.dim[1]; }

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  image = item / (c.groups * c.filters), filter = item % (c.groups * c.filters);
    const int64_t  x = (image * c.groups + filter / c.filters) * c.channels, plane = c.out[0] * c.out[1];
    for (int64_t p = 0; p < plane; p++) {
        double sum = 0;
        for (int64_t k = 0; k < c.taps; k++) {
            const int64_t channel = k / (c.tap[0] * c.tap[1]), r = k / c.tap[1] % c.tap[0], s = k % c.tap[1];
            const int64_t i = p / c.out[1] * c.stride[0] - c.before[0] + r * c.dilation[0];
            const int64_t j = p % c.out[1] * c.stride[1] - c.before[1] + s * c.dilation[1];
            if (i < 0 || i >= c.in[0] || j < 0 || j >= c.in[1]) continue;
            sum += pli_element(&call->in[0], ((x + channel) * c.in[0] + i) * c.in[1] + j) *
                   pli_element(&call->in[1], filter * c.taps + k);
        }
        pli_element_set(&call->out[0], item * plane + p, sum);
    }
    return PLAIT_OK;
}

/* --- columns: an item is some output rows of a group of an image -------------------------------------------------- */

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

static int64_t blocks(const pli_conv *c) {
    const int64_t rows = pli_conv_rows(c, c->taps);
    return (c->out[0] + rows - 1) / rows;
}

static int64_t columns_items(const plait_call *call) {
    const pli_conv c = conv_of(call);
    return c.images * c.groups * blocks(&c);
}

/* Do filters have one element and stride one? Then the image itself serves as columns. */
static bool is_pointwise(const pli_conv *c) {
    return c->tap[0] == 1 && c->tap[1] == 1 && c->stride[0] == 1 && c->stride[1] == 1 && c->out[0] == c->in[0] &&
           c->out[1] == c->in[1] && c->before[0] == 0 && c->before[1] == 0;
}

static size_t columns_scratch(const plait_call *call) {
    const pli_conv c = conv_of(call);
    return is_pointwise(&c) ? 0 : sizeof(float) * (size_t)(c.taps * pli_conv_rows(&c, c.taps) * c.out[1]);
}

static plait_status columns_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  each = pli_conv_rows(&c, c.taps), n = blocks(&c), first = item % n * each,
                  group = item / n % c.groups;
    const int64_t rows = c.out[0] - first < each ? c.out[0] - first : each, plane = c.out[0] * c.out[1],
                  image_group = item / n;
    const float *x = (const float *)call->in[0].data + image_group * c.channels * c.in[0] * c.in[1],
                *column = x + first * c.out[1];
    const float *w = (const float *)call->in[1].data + group * c.filters * c.taps;
    float       *y = (float *)call->out[0].data + image_group * c.filters * plane + first * c.out[1];
    const bool   pointwise = is_pointwise(&c);
    if (!pointwise) {
        pli_im2col_f32(&c, c.channels, x, first, rows, call->scratch);
        column = call->scratch;
    }
    pli_gemm_f32(false, false, c.filters, rows * c.out[1], c.taps, w, c.taps, column,
                 pointwise ? plane : rows * c.out[1], 0, y, plane);
    return PLAIT_OK;
}

/* An item makes some rows of each filter's plane. */
pli_region pli_conv2d_region(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const int64_t  each = pli_conv_rows(&c, c.taps), n = blocks(&c), first = item % n * each,
                  plane = c.out[0] * c.out[1];
    const int64_t rows = c.out[0] - first < each ? c.out[0] - first : each;
    return (pli_region){ item / n * c.filters * plane + first * c.out[1], rows * c.out[1], plane, c.filters };
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) {
    const plait_value by_x[] = { at->in[1], at->d_out[0], at->in[0] }, by_w[] = { at->in[0], at->d_out[0], at->in[1] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_conv2d_input, by_x, 3, at->attr);
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_conv2d_filter, by_w, 3, at->attr);
}

static double flops(const plait_call *call) {
    return 2.0 * (double)plait_shape_elements(&call->out[0].shape) * (double)conv_of(call).taps;
}

const plait_kernel               pli_conv2d_columns = { .name = "columns f32",
                                                        .suits = columns_suits,
                                                        .open = columns_open,
                                                        .scratch = columns_scratch,
                                                        .items = columns_items,
                                                        .run = columns_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &pli_conv2d_columns, &ref, NULL };

const plait_op pli_op_conv2d = {
    .size = sizeof(plait_op),
    .name = "conv2d",
    .summary = "filters over images",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_conv_attrs,
    .n_attrs = PLI_CONV_ATTRS,
    .infer = infer,
    .gradient = gradient,
    .flops = flops,
    .kernels = kernels,
};
