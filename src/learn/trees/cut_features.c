/* A step where each worker has some of the features, of all rows. Its histograms are whole by themselves, so no sums
 * travel. A worker searches its own features, and puts its best split of each leaf into the table `splits`: a few
 * words. All take the best of these, of equal ones that of the lowest feature; so the trees are those of a cut by rows.
 * The worker that has the feature of a split knows where the rows go. It puts a bit for each row of the leaf into the
 * table `sides`, and the others part their rows by these. So a leaf that is split costs two clocks, and a bit a row.
 *
 *     splits   a row for each worker and leaf: a pli_split
 *     sides    a row for each 1,024 rows of the leaves that are split, one leaf after the other
 *
 * Rows of these tables are replaced, not added to. Each worker computes the gradients of all rows: they would be more
 * bytes than the histograms that are saved (Ke et al., 2017, and LightGBM's tree_learner=feature, do the same). */
#include <string.h>

#include "learn/trees/trees.h"
#include "table/table.h"

enum { SIDE_WORDS = 16, A_KEY = 64 * SIDE_WORDS, SPLIT_WORDS = sizeof(pli_split) / sizeof(int64_t) };
_Static_assert(sizeof(pli_split) % sizeof(int64_t) == 0, "a split is whole words");

typedef struct by_features {
    plait_table *splits, *sides;
    int64_t      items, keys; /* leaves that are searched in a step; rows of sides */
    pli_split   *split;       /* [workers, items] */
    uint64_t    *key;         /* [largest of keys and items] */
    uint64_t    *bits, *own;  /* [keys, SIDE_WORDS] as read; of own features */
} by_features;

static void describe(plait_table_opts *t, const char *name, int64_t rows, int64_t cols) {
    plait_table_opts_init(t);
    t->name = name;
    t->type = PLAIT_I64;
    t->combine = "last";
    t->rows = rows;
    t->cols = cols;
    t->keyed = 1;
}

/* Neither table holds anything behind a step. A checkpoint has one table at least, so it has `sides`: the size of
 * `splits` depends on the number of workers, and a resumed run may have others. */
static plait_status make_splits(pli_run *run, int64_t rows, plait_table **out) {
    const pli_travel as = pli_run_travel(run, "splits");
    plait_table_opts t;
    describe(&t, "splits", rows, SPLIT_WORDS);
    t.topology = as.topology;
    t.consistency = as.consistency;
    t.filter = as.filter;
    return plait_table_create(run->job, &t, out);
}

static plait_status tables(pli_grower *g) {
    const int64_t workers = plait_comm_workers(g->run->comm);
    by_features  *f = g->shared = pli_calloc(1, sizeof *f);
    if (f == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    f->items = 2 * g->slots;
    f->keys = g->run->rows / A_KEY + g->slots;
    plait_table_opts t;
    describe(&t, "sides", f->keys, SIDE_WORDS);
    PLI_TRY(make_splits(g->run, workers * f->items, &f->splits));
    return pli_run_make_table(g->run, &t, &f->sides);
}

static plait_status make(pli_grower *g) {
    by_features  *f = g->shared;
    const int64_t workers = plait_comm_workers(g->run->comm);
    f->split = pli_calloc((size_t)(workers * f->items), sizeof *f->split);
    f->key = pli_array((size_t)(f->keys > f->items ? f->keys : f->items), sizeof *f->key);
    f->bits = pli_array((size_t)f->keys, SIDE_WORDS * sizeof *f->bits);
    f->own = pli_array((size_t)f->keys, SIDE_WORDS * sizeof *f->own);
    if (f->split != NULL && f->key != NULL && f->bits != NULL && f->own != NULL) return PLAIT_OK;
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for the sides of %lld rows", (long long)g->rows->n);
}

static void end(pli_grower *g) {
    by_features *f = g->shared;
    pli_free(f->split);
    pli_free(f->key);
    pli_free(f->bits);
    pli_free(f->own);
    pli_free(f);
    g->shared = NULL;
}

/* --- sides -------------------------------------------------------------------------------------------------------- */

static int64_t keys_of(const pli_growing_leaf *leaf) { return (leaf->n + A_KEY - 1) / A_KEY; }

static plait_status sides(pli_grower *g, int64_t n, const int64_t *which) {
    by_features  *f = g->shared;
    const int32_t me = plait_comm_rank(g->run->comm), workers = plait_comm_workers(g->run->comm);
    int64_t       all = 0, mine = 0;
    uint64_t      at = pli_comm_span_begin(g->run->comm);
    for (int64_t i = 0; i < n; i++) {
        pli_growing_leaf *leaf = &g->leaf[which[i]];
        const int64_t     keys = keys_of(leaf);
        leaf->side = f->bits + all * SIDE_WORDS;
        if (pli_bins_owner(g->bins, workers, leaf->split.used) == me && keys > 0) {
            const uint64_t *side = leaf->side;
            leaf->side = NULL;
            memset(f->own + (mine + keys - 1) * SIDE_WORDS, 0, SIDE_WORDS * sizeof *f->own); /* behind the last row */
            pli_part_sides(g, leaf, f->own + mine * SIDE_WORDS);
            leaf->side = side;
            for (int64_t k = 0; k < keys; k++) f->key[mine + k] = (uint64_t)(all + k);
            mine += keys;
        }
        all += keys;
    }
    if (mine > 0) PLI_TRY(plait_table_inc(f->sides, mine, f->key, f->own, 0));
    PLI_TRY(pli_grow_clock(g));
    PLI_TRY(plait_table_get_range(f->sides, 0, all, f->bits));
    pli_run_step(g->run, "sides", &at);
    return PLAIT_OK;
}

/* --- splits ------------------------------------------------------------------------------------------------------- */

/* Each worker says what its own features give; the best of these is the leaf's split. */
static plait_status agree(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    by_features  *f = g->shared;
    const int64_t items = pli_grow_items(n, large), workers = plait_comm_workers(g->run->comm);
    const int64_t first = plait_comm_rank(g->run->comm) * f->items;
    for (int64_t i = 0; i < items; i++) {
        f->split[i] = pli_grow_item(small, large, i)->split;
        f->key[i] = (uint64_t)(first + i);
    }
    PLI_TRY(plait_table_inc(f->splits, items, f->key, f->split, 0));
    PLI_TRY(pli_grow_clock(g));
    PLI_TRY(plait_table_get_range(f->splits, 0, workers * f->items, f->split));
    for (int64_t i = 0; i < items; i++) {
        pli_split *best = &pli_grow_item(small, large, i)->split;
        *best = f->split[i];
        for (int64_t w = 1; w < workers; w++) /* in the order of features */
            if (f->split[w * f->items + i].gain > best->gain) *best = f->split[w * f->items + i];
    }
    return PLAIT_OK;
}

static plait_status search(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    pli_grow_add_up(g, n, small, NULL);
    for (int64_t i = 0; i < n; i++) pli_histograms_complete(&g->histograms, small[i]->sums);
    uint64_t at = pli_comm_span_begin(g->run->comm);
    if (large == NULL) small[0]->total = small[0]->sums[g->histograms.size - 1];
    pli_grow_search(g, n, small, large);
    PLI_TRY(agree(g, n, small, large));
    pli_run_step(g->run, "splits", &at);
    return PLAIT_OK;
}

const pli_tree_cut pli_cut_features = { .name = "features", .exchanges = true, .tables = tables, .make = make,
                                        .sides = sides, .search = search, .free = end };
