/* Infers shape and type of random ops, and has their only kernel: each item is a piece with its own stream. */
#include "graph/random.h"

enum { SHAPE, TYPE };

plait_status pli_infer_random(const plait_call *call) {
    const plait_attr *shape = &call->attr[SHAPE];
    const plait_type  type = (plait_type)call->attr[TYPE].u.i;
    plait_tensor     *out = &call->out[0];
    if (!pli_type_is_float(type))
        return plait_call_fail(call, PLAIT_ESHAPE, "random numbers are floats, not %s; cast them",
                               plait_type_name(type));
    if (call->n_in > 0) {
        *out = (plait_tensor){ .type = type, .shape = call->in[0].shape };
        return PLAIT_OK;
    }
    *out = (plait_tensor){ .type = type, .shape = { .rank = shape->n } };
    if (shape->n > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "%d axes; at most %d", shape->n, PLAIT_RANK_MAX);
    for (int32_t i = 0; i < shape->n; i++) {
        out->shape.dim[i] = shape->u.ints[i];
        if (shape->u.ints[i] < 0)
            return plait_call_fail(call, PLAIT_ESHAPE, "a length of %lld; give an input of the shape",
                                   (long long)shape->u.ints[i]);
    }
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    const pli_draw *draw = call->user;
    int64_t         first;
    const int64_t   n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    pli_random      random = pli_random_at(call->seed, PLI_RANDOM_GRAPH, call->step, (uint64_t)item);
    for (int64_t i = first; i < first + n; i++) pli_element_set(&call->out[0], i, draw->number(&random, call->attr));
    return PLAIT_OK;
}

static const plait_kernel ref = { .name = "ref", .items = pli_items_by_output, .run = run };
const plait_kernel *const pli_random_kernels[] = { &ref, NULL };
