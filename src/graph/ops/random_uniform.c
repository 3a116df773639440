/* random_uniform: numbers even between low (included) and high, in a given shape, or in that of an input, whose values
 * are not needed. A number is a function of the session's seed, the node, the run and its place: a stream for every
 * piece of PLI_ITEM_ELEMENTS. */
#include "graph/kernel.h"
#include "graph/ops/ops.h"

enum { SHAPE, TYPE, LOW, HIGH };

static const plait_attr_spec attrs[] = {
    [SHAPE] = { .preset = { .name = "shape", .kind = PLAIT_ATTR_INTS } },
    [TYPE] = { .preset = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = PLAIT_F32 } },
    [LOW] = { .preset = { .name = "low", .kind = PLAIT_ATTR_FLOAT, .u.f = 0 } },
    [HIGH] = { .preset = { .name = "high", .kind = PLAIT_ATTR_FLOAT, .u.f = 1 } },
};

static plait_status infer(const plait_call *call) {
    return pli_infer_random(call, &call->attr[SHAPE], (plait_type)call->attr[TYPE].u.i);
}

static plait_status run(const plait_call *call, int64_t item) {
    const double  low = call->attr[LOW].u.f, high = call->attr[HIGH].u.f;
    int64_t       first;
    const int64_t n = pli_item_piece(plait_shape_elements(&call->out[0].shape), item, &first);
    pli_random    random = pli_random_at(call->seed, PLI_RANDOM_GRAPH, call->step, (uint64_t)item);
    for (int64_t i = first; i < first + n; i++)
        pli_element_set(&call->out[0], i, low + (high - low) * pli_random_f64(&random));
    return PLAIT_OK;
}

static const plait_kernel        ref = { .name = "ref", .items = pli_items_by_output, .run = run };
static const plait_kernel *const kernels[] = { &ref, NULL };

const plait_op pli_op_random_uniform = {
    .size = sizeof(plait_op),
    .name = "random_uniform",
    .summary = "random numbers, uniform",
    .min_inputs = 0,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 4,
    .flags = PLAIT_OP_STATEFUL,
    .shape_only = 1,
    .infer = infer,
    .kernels = kernels,
};
