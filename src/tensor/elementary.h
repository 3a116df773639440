/* tensor/elementary.h - e^x and related functions of one element, without branches, so that loops over them vectorise
 * on any processor and give the same bits. They compute in double throughout; float kernels round the result once.
 *
 * e^x = 2^k e^r with k = round(x / ln 2), |r| <= ln 2 / 2 by two-part reduction (Cody and Waite, 1980) and the
 * Taylor series to degree 13 (remainder below 2^-57). 2^k is applied in two factors, so that it neither overflows
 * nor loses subnormals early. */
#ifndef PLI_TENSOR_ELEMENTARY_H
#define PLI_TENSOR_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^k for -1022 <= k <= 1023, with k modulo 2^64; for other k (from NaN) the result means nothing. */
static inline double pli_power_of_two(uint64_t k) {
    const uint64_t bits = (k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

static inline double pli_exp(double x) {
    const double magic = 0x1.8p52; /* adding it rounds x to an integer, which then lies in the low bits */
    x = x > 711.0 ? 711.0 : x;
    x = x < -747.0 ? -747.0 : x;
    const double rounded = x * 0x1.71547652b82fep+0 + magic, k = rounded - magic;
    const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    const double e = 1.0 + (r + r * r * p);
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    /* bits = magic's + k. A positive number is halved by a logical shift, since vectors have no arithmetic one. */
    const uint64_t whole = bits - UINT64_C(0x4338000000000000);
    const uint64_t half = ((whole + 4096) >> 1) - 2048;
    return e * pli_power_of_two(half) * pli_power_of_two(whole - half);
}

/* e^x - 1 for x <= 0 without losing the digits of a small result: 2^k (e^r - 1) + (2^k - 1). Below -64 it is -1. */
static inline double pli_expm1_negative(double x) {
    const double magic = 0x1.8p52;
    x = x > 0.0 ? 0.0 : x;
    x = x < -64.0 ? -64.0 : x;
    const double rounded = x * 0x1.71547652b82fep+0 + magic, k = rounded - magic;
    const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    const double power = pli_power_of_two(bits - UINT64_C(0x4338000000000000));
    return power * (r + r * r * p) + (power - 1.0);
}

static inline double pli_tanh(double x) {
    const double t = pli_expm1_negative(-2.0 * fabs(x));
    return copysign(t / (2.0 + t), x);
}

static inline double pli_sigmoid(double x) {
    const double e = pli_exp(-fabs(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* log(1 + t) for 0 <= t <= 1 is 2 atanh(t / (2 + t)); above sqrt 2 - 1 it is ln 2 + 2 atanh((t - 1) / (t + 3)). The
 * series of atanh, in s^2 <= 0.0295, goes to s^23 (remainder below 2^-60). */
static inline double pli_log1p_unit(double t) {
    const double upper = t > 0.41421356237309503 ? 1.0 : 0.0;
    const double s2 = 2.0 * (t - upper) / (t + 2.0 + upper), q = 0.25 * (s2 * s2); /* 2 s and s^2 */
    double p = 1.0 / 23.0;
    p = p * q + 1.0 / 21.0;
    p = p * q + 1.0 / 19.0;
    p = p * q + 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    return upper * 0x1.62e42fefa39efp-1 + (s2 + s2 * (q * p) + upper * 0x1.abc9e3b39803fp-56);
}

/* log x = k ln 2 + log m, where x = 2^k m with m between sqrt 1/2 and sqrt 2, and log m = 2 atanh((m - 1) / (m + 1))
 * by the same series. Subnormals are first scaled by 2^54. */
static inline double pli_ln(double x) {
    const double scaled = x * (x < 0x1p-1022 ? 0x1p54 : 1.0), taken = x < 0x1p-1022 ? 54.0 : 0.0;
    uint64_t bits;
    memcpy(&bits, &scaled, sizeof bits);
    const uint64_t biased =
        (bits + UINT64_C(0x00095f619980c433)) >> 52; /* k + 1023, where a new power begins at sqrt 1/2 */
    const uint64_t rest = bits - (biased << 52) + UINT64_C(0x3ff0000000000000),
                   whole = biased | UINT64_C(0x4330000000000000);
    double m, k;
    memcpy(&m, &rest, sizeof m);
    memcpy(&k, &whole, sizeof k);
    k = k - 0x1.00000000003ffp52 - taken;
    const double s2 = 2.0 * (m - 1.0) / (m + 1.0), q = 0.25 * (s2 * s2);
    double p = 1.0 / 23.0;
    p = p * q + 1.0 / 21.0;
    p = p * q + 1.0 / 19.0;
    p = p * q + 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    const double y = k * 0x1.62e42fee00000p-1 + (s2 + (s2 * (q * p) + k * 0x1.a39ef35793c76p-33));
    const double past = x > 0x1.fffffffffffffp1023 ? x : y; /* infinity stays infinity; NaN is handled below */
    return x > 0.0 ? past : (x == 0.0 ? -HUGE_VAL : NAN);
}

static inline double pli_softplus(double x) {
    return (x > 0.0 ? x : 0.0) + pli_log1p_unit(pli_exp(-fabs(x)));
}

#endif
