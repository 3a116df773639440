/* data/schema/superacc.h - sums of doubles that do not depend on their order. Each value is an integer of 53 bits
 * times a power of two; values whose exponents share their upper bits are added as integers of 128 bits. Exact for
 * up to 2^42 values (a superaccumulator; Kulisch, "Computer Arithmetic and Validity", 2008, in its small form). */
#ifndef PLI_DATA_SUPERACC_H
#define PLI_DATA_SUPERACC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { PLI_SUPERACC_BINS = 64 };

typedef struct pli_superacc {
    __int128 bin[PLI_SUPERACC_BINS];
} pli_superacc; /* bin k counts units of 2^(32k - 1075) */

static inline void pli_superacc_add(pli_superacc *sum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    int      exponent = (int)(bits >> 52) & 2047;
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | (exponent > 0 ? UINT64_C(1) << 52 : 0);
    if (exponent == 0) exponent = 1;
    __int128 units = (__int128)mantissa << (exponent & 31);
    sum->bin[exponent >> 5] += bits >> 63 ? -units : units;
}

static inline void pli_superacc_merge(pli_superacc *sum, const pli_superacc *other) {
    for (int k = 0; k < PLI_SUPERACC_BINS; k++) sum->bin[k] += other->bin[k];
}

/** The sum as a double, which depends only on the exact sums in the bins; small bins come first, so that little is
 *  lost. */
static inline double pli_superacc_value(const pli_superacc *sum) {
    double value = 0;
    for (int k = 0; k < PLI_SUPERACC_BINS; k++) value += ldexp((double)sum->bin[k], 32 * k - 1075);
    return value;
}

#endif
