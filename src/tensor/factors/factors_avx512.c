#include "tensor/factors/factors_loops.h"

static const pli_factor_kernels kernels = {
    .name = "avx512", .squared = squared, .ranked = ranked, .outer = outer, .dot = dot
};

const pli_factor_kernels *pli_factor_kernels_avx512(void) { return &kernels; }
