/* learn/topics/scan_loops.h - the loops of the sampler scan, compiled once for each kind of processor. Each file that
 * includes this defines SCAN, the function's name. All give the same bits: lanes are added up apart from each other, in
 * the order of the topics, and then one after the other. */
#include "learn/topics/counts.h"

enum { LANES = PLI_TOPIC_LANES };

/* Running sums of a word's topics, lane by lane: sum [lanes], and each lane's last, of_lane. */
static inline void add_up(const pli_topic_counts *c, const int32_t *restrict word, float *restrict of_lane) {
    const float *restrict doc = c->doc, *restrict inverse = c->inverse;
    float *restrict sum = c->sum;
    const float beta = c->beta;
    float       lane[LANES] = { 0 };
    for (int32_t k = 0; k < c->lanes; k += LANES) {
        for (int32_t l = 0; l < LANES; l++) {
            const int32_t n = word[k + l] > 0 ? word[k + l] : 0;
            lane[l] += doc[k + l] * ((float)n + beta) * inverse[k + l];
            sum[k + l] = lane[l];
        }
    }
    for (int32_t l = 0; l < LANES; l++) of_lane[l] = lane[l];
}

/* The topic at which the sums, taken lane after lane, exceed u times their total. */
static inline uint32_t find(const pli_topic_counts *c, const float *of_lane, float u) {
    float all = 0;
    for (int32_t l = 0; l < LANES; l++) all += of_lane[l];
    float   left = u * all;
    int32_t l = 0, k = 0;
    while (l < LANES - 1 && left >= of_lane[l]) left -= of_lane[l++];
    while (k + LANES < c->lanes && left >= c->sum[k + l]) k += LANES;
    return (uint32_t)(k + l < c->topics ? k + l : l < c->topics ? l : 0); /* the padding only by rounding */
}

void SCAN(pli_topic_counts *c, const pli_document *d, pli_random *random) {
    float     of_lane[LANES];
    uint16_t *topic = d->topic;
    for (int64_t e = 0; e < d->n; e++) {
        int32_t      *word = c->word + (int64_t)d->word[e] * c->lanes;
        const int64_t n = pli_document_count(d, e);
        for (int64_t i = 0; i < n; i++, topic++) {
            pli_topic_move(c, word, *topic, -1);
            add_up(c, word, of_lane);
            *topic = (uint16_t)find(c, of_lane, pli_topic_unit(random));
            pli_topic_move(c, word, *topic, 1);
        }
    }
}
