/* logical_not: the negation of a bool. */
#include "graph/ops/ops.h"

static void logical_not_bool(int64_t n, const void *const *in, void *out, const plait_attr *attr) {
    (void)attr;
    const uint8_t *x = in[0];
    uint8_t       *y = out;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] ^ 1;
}

const plait_op pli_op_logical_not = {
    .size = sizeof(plait_op),
    .name = "logical_not",
    .summary = "the other bool",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .in_place = 1,
    .map = { [PLAIT_BOOL] = logical_not_bool },
};
