/* Fits the alphas: the Dirichlet distribution that documents' topics come from.
 *
 * Minka's fixed point ("Estimating a Dirichlet distribution", 2000; Wallach, "Structured Topic Models for Language",
 * 2008) takes from all documents d
 *
 *     alpha_k  <-  alpha_k  sum_d [psi(n_dk + alpha_k) - psi(alpha_k)]  /  sum_d [psi(n_d + A) - psi(A)]
 *
 * where A is the sum of the alphas, and psi(n + x) - psi(x) = 1/x + 1/(x+1) + ... + 1/(x+n-1). A clock adds its
 * documents' terms to a table, in whole numbers of 2^-24, so that their sum is the same in any order; after an epoch
 * the table has grown by the sums over all documents, and every worker takes the same step. */
#include <math.h>

#include "learn/topics/topics.h"

#define UNIT 0x1p24
enum { SHORT = 32 };
#define LEAST 1e-6

/* psi(n + x) - psi(x): a sum, or by the asymptotic series of psi. */
static double psi(double x) {
    const double y = 1 / (x * x);
    return log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252)));
}

double pli_prior_digamma_from(double x, int64_t n) {
    double        sum = 0;
    const int64_t few = n < SHORT ? n : SHORT;
    for (int64_t i = 0; i < few; i++) sum += 1 / (x + (double)i);
    return n <= SHORT ? sum : sum + psi(x + (double)n) - psi(x + SHORT);
}

void pli_prior_add(int32_t k, const double *alpha, const int32_t *in_doc, int64_t tokens, int64_t *fitted) {
    double sum = 0;
    for (int32_t t = 0; t < k; t++) {
        sum += alpha[t];
        if (in_doc[t] > 0) fitted[t] += llrint(pli_prior_digamma_from(alpha[t], in_doc[t]) * UNIT);
    }
    fitted[k] += llrint(pli_prior_digamma_from(sum, tokens) * UNIT);
}

void pli_prior_step(int32_t k, const int64_t *sums, double *alpha) {
    if (sums[k] <= 0) return;
    for (int32_t t = 0; t < k; t++) alpha[t] = fmax(alpha[t] * (double)sums[t] / (double)sums[k], LEAST);
}
