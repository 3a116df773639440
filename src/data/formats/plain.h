/* data/formats/plain.h - plain entries of LIBSVM text, "123:1 " with up to eight digits and a value of one digit, which
 * are most of what is read. Their colons are found in 64 bytes at once, so no entry waits for the end of the one before
 * (Langdale and Lemire, "Parsing gigabytes of JSON per second", VLDB Journal 2019). */
#ifndef PLI_DATA_PLAIN_H
#define PLI_DATA_PLAIN_H

#include "data/dataset/rows.h"
#include "data/formats/number.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PLI_EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* Bit i: is byte i of 64 a colon? */
static inline uint64_t pli_plain_colons(const unsigned char *p) {
    uint64_t bits = 0;
#ifdef __SSE2__
    for (int i = 0; i < 4; i++) {
        const __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(':'))) << (16 * i);
    }
#else
    for (int i = 0; i < 8; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        word ^= PLI_EACH_BYTE(':');
        const uint64_t colon = ~(((word & PLI_EACH_BYTE(0x7f)) + PLI_EACH_BYTE(0x7f)) | word) & PLI_EACH_BYTE(0x80);
        bits |= ((colon >> 7) * UINT64_C(0x0102040810204080) >> 56) << (8 * i);
    }
#endif
    return bits;
}

/* What is known of the entries of a line so far. */
typedef struct pli_entries {
    int64_t  n;
    uint64_t next, max, backwards, least; /* backwards: did an index not increase? */
} pli_entries;

/* Adds the indices of entries [from, to->n) to the highest and the lowest one. */
static inline void pli_plain_note(const pli_block *b, int64_t from, uint64_t base, bool sorted, pli_entries *to) {
    const int64_t step = sorted && to->n - from > 1 ? to->n - from - 1 : 1; /* of sorted ones the ends will do */
    for (int64_t i = from; i < to->n; i += step) {
        const uint64_t index = (uint32_t)(b->col[i] + base); /* 0 may be below the base */
        to->max = index > to->max ? index : to->max;
        to->least = index < to->least ? index : to->least;
    }
}

/* Reads plain entries with indices below limit into b->col, from p on, which is no blank. Returns where it stopped.
 * ones: b->value is NULL, and entries with other values than 1 are not plain. */
static inline const unsigned char *pli_plain_read(const pli_block *b, const unsigned char *p, uint64_t base,
                                                  uint64_t limit, const bool ones, pli_entries *found) {
    uint32_t      *col = b->col;
    float         *values = b->value;
    int64_t        n = found->n;
    uint64_t       next = found->next, backwards = 0;
    for (;;) {
        const unsigned char *const window = p;
        for (uint64_t colons = pli_plain_colons(window); colons != 0; colons &= colons - 1) {
            const unsigned char *const colon = window + __builtin_ctzll(colons);
            const int64_t              digits = colon - p;
            const unsigned             value = (unsigned)(colon[1] - '0'), after = colon[2];
            uint64_t                   word;
            if ((uint64_t)(digits - 1) >= 8 || (ones ? value != 1 : value >= 10)) goto stop;
            memcpy(&word, p, 8);
            word = (word ^ PLI_EACH_BYTE('0')) << (64 - 8 * digits);
            if ((((word + PLI_EACH_BYTE(0x76)) | word) & PLI_EACH_BYTE(0x80)) != 0) goto stop;
            const uint64_t index = pli_digits_value(word);
            if ((after != ' ' && after != '\n') || index >= limit) goto stop;
            backwards |= (uint64_t)(index < next);
            next = index + 1;
            col[n] = (uint32_t)(index - base);
            if (!ones) values[n] = (float)value;
            n++;
            p = colon + 2;
            if (after == '\n') goto stop;
            p++;
        }
        if (p == window) break;
    }
stop:;
    const int64_t from = found->n;
    found->n = n;
    found->next = next;
    found->backwards |= backwards;
    pli_plain_note(b, from, base, backwards == 0, found);
    return p;
}

#endif
