/* The probability of a whole document by a left-to-right estimator (Wallach, Murray, Salakhutdinov and Mimno,
 * "Evaluation Methods for Topic Models", ICML 2009, algorithm 3; in the form of Buntine, "Estimating Likelihoods for
 * Topic Models", ACML 2009).
 *
 * A particle goes through the tokens. Before token n it draws the topic of each earlier token anew, given all others of
 * them, then predicts w_n, and then draws the topic of token n. Its chance of the document is the product of
 *
 *     P(w_n | z_1 .. z_n-1) = sum over t of phi_t(w_n) (n_t + alpha_t) / (n - 1 + sum of alpha)
 *
 * The mean chance of particles is the probability on average (Buntine). Algorithm 3 multiplies the means of each token
 * instead; that does not come to the exact value, however many particles there are. A document of N tokens takes
 * N^2 / 2 draws a particle. */
#include <math.h>
#include <string.h>

#include "learn/topics/topics.h"

/* A particle: the topics of the tokens so far, and how many tokens each topic has, alphas included. */
typedef struct particle {
    const pli_lda_model *m;
    const uint32_t      *word;
    uint16_t            *topic;
    double              *count; /* [k] */
    double              *sum;   /* [k] of the draw at hand */
    pli_random           random;
    const int           *stop;
} particle;

/* Running sums over the topics of what the next token of the word would add; returns the whole. */
static double add_up(particle *p, uint32_t word) {
    const float *phi = p->m->phi + (int64_t)word * p->m->k;
    double       sum = 0;
    for (int32_t t = 0; t < p->m->k; t++) p->sum[t] = sum += (double)phi[t] * p->count[t];
    return sum;
}

/* Draws a topic after add_up. */
static uint16_t draw(particle *p, double whole) {
    const double u = pli_random_f64(&p->random) * whole;
    int32_t      t = 0;
    while (t + 1 < p->m->k && p->sum[t] <= u) t++;
    return (uint16_t)t;
}

static void draw_again(particle *p, int64_t token) {
    p->count[p->topic[token]] -= 1;
    p->topic[token] = draw(p, add_up(p, p->word[token]));
    p->count[p->topic[token]] += 1;
}

/* The log of the particle's chance of the document. */
static double go(particle *p, int64_t n) {
    double chance = 0;
    memcpy(p->count, p->m->alpha, (size_t)p->m->k * sizeof *p->count);
    for (int64_t i = 0; i < n && !pli_lda_stopped(p->stop); i++) {
        for (int64_t before = 0; before < i; before++) draw_again(p, before);
        const double whole = add_up(p, p->word[i]);
        chance += log(whole / ((double)i + p->m->alpha_sum));
        p->topic[i] = draw(p, whole);
        p->count[p->topic[i]] += 1;
    }
    return chance;
}

bool pli_left_to_right(const pli_lda_model *m, int64_t n, const uint32_t *word, int32_t particles, uint64_t number,
                       const int *stop, double *log_out) {
    const size_t k = (size_t)m->k;
    particle     p = { .m = m, .word = word, .stop = stop };
    double       most = -INFINITY, sum = 0; /* of chances, as shares of the highest */
    p.topic = pli_array((size_t)n + 1, sizeof *p.topic);
    p.count = pli_array(2 * k, sizeof *p.count);
    p.sum = p.count != NULL ? p.count + k : NULL;
    const bool there = p.topic != NULL && p.count != NULL;
    for (int32_t r = 0; there && r < particles; r++) {
        p.random = pli_random_at(0, PLI_RANDOM_HALVES, (uint64_t)r + 1, number);
        const double chance = go(&p, n), top = fmax(most, chance);
        sum = sum * exp(most - top) + exp(chance - top);
        most = top;
    }
    *log_out = most + log(sum / particles);
    pli_free(p.topic);
    pli_free(p.count);
    return there;
}
