/* A tree, step by step. See trees.h. All workers have the same sums, so they come to the same nodes; each moves its own
 * rows between the leaves. */
#include <math.h>
#include <string.h>

#include "learn/solve/settled.h"
#include "learn/trees/trees.h"

enum { ROWS = 4096 }; /* rows that a thread takes at once */

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* For each row. */
static bool make_order(pli_grower *g) {
    const size_t rows = (size_t)g->rows->n;
    g->order = pli_array(rows, sizeof *g->order);
    for (int i = 0; i < 2; i++) g->moved[i] = pli_array(rows, sizeof *g->moved[i]);
    return g->order != NULL && g->moved[0] != NULL && g->moved[1] != NULL;
}

static void free_order(pli_grower *g) {
    pli_free(g->order);
    pli_free(g->moved[0]);
    pli_free(g->moved[1]);
}

plait_status pli_grower_make(pli_grower *g) {
    const size_t leaves = (size_t)g->rules.leaves;
    PLI_TRY(pli_histograms_make(&g->histograms, g->bins, g->rows, g->run->pool, g->run->err));
    const bool ordered = make_order(g);
    if (g->rules.colsample < 1 || g->rules.tries > 0)
        g->use = pli_array(2 * (size_t)g->slots, (size_t)g->bins->used * sizeof *g->use);
    if (g->rules.bagged) g->stack = pli_array(leaves, sizeof *g->stack);
    g->leaf = pli_array(leaves, sizeof *g->leaf);
    g->node = pli_array(2 * leaves, sizeof *g->node);
    g->spare = pli_calloc(leaves + 1, sizeof(pli_sum_cell *));
    if (ordered &&
        ((g->rules.colsample >= 1 && g->rules.tries == 0) || g->use != NULL) &&
        (!g->rules.bagged || g->stack != NULL) && g->leaf != NULL && g->node != NULL && g->spare != NULL)
        return g->cut->make(g);
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees of %lld leaves", (long long)leaves);
}

void pli_grower_free(pli_grower *g) {
    if (g->shared != NULL) g->cut->free(g);
    pli_histograms_free(&g->histograms);
    pli_free(g->rules.sign);
    free_order(g);
    pli_free(g->use);
    pli_free(g->stack);
    for (int64_t i = 0; g->leaf != NULL && i < g->leaves; i++) pli_free(g->leaf[i].sums);
    pli_free(g->leaf);
    pli_free(g->node);
    pli_free(g->code);
    for (int64_t i = 0; g->spare != NULL && i < g->spares; i++) pli_free(g->spare[i]);
    pli_free(g->spare);
    *g = (pli_grower){ 0 };
}

plait_status pli_grower_resize(pli_grower *g) {
    if (g->order == NULL) return PLAIT_OK; /* it is made later */
    free_order(g);
    return make_order(g) ? PLAIT_OK : pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees of %lld rows",
                                               (long long)g->rows->n);
}

static plait_status take_sums(pli_grower *g, pli_sum_cell **out) {
    const int64_t cells = g->cut->room != NULL ? g->cut->room(g) : g->histograms.size;
    *out = g->spares > 0 ? g->spare[--g->spares] : pli_aligned((size_t)cells * sizeof **out);
    return *out != NULL ? PLAIT_OK : pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for a histogram of %lld bins",
                                              (long long)g->histograms.size);
}

static void give_sums(pli_grower *g, pli_growing_leaf *leaf) {
    if (leaf->sums != NULL) g->spare[g->spares++] = leaf->sums;
    leaf->sums = NULL;
}

plait_status pli_grower_refit(pli_grower *g) {
    pli_histograms_free(&g->histograms);
    PLI_TRY(pli_histograms_make(&g->histograms, g->bins, g->rows, g->run->pool, g->run->err));
    while (g->spares > 0) pli_free(g->spare[--g->spares]);
    for (int64_t l = 0; l < g->leaves; l++) {
        if (g->leaf[l].sums == NULL) continue;
        pli_free(g->leaf[l].sums);
        g->leaf[l].sums = NULL;
        PLI_TRY(take_sums(g, &g->leaf[l].sums));
    }
    return PLAIT_OK;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static void charge(const pli_grower *g, int64_t rows) {
    const pli_bin_rows *r = g->rows;
    if (!pli_comm_charges(g->run->comm)) return;
    const int64_t a_row = r->dense != NULL ? g->bins->used : r->n > 0 ? r->start[r->n] / r->n + 1 : 1;
    pli_comm_work(g->run->comm, PLI_WORK_ENTRIES, (uint64_t)(rows * a_row));
}

void pli_grow_add_up(const pli_grower *g, int64_t n, pli_growing_leaf *const *leaf, pli_sum_cell *to) {
    uint64_t at = pli_comm_span_begin(g->run->comm);
    int64_t  rows = 0;
    pli_settled_begin_work(g->run);
    for (int64_t i = 0; i < n; i++) {
        pli_histograms_add(&g->histograms, leaf[i]->n, g->order + leaf[i]->begin, g->cell,
                           to != NULL ? to + i * g->histograms.size : leaf[i]->sums);
        charge(g, leaf[i]->n);
        rows += leaf[i]->n;
    }
    pli_settled_end_work(g->run, rows);
    pli_run_step(g->run, "histograms", &at);
}

plait_status pli_grow_clock(pli_grower *g, plait_status (*stand_in)(pli_grower *g)) {
    plait_status status;
    while ((status = plait_job_clock(g->run->job)) == PLAIT_STAND_IN) PLI_TRY(stand_in(g));
    PLI_TRY(status);
    g->run->clocks_done++;
    return PLAIT_OK;
}

void pli_grow_recount(pli_grower *g) {
    for (int64_t l = 0; l < g->leaves; l++) {
        pli_growing_leaf *leaf = &g->leaf[l];
        if (leaf->sums == NULL) continue;
        pli_grow_add_up(g, 1, &leaf, NULL);
        pli_histograms_complete(&g->histograms, leaf->sums);
    }
}

/* --- splits ------------------------------------------------------------------------------------------------------- */

bool pli_grow_may_split(const pli_grower *g, const pli_growing_leaf *leaf) {
    return (g->rules.depth == 0 || leaf->depth < g->rules.depth) &&
           pli_sum_rows(g->scale, leaf->total.hn) >= 2 * g->rules.min_rows;
}

/* Draws `wanted` of the used features, without repeats (Knuth, "Seminumerical Algorithms", algorithm S). */
static void draw_features(const pli_grower *g, uint64_t a, uint64_t b, int64_t wanted, bool *use) {
    pli_random random = pli_random_at(g->run->opts->seed, PLI_RANDOM_TREES, a, b);
    for (int32_t j = 0; j < g->bins->used; j++) {
        use[j] = pli_random_f64(&random) * (double)(g->bins->used - j) < (double)wanted;
        wanted -= use[j];
    }
}

const bool *pli_grow_features(const pli_grower *g, const pli_growing_leaf *leaf, int64_t item) {
    if (g->rules.tries == 0) return g->use;
    bool *use = g->use + item * g->bins->used;
    draw_features(g, UINT64_MAX - 2 - (uint64_t)g->tree, (uint64_t)leaf->node, g->rules.tries, use);
    return use;
}

void pli_grow_find(const pli_grower *g, pli_growing_leaf *leaf, int64_t item) {
    leaf->split = (pli_split){ .gain = 0 };
    if (leaf->sums == NULL || !pli_grow_may_split(g, leaf)) return;
    leaf->split = pli_split_find(g->bins, &g->rules, g->scale, leaf->sums, leaf->bounds,
                                 pli_grow_features(g, leaf, item), g->run->pool);
}

static void settle_split(pli_grower *g, pli_growing_leaf *leaf) {
    if (!(leaf->split.gain > 0)) give_sums(g, leaf);
}

static double value_of(const pli_grower *g, const pli_growing_leaf *leaf) {
    pli_tree_rules rules = g->rules;
    rules.l2 += leaf->l2;
    return pli_leaf_value(&rules, pli_sum_g(g->scale, leaf->total.g), pli_sum_h(g->scale, leaf->total.hn),
                          leaf->bounds);
}

static int32_t add_node(pli_grower *g, const pli_growing_leaf *leaf) {
    g->node[g->nodes] = (pli_tree_node){ .feature = -1, .rows = pli_sum_rows(g->scale, leaf->total.hn),
                                         .cover = pli_sum_h(g->scale, leaf->total.hn),
                                         .value = g->rules.rate * value_of(g, leaf) };
    return (int32_t)g->nodes++;
}

/* Behind a split by a feature that is not free, all leaves of one side stay on its side of the middle. */
static void set_bounds(const pli_grower *g, int8_t sign, pli_growing_leaf *left, pli_growing_leaf *right) {
    const double middle = (value_of(g, left) + value_of(g, right)) / 2;
    if (sign > 0) left->bounds.high = right->bounds.low = middle;
    if (sign < 0) left->bounds.low = right->bounds.high = middle;
}

/* The codes that go left, for a split by texts. */
static plait_status make_set(pli_grower *g, const pli_split *s, pli_tree_node *node) {
    void *code = g->code;
    if (!s->by_set) return PLAIT_OK;
    const bool ok = pli_grow(&code, &g->code_capacity, g->codes + PLI_BINS_MOST, sizeof *g->code);
    g->code = code;
    if (!ok) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for a split by texts");
    node->code = g->codes;
    node->cut = 0;
    for (int32_t b = 0; b < g->bins->count[s->used]; b++)
        if (pli_set_has(s->set, b)) g->code[g->codes++] = (int32_t)g->bins->cut[g->bins->cut_start[s->used] + b];
    node->codes = (int32_t)(g->codes - node->code);
    return PLAIT_OK;
}

static plait_status make_split(pli_grower *g, const pli_growing_leaf *leaf, int32_t left, int32_t right) {
    const pli_split *s = &leaf->split;
    const int64_t    cuts = g->bins->count[s->used] - 1;
    pli_tree_node   *node = &g->node[leaf->node];
    node->feature = g->bins->feature[s->used];
    node->left = left;
    node->right = right;
    node->bin = s->bin;
    node->missing_left = s->missing_left;
    node->cut = s->bin < cuts ? g->bins->cut[g->bins->cut_start[s->used] + s->bin] : (double)INFINITY;
    node->gain = s->gain;
    node->value = 0;
    return make_set(g, s, node);
}

/* Splits a leaf: its left child takes its place, the right one comes last. The child with fewer rows of all workers
 * gets new sums in *small_out, which the step fills; the other one gets those of the leaf. *small_out NULL: neither
 * child is split any more. */
static plait_status split_leaf(pli_grower *g, int64_t l, bool last, pli_growing_leaf **small_out,
                               pli_growing_leaf **large_out) {
    pli_growing_leaf *leaf = &g->leaf[l], *right = &g->leaf[g->leaves], old = *leaf;
    const int64_t     lefts = pli_part_rows(g, leaf);
    if (lefts < 0) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to move rows");
    const pli_sum_cell rest = { old.total.g - old.split.left.g, old.total.hn - old.split.left.hn };
    *leaf = (pli_growing_leaf){ .begin = old.begin, .n = lefts, .depth = old.depth + 1, .total = old.split.left,
                                .bounds = old.bounds, .l2 = old.split.l2 };
    *right = (pli_growing_leaf){ .begin = old.begin + lefts, .n = old.n - lefts, .depth = old.depth + 1,
                                 .total = rest, .bounds = old.bounds, .l2 = old.split.l2 };
    g->leaves++;
    leaf->node = add_node(g, leaf);
    right->node = add_node(g, right);
    if (g->rules.sign != NULL) set_bounds(g, g->rules.sign[old.split.used], leaf, right);
    PLI_TRY(make_split(g, &old, leaf->node, right->node));
    const bool left_is_small =
        pli_sum_rows(g->scale, leaf->total.hn) <= pli_sum_rows(g->scale, right->total.hn);
    *small_out = left_is_small ? leaf : right;
    *large_out = left_is_small ? right : leaf;
    (*large_out)->sums = old.sums;
    if (!last && (pli_grow_may_split(g, leaf) || pli_grow_may_split(g, right)))
        return take_sums(g, &(*small_out)->sums);
    give_sums(g, *large_out);
    *small_out = NULL;
    return PLAIT_OK;
}

void pli_grow_take_off(const pli_grower *g, pli_growing_leaf *large, const pli_growing_leaf *small) {
    for (int64_t b = 0; b < g->histograms.size; b++) {
        large->sums[b].g -= small->sums[b].g;
        large->sums[b].hn -= small->sums[b].hn;
    }
}

typedef struct searching {
    const pli_grower  *g;
    pli_growing_leaf **small, **large;
} searching;

static void search_item(void *user, int64_t i, int32_t thread) {
    const searching  *s = user;
    pli_growing_leaf *leaf = pli_grow_item(s->small, s->large, i);
    (void)thread;
    if (i % 2 == 1 && s->large != NULL) pli_grow_take_off(s->g, leaf, s->small[i / 2]);
    pli_grow_find(s->g, leaf, i);
}

/* Threads share the leaves if there are enough of them, and else the features of each: a loop inside a loop is
 * serial. */
void pli_grow_search(const pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    searching     s = { .g = g, .small = small, .large = large };
    const int64_t items = pli_grow_items(n, large);
    if (pli_pool_threads(g->run->pool) <= items) pli_pool_for(g->run->pool, items, search_item, &s);
    else
        for (int64_t i = 0; i < items; i++) search_item(&s, i, 0);
}

/* Splits n leaves, and finds the splits of their children. */
static plait_status split_leaves(pli_grower *g, int64_t n, const int64_t *which, bool last) {
    pli_growing_leaf *small[PLI_GROW_SLOTS], *large[PLI_GROW_SLOTS];
    int64_t           pairs = 0;
    if (g->cut->sides != NULL && n > 0) PLI_TRY(g->cut->sides(g, n, which));
    for (int64_t i = 0; i < n; i++) {
        PLI_TRY(split_leaf(g, which[i], last, &small[pairs], &large[pairs]));
        pairs += small[pairs] != NULL;
    }
    if (pairs == 0) return PLAIT_OK;
    PLI_TRY(g->cut->search(g, pairs, small, large));
    for (int64_t i = 0; i < pairs; i++) {
        settle_split(g, small[i]);
        settle_split(g, large[i]);
    }
    return PLAIT_OK;
}

/* The leaf with the largest gain; of equal ones the first. -1: none has any. */
static int64_t best_leaf(const pli_grower *g) {
    int64_t best = -1;
    for (int64_t l = 0; l < g->leaves; l++)
        if (g->leaf[l].split.gain > 0 && (best < 0 || g->leaf[l].split.gain > g->leaf[best].split.gain)) best = l;
    return best;
}

static plait_status grow_by_leaf(pli_grower *g) {
    int64_t l;
    while (g->leaves < g->rules.leaves && (l = best_leaf(g)) >= 0)
        PLI_TRY(split_leaves(g, 1, &l, g->leaves + 1 == g->rules.leaves));
    return PLAIT_OK;
}

/* All leaves of a level, some at a time. */
static plait_status grow_by_level(pli_grower *g) {
    for (int32_t depth = 0; depth < g->rules.depth; depth++) {
        const int64_t there = g->leaves;
        int64_t       which[PLI_GROW_SLOTS], n = 0;
        for (int64_t l = 0; l < there; l++) {
            const pli_growing_leaf *leaf = &g->leaf[l];
            if (leaf->depth == depth && leaf->split.gain > 0 && g->leaves + n < g->rules.leaves) which[n++] = l;
            if (n < g->slots && (n == 0 || l + 1 < there)) continue;
            PLI_TRY(split_leaves(g, n, which, false));
            n = 0;
        }
    }
    return PLAIT_OK;
}

/* The newest leaves first, some at a time: at most slots x depth histograms wait. */
static plait_status grow_newest_first(pli_grower *g) {
    g->waiting = 0;
    if (g->leaf[0].split.gain > 0) g->stack[g->waiting++] = 0;
    while (g->waiting > 0 && g->leaves < g->rules.leaves) {
        int64_t       which[PLI_GROW_SLOTS], n = 0;
        const int64_t before = g->leaves;
        while (g->waiting > 0 && n < g->slots && before + n < g->rules.leaves) which[n++] = g->stack[--g->waiting];
        PLI_TRY(split_leaves(g, n, which, false));
        for (int64_t i = 0; i < n; i++) { /* the left child took its parent's place, the right ones came last */
            if (g->leaf[which[i]].split.gain > 0) g->stack[g->waiting++] = which[i];
            if (g->leaf[before + i].split.gain > 0) g->stack[g->waiting++] = before + i;
        }
    }
    return PLAIT_OK;
}

/* --- a tree ------------------------------------------------------------------------------------------------------- */

bool pli_grow_sees(const pli_grower *g, int64_t round, int64_t r) {
    if (g->rows->held != NULL && g->rows->held[r]) return false;
    if (g->rules.bagged)
        return pli_bag_draw(g->run->opts->seed, round, g->rows->number[r], g->rules.subsample) > 0;
    if (!(g->rules.subsample < 1)) return true;
    pli_random random = pli_random_at(g->run->opts->seed, PLI_RANDOM_TREES, (uint64_t)round,
                                      (uint64_t)g->rows->number[r]);
    return pli_random_f64(&random) < g->rules.subsample;
}

/* Of the rows of all workers, a worker has not the bins to walk down a tree later. So rows that the tree does not see
 * travel along, and count nothing. */
static int64_t take_all_rows(pli_grower *g, int64_t round) {
    for (int64_t r = 0; r < g->rows->n; r++) {
        if (!pli_grow_sees(g, round, r)) g->cell[r] = (pli_sum_cell){ 0 };
        g->order[r] = (uint32_t)r;
    }
    return g->rows->n;
}

/* Does a tree see all rows that the worker has? */
static bool takes_all(const pli_grower *g) {
    bool all = g->rows->held == NULL && !g->rules.bagged && !(g->rules.subsample < 1);
    for (int32_t p = 0; all && p < g->rows->parts; p++) all = g->rows->part[p].steps;
    return all;
}

static void take_chunk(void *user, int64_t c, int32_t thread) {
    const pli_grower *g = user;
    const int64_t     end = (c + 1) * ROWS < g->rows->n ? (c + 1) * ROWS : g->rows->n;
    (void)thread;
    for (int64_t r = c * ROWS; r < end; r++) g->order[r] = (uint32_t)r;
}

static int64_t take_rows(pli_grower *g, int64_t round) {
    int64_t n = 0;
    if (g->rows->of_all) return take_all_rows(g, round);
    if (takes_all(g)) {
        pli_pool_for(g->run->pool, (g->rows->n + ROWS - 1) / ROWS, take_chunk, g);
        return g->rows->n;
    }
    for (int32_t p = 0; p < g->rows->parts; p++) {
        const pli_rows_part *part = &g->rows->part[p];
        for (int64_t r = part->first; part->steps && r < part->first + part->n; r++)
            if (pli_grow_sees(g, round, r)) g->order[n++] = (uint32_t)r;
    }
    return n;
}

/* Draws the features of a tree. */
static void take_features(pli_grower *g, int64_t tree) {
    g->tree = tree;
    if (g->rules.colsample < 1)
        draw_features(g, UINT64_MAX - 1, (uint64_t)tree, (int64_t)ceil(g->rules.colsample * g->bins->used), g->use);
}

plait_status pli_grow_tree(pli_grower *g, int64_t tree, pli_sum_cell *cell, const pli_sum_scale *scale) {
    const int64_t     round = tree / pli_fit_of(g->run)->goal.columns;
    pli_growing_leaf *root = &g->leaf[0];
    g->cell = cell;
    g->scale = scale;
    g->nodes = g->codes = 0;
    g->leaves = 1;
    take_features(g, tree);
    *root = (pli_growing_leaf){ .n = take_rows(g, round), .bounds = PLI_UNBOUND };
    PLI_TRY(take_sums(g, &root->sums));
    PLI_TRY(g->cut->search(g, 1, &root, NULL));
    root->node = add_node(g, root);
    settle_split(g, root);
    PLI_TRY(g->rules.bagged ? grow_newest_first(g) : g->rules.level ? grow_by_level(g) : grow_by_leaf(g));
    for (int64_t l = 0; l < g->leaves; l++) give_sums(g, &g->leaf[l]);
    pli_scores_take(g);
    return PLAIT_OK;
}
