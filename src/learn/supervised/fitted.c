/* Fitted supervised models: their metadata, predictions, and figures on data in memory. See fitted.h. */
#include "learn/supervised/fitted.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

plait_status pli_fitted_take(pli_run *run, plait_model *model) {
    pli_fit    *fit = pli_fit_of(run);
    pli_fitted *fitted = pli_fitted_of(model);
    fitted->goal = fit->goal;
    fitted->goal.label = model->label;
    fitted->goal.class_weight = NULL;
    fitted->intercept = fit->intercept;
    fitted->solution = fit->solution;
    fit->solution = (pli_solution){ 0 };
    model->features = run->features;
    return PLAIT_OK;
}

void pli_fitted_close(plait_model *model) { pli_solution_free(&pli_fitted_of(model)->solution); }

/* --- its file ----------------------------------------------------------------------------------------------------- */

void pli_fitted_metadata(const plait_model *model, pli_model_meta *meta) {
    const pli_fitted *fitted = pli_fitted_of(model);
    pli_format_f64(fitted->goal.parameter, meta->text[0]);
    pli_model_meta_add(meta, "plait.parameter", meta->text[0]);
    pli_model_meta_add(meta, "plait.intercept", fitted->intercept ? "1" : "0");
}

plait_status pli_fitted_read(const pli_safetensors *file, const char *path, plait_model *model, const char *loss,
                             plait_error *err) {
    pli_fitted *fitted = pli_fitted_of(model);
    const char *parameter = pli_safetensors_metadata(file, "plait.parameter");
    int64_t     intercept;
    bool        is_class;
    if (parameter == NULL || !pli_parse_f64(parameter, &fitted->goal.parameter) ||
        !pli_model_count(file, "plait.intercept", 1, &intercept))
        return pli_not_a_model(path, "its description is incomplete", err);
    PLI_TRY(pli_loss_is_class(loss, &is_class, err));
    if (is_class != (model->classes > 0)) return pli_not_a_model(path, "its labels do not match its form", err);
    PLI_TRY(pli_loss_find(loss, model->classes, &fitted->goal.loss, err));
    fitted->intercept = intercept != 0;
    fitted->goal.classes = model->classes;
    fitted->goal.columns = model->classes > 2 ? model->classes : 1;
    fitted->goal.label = model->label;
    return PLAIT_OK;
}

/* --- predictions -------------------------------------------------------------------------------------------------- */

typedef struct prediction {
    const pli_goal *goal;
    bool            proba;
    double         *scores; /* the next row's: blocks come in their order */
    int64_t         width;
} prediction;

static bool predict_row(void *user, const pli_block *block, int64_t row, double label, const double *score,
                        double *scratch) {
    prediction *p = user;
    double     *out = p->scores;
    (void)block;
    (void)row;
    (void)label;
    (void)scratch;
    p->scores += p->width;
    if (p->proba && p->goal->classes > 0) p->goal->loss->probability(p->goal->columns, score, out);
    else if (p->goal->classes > 0) out[0] = (double)pli_goal_class(p->goal, score);
    else out[0] = pli_goal_number(p->goal, score[0]);
    return true;
}

plait_status pli_fitted_predict(const plait_model *model, const pli_dataset *data, bool proba, double *scores,
                                plait_error *err) {
    const pli_fitted *f = pli_fitted_of(model);
    const int64_t     classes = f->goal.classes;
    void             *scorer = NULL;
    if (proba && classes > 0 && f->goal.loss->probability == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "%s has no probabilities; a logistic model has them", model->name);
    prediction   p = { &f->goal, proba, scores, proba && classes > 0 ? classes : 1 };
    plait_status status = f->scoring->open(f->form, &f->solution, &scorer, err);
    for (int32_t b = 0; status == PLAIT_OK && b < pli_dataset_own_blocks(data); b++)
        status = f->scoring->block(f->form, &f->solution, scorer, pli_dataset_block(data, b), predict_row, &p, err);
    f->scoring->close(scorer);
    return status;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

plait_status pli_fitted_eval(const plait_model *model, const pli_dataset *data, plait_report *report,
                             plait_error *err) {
    const pli_fitted *f = pli_fitted_of(model);
    const pli_scoring scoring = { f->scoring, f->form, &f->solution, f->row_labels };
    pli_total         total = { 0 };
    pli_ranking       ranking = { 0 };
    double            auc = NAN;
    plait_status      status = pli_judge(&f->goal, &scoring, data, NULL, NULL, NULL, &total, &ranking, err);
    pli_sums          sums = pli_total_sums(&total);
    if (status == PLAIT_OK) status = pli_sums_check(&sums, "the data", err);
    if (status == PLAIT_OK && ranking.n > 0) status = pli_ranking_auc(&ranking, NULL, &auc, err);
    if (status == PLAIT_OK) {
        pli_judge_report(report, &f->goal, &sums, auc);
        report->rows = (int64_t)sums.rows;
        status = pli_label_describe(data, model->classes, report->label, err);
    }
    pli_ranking_free(&ranking);
    return status;
}
