/* data/formats/plain.h - plain entries of LIBSVM text, "123:1 " with up to eight digits and a value of one digit, which
 * are most of what is read. Their colons are found in 64 bytes at once, so no entry waits for the end of the one before
 * (Langdale and Lemire, "Parsing gigabytes of JSON per second", VLDB Journal 2019). */
#ifndef PLI_DATA_PLAIN_H
#define PLI_DATA_PLAIN_H

#include "data/dataset/rows.h"
#include "data/formats/number.h"

#define PLI_EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* Bit i: is byte i a colon? */
static inline uint64_t pli_plain_colons(const unsigned char *p) {
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, 8);
        word ^= PLI_EACH_BYTE(':');
        const uint64_t colon = ~(((word & PLI_EACH_BYTE(0x7f)) + PLI_EACH_BYTE(0x7f)) | word) & PLI_EACH_BYTE(0x80);
        bits |= ((colon >> 7) * UINT64_C(0x0102040810204080) >> 56) << (8 * i);
    }
    return bits;
}

/* What is known of the entries of a line so far. */
typedef struct pli_entries {
    int64_t  n;
    uint64_t next, max, backwards, least; /* backwards: did an index not increase? */
} pli_entries;

/* Reads plain entries with indices below limit into b->col, from p on, which is no blank. Returns where it stopped. */
static inline const unsigned char *pli_plain_read(const pli_block *b, const unsigned char *p, uint64_t base,
                                                  uint64_t limit, pli_entries *found) {
    uint32_t   *col = b->col;
    float      *values = b->value;
    pli_entries e = *found;
    for (;;) {
        const unsigned char *const window = p;
        for (uint64_t colons = pli_plain_colons(window); colons != 0; colons &= colons - 1) {
            const unsigned char *const colon = window + __builtin_ctzll(colons);
            const int64_t              digits = colon - p;
            const unsigned             value = (unsigned)(colon[1] - '0');
            uint64_t                   word;
            if ((uint64_t)(digits - 1) >= 8 || value >= 10 || (values == NULL && value != 1)) goto stop;
            memcpy(&word, p, 8);
            word = (word ^ PLI_EACH_BYTE('0')) << (64 - 8 * digits);
            if ((((word + PLI_EACH_BYTE(0x76)) | word) & PLI_EACH_BYTE(0x80)) != 0) goto stop;
            const uint64_t index = pli_digits_value(word);
            if ((colon[2] != ' ' && colon[2] != '\n') || index >= limit) goto stop;
            e.backwards |= (uint64_t)(index < e.next);
            e.next = index + 1;
            e.max = index > e.max ? index : e.max;
            e.least = index < e.least ? index : e.least;
            col[e.n] = (uint32_t)(index - base);
            if (values != NULL) values[e.n] = (float)value;
            e.n++;
            p = colon + 2;
            if (*p == '\n') goto stop;
            p++;
        }
        if (p == window) break;
    }
stop:
    *found = e;
    return p;
}

#endif
