/* First factors; which kernels of factorisation this processor takes. */
#include "tensor/factors/factors.h"

#include <math.h>

#include "base/random.h"

void pli_factor_draw(uint64_t seed, uint64_t side, uint64_t row, int64_t rank, float *factor) {
    const double width = sqrt(3 * 0.03 / sqrt((double)rank)); /* the variance within it is width^2 / 3 */
    pli_random   random = pli_random_at(seed, PLI_RANDOM_INIT, side, row);
    for (int64_t k = 0; k < rank; k++) factor[k] = (float)(width * (2 * pli_random_f64(&random) - 1));
}

const pli_factor_kernels *pli_factor_kernels_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_factor_kernels_avx512();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_factor_kernels_avx2();
#endif
    return pli_factor_kernels_ref();
}
