/* learn/topics/scan_loops.h - the loops of the sampler scan, compiled once for each kind of processor. Each file that
 * includes this defines SCAN, the function's name. All give the same bits: they add up in the same order.
 *
 * The probabilities of 16 topics are computed at once. Lane l has the topics l, l + 16, l + 32, ...: first the lane is
 * drawn, then the topic in it. A change of one count loads and stores all 16 lanes around it, because a processor that
 * loads 16 lanes right after a store into one of them waits until that store has reached the cache. */
#include "learn/topics/counts.h"

#include <string.h>

enum { LANES = PLI_TOPIC_LANES };

#define INLINE static inline __attribute__((always_inline))
#pragma GCC diagnostic ignored "-Wpsabi" /* all functions that return 16 lanes are inlined */

typedef float   floats __attribute__((vector_size(64), may_alias));
typedef int32_t whole __attribute__((vector_size(64), may_alias));

/* Bit l: lane l of x is at most y. */
#if defined(__AVX512F__)
#include <immintrin.h>
INLINE uint32_t up_to(floats x, floats y) { return _mm512_cmp_ps_mask((__m512)x, (__m512)y, _CMP_LE_OQ); }
#elif defined(__AVX2__)
#include <immintrin.h>
INLINE uint32_t up_to(floats x, floats y) {
    __m256 a[2], b[2];
    memcpy(a, &x, sizeof a);
    memcpy(b, &y, sizeof b);
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a[0], b[0], _CMP_LE_OQ)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a[1], b[1], _CMP_LE_OQ)) << 8;
}
#else
INLINE uint32_t up_to(floats x, floats y) {
    uint32_t bits = 0;
    for (int l = 0; l < LANES; l++) bits |= (uint32_t)(x[l] <= y[l]) << l;
    return bits;
}
#endif

/* Lane l: the sum of the lanes 0 .. l. */
#define MOVED_UP(x, by)                                                                                                \
    __builtin_shufflevector((floats){ 0 }, x, 16 - (by), 17 - (by), 18 - (by), 19 - (by), 20 - (by), 21 - (by),        \
                            22 - (by), 23 - (by), 24 - (by), 25 - (by), 26 - (by), 27 - (by), 28 - (by), 29 - (by),    \
                            30 - (by), 31 - (by))
INLINE floats running(floats x) {
    x += MOVED_UP(x, 1);
    x += MOVED_UP(x, 2);
    x += MOVED_UP(x, 4);
    return x + MOVED_UP(x, 8);
}

INLINE floats spread(float x) { return (floats){ 0 } + x; }

/* All ones in lane l, else 0. */
INLINE whole only(int32_t l) {
    const whole at = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    return at == l;
}

INLINE floats choose(whole mask, floats x, floats y) { return (floats)(((whole)x & mask) | ((whole)y & ~mask)); }

/* Draws a topic by u in [0, 1). vectors: 16 topics each. */
INLINE uint32_t draw(const pli_topic_counts *c, int32_t vectors, const whole *count, const floats *weight, floats *sum,
                     float u) {
    floats of_lane = { 0 };
#pragma GCC unroll 8
    for (int32_t v = 0; v < vectors; v++) {
        of_lane += (__builtin_convertvector(count[v] & (count[v] > 0), floats) + c->beta) * weight[v];
        sum[v] = of_lane;
    }
    of_lane = running(of_lane);
    const floats   before = MOVED_UP(of_lane, 1), to = spread(u * of_lane[LANES - 1]);
    const uint32_t passed = up_to(of_lane, to) & 0x7fff, l = (uint32_t)__builtin_popcount(passed);
    uint32_t       v = 0;
#pragma GCC unroll 8
    for (int32_t i = 0; i + 1 < vectors; i++) v += up_to(sum[i] + before, to) >> l & 1;
    const uint32_t k = v * LANES + l, topics = (uint32_t)c->topics;
    return k < topics ? k : l < topics ? l : 0; /* the padding only by rounding */
}

/* A token leaves topic k (by -1) or takes it (1). Returns the topic's weight then. */
INLINE float change(pli_topic_counts *c, uint32_t k, int32_t by) {
    return pli_topic_weight(c, k, c->in_doc[k] += by, c->total[k] += by);
}

/* A word with n tokens. few: counts and weights stay in registers. */
INLINE void few(pli_topic_counts *c, int32_t vectors, whole *word, floats *weight, int64_t n, uint16_t *topic,
                pli_random *random) {
    whole  count[4];
    floats sum[4];
#pragma GCC unroll 4
    for (int32_t v = 0; v < vectors; v++) count[v] = word[v];
    for (int64_t i = 0; i < n; i++) {
        uint32_t k = topic[i];
        floats   now = spread(change(c, k, -1));
#pragma GCC unroll 4
        for (int32_t v = 0; v < vectors; v++) {
            const whole lane = only((int32_t)k - v * LANES);
            count[v] += lane;
            weight[v] = choose(lane, now, weight[v]);
        }
        topic[i] = (uint16_t)(k = draw(c, vectors, count, weight, sum, pli_topic_unit(random)));
        now = spread(change(c, k, 1));
#pragma GCC unroll 4
        for (int32_t v = 0; v < vectors; v++) {
            const whole lane = only((int32_t)k - v * LANES);
            count[v] -= lane;
            weight[v] = choose(lane, now, weight[v]);
        }
    }
#pragma GCC unroll 4
    for (int32_t v = 0; v < vectors; v++) word[v] = count[v];
}

/* The same for many topics. */
INLINE void move(pli_topic_counts *c, whole *word, floats *weight, uint32_t k, int32_t by) {
    const whole  lane = only((int32_t)(k % LANES));
    const floats now = spread(change(c, k, by));
    word[k / LANES] -= lane * by;
    weight[k / LANES] = choose(lane, now, weight[k / LANES]);
}

INLINE void many(pli_topic_counts *c, int32_t vectors, whole *word, floats *weight, int64_t n, uint16_t *topic,
                 pli_random *random) {
    for (int64_t i = 0; i < n; i++) {
        move(c, word, weight, topic[i], -1);
        topic[i] = (uint16_t)draw(c, vectors, word, weight, (floats *)(void *)c->sum, pli_topic_unit(random));
        move(c, word, weight, topic[i], 1);
    }
}

INLINE void all_words(pli_topic_counts *c, int32_t vectors, const pli_document *d, pli_random *random) {
    uint16_t *topic = d->topic;
    floats    own[4], *weight = (floats *)(void *)c->weight;
    if (vectors <= 4)
#pragma GCC unroll 4
        for (int32_t v = 0; v < vectors; v++) own[v] = weight[v];
    for (int64_t e = 0; e < d->n; e++) {
        whole        *word = (whole *)(void *)(c->word + (int64_t)d->word[e] * c->lanes);
        const int64_t n = pli_document_count(d, e);
        if (e + 1 < d->n)
            for (int32_t v = 0; v < vectors; v++)
                __builtin_prefetch(c->word + (int64_t)d->word[e + 1] * c->lanes + v * LANES, 1);
        if (vectors <= 4) few(c, vectors, word, own, n, topic, random);
        else many(c, vectors, word, weight, n, topic, random);
        topic += n;
    }
}

/* The loops are compiled for the numbers of vectors up to 4, and for any other. */
void SCAN(pli_topic_counts *c, const pli_document *d, pli_random *random) {
    switch (c->lanes / LANES) {
    case 1: all_words(c, 1, d, random); break;
    case 2: all_words(c, 2, d, random); break;
    case 3: all_words(c, 3, d, random); break;
    case 4: all_words(c, 4, d, random); break;
    default: all_words(c, c->lanes / LANES > 4 ? c->lanes / LANES : 5, d, random);
    }
}
