/* cv_seen.h - what rows that were held out show beyond single figures: a classification's ROC curves and calibration, a
 * regression's residuals. */
#ifndef PLI_CLI_CV_SEEN_H
#define PLI_CLI_CV_SEEN_H

#include <plait/model.h>

#include "base/base.h"

enum {
    PLI_SEEN_POINTS = 101,     /* of a curve: at false positive rates 0, 0.01, ..., 1 */
    PLI_SEEN_BINS = 10,        /* of probabilities                                    */
    PLI_SEEN_CURVES = 20,      /* models of more classes get no ROC curves            */
    PLI_SEEN_RESIDUALS = 1000, /* how many of all rows are kept for the picture       */
};

/* Rows whose predicted probability is in one tenth of 0 to 1. */
typedef struct pli_seen_bin {
    double weight, predicted, right; /* sums: of weights, of weight times probability, of weights that came true */
} pli_seen_bin;

/* What the rows of one fold showed. */
typedef struct pli_seen {
    int64_t      curves;     /* 1 for two classes (the second against the first), else the classes; 0: none */
    double      *auc;        /* [curves] NaN: the fold lacks the class, or has no other                      */
    double      *rate;       /* [curves, POINTS] true positive rates                                         */
    bool         calibrated; /* bin is filled                                                                */
    pli_seen_bin bin[PLI_SEEN_BINS];   /* two classes: of the second; more: of the class with most probability */
    int64_t      values;               /* rows of a regression; 0: it is none */
    double      *predicted, *residual; /* [values]; residual: truth less prediction */
} pli_seen;

/** Predicts the rows, and fills out. values: the model predicts numbers. A model without probabilities leaves out
 *  empty. Errors: as plait_model_predict; ENOMEM. */
plait_status pli_seen_make(const plait_model *model, const plait_data *data, bool values, pli_seen *out,
                           plait_error *err);
void         pli_seen_free(pli_seen *seen);
/** The ROC curve of scores: AUC (NaN: one kind is missing), and rate [POINTS]. positive and weight [n]; weight NULL:
 *  all 1. Rows of equal scores are one step. Errors: ENOMEM. */
plait_status pli_seen_roc(int64_t n, const double *score, const bool *positive, const double *weight, double *auc_out,
                          double rate[PLI_SEEN_POINTS], plait_error *err);
/** Adds roc, calibration and residuals to an object: of the folds seen [n], NULL where one is not done. labels: of the
 *  classes; NULL: none. */
void pli_seen_json(const pli_seen *const *seen, int32_t n, char *const *labels, pli_text *text);

#endif
