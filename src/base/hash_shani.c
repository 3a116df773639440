/* base/hash_shani.c - the rounds of SHA-256 by x86's instructions for it, which do two rounds each.
 *
 * They keep the eight words of the state as ABEF and CDGH, and the message schedule as four vectors of four words, of
 * which each step makes the next from the last four (Intel, "Intel SHA Extensions", 2013). */
#include "base/hash_blocks.h"

#include <immintrin.h>

static __m128i load(const void *from) { return _mm_loadu_si128(from); }

/* Sixteen bytes of the message as four words, whose first byte is the highest. */
static __m128i load_words(const uint8_t *from) {
    return _mm_shuffle_epi8(load(from), _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203));
}

static void one_block(__m128i *abef, __m128i *cdgh, const uint8_t *block) {
    __m128i w[4], one = *abef, two = *cdgh;
    for (int i = 0; i < 4; i++) w[i] = load_words(block + 16 * i);
    for (int i = 0; i < 16; i++) {
        if (i >= 4) {
            const __m128i seventh = _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4);
            const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), seventh);
            w[i & 3] = _mm_sha256msg2_epu32(sum, w[(i + 3) & 3]);
        }
        const __m128i more = _mm_add_epi32(w[i & 3], load(pli_sha256_k + 4 * i));
        two = _mm_sha256rnds2_epu32(two, one, more);
        one = _mm_sha256rnds2_epu32(one, two, _mm_shuffle_epi32(more, 0x0e));
    }
    *abef = _mm_add_epi32(*abef, one);
    *cdgh = _mm_add_epi32(*cdgh, two);
}

void pli_sha256_blocks_shani(uint32_t state[8], const uint8_t *block, size_t blocks) {
    const __m128i cdab = _mm_shuffle_epi32(load(state), 0xb1), efgh = _mm_shuffle_epi32(load(state + 4), 0x1b);
    __m128i       abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    for (; blocks > 0; block += 64, blocks--) one_block(&abef, &cdgh, block);
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((void *)state, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((void *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
