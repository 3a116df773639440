/* avg_pool2d_gradient: spreads each window's dy (input 1) evenly over the part of the window that lies in the image.
 * Only the shape of input 0 is used; the output has it. It is linear; with U its derivative: d/d(dy) =
 * avg_pool2d(U). */
#include "graph/lines.h"
#include "graph/ops/ops.h"
#include "graph/pooling.h"

static plait_status infer(const plait_call *call) {
    plait_shape y;
    PLI_TRY(pli_pooling_infer(call, &call->in[0], &y));
    if (call->in[1].type != call->in[0].type || !pli_shapes_agree(&y, &call->in[1].shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 is not of the shape of the pooled image");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    return pli_pooling_items(&p);
}

static plait_status ref_run(const plait_call *call, int64_t item) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    int64_t        first, from[2], end[2];
    const int64_t  n = pli_pooling_piece(&p, item, &first), size = p.out[0] * p.out[1], plane = p.in[0] * p.in[1];
    for (int64_t i = first * plane; i < (first + n) * plane; i++) pli_element_set(&call->out[0], i, 0);
    for (int64_t o = first * size; o < (first + n) * size; o++) {
        pli_pooling_window(&p, o % size / p.out[1], o % p.out[1], from, end);
        const double share = pli_element(&call->in[1], o) / (double)((end[0] - from[0]) * (end[1] - from[1]));
        for (int64_t i = from[0]; i < end[0]; i++)
            for (int64_t j = from[1]; j < end[1]; j++) {
                const int64_t at = o / size * plane + i * p.in[1] + j;
                pli_element_set(&call->out[0], at, pli_element(&call->out[0], at) + share);
            }
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    int64_t        first, from[2], end[2];
    const int64_t  n = pli_pooling_piece(&p, item, &first), size = p.out[0] * p.out[1], area = p.in[0] * p.in[1];
    const float   *dy = (const float *)call->in[1].data + first * size;
    for (int64_t plane = first; plane < first + n; plane++) {
        float *dx = (float *)call->out[0].data + plane * area;
        for (int64_t i = 0; i < area; i++) dx[i] = 0;
        for (int64_t o = 0; o < size; o++) {
            pli_pooling_window(&p, o / p.out[1], o % p.out[1], from, end);
            const float share = *dy++ / (float)((end[0] - from[0]) * (end[1] - from[1]));
            for (int64_t i = from[0]; i < end[0]; i++)
                for (int64_t j = from[1]; j < end[1]; j++) dx[i * p.in[1] + j] += share;
        }
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_avg_pool2d, at->d_out, 1, at->attr);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_avg_pool2d_gradient = {
    .size = sizeof(plait_op),
    .name = "avg_pool2d_gradient",
    .summary = "avg_pool2d's derivative by its images",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_pooling_attrs,
    .n_attrs = PLI_POOLING_ATTRS,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_window,
    .kernels = kernels,
};
