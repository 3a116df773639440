/* The scores of rows that are there as bins: those of no tree, and what trees add. A score is added up in the order of
 * the trees, so it has the same bits whenever that is done: tree by tree in the training, or later for all trees, when
 * a run is resumed or a worker takes over the rows of one that has died.
 *
 * A row that a forest is trained on has the scores of the trees that have not seen it, and the number of these. */
#include <string.h>

#include "learn/trees/trees.h"

enum { AHEAD = 32, ROWS = 4096 }; /* rows that are fetched ahead, and that a thread scores at once */

typedef struct adding {
    const pli_grower    *g;
    pli_bin_rows        *rows;
    int64_t              first, round;
    const pli_tree_node *node;
    const int32_t       *code;
    double              *score;
    bool                 unseen; /* only of rows that the round's trees have not seen */
    bool                 counts; /* of a forest: this is the round's first tree */
} adding;

static int64_t chunks_of(const adding *a) { return (a->rows->n - a->first + ROWS - 1) / ROWS; }

/* Rows walk down the tree. */
static void add_walk(void *user, int64_t c, int32_t thread) {
    const adding *a = user;
    const int64_t begin = a->first + c * ROWS, end = begin + ROWS < a->rows->n ? begin + ROWS : a->rows->n;
    (void)thread;
    for (int64_t r = begin; r < end; r++) {
        if (a->unseen && pli_grow_sees(a->g, a->round, r)) continue;
        if (a->counts) a->rows->votes[r]++;
        a->score[r] += pli_bin_rows_leaf(a->rows, a->g->bins, a->node, a->code, r)->value;
    }
}

/* Rows are where the tree has put them. */
static void add_leaf(void *user, int64_t l, int32_t thread) {
    const adding           *a = user;
    const pli_growing_leaf *leaf = &a->g->leaf[l];
    const int64_t           end = leaf->begin + leaf->n;
    const double            value = a->g->node[leaf->node].value;
    (void)thread;
    for (int64_t i = leaf->begin; i < end; i++) {
        const uint32_t r = a->g->order[i];
        __builtin_prefetch(&a->score[a->g->order[i + AHEAD < end ? i + AHEAD : i]], 1);
        if (a->g->rules.bagged && pli_grow_sees(a->g, a->round, r)) continue;
        if (a->counts) a->rows->votes[r]++;
        a->score[r] += value;
    }
}

static adding adding_of(const pli_grower *g, pli_bin_rows *rows, int64_t first, int64_t tree) {
    const int64_t k = pli_fit_of(g->run)->goal.columns;
    const bool    votes = rows->votes != NULL;
    return (adding){ .g = g, .rows = rows, .first = first, .round = tree / k, .unseen = votes,
                     .score = rows->score + tree % k * rows->n, .counts = votes && tree % k == 0 };
}

void pli_scores_begin(const pli_trees *trees, pli_bin_rows *rows, int64_t first) {
    for (int64_t c = 0; c < trees->columns; c++)
        for (int64_t r = first; r < rows->n; r++) rows->score[c * rows->n + r] = trees->base[c];
    if (rows->votes != NULL && rows->n > first)
        memset(rows->votes + first, 0, (size_t)(rows->n - first) * sizeof *rows->votes);
}

void pli_scores_add(const pli_run *run, pli_bin_rows *rows, int64_t first, int64_t from, int64_t to) {
    const pli_gbdt  *t = pli_gbdt_of(run);
    const pli_trees *trees = &t->trees;
    for (int64_t i = from; i < to; i++) {
        adding a = adding_of(&t->grower, rows, first, i);
        a.node = trees->node + trees->start[i];
        a.code = trees->code;
        pli_pool_for(run->pool, chunks_of(&a), add_walk, &a);
    }
}

void pli_scores_take(const pli_grower *g) {
    const bool all = g->rows->of_all;
    adding     a = adding_of(g, g->rows, 0, g->tree);
    a.node = g->node;
    a.code = g->code;
    if (!g->rules.bagged || all) pli_pool_for(g->run->pool, g->leaves, add_leaf, &a);
    a.unseen = true;
    if (!all && (g->rules.bagged || g->rows->held != NULL || g->rules.subsample < 1))
        pli_pool_for(g->run->pool, chunks_of(&a), add_walk, &a);
}
