/* Sums that do not depend on order: the rare cases (a higher top, special elements), and the loops over sums. */
#include "tensor/exact.h"

#include <math.h>
#include <string.h>

#include "tensor/exact_loops.h"
#include "tensor/tensor.h"

/* In a special element the highest bin counts the terms that made it special, each kind in its own 20 bits. */
static const int64_t seen_plus = 1, seen_minus = INT64_C(1) << 20, seen_nan = INT64_C(1) << 40;

pli_exact pli_exact_at(bool wide, int64_t n, void *memory) {
    pli_exact sum = { .wide = wide, .n = n };
    for (int b = 0; b < pli_exact_bins(wide); b++) sum.bin[b] = (int64_t *)memory + b * n;
    sum.top = (int8_t *)((int64_t *)memory + pli_exact_bins(wide) * n);
    return sum;
}

void pli_exact_clear(const pli_exact *sum, int64_t first, int64_t n) {
    memset(sum->top + first, sum->wide ? PLI_EXACT_LEAST64 : PLI_EXACT_LEAST32, (size_t)n);
    for (int b = 0; b < pli_exact_bins(sum->wide); b++) memset(sum->bin[b] + first, 0, (size_t)n * sizeof *sum->bin[b]);
}

/* Moves the bins down; the lowest ones are dropped. */
static void raise(const pli_exact *sum, int64_t i, int8_t top) {
    int by = top - sum->top[i], bins = pli_exact_bins(sum->wide);
    for (int b = bins - 1; b >= 0; b--) sum->bin[b][i] = b >= by ? sum->bin[b - by][i] : 0;
    sum->top[i] = top;
}

static void add_special(const pli_exact *sum, int64_t i, double x) {
    if (sum->top[i] != PLI_EXACT_SPECIAL) raise(sum, i, PLI_EXACT_SPECIAL);
    sum->bin[0][i] += isnan(x) ? seen_nan : x > 0 ? seen_plus : seen_minus;
}

static void add_one_f32(const pli_exact *sum, int64_t i, float x) {
    if (!isfinite(x)) {
        add_special(sum, i, (double)x);
    } else if (sum->top[i] != PLI_EXACT_SPECIAL) {
        int8_t top = (int8_t)pli_exact_top32(pli_exact_exponent32(x));
        if (top > sum->top[i]) raise(sum, i, top);
        pli_exact_cut_f32(x, sum->top[i], &sum->bin[0][i], &sum->bin[1][i]);
    }
}

static void add_one_f64(const pli_exact *sum, int64_t i, double x) {
    if (!isfinite(x)) {
        add_special(sum, i, x);
    } else if (sum->top[i] != PLI_EXACT_SPECIAL) {
        int8_t top = (int8_t)pli_exact_top64(pli_exact_exponent64(x));
        if (top > sum->top[i]) raise(sum, i, top);
        pli_exact_cut_f64(x, sum->top[i], &sum->bin[0][i], &sum->bin[1][i], &sum->bin[2][i]);
    }
}

/* Where the group that does not fit ends, or the elements end. */
static int64_t group_end(int64_t at, int64_t n) { return n - at < PLI_EXACT_AT_ONCE ? n : at + PLI_EXACT_AT_ONCE; }

void pli_exact_add_f32(const pli_exact *sum, int64_t first, int64_t n, const float *x) {
    const pli_kernels *k = pli_kernels_get();
    for (int64_t at = 0; at < n;) {
        int64_t i = first + at;
        at += k->exact_add_f32(n - at, x + at, sum->top + i, sum->bin[0] + i, sum->bin[1] + i);
        for (int64_t end = group_end(at, n); at < end; at++) add_one_f32(sum, first + at, x[at]);
    }
}

void pli_exact_add_f64(const pli_exact *sum, int64_t first, int64_t n, const double *x) {
    const pli_kernels *k = pli_kernels_get();
    for (int64_t at = 0; at < n;) {
        int64_t i = first + at;
        at += k->exact_add_f64(n - at, x + at, sum->top + i, sum->bin[0] + i, sum->bin[1] + i, sum->bin[2] + i);
        for (int64_t end = group_end(at, n); at < end; at++) add_one_f64(sum, first + at, x[at]);
    }
}

void pli_exact_merge(const pli_exact *sum, int64_t first, int64_t n, const pli_exact *other, int64_t from) {
    for (int64_t k = 0; k < n; k++) {
        int64_t i = first + k, j = from + k;
        if (other->top[j] > sum->top[i]) raise(sum, i, other->top[j]);
        int by = sum->top[i] - other->top[j];
        for (int b = by; b < pli_exact_bins(sum->wide); b++) sum->bin[b][i] += other->bin[b - by][j];
    }
}

static double special_value(int64_t seen) {
    bool plus = (seen & (seen_minus - 1)) != 0, minus = (seen & (seen_nan - seen_minus)) != 0;
    return seen >= seen_nan || (plus && minus) ? (double)NAN : plus ? (double)INFINITY : -(double)INFINITY;
}

void pli_exact_round_f32(const pli_exact *sum, int64_t first, int64_t n, float *out) {
    for (int64_t k = 0, i = first; k < n; k++, i++)
        out[k] = sum->top[i] == PLI_EXACT_SPECIAL ? (float)special_value(sum->bin[0][i])
                                                  : pli_exact_value_f32(sum->top[i], sum->bin[0][i], sum->bin[1][i]);
}

void pli_exact_round_f64(const pli_exact *sum, int64_t first, int64_t n, double *out) {
    for (int64_t k = 0, i = first; k < n; k++, i++)
        out[k] = sum->top[i] == PLI_EXACT_SPECIAL
                     ? special_value(sum->bin[0][i])
                     : pli_exact_value_f64(sum->top[i], sum->bin[0][i], sum->bin[1][i], sum->bin[2][i]);
}

/* --- sums at once ----------------------------------------------------------------------------------------------- */

void pli_exact_sum_f32(int32_t terms, const float *const *x, int64_t n, float *out) {
    const pli_kernels *k = pli_kernels_get();
    int64_t            memory[PLI_EXACT_BINS_MAX + 1];
    const pli_exact    one = pli_exact_at(false, 1, memory);
    for (int64_t at = 0; at < n;) {
        at += k->exact_sum_f32(terms, x, at, n - at, out + at);
        for (int64_t end = group_end(at, n); at < end; at++) {
            pli_exact_clear(&one, 0, 1);
            for (int32_t t = 0; t < terms; t++) add_one_f32(&one, 0, x[t][at]);
            pli_exact_round_f32(&one, 0, 1, &out[at]);
        }
    }
}

void pli_exact_sum_f64(int32_t terms, const double *const *x, int64_t n, double *out) {
    const pli_kernels *k = pli_kernels_get();
    int64_t            memory[PLI_EXACT_BINS_MAX + 1];
    const pli_exact    one = pli_exact_at(true, 1, memory);
    for (int64_t at = 0; at < n;) {
        at += k->exact_sum_f64(terms, x, at, n - at, out + at);
        for (int64_t end = group_end(at, n); at < end; at++) {
            pli_exact_clear(&one, 0, 1);
            for (int32_t t = 0; t < terms; t++) add_one_f64(&one, 0, x[t][at]);
            pli_exact_round_f64(&one, 0, 1, &out[at]);
        }
    }
}
