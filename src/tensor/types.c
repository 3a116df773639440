/* Element types and shapes, as declared in the public headers. */
#include <plait/tensor.h>

#include "base/base.h"

static const struct {
    const char *name;
    size_t      bytes;
} types[PLAIT_TYPES] = {
    [PLAIT_F32] = { "f32", 4 },   [PLAIT_F64] = { "f64", 8 }, [PLAIT_I64] = { "i64", 8 },   [PLAIT_U8] = { "u8", 1 },
    [PLAIT_BF16] = { "bf16", 2 }, [PLAIT_I32] = { "i32", 4 }, [PLAIT_BOOL] = { "bool", 1 },
};

const char *plait_type_name(plait_type type) {
    return (uint32_t)type < PLAIT_TYPES ? types[type].name : "?";
}

size_t plait_type_bytes(plait_type type) {
    return (uint32_t)type < PLAIT_TYPES ? types[type].bytes : 0;
}

int64_t plait_shape_elements(const plait_shape *shape) {
    if (shape == NULL || shape->rank < 0 || shape->rank > PLAIT_RANK_MAX) return -1;
    int64_t n = 1;
    bool    too_many = false, empty = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dim[i] < 0) return -1;
        if (shape->dim[i] == 0) empty = true;
        else if (n > INT64_MAX / 8 / shape->dim[i]) too_many = true;
        else n *= shape->dim[i];
    }
    return empty ? 0 : too_many ? -1 : n;
}
