/* data/formats/number.h - numbers from text at the speed of memory.
 *
 * Eight digits are read at once: a word of text is tested for its first non-digit and turned into a number by three
 * multiplications (SWAR; Lemire, "Number parsing at a gigabyte per second", 2021). Decimals of up to 19 digits become a
 * float by one division whose error is bounded: unless the double lies within eight units of the midpoint of two
 * floats, it rounds to the same float as strtod. All else goes to strtod.
 *
 * Every function may read PLI_PARSE_PAD bytes beyond the token; the caller must make sure that they are readable. */
#ifndef PLI_DATA_NUMBER_H
#define PLI_DATA_NUMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define PLI_PARSE_PAD   64
#define pli_likely(x)   __builtin_expect(!!(x), 1)
#define pli_unlikely(x) __builtin_expect(!!(x), 0)

/* 10^0 .. 10^22, exact in double. */
extern const double   pli_pow10[23];
extern const uint64_t pli_pow10_u64[20];

/** The number at text, exactly as strtod reads it: sets *out and returns the first byte after it; NULL: there is
 *  none, or it is not finite. */
const unsigned char *pli_number_slow(const unsigned char *text, double *out);

/** The number of eight digits 0 .. 9, the first in the lowest byte. */
static inline uint64_t pli_digits_value(uint64_t word) {
    word = word * 10 + (word >> 8);
    word = ((word & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
            ((word >> 16) & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
           32;
    return (uint32_t)word;
}

/** Reads up to 8 digits into *out, returns how many there were. Branch-free. */
static inline int pli_digits8(const unsigned char *text, uint64_t *out) {
    uint64_t word;
    memcpy(&word, text, 8); /* little-endian: the first digit is the lowest byte */
    word ^= UINT64_C(0x3030303030303030);
    uint64_t other =
        (((word & UINT64_C(0x7f7f7f7f7f7f7f7f)) + UINT64_C(0x7676767676767676)) | word) & UINT64_C(0x8080808080808080);
    int n = other != 0 ? __builtin_ctzll(other) >> 3 : 8;
    *out = pli_digits_value(n > 0 ? word << (64 - 8 * n) : 0); /* digits to the top, zeros before them */
    return n;
}

/* A decimal as written: mantissa * 10^exponent. */
typedef struct pli_decimal {
    uint64_t mantissa;
    int      digits, exponent; /* digits counts leading zeros too */
    bool     negative;
} pli_decimal;

/* Appends the digits at text to the mantissa; false: there would be more than 19 in all. */
static inline bool pli_decimal_digits(const unsigned char **text, pli_decimal *d) {
    for (;;) {
        uint64_t part;
        int      n = pli_digits8(*text, &part);
        if (n == 0) return true;
        if (d->digits + n > 19) return false;
        d->mantissa = d->mantissa * pli_pow10_u64[n] + part;
        d->digits += n;
        *text += n;
        if (n < 8) return true;
    }
}

/** The decimal at text; NULL: it is no simple one (ask pli_number_slow). */
static inline const unsigned char *pli_decimal_at(const unsigned char *text, pli_decimal *out) {
    pli_decimal d = { 0, 0, 0, *text == '-' };
    text += *text == '-' || *text == '+';
    if (!pli_decimal_digits(&text, &d)) return NULL;
    if (*text == '.') {
        int whole = d.digits;
        text++;
        if (!pli_decimal_digits(&text, &d)) return NULL;
        d.exponent = whole - d.digits;
    }
    if (d.digits == 0) return NULL;
    if ((*text | 0x20) == 'e') {
        bool     minus = text[1] == '-';
        uint64_t e;
        text += 1 + (text[1] == '-' || text[1] == '+');
        int n = pli_digits8(text, &e);
        if (n == 0 || n > 3) return NULL;
        text += n;
        d.exponent += minus ? -(int)e : (int)e;
    }
    *out = d;
    return text;
}

/* The value, within two units in the last place; exact if mantissa < 2^53. |exponent| <= 22. */
static inline double pli_decimal_value(pli_decimal d) {
    double v = (double)d.mantissa;
    v = d.exponent < 0 ? v / pli_pow10[-d.exponent] : v * pli_pow10[d.exponent];
    return d.negative ? -v : v;
}

/** The number at text, rounded like strtod. NULL: there is none, or it is not finite. */
static inline const unsigned char *pli_number_f64(const unsigned char *text, double *out) {
    pli_decimal          d;
    const unsigned char *end = pli_decimal_at(text, &d);
    if (pli_unlikely(end == NULL || d.exponent < -22 || d.exponent > 22 || d.mantissa >> 53 != 0))
        return pli_number_slow(text, out);
    *out = pli_decimal_value(d);
    return end;
}

/** The number at text, equal to (float)strtod. NULL: there is none, or it is not finite as a float. */
static inline const unsigned char *pli_number_f32(const unsigned char *text, float *out) {
    pli_decimal          d;
    double               v;
    const unsigned char *end = pli_decimal_at(text, &d);
    if (pli_likely(end != NULL && d.exponent >= -22 && d.exponent <= 22)) {
        v = pli_decimal_value(d);
        if (pli_likely(d.mantissa >> 53 == 0)) {
            *out = (float)v;
            return end; /* |v| < 2^53 * 10^22 < FLT_MAX */
        }
        uint64_t bits;
        memcpy(&bits, &v, 8);
        int64_t from_middle = (int64_t)(bits & 0x1fffffff) - 0x10000000;
        if (pli_likely((from_middle > 8 || from_middle < -8) && (v > 1e-37 || v < -1e-37) && v < 3e38 && v > -3e38)) {
            *out = (float)v;
            return end;
        }
    }
    end = pli_number_slow(text, &v);
    if (end == NULL) return NULL;
    *out = (float)v;
    return *out - *out == 0.0f ? end : NULL;
}

#endif
