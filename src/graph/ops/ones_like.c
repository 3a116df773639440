/* ones_like: ones in the type and shape of the input, whose values are not needed. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = call->in[0].shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    for (int64_t i = first; i < first + n; i++) pli_element_set(&call->out[0], i, 1);
    return PLAIT_OK;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    float        *y = (float *)call->out[0].data + first;
    for (int64_t i = 0; i < n; i++) y[i] = 1;
    return PLAIT_OK;
}

static int is_f32(const plait_call *call) { return call->out[0].type == PLAIT_F32; }

static const plait_kernel        f32 = { .name = "f32", .suits = is_f32, .items = pli_items_by_output, .run = run_f32 };
static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_ones_like = {
    .size = sizeof(plait_op),
    .name = "ones_like",
    .summary = "ones in the shape of the input",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .shape_only = 1,
    .infer = infer,
    .kernels = kernels,
};
