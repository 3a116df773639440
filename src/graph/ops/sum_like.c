/* sum_like: input 0 summed over the axes along which input 1's shape would broadcast to it: the gradient of broadcasting, and of
 * which only the shape of input 1 is needed. Sums of floats are taken in double, in the order of the elements. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    plait_shape wide;
    if (!pli_broadcast(&call->in[0].shape, &call->in[1].shape, &wide) || wide.rank != call->in[0].shape.rank)
        return plait_call_fail(call, PLAIT_ESHAPE, "input 1 does not broadcast to input 0");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[1].shape };
    return PLAIT_OK;
}

/* An item is an output element: a walk over the places of input 0 that it came to. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_shape *from = &call->in[0].shape, *to = &call->out[0].shape;
    int64_t            stride[PLAIT_RANK_MAX], out_stride[PLAIT_RANK_MAX], at[PLAIT_RANK_MAX] = { 0 }, base = 0, step = 0;
    pli_strides(from, stride);
    pli_strides(to, out_stride);
    bool summed[PLAIT_RANK_MAX];
    for (int32_t i = 0; i < from->rank; i++) {
        const int32_t k = i - (from->rank - to->rank);
        summed[i] = k < 0 || (to->dim[k] == 1 && from->dim[i] != 1);
        if (!summed[i]) base += item / out_stride[k] % to->dim[k] * stride[i];
    }
    double sum = 0;
    for (bool more = plait_shape_elements(from) > 0; more;) {
        sum += pli_element(&call->in[0], base + step);
        more = false;
        for (int32_t i = from->rank - 1; i >= 0 && !more; i--) {
            if (!summed[i]) continue;
            step += stride[i];
            more = ++at[i] < from->dim[i];
            if (more) break;
            step -= stride[i] * from->dim[i];
            at[i] = 0;
        }
    }
    pli_element_set(&call->out[0], item, sum);
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return plait_shape_elements(&call->out[0].shape); }

static void gradient(const plait_gradient *at) {
    at->d_in[0] = pli_op2(at->graph, &pli_op_broadcast_like, at->d_out[0], at->in[0]);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_sum_like = {
    .size = sizeof(plait_op),
    .name = "sum_like",
    .summary = "a sum down to the shape of input 1",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .shape_only = 2,
    .infer = infer,
    .gradient = gradient,
    .kernels = kernels,
};
