/* learn/pca/pca.h - principal components: the directions in which the rows vary most.
 *
 *     C = 1 / (W - 1) sum_i weight_i (x_i - m)t (x_i - m)        C v_k = lambda_k v_k, the largest lambda first
 *
 * Clock 0 adds up the rows, so that all workers know the mean m. What follows is one of two solvers:
 *
 *   exact        up to EXACT_MAX features: clock 1 adds up the Gram matrix of x - m, [d, d], whose eigenvectors every
 *                worker takes by itself
 *   randomised   wide data, sparse too: block power iteration with re-orthogonalisation (Halko, Martinsson, Tropp,
 *   "Finding
 *                structure with randomness", SIAM Review 2011, algorithm 4.4). Clock t adds up Z_t = C Q_t, [d, q],
 *                where Q_t is an orthonormal basis of Z_(t-1), and Q_1 of random columns. The centred rows never exist:
 *                a pass takes X Q and Xt Y, and takes the mean's part off the small results.
 *
 * State lies in tables alone, so a run goes on from a checkpoint, or when a rank has died, by reading them. */
#ifndef PLI_LEARN_PCA_H
#define PLI_LEARN_PCA_H

#include "learn/learner.h"
#include "learn/model/model.h"

typedef struct pli_pca {
    int64_t      d, k, q; /* features, components, columns of the randomised solver's table; q 0: exact */
    plait_table *moments; /* [1, d + 2]: sums of columns, of weights, of squared lengths                */
    plait_table *product; /* [d, d] or [d, q]: the Gram matrix, or Z                                    */
    double      *mean;    /* [d] */
    double      *basis;   /* [d, q]: Q of the clock */
    double      *values;  /* [d + 2], then as product has them */
    double      *sum;     /* what the worker adds, as product has it */
    double       mass;    /* W */
} pli_pca;

static inline pli_pca *pli_pca_of(const pli_run *run) { return run->state; }
static inline int64_t  pli_pca_columns(const pli_pca *p) { return p->q > 0 ? p->q : p->d; }

/** pca_pass.c: adds the batch's rows to sum: of clock 0 to moments. Errors: ENOMEM. */
plait_status pli_pca_add_moments(pli_run *run, const pli_part *part, double *moments);
plait_status pli_pca_add_gram(pli_run *run, const pli_part *part);
plait_status pli_pca_add_power(pli_run *run, const pli_part *part);

/** pca_model.c: what its models do. */
plait_status pli_pca_open(plait_model *model, plait_error *err);
void         pli_pca_close(plait_model *model);
int64_t      pli_pca_width(const plait_model *model, plait_answer answer);
plait_status pli_pca_predict(const plait_model *model, plait_answer answer, const plait_rows *rows, double *out,
                             plait_error *err);
plait_status pli_pca_measure(const plait_model *model, const plait_rows *rows, double *sums, plait_error *err);
int32_t      pli_pca_figures(const plait_model *model, const double *sums, plait_figure *figures);
plait_status pli_pca_export(const plait_model *model, struct pli_export *to, plait_error *err);
typedef struct pli_pca_model {
    int64_t       d, k;
    const double *mean, *component, *variance; /* [d], [k, d], [k]: of the model's values */
    double       *turned;                      /* [d, k]: components, for products with rows; over sqrt(variance) to
                                                  whiten */
    double       *offset;                      /* [k]: mean times turned */
    double        mean_square;                 /* the mean's squared length */
} pli_pca_model;

#endif
