/* What fp16 and bf16 share: two bytes a value, made from a float32 by a conversion of theirs. */
#include "table/filter/filter.h"

#include <float.h>
#include <math.h>
#include <string.h>

int64_t pli_half_bound(const void *state, const plait_part *part, int64_t n) {
    (void)state, (void)part;
    return n * 2;
}

/* A float64 that no float32 holds is cut to the largest one. */
static float to_f32(double x) {
    return isfinite(x) && fabs(x) > FLT_MAX ? copysignf(FLT_MAX, x > 0 ? 1.0F : -1.0F) : (float)x;
}

int64_t pli_half_encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                        void *bytes) {
    const pli_half *half = state;
    (void)row;
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = half->narrow(to_f32(pli_value_at(part->type, values, i)));
        memcpy((unsigned char *)bytes + 2 * i, &h, sizeof h);
    }
    return n * 2;
}

plait_status pli_half_decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                             void *values) {
    const pli_half *half = state;
    if (size % 2 != 0 || size / 2 != n) return PLAIT_EFORMAT;
    for (int64_t i = 0; i < n; i++) {
        uint16_t h;
        memcpy(&h, (const unsigned char *)bytes + 2 * i, sizeof h);
        pli_value_put(part->type, values, i, (double)half->widen(h));
    }
    return PLAIT_OK;
}
