/* The sampler mh: proposals that take the same time whatever the number of topics, and their acceptance.
 *
 * A token of topic s takes a proposal t with probability min(1, p(t) q(s) / (p(s) q(t))), where p is the exact
 * conditional (counts.h) and q the proposal's own distribution. So the chain keeps p whatever q is; q decides how fast
 * it moves.
 *
 *   word      q(k) ~ (m_kw + beta) / (m_k + V beta), with the counts m of the clock's beginning. An alias table
 *             (Walker, 1977; Vose, 1991) draws from it by one random number: column i keeps topic i below its limit,
 *             and has another topic above.
 *   document  q(k) ~ n_dk + alpha_k, the token included: the topic of a random token of the document, or, with the
 *             share of the alphas, a draw from the alphas' own alias table.
 *
 * A token gets STEPS rounds of both. Papers: Yuan et al., "LightLDA: Big Topic Models on Modest Computer Clusters", WWW
 * 2015; Chen et al., "WarpLDA: a Cache Efficient O(1) Algorithm for Latent Dirichlet Allocation", VLDB 2016. */
#include <math.h>
#include <string.h>

#include "learn/topics/counts.h"

enum { STEPS = 2 };

/* Column i of an alias table: topic i below the limit, else the other. */
typedef struct column {
    float    limit;
    uint32_t other;
} column;

struct pli_topic_alias {
    column  *word;     /* [words, topics] */
    float   *weight;   /* [words, topics]: q of the word's proposal, up to a factor of the word */
    column  *alpha;    /* [topics] */
    double   alpha_sum;
    float   *inverse;  /* [topics]: 1 / (n_k + beta_all) when the tables were made */
    int32_t *waiting;  /* [2, topics] of the table that is made */
};

bool pli_topic_alias_begin(pli_topic_counts *c) {
    pli_topic_alias *a = c->alias = pli_calloc(1, sizeof *a);
    const size_t     k = (size_t)c->topics;
    if (a == NULL) return false;
    a->word = pli_calloc((size_t)c->words * k, sizeof *a->word);
    a->weight = pli_calloc((size_t)c->words * k, sizeof *a->weight);
    a->alpha = pli_calloc(k, sizeof *a->alpha);
    a->waiting = pli_calloc(2 * k, sizeof *a->waiting);
    a->inverse = pli_calloc(k, sizeof *a->inverse);
    return a->word != NULL && a->weight != NULL && a->alpha != NULL && a->waiting != NULL && a->inverse != NULL;
}

void pli_topic_alias_end(pli_topic_counts *c) {
    pli_topic_alias *a = c->alias;
    c->alias = NULL;
    if (a == NULL) return;
    pli_free(a->word);
    pli_free(a->weight);
    pli_free(a->alpha);
    pli_free(a->waiting);
    pli_free(a->inverse);
    pli_free(a);
}

/* The alias table of weights [k]: columns below the mean are filled up by those above. Returns the sum. */
static double make_table(int32_t k, const float *weight, column *table, int32_t *waiting) {
    int32_t *low = waiting, *high = waiting + k, lows = 0, highs = 0;
    double   sum = 0;
    for (int32_t i = 0; i < k; i++) sum += (double)weight[i];
    const float scale = (float)((double)k / sum);
    for (int32_t i = 0; i < k; i++) {
        table[i] = (column){ .limit = weight[i] * scale, .other = (uint32_t)i };
        if (table[i].limit < 1) low[lows++] = i;
        else high[highs++] = i;
    }
    while (lows > 0 && highs > 0) {
        const int32_t l = low[--lows], h = high[highs - 1];
        table[l].other = (uint32_t)h;
        table[h].limit -= 1 - table[l].limit;
        if (table[h].limit >= 1) continue;
        highs--;
        low[lows++] = h;
    }
    while (lows > 0) table[low[--lows]].limit = 1; /* by rounding */
    return sum;
}

void pli_topic_alias_prepare(pli_topic_counts *c, int64_t n, const uint64_t *word) {
    pli_topic_alias *a = c->alias;
    const int32_t    k = c->topics;
    for (int32_t t = 0; t < k; t++) a->inverse[t] = 1.0f / ((float)(c->total[t] > 0 ? c->total[t] : 0) + c->beta_all);
    for (int64_t i = 0; i < n; i++) {
        const int32_t *count = c->word + (int64_t)word[i] * c->lanes;
        float         *weight = a->weight + (int64_t)word[i] * k;
        for (int32_t t = 0; t < k; t++) weight[t] = ((float)(count[t] > 0 ? count[t] : 0) + c->beta) * a->inverse[t];
        (void)make_table(k, weight, a->word + (int64_t)word[i] * k, a->waiting);
    }
    a->alpha_sum = make_table(k, c->alpha, a->alpha, a->waiting);
}

/* One random number chooses the column by its upper bits, and the side by what is left of it. */
static inline uint32_t draw(const column *table, int32_t k, pli_random *random) {
    const uint64_t x = (uint64_t)pli_random_u32(random) * (uint64_t)k;
    const uint32_t i = (uint32_t)(x >> 32);
    return (float)((uint32_t)x >> 8) * 0x1p-24f < table[i].limit ? i : table[i].other;
}

/* A token whose topic is drawn: its word's counts, and its topic before, which the counts contain. */
typedef struct token {
    const int32_t *word;
    uint32_t       old;
} token;

/* p(k) up to a factor, without the token itself. */
static inline float exact(const pli_topic_counts *c, const token *t, uint32_t k) {
    const int32_t self = k == t->old, n = t->word[k] - self, all = c->total[k] - self;
    return ((float)(c->in_doc[k] - self) + c->alpha[k]) * ((float)(n > 0 ? n : 0) + c->beta) /
           ((float)(all > 0 ? all : 0) + c->beta_all);
}

/* The document's proposal, up to a factor. */
static inline float in_document(const pli_topic_counts *c, uint32_t k) { return (float)c->in_doc[k] + c->alpha[k]; }

static inline void move(pli_topic_counts *c, int32_t *word, uint32_t k, int32_t by) {
    word[k] += by;
    c->total[k] += by;
    c->in_doc[k] += by;
}

static inline bool takes(pli_random *random, float up, float down) {
    return up >= down || pli_topic_unit(random) * down < up;
}

void pli_topic_mh(pli_topic_counts *c, const pli_document *d, pli_random *random) {
    const pli_topic_alias *a = c->alias;
    const double           share = (double)d->tokens / ((double)d->tokens + a->alpha_sum);
    const uint32_t         below = (uint32_t)(share * 0x1p24); /* of 2^24: the document's tokens */
    int64_t                at = 0;
    for (int64_t e = 0; e < d->n; e++) {
        int32_t       *word = c->word + (int64_t)d->word[e] * c->lanes;
        const float   *weight = a->weight + (int64_t)d->word[e] * c->topics;
        const column  *table = a->word + (int64_t)d->word[e] * c->topics;
        const int64_t  n = pli_document_count(d, e);
        for (int64_t i = 0; i < n; i++, at++) {
            const token t = { .word = word, .old = d->topic[at] };
            uint32_t    s = t.old;
            float       p = exact(c, &t, s);
            for (int step = 0; step < STEPS; step++) {
                uint32_t k = draw(table, c->topics, random);
                float    to = k != s ? exact(c, &t, k) : p;
                if (k != s && takes(random, to * weight[s], p * weight[k])) s = k, p = to;
                if (pli_random_u32(random) >> 8 < below) {
                    const uint64_t x = (uint64_t)pli_random_u32(random) * (uint64_t)d->tokens;
                    k = d->topic[x >> 32];
                } else k = draw(a->alpha, c->topics, random);
                if (k == s) continue;
                to = exact(c, &t, k);
                /* q includes the token with its old topic, which does not change while it is drawn. */
                if (takes(random, to * in_document(c, s), p * in_document(c, k))) s = k, p = to;
            }
            if (s == t.old) continue;
            move(c, word, t.old, -1);
            move(c, word, s, 1);
            d->topic[at] = (uint16_t)s;
        }
    }
}
