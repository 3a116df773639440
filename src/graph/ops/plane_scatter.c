/* plane_scatter: begins with zeros in the shape of input 0 [.., height, width], whose values are not used, and in each
 * plane adds the elements of input 2 at index (input 1, i32). It is the gradient of pooling by maximum, and of
 * plane_gather. With U its derivative: d/d(input 2) = plane_gather(U, index). */
#include <string.h>

#include "graph/ops/ops.h"
#include "graph/pooling.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape, *index = &call->in[1].shape;
    if (x->rank != 4 || index->rank != 4 || call->in[1].type != PLAIT_I32 || call->in[2].type != call->in[0].type ||
        call->in[2].shape.rank != 4)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs [n, channels, height, width], and indices (i32) and values of four axes, too");
    for (int i = 0; i < 4; i++) {
        const int64_t a = index->dim[i], b = call->in[2].shape.dim[i], c = i < 2 ? x->dim[i] : a;
        if ((a != b && a != PLAIT_ANY && b != PLAIT_ANY) || (a != c && a != PLAIT_ANY && c != PLAIT_ANY))
            return plait_call_fail(call, PLAIT_ESHAPE,
                                   "as many planes of indices as of values, please, and a value for each index");
    }
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = *x };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return call->in[0].shape.dim[0] * call->in[0].shape.dim[1]; }

static plait_status check(const plait_call *call, const int32_t *index, int64_t size, int64_t plane) {
    for (int64_t o = 0; o < size; o++)
        if (index[o] < 0 || index[o] >= plane)
            return plait_call_fail(call, PLAIT_EINVAL, "index %d in a plane of %lld", index[o], (long long)plane);
    return PLAIT_OK;
}

/* An item is a plane. */
static plait_status ref_run(const plait_call *call, int64_t item) {
    const plait_shape *x = &call->in[0].shape, *y = &call->in[1].shape;
    const int64_t      plane = x->dim[2] * x->dim[3], size = y->dim[2] * y->dim[3];
    const int32_t     *index = (const int32_t *)call->in[1].data + item * size;
    PLI_TRY(check(call, index, size, plane));
    for (int64_t i = 0; i < plane; i++) pli_element_set(&call->out[0], item * plane + i, 0);
    for (int64_t o = 0; o < size; o++) {
        const int64_t at = item * plane + index[o];
        pli_element_set(&call->out[0], at, pli_element(&call->out[0], at) + pli_element(&call->in[2], item * size + o));
    }
    return PLAIT_OK;
}

static int f32_suits(const plait_call *call) { return call->in[0].type == PLAIT_F32; }

static plait_status f32_run(const plait_call *call, int64_t item) {
    const plait_shape *x = &call->in[0].shape, *y = &call->in[1].shape;
    const int64_t      plane = x->dim[2] * x->dim[3], size = y->dim[2] * y->dim[3];
    const int32_t     *index = (const int32_t *)call->in[1].data + item * size;
    const float       *from = (const float *)call->in[2].data + item * size;
    float             *to = (float *)call->out[0].data + item * plane;
    PLI_TRY(check(call, index, size, plane));
    memset(to, 0, (size_t)plane * sizeof *to);
    for (int64_t o = 0; o < size; o++) to[index[o]] += from[o];
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[2] = pli_op2(at->graph, &pli_op_plane_gather, at->d_out[0], at->in[1]);
}

static const plait_kernel        f32 = { .name = "f32", .suits = f32_suits, .items = items, .run = f32_run };
static const plait_kernel        ref = { .name = "ref", .items = items, .run = ref_run };
static const plait_kernel *const kernels[] = { &f32, &ref, NULL };

const plait_op pli_op_plane_scatter = {
    .size = sizeof(plait_op),
    .name = "plane_scatter",
    .summary = "values added to planes of zeros at their numbers",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_added,
    .kernels = kernels,
};
