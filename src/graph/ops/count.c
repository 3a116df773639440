/* count: the number of elements along axes (none given: all) of the input, as a scalar of its type. The values of the
 * input are not needed. */
#include "graph/reduce.h"

static plait_status infer(const plait_call *call) {
    pli_axes axes;
    PLI_TRY(pli_axes_of(call, &call->attr[0], call->in[0].shape.rank, true, &axes));
    call->out[0] = (plait_tensor){ .type = call->in[0].type, .shape = { .rank = 0 } };
    return PLAIT_OK;
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const pli_reduction r = pli_reduction_of_call(call);
    pli_element_set(&call->out[0], 0, (double)plait_shape_elements(&r.summed));
    return PLAIT_OK;
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_count = {
    .size = sizeof(plait_op),
    .name = "count",
    .summary = "how many elements lie along axes",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = pli_reduction_attrs,
    .n_attrs = 1,
    .shape_only = 1,
    .infer = infer,
    .flops = pli_flops_none,
    .kernels = kernels,
};
