/* cast: the same elements in another type. Floats are rounded to nearest, even on ties. From float to integer the
 * fraction is dropped, the range is clipped, and NaN becomes 0. All numbers but 0 become the bool true. The gradient
 * between floats is cast back. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "type", .kind = PLAIT_ATTR_TYPE }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    const plait_type to = (plait_type)call->attr[0].u.i;
    if (to == PLAIT_U8) return plait_call_fail(call, PLAIT_ESHAPE, "graphs do not compute with u8");
    call->out[0] = (plait_tensor){ .type = to, .shape = call->in[0].shape };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *x = &call->in[0], *y = &call->out[0];
    int64_t             first;
    const int64_t       n = pli_item_piece(plait_shape_elements(&y->shape), item, &first);
    const bool          whole = !pli_type_is_float(x->type) && !pli_type_is_float(y->type); /* all 64 bits count */
    for (int64_t i = first; i < first + n; i++)
        if (whole)
            pli_element_set_int(y, i, pli_element_int(x, i));
        else
            pli_element_set(y, i, pli_element(x, i));
    return PLAIT_OK;
}

static int is_f32_to_bf16(const plait_call *call) {
    return call->in[0].type == PLAIT_F32 && call->out[0].type == PLAIT_BF16;
}
static int is_bf16_to_f32(const plait_call *call) {
    return call->in[0].type == PLAIT_BF16 && call->out[0].type == PLAIT_F32;
}
static int is_bool_to_f32(const plait_call *call) {
    return call->in[0].type == PLAIT_BOOL && call->out[0].type == PLAIT_F32;
}

static plait_status run_f32_to_bf16(const plait_call *call, int64_t item) {
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    const float  *x = (const float *)call->in[0].data + first;
    uint16_t     *y = (uint16_t *)call->out[0].data + first;
    for (int64_t i = 0; i < n; i++) y[i] = pli_bf16_of_f32(x[i]);
    return PLAIT_OK;
}

static plait_status run_bf16_to_f32(const plait_call *call, int64_t item) {
    int64_t         first;
    const int64_t   n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    const uint16_t *x = (const uint16_t *)call->in[0].data + first;
    float          *y = (float *)call->out[0].data + first;
    for (int64_t i = 0; i < n; i++) y[i] = pli_bf16_to_f32(x[i]);
    return PLAIT_OK;
}

static plait_status run_bool_to_f32(const plait_call *call, int64_t item) {
    int64_t        first;
    const int64_t  n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    const uint8_t *x = (const uint8_t *)call->in[0].data + first;
    float         *y = (float *)call->out[0].data + first;
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_type type = (plait_type)at->graph->value[at->in[0]].type;
    if (!pli_type_is_float(type)) return;
    const plait_attr back = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = type };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_cast, &at->d_out[0], 1, &back);
}

static const plait_kernel f32_to_bf16 = {
    .name = "f32 to bf16", .suits = is_f32_to_bf16, .items = pli_items_by_output, .run = run_f32_to_bf16
};
static const plait_kernel bf16_to_f32 = {
    .name = "bf16 to f32", .suits = is_bf16_to_f32, .items = pli_items_by_output, .run = run_bf16_to_f32
};
static const plait_kernel bool_to_f32 = {
    .name = "bool to f32", .suits = is_bool_to_f32, .items = pli_items_by_output, .run = run_bool_to_f32
};
static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &f32_to_bf16, &bf16_to_f32, &bool_to_f32, &ref, NULL };

const plait_op pli_op_cast = {
    .size = sizeof(plait_op),
    .name = "cast",
    .summary = "the same elements in another type",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .in_place = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
