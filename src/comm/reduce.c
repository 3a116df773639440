/* Element by element, the same order everywhere: min and max take a where they are equal, and a NaN in b is passed
 * over as the comparison has it. */
#include "comm/collective.h"
#include "tensor/exact_cells.h"

static void sum_f32(float *into, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = a[i] + b[i];
}
static void min_f32(float *into, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] < a[i] ? b[i] : a[i];
}
static void max_f32(float *into, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] > a[i] ? b[i] : a[i];
}
static void sum_f64(double *into, const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = a[i] + b[i];
}
static void min_f64(double *into, const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] < a[i] ? b[i] : a[i];
}
static void max_f64(double *into, const double *a, const double *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] > a[i] ? b[i] : a[i];
}
static void sum_i64(int64_t *into, const int64_t *a, const int64_t *b, int64_t n) { /* wraps around */
    for (int64_t i = 0; i < n; i++) into[i] = (int64_t)((uint64_t)a[i] + (uint64_t)b[i]);
}
static void min_i64(int64_t *into, const int64_t *a, const int64_t *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] < a[i] ? b[i] : a[i];
}
static void max_i64(int64_t *into, const int64_t *a, const int64_t *b, int64_t n) {
    for (int64_t i = 0; i < n; i++) into[i] = b[i] > a[i] ? b[i] : a[i];
}

void pli_reduce(void *into, const void *a, const void *b, int64_t n, plait_type type, plait_reduce op) {
    switch ((int)type) {
    case PLAIT_F32:
        (op == PLAIT_SUM ? sum_f32 : op == PLAIT_MIN ? min_f32 : max_f32)(into, a, b, n);
        return;
    case PLAIT_F64:
        (op == PLAIT_SUM ? sum_f64 : op == PLAIT_MIN ? min_f64 : max_f64)(into, a, b, n);
        return;
    case PLAIT_I64:
        (op == PLAIT_SUM ? sum_i64 : op == PLAIT_MIN ? min_i64 : max_i64)(into, a, b, n);
        return;
    case PLI_CELLS_F32: pli_cells_merge(false, n, a, b, into); return;
    case PLI_CELLS_F64: pli_cells_merge(true, n, a, b, into); return;
    default: return; /* bytes are no numbers */
    }
}
