/* From sums to a model: formulas of bayes.h, in double. Sums of whole numbers are read as doubles, which is exact below
 * 2^53. Every worker computes the same, in the same order. */
#include "learn/bayes/bayes.h"

#include <math.h>

static double sum_at(const pli_bayes_sums *s, int64_t i) {
    return s->whole ? (double)((const int64_t *)s->sum)[i] : ((const double *)s->sum)[i];
}

static double rows_of(const pli_bayes_sums *s, int64_t k) {
    return s->rows_are_whole ? (double)((const int64_t *)s->of_class)[k] : ((const double *)s->of_class)[k];
}

static double all_rows(const pli_bayes_sums *s) {
    double n = 0;
    for (int64_t k = 0; k < s->classes; k++) n += rows_of(s, k);
    return n;
}

/* log n_k/n: of a class without rows -inf; where there are none at all, as when a run was stopped at once, all
 * alike. */
static void estimate_shares(const pli_bayes_sums *s, double *bias) {
    const double n = all_rows(s);
    for (int64_t k = 0; k < s->classes; k++)
        bias[k] = n > 0 ? log(rows_of(s, k) / n) : -log((double)s->classes);
}

/* --- counts ------------------------------------------------------------------------------------------------------- */

/* What is counted of feature j in class k: of complement in all others. */
static double count_at(const pli_bayes_sums *s, int64_t j, int64_t k) {
    const int64_t n = s->classes, at = j * n;
    double        others = 0;
    if (s->events != PLI_EVENTS_COMPLEMENT) return sum_at(s, at + k);
    for (int64_t c = 0; c < n; c++) others += c != k ? sum_at(s, at + c) : 0;
    return others;
}

/* Work that is elementwise: some features at a time, by all threads. */
typedef struct by_feature {
    const pli_bayes_sums *sums;
    pli_solution         *solution;
    const double         *total; /* [K] logarithm of all counts of a class, smoothed */
    void (*feature)(const struct by_feature *pass, int64_t j);
} by_feature;
enum { AT_ONCE = 4096 };

static void some_features(void *user, int64_t i, int32_t thread) {
    const by_feature *pass = user;
    const int64_t     end = (i + 1) * AT_ONCE < pass->sums->rows ? (i + 1) * AT_ONCE : pass->sums->rows;
    (void)thread;
    for (int64_t j = i * AT_ONCE; j < end; j++) pass->feature(pass, j);
}

static void all_features(by_feature *pass) {
    pli_pool_for(pass->sums->pool, (pass->sums->rows + AT_ONCE - 1) / AT_ONCE, some_features, pass);
}

static void weigh_counts(const by_feature *pass, int64_t j) {
    const pli_bayes_sums *s = pass->sums;
    const double          sign = s->events == PLI_EVENTS_COMPLEMENT ? -1 : 1;
    for (int64_t k = 0; k < s->classes; k++)
        pass->solution->weight[j * s->classes + k] = sign * (log(count_at(s, j, k) + s->alpha) - pass->total[k]);
}

/* multinomial, complement. The total of what is counted, smoothed, stands in bias meanwhile. */
static void estimate_counts(const pli_bayes_sums *s, pli_solution *solution) {
    const int64_t n = s->classes;
    double       *total = solution->bias;
    for (int64_t k = 0; k < n; k++) total[k] = 0;
    for (int64_t j = 0; j < s->rows; j++)
        for (int64_t k = 0; k < n; k++) total[k] += count_at(s, j, k) + s->alpha;
    for (int64_t k = 0; k < n; k++) total[k] = log(total[k]);
    all_features(&(by_feature){ s, solution, total, weigh_counts });
    for (int64_t k = 0; k < n; k++) solution->bias[k] = 0;
    if (s->events == PLI_EVENTS_MULTINOMIAL) estimate_shares(s, solution->bias);
}

/* A feature that occurs moves the score from log(1 - p) to log p. */
static void estimate_occurrences(const pli_bayes_sums *s, pli_solution *solution) {
    const int64_t n = s->classes;
    estimate_shares(s, solution->bias);
    for (int64_t j = 0; j < s->rows; j++)
        for (int64_t k = 0; k < n; k++) {
            const double rows = rows_of(s, k), with = sum_at(s, j * n + k);
            const double without = fmax(rows - with, 0); /* rounding of real weights apart */
            const double all = log(rows + 2 * s->alpha);
            solution->bias[k] += log(without + s->alpha) - all;
            solution->weight[j * n + k] = log(with + s->alpha) - log(without + s->alpha);
        }
}

/* --- moments ------------------------------------------------------------------------------------------------------ */

/* What rounding may leave of a weight of no rows. */
#define DUST 1e-12

/* Mean and variance of feature j in class k. Rows without a value have the value 0. */
static void moments_of(const pli_bayes_sums *s, int64_t j, int64_t k, double *mean_out, double *variance_out) {
    const int64_t at = (j * s->classes + k) * PLI_MOMENTS;
    const double  rows = rows_of(s, k), centre = s->centre[j * s->classes + k];
    double        zeros = rows - sum_at(s, at + PLI_GIVEN);
    if (!(zeros > DUST * rows)) zeros = 0;
    *mean_out = centre;
    *variance_out = 0;
    if (!(rows > 0)) return;
    const double off = (sum_at(s, at + PLI_SUM) - zeros * centre) / rows;
    *mean_out = centre + off;
    *variance_out = fmax((sum_at(s, at + PLI_SQUARE) + zeros * centre * centre) / rows - off * off, 0);
}

/* The variance of feature j over all rows: within the classes, and between them. */
static double variance_of_all(const pli_bayes_sums *s, const double *mean, const double *variance) {
    const double n = all_rows(s);
    double       middle = 0, sum = 0;
    for (int64_t k = 0; k < s->classes; k++) middle += rows_of(s, k) / n * mean[k];
    for (int64_t k = 0; k < s->classes; k++)
        sum += rows_of(s, k) / n * (variance[k] + (mean[k] - middle) * (mean[k] - middle));
    return sum;
}

static void estimate_moments(const pli_bayes_sums *s, pli_solution *solution) {
    const int64_t n = s->classes, values = s->rows * n;
    double       *mean = solution->weight, *variance = mean + values, largest = 0;
    for (int64_t j = 0; j < s->rows; j++) {
        for (int64_t k = 0; k < n; k++) moments_of(s, j, k, &mean[j * n + k], &variance[j * n + k]);
        largest = fmax(largest, variance_of_all(s, mean + j * n, variance + j * n)); /* not NaN, of no rows */
    }
    for (int64_t i = 0; i < values; i++) variance[i] += s->smoothing * (largest > 0 ? largest : 1);
    estimate_shares(s, solution->bias);
}

void pli_bayes_estimate(const pli_bayes_sums *sums, pli_solution *solution) {
    if (sums->events == PLI_EVENTS_GAUSSIAN) estimate_moments(sums, solution);
    else if (sums->events == PLI_EVENTS_BERNOULLI) estimate_occurrences(sums, solution);
    else estimate_counts(sums, solution);
}
