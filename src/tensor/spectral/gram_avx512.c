#include "tensor/spectral/gram_loops.h"

static const pli_gram_kernels kernels = {
    .name = "avx512", .block = block, .shift_f32 = shift_f32, .shift_f64 = shift_f64
};

const pli_gram_kernels *pli_gram_kernels_avx512(void) { return &kernels; }
