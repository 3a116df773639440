/* learn/trees/bins.h - values as bins, and rows as bins: what a training on trees reads instead of the data. */
#ifndef PLI_LEARN_TREES_BINS_H
#define PLI_LEARN_TREES_BINS_H

#include "learn/trees/tree.h"

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
    bool    *lacks;      /* [used] no rows add to the feature here: another worker has it; NULL: this one has all */
    double   filled;     /* share of the sampled values that are not in the commonest bin   */
} pli_bins;

/** The first bin of a used feature in a histogram, and the cells of one: bins, and the sums of the node. */
static inline int64_t pli_bins_place(const pli_bins *bins, int32_t j) {
    return bins->offset[j] - bins->offset[bins->from];
}
static inline int64_t pli_bins_cells(const pli_bins *bins) { return pli_bins_place(bins, bins->to) + 1; }

/** Has this worker the feature, one of from .. to - 1? */
static inline bool pli_bins_has(const pli_bins *bins, int32_t j) { return bins->lacks == NULL || !bins->lacks[j]; }

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

/** The sampled rows of all workers, as words (sample.c); *words_out is the caller's. Collective. Errors: ENOMEM. */
plait_status pli_sample_gather(const pli_run *run, const pli_text *own, uint32_t **words_out, int64_t *n_out);

/* --- rows (rows.c) ------------------------------------------------------------------------------------------------ */

enum { PLI_ROWS_WIDTH = 32 }; /* features of a stretch of dense bins, at most */
/* Rows of which a smaller share of the bins are not their feature's commonest are sparse: these cost four bytes for
 * each bin that they name, dense ones two bytes a feature. */
#define PLI_ROWS_SPARSE_BELOW 0.2

/** Bytes of a row in a stretch of so many features: no row lies on two cache lines, and groups of eight can be read. */
static inline int64_t pli_rows_stride(int64_t width) { return width <= 8 ? 8 : width <= 16 ? 16 : PLI_ROWS_WIDTH; }

/* Rows of a block. */
typedef struct pli_rows_part {
    int32_t block;     /* of the data set                                                    */
    int64_t first, n;  /* where they lie among all                                           */
    bool    steps;     /* this worker adds them up in steps                                  */
    bool    inherited; /* it is about to, since the worker that did has died in this clock   */
} pli_rows_part;

/* Rows as bins. Dense: stretches of features, each row-major. Sparse: for each row, its bins by their place in a
 * histogram, increasing. */
typedef struct pli_bin_rows {
    int64_t   n;
    int32_t   stretches;
    int32_t  *first;      /* [stretches + 1] first used feature of each stretch            */
    uint8_t **dense;      /* [stretches] [n, pli_rows_stride(its features)]; NULL: sparse  */
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
    int32_t   parts;
    pli_rows_part *part;  /* [parts] own blocks, and behind them those of workers that have died */
} pli_bin_rows;

/** The own rows of data. split: rows may be held back for validation. Collective over the workers. */
plait_status pli_bin_rows_make(pli_run *run, const pli_bins *bins, const pli_dataset *data, bool split,
                               pli_bin_rows *rows);
/** The rows of n blocks, in their order. */
plait_status pli_bin_rows_of(pli_run *run, const pli_bins *bins, const pli_dataset *data, int32_t n,
                             const pli_block *const *block, bool split, pli_bin_rows *rows);
void         pli_bin_rows_free(pli_bin_rows *rows);
/** Frees the bins alone; what each row has beside them stays. */
void         pli_bin_rows_forget(pli_bin_rows *rows);
/** For a loss of rankings: finds the queries of these n blocks. Errors: EFORMAT a row names no query. */
plait_status pli_bin_rows_query(const pli_run *run, const pli_dataset *data, int32_t n, const pli_block *const *block,
                                pli_bin_rows *rows);
/** No query of own rows comes again. Collective over the workers. Errors: EFORMAT. */
plait_status pli_bin_rows_agree(const pli_run *run, const pli_dataset *data, const pli_bin_rows *rows);
/** Each worker gives its bins away, and gets those of its own features, of all rows; bins->from and to are set, and
 *  what each row has beside its bins is gathered (columns.c). Collective. Errors: ENOMEM; EREFUSED 2^32 rows or
 *  more. */
plait_status pli_bin_rows_exchange(pli_run *run, pli_bins *bins, pli_bin_rows *rows);
/** The worker that has a used feature then. */
int32_t pli_bins_owner(const pli_bins *bins, int32_t workers, int32_t j);
/** Stretches of the worker's features, as their columns have them. false: no memory. */
bool pli_columns_stretch(const pli_run *run, const pli_bins *bins, pli_bin_rows *to);
/** With two replicas there is no exchange, and each worker reads its features of all rows (columns_read.c). hold: it
 *  has the features of the workers for which `mine` [holders] says so; sets from, to and lacks. read: rows become
 *  those of all workers, with the scores of the trees that there are. read_again: for other features; nothing but bins
 *  changes, which are gone after an error. Not collective. Errors: EIO, EFORMAT, ENOMEM. */
plait_status pli_bins_hold(const pli_run *run, pli_bins *bins, const bool *mine);
plait_status pli_bin_rows_read(pli_run *run, const pli_bins *bins, pli_bin_rows *rows);
plait_status pli_bin_rows_read_again(pli_run *run, const pli_bins *bins, pli_bin_rows *rows);
/** The first query that begins at a row or behind it. */
int64_t pli_bin_rows_query_from(const pli_bin_rows *rows, int64_t row);
/** The bin of used feature j of a row. */
int32_t pli_bin_rows_at(const pli_bin_rows *rows, const pli_bins *bins, int64_t row, int32_t j);
/** Which node of the tree a row ends in. */
const pli_tree_node *pli_bin_rows_leaf(const pli_bin_rows *rows, const pli_bins *bins, const pli_tree_node *tree,
                                       const int32_t *code, int64_t row);

#endif
