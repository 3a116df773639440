/* The model as an object: form, weights, names. Its file is modelfile.c, its use predict.c. */
#include "learn/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out,
                               plait_error *err) {
    pli_solution s = { .rows = rows };
    s.weight = rows <= INT64_MAX / columns ? pli_calloc((size_t)(rows * columns), sizeof *s.weight) : NULL;
    s.bias = pli_calloc((size_t)columns, sizeof *s.bias);
    s.key = keyed ? pli_calloc((size_t)rows, sizeof *s.key) : NULL;
    *solution_out = s;
    if (s.weight != NULL && s.bias != NULL && (!keyed || s.key != NULL)) return PLAIT_OK;
    pli_solution_free(solution_out);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld x %lld weights", (long long)rows, (long long)columns);
}

void pli_solution_free(pli_solution *solution) {
    pli_free(solution->key);
    pli_free(solution->weight);
    pli_free(solution->bias);
    pli_free(solution->net);
    *solution = (pli_solution){ 0 };
}

static plait_status take_labels(plait_model *model, int64_t classes, plait_error *err) {
    model->label = pli_calloc((size_t)classes, sizeof *model->label);
    model->label_text = pli_calloc((size_t)classes, sizeof *model->label_text);
    bool ok = model->label != NULL && model->label_text != NULL;
    for (int64_t k = 0; ok && k < classes; k++) {
        model->label[k] = pli_schema_label_value(model->schema, k);
        pli_text text = { 0 };
        pli_schema_label_text(model->schema, k, &text);
        ok = text.data != NULL && !text.failed;
        if (ok) model->label_text[k] = pli_strdup(text.data);
        ok = ok && model->label_text[k] != NULL;
        pli_text_free(&text);
    }
    return ok ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for %lld labels", (long long)classes);
}

static plait_status take_net(plait_model *model, const pli_model_form *form, plait_error *err) {
    const pli_net_kind *kind = pli_net_kind_find(form->name);
    if (kind == NULL) return PLAIT_OK;
    PLI_TRY(pli_net_create(kind, form->layers, model->schema, &model->linear, 1, &model->net, err));
    model->linear.net = model->net;
    if (model->solution.net != NULL && model->solution.rows == model->net->values) return PLAIT_OK;
    return pli_fail(err, PLAIT_EFORMAT, "%s of layers %s has %lld values, not %lld", form->name, model->net->layers,
                    (long long)model->net->values, (long long)model->solution.rows);
}

plait_status pli_model_make(const pli_model_form *form, pli_solution *solution, pli_schema *schema,
                            const char *description, plait_model **model_out, plait_error *err) {
    const int64_t classes = form->classes;
    plait_model *model = pli_calloc(1, sizeof *model);
    if (model == NULL) {
        pli_solution_free(solution);
        pli_schema_destroy(&schema);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    }
    model->solution = *solution;
    *solution = (pli_solution){ 0 };
    model->schema = schema;
    model->linear.classes = classes;
    snprintf(model->name, sizeof model->name, "%s", form->name);
    model->description = pli_strdup(description);
    plait_status status = PLAIT_OK;
    if (model->description == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    if (status == PLAIT_OK) status = take_labels(model, classes, err);
    if (status == PLAIT_OK) status = pli_loss_find(form->loss, classes, &model->linear.loss, err);
    model->linear.parameter = form->parameter;
    model->linear.features = form->features;
    model->linear.columns = classes > 2 ? classes : 1;
    model->linear.label = model->label;
    model->linear.intercept = form->intercept;
    if (status == PLAIT_OK) status = take_net(model, form, err);
    if (status < 0) {
        plait_model_destroy(&model);
        return status;
    }
    *model_out = model;
    return PLAIT_OK;
}

void plait_model_destroy(plait_model **model) {
    if (model == NULL || *model == NULL) return;
    plait_model *m = *model;
    pli_net_destroy(&m->net);
    pli_solution_free(&m->solution);
    pli_schema_destroy(&m->schema);
    for (int64_t k = 0; m->label_text != NULL && k < m->linear.classes; k++) pli_free(m->label_text[k]);
    pli_free(m->label_text);
    pli_free(m->label);
    pli_free(m->description);
    pli_text_free(&m->feature);
    pli_free(m);
    *model = NULL;
}

const char *plait_model_name(const plait_model *model) { return model == NULL ? "" : model->name; }
const char *plait_model_description(const plait_model *model) { return model == NULL ? "" : model->description; }
int64_t     plait_model_features(const plait_model *model) { return model == NULL ? 0 : model->linear.features; }
int64_t     plait_model_classes(const plait_model *model) { return model == NULL ? 0 : model->linear.classes; }
int64_t     plait_model_rows(const plait_model *model) { return model == NULL ? 0 : model->solution.rows; }
int64_t     plait_model_columns(const plait_model *model) {
    if (model == NULL) return 0;
    return model->net != NULL ? 1 : model->linear.columns;
}

const char *plait_model_label(const plait_model *model, int64_t k) {
    return model != NULL && k >= 0 && k < model->linear.classes ? model->label_text[k] : "";
}

uint64_t plait_model_key(const plait_model *model, int64_t row) {
    if (model == NULL || row < 0 || row >= model->solution.rows) return 0;
    return model->solution.key != NULL ? model->solution.key[row] : (uint64_t)row;
}

const char *plait_model_feature(const plait_model *model, int64_t j) {
    if (model == NULL || j < 0 || j >= model->solution.rows) return "";
    pli_text *name = (pli_text *)&model->feature; /* a buffer, no part of the model */
    name->length = 0;
    name->failed = false;
    if (model->net != NULL) pli_net_value_name(model->net, j, name);
    else pli_schema_feature_name(model->schema, plait_model_key(model, j), name);
    return name->data != NULL && !name->failed ? name->data : "";
}

double plait_model_weight(const plait_model *model, int64_t j, int64_t k) {
    if (model == NULL || j < 0 || j >= model->solution.rows || k < 0 || k >= plait_model_columns(model)) return NAN;
    if (model->net != NULL) return (double)model->solution.net[j];
    return model->solution.weight[j * model->linear.columns + k];
}

double plait_model_intercept(const plait_model *model, int64_t k) {
    return model != NULL && model->net == NULL && k >= 0 && k < model->linear.columns ? model->solution.bias[k] : NAN;
}
