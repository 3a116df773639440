/* Which kernels of factorisation this processor takes. */
#include "tensor/factors/factors.h"

const pli_factor_kernels *pli_factor_kernels_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_factor_kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_factor_kernels_avx2();
#endif
    return pli_factor_kernels_ref();
}
