/* learn/supervised/scale.h - training in units that suit the rule, reporting in the data's own.
 *
 * Column j is seen as x'_j = f_j (x_j - c_j). Weights w' of x' mean w_j = f_j w'_j and b = b' - sum_j c_j w_j in
 * the data's units. No entry is rewritten: a pass takes w and b, and its gradient g, r (of w and b) becomes
 * g'_j = f_j (g_j - c_j r). So that the objective stays the one of w, the penalties of w'_j get factors: f_j on
 * l1, f_j^2 on l2; with both there is no scaling.
 */
#ifndef PLI_LEARN_SCALE_H
#define PLI_LEARN_SCALE_H

#include "data/data.h"
#include "learn/loss/metrics.h"

typedef struct pli_scale {
    int64_t features;
    double *factor; /* [features] f; NULL: no scaling at all */
    double *centre; /* [features] c; NULL: all 0             */
} pli_scale;

/* The rows that are measured: those of the own blocks among all `blocks`, or a sample of them. */
typedef struct pli_scale_rows {
    const pli_block *const *block; /* [own] */
    int32_t                 own, blocks;
    int64_t                 rows, entries; /* of all workers, rows without those skipped */
    bool                    sampled;
    bool (*skip)(void *user, int64_t row); /* is the row not trained on? NULL: all are   */
    void *user;
} pli_scale_rows;

/** Decides from the rows of all workers; the scale is the same on each. Columns of dense data (more than half of all
 *  values given) are centred and get unit variance; without intercept they get unit mean square alone. Columns of
 *  sparse data are divided by their largest |x|, if any is above 1. Rows count by their weights. A sample may have
 *  missed the large values of a column. So by a sample, columns without spread are not stretched, and columns of sparse
 *  data are only made smaller, if any value is above 10. Collective over the workers. */
plait_status pli_scale_measure(plait_comm *comm, int64_t features, bool intercept, const pli_scale_rows *rows,
                               pli_scale *scale_out, plait_error *err);
void         pli_scale_destroy(pli_scale *scale);

/** Turns w' [features, K] and bias' [K], in place, into w and bias. */
void pli_scale_weights(const pli_scale *scale, int64_t k, double *w, double *bias);

/** The way back: computes w' [features, K] and bias' [K] from w [features, K] and bias [K]. */
void pli_scale_back(const pli_scale *scale, int64_t k, const double *w, const double *bias, double *scaled,
                    double *scaled_bias);

/** Turns g [features, K], the gradient by w, in place into the gradient by w'. r [K]: the gradient by b. */
void pli_scale_gradient(const pli_scale *scale, int64_t k, double *g, const double *r);

/** The penalty's factor on w'_j. */
double pli_scale_penalty(const pli_scale *scale, int64_t j, double l1, double l2);

#endif
