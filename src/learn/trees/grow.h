/* learn/trees/grow.h - a tree grows, step by step: leaves, the cuts of the work over workers, scores, and the rows of
 * workers that have died. */
#ifndef PLI_LEARN_TREES_GROW_H
#define PLI_LEARN_TREES_GROW_H

#include "learn/trees/sums.h"

/* --- growing (grow.c) --------------------------------------------------------------------------------------------- */

enum { PLI_GROW_SLOTS = 32 }; /* histograms of a step, at most */

/* A leaf of the tree that grows. */
typedef struct pli_growing_leaf {
    int64_t       begin, n; /* own rows: order[begin .. begin + n - 1] */
    int32_t       node, depth;
    pli_sum_cell *sums;     /* [cells]; NULL: it is not split any more. By voting more: cut_voting.c */
    pli_sum_cell  total;    /* of all workers' rows */
    const uint64_t *side;   /* bit i: row i of the leaf goes left; NULL: the worker has the feature's bins */
    pli_bounds    bounds;
    double        l2;     /* of its value, more than the rules have */
    pli_split     split;
} pli_growing_leaf;

typedef struct pli_grower pli_grower;

/* What the workers have of the data, and so what a step sends. */
typedef struct pli_tree_cut {
    const char *name; /* of --trees-by */
    bool        exchanges; /* rows are exchanged first: each worker has its features of all rows */
    bool        votes;
    int64_t (*room)(const pli_grower *g); /* cells of a leaf's memory; NULL: those of a histogram */
    plait_status (*tables)(pli_grower *g); /* Collective. */
    plait_status (*make)(pli_grower *g);   /* memory; rows have been exchanged */
    /** Notes what tables hold, past a barrier: steps count from there. NULL: there is nothing to note. */
    plait_status (*begin)(pli_grower *g);
    /** Fills `side` of n leaves that will be split; NULL: each worker sees by itself where its rows go. Collective. */
    plait_status (*sides)(pli_grower *g, int64_t n, const int64_t *which);
    /** Finds the splits of n leaves, n <= slots, and of their siblings `large`, whose sums are those of the parent.
     *  large NULL: of the root, whose total is set. Collective. */
    plait_status (*search)(pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large);
    void (*free)(pli_grower *g);
} pli_tree_cut;

extern const pli_tree_cut pli_cut_rows, pli_cut_features, pli_cut_voting;
/** Once tables are there, with two replicas: bins->from, to and lacks are those of the features that the worker has.
 *  Errors: ENOMEM. */
plait_status pli_cut_features_hold(pli_run *run);
/** pli_heirs_turn of a cut by features. */
plait_status pli_cut_features_turn(pli_run *run, bool came);

struct pli_grower {
    pli_run             *run;
    const pli_bins      *bins;
    pli_bin_rows        *rows;
    pli_histograms       histograms;
    pli_tree_rules       rules;
    const pli_tree_cut  *cut;
    void                *shared;  /* of the cut */
    int64_t              elected; /* features of a leaf that are summed, of a cut that votes */
    int64_t              slots;   /* histograms of a step, at most */
    uint32_t            *order, *moved[2]; /* [n] rows by leaf; scratch */
    bool                *use;     /* [used] features of this tree; NULL: all. With rules.tries: [2 slots, used], those
                                   * of a split */
    int64_t              tree;    /* the number of the tree at hand */
    int64_t             *stack;   /* [leaves] newest first: leaves that may be split */
    int64_t              waiting; /* how many */
    pli_growing_leaf    *leaf;    /* [leaves] */
    int64_t              leaves;
    pli_tree_node       *node;    /* [2 leaves] */
    int64_t              nodes;
    int32_t             *code;    /* [codes] of its splits by texts */
    int64_t              codes, code_capacity;
    pli_sum_cell       **spare;   /* histograms that are not in use */
    int64_t              spares;
    const pli_sum_scale *scale;   /* of the tree at hand */
    pli_sum_cell        *cell;    /* [n]                 */
};

/* What cuts use of grow.c. */
/** Adds up the worker's rows of n leaves into the memory that `to` names for each (NULL: their sums). */
void pli_grow_add_up(const pli_grower *g, int64_t n, pli_growing_leaf *const *leaf, pli_sum_cell *to);
/** Ends the clock of a step. stand_in: others have died in it, and the worker pushes what it inherits of their part. */
plait_status pli_grow_clock(pli_grower *g, plait_status (*stand_in)(pli_grower *g));
/** Adds up the worker's rows of each leaf that has sums: rows have come, or other features. */
void pli_grow_recount(pli_grower *g);
bool         pli_grow_may_split(const pli_grower *g, const pli_growing_leaf *leaf);
/** The features that leaf `item` of a step may be split by; NULL: all. */
const bool *pli_grow_features(const pli_grower *g, const pli_growing_leaf *leaf, int64_t item);
/** The larger sibling's sums are its parent's less those of the smaller one. */
void pli_grow_take_off(const pli_grower *g, pli_growing_leaf *large, const pli_growing_leaf *small);
/** Finds the split of a leaf by its sums; item: which of the leaves that are searched at the same time. */
void pli_grow_find(const pli_grower *g, pli_growing_leaf *leaf, int64_t item);
/** Finds the splits of n leaves and of their siblings by sums that are there, those of the siblings their parents'. */
void pli_grow_search(const pli_grower *g, int64_t n, pli_growing_leaf **small, pli_growing_leaf **large);
/** Item i of a step: 2 p is leaf p, 2 p + 1 its sibling; the root is alone. */
static inline int64_t pli_grow_items(int64_t n, pli_growing_leaf **large) { return large != NULL ? 2 * n : n; }
static inline pli_growing_leaf *pli_grow_item(pli_growing_leaf **small, pli_growing_leaf **large, int64_t i) {
    return large == NULL ? small[i] : i % 2 == 0 ? small[i / 2] : large[i / 2];
}

/** Parts the rows of a leaf by its split (part.c), each side in its order; returns how many go left, or -1: out of
 *  memory. */
int64_t      pli_part_rows(pli_grower *g, const pli_growing_leaf *leaf);
/** side: bit i says whether row i of the leaf goes left. */
void         pli_part_sides(const pli_grower *g, const pli_growing_leaf *leaf, uint64_t *side);
plait_status pli_grower_make(pli_grower *g);
void         pli_grower_free(pli_grower *g);
/** There are more rows: in no leaf yet, and those in leaves are forgotten. */
plait_status pli_grower_resize(pli_grower *g);
/** The worker has other features: histograms have another size, and the leaves' sums are forgotten. */
plait_status pli_grower_refit(pli_grower *g);
/** Grows tree `tree` from gradients cell [n], and moves the scores of the rows. Nodes are left in g->node. Collective.
 *  Rows that the tree does not see lose their gradients if they travel along. */
plait_status pli_grow_tree(pli_grower *g, int64_t tree, pli_sum_cell *cell, const pli_sum_scale *scale);
/** Do the trees of a round see the row? */
bool pli_grow_sees(const pli_grower *g, int64_t round, int64_t row);

/* --- scores (scores.c) -------------------------------------------------------------------------------------------- */

/** The scores of rows from `first` on become those of no tree. */
void pli_scores_begin(const pli_trees *trees, pli_bin_rows *rows, int64_t first);
/** Adds trees from .. to - 1 to the scores of rows from `first` on. rows: those that are trained on, or those of the
 *  validation. */
void pli_scores_add(const pli_run *run, pli_bin_rows *rows, int64_t first, int64_t from, int64_t to);
/** Adds the tree at hand to the scores of the rows that are trained on: by their leaves. */
void pli_scores_take(const pli_grower *g);

/* --- heirs (heirs.c) ---------------------------------------------------------------------------------------------- */

/** Before each sum over all workers: the rows that fall to this worker in it are there. Errors: EIO, EFORMAT,
 *  ENOMEM. */
plait_status pli_heirs_gather(pli_run *run);
/** Others have died in the clock that is ending: the leaves have only those of their rows that come to this worker.
 *  end, when these are summed: the leaves have all of the worker's rows. Errors: as above. */
plait_status pli_heirs_begin(pli_grower *g);
plait_status pli_heirs_end(pli_grower *g);
/** Between two rounds of a run with --balance dynamic: all decide whose each block is from here on, and who has got or
 *  given one makes its rows anew. Collective. Errors: as above. */
plait_status pli_heirs_move(pli_run *run);
/** Between two rounds workers may have come or gone, or died: the rows, or the features, are from here on those that
 *  the worker holds. came: it has just come, and has the trees. Errors: as above. */
plait_status pli_heirs_turn(pli_run *run, bool came);

#endif
