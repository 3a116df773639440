/* The model as an object: form, weights, names. Its file is modelfile.c, its use predict.c. */
#include "learn/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

plait_status pli_solution_make(int64_t rows, int64_t columns, bool keyed, pli_solution *solution_out, plait_error *err) {
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

plait_status pli_model_make(const char *name, double parameter, bool intercept, int64_t features, int64_t classes,
                            pli_solution *solution, pli_schema *schema, const char *description,
                            plait_model **model_out, plait_error *err) {
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
    snprintf(model->name, sizeof model->name, "%s", name);
    model->description = pli_strdup(description);
    plait_status status = PLAIT_OK;
    if (model->description == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    if (status == PLAIT_OK) status = take_labels(model, classes, err);
    if (status == PLAIT_OK) status = pli_loss_find(name, classes, &model->linear.loss, err);
    if (status < 0) {
        plait_model_destroy(&model);
        return status;
    }
    model->linear.parameter = parameter;
    model->linear.features = features;
    model->linear.columns = classes > 2 ? classes : 1;
    model->linear.label = model->label;
    model->linear.intercept = intercept;
    *model_out = model;
    return PLAIT_OK;
}

void plait_model_destroy(plait_model **model) {
    if (model == NULL || *model == NULL) return;
    plait_model *m = *model;
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

const char *plait_model_name(const plait_model *model) { return model->name; }
const char *plait_model_description(const plait_model *model) { return model->description; }
int64_t     plait_model_features(const plait_model *model) { return model->linear.features; }
int64_t     plait_model_classes(const plait_model *model) { return model->linear.classes; }
int64_t     plait_model_columns(const plait_model *model) { return model->linear.columns; }
int64_t     plait_model_rows(const plait_model *model) { return model->solution.rows; }

const char *plait_model_label(const plait_model *model, int64_t k) {
    return k >= 0 && k < model->linear.classes ? model->label_text[k] : "";
}

uint64_t plait_model_key(const plait_model *model, int64_t row) {
    return model->solution.key != NULL ? model->solution.key[row] : (uint64_t)row;
}

const char *plait_model_feature(const plait_model *model, int64_t j) {
    if (j < 0 || j >= model->solution.rows) return "";
    pli_text *name = (pli_text *)&model->feature; /* a buffer, no part of the model */
    name->length = 0;
    name->failed = false;
    pli_schema_feature_name(model->schema, plait_model_key(model, j), name);
    return name->data != NULL && !name->failed ? name->data : "";
}

double plait_model_weight(const plait_model *model, int64_t j, int64_t k) {
    if (j < 0 || j >= model->solution.rows || k < 0 || k >= model->linear.columns) return NAN;
    return model->solution.weight[j * model->linear.columns + k];
}

double plait_model_intercept(const plait_model *model, int64_t k) {
    return k >= 0 && k < model->linear.columns ? model->solution.bias[k] : NAN;
}
