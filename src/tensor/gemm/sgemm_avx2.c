#include "tensor/gemm/sgemm_loops.h"

const pli_tiles *pli_tiles_avx2(void) { return &tiles; }
