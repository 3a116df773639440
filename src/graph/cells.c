#include "graph/cells_loops.h"

const pli_cells *pli_cells_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_cells_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_cells_avx2();
#endif
    return &cells;
}
