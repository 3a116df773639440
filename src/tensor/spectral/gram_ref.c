#include "tensor/spectral/gram_loops.h"

static const pli_gram_kernels kernels = { .name = "ref", .block = block };

const pli_gram_kernels *pli_gram_kernels_ref(void) { return &kernels; }
