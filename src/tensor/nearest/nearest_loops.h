/* tensor/nearest/nearest_loops.h - the code of nearest.h's kernels, for the registers that the including file is
 * compiled for. */
#ifndef PLI_TENSOR_NEAREST_LOOPS_H
#define PLI_TENSOR_NEAREST_LOOPS_H

#include <string.h>

#include "tensor/lanes.h"
#include "tensor/nearest/nearest.h"

/* REGISTERS sums run at once; the row of `across` that an entry AHEAD needs is fetched. */
enum { REGISTERS = 8, AHEAD = 8, WAYS = 16 };

typedef enum form { ALL, COLS, PACKED } form;

INLINE int64_t column(pli_entries x, int64_t e, const form f) {
    return f == ALL ? e : (int64_t)pli_entries_at(x, e, f == PACKED);
}

/* Sums for so many registers of columns. */
INLINE void chain_of(const int registers, const form f, pli_entries x, int64_t stride, const float *across,
                     float *dot) {
    lane sum[REGISTERS];
#pragma GCC unroll 8
    for (int r = 0; r < registers; r++) sum[r] = SPREAD(0);
    for (int64_t e = 0; e < x.n; e++) {
        const float *row = across + column(x, e, f) * stride;
        const lane   v = SPREAD(x.value == NULL ? 1.0F : x.value[e]);
        if (f != ALL && e + AHEAD < x.ahead) __builtin_prefetch(across + column(x, e + AHEAD, f) * stride);
#pragma GCC unroll 8
        for (int r = 0; r < registers; r++) sum[r] = FMA(v, LOAD(row + r * LANES), sum[r]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < registers; r++) STORE(dot + r * LANES, sum[r]);
}

INLINE void chain_as(const form f, pli_entries x, int64_t k, int64_t stride, const float *across, float *dot) {
    int64_t j = 0;
    for (; j + 8 * LANES <= k; j += 8 * LANES) chain_of(8, f, x, stride, across + j, dot + j);
    for (; j + 4 * LANES <= k; j += 4 * LANES) chain_of(4, f, x, stride, across + j, dot + j);
    for (; j < k; j += 2 * LANES) chain_of(2, f, x, stride, across + j, dot + j);
}

static void chain(pli_entries x, int64_t k, int64_t stride, const float *across, float *dot) {
    if (x.packed != NULL) chain_as(PACKED, x, k, stride, across, dot);
    else if (x.col != NULL) chain_as(COLS, x, k, stride, across, dot);
    else chain_as(ALL, x, k, stride, across, dot);
}

/* WAYS scores and their places, in as many registers as they need. */
typedef float   ways __attribute__((vector_size(4 * WAYS)));
typedef int32_t places __attribute__((vector_size(4 * WAYS)));

/* Swaps halves, quarters and so on, so that each way meets all others. */
#define MEET(x, apart)                                                                                                 \
    __builtin_shuffle(x, (places){ 0 ^ (apart), 1 ^ (apart), 2 ^ (apart), 3 ^ (apart), 4 ^ (apart), 5 ^ (apart),       \
                                   6 ^ (apart), 7 ^ (apart), 8 ^ (apart), 9 ^ (apart), 10 ^ (apart), 11 ^ (apart),     \
                                   12 ^ (apart), 13 ^ (apart), 14 ^ (apart), 15 ^ (apart) })
#define CHOOSE(mask, x, y) (((x) & (mask)) | ((y) & ~(mask)))

/* The higher of two scores, and the lower of two places. */
#define HIGHER(x, y) ((ways)CHOOSE((x) > (y), (places)(x), (places)(y)))
#define LOWER(x, y)  CHOOSE((x) < (y), x, y)

/* Each way takes every WAYS-th place and keeps its first highest score. Among the ways that have the highest score,
 * the lowest place wins. */
static inline void highest(int64_t rows, int64_t k, const float *dot, const float *bias, uint32_t first, float *best,
                           uint32_t *nearest) {
    for (int64_t i = 0; i < rows; i++, dot += k) {
        ways   top, high;
        places at = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, place = at;
        memcpy(&top, dot, sizeof top);
        memcpy(&high, bias, sizeof high);
        top -= high;
        for (int64_t j = WAYS; j < k; j += WAYS) {
            ways score, less;
            memcpy(&score, dot + j, sizeof score);
            memcpy(&less, bias + j, sizeof less);
            score -= less;
            place += WAYS;
            at = CHOOSE(score > top, place, at);
            top = HIGHER(score, top);
        }
        high = HIGHER(top, MEET(top, 8));
        high = HIGHER(high, MEET(high, 4));
        high = HIGHER(high, MEET(high, 2));
        high = HIGHER(high, MEET(high, 1));
        at = CHOOSE(top == high, at, at - at + INT32_MAX);
        at = LOWER(at, MEET(at, 8));
        at = LOWER(at, MEET(at, 4));
        at = LOWER(at, MEET(at, 2));
        at = LOWER(at, MEET(at, 1));
        if (high[0] > best[i]) {
            best[i] = high[0];
            nearest[i] = first + (uint32_t)at[0];
        }
    }
}

#endif
