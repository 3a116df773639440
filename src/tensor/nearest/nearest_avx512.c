#include "tensor/nearest/nearest_loops.h"

static const pli_nearest_kernels kernels = { .name = "avx512", .chain = chain, .highest = highest };

const pli_nearest_kernels *pli_nearest_kernels_avx512(void) { return &kernels; }
