/* kernels_avx2 - kernels for x86 with AVX2, to the reference's bits: the same partial sums, and a fused multiply-add
 * only where the product of two floats is exact anyway. The loops over elementary functions are the reference's own,
 * compiled for wider vectors. */
#include <immintrin.h>

#include "tensor/elementary.h"
#include "tensor/kernels.h"

static void axpy_f32(int64_t n, float a, const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void axpy_f64(int64_t n, double a, const double *restrict x, double *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static inline __m256d wide(const float *x) {
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
}

static double dot_f32(int64_t n, const float *x, const float *y) {
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        sum0 = _mm256_fmadd_pd(wide(x + i), wide(y + i), sum0);
        sum1 = _mm256_fmadd_pd(wide(x + i + 4), wide(y + i + 4), sum1);
        sum2 = _mm256_fmadd_pd(wide(x + i + 8), wide(y + i + 8), sum2);
        sum3 = _mm256_fmadd_pd(wide(x + i + 12), wide(y + i + 12), sum3);
    }
    double lane[PLI_DOT_LANES];
    _mm256_storeu_pd(lane, sum0);
    _mm256_storeu_pd(lane + 4, sum1);
    _mm256_storeu_pd(lane + 8, sum2);
    _mm256_storeu_pd(lane + 12, sum3);
    for (int64_t j = 0; i + j < n; j++) lane[j] += (double)x[i + j] * (double)y[i + j];
    return pli_lanes_sum(lane);
}

static inline __m256d times(const double *x, const double *y) {
    return _mm256_mul_pd(_mm256_loadu_pd(x), _mm256_loadu_pd(y));
}

static double dot_f64(int64_t n, const double *x, const double *y) {
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        sum0 = _mm256_add_pd(sum0, times(x + i, y + i));
        sum1 = _mm256_add_pd(sum1, times(x + i + 4, y + i + 4));
        sum2 = _mm256_add_pd(sum2, times(x + i + 8, y + i + 8));
        sum3 = _mm256_add_pd(sum3, times(x + i + 12, y + i + 12));
    }
    double lane[PLI_DOT_LANES];
    _mm256_storeu_pd(lane, sum0);
    _mm256_storeu_pd(lane + 4, sum1);
    _mm256_storeu_pd(lane + 8, sum2);
    _mm256_storeu_pd(lane + 12, sum3);
    for (int64_t j = 0; i + j < n; j++) lane[j] += x[i + j] * y[i + j];
    return pli_lanes_sum(lane);
}

static float max_abs_f32(int64_t n, const float *x) {
    const __m256i size = _mm256_set1_epi32(0x7fffffff);
    __m256i most0 = _mm256_setzero_si256(), most1 = most0;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        most0 = _mm256_max_epu32(most0, _mm256_and_si256(size, _mm256_loadu_si256((const __m256i *)(x + i))));
        most1 = _mm256_max_epu32(most1, _mm256_and_si256(size, _mm256_loadu_si256((const __m256i *)(x + i + 8))));
    }
    uint32_t lane[8], most = 0, bits;
    _mm256_storeu_si256((__m256i *)lane, _mm256_max_epu32(most0, most1));
    for (int j = 0; j < 8; j++) most = lane[j] > most ? lane[j] : most;
    for (; i < n; i++) {
        memcpy(&bits, &x[i], sizeof bits);
        bits &= UINT32_C(0x7fffffff);
        most = bits > most ? bits : most;
    }
    float result;
    memcpy(&result, &most, sizeof result);
    return result;
}

static void exp_f32(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)pli_exp((double)x[i]);
}

static void exp_f64(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pli_exp(x[i]);
}

static void sigmoid_f32(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)pli_sigmoid((double)x[i]);
}

static void sigmoid_f64(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pli_sigmoid(x[i]);
}

static void softplus_f32(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)pli_softplus((double)x[i]);
}

static void softplus_f64(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pli_softplus(x[i]);
}

static const pli_kernels avx2 = {
    .name = "avx2",
    .axpy_f32 = axpy_f32,
    .axpy_f64 = axpy_f64,
    .scale_f32 = pli_scale_f32,
    .scale_f64 = pli_scale_f64,
    .dot_f32 = dot_f32,
    .dot_f64 = dot_f64,
    .max_abs_f32 = max_abs_f32,
    .max_abs_f64 = pli_max_abs_f64,
    .gather_f32 = pli_gather_f32,
    .gather_f64 = pli_gather_f64,
    .scatter_add_f32 = pli_scatter_add_f32,
    .scatter_add_f64 = pli_scatter_add_f64,
    .csr_dot_f32 = pli_csr_dot_f32,
    .csr_dot_f64 = pli_csr_dot_f64,
    .csr_t_axpy_f32 = pli_csr_t_axpy_f32,
    .csr_t_axpy_f64 = pli_csr_t_axpy_f64,
    .exp_f32 = exp_f32,
    .exp_f64 = exp_f64,
    .sigmoid_f32 = sigmoid_f32,
    .sigmoid_f64 = sigmoid_f64,
    .softplus_f32 = softplus_f32,
    .softplus_f64 = softplus_f64,
    .softmax_f32 = pli_softmax_f32,
    .softmax_f64 = pli_softmax_f64,
};

const pli_kernels *pli_kernels_avx2(void) {
    return &avx2;
}
