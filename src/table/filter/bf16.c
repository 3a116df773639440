/* bf16 - values as the upper half of a float32: 8 bits of mantissa, its whole range, two bytes. Rounded to the nearest,
 * ties to even, but never up to infinity. Infinities and NaN stay what they are.
 *
 * Paper: Kalamkar et al., "A Study of BFLOAT16 for Deep Learning Training", 2019. */
#include "table/filter/filter.h"

#include <string.h>

static uint16_t narrow(float value) {
    uint32_t x;
    memcpy(&x, &value, sizeof x);
    if ((x & 0x7fffffff) > 0x7f800000) return (uint16_t)(x >> 16 | 0x40);
    if ((x & 0x7fffffff) == 0x7f800000) return (uint16_t)(x >> 16);
    uint32_t up = x + 0x7fff + (x >> 16 & 1);
    return (uint16_t)(((up & 0x7f800000) == 0x7f800000 ? x : up) >> 16);
}

static float widen(uint16_t h) {
    uint32_t x = (uint32_t)h << 16;
    float    value;
    memcpy(&value, &x, sizeof value);
    return value;
}

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    *(pli_half *)state = (pli_half){ .narrow = narrow, .widen = widen };
    return pli_filter_takes_none("bf16", parameters, err);
}

const plait_filter pli_bf16_filter = {
    .name = "bf16",
    .parameters = "",
    .summary = "sends values as the upper half of 32-bit floats (bfloat16)",
    .state_bytes = sizeof(pli_half),
    .loss = PLAIT_ROUNDED,
    .answers = 1,
    .parse = parse,
    .values = { .bound = pli_half_bound, .encode = pli_half_encode, .decode = pli_half_decode },
};
