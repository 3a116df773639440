/* Judges which setting suits the job, by the time until the runs reach the same loss, and by the noise of repeated
 * runs.
 *
 * All runs have the same target loss: the one that the user gives, else 1 % above the lowest loss at the end of a run.
 * A run's time is the moment when its least loss so far first comes down to the target, interpolated between two points
 * by a straight line; a run that misses the target counts as infinite. Settings are ordered by their median time. A
 * setting is slower than the best beyond the noise if a test of ranks says so, because the distribution of a few times
 * is not known: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the
 * other", Ann. Math. Stat. 18, 1947. At one in twenty, the test needs at least three repeats of each setting, where all
 * three of one are slower than all three of the other. */
#include <math.h>
#include <string.h>

#include "watch/compare/compare.h"

static const double NEAR = 0.01, CHANCE = 0.05 + 1e-12;
enum { REPEATS_MAX = 1000, EXACT_MAX = 20, ORDERS = EXACT_MAX * EXACT_MAX + 1 };

/* --- the test ------------------------------------------------------------------------------------------------ */

/* The number of orders of n_a and n_b values whose U is at most u. If the largest value is one of b's, it comes before
 * no a and adds 0 to U; if it is one of a's, all of b come before it, and it adds n_b. */
static double count_orders(int32_t n_a, int32_t n_b, int32_t u) {
    double count[EXACT_MAX + 1][ORDERS] = { 0 }, sum = 0;
    for (int32_t i = 0; i <= n_a; i++) count[i][0] = 1; /* without b: U is 0 */
    for (int32_t j = 1; j <= n_b; j++)
        for (int32_t i = 1; i <= n_a; i++) /* in place: row i has (i, j - 1), and row i - 1 has (i - 1, j) already */
            for (int32_t k = i * j; k >= j; k--) count[i][k] += count[i - 1][k - j];
    for (int32_t k = 0; k <= u && k < ORDERS; k++) sum += count[n_a][k];
    return sum;
}

double pli_rank_chance(const double *a, int32_t n_a, const double *b, int32_t n_b) {
    double u = 0, all = 1;
    if (n_a <= 0 || n_b <= 0) return 1;
    for (int32_t i = 0; i < n_a; i++)
        for (int32_t j = 0; j < n_b; j++) u += b[j] < a[i] ? 1 : b[j] == a[i] ? 0.5 : 0;
    if (n_a > EXACT_MAX || n_b > EXACT_MAX) { /* the normal approximation, which the paper proves for many */
        double mean = n_a * (double)n_b / 2, deviation = sqrt(n_a * (double)n_b * (n_a + n_b + 1) / 12);
        return erfc(-(u + 0.5 - mean) / deviation / sqrt(2)) / 2;
    }
    for (int32_t i = 1; i <= n_b; i++) all = all * (n_a + i) / i;
    return count_orders(n_a, n_b, (int32_t)ceil(u)) / all;
}

/* --- times ----------------------------------------------------------------------------------------------------- */

static double at(const pli_curve_point *point, size_t offset) {
    return *(const double *)((const char *)point + offset);
}

double pli_compare_crossing(const pli_curve_point *point, int64_t points, double target, size_t axis) {
    double least = INFINITY; /* so far: a loss that rises again does not matter */
    for (int64_t i = 0; i < points; i++) {
        if (!(point[i].loss <= target)) {
            if (point[i].loss < least) least = point[i].loss;
            continue;
        }
        if (i == 0) return at(&point[0], axis);
        double share = (least - target) / (least - point[i].loss);
        return at(&point[i - 1], axis) + share * (at(&point[i], axis) - at(&point[i - 1], axis));
    }
    return INFINITY;
}

static void find_times(pli_compared_run *run, double target) {
    if (run->points > 0) {
        run->to_seconds = pli_compare_crossing(run->point, run->points, target, offsetof(pli_curve_point, seconds));
        run->to_clocks = pli_compare_crossing(run->point, run->points, target, offsetof(pli_curve_point, clock));
        run->to_bytes = pli_compare_crossing(run->point, run->points, target, offsetof(pli_curve_point, bytes));
    } else { /* the stream was too short for a report before its end */
        bool reached = run->loss <= target;
        run->to_seconds = reached ? run->seconds : INFINITY;
        run->to_clocks = reached ? run->clocks : INFINITY;
        run->to_bytes = reached ? run->bytes : INFINITY;
    }
}

static double end_of(const pli_compared_run *run) {
    return run->progressive && run->points > 0 ? run->point[run->points - 1].loss : run->loss;
}

static void find_target(pli_comparison *c) {
    c->lowest = NAN;
    for (int64_t i = 0; i < c->runs; i++)
        if (c->run[i].outcome == PLI_RAN && !(end_of(&c->run[i]) >= c->lowest)) c->lowest = end_of(&c->run[i]);
    c->target = isfinite(c->target_given) && isfinite(c->lowest) ? c->target_given : c->lowest + NEAR * fabs(c->lowest);
}

/* --- a pair ------------------------------------------------------------------------------------------------------ */

/* Collects a value of each complete run of the pair: values [n] in increasing order; returns n. */
static int32_t collect(const pli_comparison *c, int32_t pair, size_t offset, double *values) {
    int32_t n = 0;
    for (int64_t i = 0; i < c->runs && n < REPEATS_MAX; i++) {
        if (c->run[i].pair != pair || c->run[i].outcome != PLI_RAN) continue;
        double  value = *(const double *)((const char *)&c->run[i] + offset);
        int32_t k = n++;
        for (; k > 0 && values[k - 1] > value; k--) values[k] = values[k - 1];
        values[k] = value;
    }
    return n;
}

static double median(const double *values, int32_t n) {
    if (n == 0) return NAN;
    double low = values[(n - 1) / 2], high = values[n / 2];
    return isfinite(low) && isfinite(high) ? (low + high) / 2 : high;
}

static double median_of(const pli_comparison *c, int32_t pair, size_t offset) {
    double  values[REPEATS_MAX];
    int32_t n = collect(c, pair, offset, values);
    return median(values, n);
}

/* The run with the (lower) median time; if that run missed the target, the one with the median loss among those that
 * did. */
static int32_t find_typical(const pli_comparison *c, int32_t pair) {
    double  values[REPEATS_MAX];
    int32_t n = collect(c, pair, offsetof(pli_compared_run, to_seconds), values);
    for (int64_t i = 0; i < c->runs && n > 0; i++)
        if (c->run[i].pair == pair && c->run[i].outcome == PLI_RAN && c->run[i].to_seconds == values[(n - 1) / 2])
            return (int32_t)i;
    return -1;
}

static void sum_ranks(pli_compared_pair *p, const pli_compared_run *run) {
    p->compute = p->wait = p->network = 0;
    for (int64_t i = 0; i < run->ranks; i++) {
        p->compute += run->rank[i].compute;
        p->wait += run->rank[i].wait;
        p->network += run->rank[i].network;
    }
}

/* How many runs of a pair reached the target and did not stay there: a model that is taken at the end is worse. */
static int32_t count_left(const pli_comparison *c, int32_t pair) {
    int32_t n = 0;
    for (int64_t i = 0; i < c->runs; i++)
        n += c->run[i].pair == pair && c->run[i].outcome == PLI_RAN && isfinite(c->run[i].to_seconds) &&
             end_of(&c->run[i]) > c->target;
    return n;
}

static void fill_pair(pli_comparison *c, int32_t pair) {
    pli_compared_pair *p = &c->pair[pair];
    double             values[REPEATS_MAX];
    int32_t            n = collect(c, pair, offsetof(pli_compared_run, to_seconds), values);
    p->runs = n;
    if (n > 0) p->outcome = PLI_RAN;
    p->reason = NULL;
    for (int64_t i = 0; i < c->runs && n == 0; i++) {
        if (c->run[i].pair != pair || c->run[i].outcome == PLI_RAN) continue;
        p->outcome = c->run[i].outcome;
        p->reason = c->run[i].reason;
    }
    p->seconds = median(values, n);
    p->seconds_min = n > 0 ? values[0] : NAN;
    p->seconds_max = n > 0 ? values[n - 1] : NAN;
    p->bytes = median_of(c, pair, offsetof(pli_compared_run, to_bytes));
    p->clocks = median_of(c, pair, offsetof(pli_compared_run, to_clocks));
    p->loss = median_of(c, pair, offsetof(pli_compared_run, loss));
    p->figure = median_of(c, pair, offsetof(pli_compared_run, figure));
    p->typical = find_typical(c, pair);
    p->left = count_left(c, pair);
    p->compute = p->wait = p->network = NAN;
    if (p->typical >= 0 && c->run[p->typical].ranks > 0) sum_ranks(p, &c->run[p->typical]);
}

/* --- all of them
 * --------------------------------------------------------------------------------------------------- */

static int32_t least(const pli_comparison *c, size_t offset, const bool *without) {
    int32_t found = -1;
    double  value = INFINITY;
    for (int32_t i = 0; i < c->pairs; i++) {
        double x = *(const double *)((const char *)&c->pair[i] + offset);
        if (c->pair[i].runs == 0 || (without != NULL && without[i]) || !(x < value)) continue;
        found = i;
        value = x;
    }
    return found;
}

static void find_as_good(pli_comparison *c) {
    double  best[REPEATS_MAX], other[REPEATS_MAX];
    int32_t n = collect(c, c->best, offsetof(pli_compared_run, to_seconds), best);
    for (int32_t i = 0; i < c->pairs; i++) {
        int32_t m = collect(c, i, offsetof(pli_compared_run, to_seconds), other);
        c->as_good[i] =
            i == c->best || (m > 0 && isfinite(c->pair[i].seconds) && pli_rank_chance(best, n, other, m) > CHANCE);
    }
}

plait_status pli_compare_judge(pli_comparison *c, plait_error *err) {
    pli_free(c->as_good);
    c->as_good = pli_calloc((size_t)c->pairs + 1, sizeof *c->as_good);
    if (c->as_good == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to judge %d settings", c->pairs);
    c->figure_name = NULL;
    for (int64_t i = c->runs - 1; i >= 0; i--)
        if (c->run[i].figure_name[0] != '\0') c->figure_name = c->run[i].figure_name;
    find_target(c);
    for (int64_t i = 0; i < c->runs; i++)
        if (c->run[i].outcome == PLI_RAN) find_times(&c->run[i], c->target);
    for (int32_t i = 0; i < c->pairs; i++) fill_pair(c, i);
    c->best = least(c, offsetof(pli_compared_pair, seconds), NULL);
    c->next = -1;
    if (c->best >= 0) {
        find_as_good(c);
        c->next = least(c, offsetof(pli_compared_pair, seconds), c->as_good);
    }
    c->lightest = least(c, offsetof(pli_compared_pair, bytes), NULL);
    pli_text_free(&c->sentence);
    pli_compare_say(c, &c->sentence);
    return c->sentence.failed ? pli_fail(err, PLAIT_ENOMEM, "no memory for a judgement") : PLAIT_OK;
}
