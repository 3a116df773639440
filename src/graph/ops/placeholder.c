/* placeholder: a value that is fed. It has no kernel: a run that needs it must feed it, or is refused. */
#include <string.h>

#include "graph/ops/ops.h"

static const plait_attr_spec attrs[] = {
    { .preset = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = PLAIT_F32 } },
    { .preset = { .name = "shape", .kind = PLAIT_ATTR_INTS }, .required = 1 },
};

static plait_status infer(const plait_call *call) {
    if (call->attr[1].n > PLAIT_RANK_MAX)
        return plait_call_fail(call, PLAIT_ESHAPE, "%d axes; at most %d", call->attr[1].n, PLAIT_RANK_MAX);
    call->out[0].type = (plait_type)call->attr[0].u.i;
    call->out[0].shape.rank = call->attr[1].n;
    for (int32_t i = 0; i < call->attr[1].n; i++) call->out[0].shape.dim[i] = call->attr[1].u.ints[i];
    return PLAIT_OK;
}

const plait_op pli_op_placeholder = {
    .size = sizeof(plait_op),
    .name = "placeholder",
    .summary = "a value that a run is fed",
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .flops = pli_flops_none,
};
