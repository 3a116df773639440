/* combine min - a row holds the least of all that was pushed to it, value by value. Before anything has come it holds
 * infinity, or the largest whole number.
 *
 * It does not matter in which order values come, nor how often: whatever comes late or twice does no harm. A NaN that
 * is pushed is ignored. -0 becomes 0, so that not even bits depend on the order. */
#include <math.h>
#include <stdint.h>

#include "table/combine/combine.h"
#include "table/combine/scatter.h"

static void min_f32(int64_t n, const void *x_in, void *y_in) {
    const float *x = x_in;
    float       *y = y_in;
    for (int64_t i = 0; i < n; i++) {
        const float value = x[i] + 0.0F; /* -0 becomes 0 */
        y[i] = value < y[i] ? value : y[i];
    }
}

static void min_f64(int64_t n, const void *x_in, void *y_in) {
    const double *x = x_in;
    double       *y = y_in;
    for (int64_t i = 0; i < n; i++) {
        const double value = x[i] + 0.0;
        y[i] = value < y[i] ? value : y[i];
    }
}

static int64_t lesser(int64_t x, int64_t y) { return x < y ? x : y; }

static void min_i64(int64_t n, const void *x_in, void *y_in) {
    const int64_t *x = x_in;
    int64_t       *y = y_in;
    for (int64_t i = 0; i < n; i++) y[i] = lesser(x[i], y[i]);
}

static void scatter_i64(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    pli_scatter_i64(n, cols, at, x, y, lesser);
}

static void clear_f32(int64_t n, void *y) {
    for (int64_t i = 0; i < n; i++) ((float *)y)[i] = INFINITY;
}

static void clear_f64(int64_t n, void *y) {
    for (int64_t i = 0; i < n; i++) ((double *)y)[i] = INFINITY;
}

static void clear_i64(int64_t n, void *y) {
    for (int64_t i = 0; i < n; i++) ((int64_t *)y)[i] = INT64_MAX;
}

const pli_combine pli_min_combine = {
    .name = "min",
    .summary = "the least of all that was pushed",
    .reduce = PLAIT_MIN,
    .repeats = true,
    .of = { [PLAIT_F32] = { .width = 4, .fold = min_f32, .clear = clear_f32 },
            [PLAIT_F64] = { .width = 8, .fold = min_f64, .clear = clear_f64 },
            [PLAIT_I64] = { .width = 8, .fold = min_i64, .scatter = scatter_i64, .clear = clear_i64 } },
};
