/* kernels - chooses the table of kernels for this processor. */
#include "tensor/kernels.h"

const pli_kernels *pli_kernels_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_kernels_avx2();
#endif
    return pli_kernels_ref();
}
