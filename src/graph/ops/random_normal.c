/* random_normal: normal random numbers with this mean and standard deviation, in a given shape, or in the shape of an
 * input (random.h). */
#include "graph/ops/ops.h"
#include "graph/random.h"

enum { MEAN = 2, DEVIATION };

static const plait_attr_spec attrs[] = {
    PLI_RANDOM_ATTRS,
    [MEAN] = { .preset = { .name = "mean", .kind = PLAIT_ATTR_FLOAT, .u.f = 0 } },
    [DEVIATION] = { .preset = { .name = "deviation", .kind = PLAIT_ATTR_FLOAT, .u.f = 1 } },
};

static double number(pli_random *random, const plait_attr *attr) {
    return attr[MEAN].u.f + attr[DEVIATION].u.f * pli_random_normal(random);
}

static const pli_draw draw = { .number = number };

const plait_op pli_op_random_normal = {
    .size = sizeof(plait_op),
    .name = "random_normal",
    .summary = "random numbers, normal",
    .min_inputs = 0,
    .max_inputs = 1,
    .outputs = 1,
    .attrs = attrs,
    .n_attrs = 4,
    .flags = PLAIT_OP_STATEFUL,
    .shape_only = 1,
    .user = (void *)&draw,
    .infer = pli_infer_random,
    .flops = pli_flops_curve,
    .kernels = pli_random_kernels,
};
