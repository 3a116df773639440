#include "tensor/nearest/nearest_loops.h"

/* Does the same as `highest` of nearest_loops.h, by masks. */
static void highest_by_masks(int64_t rows, int64_t k, const float *dot, const float *bias, uint32_t first, float *best,
                             uint32_t *nearest) {
    const __m512i begin = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int64_t i = 0; i < rows; i++, dot += k) {
        __m512  top = _mm512_sub_ps(_mm512_loadu_ps(dot), _mm512_loadu_ps(bias));
        __m512i at = begin, place = begin;
        for (int64_t j = WAYS; j < k; j += WAYS) {
            const __m512    score = _mm512_sub_ps(_mm512_loadu_ps(dot + j), _mm512_loadu_ps(bias + j));
            const __mmask16 more = _mm512_cmp_ps_mask(score, top, _CMP_GT_OQ);
            place = _mm512_add_epi32(place, _mm512_set1_epi32(WAYS));
            at = _mm512_mask_mov_epi32(at, more, place);
            top = _mm512_mask_mov_ps(top, more, score);
        }
        const float     high = _mm512_reduce_max_ps(top);
        const __mmask16 equal = _mm512_cmp_ps_mask(top, _mm512_set1_ps(high), _CMP_EQ_OQ);
        if (equal == 0 || !(high > best[i])) continue;
        int32_t place_of[WAYS];
        _mm512_storeu_si512(place_of, at);
        best[i] = high;
        int32_t least = place_of[__builtin_ctz(equal)];
        for (unsigned more = equal & (equal - 1u); more != 0; more &= more - 1)
            least = place_of[__builtin_ctz(more)] < least ? place_of[__builtin_ctz(more)] : least;
        nearest[i] = first + (uint32_t)least;
    }
}

static const pli_nearest_kernels kernels = { .name = "avx512", .chain = chain, .highest = highest_by_masks };

const pli_nearest_kernels *pli_nearest_kernels_avx512(void) { return &kernels; }
