/* unslice: zeros in the shape of input 0, whose values are not needed, except at the places that a slice of it would
 * take: they get input 1. */
#include <string.h>

#include "graph/slice.h"

static plait_status infer(const plait_call *call) {
    const plait_shape *part = &call->in[1].shape;
    plait_shape        want;
    pli_slice          s;
    PLI_TRY(pli_slice_of(call, &call->in[0].shape, &want, &s));
    bool fits = call->in[0].type == call->in[1].type && part->rank == want.rank;
    for (int32_t i = 0; fits && i < want.rank; i++)
        fits = part->dim[i] == want.dim[i] || part->dim[i] == PLAIT_ANY || want.dim[i] == PLAIT_ANY;
    if (!fits)
        return plait_call_fail(call, PLAIT_ESHAPE,
                               "input 1 is not of the shape of such a slice of input 0, or of another type");
    return pli_infer_as_input(call);
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const plait_tensor *y = &call->out[0];
    plait_shape         to;
    pli_slice           s;
    PLI_TRY(pli_slice_of(call, &y->shape, &to, &s));
    memset(y->data, 0, (size_t)plait_shape_elements(&y->shape) * plait_type_bytes(y->type));
    pli_write_strided(&call->in[1], y, s.base, s.stride);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    at->d_in[1] = pli_graph_node(at->graph, &pli_op_slice, at->d_out, 1, at->attr);
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_unslice = {
    .size = sizeof(plait_op),
    .name = "unslice",
    .summary = "a slice put back between zeros",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = pli_slice_attrs,
    .n_attrs = 4,
    .shape_only = 1,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
