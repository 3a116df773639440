/* What fixed8 and fixed16 share: whole numbers beside one scale a message, rounded up or down by chance.
 *
 * The scale is the message's largest absolute value s, and x becomes an integer near x / s * (2^(b-1) - 1). It is
 * rounded up with the probability of its fraction, so its mean is x; the random number is a function of seed, table,
 * clock, row and column, never of the worker. Zero stays zero. Where a value is not finite the message is not touched,
 * so that a diverged run is seen.
 *
 * Papers: Li et al., OSDI 2014, section 3.7 (fixed-point compression with random rounding); Alistarh et al., "QSGD",
 * NIPS 2017 (what it does to convergence). */
#include "table/filter/filter.h"

#include <math.h>
#include <string.h>

enum { RAW = 0, CODED = 1, HEAD = 1 + sizeof(double) };

int64_t pli_fixed_bound(const void *state, const plait_part *part, int64_t n) {
    int64_t coded = HEAD + n * ((const pli_fixed *)state)->width, raw = 1 + n * pli_value_bytes(part->type);
    return coded > raw ? coded : raw;
}

static int64_t round_by_chance(double x, double unit) {
    double low = floor(x);
    return (int64_t)low + (x - low > unit);
}

int64_t pli_fixed_encode(void *state, const plait_part *part, int64_t n, const uint64_t *row, const void *values,
                         void *bytes) {
    int            width = ((const pli_fixed *)state)->width;
    unsigned char *to = bytes;
    double         scale = 0, most = width == 1 ? 127 : 32767;
    uint64_t       stream = pli_part_stream(part);
    bool           finite = true;
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(pli_value_at(part->type, values, i));
        finite = finite && isfinite(x);
        scale = x > scale ? x : scale;
    }
    to[0] = finite && scale / most > 0 ? CODED : RAW;
    if (to[0] == RAW) {
        memcpy(to + 1, values, (size_t)(n * pli_value_bytes(part->type)));
        return 1 + n * pli_value_bytes(part->type);
    }
    memcpy(to + 1, &scale, sizeof scale);
    for (int64_t i = 0; i < n; i++) {
        double  x = pli_value_at(part->type, values, i) / scale * most;
        int64_t q = round_by_chance(x, pli_stream_unit(stream, row[i / part->cols], i % part->cols));
        q = q > (int64_t)most ? (int64_t)most : q < -(int64_t)most ? -(int64_t)most : q;
        if (width == 1) to[HEAD + i] = (unsigned char)(int8_t)q;
        else memcpy(to + HEAD + 2 * i, &(int16_t){ (int16_t)q }, 2);
    }
    return HEAD + n * width;
}

plait_status pli_fixed_decode(void *state, const plait_part *part, int64_t n, const void *bytes, int64_t size,
                              void *values) {
    int                  width = ((const pli_fixed *)state)->width;
    const unsigned char *from = bytes;
    double               scale, most = width == 1 ? 127 : 32767;
    int64_t              raw = n * pli_value_bytes(part->type);
    if (size < 1) return PLAIT_EFORMAT;
    if (from[0] == RAW) {
        if (size - 1 != raw) return PLAIT_EFORMAT;
        memcpy(values, from + 1, (size_t)raw);
        return PLAIT_OK;
    }
    if (from[0] != CODED || size < HEAD || (size - HEAD) / width != n || (size - HEAD) % width != 0)
        return PLAIT_EFORMAT;
    memcpy(&scale, from + 1, sizeof scale);
    for (int64_t i = 0; i < n; i++) {
        int16_t q = (int8_t)from[HEAD + i * width];
        if (width == 2) memcpy(&q, from + HEAD + 2 * i, 2);
        pli_value_put(part->type, values, i, (double)q / most * scale);
    }
    return PLAIT_OK;
}
