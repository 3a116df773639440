/* A step where each worker has some of the rows, and only a few features travel. Each worker adds up its own rows, and
 * searches each leaf with these sums alone. It votes for the features that gain most, and says how much. What the
 * workers' votes for a feature add up to is its score, and the features with the highest scores are elected, as many as
 * a budget of bins has room for. The table `histogram` sums the bins of these, and all workers search them. If each
 * worker's rows are like those of all, the best feature is among the first of most workers (Meng et al., "A
 * Communication-Efficient Parallel Algorithm for Decision Tree", NIPS 2016). So the trees depend on the number of
 * workers, and on nothing else that is not in the data and the options.
 *
 * A leaf keeps the sums of the worker's own rows, and those of all workers for the features that it has elected. Where
 * the parent had a feature's sums, its bins travel for the smaller child alone, and the larger child has what is left:
 * then both children have the feature, for the price of one. Else each child pays for itself. So a tree's first
 * features are cheap to keep, and others can still come.
 *
 * What a leaf's bins come to is known from its parent's split. So the last bin of a feature is what the others leave of
 * that, and does not travel: of a feature of two bins, that is half. A vote is one word: the feature, and those bits of
 * its gain that there is room for.
 *
 *     a leaf's memory   own rows' sums [cells] | sums of all workers [cells] | which features they are of [used bytes]
 *
 * The least rows and curvature of a leaf are divided by the number of workers in the search that a vote follows
 * from. */
#include <stdlib.h>
#include <string.h>

#include "learn/trees/grow.h"
#include "table/table.h"

typedef struct ballot {
    int32_t feature; /* -1: none */
    float   gain;
} ballot;

typedef struct candidate {
    double  score;
    int32_t feature, leaf; /* leaf -1: of both, by the smaller one's sums */
} candidate;

typedef struct voting {
    plait_table   *table;  /* [slots x budget + 1, 2] I64; behind a root's bins come its own sums */
    int64_t        budget; /* cells of a pair of leaves, at most */
    int64_t        votes;  /* features that a worker votes for at a leaf */
    pli_sum_cell  *before; /* [slots x budget + 1] what the table held before the step */
    pli_sum_cell  *own;    /* [slots x budget + 1] */
    pli_tree_rules rules;  /* of a worker's own rows */
    double        *gain;   /* [used] of own rows; scores */
    ballot        *best;   /* [votes] of a leaf */
    uint32_t      *mine;   /* [2 slots, votes] */
    uint32_t      *all;    /* [workers, 2 slots, votes] */
    candidate     *order;  /* [2, used] of each leaf of a pair, the best first */
    bool          *taken;  /* [2, used] */
    candidate     *chosen; /* [slots, 2 used] */
    int64_t        n[PLI_GROW_SLOTS]; /* chosen of each pair */
    int64_t             pairs;        /* of the step at hand */
    pli_growing_leaf  **small, **large;
} voting;

/* How many cells the table has. */
static int64_t table_cells(const pli_grower *g) {
    const voting *v = g->shared;
    return g->slots * v->budget + 1;
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int64_t bins_of(const pli_bins *bins, int32_t j) { return bins->offset[j + 1] - bins->offset[j]; }
static int64_t sent_of(const pli_bins *bins, int32_t j) { return bins_of(bins, j) - 1; }

/* Sums of all workers, and which features they are of. */
static pli_sum_cell *whole_of(const pli_grower *g, const pli_growing_leaf *leaf) {
    return leaf->sums + g->histograms.size;
}
static bool *known_of(const pli_grower *g, const pli_growing_leaf *leaf) {
    return (bool *)(void *)(leaf->sums + 2 * g->histograms.size);
}

static int64_t room(const pli_grower *g) {
    return 2 * pli_bins_cells(g->bins) + g->bins->used / (int64_t)sizeof(pli_sum_cell) + 1;
}

/* What --elect features of usual size send for each of two leaves; a feature of any size has room. Votes are to be few
 * bytes beside that. */
static plait_status tables(pli_grower *g) {
    enum { VOTES_PART = 512 };
    const int64_t used = g->bins->used, cells = g->bins->offset[used] - used;
    voting       *v = g->shared = pli_calloc(1, sizeof *v);
    if (v == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    v->budget = 2 * g->elected * cells / used;
    for (int32_t j = 0; j < used; j++)
        if (v->budget < 19 * sent_of(g->bins, j) / 10) v->budget = 19 * sent_of(g->bins, j) / 10;
    v->votes = v->budget * (int64_t)sizeof(pli_sum_cell) / VOTES_PART / (int64_t)sizeof *v->mine;
    if (v->votes < (g->elected + 1) / 2) v->votes = (g->elected + 1) / 2;
    if (v->votes > used) v->votes = used;
    PLI_TRY(pli_run_table(g->run, "histogram", PLAIT_I64, table_cells(g), 2, NULL, &v->table));
    v->table->spares_bytes = true;
    return PLAIT_OK;
}

static plait_status make(pli_grower *g) {
    voting       *v = g->shared;
    const size_t  cells = (size_t)table_cells(g), used = (size_t)g->bins->used;
    const size_t  votes = (size_t)(2 * g->slots * v->votes), workers = (size_t)plait_comm_workers(g->run->comm);
    const int64_t voters = pli_run_holders(g->run);
    v->before = pli_aligned(cells * sizeof *v->before);
    v->own = pli_aligned(cells * sizeof *v->own);
    v->gain = pli_array(used, sizeof *v->gain);
    v->best = pli_array((size_t)v->votes, sizeof *v->best);
    v->mine = pli_array(votes, sizeof *v->mine);
    v->all = pli_array(votes, workers * sizeof *v->all);
    v->order = pli_array(used, 2 * sizeof *v->order);
    v->taken = pli_array(used, 2 * sizeof *v->taken);
    v->chosen = pli_array(used * (size_t)g->slots, 2 * sizeof *v->chosen);
    v->rules = g->rules;
    v->rules.min_rows = (g->rules.min_rows + voters - 1) / voters;
    v->rules.text_rows = (g->rules.text_rows + voters - 1) / voters;
    v->rules.min_hessian = g->rules.min_hessian / (double)voters;
    if (v->before != NULL && v->own != NULL && v->gain != NULL && v->best != NULL && v->mine != NULL &&
        v->all != NULL && v->order != NULL && v->taken != NULL && v->chosen != NULL)
        return PLAIT_OK;
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for votes on %zu features", used);
}

static plait_status begin(pli_grower *g) {
    voting       *v = g->shared;
    const int64_t cells = table_cells(g);
    const void   *values;
    PLI_TRY(plait_table_read(v->table, 0, cells, &values));
    memcpy(v->before, values, (size_t)cells * sizeof *v->before);
    return PLAIT_OK;
}

static void end(pli_grower *g) {
    voting *v = g->shared;
    pli_free(v->before);
    pli_free(v->own);
    pli_free(v->gain);
    pli_free(v->best);
    pli_free(v->mine);
    pli_free(v->all);
    pli_free(v->order);
    pli_free(v->taken);
    pli_free(v->chosen);
    pli_free(v);
    g->shared = NULL;
}

/* --- votes -------------------------------------------------------------------------------------------------------- */

/* How many bits of a word the gain has. The first bits of a positive float are its exponent. */
static int gain_bits(int32_t used) {
    int bits = 31;
    while (bits > 1 && (uint64_t)used >> (32 - bits) != 0) bits--;
    return bits;
}

/* 0: no vote. */
static uint32_t word_of(ballot b, int32_t used) {
    const int bits = gain_bits(used);
    uint32_t  gain;
    if (b.feature < 0) return 0;
    memcpy(&gain, &b.gain, sizeof gain);
    return (uint32_t)(b.feature + 1) << bits | gain >> (31 - bits);
}

static ballot ballot_of(uint32_t word, int32_t used) {
    const int      bits = gain_bits(used);
    const uint32_t gain = (word & (((uint32_t)1 << bits) - 1)) << (31 - bits);
    ballot         b = { .feature = (int32_t)(word >> bits) - 1 };
    memcpy(&b.gain, &gain, sizeof gain);
    return b;
}

/* The features of the n largest gains above 0, the largest first; of equal ones the first. */
static void vote_for_best(const double *gain, int32_t used, int64_t n, ballot *out) {
    int64_t there = 0;
    for (int32_t j = 0; j < used; j++) {
        if (!(gain[j] > 0) || (there == n && !(gain[j] > gain[out[n - 1].feature]))) continue;
        int64_t at = there < n ? there++ : n - 1;
        for (; at > 0 && gain[j] > gain[out[at - 1].feature]; at--) out[at] = out[at - 1];
        out[at] = (ballot){ j, (float)gain[j] };
    }
    while (there < n) out[there++] = (ballot){ .feature = -1 };
}

/* The sum of all workers' rows of a root is known only with the sums of the elected features. */
static void vote(pli_grower *g, const pli_growing_leaf *leaf, int64_t item) {
    voting    *v = g->shared;
    const bool root = v->large == NULL;
    memset(v->gain, 0, (size_t)g->bins->used * sizeof *v->gain);
    if (leaf->n > 0 && (root || pli_grow_may_split(g, leaf)))
        pli_split_gains(g->bins, &v->rules, g->scale, leaf->sums, leaf->bounds, pli_grow_features(g, leaf, item),
                        g->run->pool, v->gain);
    vote_for_best(v->gain, g->bins->used, v->votes, v->best);
    for (int64_t k = 0; k < v->votes; k++) v->mine[item * v->votes + k] = word_of(v->best[k], g->bins->used);
}

/* The scores of a leaf's features, the same on all workers: each adds up in the order of workers. */
static void count(const pli_grower *g, int64_t items, int64_t item, double *score) {
    const voting *v = g->shared;
    memset(score, 0, (size_t)g->bins->used * sizeof *score);
    for (int32_t w = 0; w < plait_comm_workers(g->run->comm); w++)
        for (int64_t k = 0; k < v->votes; k++) {
            const ballot b = ballot_of(v->all[(w * items + item) * v->votes + k], g->bins->used);
            if (b.feature >= 0) score[b.feature] += (double)b.gain;
        }
}

static int by_score(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return x->score != y->score ? (x->score < y->score) - (x->score > y->score) : x->feature - y->feature;
}

/* A leaf's features, those with the highest scores first. */
static void rank_features(pli_grower *g, int64_t items, int64_t item, candidate *order) {
    voting *v = g->shared;
    count(g, items, item, v->gain);
    for (int32_t j = 0; j < g->bins->used; j++) order[j] = (candidate){ v->gain[j], j, (int32_t)(item % 2) };
    qsort(order, (size_t)g->bins->used, sizeof *order, by_score);
}

/* Elects the features of pair p, as far as the budget goes: first the best of each leaf, then the second, and so on. */
static void elect(pli_grower *g, int64_t p, int64_t n, const pli_growing_leaf *large) {
    voting       *v = g->shared;
    const int64_t used = g->bins->used, leaves = large != NULL ? 2 : 1;
    const bool   *known = large != NULL ? known_of(g, large) : NULL;
    candidate    *chosen = v->chosen + p * 2 * used;
    int64_t       left = v->budget;
    memset(v->taken, 0, 2 * (size_t)used);
    for (int64_t l = 0; l < leaves; l++) rank_features(g, leaves * n, leaves * p + l, v->order + l * used);
    v->n[p] = 0;
    for (int64_t i = 0; i < leaves * used; i++) {
        const candidate *c = &v->order[i % leaves * used + i / leaves];
        const int64_t    cells = sent_of(g->bins, c->feature);
        const bool       both = known != NULL && known[c->feature];
        if (!(c->score > 0) || cells > left || v->taken[c->leaf * used + c->feature]) continue;
        left -= cells;
        chosen[v->n[p]++] = (candidate){ c->score, c->feature, both ? -1 : c->leaf };
        v->taken[c->leaf * used + c->feature] = true;
        if (both) v->taken[(1 - c->leaf) * used + c->feature] = true;
    }
}

/* --- sums of the elected ------------------------------------------------------------------------------------------ */

/* How many cells a step sends. */
static int64_t cells_sent(const pli_grower *g) {
    const voting *v = g->shared;
    int64_t       cells = v->large == NULL ? 1 : 0;
    for (int64_t p = 0; p < v->pairs; p++)
        for (int64_t c = 0; c < v->n[p]; c++) cells += sent_of(g->bins, v->chosen[p * 2 * g->bins->used + c].feature);
    return cells;
}

/* Lays the elected features' bins one behind the other, and pushes them. */
static plait_status push(pli_grower *g) {
    voting *v = g->shared;
    int64_t at = 0;
    for (int64_t p = 0; p < v->pairs; p++)
        for (int64_t c = 0; c < v->n[p]; c++) {
            const candidate        *chosen = &v->chosen[p * 2 * g->bins->used + c];
            const pli_growing_leaf *leaf = chosen->leaf == 1 ? v->large[p] : v->small[p];
            const int64_t           cells = sent_of(g->bins, chosen->feature);
            memcpy(v->own + at, leaf->sums + g->bins->offset[chosen->feature], (size_t)cells * sizeof *v->own);
            at += cells;
        }
    if (v->large == NULL) v->own[at++] = v->small[0]->sums[g->histograms.size - 1];
    return at > 0 ? plait_table_inc_range(v->table, 0, at, v->own, 0) : PLAIT_OK;
}

/* What has come into the table since the step before, from cell `at` on; then what that leaves of the total. */
static void take_cells(voting *v, const int64_t *now, int64_t at, int64_t n, pli_sum_cell total, pli_sum_cell *to) {
    for (int64_t b = 0; b < n; b++, at++) {
        to[b].g = (int64_t)((uint64_t)now[2 * at] - (uint64_t)v->before[at].g);
        to[b].hn = (int64_t)((uint64_t)now[2 * at + 1] - (uint64_t)v->before[at].hn);
        v->before[at] = (pli_sum_cell){ now[2 * at], now[2 * at + 1] };
        total = (pli_sum_cell){ total.g - to[b].g, total.hn - to[b].hn };
    }
    to[n] = total;
}

/* Gives a pair its sums, whose cells begin at `at` in the table; returns where they end. */
static int64_t unpack(pli_grower *g, int64_t p, pli_growing_leaf *small, pli_growing_leaf *large, const int64_t *now,
                      int64_t at) {
    voting *v = g->shared;
    memset(known_of(g, small), 0, (size_t)g->bins->used);
    if (large != NULL) memset(known_of(g, large), 0, (size_t)g->bins->used);
    for (int64_t c = 0; c < v->n[p]; c++) {
        const candidate  *chosen = &v->chosen[p * 2 * g->bins->used + c];
        const int64_t     first = g->bins->offset[chosen->feature], cells = bins_of(g->bins, chosen->feature);
        pli_growing_leaf *leaf = chosen->leaf == 1 ? large : small;
        pli_sum_cell     *to = whole_of(g, leaf) + first;
        take_cells(v, now, at, cells - 1, leaf->total, to);
        known_of(g, leaf)[chosen->feature] = true;
        at += cells - 1;
        if (chosen->leaf >= 0) continue;
        pli_sum_cell *rest = whole_of(g, large) + first;
        known_of(g, large)[chosen->feature] = true;
        for (int64_t b = 0; b < cells; b++) rest[b] = (pli_sum_cell){ rest[b].g - to[b].g, rest[b].hn - to[b].hn };
    }
    return at;
}

static void find(pli_grower *g, pli_growing_leaf *leaf) {
    leaf->split = (pli_split){ .gain = 0 };
    if (!pli_grow_may_split(g, leaf)) return;
    whole_of(g, leaf)[g->histograms.size - 1] = leaf->total;
    leaf->split = pli_split_find(g->bins, &g->rules, g->scale, whole_of(g, leaf), leaf->bounds, known_of(g, leaf),
                                 g->run->pool);
}

/* Own sums of the leaves. */
static void add_up(pli_grower *g) {
    voting *v = g->shared;
    pli_grow_add_up(g, v->pairs, v->small, NULL);
    for (int64_t i = 0; i < v->pairs; i++) {
        pli_histograms_complete(&g->histograms, v->small[i]->sums);
        if (v->large != NULL) pli_grow_take_off(g, v->large[i], v->small[i]);
    }
}

/* The rows of those that have died in the clock are others' from now on. Nobody has pushed in it. */
static plait_status take_rows(pli_grower *g) {
    PLI_TRY(pli_heirs_begin(g));
    PLI_TRY(pli_heirs_end(g));
    pli_grow_recount(g);
    return PLAIT_OK;
}

/* Votes, and what they come to. If a worker dies, its vote is missing: then its heirs get its rows first, and all vote
 * again. */
static plait_status hold_vote(pli_grower *g) {
    voting       *v = g->shared;
    const int64_t items = pli_grow_items(v->pairs, v->large);
    int32_t       absent = pli_comm_absent(g->run->comm);
    for (;;) {
        for (int64_t i = 0; i < items; i++) vote(g, pli_grow_item(v->small, v->large, i), i);
        PLI_TRY(plait_comm_allgather(g->run->comm, v->mine, (size_t)(items * v->votes) * sizeof *v->mine, v->all));
        if (!pli_run_again(g->run, &absent)) break;
        PLI_TRY(pli_grow_clock(g, take_rows));
    }
    for (int64_t p = 0; p < v->pairs; p++) elect(g, p, v->pairs, v->large != NULL ? v->large[p] : NULL);
    return PLAIT_OK;
}

/* The elected features' sums of the rows that this worker inherits in the clock. */
static plait_status push_inherited(pli_grower *g) {
    PLI_TRY(pli_heirs_begin(g));
    pli_grow_recount(g);
    PLI_TRY(push(g));
    PLI_TRY(pli_heirs_end(g));
    pli_grow_recount(g);
    return PLAIT_OK;
}

/* A root's total is the first cell behind its bins; a child's is known from the split. */
static void take_total(pli_grower *g, const int64_t *now, int64_t at) {
    voting *v = g->shared;
    v->small[0]->total = (pli_sum_cell){ (int64_t)((uint64_t)now[2 * at] - (uint64_t)v->before[at].g),
                                         (int64_t)((uint64_t)now[2 * at + 1] - (uint64_t)v->before[at].hn) };
    v->before[at] = (pli_sum_cell){ now[2 * at], now[2 * at + 1] };
}

static plait_status take_sums(pli_grower *g) {
    voting       *v = g->shared;
    const int64_t cells = cells_sent(g);
    const void   *now = NULL;
    if (cells > 0) PLI_TRY(plait_table_read(v->table, 0, cells, &now));
    if (v->large == NULL) take_total(g, now, cells - 1);
    for (int64_t p = 0, from = 0; p < v->pairs; p++)
        from = unpack(g, p, v->small[p], v->large != NULL ? v->large[p] : NULL, now, from);
    return PLAIT_OK;
}

static plait_status search(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    voting *v = g->shared;
    v->pairs = n;
    v->small = small;
    v->large = large;
    add_up(g);
    uint64_t at = pli_comm_span_begin(g->run->comm);
    PLI_TRY(hold_vote(g));
    PLI_TRY(push(g));
    PLI_TRY(pli_grow_clock(g, push_inherited));
    PLI_TRY(take_sums(g));
    for (int64_t i = 0; i < pli_grow_items(n, large); i++) find(g, pli_grow_item(small, large, i));
    pli_run_step(g->run, "sums", &at);
    return PLAIT_OK;
}

const pli_tree_cut pli_cut_voting = { .name = "voting", .votes = true, .room = room, .tables = tables, .make = make,
                                      .begin = begin, .search = search, .free = end };
