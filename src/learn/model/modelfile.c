/* The model's file: safetensors with one tensor for each value of the model, and metadata. A linear model has "weight"
 * [rows, K], "bias" [K] and, if its rows lie by key, "key" [rows]; a net has its variables, "w1", "b1" and so on. The
 * metadata are "plait.format", "plait.model", "plait.features", "plait.classes", "plait.description", "plait.schema",
 * and what the learner adds. There is no time, path or host in it: the same model is the same bytes. */
#include "learn/model/model.h"

#include <stdio.h>
#include <string.h>

/* "2": a model that programs of version 1 would read wrongly (pli_model_meta.newer). */
enum { FORMAT_VERSION = 2 };

/* --- writing ------------------------------------------------------------------------------------------------------ */

static const char *type_name(plait_type type) { return type == PLAIT_F32 ? "F32" : type == PLAIT_F64 ? "F64" : "I64"; }

static plait_status tensors_of(const plait_model *model, pli_model_tensors *out, plait_error *err) {
    const pli_model_ops *ops = pli_model_ops_of(model);
    *out = (pli_model_tensors){ 0 };
    if (ops != NULL) return ops->tensors(model, out, err);
    for (int32_t i = 0; i < model->n_values; i++) {
        const pli_model_value *v = &model->value[i];
        pli_tensor            *t = &out->tensor[out->n++];
        *t = (pli_tensor){
            .name = v->name, .type = type_name(v->type), .dims = v->rank, .data = v->data, .bytes = v->bytes
        };
        for (int32_t a = 0; a < v->rank; a++) t->shape[a] = v->shape[a];
    }
    return PLAIT_OK;
}

void plait_model_hash(const plait_model *model, char hex[65]) {
    pli_model_tensors t;
    if (hex == NULL) return;
    hex[0] = '\0';
    if (model == NULL) return;
    if (tensors_of(model, &t, NULL) < 0) return;
    pli_tensors_hash(t.tensor, t.n, hex);
    pli_free(t.scratch);
}

plait_status plait_model_save(const plait_model *model, const char *path, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, path));
    const pli_model_ops *ops = pli_model_ops_of(model);
    pli_text             schema = { 0 };
    char                 classes[24], features[24];
    pli_model_meta       meta = { 0 };
    pli_model_tensors    t;
    plait_status         status = pli_schema_write_model(model->schema, &schema, error_out);
    if (status == PLAIT_OK && schema.failed) status = pli_fail(error_out, PLAIT_ENOMEM, "no memory to write a model");
    if (status < 0) {
        pli_text_free(&schema);
        return status;
    }
    snprintf(classes, sizeof classes, "%lld", (long long)model->classes);
    snprintf(features, sizeof features, "%lld", (long long)model->features);
    if (ops != NULL) ops->metadata(model, &meta);
    pli_model_meta_add(&meta, "plait.format", meta.newer ? "2" : "1");
    pli_model_meta_add(&meta, "plait.model", model->name);
    pli_model_meta_add(&meta, "plait.features", features);
    pli_model_meta_add(&meta, "plait.classes", classes);
    pli_model_meta_add(&meta, "plait.description", model->description);
    pli_model_meta_add(&meta, "plait.schema", schema.data);
    if (model->settings.data != NULL) pli_model_meta_add(&meta, "plait.options", model->settings.data);
    status = tensors_of(model, &t, error_out);
    if (status == PLAIT_OK) status = pli_safetensors_write(path, t.tensor, t.n, meta.pair, error_out);
    pli_free(t.scratch);
    pli_text_free(&schema);
    return status;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

plait_status pli_not_a_model(const char *path, const char *why, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: not a model of plait: %s", path, why);
}

bool pli_model_count(const pli_safetensors *file, const char *key, int64_t most, int64_t *out) {
    const char *text = pli_safetensors_metadata(file, key);
    return text != NULL && pli_parse_i64(text, out) && *out >= 0 && *out <= most;
}

static plait_status read_values(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err) {
    const char *settings = pli_safetensors_metadata(file, "plait.options");
    if (settings != NULL) pli_text_add(&model->settings, "%s", settings);
    if (model->settings.failed) return pli_fail(err, PLAIT_ENOMEM, "no memory to read a model");
    for (int64_t i = 0; i < pli_safetensors_count(file); i++) {
        const pli_tensor *t = pli_safetensors_at(file, i);
        const plait_type  type = strcmp(t->type, "F32") == 0   ? PLAIT_F32
                                 : strcmp(t->type, "F64") == 0 ? PLAIT_F64
                                                               : PLAIT_I64;
        if (strcmp(t->type, type_name(type)) != 0 || t->dims > 4)
            return pli_not_a_model(path, "a value of a type that no model has", err);
        PLI_TRY(plait_model_put(model, t->name, type, t->dims, t->shape, t->data, err));
    }
    return PLAIT_OK;
}

/* Reads what every model has, and makes the model of it. */
static plait_status read_head(const pli_safetensors *file, const char *path, const plait_learner *learner,
                              plait_model **model_out, plait_error *err) {
    const char *schema_text = pli_safetensors_metadata(file, "plait.schema");
    const char *description = pli_safetensors_metadata(file, "plait.description");
    int64_t     features, classes;
    if (schema_text == NULL || description == NULL || !pli_model_count(file, "plait.features", INT64_MAX, &features) ||
        !pli_model_count(file, "plait.classes", PLI_LABELS_DECLARED, &classes))
        return pli_not_a_model(path, "its description is incomplete", err);
    pli_schema *schema = NULL;
    PLI_TRY(pli_schema_read(schema_text, strlen(schema_text), &schema, err));
    if (classes > 0 && classes != pli_schema_labels(schema)) {
        pli_schema_destroy(&schema);
        return pli_not_a_model(path, "its labels do not match its form", err);
    }
    PLI_TRY(pli_model_create(learner, schema, classes, description, model_out, err));
    (*model_out)->features = features;
    return PLAIT_OK;
}

static plait_status read_model(const pli_safetensors *file, const char *path, const plait_learner *own, int32_t n_own,
                               bool bare, plait_model **model_out, plait_error *err) {
    const char *format = pli_safetensors_metadata(file, "plait.format");
    const char *name = pli_safetensors_metadata(file, "plait.model");
    int64_t     version;
    if (format == NULL) return pli_not_a_model(path, "a safetensors file, but not of a model", err);
    if (!pli_parse_i64(format, &version) || version < 1)
        return pli_not_a_model(path, "its version is no number", err);
    if (version > FORMAT_VERSION)
        return pli_fail(err, PLAIT_EVERSION, "%s: model format %s is newer than this program knows (%d)", path, format,
                        FORMAT_VERSION);
    if (name == NULL) return pli_not_a_model(path, "its description is incomplete", err);
    const plait_learner *learner = pli_learner_find(name, own, n_own);
    if (learner == NULL)
        return pli_fail(err, PLAIT_ENAME,
                        "%s: unknown model '%s'; the model of a program's own learner is read by that program", path,
                        name);
    PLI_TRY(read_head(file, path, learner, model_out, err));
    (*model_out)->bare = bare;
    const pli_model_ops *ops = pli_model_ops_of(*model_out);
    plait_status         status = ops != NULL ? ops->load(file, path, *model_out, err)
                                              : read_values(file, path, *model_out, err);
    if (status >= 0) status = pli_model_open(*model_out, err);
    if (status < 0) plait_model_destroy(model_out);
    return status;
}

/* Does the file begin like an ONNX file: field 1 (a small version), then another field of the model (onnx.proto)? */
static bool is_onnx(const char *path) {
    pli_mapped file;
    if (pli_map_file(path, &file, NULL) < 0) return false;
    const unsigned char *at = file.data;
    const bool           is = file.bytes > 2 && at[0] == 0x08 && at[1] > 0 && at[1] < 0x80 &&
                    (at[2] == 0x12 || at[2] == 0x3a || at[2] == 0x42);
    pli_unmap_file(&file);
    return is;
}

static plait_status load(const char *path, const plait_learner *learners, int32_t n_learners, bool bare,
                         plait_model **model_out, plait_error *error_out) {
    pli_safetensors *file = NULL;
    *model_out = NULL;
    plait_status opened = pli_safetensors_open(path, &file, error_out);
    if (opened < 0 && is_onnx(path))
        return pli_fail(error_out, PLAIT_EFORMAT,
                        "%s: an ONNX file, not a model of plait; 'plait train --graph FILE' trains the graph in it",
                        path);
    if (opened < 0) return opened;
    plait_status status = read_model(file, path, learners, n_learners, bare, model_out, error_out);
    pli_safetensors_close(&file);
    return status;
}

plait_status plait_model_load_with(const char *path, const plait_learner *learners, int32_t n_learners,
                                   plait_model **model_out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN_OF(error_out, n_learners, learners));
    PLI_TRY(PLI_GIVEN(error_out, model_out));
    return load(path, learners, n_learners, false, model_out, error_out);
}

plait_status pli_model_load_bare(const char *path, const plait_learner *learners, int32_t n_learners,
                                 plait_model **model_out, plait_error *err) {
    return load(path, learners, n_learners, true, model_out, err);
}

plait_status plait_model_load(const char *path, plait_model **model_out, plait_error *error_out) {
    return plait_model_load_with(path, NULL, 0, model_out, error_out);
}
