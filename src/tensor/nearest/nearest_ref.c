#include "tensor/nearest/nearest_loops.h"

static const pli_nearest_kernels kernels = { .name = "ref", .chain = chain, .highest = highest };

const pli_nearest_kernels *pli_nearest_kernels_ref(void) { return &kernels; }
