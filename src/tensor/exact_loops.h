/* tensor/exact_loops.h - the loops of exact.h that run over every element of every term, compiled for each processor.
 *
 * They take eight elements at a time. If no element needs a higher top, none is special, and all units are within a
 * float's range, all eight terms are cut by the same instructions, without a branch. Adding 1.5 x 2^23 (for a double
 * 1.5 x 2^52) units to a number rounds it to the nearest multiple of the unit, ties to even; the multiple then lies
 * in the low bits. */
#ifndef PLI_TENSOR_EXACT_LOOPS_H
#define PLI_TENSOR_EXACT_LOOPS_H

#include "tensor/elementary.h"
#include "tensor/exact.h"

enum {
    PLI_EXACT_AT_ONCE = 8,
    PLI_EXACT_W32 = 22,
    PLI_EXACT_W64 = 40,
    PLI_EXACT_REACH32 = 148,  /* a float of biased exponent e is below 2^(22 (t + 1) - 1) if e < 22 t + 148 */
    PLI_EXACT_REACH64 = 1062, /* a double below 2^(40 (t + 1) - 1) if e < 40 t + 1062                        */
    PLI_EXACT_LEAST32 = -6,   /* tops of the smallest numbers, and of 0 */
    PLI_EXACT_LEAST64 = -26,
    PLI_EXACT_LOW32 = -5, /* for tops from here to HIGH32 a float can hold 1.5 x 2^23 units of both bins */
    PLI_EXACT_HIGH32 = 4,
    PLI_EXACT_NARROW_TERMS = 1023, /* with so many floats the bins fit into 32 bits */
    PLI_EXACT_INFINITE32 = 255,
    PLI_EXACT_INFINITE64 = 2047
};

static const double pli_exact_magic = 0x1.8p52;

static inline int64_t pli_exact_bits(double x) {
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline int32_t pli_exact_bits32(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float pli_exact_from32(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline int32_t pli_exact_exponent32(float x) { return pli_exact_bits32(x) >> 23 & 255; }
static inline int32_t pli_exact_exponent64(double x) { return (int32_t)((uint64_t)pli_exact_bits(x) >> 52 & 2047); }

/* The lowest top that a number of this biased exponent fits: e / W rounded down, but at least the grid's lowest top. */
static inline int32_t pli_exact_top32(int32_t e) { return ((e + 6) * 2979 >> 16) - 6; }
static inline int32_t pli_exact_top64(int32_t e) { return ((e + 18) * 52429 >> 21) - 26; }

static inline bool pli_exact_fits_f32(const float *x, const int8_t *top) {
    int32_t bad = 0;
    for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
        const int32_t e = pli_exact_exponent32(x[i]), t = top[i];
        bad |= (e >= PLI_EXACT_W32 * t + PLI_EXACT_REACH32) | (t > PLI_EXACT_HIGH32) |
               ((t < PLI_EXACT_LOW32) & ((pli_exact_bits32(x[i]) & INT32_MAX) != 0));
    }
    return bad == 0;
}

static inline bool pli_exact_fits_f64(const double *x, const int8_t *top) {
    int32_t bad = 0;
    for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
        const int32_t e = pli_exact_exponent64(x[i]);
        bad |= (e >= PLI_EXACT_W64 * top[i] + PLI_EXACT_REACH64) | (e == PLI_EXACT_INFINITE64) |
               (top[i] == PLI_EXACT_SPECIAL);
    }
    return bad == 0;
}

/* Cuts one term that fits its top and adds the pieces to the bins, for any top. */
static inline void pli_exact_cut_f32(float x, int64_t top, int64_t *hi, int64_t *lo) {
    const int64_t zero = pli_exact_bits(pli_exact_magic);
    const double  units = (double)x * pli_power_of_two((uint64_t)(-PLI_EXACT_W32 * top));
    const double  first = units + pli_exact_magic;
    const double  second = (units - (first - pli_exact_magic)) * 0x1p22 + pli_exact_magic;
    *hi += pli_exact_bits(first) - zero;
    *lo += pli_exact_bits(second) - zero;
}

/* 1.5 x 2^23 units of bin t, as a float's bits. */
static inline int32_t pli_exact_magic32(int32_t t) {
    t = t < PLI_EXACT_LOW32 ? PLI_EXACT_LOW32 : t;
    return (int32_t)((uint32_t)(127 + 23 + PLI_EXACT_W32 * t) << 23 | UINT32_C(1) << 22);
}

/* The same for tops from LOW32 to HIGH32, and for x = 0. */
static inline void pli_exact_cut_near_f32(float x, int32_t magic, int32_t *hi, int32_t *lo) {
    const int32_t below = magic - (PLI_EXACT_W32 << 23);
    const float   first = x + pli_exact_from32(magic), rest = x - (first - pli_exact_from32(magic));
    const float   second = rest + pli_exact_from32(below);
    *hi += pli_exact_bits32(first) - magic;
    *lo += pli_exact_bits32(second) - below;
}

/* 2^(-40 top) is applied in two factors, since it may be out of a double's range. */
static inline void pli_exact_cut_f64(double x, int64_t top, int64_t *hi, int64_t *mid, int64_t *lo) {
    const int64_t zero = pli_exact_bits(pli_exact_magic);
    const double  half = pli_power_of_two((uint64_t)(-PLI_EXACT_W64 / 2 * top)), units = x * half * half;
    const double  first = units + pli_exact_magic;
    const double  rest = (units - (first - pli_exact_magic)) * 0x1p40, second = rest + pli_exact_magic;
    const double  third = (rest - (second - pli_exact_magic)) * 0x1p40 + pli_exact_magic;
    *hi += pli_exact_bits(first) - zero;
    *mid += pli_exact_bits(second) - zero;
    *lo += pli_exact_bits(third) - zero;
}

/* Adds elements in whole groups, from the first on, until a group does not fit; returns how many were added. */
static inline int64_t pli_exact_add_fitting_f32(int64_t n, const float *restrict x, const int8_t *restrict top,
                                                int64_t *restrict hi, int64_t *restrict lo) {
    int64_t at = 0;
    for (; at + PLI_EXACT_AT_ONCE <= n && pli_exact_fits_f32(x + at, top + at); at += PLI_EXACT_AT_ONCE)
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
            int32_t first = 0, second = 0;
            pli_exact_cut_near_f32(x[at + i], pli_exact_magic32(top[at + i]), &first, &second);
            hi[at + i] += first;
            lo[at + i] += second;
        }
    return at;
}

static inline int64_t pli_exact_add_fitting_f64(int64_t n, const double *restrict x, const int8_t *restrict top,
                                                int64_t *restrict hi, int64_t *restrict mid, int64_t *restrict lo) {
    int64_t at = 0;
    for (; at + PLI_EXACT_AT_ONCE <= n && pli_exact_fits_f64(x + at, top + at); at += PLI_EXACT_AT_ONCE)
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++)
            pli_exact_cut_f64(x[at + i], top[at + i], &hi[at + i], &mid[at + i], &lo[at + i]);
    return at;
}

/* The sum of the bins, rounded to a double (once, as there are two bins), and then to a float. Not for special
 * elements. */
static inline float pli_exact_value_f32(int64_t top, int64_t hi, int64_t lo) {
    return (float)(((double)hi * 0x1p22 + (double)lo) * pli_power_of_two((uint64_t)(PLI_EXACT_W32 * (top - 1))));
}

static inline double pli_exact_value_f64(int64_t top, int64_t hi, int64_t mid, int64_t lo) {
    const double half = pli_power_of_two((uint64_t)(PLI_EXACT_W64 / 2 * (top - 2)));
    return (((double)hi * 0x1p40 + (double)mid) * 0x1p40 + (double)lo) * half * half;
}

/* Sums whole groups in registers, from the first on, until a group has a special element or one out of the range of
 * floats' units; returns how many of the n elements were done. */
static inline int64_t pli_exact_sum_fitting_f32(int32_t terms, const float *const *x, int64_t first, int64_t n,
                                                float *restrict out) {
    int64_t at = 0;
    for (; terms <= PLI_EXACT_NARROW_TERMS && at + PLI_EXACT_AT_ONCE <= n; at += PLI_EXACT_AT_ONCE) {
        int32_t most[PLI_EXACT_AT_ONCE] = { 0 }, top[PLI_EXACT_AT_ONCE], magic[PLI_EXACT_AT_ONCE], far = 0;
        int32_t hi[PLI_EXACT_AT_ONCE] = { 0 }, lo[PLI_EXACT_AT_ONCE] = { 0 };
        for (int32_t t = 0; t < terms; t++)
            for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
                const int32_t size = pli_exact_bits32(x[t][first + at + i]) & INT32_MAX;
                most[i] = size > most[i] ? size : most[i];
            }
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
            top[i] = pli_exact_top32(most[i] >> 23);
            magic[i] = pli_exact_magic32(top[i]);
            far |= (top[i] > PLI_EXACT_HIGH32) | ((top[i] < PLI_EXACT_LOW32) & (most[i] != 0));
        }
        if (far) break;
        for (int32_t t = 0; t < terms; t++)
            for (int i = 0; i < PLI_EXACT_AT_ONCE; i++)
                pli_exact_cut_near_f32(x[t][first + at + i], magic[i], &hi[i], &lo[i]);
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) out[at + i] = pli_exact_value_f32(top[i], hi[i], lo[i]);
    }
    return at;
}

static inline int64_t pli_exact_sum_fitting_f64(int32_t terms, const double *const *x, int64_t first, int64_t n,
                                                double *restrict out) {
    int64_t at = 0;
    for (; at + PLI_EXACT_AT_ONCE <= n; at += PLI_EXACT_AT_ONCE) {
        int32_t most[PLI_EXACT_AT_ONCE] = { 0 }, special = 0;
        int32_t top[PLI_EXACT_AT_ONCE];
        int64_t bin[PLI_EXACT_BINS_F64][PLI_EXACT_AT_ONCE] = { { 0 } };
        for (int32_t t = 0; t < terms; t++)
            for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
                const int32_t e = pli_exact_exponent64(x[t][first + at + i]);
                most[i] = e > most[i] ? e : most[i];
            }
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++) {
            special |= most[i] == PLI_EXACT_INFINITE64;
            top[i] = pli_exact_top64(most[i]);
        }
        if (special) break;
        for (int32_t t = 0; t < terms; t++)
            for (int i = 0; i < PLI_EXACT_AT_ONCE; i++)
                pli_exact_cut_f64(x[t][first + at + i], top[i], &bin[0][i], &bin[1][i], &bin[2][i]);
        for (int i = 0; i < PLI_EXACT_AT_ONCE; i++)
            out[at + i] = pli_exact_value_f64(top[i], bin[0][i], bin[1][i], bin[2][i]);
    }
    return at;
}

#endif
