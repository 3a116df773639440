/* plait/tensor.h - element types, shapes, and a view of an array. */
#ifndef PLAIT_TENSOR_H
#define PLAIT_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include <plait/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Tables hold F32, F64 and I64. Collectives add F32, F64, I64 and U8. Graphs compute with all types but U8, which they
 * only move and cast. */
typedef enum plait_type {
    PLAIT_F32 = 0,
    PLAIT_F64 = 1,
    PLAIT_I64 = 2,
    PLAIT_U8 = 3,
    PLAIT_BF16 = 4, /* the upper half of an F32; computed in F32, rounded to nearest even */
    PLAIT_I32 = 5,
    PLAIT_BOOL = 6 /* one byte, 0 or 1 */
} plait_type;
enum { PLAIT_TYPES = 7, PLAIT_RANK_MAX = 8, PLAIT_ANY = -1 };

/** The name of a type, "f32"; "?" if there is no such type. Any thread. */
PLAIT_API const char *plait_type_name(plait_type type);
/** Bytes of one element; 0 if there is no such type. Any thread. */
PLAIT_API size_t plait_type_bytes(plait_type type);

/* Lengths of the axes, the slowest first. Rank 0 is a scalar. A length of PLAIT_ANY is not known before a run. */
typedef struct plait_shape {
    int32_t rank;
    int64_t dim[PLAIT_RANK_MAX];
} plait_shape;

/* Elements in row-major order without gaps. Owns nothing. */
typedef struct plait_tensor {
    plait_type  type;
    plait_shape shape;
    void       *data;
} plait_tensor;

/** The product of the lengths; -1 if a length is PLAIT_ANY, if the bytes of 8-byte elements would not fit an int64_t,
 *  or if shape is NULL or its rank is out of range. */
PLAIT_API int64_t plait_shape_elements(const plait_shape *shape);

static inline plait_shape plait_shape_1(int64_t a) {
    plait_shape s = { 1, { a } };
    return s;
}
static inline plait_shape plait_shape_2(int64_t a, int64_t b) {
    plait_shape s = { 2, { a, b } };
    return s;
}
static inline plait_shape plait_shape_4(int64_t a, int64_t b, int64_t c, int64_t d) {
    plait_shape s = { 4, { a, b, c, d } };
    return s;
}
/** A view of data. The cast drops const: data that must not be written may only be read through the view. */
static inline plait_tensor plait_tensor_of(plait_type type, plait_shape shape, const void *data) {
    plait_tensor t;
    t.type = type;
    t.shape = shape;
    t.data = (void *)(uintptr_t)data;
    return t;
}

#ifdef __cplusplus
}
#endif
#endif
