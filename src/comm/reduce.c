/* Reduces element by element, in the same order everywhere. min and max take a if both are equal; a NaN in b is
 * handled as the comparison gives it. */
#include "comm/reduce.h"

#include <stdint.h>

#include "tensor/exact_cells.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void sum_f32(void *into, const void *a, const void *b, int64_t n) {
    float *z = into;
    const float *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
}
static void min_f32(void *into, const void *a, const void *b, int64_t n) {
    float *z = into;
    const float *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] < x[i] ? y[i] : x[i];
}
static void max_f32(void *into, const void *a, const void *b, int64_t n) {
    float *z = into;
    const float *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] > x[i] ? y[i] : x[i];
}

static void sum_f64(void *into, const void *a, const void *b, int64_t n) {
    double *z = into;
    const double *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = x[i] + y[i];
}
static void min_f64(void *into, const void *a, const void *b, int64_t n) {
    double *z = into;
    const double *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] < x[i] ? y[i] : x[i];
}
static void max_f64(void *into, const void *a, const void *b, int64_t n) {
    double *z = into;
    const double *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] > x[i] ? y[i] : x[i];
}

static void sum_i64(void *into, const void *a, const void *b, int64_t n) { /* wraps around */
    int64_t *z = into;
    const int64_t *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = (int64_t)((uint64_t)x[i] + (uint64_t)y[i]);
}
static void min_i64(void *into, const void *a, const void *b, int64_t n) {
    int64_t *z = into;
    const int64_t *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] < x[i] ? y[i] : x[i];
}
static void max_i64(void *into, const void *a, const void *b, int64_t n) {
    int64_t *z = into;
    const int64_t *x = a, *y = b;
    for (int64_t i = 0; i < n; i++) z[i] = y[i] > x[i] ? y[i] : x[i];
}

static void sum_cells_f32(void *into, const void *a, const void *b, int64_t n) {
    pli_cells_merge(false, n, a, b, into);
}
static void sum_cells_f64(void *into, const void *a, const void *b, int64_t n) { pli_cells_merge(true, n, a, b, into); }

static const pli_reducer reducers[] = {
    { PLAIT_F32, PLAIT_SUM, sum_f32 },           { PLAIT_F32, PLAIT_MIN, min_f32 }, { PLAIT_F32, PLAIT_MAX, max_f32 },
    { PLAIT_F64, PLAIT_SUM, sum_f64 },           { PLAIT_F64, PLAIT_MIN, min_f64 }, { PLAIT_F64, PLAIT_MAX, max_f64 },
    { PLAIT_I64, PLAIT_SUM, sum_i64 },           { PLAIT_I64, PLAIT_MIN, min_i64 }, { PLAIT_I64, PLAIT_MAX, max_i64 },
    { PLI_CELLS_F32, PLAIT_SUM, sum_cells_f32 }, { PLI_CELLS_F64, PLAIT_SUM, sum_cells_f64 },
};

static const char *const type_names[] = { [PLAIT_F32] = "f32",  [PLAIT_F64] = "f64",     [PLAIT_I64] = "i64",
                                          [PLAIT_U8] = "bytes", [PLI_CELLS_F32] = "f32", [PLI_CELLS_F64] = "f64" };
static const char *const op_names[] = {
    [PLAIT_SUM] = "sum", [PLAIT_MIN] = "min", [PLAIT_MAX] = "max", [PLAIT_SUM_EXACT] = "exact sum"
};

const pli_reducer *pli_reducer_find(plait_type type, plait_reduce op) {
    for (size_t i = 0; i < COUNT(reducers); i++)
        if (reducers[i].type == type && reducers[i].op == op) return &reducers[i];
    return NULL;
}

size_t pli_type_bytes(plait_type type) {
    if (pli_is_cells(type)) return type == PLI_CELLS_F64 ? PLI_CELL_BYTES_F64 : PLI_CELL_BYTES_F32;
    return plait_type_bytes(type);
}

const char *pli_type_name(plait_type type) {
    return (size_t)type < COUNT(type_names) && type_names[type] != NULL ? type_names[type] : "of an unknown type";
}

const char *pli_op_name(plait_type type, plait_reduce op) {
    if (pli_is_cells(type)) op = PLAIT_SUM_EXACT;
    return (size_t)op < COUNT(op_names) ? op_names[op] : "an unknown operation";
}

void pli_reduce(void *into, const void *a, const void *b, int64_t n, plait_type type, plait_reduce op) {
    pli_reducer_find(type, op)->merge(into, a, b, n);
}
