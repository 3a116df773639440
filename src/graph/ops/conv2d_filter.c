/* conv2d_filter: the derivative of conv2d by its filters, from images x and dy. Only the shape of input 2 is used; the
 * output has it. It is linear in x and dy; with U its derivative: dx = conv2d_input(U, dy, x), d/d(dy) = conv2d(x,
 * U). */
#include <string.h>

#include "graph/conv.h"
#include "tensor/gemm/gemm.h"
#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/region.h"

static plait_status infer(const plait_call *call) {
    plait_shape y;
    PLI_TRY(pli_conv_infer(call, &call->in[0], &call->in[2], &y));
    if (call->in[1].type != call->in[0].type || !pli_shapes_agree(&y, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 is not of the shape of the convolution's output");
    call->out[0] = (plait_tensor){ .type = call->in[2].type, .shape = call->in[2].shape };
    return PLAIT_OK;
}

static pli_conv conv_of(const plait_call *call) {
    return pli_conv_of(call->attr, &call->in[0].shape, &call->in[2].shape);
}

/* --- reference: an item is a filter ----------------------------------------------------------------------------- */

static int64_t ref_items(const plait_call *call) { return call->out[0].shape.dim[0]; }

static double sum_of(const plait_call *call, const pli_conv *c, int64_t filter, int64_t k) {
    const int64_t group = filter / c->filters, channel = k / (c->tap[0] * c->tap[1]), plane = c->out[0] * c->out[1];
    const int64_t r = k / c->tap[1] % c->tap[0], s = k % c->tap[1];
    double        sum = 0;
    for (int64_t image = 0; image < c->images; image++) {
        for (int64_t p = 0; p < plane; p++) {
            const int64_t i = p / c->out[1] * c->stride[0] - c->before[0] + r * c->dilation[0];
            const int64_t j = p % c->out[1] * c->stride[1] - c->before[1] + s * c->dilation[1];
            if (i < 0 || i >= c->in[0] || j < 0 || j >= c->in[1]) continue;
            sum += pli_element(&call->in[0],
                               (((image * c->groups + group) * c->channels + channel) * c->in[0] + i) * c->in[1] + j) *
                   pli_element(&call->in[1], (image * c->groups * c->filters + filter) * plane + p);
        }
    }
    return sum;
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    for (int64_t k = 0; k < c.taps; k++) pli_element_set(&call->out[0], item * c.taps + k, sum_of(call, &c, item, k));
    return PLAIT_OK;
}

/* columns: an item is some channels of some filters of a group. Two items make the same columns only if there are few
 * channels, so that filters are divided, too. */

enum { CHANNELS = 8, FILTERS = 16 };

typedef struct cut {
    int64_t channels, filters, channel_blocks, filter_blocks;
} cut;

static cut cut_of(const pli_conv *c) {
    cut at = { .channels = c->channels < CHANNELS ? c->channels : CHANNELS, .filters = c->filters };
    if (at.channels < 1) at.channels = 1;
    at.channel_blocks = (c->channels + at.channels - 1) / at.channels;
    if (at.channel_blocks < 4 && at.filters > FILTERS) at.filters = FILTERS;
    at.filter_blocks = at.filters > 0 ? (c->filters + at.filters - 1) / at.filters : 0;
    return at;
}

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
    const cut      at = cut_of(&c);
    return c.groups * at.channel_blocks * at.filter_blocks;
}

static size_t columns_scratch(const plait_call *call) {
    const pli_conv c = conv_of(call);
    const int64_t  taps = cut_of(&c).channels * c.tap[0] * c.tap[1];
    return sizeof(float) * (size_t)(taps * pli_conv_rows(&c, taps) * c.out[1]);
}

/* The part of dw that an item makes: some filters and channels of a group, from a first tap on. */
typedef struct part {
    int64_t group, filter, filters, channel, channels, area;
} part;

static part part_of(const pli_conv *c, int64_t item) {
    const cut at = cut_of(c);
    part      p = { .group = item / (at.filter_blocks * at.channel_blocks),
                    .filter = item % at.filter_blocks * at.filters,
                    .channel = item / at.filter_blocks % at.channel_blocks * at.channels,
                    .area = c->tap[0] * c->tap[1] };
    p.filters = c->filters - p.filter < at.filters ? c->filters - p.filter : at.filters;
    p.channels = c->channels - p.channel < at.channels ? c->channels - p.channel : at.channels;
    return p;
}

static int64_t first_tap(const pli_conv *c, const part *p) {
    return (p->group * c->filters + p->filter) * c->taps + p->channel * p->area;
}

pli_region pli_conv2d_filter_region(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const part     p = part_of(&c, item);
    return (pli_region){ first_tap(&c, &p), p.channels * p.area, c.taps, p.filters };
}

static plait_status columns_run(const plait_call *call, int64_t item) {
    const pli_conv c = conv_of(call);
    const part     p = part_of(&c, item);
    const int64_t  group = p.group, filter = p.filter, filters = p.filters, channel = p.channel, channels = p.channels,
                  plane = c.out[0] * c.out[1];
    const int64_t taps = channels * p.area, each = pli_conv_rows(&c, cut_of(&c).channels * p.area);
    float        *dw = (float *)call->out[0].data + first_tap(&c, &p);
    float         beta = 0;
    for (int64_t m = 0; c.images == 0 && m < filters; m++) memset(dw + m * c.taps, 0, (size_t)taps * sizeof *dw);
    for (int64_t image = 0; image < c.images; image++) {
        const float *x =
            (const float *)call->in[0].data + ((image * c.groups + group) * c.channels + channel) * c.in[0] * c.in[1];
        const float *dy = (const float *)call->in[1].data + ((image * c.groups + group) * c.filters + filter) * plane;
        for (int64_t first = 0; first < c.out[0]; first += each, beta = 1) {
            const int64_t rows = c.out[0] - first < each ? c.out[0] - first : each, n = rows * c.out[1];
            pli_im2col_f32(&c, channels, x, first, rows, call->scratch);
            pli_gemm_f32(false, true, filters, taps, n, dy + first * c.out[1], plane, call->scratch, n, beta, dw,
                         c.taps);
        }
    }
    return PLAIT_OK;
}

/* --- the op ------------------------------------------------------------------------------------------------------- */

static void gradient(const plait_gradient *at) {
    const plait_value by_x[] = { at->d_out[0], at->in[1], at->in[0] }, by_dy[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_conv2d_input, by_x, 3, at->attr);
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_conv2d, by_dy, 2, at->attr);
}

static double flops(const plait_call *call) {
    return 2.0 * (double)plait_shape_elements(&call->in[1].shape) * (double)conv_of(call).taps;
}

const plait_kernel               pli_conv2d_filter_columns = { .name = "columns f32",
                                                               .suits = columns_suits,
                                                               .open = columns_open,
                                                               .scratch = columns_scratch,
                                                               .items = columns_items,
                                                               .run = columns_run };
static const plait_kernel        ref = { .name = "ref", .items = ref_items, .run = ref_run };
static const plait_kernel *const kernels[] = { &pli_conv2d_filter_columns, &ref, NULL };

const plait_op pli_op_conv2d_filter = {
    .size = sizeof(plait_op),
    .name = "conv2d_filter",
    .summary = "conv2d's derivative by its filters",
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
