#include "tensor/spectral/gram_loops.h"

static const pli_gram_kernels kernels = { .name = "avx512", .block = block };

const pli_gram_kernels *pli_gram_kernels_avx512(void) { return &kernels; }
