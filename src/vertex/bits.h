/* vertex/bits.h - sets of vertices, or of small ids, as bits: bit v % 64 of word v / 64.
 *
 * A set that no longer changes may also say how many of its members are before a number. For that it counts, once, how
 * many are before each word, and the rest in the word itself (Jacobson, "Space-efficient Static Trees and Graphs", FOCS
 * 1989): 1.5 bits a number, which stay in a processor's cache where a table of ranks would not. */
#ifndef PLI_VERTEX_BITS_H
#define PLI_VERTEX_BITS_H

#include "base/base.h"

static inline size_t pli_bit_words(int64_t n) { return ((size_t)n + 63) / 64; }
static inline bool   pli_bit_is(const uint64_t *bits, size_t v) { return (bits[v / 64] >> (v % 64) & 1) != 0; }
static inline void   pli_bit_set(uint64_t *bits, size_t v) { bits[v / 64] |= UINT64_C(1) << (v % 64); }

/** before [words] receives how many members the words before have; returns how many there are. */
static inline int64_t pli_bits_count(const uint64_t *bits, size_t words, uint32_t *before) {
    int64_t n = 0;
    for (size_t w = 0; w < words; w++) {
        before[w] = (uint32_t)n;
        n += __builtin_popcountll(bits[w]);
    }
    return n;
}

/** How many members are below v? */
static inline int64_t pli_bits_rank(const uint64_t *bits, const uint32_t *before, size_t v) {
    const uint64_t below = bits[v / 64] & ((UINT64_C(1) << (v % 64)) - 1);
    return (int64_t)before[v / 64] + __builtin_popcountll(below);
}

/** Writes the members, increasing, to member; returns how many. */
static inline int64_t pli_bits_list(const uint64_t *bits, size_t words, uint64_t *member) {
    int64_t n = 0;
    for (size_t w = 0; w < words; w++)
        for (uint64_t left = bits[w]; left != 0; left &= left - 1)
            member[n++] = (uint64_t)w * 64 + (uint64_t)__builtin_ctzll(left);
    return n;
}

#endif
