/* plane_gather: the elements of planes [.., height, width] at index (i32, from 0 in each plane), in the shape of index.
 * With G = dy: dx = plane_scatter(x, index, G). */
#include "graph/ops/ops.h"
#include "graph/pooling.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *x = &call->in[0].shape, *index = &call->in[1].shape;
    if (x->rank != 4 || index->rank != 4 || call->in[1].type != PLAIT_I32)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "needs [n, channels, height, width], and indices (i32) of four axes, too");
    for (int i = 0; i < 2; i++)
        if (x->dim[i] != index->dim[i] && x->dim[i] != PLAIT_ANY && index->dim[i] != PLAIT_ANY)
            return plait_call_fail(call, PLAIT_ESHAPE, "as many planes of indices as of values, please");
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = *index };
    return PLAIT_OK;
}

static int64_t items(const plait_call *call) { return call->in[0].shape.dim[0] * call->in[0].shape.dim[1]; }

/* An item is a plane. */
static plait_status run(const plait_call *call, int64_t item) {
    const plait_shape *x = &call->in[0].shape, *y = &call->in[1].shape;
    const int64_t      plane = x->dim[2] * x->dim[3], size = y->dim[2] * y->dim[3];
    const int32_t     *index = (const int32_t *)call->in[1].data + item * size;
    for (int64_t o = 0; o < size; o++) {
        if (index[o] < 0 || index[o] >= plane)
            return plait_call_fail(call, PLAIT_EINVAL, "index %d in a plane of %lld", index[o], (long long)plane);
        pli_element_set(&call->out[0], item * size + o, pli_element(&call->in[0], item * plane + index[o]));
    }
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->in[1], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_plane_scatter, in, 3, NULL);
}

static const plait_kernel        ref = { .name = "ref", .items = items, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_plane_gather = {
    .size = sizeof(plait_op),
    .name = "plane_gather",
    .summary = "elements of planes by number",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
