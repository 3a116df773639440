#include "tensor/gemm/sgemm_loops.h"

const pli_tiles *pli_tiles_avx512(void) { return &tiles; }
