/* graph/fill.h - what zeros_like and ones_like share: the output has one number everywhere, and the type and shape of
 * the input, whose values are not needed. An op's user is the number, a double. */
#ifndef PLI_GRAPH_FILL_H
#define PLI_GRAPH_FILL_H

#include "graph/kernel.h"

extern const plait_kernel *const pli_fill_kernels[];

#endif
