/* max_pool2d: the largest element of each window; output 1 is its position in the plane (i32; the first of equal ones).
 * With G = dy: dx = plane_scatter(x, index, G). A NaN counts as larger than all numbers. */
#include <math.h>

#include "graph/ops/ops.h"
#include "graph/pooling.h"

static plait_status infer(const plait_call *call) {
    plait_shape y;
    PLI_TRY(pli_pooling_infer(call, &call->in[0], &y));
    if ((double)call->in[0].shape.dim[2] * (double)call->in[0].shape.dim[3] > INT32_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "planes of more than 2^31 elements");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = y };
    call->out[1] = (plait_tensor){ .type = PLAIT_I32, .shape = y };
    return PLAIT_OK;
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
        const int64_t plane = o / size * p.in[0] * p.in[1];
        pli_pooling_window(&p, o % size / p.out[1], o % p.out[1], from, end);
        int64_t best = from[0] * p.in[1] + from[1];
        for (int64_t i = from[0]; i < end[0]; i++)
            for (int64_t j = from[1]; j < end[1]; j++) {
                const double x = pli_element(&call->in[0], plane + i * p.in[1] + j),
                             top = pli_element(&call->in[0], plane + best);
                if (x > top || (isnan(x) && !isnan(top))) best = i * p.in[1] + j;
            }
        pli_element_set(&call->out[0], o, pli_element(&call->in[0], plane + best));
        ((int32_t *)call->out[1].data)[o] = (int32_t)best;
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

/* Tap s of a row of windows: the outputs j, first .. end - 1, whose tap lies in the image, and the x of the first. */
static void tap(const pli_pooling *p, int64_t s, int64_t *first_out, int64_t *end_out) {
    const int64_t stride = p->stride[1], shift = s - p->before[1];
    const int64_t first = shift >= 0 ? 0 : (stride - 1 - shift) / stride;
    const int64_t end = p->in[1] > shift ? (p->in[1] - shift + stride - 1) / stride : 0;
    *first_out = first;
    *end_out = end < p->out[1] ? end : p->out[1];
}

/* Each of n outputs takes its element of x, which lie `stride` apart, if that is larger. */
static void take(int64_t n, const float *restrict x, int64_t stride, int32_t at, float *restrict y,
                 int32_t *restrict index) {
    for (int64_t j = 0; j < n; j++) {
        const float value = x[j * stride];
        const bool  more = (value > y[j]) | ((value != value) & (y[j] == y[j]));
        y[j] = more ? value : y[j];
        index[j] = more ? at + (int32_t)(j * stride) : index[j];
    }
}

/* Computes a row of outputs tap by tap, so that neighbours are compared in vectors. */
static void row_of(const pli_pooling *p, const float *x, int64_t i, float *y, int32_t *index) {
    int64_t from[2], end[2], first, last;
    for (int64_t j = 0; j < p->out[1]; j++) {
        pli_pooling_window(p, i, j, from, end);
        y[j] = -INFINITY;
        index[j] = (int32_t)(from[0] * p->in[1] + from[1]);
    }
    pli_pooling_window(p, i, 0, from, end);
    for (int64_t r = from[0]; r < end[0]; r++) {
        for (int64_t s = 0; s < p->window[1]; s++) {
            tap(p, s, &first, &last);
            const int64_t at = r * p->in[1] + first * p->stride[1] + s - p->before[1];
            if (first < last) take(last - first, x + at, p->stride[1], (int32_t)at, y + first, index + first);
        }
    }
}

static plait_status f32_run(const plait_call *call, int64_t item) {
    const pli_pooling p = pli_pooling_of(call->attr, &call->in[0].shape);
    int64_t        first;
    const int64_t  n = pli_pooling_piece(&p, item, &first);
    for (int64_t plane = first; plane < first + n; plane++) {
        const float *x = (const float *)call->in[0].data + plane * p.in[0] * p.in[1];
        for (int64_t i = 0; i < p.out[0]; i++) {
            const int64_t at = (plane * p.out[0] + i) * p.out[1];
            row_of(&p, x, i, (float *)call->out[0].data + at, (int32_t *)call->out[1].data + at);
        }
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->out[1], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_plane_scatter, in, 3, NULL);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_max_pool2d = {
    .size = sizeof(plait_op),
    .name = "max_pool2d",
    .summary = "the largest of each window of an image",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .attrs = pli_pooling_attrs,
    .n_attrs = PLI_POOLING_ATTRS,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_window,
    .kernels = kernels,
};
