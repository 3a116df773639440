/* A step where each worker has some of the rows, and only a few features travel. Each worker adds up its own rows, and
 * searches each leaf with these sums alone. It votes for the features that gain most: as many votes as it has for the
 * first, one less for the second, and so on. Twice as many features as a worker has votes are elected, by all workers'
 * votes; the table `histogram` sums the bins of these, and all workers search them. If each worker's rows are like
 * those of all, the best feature is among the first of most workers (Meng et al., "A Communication-Efficient Parallel
 * Algorithm for Decision Tree", NIPS 2016). So the trees depend on the number of workers, and on nothing else that is
 * not in the data and the options.
 *
 * A leaf's sums stay those of the worker's own rows, and so does what is left of a parent by its smaller child. Both
 * children are voted on, since they need not elect the same features. The least rows and curvature of a leaf are
 * divided by the number of workers in the search that a vote follows from. */
#include <stdlib.h>
#include <string.h>

#include "learn/trees/trees.h"

typedef struct voting {
    plait_table   *table;  /* [items x room, 2] I64 */
    int64_t        items, room, elected; /* room: cells of the features that a leaf elects, at most */
    pli_sum_cell  *before; /* [items x room] what the table held before the step */
    pli_sum_cell  *own;    /* [items x room] */
    pli_sum_cell  *whole;  /* [cells] of all workers, of the elected */
    pli_tree_rules rules;  /* of a worker's own rows */
    double        *gain;   /* [used] */
    bool          *use;    /* [used] the elected */
    int32_t       *vote;   /* [items, votes] -1: none */
    int32_t       *all;    /* [workers, items, votes] */
    int32_t       *chosen; /* [items, elected] in the order of features; -1: none more */
} voting;

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

/* The cells of the n features with most bins; -1: no memory to look. */
static int64_t most_cells(const pli_bins *bins, int64_t n) {
    int64_t *size = pli_array((size_t)bins->used, sizeof *size), sum = 0;
    if (size == NULL) return -1;
    for (int32_t j = 0; j < bins->used; j++) size[j] = bins->offset[j + 1] - bins->offset[j];
    qsort(size, (size_t)bins->used, sizeof *size, by_size);
    for (int64_t i = 0; i < n; i++) sum += size[i];
    pli_free(size);
    return sum;
}

static plait_status tables(pli_grower *g) {
    voting *v = g->shared = pli_calloc(1, sizeof *v);
    if (v == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    v->items = 2 * g->slots;
    v->elected = 2 * g->votes < g->bins->used ? 2 * g->votes : g->bins->used;
    v->room = most_cells(g->bins, v->elected);
    if (v->room < 0) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to vote");
    return pli_run_table(g->run, "histogram", PLAIT_I64, v->items * v->room, 2, NULL, &v->table);
}

static plait_status make(pli_grower *g) {
    voting       *v = g->shared;
    const size_t  cells = (size_t)(v->items * v->room), used = (size_t)g->bins->used;
    const size_t  votes = (size_t)(v->items * g->votes), workers = (size_t)plait_comm_workers(g->run->comm);
    v->before = pli_aligned(cells * sizeof *v->before);
    v->own = pli_aligned(cells * sizeof *v->own);
    v->whole = pli_aligned((size_t)g->histograms.size * sizeof *v->whole);
    v->gain = pli_array(used, sizeof *v->gain);
    v->use = pli_array(used, sizeof *v->use);
    v->vote = pli_array(votes, sizeof *v->vote);
    v->all = pli_array(votes, workers * sizeof *v->all);
    v->chosen = pli_array((size_t)(v->items * v->elected), sizeof *v->chosen);
    v->rules = g->rules;
    v->rules.min_rows = (g->rules.min_rows + (int64_t)workers - 1) / (int64_t)workers;
    v->rules.text_rows = (g->rules.text_rows + (int64_t)workers - 1) / (int64_t)workers;
    v->rules.min_hessian = g->rules.min_hessian / (double)workers;
    if (v->before != NULL && v->own != NULL && v->whole != NULL && v->gain != NULL && v->use != NULL &&
        v->vote != NULL && v->all != NULL && v->chosen != NULL)
        return PLAIT_OK;
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for votes on %zu features", used);
}

static plait_status begin(pli_grower *g) {
    voting       *v = g->shared;
    const int64_t cells = v->items * v->room;
    const void   *values;
    PLI_TRY(plait_table_read(v->table, 0, cells, &values));
    memcpy(v->before, values, (size_t)cells * sizeof *v->before);
    return PLAIT_OK;
}

static void end(pli_grower *g) {
    voting *v = g->shared;
    pli_free(v->before);
    pli_free(v->own);
    pli_free(v->whole);
    pli_free(v->gain);
    pli_free(v->use);
    pli_free(v->vote);
    pli_free(v->all);
    pli_free(v->chosen);
    pli_free(v);
    g->shared = NULL;
}

/* --- votes -------------------------------------------------------------------------------------------------------- */

/* The features of the n largest gains above 0, the largest first; of equal ones the first. */
static void take_best(const double *gain, int32_t used, int64_t n, int32_t *out) {
    int64_t there = 0;
    for (int32_t j = 0; j < used; j++) {
        if (!(gain[j] > 0) || (there == n && !(gain[j] > gain[out[n - 1]]))) continue;
        int64_t at = there < n ? there++ : n - 1;
        for (; at > 0 && gain[j] > gain[out[at - 1]]; at--) out[at] = out[at - 1];
        out[at] = j;
    }
    while (there < n) out[there++] = -1;
}

static void vote(pli_grower *g, const pli_growing_leaf *leaf, int64_t item) {
    voting *v = g->shared;
    memset(v->gain, 0, (size_t)g->bins->used * sizeof *v->gain);
    if (leaf->sums != NULL && leaf->n > 0 && pli_grow_may_split(g, leaf))
        pli_split_gains(g->bins, &v->rules, g->scale, leaf->sums, leaf->bounds, pli_grow_features(g, leaf, item),
                        g->run->pool, v->gain);
    take_best(v->gain, g->bins->used, g->votes, v->vote + item * g->votes);
}

/* A feature's score is its votes; the array of gains has them. */
static void elect(pli_grower *g, int64_t items, int64_t item) {
    voting       *v = g->shared;
    const int32_t workers = plait_comm_workers(g->run->comm);
    int32_t      *chosen = v->chosen + item * v->elected;
    memset(v->gain, 0, (size_t)g->bins->used * sizeof *v->gain);
    for (int32_t w = 0; w < workers; w++)
        for (int64_t k = 0; k < g->votes; k++) {
            const int32_t j = v->all[(w * items + item) * g->votes + k];
            if (j >= 0) v->gain[j] += (double)(g->votes - k);
        }
    take_best(v->gain, g->bins->used, v->elected, chosen);
    memset(v->use, 0, (size_t)g->bins->used * sizeof *v->use);
    for (int64_t e = 0; e < v->elected; e++)
        if (chosen[e] >= 0) v->use[chosen[e]] = true;
    int64_t n = 0;
    for (int32_t j = 0; j < g->bins->used; j++)
        if (v->use[j]) chosen[n++] = j;
}

static plait_status hold_vote(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    voting      *v = g->shared;
    const int64_t items = pli_grow_items(n, large);
    for (int64_t i = 0; i < items; i++) vote(g, pli_grow_item(small, large, i), i);
    PLI_TRY(plait_comm_allgather(g->run->comm, v->vote, (size_t)(items * g->votes) * sizeof *v->vote, v->all));
    for (int64_t i = 0; i < items; i++) elect(g, items, i);
    return PLAIT_OK;
}

/* --- sums of the elected ------------------------------------------------------------------------------------------ */

static int64_t bins_of(const pli_bins *bins, int32_t j) { return bins->offset[j + 1] - bins->offset[j]; }

/* Lays the elected features' bins one behind the other; returns how many cells. */
static int64_t pack(pli_grower *g, int64_t items, pli_growing_leaf **small, pli_growing_leaf **large) {
    voting *v = g->shared;
    int64_t at = 0;
    for (int64_t i = 0; i < items; i++)
        for (int64_t e = 0; e < v->elected; e++) {
            const int32_t j = v->chosen[i * v->elected + e];
            if (j < 0) break;
            memcpy(v->own + at, pli_grow_item(small, large, i)->sums + g->bins->offset[j],
                   (size_t)bins_of(g->bins, j) * sizeof *v->own);
            at += bins_of(g->bins, j);
        }
    return at;
}

/* Searches a leaf, whose cells of all workers begin at `at` in the table; returns where they end. */
static int64_t search_item(pli_grower *g, int64_t item, pli_growing_leaf *leaf, const int64_t *now, int64_t at) {
    voting *v = g->shared;
    bool    any = false;
    memset(v->use, 0, (size_t)g->bins->used * sizeof *v->use);
    for (int64_t e = 0; e < v->elected; e++) {
        const int32_t j = v->chosen[item * v->elected + e];
        if (j < 0) break;
        any = v->use[j] = true;
        for (int64_t b = g->bins->offset[j]; b < g->bins->offset[j + 1]; b++, at++) {
            v->whole[b].g = (int64_t)((uint64_t)now[2 * at] - (uint64_t)v->before[at].g);
            v->whole[b].hn = (int64_t)((uint64_t)now[2 * at + 1] - (uint64_t)v->before[at].hn);
            v->before[at] = (pli_sum_cell){ now[2 * at], now[2 * at + 1] };
        }
    }
    leaf->split = (pli_split){ .gain = 0 };
    if (!any) return at;
    v->whole[g->histograms.size - 1] = leaf->total;
    leaf->split = pli_split_find(g->bins, &g->rules, g->scale, v->whole, leaf->bounds, v->use, g->run->pool);
    return at;
}

/* A root's total; a child's is known from the split. */
static plait_status take_total(pli_grower *g, pli_growing_leaf *root) {
    int64_t total[2] = { root->sums[g->histograms.size - 1].g, root->sums[g->histograms.size - 1].hn };
    PLI_TRY(plait_comm_allreduce(g->run->comm, total, 2, PLAIT_I64, PLAIT_SUM));
    root->total = (pli_sum_cell){ total[0], total[1] };
    return PLAIT_OK;
}

static plait_status search(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    voting       *v = g->shared;
    const int64_t items = pli_grow_items(n, large);
    const void   *now = NULL;
    pli_grow_add_up(g, n, small, NULL);
    uint64_t at = pli_comm_span_begin(g->run->comm);
    for (int64_t i = 0; i < n; i++) {
        pli_histograms_complete(&g->histograms, small[i]->sums);
        if (large != NULL) pli_grow_take_off(g, large[i], small[i]);
    }
    if (large == NULL) PLI_TRY(take_total(g, small[0]));
    PLI_TRY(hold_vote(g, n, small, large));
    const int64_t cells = pack(g, items, small, large);
    if (cells > 0) PLI_TRY(plait_table_inc_range(v->table, 0, cells, v->own, 0));
    PLI_TRY(pli_grow_clock(g));
    if (cells > 0) PLI_TRY(plait_table_read(v->table, 0, cells, &now));
    for (int64_t i = 0, from = 0; i < items; i++) from = search_item(g, i, pli_grow_item(small, large, i), now, from);
    pli_run_step(g->run, "sums", &at);
    return PLAIT_OK;
}

const pli_tree_cut pli_cut_voting = { .name = "voting", .votes = true, .tables = tables, .make = make, .begin = begin,
                                      .search = search, .free = end };
