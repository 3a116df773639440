/* logical_and: are both of two bools true? */
#include "graph/ops/ops.h"

static void logical_and_bool(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint8_t *a = in[0], *b = in[1];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = a[i] & b[i];
}

const plait_op pli_op_logical_and = {
    .size = sizeof(plait_op),
    .name = "logical_and",
    .summary = "both of two bools, broadcast",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .in_place = 3,
    .map = { [PLAIT_BOOL] = logical_and_bool },
};
