/* random_uniform: uniform random numbers in [low, high), in a given shape, or in the shape of an input (random.h). */
#include "graph/ops/ops.h"
#include "graph/random.h"

enum { LOW = 2, HIGH };

static const plait_attr_spec attrs[] = {
    PLI_RANDOM_ATTRS,
    [LOW] = { .preset = { .name = "low", .kind = PLAIT_ATTR_FLOAT, .u.f = 0 } },
    [HIGH] = { .preset = { .name = "high", .kind = PLAIT_ATTR_FLOAT, .u.f = 1 } },
};

static double number(pli_random *random, const plait_attr *attr) {
    return attr[LOW].u.f + (attr[HIGH].u.f - attr[LOW].u.f) * pli_random_f64(random);
}

static const pli_draw draw = { .number = number };

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
    .user = (void *)&draw,
    .infer = pli_infer_random,
    .flops = pli_flops_curve,
    .kernels = pli_random_kernels,
};
