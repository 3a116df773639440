/* learn/trees/trees.h - decision trees. Gradient-boosted ones (`--model gbdt`) are a sum of small trees, each fitted to
 * the gradients that the sum before it leaves. A forest (`--model forest`) is a mean of large trees, each fitted to the
 * labels of other rows, drawn by chance.
 *
 *     fields.c       what trees split by: numbers, and columns of texts
 *     model.c        what a tree is; scores of rows
 *     bins.c         values become bins: cuts at quantiles
 *     rows.c         a worker's rows, as bins
 *     histogram.c    sums of gradients by bin
 *     split.c        the best split of a histogram
 *     monotone.c     features along which scores may only rise, or fall
 *     queries.c      the queries of a worker's rows
 *     gradients.c    gradients of a round, as whole numbers
 *     grow.c         a tree, step by step
 *     cut_rows.c     a step where each worker has some of the rows
 *     cut_features.c a step where each worker has some of the features, of all rows
 *     cut_voting.c   a step where workers vote for the features whose sums are worth sending
 *     columns.c      workers exchange bins, so that each has its features of all rows
 *     part.c         rows of a leaf go to its children
 *     bag.c          which rows a tree of a forest sees, and how often; what trees say of rows that they have not seen
 *     boost.c        the rounds: gradients, trees, validation, checkpoints
 *     gbdt_learner.c the learner gbdt: options, what follows from the data
 *     forest_learner.c  the learner forest, which shares all but its options and its rounds
 *     gbdt_model.c   the fitted model: its file, its importances
 *     shap.c         what each feature adds to a row's score
 *     export_*.c     the model as ONNX, and as XGBoost has it
 *
 * A tree. A node either splits rows by one feature (x <= cut goes left, and each split knows where a missing value
 * goes), or is a leaf with a value. A feature may be a column of texts: its values are categories. Rows with some of
 * them go left; all others, and rows without one, go right. A row's score is the base plus the values of the leaves
 * that it reaches; for K > 2 classes there are K scores, and each round makes K trees.
 *
 * Bins. Each feature's values are cut into at most `--bins` bins of about equal weight, once, before the training. The
 * cuts come from all rows, or from a sample of them that a hash of the row's number picks; so they are the same on each
 * worker and for each number of workers. A row is then a byte a feature, laid out twice (dense), or a list of its bins
 * that are not the feature's commonest (sparse).
 *
 * The histogram. For each bin, the sums over a node's rows of gradient g and curvature h, and the number of rows. They
 * are whole numbers: g and h of a round are scaled by powers of two that follow from the largest |g| and h of all
 * rows, and rounded. Sums of whole numbers do not depend on their order. So each worker reads the same sums, whatever
 * the topology, the transport or the number of workers, and all workers find the same splits: the trees are the same
 * bit for bit, under `--reduce plain` as well. A bin takes two cells:
 *
 *     cell 0    sum of g
 *     cell 1    sum of h, times 2^count_bits, plus the number of rows
 *
 * One more bin after the last holds the node's own sums. Of sparse rows the commonest bin is what is left of these.
 *
 * Workers may have rows or features, or vote (--trees-by): cut_*.c. By rows:
 *
 * A step is one clock. Each worker adds up the histograms of some nodes over its own rows, and incs them into the
 * table `histogram`. The table only grows: a step's sums are what has come since the step before, so nothing is zeroed
 * (integers wrap around, and differences stay exact). Then all workers search these histograms, and split:
 *
 *     leaf-wise     the leaf with the largest gain is split; the step's histogram is that of its smaller child
 *     depth-wise    all leaves of a level are split; the step has the smaller child of each
 *     newest first  some of the newest leaves are split (a forest): few histograms wait, however large the tree
 *
 * The larger child's histogram is its parent's less its sibling's, without a pass over rows.
 *
 * Papers: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 2001; Chen and
 * Guestrin, "XGBoost: A Scalable Tree Boosting System", KDD 2016 (gains, missing values); Ke et al., "LightGBM: A
 * Highly Efficient Gradient Boosting Decision Tree", NIPS 2017 (histograms by leaves). bag.c has those of forests. */
#ifndef PLI_LEARN_TREES_H
#define PLI_LEARN_TREES_H

#include <math.h>

#include "learn/supervised/fitted.h"

/* --- fields (fields.c) -------------------------------------------------------------------------------------------- */

/* The data have one feature (a key) for each text of a column. Trees take the column as one feature, whose value is the
 * number of the text, its code. In a row that is laid out for trees it is code + 1; 0 stands for no text that is
 * known. */
typedef struct pli_fields {
    int64_t  keys;   /* features of the data */
    int64_t *first;  /* [features + 1] first key of each; NULL: feature f is key f, and all are numbers */
    int32_t *codes;  /* [features] how many texts it has; 0: it is a number */
    int32_t *of_key; /* [keys] which feature it belongs to */
    int64_t *column; /* [features] of the schema */
} pli_fields;

/** Groups the features of the data by columns if any column has texts; *features_out: how many trees see.
 *  Errors: EFORMAT: the columns have not `keys` features, or too many; ENOMEM. */
plait_status pli_fields_make(const pli_schema *schema, int64_t keys, pli_fields *fields, int64_t *features_out,
                             plait_error *err);
void         pli_fields_free(pli_fields *fields);
/** Adds the name of a feature of trees, or the text of a code. */
void         pli_fields_name(const pli_fields *fields, const pli_schema *schema, int64_t feature, pli_text *text);
void         pli_fields_code(const pli_fields *fields, const pli_schema *schema, int64_t feature, int32_t code,
                             pli_text *text);

/** The feature that a key belongs to; -1: none. */
static inline int64_t pli_field_of(const pli_fields *fields, uint64_t key) {
    if (key >= (uint64_t)fields->keys) return -1;
    return fields->first != NULL ? fields->of_key[key] : (int64_t)key;
}
static inline bool pli_field_is_text(const pli_fields *fields, int64_t feature) {
    return fields->first != NULL && fields->codes[feature] > 0;
}
/** Its value in a row that has this value at the key. */
static inline float pli_field_value(const pli_fields *fields, int64_t feature, uint64_t key, float value) {
    if (!pli_field_is_text(fields, feature)) return value;
    return value > 0 ? (float)(key - (uint64_t)fields->first[feature] + 1) : 0;
}

/* --- trees (model.c) ---------------------------------------------------------------------------------------------- */

typedef struct pli_tree_node {
    int32_t feature;      /* of the data; -1: a leaf                                         */
    int32_t left, right;  /* nodes of the tree, counted from its first                       */
    int32_t bin;          /* in training: values of this bin and of lower ones go left       */
    bool    missing_left; /* a missing value goes left                                       */
    int32_t codes;        /* of a split by texts: how many go left; 0: of any other node */
    int64_t code;         /* where they begin in the trees' codes; they increase         */
    int64_t rows;         /* training rows that reached the node                             */
    double  cut;          /* x <= cut goes left                                              */
    double  value;        /* of a leaf, with the learning rate                               */
    double  gain;         /* of the split                                                    */
    double  cover;        /* sum of h over the node's rows                                   */
} pli_tree_node;

/* Trees in the order in which they were made: tree t belongs to score t % columns. */
typedef struct pli_trees {
    int64_t        features, columns, n; /* n: trees; features: fields.first groups them */
    pli_fields     fields;
    double        *base;                 /* [columns] score of no tree at all   */
    int64_t       *start;                /* [n + 1] first node of each tree     */
    pli_tree_node *node;                 /* [start[n]]                          */
    bool           shares;               /* sums are shares of votes for classes (bag.c), and scores their logarithms */
    int32_t       *code;                 /* [codes] of splits by texts          */
    int64_t        codes;
    int64_t        start_capacity, node_capacity, code_capacity;
} pli_trees;

/** schema: groups features by columns of texts; NULL: trees split by the features of the data. */
plait_status pli_trees_make(pli_trees *trees, const pli_schema *schema, int64_t features, int64_t columns,
                            plait_error *err);
void         pli_trees_free(pli_trees *trees);
/** Adds a tree of these nodes. code: the codes into which node.code points. Errors: ENOMEM, and then there is no new
 *  tree. */
plait_status pli_trees_add(pli_trees *trees, int64_t nodes, const pli_tree_node *node, const int32_t *code,
                           plait_error *err);
/** Keeps the first n trees. */
void pli_trees_cut(pli_trees *trees, int64_t n);
/** Are the nodes trees, whose features are below features? false: not a model, or no memory to look. */
bool pli_trees_are_sound(const pli_trees *trees);

/** Does a split by texts send this code left? */
static inline bool pli_tree_has_code(const int32_t *code, const pli_tree_node *node, int64_t wanted) {
    const int32_t *at = code + node->code;
    for (int32_t n = node->codes; n > 0;) { /* by halves */
        const int32_t half = n / 2;
        if (at[half] == wanted) return true;
        if (at[half] < wanted) at += half + 1, n -= half + 1;
        else n = half;
    }
    return false;
}
/** Which way a value goes at a split. */
static inline bool pli_tree_goes_left(const int32_t *code, const pli_tree_node *node, float value) {
    if (node->codes > 0) return pli_tree_has_code(code, node, (int64_t)value - 1);
    return value != value ? node->missing_left : (double)value <= node->cut;
}
/** Lays a row out in full, x [features] being zeros before; or, with zero, takes it away again. */
void pli_trees_spread(const pli_trees *trees, const pli_block *block, int64_t row, bool zero, float *x);

/* How trees score rows; the form is the pli_trees. */
extern const pli_scoring_ops pli_trees_scoring;

/* --- bins (bins.c) ------------------------------------------------------------------------------------------------ */

enum { PLI_BINS_MOST = 255 };

/* The features that have more than one bin are used; they are numbered anew. */
typedef struct pli_bins {
    const pli_fields *fields;
    int64_t  features;   /* of trees                                                        */
    int32_t  used;
    int32_t *feature;    /* [used] which feature of trees                                   */
    int32_t *place;      /* [features] the number among the used; -1: not used              */
    double  *cut;        /* [cut_start[used]] x is in bin b if b cuts lie below it; of texts: the code of each bin */
    int64_t *cut_start;  /* [used + 1]                                                      */
    int32_t *count;      /* [used] bins of values; a missing value, or a text without a bin, is in bin `count` */
    uint8_t **of_code;   /* [used] the bin of each code; NULL: it is a number               */
    bool    *missing;    /* [used] there are rows without a value                           */
    int32_t *zero;       /* [used] the bin of 0, which rows of sparse data do not name      */
    int32_t *common;     /* [used] the bin that most sampled rows are in                    */
    int64_t *offset;     /* [used + 1] first bin of each, of all bins                       */
    int32_t  from, to;   /* histograms have the used features from .. to - 1: all but for a cut by features */
    double   filled;     /* share of the sampled values that are not in the commonest bin   */
} pli_bins;

/** The first bin of a used feature in a histogram, and the cells of one: bins, and the sums of the node. */
static inline int64_t pli_bins_place(const pli_bins *bins, int32_t j) {
    return bins->offset[j] - bins->offset[bins->from];
}
static inline int64_t pli_bins_cells(const pli_bins *bins) { return pli_bins_place(bins, bins->to) + 1; }

/** Finds the cuts, at most `most` bins a feature. Collective over the workers. Errors: ENOMEM, EREFUSED. */
plait_status pli_bins_make(pli_run *run, int64_t most, const pli_trees *trees, pli_bins *bins);
void         pli_bins_free(pli_bins *bins);

/** The bin of a value of used feature j: how many cuts lie below it, by halves and without branches. */
static inline int32_t pli_bins_of(const pli_bins *bins, int32_t j, float value) {
    const double *cut = bins->cut + bins->cut_start[j], *at = cut;
    if (bins->of_code[j] != NULL) return value >= 1 ? bins->of_code[j][(int64_t)value - 1] : bins->count[j];
    if (value != value) return bins->missing[j] ? bins->count[j] : bins->zero[j];
    for (int32_t n = bins->count[j] - 1; n > 0;) {
        const int32_t half = (n + 1) / 2;
        at += half & -(int32_t)(at[half - 1] < (double)value);
        n -= half;
    }
    return (int32_t)(at - cut);
}

/* --- rows (rows.c) ------------------------------------------------------------------------------------------------ */

enum { PLI_ROWS_WIDTH = 16 }; /* features of a stretch of dense bins, at most */

/* Rows as bins. Dense: stretches of features, each row-major. Sparse: for each row, its bins by their place in a
 * histogram, increasing. */
typedef struct pli_bin_rows {
    int64_t   n;
    int32_t   stretches;
    int32_t  *first;      /* [stretches + 1] first used feature of each stretch            */
    uint8_t **dense;      /* [stretches] [n, first[s + 1] - first[s]]; NULL: sparse        */
    uint8_t **column;     /* [used] [n] the same by features, to part rows by one          */
    uint8_t  *columns;    /* the memory of all columns                                     */
    int64_t  *start;      /* [n + 1] sparse                                                */
    uint32_t *entry;      /* [start[n]]                                                    */
    float    *weight;     /* [n] with the weight of the class                              */
    double   *target;     /* [n] what losses take                                          */
    int64_t  *number;     /* [n] in the data set                                           */
    bool     *held;       /* [n] held back for validation; NULL: none is                   */
    int32_t  *votes;      /* [n] of a forest: how many rounds the row's score is the sum of; NULL: of gbdt */
    double   *score;      /* [columns, n]                                                  */
    int64_t  *query;      /* [queries + 1] first row of each, and n; NULL: no ranking      */
    int64_t   queries;
    bool      of_all;     /* they are the rows of all workers, with the bins of some features (columns.c) */
    int64_t   own;        /* the first that is the worker's own, in the order of its blocks */
} pli_bin_rows;

/** The own rows of data. split: rows may be held back for validation. */
plait_status pli_bin_rows_make(pli_run *run, const pli_bins *bins, const pli_dataset *data, bool split,
                               pli_bin_rows *rows);
void         pli_bin_rows_free(pli_bin_rows *rows);
/** For a loss of rankings: finds the queries. Collective. Errors: EFORMAT a row names no query, or a query comes
 *  again. */
plait_status pli_bin_rows_query(pli_run *run, const pli_dataset *data, pli_bin_rows *rows);
/** Each worker gives its bins away, and gets those of its own features, of all rows; bins->from and to are set, and
 *  what each row has beside its bins is gathered (columns.c). Collective. Errors: ENOMEM; EREFUSED 2^32 rows or
 *  more. */
plait_status pli_bin_rows_exchange(pli_run *run, pli_bins *bins, pli_bin_rows *rows);
/** The worker that has a used feature then. */
int32_t pli_bins_owner(const pli_bins *bins, int32_t workers, int32_t j);
/** The first query that begins at a row or behind it. */
int64_t pli_bin_rows_query_from(const pli_bin_rows *rows, int64_t row);
/** The bin of used feature j of a row. */
int32_t pli_bin_rows_at(const pli_bin_rows *rows, const pli_bins *bins, int64_t row, int32_t j);
/** Which node of the tree a row ends in. */
const pli_tree_node *pli_bin_rows_leaf(const pli_bin_rows *rows, const pli_bins *bins, const pli_tree_node *tree,
                                       const int32_t *code, int64_t row);

/* --- gradients (gradients.c) -------------------------------------------------------------------------------------- */

typedef struct pli_sum_cell {
    int64_t g, hn; /* g; h << count_bits | rows */
} __attribute__((aligned(16))) pli_sum_cell;

/* How cells are read. */
typedef struct pli_sum_scale {
    int32_t count_bits;
    double  g, h; /* one unit of g and of h; powers of two */
} pli_sum_scale;

static inline int64_t pli_sum_rows(const pli_sum_scale *s, int64_t hn) {
    return hn & (((int64_t)1 << s->count_bits) - 1);
}
static inline double pli_sum_h(const pli_sum_scale *s, int64_t hn) { return (double)(hn >> s->count_bits) * s->h; }
static inline double pli_sum_g(const pli_sum_scale *s, int64_t g) { return (double)g * s->g; }

/* The gradients of a round. */
typedef struct pli_gradients {
    const pli_goal *goal;
    double          kink;  /* a loss with a kink is as curved as one of residuals of at least this size */
    pli_sum_cell   *cell;  /* [columns, n] */
    pli_sum_scale  *scale; /* [columns]    */
    double         *most;  /* [2, columns] the largest |g| and h */
    pli_total       loss;  /* of the rows trained on */
    /* of a forest: */
    const double   *base;  /* [columns] what trees are fitted to the labels less of; NULL: of gbdt */
    uint64_t        seed;
    int64_t         round;
    double          mean;  /* of the bag's draws */
} pli_gradients;

/** Memory for the gradients of these rows. */
plait_status pli_gradients_make(pli_run *run, const pli_bin_rows *rows, pli_gradients *to);
/** At the rows' scores; losses: adds them up, too. Collective over the workers. Errors: EDIVERGED scores are not
 *  finite. */
plait_status pli_gradients_take(pli_run *run, const pli_bin_rows *rows, bool losses, pli_gradients *to);

/* --- histograms (histogram.c) ------------------------------------------------------------------------------------- */

typedef struct pli_histograms {
    const pli_bins     *bins;
    const pli_bin_rows *rows;
    pli_pool           *pool;
    int64_t             size;    /* cells of one: bins, and the sums of the node */
    pli_sum_cell       *scratch; /* [threads, size] */
} pli_histograms;

plait_status pli_histograms_make(pli_histograms *h, const pli_bins *bins, const pli_bin_rows *rows, pli_pool *pool,
                                 plait_error *err);
void         pli_histograms_free(pli_histograms *h);
/** Adds up n rows into out [size], which is overwritten. */
void pli_histograms_add(const pli_histograms *h, int64_t n, const uint32_t *order, const pli_sum_cell *cell,
                        pli_sum_cell *out);
/** The sums of all workers are there: fills the bins that sparse rows do not name. */
void pli_histograms_complete(const pli_histograms *h, pli_sum_cell *sums);

/* --- splits (split.c) --------------------------------------------------------------------------------------------- */

typedef struct pli_tree_rules {
    double  l1, l2, min_gain, min_hessian, rate;
    int64_t min_rows;
    int64_t leaves, depth; /* depth 0: any */
    bool    level;         /* depth-wise */
    double  subsample, colsample;
    bool    bagged;   /* of a forest: rows are drawn with repeats, `subsample` times each on average */
    int64_t tries;    /* how many features each split chooses from; 0: all that the tree may split by */
    /* of splits by texts: */
    double  text_smooth, text_l2; /* pull the means that texts are sorted by to 0; added to l2 */
    int64_t text_most;            /* texts of one side, at most */
    int64_t text_rows;            /* a side, and each step of the search, has so many rows */
    int8_t *sign; /* [used] 1: scores must not fall as the feature grows; -1: not rise; 0: free. NULL: all are free */
} pli_tree_rules;

/* Between which values a leaf must stay, without the learning rate, so that scores rise or fall as they must. */
typedef struct pli_bounds {
    double low, high;
} pli_bounds;
#define PLI_UNBOUND ((pli_bounds){ -(double)INFINITY, (double)INFINITY })

typedef struct pli_split {
    double       gain; /* 0: none */
    int32_t      used, bin;
    bool         missing_left;
    bool         by_set; /* by texts: the bins in `set` go left, and no other */
    uint64_t     set[(PLI_BINS_MOST + 64) / 64];
    double       l2;     /* its children's values have so much more L2 */
    pli_sum_cell left;
} pli_split;

static inline bool pli_set_has(const uint64_t *set, int32_t bin) { return (set[bin / 64] >> (bin % 64) & 1) != 0; }

/** The best split of a node with these sums [size]. use [used]: which features may be taken; NULL: all. bounds: of the
 *  node; only read if rules->sign is there. */
pli_split pli_split_find(const pli_bins *bins, const pli_tree_rules *rules, const pli_sum_scale *scale,
                         const pli_sum_cell *sums, pli_bounds bounds, const bool *use, pli_pool *pool);
/** The largest gain that each used feature has by itself, gain [used]; 0: none. The arguments are those of
 *  pli_split_find. */
void pli_split_gains(const pli_bins *bins, const pli_tree_rules *rules, const pli_sum_scale *scale,
                     const pli_sum_cell *sums, pli_bounds bounds, const bool *use, pli_pool *pool, double *gain);
/** The value of a leaf with these sums, without the learning rate. */
double pli_leaf_value(const pli_tree_rules *rules, double g, double h, pli_bounds bounds);

/** Reads names of features with signs, "+age,-price" (monotone.c). sign [used]. Errors: EINVAL. */
plait_status pli_monotone_read(const pli_schema *schema, const pli_bins *bins, const char *text, int8_t *sign,
                               plait_error *err);

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
/** Ends the clock of a step. */
plait_status pli_grow_clock(pli_grower *g);
bool         pli_grow_may_split(const pli_grower *g, const pli_growing_leaf *leaf);
/** The features that leaf `item` of a step may be split by; NULL: all. */
const bool *pli_grow_features(const pli_grower *g, const pli_growing_leaf *leaf, int64_t item);
/** The larger sibling's sums are its parent's less those of the smaller one. */
void pli_grow_take_off(const pli_grower *g, pli_growing_leaf *large, const pli_growing_leaf *small);
/** Finds the splits of n leaves and of their siblings by sums that are there. */
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
/** Grows tree `tree` from gradients cell [n], and moves the scores of the rows. Nodes are left in g->node. Collective.
 *  scores [n]: of the tree's column. Rows that the tree does not see lose their gradients if they travel along. */
plait_status pli_grow_tree(pli_grower *g, int64_t tree, pli_sum_cell *cell, const pli_sum_scale *scale,
                           double *scores);

/** Adds a tree's values to the scores of the rows that it has not seen. tree: its number. */
void pli_grow_add_others(const pli_grower *g, const pli_tree_node *node, const int32_t *code, int64_t tree,
                         double *score);

/* --- the run ------------------------------------------------------------------------------------------------------ */

typedef struct pli_gbdt {
    pli_fit        fit;
    pli_bins       bins;
    pli_bin_rows   rows, validation;
    pli_gradients  gradients;
    pli_grower     grower;
    pli_trees      trees;
    bool           exhausted; /* no tree of the last round had a split */
    pli_sums       left_out;  /* of a forest: rows judged by trees that have not seen them */
    /* as checkpoints hold trees */
    int64_t       *kept_whole; /* [nodes, 5] */
    double        *kept_real;  /* [nodes, 4] */
    int64_t       *kept_sets;
} pli_gbdt;

static inline pli_gbdt *pli_gbdt_of(const pli_run *run) { return run->state; }

plait_status pli_gbdt_train(pli_run *run);

/* An option that gbdt and forest share; usual: its preset. */
#define PLI_TREES_CATEGORIES(usual)                                                                                   \
    { .name = "categories", .kind = PLAIT_OPTION_NAME, .preset = usual, .names = "sets apart",                       \
      .help = "columns of texts: sets: a column is one feature, split by sets of its texts; apart: each text is a "   \
              "feature" }

/* How the work on trees is cut. */
#define PLI_TREES_BY                                                                                                  \
    { .name = "trees-by", .kind = PLAIT_OPTION_NAME, .preset = "rows", .names = "rows features voting",               \
      .help = "what a worker has: rows (all their features), features (of all rows), or voting: rows, and only the "  \
              "features that workers vote for are summed" },                                                          \
    { .name = "elect", .kind = PLAIT_OPTION_COUNT, .preset = "0",                                                    \
      .help = "of --trees-by voting: features whose sums travel at a leaf; 0: a seventh of them, from 2 to 40" }
/* The tables of the cuts. */
#define PLI_TREES_TABLES                                                                                              \
    { .name = "splits", .what = "with --trees-by features: the best split that each worker found for each leaf" },    \
    { .name = "sides", .what = "with --trees-by features: the side of a split that each row goes to, a bit a row" }

/* What gbdt and forest share of a run (gbdt_learner.c), in this order. check: refuses settings. prepare: of the data;
 * the learner then sets the rules. settle: `rounds` is the default of --epochs. bin: the bins. measured: rows, with
 * memory for so many leaves that wait for their split. */
plait_status pli_trees_check(pli_run *run);
void         pli_trees_reads(const pli_run *run, plait_data_opts *files);
plait_status pli_trees_prepare(pli_run *run);
void         pli_trees_settle(pli_run *run, int64_t rounds);
plait_status pli_trees_bin(pli_run *run);
plait_status pli_trees_measured(pli_run *run, int64_t slots, double waiting);
plait_status pli_trees_finish(pli_run *run, plait_model *model);
void         pli_trees_end(pli_run *run);
void         pli_trees_options(const pli_run *run, pli_text *text);
int32_t      pli_gbdt_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
plait_status pli_gbdt_restore(pli_run *run);

/* --- bags (bag.c) ------------------------------------------------------------------------------------------------- */

/* Shares stay this far from 0 and 1: else one row without a vote would make the log loss infinite. */
#define PLI_LEAST_SHARE 1e-6

/** How often a tree of the round sees a row of the data: a Poisson number of this mean. */
int32_t pli_bag_draw(uint64_t seed, int64_t round, int64_t row, double mean);
/** The gradients of squared loss at no score: -times y and times, of a label's number or a class's 0 or 1, less `base`
 *  [columns]. out [columns]: g, h. */
static inline void pli_bag_gradient(const pli_goal *goal, double y, double times, const double *base, double *g,
                                    double *h) {
    for (int64_t c = 0; c < goal->columns; c++) {
        const double wanted = goal->classes == 0 ? y : goal->columns > 1 ? (double)((int64_t)y == c) : (double)(y > 0);
        g[c] = -times * (wanted - base[c]);
        h[c] = times;
    }
}
/** Sums of values over trees become scores: sum [columns] is overwritten. trees: how many were added up. */
void pli_bag_scores(const pli_trees *forest, double trees, double *sum);
/** Judges each row trained on by the trees that have not seen it. Collective. */
plait_status pli_bag_judge(pli_run *run, pli_sums *out);

/* Trees as arrays, for files and checkpoints: whole [nodes, 5] is feature, left, right, missing_left, rows; real
 * [nodes, 4] is cut, value, gain, cover. sets [length]: for each split by texts its node, how many codes go left, and
 * these; none: there are no such splits. */
enum { PLI_TREES_WHOLE = 5, PLI_TREES_REAL = 4 };
typedef struct pli_trees_arrays {
    int64_t        n, nodes, length;
    const int64_t *start, *whole, *sets;
    const double  *real;
} pli_trees_arrays;
void    pli_trees_lay_out(const pli_trees *trees, int64_t *whole, double *real);
/** Returns how long it is; sets NULL: only that. */
int64_t pli_trees_lay_out_sets(const pli_trees *trees, int64_t *sets);
/** Makes trees out of these arrays; base is left alone. Errors: ENOMEM, EFORMAT. */
plait_status pli_trees_take(pli_trees *trees, const pli_trees_arrays *from, plait_error *err);

/* A model. */
typedef struct pli_gbdt_model {
    pli_fitted fitted;
    pli_trees  trees;
} pli_gbdt_model;

extern const pli_fit_ops   pli_gbdt_fit_ops;
extern const pli_model_ops pli_gbdt_model_ops;
/** The trees are there: how they score. */
void pli_gbdt_open_model(plait_model *model);
void pli_gbdt_close(plait_model *model);
/** Writes the model for other programs: plait_learner.export_onnx, pli_model_ops.xgboost. */
struct pli_export;
plait_status pli_gbdt_export(const plait_model *model, struct pli_export *to, plait_error *err);
plait_status pli_gbdt_xgboost(const plait_model *model, pli_text *json, plait_error *err);
/** What each feature adds to the scores: pli_model_ops.contributions. */
int64_t      pli_gbdt_contributions_width(const plait_model *model);
plait_status pli_gbdt_contributions(const plait_model *model, const pli_dataset *data, double *out, plait_error *err);

#endif
