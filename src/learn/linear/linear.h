/* learn/linear/linear.h - a linear model's scores and gradients over rows of blocks.
 *
 *     s_ik = b_k + sum_j x_ij w_jk        g_jk = sum_i weight_i d loss_i / d s_ik  x_ij
 *
 * Rows are read once, some at a time: scores, losses and the share of the gradient are computed while the entries are
 * in the cache. Threads split a batch by fixed groups of blocks, whose sums are added in order, so the number of
 * threads never changes a result.
 */
#ifndef PLI_LEARN_LINEAR_H
#define PLI_LEARN_LINEAR_H

#include "data/data.h"
#include "learn/supervised/goal.h"

/* The form of a linear model. */
typedef struct pli_linear {
    pli_goal goal;
    int64_t  features; /* rows of the weights; 0 where they grow by key */
    bool     intercept;
} pli_linear;

/** Is the key beyond the features? (2^63 features are noted as INT64_MAX; then no key is.) */
static inline bool pli_linear_lacks(const pli_linear *linear, uint64_t key) {
    return linear->features > 0 && linear->features < INT64_MAX && key >= (uint64_t)linear->features;
}

/* Weights as a pass reads them: one of f32, f64 [rows, K]; bias [K]. */
typedef struct pli_weights {
    const float  *f32;
    const double *f64;
    const double *bias;
} pli_weights;

/* The rows of a part, whose columns may be renumbered. */
typedef struct pli_visit {
    pli_part        part;
    const uint32_t *local; /* the column of each entry, in the order in which rows are visited; NULL: block->col */
} pli_visit;

/* A gradient that rows are added to: one of f32, f64 [rows, K]; bias [K]. */
typedef struct pli_slopes {
    float  *f32; /* only with K = 1 and without renumbered columns */
    double *f64;
    double *bias;
} pli_slopes;

/** The target and the weight of row r of a block; false: its label is unknown, and the row does not count. */
bool pli_linear_weigh(const pli_linear *linear, const pli_block *block, int64_t r, double *y_out, double *weight_out);

/** Adds the gradient of the rows to g, their losses to sums. scratch [2K]. Labels must be known, indices in range. */
void pli_linear_gradient(const pli_linear *linear, const pli_weights *weights, const pli_visit *rows,
                         const pli_slopes *g, pli_sums *sums, double *scratch);

/** Scores of one row: entries [n] with index and value (NULL: ones); indices from `limit` on are left out. */
void pli_linear_score(const pli_linear *linear, const pli_weights *weights, int64_t limit, int64_t n,
                      const uint32_t *index, const float *value, double *score);

/* --- gradients of a batch ---------------------------------------------------------------------------- */

/* The sums of up to `groups` groups of blocks. Block b is in group floor(b groups / blocks). */
typedef struct pli_gradient {
    const pli_linear *linear;
    pli_pool         *pool;
    int32_t           blocks, groups;
    int32_t           first_group, own_groups; /* the groups of this worker's blocks                    */
    int64_t           size, capacity;          /* values of a gradient; values that there is memory for */
    double           *sum;                     /* [own_groups, size]; after a run the first is the total */
    float            *narrow;                  /* replaces sum in single precision                       */
    bool              is_narrow;
    int64_t           stride;                  /* >= K                                                  */
    double           *bias, *scratch;          /* [own_groups, stride], [own_groups, 2 stride]          */
    pli_sums         *sums;                    /* [own_groups]                                          */
} pli_gradient;

/** any: batches may have parts of any blocks, not only of own ones. */
plait_status pli_gradient_init(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                               const pli_dataset *data, bool any, int32_t groups, plait_error *err);
/** For pli_gradient_run_apart instead: there are as many sums as threads. */
plait_status pli_gradient_init_apart(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                                     plait_error *err);
void         pli_gradient_destroy(pli_gradient *gradient);

/** Takes sums in single precision from now on, in half the memory. Only with K = 1, without `local`, and before the
 *  first run. */
void pli_gradient_narrow(pli_gradient *gradient);
/** Frees the memory of the sums until the next run. */
void pli_gradient_rest(pli_gradient *gradient);
/** Value i of the total. */
static inline double pli_gradient_at(const pli_gradient *gradient, int64_t i) {
    return gradient->is_narrow ? (double)gradient->narrow[i] : gradient->sum[i];
}
static inline void pli_gradient_put(pli_gradient *gradient, int64_t i, double x) {
    if (gradient->is_narrow) gradient->narrow[i] = (float)x;
    else gradient->sum[i] = x;
}

/** Computes the gradient of the batch: sum [rows, K] in gradient->sum, bias [K] in gradient->bias, losses in sums[0].
 *  local: NULL, or the columns of all entries in order; part i begins at local_start[i]. Errors: ENOMEM. */
plait_status pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                              const uint32_t *local, const int64_t *local_start, plait_error *err);

/** Computes the gradients of parts first .. first + n - 1 of a batch, n <= own_groups, each by itself: that of part
 *  first + i is in sum + i size, bias + i stride, sums[i]. local, local_start: of the whole batch. Errors: ENOMEM. */
plait_status pli_gradient_run_apart(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                    const pli_batch *batch, int32_t first, int32_t n, const uint32_t *local,
                                    const int64_t *local_start, plait_error *err);

/** How many parts from `first` on run_apart can take: as many as there are sums, or as are left. */
static inline int32_t pli_gradient_apart(const pli_gradient *gradient, const pli_batch *batch, int32_t first) {
    return batch->parts - first < gradient->own_groups ? batch->parts - first : gradient->own_groups;
}

/** Adds up weight_i x_ij^2, the same for each k, in the gradient's sum [rows, K], and weight_i in bias[0]. */
plait_status pli_gradient_squares(pli_gradient *gradient, int64_t rows, const pli_batch *batch, plait_error *err);
/** The same for parts, each by itself, as pli_gradient_run_apart. */
plait_status pli_gradient_squares_apart(pli_gradient *gradient, int64_t rows, const pli_batch *batch, int32_t first,
                                        int32_t n, plait_error *err);

#endif
