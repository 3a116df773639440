/* ones_like: ones in the type and shape of the input, whose values are not needed. */
#include "graph/fill.h"
#include "graph/ops/ops.h"

static const double number = 1;

const plait_op pli_op_ones_like = {
    .size = sizeof(plait_op),
    .name = "ones_like",
    .summary = "ones in the shape of the input",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .shape_only = 1,
    .user = (void *)&number,
    .infer = pli_infer_as_input,
    .flops = pli_flops_none,
    .kernels = pli_fill_kernels,
};
