/* The model as an object: values, names, labels. Its file is modelfile.c, its use predict.c. */
#include "learn/model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- life --------------------------------------------------------------------------------------------------------- */

/* All texts are one array: there may be a million labels. */
static plait_status take_labels(plait_model *model, plait_error *err) {
    const int64_t classes = model->classes;
    pli_text      texts = { 0 };
    model->label = pli_calloc((size_t)classes, sizeof *model->label);
    model->label_text = pli_calloc((size_t)classes, sizeof *model->label_text);
    for (int64_t k = 0; model->label != NULL && k < classes; k++) {
        model->label[k] = pli_schema_label_value(model->schema, k);
        pli_schema_label_text(model->schema, k, &texts);
        pli_text_add_bytes(&texts, "", 1);
    }
    model->label_texts = texts.data;
    if (texts.failed || model->label == NULL || model->label_text == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %lld labels", (long long)classes);
    char *at = texts.data;
    for (int64_t k = 0; k < classes; at += strlen(at) + 1) model->label_text[k++] = at;
    return PLAIT_OK;
}

plait_status pli_model_create(const plait_learner *learner, pli_schema *schema, int64_t classes,
                              const char *description, plait_model **model_out, plait_error *err) {
    plait_model *model = pli_calloc(1, sizeof *model);
    if (model == NULL) {
        pli_schema_destroy(&schema);
        return pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    }
    model->learner = learner;
    model->schema = schema;
    model->classes = classes;
    model->features = pli_schema_features(schema);
    snprintf(model->name, sizeof model->name, "%s", learner->name);
    model->description = pli_strdup(description);
    model->own = pli_calloc(1, learner->model_bytes > 0 ? learner->model_bytes : 1);
    plait_status status = model->description != NULL && model->own != NULL
                              ? take_labels(model, err)
                              : pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    if (status < 0) plait_model_destroy(&model);
    *model_out = model;
    return status;
}

plait_status pli_model_open(plait_model *model, plait_error *err) {
    return model->learner->open != NULL ? model->learner->open(model, err) : PLAIT_OK;
}

void plait_model_destroy(plait_model **model) {
    if (model == NULL || *model == NULL) return;
    plait_model *m = *model;
    if (m->own != NULL && m->learner->close != NULL) m->learner->close(m);
    for (int32_t i = 0; i < m->n_values; i++) pli_free(m->value[i].data);
    pli_schema_destroy(&m->schema);
    pli_free(m->label_text);
    pli_free(m->label_texts);
    pli_free(m->label);
    pli_free(m->description);
    pli_free(m->own);
    pli_text_free(&m->feature);
    pli_text_free(&m->settings);
    pli_free(m);
    *model = NULL;
}

const pli_schema *pli_model_schema(const plait_model *model) { return model->schema; }

/* --- values ------------------------------------------------------------------------------------------------------- */

plait_status plait_model_put(plait_model *model, const char *name, plait_type type, int32_t rank, const int64_t *shape,
                             const void *data, plait_error *error_out) {
    if (model == NULL) return pli_fail_null(error_out, __func__, "model");
    PLI_TRY(PLI_GIVEN(error_out, name));
    PLI_TRY(PLI_GIVEN_OF(error_out, rank, shape));
    pli_model_value *v = &model->value[model->n_values];
    size_t           bytes = plait_type_bytes(type);
    if (model->n_values == PLAIT_MODEL_VALUES || strlen(name) >= sizeof v->name || rank < 0 || rank > 4)
        return pli_fail(error_out, PLAIT_EINVAL,
                        "value %.60s: a model has at most %d, with names below 64 characters and at most 4 axes", name,
                        (int)PLAIT_MODEL_VALUES);
    *v = (pli_model_value){ .type = type, .rank = rank };
    snprintf(v->name, sizeof v->name, "%s", name);
    for (int32_t i = 0; i < rank; i++) {
        if (shape[i] < 0 || (shape[i] > 0 && bytes > SIZE_MAX / 2 / (size_t)shape[i]))
            return pli_fail(error_out, PLAIT_EINVAL, "value %s: no such shape", name);
        v->shape[i] = shape[i];
        bytes *= (size_t)shape[i];
    }
    PLI_TRY(PLI_GIVEN_OF(error_out, bytes, data));
    v->data = pli_malloc(bytes > 0 ? bytes : 1);
    if (v->data == NULL) return pli_fail(error_out, PLAIT_ENOMEM, "no memory for value %s of a model", name);
    if (bytes > 0) memcpy(v->data, data, bytes);
    v->bytes = bytes;
    model->n_values++;
    return PLAIT_OK;
}

const void *plait_model_value(const plait_model *model, const char *name, plait_type type, int32_t rank,
                              int64_t *shape_out) {
    for (int32_t i = 0; model != NULL && name != NULL && i < model->n_values; i++) {
        const pli_model_value *v = &model->value[i];
        if (strcmp(v->name, name) != 0) continue;
        if (v->type != type || v->rank != rank) return NULL;
        for (int32_t a = 0; shape_out != NULL && a < rank; a++) shape_out[a] = v->shape[a];
        return v->data;
    }
    return NULL;
}

void *plait_model_state(const plait_model *model) { return model == NULL ? NULL : model->own; }

/* Finds an own option in lines of "clusters=8", else its preset. The value ends with its line. */
static const char *setting_of(const plait_model *model, const char *name) {
    const size_t length = strlen(name);
    const char  *at = model->settings.data != NULL ? model->settings.data : "";
    for (; *at != '\0'; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, name, length) == 0 && at[length] == '=') return at + length + 1;
    for (const plait_learner_option *o = model->learner->options; o != NULL && o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return o->preset;
    return NULL;
}

int32_t plait_model_options(const plait_model *model, plait_option_value *options_out) {
    int32_t n = 0;
    if (model == NULL || options_out == NULL) return 0;
    for (const plait_learner_option *o = model->learner->options; o != NULL && o->name != NULL; o++) {
        const char *value = o->kind != PLAIT_OPTION_FILE ? setting_of(model, o->name) : NULL;
        if (value == NULL || n == PLAIT_OPTION_VALUES) continue;
        plait_option_value *to = &options_out[n++];
        snprintf(to->name, sizeof to->name, "%s", o->name);
        snprintf(to->value, sizeof to->value, "%.*s", (int)strcspn(value, "\n"), value);
    }
    return n;
}

plait_status plait_model_array_at(const plait_model *model, int32_t i, plait_model_array *array_out) {
    if (model == NULL || array_out == NULL || i < 0) return PLAIT_EINVAL;
    if (i >= model->n_values) return PLAIT_END;
    const pli_model_value *v = &model->value[i];
    *array_out = (plait_model_array){ .name = v->name, .type = v->type, .rank = v->rank, .data = v->data };
    memcpy(array_out->shape, v->shape, sizeof array_out->shape);
    return PLAIT_OK;
}

double plait_model_number(const plait_model *model, const char *name) {
    char        text[64];
    double      x = NAN;
    const char *value = model != NULL && name != NULL ? setting_of(model, name) : NULL;
    if (value == NULL) return NAN;
    snprintf(text, sizeof text, "%.*s", (int)strcspn(value, "\n"), value);
    return pli_parse_f64(text, &x) ? x : (double)NAN;
}

/* --- what it says of itself --------------------------------------------------------------------------------------- */

const char *plait_model_name(const plait_model *model) { return model == NULL ? "" : model->name; }
const char *plait_model_description(const plait_model *model) { return model == NULL ? "" : model->description; }
int64_t     plait_model_features(const plait_model *model) { return model == NULL ? 0 : model->features; }
int64_t     plait_model_classes(const plait_model *model) { return model == NULL ? 0 : model->classes; }

int64_t plait_model_rows(const plait_model *model) {
    const pli_model_ops *ops = model != NULL ? pli_model_ops_of(model) : NULL;
    return ops != NULL ? ops->rows(model) : 0;
}

int64_t plait_model_columns(const plait_model *model) {
    const pli_model_ops *ops = model != NULL ? pli_model_ops_of(model) : NULL;
    return ops != NULL ? ops->columns(model) : 0;
}

const char *plait_model_label(const plait_model *model, int64_t k) {
    return model != NULL && k >= 0 && k < model->classes ? model->label_text[k] : "";
}

uint64_t plait_model_key(const plait_model *model, int64_t row) {
    if (row < 0 || row >= plait_model_rows(model)) return 0;
    return pli_model_ops_of(model)->key(model, row);
}

const char *plait_model_feature(const plait_model *model, int64_t j) {
    const pli_model_ops *ops = model != NULL ? pli_model_ops_of(model) : NULL;
    if (model == NULL || j < 0 || j >= (ops != NULL ? ops->rows(model) : model->features)) return "";
    pli_text *name = (pli_text *)&model->feature; /* a buffer for the answer; it does not change the model */
    name->length = 0;
    name->failed = false;
    if (ops != NULL) ops->feature(model, j, name);
    else pli_schema_feature_name(model->schema, (uint64_t)j, name);
    return name->data != NULL && !name->failed ? name->data : "";
}

plait_status pli_model_inspect(const plait_model *model, pli_text *text, plait_error *err) {
    const pli_learner_more *more = model->learner->more;
    return more != NULL && more->inspect != NULL ? more->inspect(model, text, err) : PLAIT_OK;
}

plait_status pli_model_tree(const plait_model *model, int64_t t, pli_text *text, plait_error *err) {
    const pli_model_ops *ops = pli_model_ops_of(model);
    if (ops != NULL && ops->tree != NULL) return ops->tree(model, t, text, err);
    return pli_fail(err, PLAIT_EREFUSED, "a model of kind %s has no trees; models of kind gbdt and forest have",
                    model->name);
}

double plait_model_weight(const plait_model *model, int64_t j, int64_t k) {
    if (j < 0 || j >= plait_model_rows(model) || k < 0 || k >= plait_model_columns(model)) return NAN;
    return pli_model_ops_of(model)->weight(model, j, k);
}

double plait_model_intercept(const plait_model *model, int64_t k) {
    if (model == NULL || pli_model_ops_of(model) == NULL || k < 0 || k >= plait_model_columns(model)) return NAN;
    return pli_model_ops_of(model)->intercept(model, k);
}
