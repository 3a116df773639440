/* The counts in memory. See counts.h. */
#include "learn/topics/counts.h"

#include <string.h>

/* n numbers of 4 bytes, each 16 of them in one line of the cache. */
static void *zeros(int64_t n) {
    void *memory = pli_aligned((size_t)n * 4);
    if (memory != NULL) memset(memory, 0, (size_t)n * 4);
    return memory;
}

bool pli_topic_counts_begin(pli_topic_counts *c, int64_t words, int32_t topics, double alpha, double beta) {
    const int32_t lanes = (topics + PLI_TOPIC_LANES - 1) / PLI_TOPIC_LANES * PLI_TOPIC_LANES;
    *c = (pli_topic_counts){ .words = words, .topics = topics, .lanes = lanes, .beta = (float)beta,
                             .beta_all = (float)(beta * (double)words) };
    c->alpha = pli_calloc((size_t)lanes, sizeof *c->alpha);
    c->word = zeros(words * lanes);
    c->total = pli_calloc((size_t)lanes, sizeof *c->total);
    c->in_doc = pli_calloc((size_t)lanes, sizeof *c->in_doc);
    c->weight = zeros(lanes);
    c->sum = zeros(lanes);
    if (c->alpha == NULL || c->word == NULL || c->total == NULL || c->in_doc == NULL || c->weight == NULL ||
        c->sum == NULL)
        return false;
    for (int32_t k = 0; k < topics; k++) c->alpha[k] = (float)alpha;
    return true;
}

void pli_topic_counts_end(pli_topic_counts *c) {
    pli_topic_alias_end(c);
    pli_free(c->alpha);
    pli_free(c->word);
    pli_free(c->total);
    pli_free(c->in_doc);
    pli_free(c->weight);
    pli_free(c->sum);
    *c = (pli_topic_counts){ 0 };
}

void pli_topic_counts_enter(pli_topic_counts *c, const pli_document *d) {
    memset(c->in_doc, 0, (size_t)c->lanes * sizeof *c->in_doc);
    for (int64_t t = 0; t < d->tokens; t++) c->in_doc[d->topic[t]]++;
    for (int32_t k = 0; k < c->topics; k++) c->weight[k] = pli_topic_weight(c, (uint32_t)k, c->in_doc[k], c->total[k]);
}

pli_topic_scan *pli_topic_scan_get(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw"))
        return pli_topic_scan_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return pli_topic_scan_avx2;
#endif
    return pli_topic_scan_ref;
}
