/* learn/topics/counts.h - the sampler's state: how often each word has each topic, and how a token's topic is drawn.
 *
 * A token of word w in document d has topic k with probability proportional to
 *
 *     (n_dk + alpha_k) (n_kw + beta) / (n_k + V beta)
 *
 * where all counts leave the token itself out: n_dk tokens of the document, n_kw of the word and n_k of all have topic
 * k, and V is the number of words (Griffiths and Steyvers, "Finding scientific topics", PNAS 2004). Two samplers draw
 * from that:
 *
 *   scan    computes it for every topic. The loop is over lanes of 16 topics at once, so a thousand topics take less
 *           time than mh (scan_loops.h).
 *   mh      takes a proposal by the word, then one by the document, and accepts each by the exact ratio (LightLDA:
 *           Yuan et al., WWW 2015). A proposal takes the same time whatever the number of topics: the word's are drawn
 *           from an alias table that a clock makes once, the document's are the topic of one of its tokens.
 *
 * Topics are padded with zeros to a multiple of 16. Counts of a stale read may be too low by the worker's own tokens,
 * even below 0: they count as 0 then. */
#ifndef PLI_LEARN_TOPICS_COUNTS_H
#define PLI_LEARN_TOPICS_COUNTS_H

#include "base/base.h"

enum { PLI_TOPIC_LANES = 16 };

typedef struct pli_topic_alias pli_topic_alias; /* mh.c */

typedef struct pli_topic_counts {
    int64_t  words;
    int32_t  topics, lanes; /* lanes: topics, up to a multiple of PLI_TOPIC_LANES */
    float    beta, beta_all; /* beta_all: beta times words */
    float   *alpha;          /* [lanes] */
    int32_t *word;           /* [words, lanes]: n_kw */
    int32_t *total;          /* [lanes]: n_k */
    int32_t *in_doc;         /* [lanes]: n_dk of the document at hand */
    float   *weight;         /* [lanes]: (n_dk + alpha_k) / (n_k + beta_all); 0 in the padding. Of scan */
    float   *sum;            /* [lanes]: of the draw at hand */
    pli_topic_alias *alias;  /* of mh; NULL: scan */
} pli_topic_counts;

/* A document: n different words, each with its number of tokens; topic [tokens] has those of the first word first. */
typedef struct pli_document {
    int64_t         n;
    const uint32_t *word;  /* [n] */
    const float    *count; /* [n]; NULL: all 1 */
    uint16_t       *topic;
    int64_t         tokens;
} pli_document;

static inline int64_t pli_document_count(const pli_document *d, int64_t e) {
    return d->count != NULL ? (int64_t)d->count[e] : 1;
}

/** Zero counts, alphas all alike. Errors: false, no memory. */
bool pli_topic_counts_begin(pli_topic_counts *c, int64_t words, int32_t topics, double alpha, double beta);
void pli_topic_counts_end(pli_topic_counts *c);
/** Sets the document's counts; after it was sampled, those of the document's tokens are there. */
void pli_topic_counts_enter(pli_topic_counts *c, const pli_document *d);

/** Draws each token of the document a new topic by scan, and keeps all counts up to date. The document was entered.
 *  kernels: of this processor. */
typedef void pli_topic_scan(pli_topic_counts *c, const pli_document *d, pli_random *random);
pli_topic_scan *pli_topic_scan_get(void);
pli_topic_scan  pli_topic_scan_ref, pli_topic_scan_avx2, pli_topic_scan_avx512;

/** The same by mh. prepare: makes the alias tables of these words [n] from the counts at hand. Errors: false, no
 *  memory. */
bool pli_topic_alias_begin(pli_topic_counts *c);
void pli_topic_alias_end(pli_topic_counts *c);
void pli_topic_alias_prepare(pli_topic_counts *c, int64_t n, const uint64_t *word);
void pli_topic_mh(pli_topic_counts *c, const pli_document *d, pli_random *random);

/* (n_dk + alpha_k) / (n_k + beta_all): the part of topic k's probability that is the same for all words. */
static inline float pli_topic_weight(const pli_topic_counts *c, uint32_t k, int32_t in_doc, int32_t total) {
    return ((float)in_doc + c->alpha[k]) / ((float)(total > 0 ? total : 0) + c->beta_all);
}

/* [0, 1) in steps of 2^-24. */
static inline float pli_topic_unit(pli_random *random) { return (float)(pli_random_u32(random) >> 8) * 0x1p-24f; }

#endif
