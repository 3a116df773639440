/* Losses of rankings. The rows of a query are to be put in order by their scores, those with higher labels first. So a
 * row's loss depends on the other rows of its query, and a query has slopes where other losses have one of a row.
 *
 * The measure is NDCG@10: the sum over the first ten rows of (2^y - 1) / log2(1 + place), divided by that of the best
 * order (Jarvelin and Kekalainen, "Cumulated Gain-Based Evaluation of IR Techniques", ACM TOIS 2002). A query whose
 * labels are all 0 counts 1. NDCG has no slope. So `ndcg` takes for each pair of rows with y_i > y_j the slope of
 * log(1 + exp(s_j - s_i)), times what NDCG would lose if the two changed places (Burges, "From RankNet to LambdaRank to
 * LambdaMART", 2010), as LightGBM does: pairs whose first row is among the first 30; a pair's part is divided by how
 * far its scores are apart, and all of a query by the logarithm of their sum. `pairwise` takes all pairs alike, and its
 * loss is their mean (RankNet). */
#include "learn/loss/loss.h"

#include <math.h>
#include <string.h>

#include "base/base.h"

enum { TOP = 10, FIRST = 30, LABEL_MOST = PLI_QUERY_LABEL_MOST };

/* A query whose rows are in the order of their scores. */
typedef struct query {
    int64_t       n;
    const double *score, *y;
    uint64_t     *key;   /* [n] scratch of the sort                  */
    uint32_t     *place; /* [n] the row at each place; equal scores: in the order of the rows */
    double       *slope, *h;
} query;

static double gain_of(double y) { return ldexp(1, (int)y) - 1; }
static double discount_at(int64_t place) { return 1 / log2((double)place + 2); }

/* The larger the score, the smaller the key. */
static uint64_t key_of(double score) {
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t       bits;
    score += 0.0; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    return (bits & sign) != 0 ? bits : ~(bits | sign);
}

static bool sort_rows(query *q) {
    for (int64_t i = 0; i < q->n; i++) {
        q->key[i] = key_of(q->score[i]);
        q->place[i] = (uint32_t)i;
    }
    return pli_sort_u64(q->n, q->key, q->place);
}

/* The gain of the best order, its first `most` places. */
static double best_gain(const query *q, int64_t most) {
    int64_t rows[LABEL_MOST + 1] = { 0 }, place = 0;
    double  sum = 0;
    for (int64_t i = 0; i < q->n; i++) rows[(int)q->y[i]]++;
    for (int label = LABEL_MOST; label > 0; label--)
        for (int64_t i = 0; i < rows[label] && place < most; i++) sum += gain_of(label) * discount_at(place++);
    return sum;
}

static double ndcg_of(const query *q) {
    const double best = best_gain(q, TOP);
    double       sum = 0;
    for (int64_t i = 0; i < q->n && i < TOP; i++) sum += gain_of(q->y[q->place[i]]) * discount_at(i);
    return best > 0 ? sum / best : 1;
}

/* Adds a pair's slope and curvature, `by` times, to its rows; returns the slope. */
static double add_pair(const query *q, uint32_t high, uint32_t low, double by) {
    const double wrong = 1 / (1 + exp(q->score[high] - q->score[low]));
    q->slope[high] -= by * wrong;
    q->slope[low] += by * wrong;
    q->h[high] += by * wrong * (1 - wrong);
    q->h[low] += by * wrong * (1 - wrong);
    return by * wrong;
}

static void scale_slopes(const query *q, double by) {
    for (int64_t i = 0; i < q->n; i++) {
        q->slope[i] *= by;
        q->h[i] *= by;
    }
}

static void add_lambdas(const query *q) {
    const double best = best_gain(q, FIRST), apart = q->score[q->place[0]] - q->score[q->place[q->n - 1]];
    double       sum = 0;
    for (int64_t i = 0; best > 0 && i < q->n && i < FIRST; i++)
        for (int64_t j = i + 1; j < q->n; j++) {
            const uint32_t a = q->place[i], b = q->place[j];
            if (q->y[a] == q->y[b]) continue;
            double by = fabs(gain_of(q->y[a]) - gain_of(q->y[b])) * (discount_at(i) - discount_at(j)) / best;
            if (apart > 0) by /= 0.01 + fabs(q->score[a] - q->score[b]);
            sum += 2 * (q->y[a] > q->y[b] ? add_pair(q, a, b, by) : add_pair(q, b, a, by));
        }
    if (sum > 0) scale_slopes(q, log2(1 + sum) / sum);
}

/* log(1 + exp(-margin)) */
static double loss_of_pair(double margin) { return (margin < 0 ? -margin : 0) + log1p(exp(-fabs(margin))); }

/* The mean over pairs; slopes are those of the mean times the query's rows. */
static double all_pairs(const query *q) {
    int64_t pairs = 0;
    double  sum = 0;
    for (int64_t i = 0; i < q->n; i++)
        for (int64_t j = 0; j < q->n; j++) {
            if (!(q->y[i] > q->y[j])) continue;
            sum += loss_of_pair(q->score[i] - q->score[j]);
            if (q->slope != NULL) (void)add_pair(q, (uint32_t)i, (uint32_t)j, 1);
            pairs++;
        }
    if (pairs > 0 && q->slope != NULL) scale_slopes(q, (double)q->n / (double)pairs);
    return pairs > 0 ? sum / (double)pairs : 0;
}

static double judge(int64_t n, const double *score, const double *y, bool pairwise, double *slope, double *h,
                    double *ndcg) {
    query  q = { .n = n, .score = score, .y = y, .slope = slope, .h = h };
    double loss = (double)NAN;
    q.key = pli_array((size_t)n, sizeof *q.key);
    q.place = pli_array((size_t)n, sizeof *q.place);
    *ndcg = (double)NAN;
    for (int64_t i = 0; slope != NULL && i < n; i++) slope[i] = h[i] = 0;
    if (q.key != NULL && q.place != NULL && sort_rows(&q)) {
        *ndcg = ndcg_of(&q);
        loss = pairwise ? all_pairs(&q) : 1 - *ndcg;
        if (!pairwise && slope != NULL) add_lambdas(&q);
    }
    pli_free(q.key);
    pli_free(q.place);
    return loss;
}

static double ndcg_query(int64_t n, const double *score, const double *y, double *slope, double *h, double *ndcg) {
    return judge(n, score, y, false, slope, h, ndcg);
}

static double pairwise_query(int64_t n, const double *score, const double *y, double *slope, double *h, double *ndcg) {
    return judge(n, score, y, true, slope, h, ndcg);
}

/* A row alone is in the right order. */
static double alone(double parameter, int64_t k, const double *score, double y, double *slope) {
    (void)parameter, (void)k, (void)score, (void)y;
    slope[0] = 0;
    return 0;
}

const pli_loss pli_loss_ndcg = { .model = "ndcg", .target = PLI_NUMBER, .curvature = 1, .at = alone,
                                 .query = ndcg_query },
               pli_loss_pairwise = { .model = "pairwise", .target = PLI_NUMBER, .curvature = 1, .at = alone,
                                     .query = pairwise_query };
