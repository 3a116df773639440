/* slice: x[starts:ends:steps] along axes (none given: the first ones). As in Python, a negative bound counts from the
 * end, and a bound beyond an end is clipped. A negative step goes backwards; then an end of -n - 1 includes the first
 * place. The gradient is unslice. */
#include "graph/slice.h"

static plait_status infer(const plait_call *call) {
    call->out[0] = (plait_tensor){ .type = call->in[0].type };
    pli_slice s;
    return pli_slice_of(call, &call->in[0].shape, &call->out[0].shape, &s);
}

static plait_status run(const plait_call *call, int64_t item) {
    plait_shape to;
    pli_slice   s;
    PLI_TRY(pli_slice_of(call, &call->in[0].shape, &to, &s));
    pli_read_strided(call, &call->in[0], s.base, s.stride, item);
    return PLAIT_OK;
}

static void gradient(const plait_gradient *at) {
    const plait_value in[] = { at->in[0], at->d_out[0] };
    at->d_in[0] = pli_graph_node(at->graph, &pli_op_unslice, in, 2, at->attr);
}

static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_slice = {
    .size = sizeof(plait_op),
    .name = "slice",
    .summary = "from starts to ends by steps along axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_slice_attrs,
    .n_attrs = 4,
    .infer = infer,
    .gradient = gradient,
    .flops = pli_flops_none,
    .kernels = kernels,
};
