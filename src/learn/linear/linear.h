/* learn/linear/linear.h - a linear model's scores and gradients over rows of blocks.
 *
 *     s_ik = b_k + sum_j x_ij w_jk        g_jk = sum_i weight_i d loss_i / d s_ik  x_ij
 *
 * Rows are read once, some at a time: their scores, their losses and their share of the gradient, while their entries
 * are in the cache. A batch is split among threads by fixed groups of blocks, whose sums are added in order, so that
 * the number of threads never changes a result.
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

/** Is there no such feature? (2^63 of them are INT64_MAX: then there is every one.) */
static inline bool pli_linear_lacks(const pli_linear *linear, uint64_t key) {
    return linear->features > 0 && linear->features < INT64_MAX && key >= (uint64_t)linear->features;
}

/* Weights as a pass reads them: one of f32, f64 [rows, K]; bias [K]. */
typedef struct pli_weights {
    const float  *f32;
    const double *f64;
    const double *bias;
} pli_weights;

/* Some rows' entries, whose columns may have been renumbered. */
typedef struct pli_visit {
    pli_part        part;
    const uint32_t *local; /* index of each entry, in the order in which the rows are visited; NULL: block->col */
} pli_visit;

/* Where a gradient is added to: one of f32, f64 [rows, K]; bias [K]. */
typedef struct pli_slopes {
    float  *f32; /* with K = 1 and without renumbered columns only */
    double *f64;
    double *bias;
} pli_slopes;

/** Adds the gradient of the rows to g, their losses to sums. scratch [2K]. Labels must be known, indices in range. */
void pli_linear_gradient(const pli_linear *linear, const pli_weights *weights, const pli_visit *rows,
                         const pli_slopes *g, pli_sums *sums, double *scratch);

/** Scores of one row: entries [n] with index and value (NULL: ones); indices from `limit` on are left out. */
void pli_linear_score(const pli_linear *linear, const pli_weights *weights, int64_t limit, int64_t n,
                      const uint32_t *index, const float *value, double *score);

/* --- gradients of a batch ---------------------------------------------------------------------------- */

/* The sums of up to `groups` groups of blocks. Group of block b: floor(b groups / blocks). */
typedef struct pli_gradient {
    const pli_linear *linear;
    pli_pool         *pool;
    int32_t           blocks, groups;
    int32_t           first_group, own_groups; /* those that this worker's blocks fall into            */
    int64_t           size, capacity;          /* values of a gradient now, at most                     */
    double           *sum;                     /* [own_groups, size]; after a run the first is the total */
    float            *narrow;                  /* the same in single precision, instead of sum           */
    bool              is_narrow;
    int64_t           stride;                  /* >= K                                                  */
    double           *bias, *scratch;          /* [own_groups, stride], [own_groups, 2 stride]          */
    pli_sums         *sums;                    /* [own_groups]                                          */
} pli_gradient;

/** any: batches may have parts of any blocks, not the own ones only. */
plait_status pli_gradient_init(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                               const pli_dataset *data, bool any, int32_t groups, plait_error *err);
/** The same for pli_gradient_run_apart: as many sums as threads. */
plait_status pli_gradient_init_apart(pli_gradient *gradient, const pli_linear *linear, pli_pool *pool,
                                     plait_error *err);
void         pli_gradient_destroy(pli_gradient *gradient);

/** Sums in single precision from now on, in half the memory. K = 1, before the first run, no `local` in any. */
void pli_gradient_narrow(pli_gradient *gradient);
/** Gives back the memory of the sums until the next run. */
void pli_gradient_rest(pli_gradient *gradient);
/** Value i of the total. */
static inline double pli_gradient_at(const pli_gradient *gradient, int64_t i) {
    return gradient->is_narrow ? (double)gradient->narrow[i] : gradient->sum[i];
}
static inline void pli_gradient_put(pli_gradient *gradient, int64_t i, double x) {
    if (gradient->is_narrow) gradient->narrow[i] = (float)x;
    else gradient->sum[i] = x;
}

/** Gradient of the batch: sum [rows, K] in gradient->sum, bias [K] in gradient->bias, losses in sums[0]. local:
 *  NULL, or the indices of all entries in order, where part i begins at local_start[i]. Errors: ENOMEM. */
plait_status pli_gradient_run(pli_gradient *gradient, const pli_weights *weights, int64_t rows, const pli_batch *batch,
                              const uint32_t *local, const int64_t *local_start, plait_error *err);

/** Gradients of the parts first .. first + n - 1 of a batch, n <= own_groups, each by itself: of part first + i in sum
 *  + i size, bias + i stride, sums[i]. local, local_start: of the whole batch. Errors: ENOMEM. */
plait_status pli_gradient_run_apart(pli_gradient *gradient, const pli_weights *weights, int64_t rows,
                                    const pli_batch *batch, int32_t first, int32_t n, const uint32_t *local,
                                    const int64_t *local_start, plait_error *err);

/** How many parts from `first` on are next: as many as there are sums, or are left. */
static inline int32_t pli_gradient_apart(const pli_gradient *gradient, const pli_batch *batch, int32_t first) {
    return batch->parts - first < gradient->own_groups ? batch->parts - first : gradient->own_groups;
}

/** Sums of weight_i x_ij^2, the same for each column k, into the gradient's sum [rows, K]; of weight_i into bias[0]. */
plait_status pli_gradient_squares(pli_gradient *gradient, int64_t rows, const pli_batch *batch, plait_error *err);
/** The same of parts, each by itself, as pli_gradient_run_apart. */
plait_status pli_gradient_squares_apart(pli_gradient *gradient, int64_t rows, const pli_batch *batch, int32_t first,
                                        int32_t n, plait_error *err);

#endif
