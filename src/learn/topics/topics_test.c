/* Tests the samplers of topics: counts stay those of the tokens, each sampler's distribution is the exact posterior of
 * a corpus small enough to list it, all kernels draw the same topics, and the prior's sums are those of psi. */
#include "learn/topics/topics.h"

#include <math.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* --- counts ------------------------------------------------------------------------------------------------------- */

enum { DOCS = 40, WORDS = 30, IN_DOC = 12, TOKENS_MOST = 100 };

typedef struct corpus {
    uint32_t     word[DOCS][IN_DOC];
    float        count[DOCS][IN_DOC];
    uint16_t     topic[DOCS][TOKENS_MOST];
    pli_document doc[DOCS];
} corpus;

static void count_tokens(pli_topic_counts *c, const pli_document *d) {
    const uint16_t *topic = d->topic;
    for (int64_t e = 0; e < d->n; e++)
        for (int64_t i = pli_document_count(d, e); i > 0; i--, topic++) {
            c->word[(int64_t)d->word[e] * c->lanes + *topic]++;
            c->total[*topic]++;
        }
}

static void make_corpus(corpus *x, pli_topic_counts *c) {
    pli_random random = pli_random_at(7, PLI_RANDOM_DATA, 0, 0);
    for (int d = 0; d < DOCS; d++) {
        for (int e = 0; e < IN_DOC; e++) {
            x->word[d][e] = (uint32_t)(e * 2 + (int)pli_random_below(&random, 2));
            x->count[d][e] = (float)pli_random_below(&random, 8);
        }
        const plait_row row = { .n = IN_DOC, .column = x->word[d], .value = x->count[d] };
        x->doc[d] = pli_lda_document(&row);
        x->doc[d].topic = x->topic[d];
        pli_lda_first(3, d, c->topics, &x->doc[d]);
        count_tokens(c, &x->doc[d]);
    }
}

static void sweep(corpus *x, pli_topic_counts *c, pli_topic_scan *sampler, int times) {
    pli_random random = pli_random_at(1, PLI_RANDOM_TOPICS, 9, 9);
    for (int t = 0; t < times; t++)
        for (int d = 0; d < DOCS; d++) {
            pli_topic_counts_enter(c, &x->doc[d]);
            sampler(c, &x->doc[d], &random);
        }
}

static void begin_alias(pli_topic_counts *c) {
    uint64_t word[WORDS];
    for (uint64_t w = 0; w < WORDS; w++) word[w] = w;
    assert_true(pli_topic_alias_begin(c));
    pli_topic_alias_prepare(c, c->words, word);
}

static void check_counts(int32_t topics, pli_topic_scan *sampler) {
    static corpus    x;
    pli_topic_counts c, again;
    assert_true(pli_topic_counts_begin(&c, WORDS, topics, 0.1, 0.01));
    assert_true(pli_topic_counts_begin(&again, WORDS, topics, 0.1, 0.01));
    make_corpus(&x, &c);
    static corpus before;
    before = x;
    begin_alias(&c);
    sweep(&x, &c, sampler, 5);
    for (int d = 0; d < DOCS; d++) count_tokens(&again, &x.doc[d]);
    assert_memory_equal(again.word, c.word, (size_t)(WORDS * c.lanes) * sizeof *c.word);
    assert_memory_equal(again.total, c.total, (size_t)c.lanes * sizeof *c.total);
    assert_memory_not_equal(before.topic, x.topic, sizeof x.topic);
    pli_topic_counts_end(&c);
    pli_topic_counts_end(&again);
}

static void test_counts_are_those_of_the_tokens(void **state) {
    static const int32_t topics[] = { 1, 2, 16, 17, 100 };
    (void)state;
    for (int i = 1; i < 5; i++) {
        check_counts(topics[i], pli_topic_scan_get());
        check_counts(topics[i], pli_topic_mh);
    }
    static corpus    x; /* one topic: nothing to choose */
    pli_topic_counts c;
    assert_true(pli_topic_counts_begin(&c, WORDS, topics[0], 0.1, 0.01));
    make_corpus(&x, &c);
    sweep(&x, &c, pli_topic_scan_get(), 1);
    for (int d = 0; d < DOCS; d++)
        for (int64_t t = 0; t < x.doc[d].tokens; t++) assert_int_equal(x.topic[d][t], 0);
    pli_topic_counts_end(&c);
}

static void test_kernels_draw_the_same(void **state) {
    static corpus     x, y;
    pli_topic_counts  c, other;
    (void)state;
    assert_true(pli_topic_counts_begin(&c, WORDS, 37, 0.1, 0.01));
    assert_true(pli_topic_counts_begin(&other, WORDS, 37, 0.1, 0.01));
    make_corpus(&x, &c);
    make_corpus(&y, &other);
    sweep(&x, &c, pli_topic_scan_ref, 4);
    sweep(&y, &other, pli_topic_scan_get(), 4);
    assert_memory_equal(x.topic, y.topic, sizeof x.topic);
    pli_topic_counts_end(&c);
    pli_topic_counts_end(&other);
}

/* --- the exact posterior ------------------------------------------------------------------------------------------ */

/* Two documents of three words: 5 tokens, two topics, so 32 assignments. */
enum { TINY_WORDS = 3, TINY_TOKENS = 5, STATES = 1 << TINY_TOKENS, SAMPLES = 40000, THIN = 4 };
#define CRITICAL 61.1 /* chi-square with 31 degrees of freedom is above it in one of a thousand */

static const double tiny_alpha[2] = { 0.7, 0.4 };
static const double tiny_beta = 0.5;
static const int    tiny_doc[TINY_TOKENS] = { 0, 0, 0, 1, 1 };
static const int    tiny_word[TINY_TOKENS] = { 0, 0, 1, 1, 2 };

static double log_posterior(unsigned z) {
    double in_doc[2][2] = { { 0 } }, of_word[2][TINY_WORDS] = { { 0 } }, all[2] = { 0 }, sum = 0;
    for (int t = 0; t < TINY_TOKENS; t++) {
        const unsigned k = z >> t & 1;
        in_doc[tiny_doc[t]][k]++, of_word[k][tiny_word[t]]++, all[k]++;
    }
    for (int k = 0; k < 2; k++) {
        for (int d = 0; d < 2; d++) sum += lgamma(in_doc[d][k] + tiny_alpha[k]);
        for (int w = 0; w < TINY_WORDS; w++) sum += lgamma(of_word[k][w] + tiny_beta);
        sum -= lgamma(all[k] + TINY_WORDS * tiny_beta);
    }
    return sum;
}

static double chi_square(const int *seen) {
    double p[STATES], sum = 0, chi = 0;
    for (unsigned z = 0; z < STATES; z++) sum += p[z] = exp(log_posterior(z));
    for (unsigned z = 0; z < STATES; z++) {
        const double wanted = SAMPLES * p[z] / sum, off = seen[z] - wanted;
        assert_true(wanted > 5);
        chi += off * off / wanted;
    }
    return chi;
}

static double sample_tiny(pli_topic_scan *sampler, float shift) {
    static const uint32_t word[2][2] = { { 0, 1 }, { 1, 2 } };
    static const float    count[2] = { 2, 1 };
    uint16_t              topic[TINY_TOKENS] = { 0, 1, 0, 1, 0 };
    const pli_document    doc[2] = { { .n = 2, .word = word[0], .count = count, .topic = topic, .tokens = 3 },
                                     { .n = 2, .word = word[1], .topic = topic + 3, .tokens = 2 } };
    const uint64_t        words[TINY_WORDS] = { 0, 1, 2 };
    int                   seen[STATES] = { 0 };
    pli_random            random = pli_random_at(5, PLI_RANDOM_TOPICS, 0, 0);
    pli_topic_counts      c;
    assert_true(pli_topic_counts_begin(&c, TINY_WORDS, 2, 1, tiny_beta));
    for (int k = 0; k < 2; k++) c.alpha[k] = (float)tiny_alpha[k] + shift;
    for (int d = 0; d < 2; d++) count_tokens(&c, &doc[d]);
    assert_true(pli_topic_alias_begin(&c));
    pli_topic_alias_prepare(&c, TINY_WORDS, words);
    for (int s = 0; s < SAMPLES * THIN; s++) {
        for (int d = 0; d < 2; d++) {
            pli_topic_counts_enter(&c, &doc[d]);
            sampler(&c, &doc[d], &random);
        }
        unsigned z = 0;
        for (int t = 0; t < TINY_TOKENS; t++) z |= (unsigned)topic[t] << t;
        if (s % THIN == 0) seen[z]++;
    }
    pli_topic_counts_end(&c);
    return chi_square(seen);
}

/* The test would see a wrong distribution: with other alphas it fails. */
static void test_samplers_reach_the_posterior(void **state) {
    (void)state;
    const double scan = sample_tiny(pli_topic_scan_get(), 0), mh = sample_tiny(pli_topic_mh, 0);
    if (scan > CRITICAL || mh > CRITICAL) print_error("chi-square: scan %g, mh %g\n", scan, mh);
    assert_true(scan < CRITICAL);
    assert_true(mh < CRITICAL);
    assert_true(sample_tiny(pli_topic_scan_get(), 0.1f) > CRITICAL);
    assert_true(sample_tiny(pli_topic_mh, 0.1f) > CRITICAL);
}

/* --- the prior ---------------------------------------------------------------------------------------------------- */

static void test_differences_of_psi(void **state) {
    static const double x[] = { 1e-3, 0.1, 2.5, 40 };
    (void)state;
    for (int i = 0; i < 4; i++) {
        double sum = 0;
        for (int64_t n = 1; n <= 1000; n++) {
            sum += 1 / (x[i] + (double)n - 1);
            assert_true(fabs(pli_prior_digamma_from(x[i], n) - sum) < 1e-9 * sum);
        }
    }
    assert_true(pli_prior_digamma_from(0.1, 0) == 0);
}

/* Documents of a known prior: topics' shares come from Dirichlet(1, 1), which makes every count of a topic in 0 .. n
 * equally frequent. The fixed point is 1, 1. */
static void test_prior_is_found(void **state) {
    double alpha[2] = { 0.1, 4 };
    (void)state;
    for (int step = 0; step < 300; step++) {
        int64_t sums[3] = { 0 };
        for (int32_t n = 0; n <= 50; n++) pli_prior_add(2, alpha, (const int32_t[]){ n, 50 - n }, 50, sums);
        pli_prior_step(2, sums, alpha);
    }
    assert_true(fabs(alpha[0] - 1) < 0.01 && fabs(alpha[1] - 1) < 0.01);
}

/* --- the left-to-right estimator ---------------------------------------------------------------------------------- */

enum { LONG = 6, PARTICLES = 20000 };

/* The exact probability of the words: a sum over all assignments of three topics. */
static double all_assignments(const pli_lda_model *m, const uint32_t *word) {
    double sum = 0;
    int    states = 1;
    for (int i = 0; i < LONG; i++) states *= m->k;
    for (int s = 0; s < states; s++) {
        double p = 1, count[3];
        int    left = s;
        for (int t = 0; t < m->k; t++) count[t] = m->alpha[t];
        for (int i = 0; i < LONG; i++, left /= m->k) {
            const int t = left % m->k;
            p *= count[t] / (i + m->alpha_sum) * (double)m->phi[word[i] * (uint32_t)m->k + (uint32_t)t];
            count[t] += 1;
        }
        sum += p;
    }
    return log(sum);
}

/* Topics differ much, so that a particle that did not draw earlier topics anew would be far off. */
static void test_left_to_right_is_the_sum_over_all(void **state) {
    static const double   alpha[3] = { 0.3, 0.2, 0.1 };
    static float          phi[4 * 3] = { 0.7f, 0.1f, 0.1f, 0.1f, 0.7f, 0.1f, 0.1f, 0.1f, 0.4f, 0.1f, 0.1f, 0.4f };
    static const uint32_t word[2][LONG] = { { 3, 3, 3, 0, 0, 0 }, { 0, 1, 2, 3, 1, 1 } };
    const pli_lda_model   m = { .words = 4, .k = 3, .alpha = alpha, .alpha_sum = 0.6, .phi = phi };
    (void)state;
    for (int d = 0; d < 2; d++) {
        double found, again, few = 0;
        assert_true(pli_left_to_right(&m, LONG, word[d], PARTICLES, 5, NULL, &found));
        assert_true(pli_left_to_right(&m, LONG, word[d], PARTICLES, 5, NULL, &again));
        assert_true(pli_left_to_right(&m, LONG, word[d], 1, 5, NULL, &few));
        const double exact = all_assignments(&m, word[d]);
        if (fabs(found - exact) > 0.02) print_error("document %d: %.5f, exact %.5f\n", d, found, exact);
        assert_true(fabs(found - exact) <= 0.02);
        assert_true(found == again && found != few);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_are_those_of_the_tokens), cmocka_unit_test(test_kernels_draw_the_same),
        cmocka_unit_test(test_samplers_reach_the_posterior),   cmocka_unit_test(test_differences_of_psi),
        cmocka_unit_test(test_prior_is_found),                 cmocka_unit_test(test_left_to_right_is_the_sum_over_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
