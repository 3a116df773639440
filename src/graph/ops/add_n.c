/* add_n: the sum of any number of arrays of one type and shape, in their order. The gradient of a vertex is this sum of
 * the partials of its edges. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    plait_tensor *out = &call->out[0];
    *out = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    for (int32_t k = 1; k < call->n_in; k++) {
        const plait_tensor *in = &call->in[k];
        if (in->type != out->type || in->shape.rank != out->shape.rank)
            return plait_call_fail(call, PLAIT_ESHAPE, "inputs of one type and shape only");
        for (int32_t i = 0; i < out->shape.rank; i++) {
            if (out->shape.dim[i] == PLAIT_ANY) out->shape.dim[i] = in->shape.dim[i];
            if (in->shape.dim[i] != out->shape.dim[i] && in->shape.dim[i] != PLAIT_ANY)
                return plait_call_fail(call, PLAIT_ESHAPE, "inputs of one type and shape only");
        }
    }
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    for (int64_t i = first; i < first + n; i++) {
        double sum = 0;
        for (int32_t k = 0; k < call->n_in; k++) sum += pli_element(&call->in[k], i);
        pli_element_set(&call->out[0], i, sum);
    }
    return PLAIT_OK;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    float        *y = (float *)call->out[0].data + first;
    memmove(y, (const float *)call->in[0].data + first, (size_t)n * sizeof *y);
    for (int32_t k = 1; k < call->n_in; k++) {
        const float *x = (const float *)call->in[k].data + first;
        for (int64_t i = 0; i < n; i++) y[i] += x[i];
    }
    return PLAIT_OK;
}

static int is_f32(const plait_call *call) { return call->out[0].type == PLAIT_F32; }

static void gradient(const plait_gradient *at) {
    for (int32_t k = 0; k < at->n_in; k++) at->d_in[k] = at->d_out[0];
}

static const plait_kernel        f32 = { .name = "f32", .suits = is_f32, .items = pli_items_by_output, .run = run_f32 };
static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_add_n = {
    .size = sizeof(plait_op),
    .name = "add_n",
    .summary = "the sum of arrays of one shape",
    .min_inputs = 1,
    .max_inputs = INT32_MAX,
    .outputs = 1,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_adds,
    .kernels = kernels,
};
