/* fp16 - values as IEEE 754 binary16: 11 bits of mantissa, from 6e-8 to 65504, two bytes. Rounded to the nearest, ties
 * to even; what is larger becomes 65504, and the rest follows as residual. Infinities and NaN stay what they are.
 *
 * Paper: IEEE 754-2019, section 3.6; Micikevicius et al., "Mixed Precision Training", ICLR 2018. */
#include "table/filter/filter.h"

#include <string.h>

/* By hand, so that every machine rounds alike. */
static uint16_t narrow(float value) {
    uint32_t x;
    memcpy(&x, &value, sizeof x);
    uint16_t sign = (uint16_t)(x >> 16 & 0x8000);
    x &= 0x7fffffff;
    if (x > 0x7f800000) return sign | 0x7e00;
    if (x == 0x7f800000) return sign | 0x7c00;
    if (x >= 0x477ff000) return sign | 0x7bff;       /* would round to more than 65504   */
    if (x < 0x33000001) return sign;                 /* half of the smallest, or less    */
    uint32_t drop = x < 0x38800000 ? 126 - (x >> 23) : 13; /* bits of the mantissa; subnormal below 2^-14 */
    uint32_t mantissa = x < 0x38800000 ? (x & 0x7fffff) | 0x800000 : x - 0x38000000;
    uint32_t rest = mantissa & ((UINT32_C(1) << drop) - 1), half = UINT32_C(1) << (drop - 1), kept = mantissa >> drop;
    return (uint16_t)(sign | (kept + (rest > half || (rest == half && (kept & 1)))));
}

static float widen(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff, x;
    float    value;
    if (exponent == 0) {
        value = (float)mantissa * 0x1p-24f;
        return sign ? -value : value;
    }
    x = sign | (exponent == 31 ? 0x7f800000 : (exponent + 112) << 23) | mantissa << 13;
    memcpy(&value, &x, sizeof value);
    return value;
}

static plait_status parse(void *state, const char *parameters, const plait_filter_table *table, plait_error *err) {
    (void)table;
    *(pli_half *)state = (pli_half){ .narrow = narrow, .widen = widen };
    return pli_filter_takes_none("fp16", parameters, err);
}

const plait_filter pli_fp16_filter = {
    .name = "fp16",
    .parameters = "",
    .summary = "sends values as 16-bit floats with 11 significant bits (IEEE binary16)",
    .state_bytes = sizeof(pli_half),
    .loss = PLAIT_ROUNDED,
    .answers = 1,
    .parse = parse,
    .values = { .bound = pli_half_bound, .encode = pli_half_encode, .decode = pli_half_decode },
};
