/* The update of a row. See online.h. */
#include "learn/linear/online.h"

#include <math.h>
#include <string.h>

/* Measured on the sets of bench/online; for scores of unit spread. */
static const double N0 = 0.2, C = 0.02, INTERCEPT = 2.5; /* the intercept is in every row: it may learn faster */

enum { LONGEST = 128 }; /* pieces of a numeric flow */

/* --- memory that others may change at the same time --------------------------------------------------------------- */

static inline float load(const float *from) {
    float x;
    __atomic_load(from, &x, __ATOMIC_RELAXED);
    return x;
}

static inline void store(float *to, float x) { __atomic_store(to, &x, __ATOMIC_RELAXED); }

static inline void store_narrow(float *to, double x) { store(to, (float)x); }

/* --- scales and rates --------------------------------------------------------------------------------------------- */

/* 1 / s; 0: the feature was never there. Features that are always 1 are common. */
static inline double inverse_scale(bool raw, float q, float c) {
    if (raw) return 1;
    if (q == c) return q > 0 ? 1 : 0;
    return q > 0 && isfinite(q) ? sqrt((double)c / (double)q) : 0;
}

/* The constants in the unit of the slopes. */
typedef struct rates {
    float first, last;
} rates;

static rates rates_of(const pli_online_rule *rule) {
    return (rates){ .first = (float)(N0 * rule->slope * rule->slope), .last = (float)(C / rule->slope) };
}

static inline float rate_at(rates r, float n) { return 1 / (sqrtf(n + r.first) + r.last * n); }

double pli_online_weight(const pli_online_rule *rule, const float *values, int64_t k) {
    const int64_t columns = rule->columns;
    return (double)values[k] * inverse_scale(rule->raw, values[2 * columns], values[2 * columns + 1]);
}

/* --- the flow of the scores --------------------------------------------------------------------------------------- */

void pli_online_flow(const pli_goal *goal, int64_t k, const double *score, double y, const double *pace, double step,
                     double *move, double *scratch) {
    double *slope = scratch, *at = scratch + k, *middle = scratch + 2 * k, fastest = 0;
    for (int64_t c = 0; c < k; c++) {
        fastest = pace[c] > fastest ? pace[c] : fastest;
        at[c] = score[c];
        move[c] = 0;
    }
    /* By midpoints: pieces so short that curvature turns the slope by little in each. The scores rest before the
     * longest time is over. */
    const double stiff = 8 * goal->loss->curvature * fastest * step;
    const int    pieces = stiff < LONGEST ? 1 + (int)stiff : LONGEST;
    const double time = stiff < LONGEST ? step / pieces : step / stiff;
    for (int i = 0; i < pieces; i++) {
        goal->loss->at(goal->parameter, k, at, y, slope);
        for (int64_t c = 0; c < k; c++) middle[c] = at[c] - time / 2 * pace[c] * slope[c];
        goal->loss->at(goal->parameter, k, middle, y, slope);
        for (int64_t c = 0; c < k; c++) at[c] -= time * pace[c] * slope[c];
    }
    for (int64_t c = 0; c < k; c++) move[c] = at[c] - score[c];
}

/* --- one score ---------------------------------------------------------------------------------------------------- */

/* From so many rows on a feature's scale is known, and its sums stay: float32 could not count much farther, so one of
 * them would stop before the other. */
#define SCALE_ROWS 8388608.0F

/* Adds the row to the sums of a feature's scale, and divides its value by it. */
static inline void note_scale(bool raw, double weight, float *value, float *q) {
    const float square = load(q), count = load(q + 1);
    if (square == count && *value == 1 && count < SCALE_ROWS) { /* it always was 1: the usual case of sparse data */
        const double sum = (double)count + weight;
        store_narrow(q, sum);
        store_narrow(q + 1, sum);
        return;
    }
    const double x = (double)*value;
    if (count >= SCALE_ROWS) {
        *value = (float)(x * inverse_scale(raw, square, count));
        return;
    }
    const float new_square = (float)((double)square + weight * x * x), new_count = (float)((double)count + weight);
    store(q, new_square);
    store(q + 1, new_count);
    *value = (float)(x * inverse_scale(raw, new_square, new_count));
}

/* The score by the values before the row. The row's features, which are known before its label, are added to the scales
 * first: so no scaled value is above the root of the number of rows, even if the feature was all but 0 before.
 * n [row->n] takes the sums of squared slopes: each value is fetched from memory once. */
static double score_one(const pli_online_rule *rule, pli_online_row *row, double *norm, float *n) {
    float *const *at = row->at;
    float        *x = row->x;
    const double  weight = row->weight;
    const bool    raw = rule->raw;
    double        score = 0, sum = 0;
    for (int64_t e = 0, entries = row->n; e < entries; e++) {
        float *const values = at[e];
        n[e] = load(&values[1]);
        note_scale(raw, weight, &x[e], values + 2);
        score += (double)load(&values[0]) * (double)x[e];
        sum += (double)x[e] * (double)x[e];
    }
    *norm = sum;
    return score;
}

/* By how much all steps are shortened for the number of features. */
static double shrink(const pli_online_rule *rule, const pli_online_totals *totals) {
    return rule->raw || !(totals->norm > 0) ? 1 : sqrt(totals->weight / totals->norm);
}

/* n [entries] grows by the row; rate [entries] is how far a unit of move takes each weight. No entry waits for another,
 * so the compiler takes several at once. */
static void rate_all(int64_t entries, rates r, double square, float all, const float *restrict x, float *restrict n,
                     float *restrict rate) {
    for (int64_t e = 0; e < entries; e++) {
        n[e] = (float)((double)n[e] + square * (double)x[e] * (double)x[e]);
        rate[e] = x[e] * all * rate_at(r, n[e]);
    }
}

/* n [row->n]: the sums of squared slopes before the row. */
static void learn_one(const pli_online_rule *rule, pli_online_row *row, double all, double score, double slope,
                      float *n, pli_online_scratch *scratch) {
    const pli_loss *loss = rule->goal->loss;
    const double    square = row->weight * slope * slope, step = rule->rate * rule->unit * row->weight * row->share;
    const rates     r = rates_of(rule);
    const int64_t   entries = row->n, last = row->intercept ? entries - 1 : entries;
    float *const   *at = row->at;
    const float    *x = row->x;
    float          *rate = scratch->rate;
    double          pace = 0, move;
    rate_all(last, r, square, (float)all, x, n, rate);
    rate_all(entries - last, r, square, (float)(all * INTERCEPT), x + last, n + last, rate + last);
    for (int64_t e = 0; e < entries; e++) pace += (double)x[e] * (double)rate[e];
    if (!(pace > 0)) {
        for (int64_t e = 0; e < entries; e++) store(&at[e][1], n[e]);
        return;
    }
    if (loss->invariant != NULL) move = loss->invariant(rule->goal->parameter, score, row->y, step * pace);
    else pli_online_flow(rule->goal, 1, &score, row->y, &pace, step, &move, scratch->score + 3);
    const double by = move / pace;
    for (int64_t e = 0; e < entries; e++) {
        store_narrow(&at[e][0], (double)load(&at[e][0]) + by * (double)rate[e]);
        store(&at[e][1], n[e]);
    }
}

/* --- one score, and features that are 1 --------------------------------------------------------------------------- */

static double dot_of(int64_t entries, const float *x, const float *y) {
    double  part[4] = { 0 };
    int64_t e = 0;
    for (; e + 4 <= entries; e += 4)
        for (int i = 0; i < 4; i++) part[i] += (double)x[e + i] * (double)y[e + i];
    for (; e < entries; e++) part[0] += (double)x[e] * (double)y[e];
    return part[0] + part[1] + (part[2] + part[3]);
}

/* The values v, n, q, c of a feature, at once. */
typedef float quad __attribute__((vector_size(16)));

static inline quad load_quad(const float *from, bool shared) {
    quad all;
    if (shared) all = (quad){ load(from), load(from + 1), load(from + 2), load(from + 3) };
    else memcpy(&all, from, sizeof all);
    return all;
}

static inline void store_quad(float *to, quad all, bool shared) {
    for (int i = 0; shared && i < 4; i++) store(to + i, all[i]);
    if (!shared) memcpy(to, &all, sizeof all);
}

/* Reads the values of a row of ones; nothing is written yet. Most features always were 1, and their scale is 1. Those
 * that were not, as where two features of a row had one hash, get their scaled value in row->x. false: a feature has
 * met so many rows that its scale stays; x is as before. */
static inline bool read_ones(bool raw, pli_online_row *row, const bool shared, float *restrict v, float *restrict n) {
    float *const *at = row->at;
    const float   weight = (float)row->weight;
    int           many = 0;
    for (int64_t e = 0, entries = row->n; e < entries; e++) {
        const quad all = load_quad(at[e], shared);
        v[e] = all[0];
        n[e] = all[1];
        many |= !(all[3] < SCALE_ROWS);
        if (all[2] != all[3]) row->x[e] = (float)inverse_scale(raw, all[2] + weight, all[3] + weight);
    }
    for (int64_t e = 0; many != 0 && e < row->n; e++) row->x[e] = 1;
    return many == 0;
}

static inline void add_ones(const pli_online_row *row, const bool shared, float square, const float *grown) {
    float *const *at = row->at;
    const float   weight = (float)row->weight, *x = row->x;
    for (int64_t e = 0, entries = row->n; e < entries; e++)
        store_quad(at[e], load_quad(at[e], shared) + (quad){ grown[e], square * x[e] * x[e], weight, weight }, shared);
}

/* learn_one of such a row. */
static void learn_ones(const pli_online_rule *rule, pli_online_row *row, double all, double score, double slope,
                       const float *restrict n, pli_online_scratch *scratch) {
    const double  step = rule->rate * rule->unit * row->weight * row->share;
    const float   square = (float)(row->weight * slope * slope), each = (float)all;
    const rates   r = rates_of(rule);
    const int64_t entries = row->n;
    const float *restrict x = row->x;
    float *restrict rate = scratch->rate;
    double move = 0;
    for (int64_t e = 0; e < entries; e++) rate[e] = x[e] * each * rate_at(r, n[e] + square * x[e] * x[e]);
    if (row->intercept) rate[entries - 1] *= (float)INTERCEPT;
    const double pace = dot_of(entries, x, rate);
    if (pace > 0 && rule->goal->loss->invariant != NULL)
        move = rule->goal->loss->invariant(rule->goal->parameter, score, row->y, step * pace);
    else if (pace > 0) pli_online_flow(rule->goal, 1, &score, row->y, &pace, step, &move, scratch->score + 3);
    const float by = pace > 0 ? (float)(move / pace) : 0;
    for (int64_t e = 0; e < entries; e++) rate[e] *= by;
    if (rule->shared) add_ones(row, true, square, rate);
    else add_ones(row, false, square, rate);
}

/* --- a score for each class --------------------------------------------------------------------------------------- */

static void score_all(const pli_online_rule *rule, pli_online_row *row, double *score, double *norm) {
    const int64_t k = rule->columns;
    for (int64_t c = 0; c < k; c++) score[c] = 0;
    for (int64_t e = 0; e < row->n; e++) {
        const float *at = row->at[e];
        note_scale(rule->raw, row->weight, &row->x[e], row->at[e] + 2 * k);
        const double x = (double)row->x[e];
        for (int64_t c = 0; c < k; c++) score[c] += (double)load(&at[c]) * x;
        *norm += (double)row->x[e] * (double)row->x[e];
    }
}

static void learn_all(const pli_online_rule *rule, pli_online_row *row, double all, pli_online_scratch *scratch) {
    const int64_t k = rule->columns;
    const rates   r = rates_of(rule);
    double       *score = scratch->score, *slope = score + k, *pace = score + 2 * k, *move = slope;
    for (int64_t c = 0; c < k; c++) pace[c] = 0;
    for (int64_t e = 0; e < row->n; e++) {
        const double x = (double)row->x[e], more = all * (row->intercept && e == row->n - 1 ? INTERCEPT : 1);
        float       *n = row->at[e] + k, *rate = scratch->rate + e * k;
        for (int64_t c = 0; c < k; c++) {
            const double sum = (double)load(&n[c]) + row->weight * slope[c] * slope[c] * x * x;
            store_narrow(&n[c], sum);
            rate[c] = (float)(x * more) * rate_at(r, (float)sum);
            pace[c] += x * (double)rate[c];
        }
    }
    pli_online_flow(rule->goal, k, score, row->y, pace, rule->rate * rule->unit * row->weight * row->share, move,
                    score + 3 * k);
    for (int64_t c = 0; c < k; c++) move[c] = pace[c] > 0 ? move[c] / pace[c] : 0;
    for (int64_t e = 0; e < row->n; e++) {
        float       *v = row->at[e];
        const float *rate = scratch->rate + e * k;
        for (int64_t c = 0; c < k; c++) store_narrow(&v[c], (double)load(&v[c]) + move[c] * (double)rate[c]);
    }
}

/* --- a row -------------------------------------------------------------------------------------------------------- */

/* The score and the loss of a row from which nothing is learnt. */
static void judge(const pli_online_rule *rule, const pli_online_row *row, double *score, double *slope,
                  pli_sums *sums) {
    const int64_t k = rule->columns;
    for (int64_t c = 0; c < k; c++) score[c] = 0;
    for (int64_t e = 0; e < row->n; e++)
        for (int64_t c = 0; c < k; c++) score[c] += (double)row->x[e] * pli_online_weight(rule, row->at[e], c);
    sums->rows++;
    sums->loss += row->weight * rule->goal->loss->at(rule->goal->parameter, k, score, row->y, slope);
    sums->weight += row->weight;
}

plait_status pli_online_learn(const pli_online_rule *rule, pli_online_row *row, pli_online_totals *totals,
                              pli_sums *sums, pli_online_scratch *scratch) {
    const pli_goal *goal = rule->goal;
    const int64_t   k = rule->columns;
    double         *score = scratch->score, *slope = score + k, norm = 0;
    if (!row->known) return PLAIT_OK;
    if (rule->judges) {
        judge(rule, row, score, slope, sums);
        return PLAIT_OK;
    }
    sums->rows++;
    totals->rows++;
    if (row->weight == 0) return PLAIT_OK;
    if (!pli_grow((void **)&scratch->rate, &scratch->capacity, 2 * row->n * k, sizeof *scratch->rate))
        return PLAIT_ENOMEM;
    float *const n = scratch->rate + row->n; /* with one score */
    const bool ones = k == 1 && row->ones && (rule->shared ? read_ones(rule->raw, row, true, scratch->rate, n)
                                                           : read_ones(rule->raw, row, false, scratch->rate, n));
    if (ones) {
        score[0] = dot_of(row->n, row->x, scratch->rate);
        norm = dot_of(row->n, row->x, row->x);
    }
    else if (k == 1) score[0] = score_one(rule, row, &norm, n);
    else score_all(rule, row, score, &norm);
    sums->loss += row->weight * goal->loss->at(goal->parameter, k, score, row->y, slope);
    sums->weight += row->weight;
    totals->norm += row->weight * norm;
    totals->weight += row->weight;
    if (ones) learn_ones(rule, row, shrink(rule, totals), score[0], slope[0], n, scratch);
    else if (k == 1) learn_one(rule, row, shrink(rule, totals), score[0], slope[0], n, scratch);
    else learn_all(rule, row, shrink(rule, totals), scratch);
    return PLAIT_OK;
}

bool pli_online_scratch_make(pli_online_scratch *scratch, int64_t columns) {
    scratch->score = pli_calloc((size_t)columns, 6 * sizeof *scratch->score);
    return scratch->score != NULL;
}

void pli_online_scratch_free(pli_online_scratch *scratch) {
    pli_free(scratch->score);
    pli_free(scratch->rate);
    *scratch = (pli_online_scratch){ .score = NULL };
}
