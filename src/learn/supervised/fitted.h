/* learn/supervised/fitted.h - a fitted supervised model: a solution, and what its scores mean. The memory of such a
 * model (learner->model_bytes) begins with a pli_fitted. */
#ifndef PLI_LEARN_FITTED_H
#define PLI_LEARN_FITTED_H

#include "learn/model/model.h"
#include "learn/supervised/fit.h"

typedef struct pli_fitted {
    pli_goal               goal; /* its label is the model's, its class_weight NULL */
    bool                   intercept;
    pli_solution           solution;
    const pli_scoring_ops *scoring;
    const void            *form;       /* argument of scoring */
    int64_t                row_labels; /* so many labels of a row have scores */
} pli_fitted;

static inline pli_fitted         *pli_fitted_of(const plait_model *model) { return model->own; }
static inline const pli_solution *pli_fitted_solution(const plait_model *model) {
    return &pli_fitted_of(model)->solution;
}

/** Moves the run's solution, and copies its goal, into a new model. */
plait_status pli_fitted_take(pli_run *run, plait_model *model);
/** Gives the memory back: plait_learner.close. */
void         pli_fitted_close(plait_model *model);

/** Functions for pli_model_ops. */
void         pli_fitted_metadata(const plait_model *model, pli_model_meta *meta);
plait_status pli_fitted_predict(const plait_model *model, const pli_dataset *data, bool proba, double *scores,
                                plait_error *err);
plait_status pli_fitted_eval(const plait_model *model, const pli_dataset *data, plait_report *report, plait_error *err);
/** Reads what a file says besides the solution. loss: its name. Errors: EFORMAT, ENAME. */
plait_status pli_fitted_read(const pli_safetensors *file, const char *path, plait_model *model, const char *loss,
                             plait_error *err);

struct pli_export;
/** Adds the input x [rows, features] in the data's units, and returns the features as the model reads them, in float32.
 *  If columns are read less their origins, x is of doubles. */
const char *pli_fitted_export_rows(const plait_model *model, struct pli_export *to, int64_t features);
/** Adds the outputs of an ONNX file, made from scores [rows row_labels, K]. */
void pli_fitted_export(const plait_model *model, struct pli_export *to, plait_type type, const char *scores);

#endif
