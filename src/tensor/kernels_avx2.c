/* kernels_avx2 - kernels for x86 with AVX2 that give the reference's bits: they use the same partial sums, and a
 * fused multiply-add only where the product of two floats is exact anyway. The loops over elementary functions are
 * the reference's own, compiled for wider vectors. */
#include <immintrin.h>

#include "tensor/elementary.h"
#include "tensor/exact_loops.h"
#include "tensor/kernels.h"
#include "tensor/sparse_wide.h"

static void axpy_f32(int64_t n, float a, const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void axpy_f64(int64_t n, double a, const double *restrict x, double *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static inline __m256d wide(const float *x) {
    return _mm256_cvtps_pd(_mm_loadu_ps(x));
}

/* Adds in the same order as pli_lanes_sum. */
static inline double sum_of(__m256d sum0, __m256d sum1, __m256d sum2, __m256d sum3) {
    const __m256d four = _mm256_add_pd(_mm256_add_pd(sum0, sum2), _mm256_add_pd(sum1, sum3));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
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
    if (i == n) return sum_of(sum0, sum1, sum2, sum3);
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
    if (i == n) return sum_of(sum0, sum1, sum2, sum3);
    double lane[PLI_DOT_LANES];
    _mm256_storeu_pd(lane, sum0);
    _mm256_storeu_pd(lane + 4, sum1);
    _mm256_storeu_pd(lane + 8, sum2);
    _mm256_storeu_pd(lane + 12, sum3);
    for (int64_t j = 0; i + j < n; j++) lane[j] += x[i + j] * y[i + j];
    return pli_lanes_sum(lane);
}

static inline __m256d gap_squared(const float *x, const float *y) {
    const __m256d gap = _mm256_sub_pd(wide(x), wide(y));
    return _mm256_mul_pd(gap, gap);
}

static double distance_f32(int64_t n, const float *x, const float *y) {
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        sum0 = _mm256_add_pd(sum0, gap_squared(x + i, y + i));
        sum1 = _mm256_add_pd(sum1, gap_squared(x + i + 4, y + i + 4));
        sum2 = _mm256_add_pd(sum2, gap_squared(x + i + 8, y + i + 8));
        sum3 = _mm256_add_pd(sum3, gap_squared(x + i + 12, y + i + 12));
    }
    if (i == n) return sum_of(sum0, sum1, sum2, sum3);
    double lane[PLI_DOT_LANES];
    _mm256_storeu_pd(lane, sum0);
    _mm256_storeu_pd(lane + 4, sum1);
    _mm256_storeu_pd(lane + 8, sum2);
    _mm256_storeu_pd(lane + 12, sum3);
    for (int64_t j = 0; i + j < n; j++) lane[j] += pli_gap_squared(x[i + j], y[i + j]);
    return pli_lanes_sum(lane);
}

static void axpy_f32_f64(int64_t n, double a, const float *restrict x, double *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * (double)x[i];
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

static void log_f32(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)pli_ln((double)x[i]);
}

static void log_f64(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pli_ln(x[i]);
}

static void tanh_f32(int64_t n, const float *x, float *out) {
    for (int64_t i = 0; i < n; i++) out[i] = (float)pli_tanh((double)x[i]);
}

static void tanh_f64(int64_t n, const double *x, double *out) {
    for (int64_t i = 0; i < n; i++) out[i] = pli_tanh(x[i]);
}

/* --- sparse rows by matrices of several columns ------------------------------------------------------------------- */

static void csr_dot_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *w, double *y) {
    if (cols == 1) {
        pli_csr_dot_f32(x, rows, cols, w, y);
        return;
    }
    for (int64_t i = 0; i < rows.n; i++) pli_wide_row_dots_f32(pli_entries_of(x, rows, i), cols, w, y + i * cols);
}

static void csr_dot_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *w, double *y) {
    if (cols == 1) {
        pli_csr_dot_f64(x, rows, cols, w, y);
        return;
    }
    for (int64_t i = 0; i < rows.n; i++) pli_wide_row_dots_f64(pli_entries_of(x, rows, i), cols, w, y + i * cols);
}

static void csr_t_axpy_f32(const pli_csr *x, pli_rows rows, int64_t cols, const float *r, float *g) {
    if (cols == 1) {
        pli_csr_t_axpy_f32(x, rows, cols, r, g);
        return;
    }
    for (int64_t i = 0; i < rows.n; i++) pli_wide_row_adds_f32(pli_entries_of(x, rows, i), cols, r + i * cols, g);
}

static void csr_t_axpy_f64(const pli_csr *x, pli_rows rows, int64_t cols, const double *r, double *g) {
    if (cols == 1) {
        pli_csr_t_axpy_f64(x, rows, cols, r, g);
        return;
    }
    for (int64_t i = 0; i < rows.n; i++) pli_wide_row_adds_f64(pli_entries_of(x, rows, i), cols, r + i * cols, g);
}

/* --- exact sums of floats: exact_loops.h, eight elements at a time
 * ------------------------------------------------- */

/* 1.5 x 2^23 units of these bins. */
static inline __m256i magic_of(__m256i top) {
    const __m256i bin = _mm256_max_epi32(top, _mm256_set1_epi32(PLI_EXACT_LOW32));
    const __m256i exponent =
        _mm256_add_epi32(_mm256_mullo_epi32(bin, _mm256_set1_epi32(PLI_EXACT_W32)), _mm256_set1_epi32(150));
    return _mm256_or_si256(_mm256_slli_epi32(exponent, 23), _mm256_set1_epi32(1 << 22));
}

static inline void cut_near(__m256 x, __m256i magic, __m256i below, __m256i *hi, __m256i *lo) {
    const __m256 first = _mm256_add_ps(x, _mm256_castsi256_ps(magic));
    const __m256 rest = _mm256_sub_ps(x, _mm256_sub_ps(first, _mm256_castsi256_ps(magic)));
    const __m256 second = _mm256_add_ps(rest, _mm256_castsi256_ps(below));
    *hi = _mm256_add_epi32(*hi, _mm256_sub_epi32(_mm256_castps_si256(first), magic));
    *lo = _mm256_add_epi32(*lo, _mm256_sub_epi32(_mm256_castps_si256(second), below));
}

/* Marks the lanes whose number is too large, or too small and not 0, for the units of floats. size: the bits of |x|. */
static inline __m256i too_far(__m256i top, __m256i size) {
    const __m256i low = _mm256_andnot_si256(_mm256_cmpeq_epi32(size, _mm256_setzero_si256()),
                                            _mm256_cmpgt_epi32(_mm256_set1_epi32(PLI_EXACT_LOW32), top));
    return _mm256_or_si256(low, _mm256_cmpgt_epi32(top, _mm256_set1_epi32(PLI_EXACT_HIGH32)));
}

static inline __m256i size_of(__m256 x) {
    return _mm256_and_si256(_mm256_castps_si256(x), _mm256_set1_epi32(INT32_MAX));
}

static inline void add_wide(int64_t *bin, __m256i by) {
    __m256i *at = (__m256i *)bin;
    const __m256i low = _mm256_cvtepi32_epi64(_mm256_castsi256_si128(by));
    const __m256i high = _mm256_cvtepi32_epi64(_mm256_extracti128_si256(by, 1));
    _mm256_storeu_si256(at, _mm256_add_epi64(_mm256_loadu_si256(at), low));
    _mm256_storeu_si256(at + 1, _mm256_add_epi64(_mm256_loadu_si256(at + 1), high));
}

static int64_t exact_add_f32(int64_t n, const float *x, const int8_t *top, int64_t *hi, int64_t *lo) {
    const __m256i w = _mm256_set1_epi32(PLI_EXACT_W32), reach = _mm256_set1_epi32(PLI_EXACT_REACH32);
    const __m256i step = _mm256_set1_epi32(PLI_EXACT_W32 << 23);
    int64_t i = 0;
    for (; i + PLI_EXACT_AT_ONCE <= n; i += PLI_EXACT_AT_ONCE) {
        const __m256  v = _mm256_loadu_ps(x + i);
        const __m256i t = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)(top + i))), size = size_of(v);
        const __m256i limit = _mm256_add_epi32(_mm256_mullo_epi32(t, w), reach);
        const __m256i high = _mm256_cmpgt_epi32(limit, _mm256_srli_epi32(size, 23));
        if (_mm256_movemask_epi8(_mm256_andnot_si256(too_far(t, size), high)) != -1) break;
        const __m256i magic = magic_of(t);
        __m256i first = _mm256_setzero_si256(), second = first;
        cut_near(v, magic, _mm256_sub_epi32(magic, step), &first, &second);
        add_wide(hi + i, first);
        add_wide(lo + i, second);
    }
    return i;
}

/* (hi 2^22 + lo) 2^(22 (top - 1)) of four elements. */
static inline __m128 value_of(__m128i top, __m128i hi, __m128i lo) {
    const __m256i exponent = _mm256_add_epi64(
        _mm256_cvtepi32_epi64(_mm_mullo_epi32(_mm_sub_epi32(top, _mm_set1_epi32(1)), _mm_set1_epi32(PLI_EXACT_W32))),
        _mm256_set1_epi64x(1023));
    const __m256d sum =
        _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(hi), _mm256_set1_pd(0x1p22)), _mm256_cvtepi32_pd(lo));
    return _mm256_cvtpd_ps(_mm256_mul_pd(sum, _mm256_castsi256_pd(_mm256_slli_epi64(exponent, 52))));
}

/* With up to 8 terms a bin's sum has at most 24 bits, so a float holds it, and the sum of both bins is rounded once,
 * as always. */
enum { FEW = 8 };
static inline int64_t sum_few(int32_t terms, const float *const *x, int64_t first, int64_t n, float *out) {
    const __m256i lowest = _mm256_set1_epi32(-PLI_EXACT_LEAST32), w = _mm256_set1_epi32(PLI_EXACT_W32);
    const __m256i one = _mm256_set1_epi32(1), least = _mm256_set1_epi32(150 + PLI_EXACT_W32 * PLI_EXACT_LEAST32);
    const __m256i high = _mm256_set1_epi32(PLI_EXACT_HIGH32 - PLI_EXACT_LEAST32),
                  step = _mm256_set1_epi32(PLI_EXACT_W32 << 23);
    int64_t i = 0;
    for (; i + PLI_EXACT_AT_ONCE <= n; i += PLI_EXACT_AT_ONCE) {
        __m256i most = _mm256_setzero_si256();
        __m256  hi = _mm256_setzero_ps(), lo = hi;
        for (int32_t t = 0; t < terms; t++) most = _mm256_max_epi32(most, size_of(_mm256_loadu_ps(x[t] + first + i)));
        /* top - least top; the factors fit 16 bits, so a multiplication in 16 bits is enough */
        const __m256i top =
            _mm256_mulhi_epu16(_mm256_add_epi32(_mm256_srli_epi32(most, 23), lowest), _mm256_set1_epi32(2979));
        const __m256i small =
            _mm256_andnot_si256(_mm256_cmpeq_epi32(most, _mm256_setzero_si256()), _mm256_cmpgt_epi32(one, top));
        if (_mm256_movemask_epi8(_mm256_or_si256(small, _mm256_cmpgt_epi32(top, high))) != 0) break;
        const __m256i exponent = _mm256_add_epi32(_mm256_mullo_epi16(_mm256_max_epi32(top, one), w), least);
        const __m256i magic = _mm256_or_si256(_mm256_slli_epi32(exponent, 23), _mm256_set1_epi32(1 << 22));
        const __m256  upper = _mm256_castsi256_ps(magic), lower = _mm256_castsi256_ps(_mm256_sub_epi32(magic, step));
        for (int32_t t = 0; t < terms; t++) {
            const __m256 v = _mm256_loadu_ps(x[t] + first + i);
            const __m256 piece = _mm256_sub_ps(_mm256_add_ps(v, upper), upper), rest = _mm256_sub_ps(v, piece);
            hi = _mm256_add_ps(hi, piece);
            lo = _mm256_add_ps(lo, _mm256_sub_ps(_mm256_add_ps(rest, lower), lower));
        }
        _mm256_storeu_ps(out + i, _mm256_add_ps(hi, lo));
    }
    return i;
}

static int64_t exact_sum_f32(int32_t terms, const float *const *x, int64_t first, int64_t n, float *out) {
    const __m256i step = _mm256_set1_epi32(PLI_EXACT_W32 << 23);
    int64_t i = 0;
    if (terms == 2) return sum_few(2, x, first, n, out);
    if (terms == 4) return sum_few(4, x, first, n, out);
    if (terms <= FEW) return sum_few(terms, x, first, n, out);
    for (; terms <= PLI_EXACT_NARROW_TERMS && i + PLI_EXACT_AT_ONCE <= n; i += PLI_EXACT_AT_ONCE) {
        __m256i most = _mm256_setzero_si256(), hi = most, lo = most;
        for (int32_t t = 0; t < terms; t++) most = _mm256_max_epi32(most, size_of(_mm256_loadu_ps(x[t] + first + i)));
        const __m256i place = _mm256_mullo_epi32(_mm256_add_epi32(_mm256_srli_epi32(most, 23), _mm256_set1_epi32(6)),
                                                 _mm256_set1_epi32(2979));
        const __m256i top = _mm256_sub_epi32(_mm256_srli_epi32(place, 16), _mm256_set1_epi32(6));
        if (_mm256_movemask_epi8(too_far(top, most)) != 0) break;
        const __m256i magic = magic_of(top), below = _mm256_sub_epi32(magic, step);
        for (int32_t t = 0; t < terms; t++) cut_near(_mm256_loadu_ps(x[t] + first + i), magic, below, &hi, &lo);
        _mm_storeu_ps(out + i,
                      value_of(_mm256_castsi256_si128(top), _mm256_castsi256_si128(hi), _mm256_castsi256_si128(lo)));
        _mm_storeu_ps(out + i + 4, value_of(_mm256_extracti128_si256(top, 1), _mm256_extracti128_si256(hi, 1),
                                            _mm256_extracti128_si256(lo, 1)));
    }
    return i;
}

static int64_t exact_add_f64(int64_t n, const double *x, const int8_t *top, int64_t *hi, int64_t *mid, int64_t *lo) {
    return pli_exact_add_fitting_f64(n, x, top, hi, mid, lo);
}

static int64_t exact_sum_f64(int32_t terms, const double *const *x, int64_t first, int64_t n, double *out) {
    return pli_exact_sum_fitting_f64(terms, x, first, n, out);
}

static const pli_kernels avx2 = {
    .name = "avx2",
    .axpy_f32 = axpy_f32,
    .axpy_f64 = axpy_f64,
    .scale_f32 = pli_scale_f32,
    .scale_f64 = pli_scale_f64,
    .dot_f32 = dot_f32,
    .dot_f64 = dot_f64,
    .distance_f32 = distance_f32,
    .axpy_f32_f64 = axpy_f32_f64,
    .max_abs_f32 = max_abs_f32,
    .max_abs_f64 = pli_max_abs_f64,
    .gather_f32 = pli_gather_f32,
    .gather_f64 = pli_gather_f64,
    .scatter_add_f32 = pli_scatter_add_f32,
    .scatter_add_f64 = pli_scatter_add_f64,
    .csr_dot_f32 = csr_dot_f32,
    .csr_dot_f64 = csr_dot_f64,
    .csr_t_axpy_f32 = csr_t_axpy_f32,
    .csr_t_axpy_f64 = csr_t_axpy_f64,
    .exp_f32 = exp_f32,
    .exp_f64 = exp_f64,
    .sigmoid_f32 = sigmoid_f32,
    .sigmoid_f64 = sigmoid_f64,
    .softplus_f32 = softplus_f32,
    .softplus_f64 = softplus_f64,
    .log_f32 = log_f32,
    .log_f64 = log_f64,
    .tanh_f32 = tanh_f32,
    .tanh_f64 = tanh_f64,
    .softmax_f32 = pli_softmax_f32,
    .softmax_f64 = pli_softmax_f64,
    .exact_add_f32 = exact_add_f32,
    .exact_add_f64 = exact_add_f64,
    .exact_sum_f32 = exact_sum_f32,
    .exact_sum_f64 = exact_sum_f64,
};

const pli_kernels *pli_kernels_avx2(void) {
    return &avx2;
}
