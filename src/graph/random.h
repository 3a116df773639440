/* graph/random.h - what random ops share. Each number is a function of the session's seed, the node, the run and the
 * number's place, and of no thread: every piece of PLI_ITEM_ELEMENTS has its own stream. Attribute 0 is the shape, used
 * if the op has no input, of which only the shape is needed; attribute 1 is the type. The op's user is a pli_draw. */
#ifndef PLI_GRAPH_RANDOM_H
#define PLI_GRAPH_RANDOM_H

#include "graph/kernel.h"

#define PLI_RANDOM_ATTRS                                             \
    { .preset = { .name = "shape", .kind = PLAIT_ATTR_INTS } },      \
    { .preset = { .name = "type", .kind = PLAIT_ATTR_TYPE, .u.i = PLAIT_F32 } }

typedef struct pli_draw {
    /** Draws one number; attr is the call's. */
    double (*number)(pli_random *random, const plait_attr *attr);
} pli_draw;

plait_status                     pli_infer_random(const plait_call *call);
extern const plait_kernel *const pli_random_kernels[];

#endif
