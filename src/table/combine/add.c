/* combine add - a row is the sum of all that was pushed to it. Sums of whole numbers wrap around and do not depend on
 * the order; sums of floats do, unless the table is exact (state/updates.h). The rows that a push names may lie
 * anywhere in memory, so those a few places ahead are prefetched. */
#include "table/combine/combine.h"
#include "table/combine/scatter.h"

enum { AHEAD = PLI_SCATTER_AHEAD };

static void add_f32(int64_t n, const void *x_in, void *y_in) {
    const float *x = x_in;
    float       *y = y_in;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void add_f64(int64_t n, const void *x_in, void *y_in) {
    const double *x = x_in;
    double       *y = y_in;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void add_i64(int64_t n, const void *x_in, void *y_in) {
    const uint64_t *x = x_in; /* unsigned, so that sums wrap around */
    uint64_t       *y = y_in;
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

static void scatter_f32(int64_t n, int64_t cols, const int64_t *at, const void *x_in, void *y_in) {
    const float *x = x_in;
    float       *y = y_in;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && at[i + AHEAD] >= 0) __builtin_prefetch(&y[at[i + AHEAD] * cols], 1);
        if (at[i] < 0) continue;
        if (cols == 1) y[at[i]] += x[i];
        else add_f32(cols, &x[i * cols], &y[at[i] * cols]);
    }
}

static void scatter_f64(int64_t n, int64_t cols, const int64_t *at, const void *x_in, void *y_in) {
    const double *x = x_in;
    double       *y = y_in;
    for (int64_t i = 0; i < n; i++) {
        if (i + AHEAD < n && at[i + AHEAD] >= 0) __builtin_prefetch(&y[at[i + AHEAD] * cols], 1);
        if (at[i] < 0) continue;
        if (cols == 1) y[at[i]] += x[i];
        else add_f64(cols, &x[i * cols], &y[at[i] * cols]);
    }
}

static int64_t sum(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }

static void scatter_i64(int64_t n, int64_t cols, const int64_t *at, const void *x, void *y) {
    pli_scatter_i64(n, cols, at, x, y, sum);
}

static void gather_f32(int64_t n, int64_t cols, const int64_t *at, const void *x_in, void *y_in) {
    const float *x = x_in;
    float       *y = y_in;
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) add_f32(cols, &x[at[i] * cols], &y[i * cols]);
}

static void gather_f64(int64_t n, int64_t cols, const int64_t *at, const void *x_in, void *y_in) {
    const double *x = x_in;
    double       *y = y_in;
    for (int64_t i = 0; i < n; i++)
        if (at[i] >= 0) add_f64(cols, &x[at[i] * cols], &y[i * cols]);
}

const pli_combine pli_add_combine = {
    .name = "add",
    .summary = "the sum of all that was pushed",
    .reduce = PLAIT_SUM,
    .adds = true,
    .of = { [PLAIT_F32] = { .width = 4, .fold = add_f32, .scatter = scatter_f32, .gather = gather_f32 },
            [PLAIT_F64] = { .width = 8, .fold = add_f64, .scatter = scatter_f64, .gather = gather_f64 },
            [PLAIT_I64] = { .width = 8, .fold = add_i64, .scatter = scatter_i64 } },
};
