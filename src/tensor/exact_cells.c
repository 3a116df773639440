/* See exact_cells.h; the bins and their borders are exact.h's. */
#include "tensor/exact_cells.h"

#include <math.h>
#include <string.h>

#include "tensor/exact_loops.h"

enum {
    TOP_MASK = 255,
    SPECIAL32 = PLI_EXACT_SPECIAL - PLI_EXACT_LEAST32,
    SPECIAL64 = PLI_EXACT_SPECIAL - PLI_EXACT_LEAST64,
    MOST32 = 5 - PLI_EXACT_LEAST32,
    MOST64 = 25 - PLI_EXACT_LEAST64 /* both: top of the largest numbers, counted from the least top */
};

typedef struct cell32 {
    uint64_t high, low; /* two's complement: additions may wrap around */
} cell32;
typedef struct cell64 {
    uint64_t bin[PLI_EXACT_BINS_F64], top;
} cell64;

_Static_assert(sizeof(cell32) == PLI_CELL_BYTES_F32 && sizeof(cell64) == PLI_CELL_BYTES_F64, "cells travel");

/* --- merging ------------------------------------------------------------------------------------------------------ */

static inline int32_t top32(const cell32 *c) { return (int32_t)(c->high & TOP_MASK); }

/* Merges two cells. The bins of the cell with the lower top are moved down to the other's bins; the lowest are
 * dropped. */
static inline cell32 merged32(cell32 a, cell32 b) {
    int32_t by = top32(&a) - top32(&b);
    if (by == 0) return (cell32){ a.high + b.high - (b.high & TOP_MASK), a.low + b.low };
    const cell32 *above = by > 0 ? &a : &b, *below = by > 0 ? &b : &a;
    uint64_t      moved = by == 1 || by == -1 ? (uint64_t)((int64_t)below->high >> 8) : 0;
    return (cell32){ above->high, above->low + moved };
}

static inline cell64 merged64(cell64 a, cell64 b) {
    uint64_t lower = a.top < b.top ? a.top : b.top, by = (a.top < b.top ? b.top : a.top) - lower;
    cell64   sum = a.top < b.top ? b : a;
    cell64   other = a.top < b.top ? a : b;
    for (uint64_t i = by; i < PLI_EXACT_BINS_F64; i++) sum.bin[i] += other.bin[i - by];
    return sum;
}

void pli_cells_merge(bool wide, int64_t n, const void *a, const void *b, void *into) {
    if (wide) {
        const cell64 *x = a, *y = b;
        cell64       *out = into;
        for (int64_t i = 0; i < n; i++) out[i] = merged64(x[i], y[i]);
    } else {
        const cell32 *x = a, *y = b;
        cell32       *out = into;
        for (int64_t i = 0; i < n; i++) out[i] = merged32(x[i], y[i]);
    }
}

/* --- adding ------------------------------------------------------------------------------------------------------- */

/* In a special cell the second word counts each kind in its own 20 bits, as exact.c does. */
static uint64_t seen(double x) { return isnan(x) ? UINT64_C(1) << 40 : x > 0 ? 1 : UINT64_C(1) << 20; }

/* Adds one term: it is cut at a top that is no lower than its own. */
static inline void add32(cell32 *c, float x) {
    int32_t e = pli_exact_exponent32(x), own = pli_exact_top32(e) - PLI_EXACT_LEAST32, top = top32(c);
    if (e == PLI_EXACT_INFINITE32) {
        *c = merged32(*c, (cell32){ SPECIAL32, seen((double)x) });
        return;
    }
    if (own > top) *c = merged32(*c, (cell32){ (uint64_t)(top = own), 0 });
    if (top > MOST32) return;
    int64_t high = 0, low = 0;
    pli_exact_cut_f32(x, top + PLI_EXACT_LEAST32, &high, &low);
    c->high += (uint64_t)high << 8;
    c->low += (uint64_t)low;
}

static inline void add64(cell64 *c, double x) {
    int32_t  e = pli_exact_exponent64(x);
    uint64_t own = (uint64_t)(pli_exact_top64(e) - PLI_EXACT_LEAST64);
    if (e == PLI_EXACT_INFINITE64) {
        *c = merged64(*c, (cell64){ { 0, seen(x), 0 }, SPECIAL64 });
        return;
    }
    if (own > c->top) *c = merged64(*c, (cell64){ .top = own });
    if (c->top > MOST64) return;
    int64_t bin[PLI_EXACT_BINS_F64] = { 0 };
    pli_exact_cut_f64(x, (int64_t)c->top + PLI_EXACT_LEAST64, &bin[0], &bin[1], &bin[2]);
    for (int b = 0; b < PLI_EXACT_BINS_F64; b++) c->bin[b] += (uint64_t)bin[b];
}

void pli_cells_add(bool wide, int64_t n, const void *x, void *cells) {
    if (wide) {
        for (int64_t i = 0; i < n; i++) add64((cell64 *)cells + i, ((const double *)x)[i]);
    } else {
        for (int64_t i = 0; i < n; i++) add32((cell32 *)cells + i, ((const float *)x)[i]);
    }
}

enum { LANES = 32 };

void pli_cell_add_all(int64_t n, const double *x, void *cell) {
    int64_t   memory[LANES * (PLI_EXACT_BINS_F64 + 1)], at = 0;
    pli_exact lanes = pli_exact_at(true, LANES, memory);
    if (n >= 2 * LANES) { /* for fewer it is not worth it */
        pli_exact_clear(&lanes, 0, LANES);
        for (; at + LANES <= n; at += LANES) pli_exact_add_f64(&lanes, 0, LANES, x + at);
        for (int i = 1; i < LANES; i++) pli_exact_merge(&lanes, 0, 1, &lanes, i);
        cell64 sum = { .top = (uint64_t)(lanes.top[0] - PLI_EXACT_LEAST64) };
        bool   special = lanes.top[0] == PLI_EXACT_SPECIAL; /* there the first bin counts, here the second */
        for (int b = 0; b < PLI_EXACT_BINS_F64; b++) sum.bin[b] = (uint64_t)lanes.bin[special ? (b + 2) % 3 : b][0];
        *(cell64 *)cell = merged64(*(cell64 *)cell, sum);
    }
    for (; at < n; at++) add64(cell, x[at]);
}

/* --- rounding ----------------------------------------------------------------------------------------------------- */

static double special_value(uint64_t count) {
    const uint64_t kind = (UINT64_C(1) << 20) - 1;
    bool           plus = (count & kind) != 0, minus = (count >> 20 & kind) != 0;
    return count >> 40 != 0 || plus == minus ? (double)NAN : plus ? (double)INFINITY : -(double)INFINITY;
}

static float value32(cell32 c) {
    if (top32(&c) > MOST32) return (float)special_value(c.low);
    return pli_exact_value_f32(top32(&c) + PLI_EXACT_LEAST32, (int64_t)c.high >> 8, (int64_t)c.low);
}

static double value64(cell64 c) {
    if (c.top > MOST64) return special_value(c.bin[1]);
    return pli_exact_value_f64((int64_t)c.top + PLI_EXACT_LEAST64, (int64_t)c.bin[0], (int64_t)c.bin[1],
                               (int64_t)c.bin[2]);
}

void pli_cells_round(bool wide, int64_t n, const void *cells, void *out) {
    unsigned char *at = out; /* each result lies behind the cells that are still to be read, even if out is cells */
    for (int64_t i = 0; i < n; i++) {
        if (wide) {
            double x = value64(((const cell64 *)cells)[i]);
            memcpy(at + i * (int64_t)sizeof x, &x, sizeof x);
        } else {
            float x = value32(((const cell32 *)cells)[i]);
            memcpy(at + i * (int64_t)sizeof x, &x, sizeof x);
        }
    }
}
