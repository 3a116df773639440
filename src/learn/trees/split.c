/* The best split of a node. With the sums G and H of g and h, and penalties a (L1) and l (L2), a leaf's best value is
 * -T(G) / (H + l), and it takes T(G)^2 / (2 (H + l)) off the objective; T moves G towards 0 by a. A split's gain is
 * what both children take off more than the node, times two. Rows without a value go to the side where they gain more
 * (Chen and Guestrin, 2016, algorithm 3); if there are none, they will go with the larger child. */
#include <math.h>

#include "learn/trees/trees.h"

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
    const pli_sum_scale  *scale;
    const pli_sum_cell   *sums;
    const bool           *use;
    pli_sum_cell          total;
    pli_bounds            bounds;
    double                parent; /* the node's own worth */
    int32_t               chunks;
    pli_split             best[CHUNKS];
} work;

/* The gain of a split by feature j where leaves have bounds; -1: the feature is not free, and the children's values are
 * in the wrong order. */
static double bounded_gain(const work *w, int32_t j, double g_left, double h_left, double g_right, double h_right) {
    const pli_tree_rules *r = w->rules;
    const double left = pli_leaf_value(r, g_left, h_left, w->bounds),
                 right = pli_leaf_value(r, g_right, h_right, w->bounds);
    if ((double)r->sign[j] * (right - left) < 0) return -1;
    return worth_at(r, g_left, h_left, left) + worth_at(r, g_right, h_right, right) - w->parent;
}

/* Is this the best split so far? Then it is taken. */
static void look_at(const work *w, int32_t j, int32_t bin, bool missing_left, pli_sum_cell left, pli_split *best) {
    const pli_tree_rules *r = w->rules;
    const pli_sum_scale  *s = w->scale;
    const pli_sum_cell    right = { w->total.g - left.g, w->total.hn - left.hn };
    if (pli_sum_rows(s, left.hn) < r->min_rows || pli_sum_rows(s, right.hn) < r->min_rows) return;
    const double h_left = pli_sum_h(s, left.hn), h_right = pli_sum_h(s, right.hn);
    if (h_left < r->min_hessian || h_right < r->min_hessian) return;
    const double g_left = pli_sum_g(s, left.g), g_right = pli_sum_g(s, right.g);
    const double gain = r->sign == NULL ? worth(r, g_left, h_left) + worth(r, g_right, h_right) - w->parent
                                        : bounded_gain(w, j, g_left, h_left, g_right, h_right);
    if (!(gain > best->gain) || !(gain > r->min_gain)) return;
    *best = (pli_split){ .gain = gain, .used = j, .bin = bin, .missing_left = missing_left, .left = left };
}

static void look_at_feature(const work *w, int32_t j, pli_split *best) {
    const pli_sum_cell *at = w->sums + w->bins->offset[j];
    const int32_t       count = w->bins->count[j];
    const pli_sum_cell  missing = w->bins->missing[j] ? at[count] : (pli_sum_cell){ 0 };
    const bool          some = pli_sum_rows(w->scale, missing.hn) > 0;
    const int64_t       half = pli_sum_rows(w->scale, w->total.hn) / 2;
    pli_sum_cell        left = { 0 };
    for (int32_t b = 0; b + !some < count; b++) {
        if (at[b].hn == 0 && b > 0) continue; /* no rows: the same split as before */
        left.g += at[b].g;
        left.hn += at[b].hn;
        look_at(w, j, b, !some && pli_sum_rows(w->scale, left.hn) > half, left, best);
        if (!some) continue;
        const pli_sum_cell with = { left.g + missing.g, left.hn + missing.hn };
        look_at(w, j, b, true, with, best);
    }
}

static void look_at_chunk(void *user, int64_t c, int32_t thread) {
    work         *w = user;
    const int32_t used = w->bins->used;
    (void)thread;
    w->best[c] = (pli_split){ .gain = 0 };
    for (int32_t j = (int32_t)((int64_t)used * c / w->chunks); j < (int64_t)used * (c + 1) / w->chunks; j++)
        if (w->use == NULL || w->use[j]) look_at_feature(w, j, &w->best[c]);
}

pli_split pli_split_find(const pli_bins *bins, const pli_tree_rules *rules, const pli_sum_scale *scale,
                         const pli_sum_cell *sums, pli_bounds bounds, const bool *use, pli_pool *pool) {
    const int64_t bins_of_all = bins->offset[bins->used], chunks = bins_of_all / BINS_A_CHUNK + 1;
    work          w = { .bins = bins, .rules = rules, .scale = scale, .sums = sums, .use = use,
                        .total = sums[bins_of_all], .bounds = bounds };
    const double g = pli_sum_g(scale, w.total.g), h = pli_sum_h(scale, w.total.hn);
    w.parent = rules->sign == NULL ? worth(rules, g, h)
                                   : worth_at(rules, g, h, pli_leaf_value(rules, g, h, bounds));
    w.chunks = (int32_t)(chunks > CHUNKS ? CHUNKS : chunks > bins->used ? bins->used : chunks);
    pli_pool_for(pool, w.chunks, look_at_chunk, &w);
    for (int32_t c = 1; c < w.chunks; c++)
        if (w.best[c].gain > w.best[0].gain) w.best[0] = w.best[c];
    return w.best[0];
}
