/* learn/trees/sums.h - gradients, their sums by bin (histograms), and the best split of a histogram. */
#ifndef PLI_LEARN_TREES_SUMS_H
#define PLI_LEARN_TREES_SUMS_H

#include <math.h>

#include "learn/trees/bins.h"

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
/** There are more rows; those `before` keep theirs. */
plait_status pli_gradients_resize(const pli_run *run, const pli_bin_rows *rows, int64_t before, pli_gradients *to);
/** At the rows' scores; losses: adds them up, too. Collective over the workers. Errors: EDIVERGED scores are not
 *  finite. */
plait_status pli_gradients_take(pli_run *run, const pli_bin_rows *rows, bool losses, pli_gradients *to);
/** Those of the rows from `from` on, by scales that are there. */
plait_status pli_gradients_add(const pli_run *run, const pli_bin_rows *rows, int64_t from, pli_gradients *to);

/* --- histograms (histogram.c) ------------------------------------------------------------------------------------- */

typedef struct pli_histograms {
    const pli_bins     *bins;
    const pli_bin_rows *rows;
    pli_pool           *pool;
    int64_t             size;    /* cells of one: bins, and the sums of the node */
    pli_sum_cell       *scratch; /* [threads - 1, size] */
    bool               *begun;   /* [threads, stretches] has the thread added up rows of the stretch? */
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

#endif
