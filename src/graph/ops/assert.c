/* assert: ends the run with a text if an element of the input (bool) is false. Its output is the scalar true: fetch it
 * to make the run check. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "text", .kind = PLAIT_ATTR_TEXT, .u.text = "it does not hold" } },
};

static plait_status infer(const plait_call *call) {
    if (call->in[0].type != PLAIT_BOOL)
        return plait_call_fail(call, PLAIT_ESHAPE, "asserts a bool, not %s", plait_type_name(call->in[0].type));
    return pli_infer_done(call);
}

static plait_status run(const plait_call *call, int64_t item) {
    (void)item;
    const int64_t  n = plait_shape_elements(&call->in[0].shape);
    const uint8_t *holds = call->in[0].data;
    for (int64_t i = 0; i < n; i++)
        if (holds[i] == 0)
            return plait_call_fail(call, PLAIT_EINVAL, "%s (element %lld)", call->attr[0].u.text, (long long)i);
    pli_element_set(&call->out[0], 0, 1);
    return PLAIT_OK;
}

static const plait_kernel        ref = { .name = "ref", .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_assert = {
    .size = sizeof(plait_op),
    .name = "assert",
    .summary = "ends the run where an element is false",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 1,
    .flags = PLAIT_OP_STATEFUL,
    .infer = infer,
    .kernels = kernels,
};
