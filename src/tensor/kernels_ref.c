/* kernels_ref - the reference kernels: every processor can run them, and a processor's own kernels must give the
 * same bits. */
#include "tensor/elementary.h"
#include "tensor/exact_loops.h"
#include "tensor/kernels.h"

static void axpy_f32(int64_t n, float a, const float *restrict x, float *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

static void axpy_f64(int64_t n, double a, const double *restrict x, double *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

void pli_scale_f32(int64_t n, float a, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

void pli_scale_f64(int64_t n, double a, double *x) {
    for (int64_t i = 0; i < n; i++) x[i] *= a;
}

static double dot_f32(int64_t n, const float *x, const float *y) {
    double lane[PLI_DOT_LANES] = { 0.0 };
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        for (int64_t j = 0; j < PLI_DOT_LANES; j++) lane[j] += (double)x[i + j] * (double)y[i + j];
    }
    for (int64_t j = 0; i + j < n; j++) lane[j] += (double)x[i + j] * (double)y[i + j];
    return pli_lanes_sum(lane);
}

static double dot_f64(int64_t n, const double *x, const double *y) {
    double lane[PLI_DOT_LANES] = { 0.0 };
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        for (int64_t j = 0; j < PLI_DOT_LANES; j++) lane[j] += x[i + j] * y[i + j];
    }
    for (int64_t j = 0; i + j < n; j++) lane[j] += x[i + j] * y[i + j];
    return pli_lanes_sum(lane);
}

static double distance_f32(int64_t n, const float *x, const float *y) {
    double  lane[PLI_DOT_LANES] = { 0.0 };
    int64_t i = 0;
    for (; i + PLI_DOT_LANES <= n; i += PLI_DOT_LANES) {
        for (int64_t j = 0; j < PLI_DOT_LANES; j++) lane[j] += pli_gap_squared(x[i + j], y[i + j]);
    }
    for (int64_t j = 0; i + j < n; j++) lane[j] += pli_gap_squared(x[i + j], y[i + j]);
    return pli_lanes_sum(lane);
}

static void axpy_f32_f64(int64_t n, double a, const float *restrict x, double *restrict y) {
    for (int64_t i = 0; i < n; i++) y[i] += a * (double)x[i];
}

/* The bits of |x| are in the same order as |x|, with NaN above all, so floats need not be compared. */
static float max_abs_f32(int64_t n, const float *x) {
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= UINT32_C(0x7fffffff);
        most = bits > most ? bits : most;
    }
    float size;
    memcpy(&size, &most, sizeof size);
    return size;
}

double pli_max_abs_f64(int64_t n, const double *x) {
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= UINT64_C(0x7fffffffffffffff);
        most = bits > most ? bits : most;
    }
    double size;
    memcpy(&size, &most, sizeof size);
    return size;
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

/* Each score is computed in double, in two passes, so that p is rounded once. NaN in x gives NaN. */
double pli_softmax_f32(int64_t n, const float *x, float *p) {
    double most = (double)x[0], sum = 0.0;
    for (int64_t i = 1; i < n; i++) most = (double)x[i] > most ? (double)x[i] : most;
    for (int64_t i = 0; i < n; i++) sum += pli_exp((double)x[i] - most);
    for (int64_t i = 0; i < n; i++) p[i] = (float)(pli_exp((double)x[i] - most) / sum);
    return most + log(sum);
}

double pli_softmax_f64(int64_t n, const double *x, double *p) {
    double most = x[0], sum = 0.0;
    for (int64_t i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    for (int64_t i = 0; i < n; i++) {
        p[i] = pli_exp(x[i] - most);
        sum += p[i];
    }
    for (int64_t i = 0; i < n; i++) p[i] /= sum;
    return most + log(sum);
}

static int64_t exact_add_f32(int64_t n, const float *x, const int8_t *top, int64_t *hi, int64_t *lo) {
    return pli_exact_add_fitting_f32(n, x, top, hi, lo);
}

static int64_t exact_add_f64(int64_t n, const double *x, const int8_t *top, int64_t *hi, int64_t *mid, int64_t *lo) {
    return pli_exact_add_fitting_f64(n, x, top, hi, mid, lo);
}

static int64_t exact_sum_f32(int32_t terms, const float *const *x, int64_t first, int64_t n, float *out) {
    return pli_exact_sum_fitting_f32(terms, x, first, n, out);
}

static int64_t exact_sum_f64(int32_t terms, const double *const *x, int64_t first, int64_t n, double *out) {
    return pli_exact_sum_fitting_f64(terms, x, first, n, out);
}

static const pli_kernels ref = {
    .name = "ref",
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

const pli_kernels *pli_kernels_ref(void) {
    return &ref;
}
