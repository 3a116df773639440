/* learn/kmeans/kmeans.h - clusters: k centres such that rows are near to the nearest of them.
 *
 *     kmeans.c   the learner: options, its table, a clock, an epoch's end, what is learnt
 *     pass.c     what a clock adds up of its rows
 *     first.c    the first centres: k-means||, or those that were given
 *     seeds.c    the k centres of a few weighted rows, out of many beginnings
 *     far.c      rows that take the place of empty clusters' centres
 *     listed.c   lists of rows that all workers get to see
 *     clusters.c the model: answers, figures, its form in ONNX
 *
 * What is made small is the inertia, the sum over rows of weight times the squared distance to the nearest centre.
 * There is one table, `sums`, with a row for each cluster: the sum of the cluster's rows (weight times features), their
 * weight, and their squared distances. A centre is the first divided by the second. So all that a run has learnt lies
 * in the table, and any worker can go on from it.
 *
 *     Lloyd's passes   a clock is a pass over all rows, with the same centres on all workers. It adds up what the next
 *                      centres are made of; at its end all read the table, and zero it.
 *     mini-batches     (--batch) sums and weights are those of all rows so far, so a centre moves by 1 / weight of the
 *                      way to each row: nothing is zeroed, and a worker may read what is out of date.
 *
 * Papers: Lloyd, "Least Squares Quantization in PCM", IEEE Transactions on Information Theory 1982; Sculley, "Web-Scale
 * K-Means Clustering", WWW 2010; Bahmani et al., "Scalable K-Means++", VLDB 2012. */
#ifndef PLI_LEARN_KMEANS_H
#define PLI_LEARN_KMEANS_H

#include "learn/learner.h"
#include "tensor/nearest/nearest.h"

/* --- a pass (pass.c) ---------------------------------------------------------------------------------------------- */

/* The columns of the table behind the d sums of features. */
enum { PLI_KMEANS_MASS, PLI_KMEANS_COST, PLI_KMEANS_MORE };

/* What stays from clock to clock. */
typedef struct pli_kmeans_pass {
    int64_t     k, d;
    bool        dense;   /* rows are laid out in full, for products of matrices */
    pli_pool   *pool;
    pli_centres centres; /* ready for rows */
    void       *ready;   /* their memory */
    char       *room;    /* [threads] rooms of room_bytes */
    size_t      room_bytes;
    double     *slot;    /* [slots, k, d + PLI_KMEANS_MORE] sums of some blocks each */
    int32_t     slots;
    double     *push;    /* [k, d + PLI_KMEANS_MORE] */
    /* of Lloyd's passes: a point that stays, and of each block the squared distances of its rows to it; below 0: not
     * known yet */
    pli_centres anchor;
    void       *anchor_ready;
    double     *spread; /* [blocks]; NULL: of mini-batches, which measure each row's distance to its centre */
} pli_kmeans_pass;

/** Memory for passes over run's rows; end gives it back, also after an error. */
plait_status pli_kmeans_pass_begin(pli_kmeans_pass *pass, const pli_run *run, int64_t k, bool dense);
void         pli_kmeans_pass_end(pli_kmeans_pass *pass);
/** Bytes that begin will take. */
double pli_kmeans_pass_bytes(int64_t k, int64_t d);
/** Of Lloyd's passes, before the first: anchor [d] stays the caller's, and is the same on all workers. */
plait_status pli_kmeans_pass_anchor(pli_kmeans_pass *pass, const pli_run *run, const float *anchor);
/** Rows are compared with centre [k, d] from now on, which stays the caller's and is used. */
void pli_kmeans_pass_centres(pli_kmeans_pass *pass, const float *centre);
/** Adds what the rows of a batch come to to the table; under --reduce exact block by block. said: their squared
 *  distances, as losses. */
plait_status pli_kmeans_pass_run(pli_run *run, pli_kmeans_pass *pass, const pli_batch *batch, plait_table *table,
                                 plait_step_sums *said);

/** A block's rows as kernels take them. */
static inline pli_csr pli_kmeans_csr(const pli_block *block) {
    return (pli_csr){ .rows = block->rows, .row_start = block->row_start, .col = block->col, .value = block->value,
                      .packed = block->packed };
}
/** The nearest centre of each row of a block, and the squared distance to it: nearest [rows], distance [rows]. scratch:
 *  of pli_nearest_scratch_bytes. */
static inline void pli_kmeans_nearest(const pli_centres *centres, const pli_block *block, void *scratch,
                                      uint32_t *nearest, double *distance) {
    const pli_csr      x = pli_kmeans_csr(block);
    const pli_assigned out = { .nearest = nearest, .distance = distance };
    pli_nearest_csr(centres, &x, (pli_rows){ .n = block->rows }, scratch, &out);
}
static inline double pli_kmeans_weight(const pli_block *block, int64_t row) {
    return block->weight != NULL ? (double)block->weight[row] : 1;
}

/* --- lists of rows (listed.c) ------------------------------------------------------------------------------------- */

/* Rows, each with a key, laid out in full. */
typedef struct pli_listed {
    int64_t  d, n, capacity[3];
    int64_t *row; /* [n] number in the data set */
    double  *key; /* [n] */
    float   *x;   /* [n, d] */
} pli_listed;

/** One more; n is as it was where there is no memory. */
bool pli_listed_add(pli_listed *list, const pli_block *block, int64_t row, double key);
/** The lists of all workers, one behind the other, at the end of *all. Collective. */
plait_status pli_listed_share(pli_run *run, const pli_listed *mine, pli_listed *all);
/** Sorts the rows from first on by their numbers. false: out of memory. */
bool pli_listed_sort(pli_listed *list, int64_t first);
void pli_listed_free(pli_listed *list);

/* --- the run ------------------------------------------------------------------------------------------------------ */

enum { PLI_KMEANS_LAST, PLI_KMEANS_TOTAL, PLI_KMEANS_REFILLED, PLI_KMEANS_KEPT };

typedef struct pli_kmeans {
    bool            mini;    /* mini-batches */
    bool            taken;   /* centre is what the table's sums say */
    bool            given;   /* the first centres are those of a file or a model */
    bool            dense;
    int64_t         k, d;
    plait_table    *table;
    pli_kmeans_pass pass;
    float          *centre;  /* [k, d] */
    float          *anchor;  /* [d] beside the table in checkpoints: the first of the first centres */
    double         *sums;    /* [k, d + PLI_KMEANS_MORE] as read */
    /* beside the table in checkpoints: the inertia of the last epoch, below 0: none; of mini-batches, all that was
     * added up so far; and how many clusters were refilled at the last epoch's end */
    double          kept[PLI_KMEANS_KEPT];
} pli_kmeans;

/** centre [k, d]: the first ones, if a file or a model gives them. */
plait_status pli_kmeans_given(pli_run *run, bool *given_out);
/** centre [k, d]: the first ones, drawn from the data. Collective; once there is a job, whose replicas carry its sums
 *  when a worker dies. */
plait_status pli_kmeans_draw(pli_run *run);
/** centre [k, d] out of weighted rows x [n, d]; n may be below k. Collective, with the same rows on all workers. */
plait_status pli_kmeans_seeds(pli_run *run, int64_t n, const float *x, const float *weight);
/** Puts rows that are farthest from their centres in the place of the centres of clusters where empty [k] is true.
 *  *refilled_out: how many of these are not on a centre already. Collective, and again where somebody dies. */
plait_status pli_kmeans_refill(pli_run *run, const bool *empty, int64_t *refilled_out);

/* --- the model (clusters.c) --------------------------------------------------------------------------------------- */

/* The centres made ready twice: for dense rows and for others. */
typedef struct pli_clusters {
    int64_t     k, d;
    pli_centres dense, sparse;
    void       *memory[2];
} pli_clusters;

plait_status pli_clusters_open(plait_model *model, plait_error *err);
void         pli_clusters_close(plait_model *model);
int64_t      pli_clusters_width(const plait_model *model, plait_answer answer);
plait_status pli_clusters_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                                  plait_error *err);
int64_t      pli_clusters_measures(const plait_model *model);
plait_status pli_clusters_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
int32_t      pli_clusters_figures(const plait_model *model, const double *sums, plait_figure *figures);
plait_status pli_clusters_export(const plait_model *model, struct pli_export *to, plait_error *err);

#endif
