/* The best split of a node. With the sums G and H of g and h, and penalties a (L1) and l (L2), a leaf's best value is
 * -T(G) / (H + l), and it takes T(G)^2 / (2 (H + l)) off the objective; T moves G towards 0 by a. A split's gain is
 * what both children take off more than the node, times two. Rows without a value go to the side where they gain more
 * (Chen and Guestrin, 2016, algorithm 3); if there are none, they will go with the larger child.
 *
 * A column of texts is split by a set of them. With up to four bins each is tried against all others. With more, the
 * texts are sorted by G / H of their rows: for one leaf value a side, the best set is then a first part of that order
 * (Fisher, "On Grouping for Maximum Homogeneity", Journal of the American Statistical Association 53, 1958). Both ends
 * are tried. Few rows make G / H large by chance. So H is enlarged by --category-smooth for the order, texts with fewer
 * rows than that stay out of it, the gain has more L2, and a side has at least so many rows and at most so many texts
 * (Ke et al., 2017, and LightGBM's defaults). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/trees/sums.h"

enum { CHUNKS = 64, BINS_A_CHUNK = 1024 };

static double shrunk(double g, double l1) { return g > l1 ? g - l1 : g < -l1 ? g + l1 : 0; }

static double worth(const pli_tree_rules *r, double g, double h) {
    const double t = shrunk(g, r->l1), below = h + r->l2;
    return below > 0 ? t * t / below : 0;
}

double pli_leaf_value(const pli_tree_rules *r, double g, double h, pli_bounds bounds) {
    const double below = h + r->l2;
    return fmin(fmax(below > 0 ? -shrunk(g, r->l1) / below : 0, bounds.low), bounds.high);
}

/* What a leaf of this value takes off the objective, times two: worth(), if it is the best value. */
static double worth_at(const pli_tree_rules *r, double g, double h, double value) {
    return -(2 * g * value + (h + r->l2) * value * value + 2 * r->l1 * fabs(value));
}

typedef struct work {
    const pli_bins       *bins;
    const pli_tree_rules *rules;
    pli_tree_rules        text_rules; /* of sets of texts: with more L2 */
    const pli_sum_scale  *scale;
    const pli_sum_cell   *sums;
    const bool           *use;
    pli_sum_cell          total;
    pli_bounds            bounds;
    double                parent; /* the node's own worth */
    double               *gain;   /* of each feature by itself; NULL: the best of all is sought */
    int32_t               chunks;
    pli_split             best[CHUNKS];
} work;

/* The gain of a split by feature j where leaves have bounds; -1: the feature is not free, and the children's values are
 * in the wrong order. */
static double bounded_gain(const work *w, const pli_tree_rules *r, int32_t j, double g_left, double h_left,
                           double g_right, double h_right) {
    const double left = pli_leaf_value(r, g_left, h_left, w->bounds),
                 right = pli_leaf_value(r, g_right, h_right, w->bounds);
    if ((double)r->sign[j] * (right - left) < 0) return -1;
    return worth_at(r, g_left, h_left, left) + worth_at(r, g_right, h_right, right) - w->parent;
}

/* Is this the best split so far? Then it is taken. */
static bool look_at(const work *w, const pli_tree_rules *r, int32_t j, int32_t bin, bool missing_left,
                    pli_sum_cell left, pli_split *best) {
    const pli_sum_scale  *s = w->scale;
    const pli_sum_cell    right = { w->total.g - left.g, w->total.hn - left.hn };
    if (pli_sum_rows(s, left.hn) < r->min_rows || pli_sum_rows(s, right.hn) < r->min_rows) return false;
    const double h_left = pli_sum_h(s, left.hn), h_right = pli_sum_h(s, right.hn);
    if (h_left < r->min_hessian || h_right < r->min_hessian) return false;
    const double g_left = pli_sum_g(s, left.g), g_right = pli_sum_g(s, right.g);
    const double gain = r->sign == NULL ? worth(r, g_left, h_left) + worth(r, g_right, h_right) - w->parent
                                        : bounded_gain(w, r, j, g_left, h_left, g_right, h_right);
    if (!(gain > best->gain) || !(gain > r->min_gain)) return false;
    *best = (pli_split){ .gain = gain, .used = j, .bin = bin, .missing_left = missing_left, .left = left };
    return true;
}

static void look_at_feature(const work *w, int32_t j, pli_split *best) {
    const pli_sum_cell *at = w->sums + pli_bins_place(w->bins, j);
    const int32_t       count = w->bins->count[j];
    const pli_sum_cell  missing = w->bins->missing[j] ? at[count] : (pli_sum_cell){ 0 };
    const bool          some = pli_sum_rows(w->scale, missing.hn) > 0;
    const int64_t       half = pli_sum_rows(w->scale, w->total.hn) / 2;
    pli_sum_cell        left = { 0 };
    for (int32_t b = 0; b + !some < count; b++) {
        if (at[b].hn == 0 && b > 0) continue; /* no rows: the same split as before */
        left.g += at[b].g;
        left.hn += at[b].hn;
        look_at(w, w->rules, j, b, !some && pli_sum_rows(w->scale, left.hn) > half, left, best);
        if (!some) continue;
        const pli_sum_cell with = { left.g + missing.g, left.hn + missing.hn };
        look_at(w, w->rules, j, b, true, with, best);
    }
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

enum { ONE_EACH = 4 }; /* bins: of so few, each is tried against the others */

typedef struct ranked {
    double  rank; /* G / H of the rows */
    int32_t bin;
} ranked;

static int by_rank(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    return x->rank != y->rank ? (x->rank > y->rank) - (x->rank < y->rank) : (x->bin > y->bin) - (x->bin < y->bin);
}

static void look_at_each(const work *w, int32_t j, pli_split *best) {
    const pli_sum_cell *at = w->sums + pli_bins_place(w->bins, j);
    for (int32_t b = 0; b < w->bins->count[j]; b++)
        if (look_at(w, w->rules, j, b, false, at[b], best)) {
            best->by_set = true;
            best->set[b / 64] |= (uint64_t)1 << (b % 64);
        }
}

/* Sets that begin at one end of the order. */
static void look_from(const work *w, int32_t j, int32_t n, const ranked *order, bool last, pli_split *best) {
    const pli_tree_rules *r = &w->text_rules;
    const pli_sum_scale  *s = w->scale;
    const int64_t         rows = pli_sum_rows(s, w->total.hn), most = r->text_most < (n + 1) / 2 ? r->text_most
                                                                                                  : (n + 1) / 2;
    uint64_t     set[sizeof best->set / sizeof *best->set] = { 0 };
    pli_sum_cell left = { 0 };
    int64_t      since = 0; /* rows since the set that was tried last */
    for (int64_t i = 0; i < most; i++) {
        const int32_t       b = order[last ? n - 1 - i : i].bin;
        const pli_sum_cell *at = w->sums + pli_bins_place(w->bins, j) + b;
        set[b / 64] |= (uint64_t)1 << (b % 64);
        left.g += at->g;
        left.hn += at->hn;
        since += pli_sum_rows(s, at->hn);
        const int64_t lefts = pli_sum_rows(s, left.hn);
        if (rows - lefts < r->text_rows) return;
        if (since < r->text_rows || lefts < r->min_rows) continue;
        since = 0;
        if (!look_at(w, r, j, b, false, left, best)) continue;
        best->by_set = true;
        best->l2 = r->text_l2;
        memcpy(best->set, set, sizeof set);
    }
}

static void look_at_texts(const work *w, int32_t j, pli_split *best) {
    const pli_sum_cell *at = w->sums + pli_bins_place(w->bins, j);
    ranked              order[PLI_BINS_MOST];
    int32_t             n = 0;
    if (w->bins->count[j] <= ONE_EACH) {
        look_at_each(w, j, best);
        return;
    }
    for (int32_t b = 0; b < w->bins->count[j]; b++) {
        const int64_t rows = pli_sum_rows(w->scale, at[b].hn);
        if (rows == 0 || (double)rows < w->rules->text_smooth) continue;
        const double below = pli_sum_h(w->scale, at[b].hn) + w->rules->text_smooth;
        order[n++] = (ranked){ below > 0 ? pli_sum_g(w->scale, at[b].g) / below : 0, b };
    }
    qsort(order, (size_t)n, sizeof *order, by_rank);
    look_from(w, j, n, order, false, best);
    look_from(w, j, n, order, true, best);
}

/* --- all features ------------------------------------------------------------------------------------------------- */

static void look_at_any(const work *w, int32_t j, pli_split *best) {
    if ((w->use != NULL && !w->use[j]) || !pli_bins_has(w->bins, j)) return;
    (w->bins->of_code[j] != NULL ? look_at_texts : look_at_feature)(w, j, best);
}

static void look_at_chunk(void *user, int64_t c, int32_t thread) {
    work         *w = user;
    const int32_t from = w->bins->from, n = w->bins->to - from;
    (void)thread;
    pli_split best = { .gain = 0 };
    for (int64_t i = n * c / w->chunks; i < n * (c + 1) / w->chunks; i++) {
        const int32_t j = from + (int32_t)i;
        if (w->gain != NULL) best = (pli_split){ .gain = 0 }; /* each for itself */
        look_at_any(w, j, &best);
        if (w->gain != NULL) w->gain[j] = best.gain;
    }
    w->best[c] = best;
}

static void look_at_all(work *w, const pli_tree_rules *rules, pli_pool *pool) {
    const int64_t chunks = (pli_bins_cells(w->bins) - 1) / BINS_A_CHUNK + 1, features = w->bins->to - w->bins->from;
    w->text_rules = *rules;
    w->text_rules.l2 += rules->text_l2;
    w->total = w->sums[pli_bins_cells(w->bins) - 1];
    const double g = pli_sum_g(w->scale, w->total.g), h = pli_sum_h(w->scale, w->total.hn);
    w->parent = rules->sign == NULL ? worth(rules, g, h)
                                    : worth_at(rules, g, h, pli_leaf_value(rules, g, h, w->bounds));
    w->chunks = (int32_t)(chunks > CHUNKS ? CHUNKS : chunks > features ? features : chunks);
    pli_pool_for(pool, w->chunks, look_at_chunk, w);
}

void pli_split_gains(const pli_bins *bins, const pli_tree_rules *rules, const pli_sum_scale *scale,
                     const pli_sum_cell *sums, pli_bounds bounds, const bool *use, pli_pool *pool, double *gain) {
    work w = { .bins = bins, .rules = rules, .scale = scale, .sums = sums, .use = use, .bounds = bounds,
               .gain = gain };
    look_at_all(&w, rules, pool);
}

pli_split pli_split_find(const pli_bins *bins, const pli_tree_rules *rules, const pli_sum_scale *scale,
                         const pli_sum_cell *sums, pli_bounds bounds, const bool *use, pli_pool *pool) {
    work w = { .bins = bins, .rules = rules, .scale = scale, .sums = sums, .use = use, .bounds = bounds };
    look_at_all(&w, rules, pool);
    for (int32_t c = 1; c < w.chunks; c++)
        if (w.best[c].gain > w.best[0].gain) w.best[0] = w.best[c];
    return w.best[0];
}
