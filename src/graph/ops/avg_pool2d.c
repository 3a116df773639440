/* avg_pool2d: the mean of the part of each window that lies in the image (padding is not counted). With G = dy: dx =
 * avg_pool2d_gradient(x, G). */
#include "graph/ops/ops.h"
#include "graph/pooling.h"

static plait_status infer(const plait_call *call) {
    call->out[0].type = call->in[0].type;
    return pli_pooling_infer(call, &call->in[0], &call->out[0].shape);
}

static int64_t items(const plait_call *call) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    return pli_pooling_items(&p);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    int64_t        first, from[2], end[2];
    const int64_t  n = pli_pooling_piece(&p, item, &first), size = p.out[0] * p.out[1];
    for (int64_t o = first * size; o < (first + n) * size; o++) {
        double sum = 0;
        pli_pooling_window(&p, o % size / p.out[1], o % p.out[1], from, end);
        for (int64_t i = from[0]; i < end[0]; i++)
            for (int64_t j = from[1]; j < end[1]; j++)
                sum += pli_element(&call->in[0], o / size * p.in[0] * p.in[1] + i * p.in[1] + j);
        pli_element_set(&call->out[0], o, sum / (double)((end[0] - from[0]) * (end[1] - from[1])));
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    int64_t        first, from[2], end[2];
    const int64_t  n = pli_pooling_piece(&p, item, &first), size = p.out[0] * p.out[1];
    float         *y = (float *)call->out[0].data + first * size;
    for (int64_t plane = first; plane < first + n; plane++) {
        const float *x = (const float *)call->in[0].data + plane * p.in[0] * p.in[1];
        for (int64_t o = 0; o < size; o++) {
            float sum = 0;
            pli_pooling_window(&p, o / p.out[1], o % p.out[1], from, end);
            for (int64_t i = from[0]; i < end[0]; i++)
                for (int64_t j = from[1]; j < end[1]; j++) sum += x[i * p.in[1] + j];
            *y++ = sum / (float)((end[0] - from[0]) * (end[1] - from[1]));
        }
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_avg_pool2d_gradient, in, 2, at->attr);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_avg_pool2d = {
    .size = sizeof(plait_op),
    .name = "avg_pool2d",
    .summary = "the mean of each window of an image",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_pooling_attrs,
    .n_attrs = PLI_POOLING_ATTRS,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_window,
    .kernels = kernels,
};
