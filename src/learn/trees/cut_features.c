/* A step where each worker has some of the features, of all rows. Its histograms are whole by themselves, so no sums
 * travel. A worker searches its own features, and puts its best split of each leaf into the table `splits`: a few
 * words. All take the best of these, of equal ones that of the lowest feature; so the trees are those of a cut by rows.
 * The worker that has the feature of a split knows where the rows go. It puts a bit for each row of the leaf into the
 * table `sides`, and the others part their rows by these. So a leaf that is split costs two clocks, and a bit a row.
 *
 *     splits   a row for each worker and leaf: a pli_split
 *     sides    a row for each 1,024 rows of the leaves that are split, one leaf after the other
 *
 * A row is replaced: a worker incs what the new one is more than the old, word by word (whole numbers wrap around), and
 * all workers know what the tables held before the step. Each worker computes the gradients of all rows: they would be
 * more bytes than the histograms that are saved (Ke et al., 2017, and LightGBM's tree_learner=feature, do the same).
 *
 * With two replicas a worker may die. Its features, a *share*, fall to a living worker as a whole. Where the rows are
 * all workers know. So the heir reads the bins of the share (columns_read.c), adds up the leaves that may still be
 * split, and says in the dead worker's place what that would have said: its sides, and its row of `splits`. There the
 * heir puts the best split of all its features. That may be another one than the dead worker's; but all rows together
 * have the same best one, whichever of the two a server counts. */
#include <string.h>

#include "learn/trees/trees.h"
#include "table/table.h"

enum { SIDE_WORDS = 16, A_KEY = 64 * SIDE_WORDS, SPLIT_WORDS = sizeof(pli_split) / sizeof(int64_t) };
_Static_assert(sizeof(pli_split) % sizeof(int64_t) == 0, "a split is whole words");

typedef struct by_features {
    plait_table *splits, *sides;
    int32_t      shares;      /* of features: one for each worker that is no spare */
    bool        *has;         /* [shares] this worker has it */
    bool        *inherited;   /* [shares] it has come to this worker in the clock that is ending */
    int64_t      items, keys; /* leaves that are searched in a step; rows of sides */
    uint64_t    *split;       /* [shares, items, SPLIT_WORDS] what the table holds */
    uint64_t    *more;        /* [items, SPLIT_WORDS] to be inc'ed */
    uint64_t    *key;         /* [largest of keys and items] */
    uint64_t    *bits, *own;  /* [keys, SIDE_WORDS] what the table holds; to be inc'ed */
    /* the step at hand */
    int64_t            n;
    const int64_t     *which;
    pli_growing_leaf **small, **large;
} by_features;

static void describe(plait_table_opts *t, const char *name, int64_t rows, int64_t cols) {
    plait_table_opts_init(t);
    t->name = name;
    t->type = PLAIT_I64;
    t->rows = rows;
    t->cols = cols;
    t->keyed = 1;
}

/* Nobody needs what the tables hold behind a step. A checkpoint has one table at least, so it has `sides`: the size of
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
    by_features *f = g->shared = pli_calloc(1, sizeof *f);
    if (f == NULL) return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    f->shares = pli_run_holders(g->run);
    f->has = pli_calloc((size_t)f->shares, sizeof *f->has);
    f->inherited = pli_calloc((size_t)f->shares, sizeof *f->inherited);
    if (f->has == NULL || f->inherited == NULL)
        return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory to grow trees");
    if (plait_comm_rank(g->run->comm) < f->shares) f->has[plait_comm_rank(g->run->comm)] = true;
    f->items = 2 * g->slots;
    f->keys = g->run->rows / A_KEY + g->slots;
    plait_table_opts t;
    describe(&t, "sides", f->keys, SIDE_WORDS);
    PLI_TRY(make_splits(g->run, f->shares * f->items, &f->splits));
    return pli_run_make_table(g->run, &t, &f->sides);
}

static plait_status make(pli_grower *g) {
    by_features *f = g->shared;
    f->split = pli_calloc((size_t)(f->shares * f->items), SPLIT_WORDS * sizeof *f->split);
    f->more = pli_calloc((size_t)f->items, SPLIT_WORDS * sizeof *f->more);
    f->key = pli_array((size_t)(f->keys > f->items ? f->keys : f->items), sizeof *f->key);
    f->bits = pli_array((size_t)f->keys, SIDE_WORDS * sizeof *f->bits);
    f->own = pli_array((size_t)f->keys, SIDE_WORDS * sizeof *f->own);
    if (f->split != NULL && f->more != NULL && f->key != NULL && f->bits != NULL && f->own != NULL) return PLAIT_OK;
    return pli_fail(g->run->err, PLAIT_ENOMEM, "no memory for the sides of %lld rows", (long long)g->rows->n);
}

static plait_status begin(pli_grower *g) {
    by_features *f = g->shared;
    PLI_TRY(plait_table_get_range(f->splits, 0, f->shares * f->items, f->split));
    return plait_table_get_range(f->sides, 0, f->keys, f->bits);
}

static void end(pli_grower *g) {
    by_features *f = g->shared;
    pli_free(f->has);
    pli_free(f->inherited);
    pli_free(f->split);
    pli_free(f->more);
    pli_free(f->key);
    pli_free(f->bits);
    pli_free(f->own);
    pli_free(f);
    g->shared = NULL;
}

/* --- shares of the dead ------------------------------------------------------------------------------------------- */

plait_status pli_cut_features_hold(pli_run *run) {
    const by_features *f = pli_gbdt_of(run)->grower.shared;
    return pli_bins_hold(run, &pli_gbdt_of(run)->bins, f->has);
}

/* Takes over the shares that fall to this worker in the clock. */
static plait_status inherit(pli_grower *g) {
    by_features *f = g->shared;
    pli_gbdt    *t = pli_gbdt_of(g->run);
    bool         more = false;
    for (int32_t s = 0; s < f->shares; s++) {
        f->inherited[s] = plait_job_inherits(g->run->job, s, (uint64_t)s) != 0;
        more = more || (f->inherited[s] && !f->has[s]);
        f->has[s] = f->has[s] || f->inherited[s];
    }
    if (!more) return PLAIT_OK;
    PLI_TRY(pli_cut_features_hold(g->run));
    PLI_TRY(pli_bin_rows_read_again(g->run, &t->bins, &t->rows));
    PLI_TRY(pli_grower_refit(g));
    pli_grow_recount(g);
    return PLAIT_OK;
}

/* Which shares are whose may have changed between two rounds. The rows walk down all trees again, as they did when they
 * were read first. */
plait_status pli_cut_features_turn(pli_run *run, bool came) {
    pli_gbdt    *t = pli_gbdt_of(run);
    by_features *f = t->grower.shared;
    bool         others = came;
    for (int32_t s = 0; s < f->shares; s++) {
        const bool mine = plait_job_holder(run->job, s, (uint64_t)s) == plait_comm_rank(run->comm);
        others = others || mine != f->has[s];
        f->has[s] = mine;
    }
    if (!others) return PLAIT_OK;
    PLI_TRY(pli_cut_features_hold(run));
    PLI_TRY(pli_bin_rows_read(run, &t->bins, &t->rows));
    return pli_grower_refit(&t->grower);
}

/* --- sides -------------------------------------------------------------------------------------------------------- */

static int64_t keys_of(const pli_growing_leaf *leaf) { return (leaf->n + A_KEY - 1) / A_KEY; }

/* Subtracts n words: `to` becomes what it has more than `old`. */
static void take_off(int64_t n, const uint64_t *old, uint64_t *to) {
    for (int64_t i = 0; i < n; i++) to[i] -= old[i];
}

/* Says where the rows of those leaves go whose feature is of one of the shares. */
static plait_status push_sides(pli_grower *g, const bool *shares) {
    by_features *f = g->shared;
    int64_t      all = 0, mine = 0;
    for (int64_t i = 0; i < f->n; i++) {
        pli_growing_leaf *leaf = &g->leaf[f->which[i]];
        const int64_t     keys = keys_of(leaf);
        if (shares[pli_bins_owner(g->bins, f->shares, leaf->split.used)] && keys > 0) {
            leaf->side = NULL;
            memset(f->own + (mine + keys - 1) * SIDE_WORDS, 0, SIDE_WORDS * sizeof *f->own); /* behind the last row */
            pli_part_sides(g, leaf, f->own + mine * SIDE_WORDS);
            take_off(keys * SIDE_WORDS, f->bits + all * SIDE_WORDS, f->own + mine * SIDE_WORDS);
            for (int64_t k = 0; k < keys; k++) f->key[mine + k] = (uint64_t)(all + k);
            mine += keys;
        }
        leaf->side = f->bits + all * SIDE_WORDS;
        all += keys;
    }
    return mine > 0 ? plait_table_inc(f->sides, mine, f->key, f->own, 0) : PLAIT_OK;
}

static plait_status inherit_sides(pli_grower *g) {
    const by_features *f = g->shared;
    PLI_TRY(inherit(g));
    return push_sides(g, f->inherited);
}

static plait_status sides(pli_grower *g, int64_t n, const int64_t *which) {
    by_features *f = g->shared;
    int64_t      all = 0;
    uint64_t     at = pli_comm_span_begin(g->run->comm);
    f->n = n;
    f->which = which;
    PLI_TRY(push_sides(g, f->has));
    PLI_TRY(pli_grow_clock(g, inherit_sides));
    for (int64_t i = 0; i < n; i++) all += keys_of(&g->leaf[which[i]]);
    PLI_TRY(plait_table_get_range(f->sides, 0, all, f->bits));
    pli_run_step(g->run, "sides", &at);
    return PLAIT_OK;
}

/* --- splits ------------------------------------------------------------------------------------------------------- */

/* Says what the own features give, in the rows of these shares. */
static plait_status push_splits(pli_grower *g, const bool *shares) {
    by_features  *f = g->shared;
    const int64_t items = pli_grow_items(f->n, f->large);
    for (int32_t s = 0; s < f->shares; s++) {
        if (!shares[s]) continue;
        for (int64_t i = 0; i < items; i++) {
            memcpy(f->more + i * SPLIT_WORDS, &pli_grow_item(f->small, f->large, i)->split, sizeof(pli_split));
            f->key[i] = (uint64_t)(s * f->items + i);
        }
        take_off(items * SPLIT_WORDS, f->split + s * f->items * SPLIT_WORDS, f->more);
        PLI_TRY(plait_table_inc(f->splits, items, f->key, f->more, 0));
    }
    return PLAIT_OK;
}

static plait_status inherit_splits(pli_grower *g) {
    const by_features *f = g->shared;
    const int64_t      items = pli_grow_items(f->n, f->large);
    PLI_TRY(inherit(g));
    for (int64_t i = 0; i < items; i++) pli_grow_find(g, pli_grow_item(f->small, f->large, i), i);
    return push_splits(g, f->inherited);
}

/* The larger gain, or of equal ones the lower feature. */
static bool is_better(const pli_split *a, const pli_split *b) {
    return a->gain > b->gain || (a->gain == b->gain && a->gain > 0 && a->used < b->used);
}

/* The best of what all shares give is a leaf's split. */
static plait_status take_best(pli_grower *g) {
    by_features  *f = g->shared;
    const int64_t items = pli_grow_items(f->n, f->large);
    PLI_TRY(plait_table_get_range(f->splits, 0, f->shares * f->items, f->split));
    for (int64_t i = 0; i < items; i++) {
        pli_split *best = &pli_grow_item(f->small, f->large, i)->split, other;
        memcpy(best, f->split + i * SPLIT_WORDS, sizeof *best);
        for (int32_t s = 1; s < f->shares; s++) {
            memcpy(&other, f->split + (s * f->items + i) * SPLIT_WORDS, sizeof other);
            if (is_better(&other, best)) *best = other;
        }
    }
    return PLAIT_OK;
}

static plait_status search(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large) {
    by_features *f = g->shared;
    f->n = n;
    f->small = small;
    f->large = large;
    pli_grow_add_up(g, n, small, NULL);
    for (int64_t i = 0; i < n; i++) pli_histograms_complete(&g->histograms, small[i]->sums);
    uint64_t at = pli_comm_span_begin(g->run->comm);
    if (large == NULL) small[0]->total = small[0]->sums[g->histograms.size - 1];
    pli_grow_search(g, n, small, large);
    PLI_TRY(push_splits(g, f->has));
    PLI_TRY(pli_grow_clock(g, inherit_splits));
    PLI_TRY(take_best(g));
    pli_run_step(g->run, "splits", &at);
    return PLAIT_OK;
}

const pli_tree_cut pli_cut_features = { .name = "features", .exchanges = true, .tables = tables, .make = make,
                                        .begin = begin, .sides = sides, .search = search, .free = end };
