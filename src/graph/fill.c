/* The two kernels: elements of any type, and a plain loop for floats. */
#include "graph/fill.h"

static plait_status run(const plait_call *call, int64_t item) {
    const double  number = *(const double *)call->user;
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    for (int64_t i = first; i < first + n; i++) pli_element_set(&call->out[0], i, number);
    return PLAIT_OK;
}

static plait_status run_f32(const plait_call *call, int64_t item) {
    const float   number = (float)*(const double *)call->user;
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    float        *y = (float *)call->out[0].data + first;
    for (int64_t i = 0; i < n; i++) y[i] = number;
    return PLAIT_OK;
}

static int is_f32(const plait_call *call) { return call->out[0].type == PLAIT_F32; }

static const plait_kernel f32 = { .name = "f32", .suits = is_f32, .items = pli_items_by_output, .run = run_f32 };
static const plait_kernel ref = { .name = "ref", .items = pli_items_by_output, .run = run };
const plait_kernel *const pli_fill_kernels[] = { &f32, &ref, NULL };
