/* one_hot: for each number (i64) a row of length `depth` that is 1 at the number's place and 0 elsewhere. A number out
 * of range makes a row of zeros. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { DEPTH, TYPE };

static const plait_attr_spec attrs[] = {
    [DEPTH] = { .preset = { .name = "depth", .kind = PLAIT_ATTR_INT }, .required = 1 },
    [TYPE] = { .preset = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = PLAIT_F32 } },
};

static plait_status infer(const plait_call *call) {
    plait_shape shape = call->in[0].shape;
    if (call->in[0].type != PLAIT_I64 || shape.rank == PLAIT_RANK_MAX || call->attr[DEPTH].u.i < 0 ||
        call->attr[TYPE].u.i == PLAIT_U8)
        return plait_call_fail(
            call, PLAIT_ESHAPE,
            "needs numbers of type i64, room for an axis, a depth of 0 or more, and a type other than u8");
    shape.dim[shape.rank++] = call->attr[DEPTH].u.i;
    call->out[0] = (plait_tensor){ .type = (plait_type)call->attr[TYPE].u.i, .shape = shape };
    return PLAIT_OK;
}

/* An item is a piece of the output. */
static plait_status run(const plait_call *call, int64_t item) {
    const int64_t  depth = call->attr[DEPTH].u.i;
    const int64_t *number = call->in[0].data;
    int64_t        first;
    const int64_t  n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    for (int64_t i = first; i < first + n; i++) pli_element_set(&call->out[0], i, number[i / depth] == i % depth);
    return PLAIT_OK;
}

static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_one_hot = {
    .size = sizeof(plait_op),
    .name = "one_hot",
    .summary = "1 at the place of a number, else 0",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 2,
    .infer = infer,
    .flops = pli_flops_none,
    .kernels = kernels,
};
