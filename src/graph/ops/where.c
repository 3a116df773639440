/* where: a where a condition (bool) holds, else b; all three are broadcast. The gradient goes to the one that was
 * taken. */
#include <string.h>

#include "graph/kernel.h"
#include "graph/ops/ops.h"

static plait_status infer(const plait_call *call) {
    const plait_tensor *in = call->in;
    plait_shape         shape;
    if (in[0].type != PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "the condition is of type %s, not bool",
                               plait_type_name(in[0].type));
    if (in[1].type != in[2].type)
        return plait_call_fail(call, PLAIT_ESHAPE, "chooses between %s and %s; cast one of them",
                               plait_type_name(in[1].type), plait_type_name(in[2].type));
    if (!pli_broadcast(&in[0].shape, &in[1].shape, &shape) || !pli_broadcast(&shape, &in[2].shape, &shape))
        return plait_call_fail(call, PLAIT_ESHAPE, "shapes do not go together");
    call->out[0] = (plait_tensor){ .type = in[1].type, .shape = shape };
    return PLAIT_OK;
}

/* Chooses in a run, in which each input either repeats one element or steps by one element. */
static void choose_4(int64_t n, const uint8_t *c, int64_t c_step, const uint32_t *a, int64_t a_step, const uint32_t *b,
                     int64_t b_step, uint32_t *y) {
    if (c_step == 1 && a_step == 1 && b_step == 1)
        for (int64_t i = 0; i < n; i++) y[i] = c[i] != 0 ? a[i] : b[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = c[i * c_step] != 0 ? a[i * a_step] : b[i * b_step];
}

static void choose(int64_t n, size_t bytes, const uint8_t *c, int64_t c_step, const char *a, int64_t a_step,
                   const char *b, int64_t b_step, char *y) {
    const int64_t by = (int64_t)bytes;
    for (int64_t i = 0; i < n; i++)
        memcpy(y + i * by, c[i * c_step] != 0 ? a + i * a_step * by : b + i * b_step * by, bytes);
}

static plait_status run(const plait_call *call, int64_t item) {
    const plait_tensor *out = &call->out[0];
    const size_t        bytes = plait_type_bytes(out->type);
    int64_t             strides[3][PLAIT_RANK_MAX], at;
    const int64_t       n = pli_item_piece(plait_shape_elements(&out->shape), item, &at);
    for (int32_t k = 0; k < 3; k++) pli_broadcast_strides(&call->in[k].shape, &out->shape, strides[k]);
    pli_walk w;
    pli_walk_begin(&w, &out->shape, 3, (const int64_t(*)[PLAIT_RANK_MAX])strides, at, n);
    for (int64_t length; (length = pli_walk_next(&w)) > 0; at += length) {
        const uint8_t *c = (const uint8_t *)call->in[0].data + w.from[0];
        const char    *a = (const char *)call->in[1].data + (size_t)w.from[1] * bytes;
        const char    *b = (const char *)call->in[2].data + (size_t)w.from[2] * bytes;
        char          *y = (char *)out->data + (size_t)at * bytes;
        if (bytes == 4)
            choose_4(length, c, w.step[0], (const uint32_t *)(const void *)a, w.step[1],
                     (const uint32_t *)(const void *)b, w.step[2], (uint32_t *)(void *)y);
        else
            choose(length, bytes, c, w.step[0], a, w.step[1], b, w.step[2], y);
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    plait_graph      *g = at->graph;
    const plait_value zero = pli_scalar_like(g, at->d_out[0], 0), c = at->in[0];
    at->d_in[1] = pli_unbroadcast(g, pli_op3(g, &pli_op_where, c, at->d_out[0], zero), at->in[1]);
    at->d_in[2] = pli_unbroadcast(g, pli_op3(g, &pli_op_where, c, zero, at->d_out[0]), at->in[2]);
}

static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_where = {
    .size = sizeof(plait_op),
    .name = "where",
    .summary = "a where a condition holds, else b",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
