/* tensor/exact.h - sums whose bits depend only on the terms: not on their order, nor on how they were grouped.
 *
 * A sum keeps, for each element, integers in a few *bins* of fixed width on a fixed grid of exponents. A term is cut at
 * the bins' borders: bin t takes the nearest multiple of its unit 2^(W t), the bin below takes what is left, and so on;
 * each piece is a small integer, so adding the pieces is exact. Only the highest bins are kept: `top` is the lowest t
 * for which the largest term is below the bin's reach, |x| < 2^(W (t + 1) - 1). A larger term moves top up, and the
 * lowest bin is dropped. Terms that came earlier have 0 in the new bin and the same pieces in the bins that stay, so
 * the result does not tell in which order the terms came. Each term loses less than half a unit of the lowest bin.
 *
 *     terms    W    bins   lost a term, of the largest term         exact up to
 *     float    22   2      2^-22 .. 2^-44                           2^41 terms
 *     double   40   3      2^-80 .. 2^-120                          2^23 terms
 *
 * An infinity or a NaN makes an element special: the result is then what any order of addition gives.
 *
 * Papers: Demmel and Nguyen, "Parallel Reproducible Summation", IEEE Transactions on Computers 2015 (the bins);
 * Ahrens, Demmel and Nguyen, "Algorithms for Efficient Reproducible Floating Point Summation", ACM TOMS 2020
 * (algorithms 6 to 8; here bins are integers, there they are pairs of floats). */
#ifndef PLI_TENSOR_EXACT_H
#define PLI_TENSOR_EXACT_H

#include <stdbool.h>
#include <stdint.h>

enum { PLI_EXACT_BINS_F32 = 2, PLI_EXACT_BINS_F64 = 3, PLI_EXACT_BINS_MAX = 3, PLI_EXACT_SPECIAL = 127 };

/* The sums of n elements, in memory that the caller owns. Element i is top[i] and bin[b][i], the highest bin first. */
typedef struct pli_exact {
    bool     wide; /* sums of doubles */
    int64_t  n;
    int8_t  *top;
    int64_t *bin[PLI_EXACT_BINS_MAX]; /* [2] is unused in sums of floats */
} pli_exact;

static inline int pli_exact_bins(bool wide) { return wide ? PLI_EXACT_BINS_F64 : PLI_EXACT_BINS_F32; }
/** Bytes of memory for n elements: one block, aligned to 8, which pli_exact_at divides. */
static inline uint64_t pli_exact_bytes(bool wide, int64_t n) {
    return (uint64_t)n * 8 * (uint64_t)pli_exact_bins(wide) + (((uint64_t)n + 7) & ~UINT64_C(7));
}
pli_exact pli_exact_at(bool wide, int64_t n, void *memory);

/** Sets elements first .. first + n - 1 to empty sums, which are 0. */
void pli_exact_clear(const pli_exact *sum, int64_t first, int64_t n);
/** Adds x [n] to elements first .. first + n - 1. sum->wide must agree. */
void pli_exact_add_f32(const pli_exact *sum, int64_t first, int64_t n, const float *x);
void pli_exact_add_f64(const pli_exact *sum, int64_t first, int64_t n, const double *x);
/** Adds elements from .. from + n - 1 of another sum to elements first .. first + n - 1. */
void pli_exact_merge(const pli_exact *sum, int64_t first, int64_t n, const pli_exact *other, int64_t from);
/** The sums of elements first .. first + n - 1. The sum of the bins is rounded to a double (f64: once at each border
 *  between bins, so by at most 2^-52); for f32 the double is then rounded to a float. */
void pli_exact_round_f32(const pli_exact *sum, int64_t first, int64_t n, float *out);
void pli_exact_round_f64(const pli_exact *sum, int64_t first, int64_t n, double *out);
/** out [n] = the sum of x[0 .. terms - 1], each [n], element by element, with the same bits as the calls above. */
void pli_exact_sum_f32(int32_t terms, const float *const *x, int64_t n, float *out);
void pli_exact_sum_f64(int32_t terms, const double *const *x, int64_t n, double *out);

#endif
