/* The model's file: safetensors with the tensors "weight" [rows, K], "bias" [K] and, where features are few of many,
 * "key" [rows]; of a net its variables, "w1", "b1" and so on, all F32; metadata "plait.format", "plait.model", "plait.schema", "plait.description" and the rest of the form. No
 * time, path or host. Weights that are all float32 numbers are written as such: nothing is lost either way. */
#include "learn/model/model.h"

#include <stdio.h>
#include <string.h>

#define FORMAT_VERSION "1"

/* The tensors of a model; narrow: memory of the F32 form, to be freed. */
typedef struct model_tensors {
    pli_tensor tensor[PLI_NET_PARAMS];
    int32_t    n;
    float     *narrow;
} model_tensors;

/* Of a net: one a variable, in its shape. */
static void tensors_of_net(const plait_model *model, model_tensors *out) {
    const pli_net *net = model->net;
    for (int32_t p = 0; p < net->n_params; p++) {
        const plait_shape shape = plait_graph_variable_initial(net->graph, p).shape;
        pli_tensor       *t = &out->tensor[out->n++];
        *t = (pli_tensor){ .name = net->param[p].name, .type = "F32", .dims = shape.rank, .data = model->solution.net + net->param[p].at,
                           .bytes = (size_t)plait_shape_elements(&shape) * sizeof(float) };
        for (int32_t i = 0; i < shape.rank; i++) t->shape[i] = shape.dim[i];
    }
}

static plait_status tensors_of(const plait_model *model, model_tensors *out, plait_error *err) {
    const pli_solution *s = &model->solution;
    int64_t             k = model->linear.columns, n = model->net != NULL ? 0 : s->rows * k;
    bool                fits = true;
    for (int64_t i = 0; fits && i < n; i++) fits = (double)(float)s->weight[i] == s->weight[i];
    *out = (model_tensors){ 0 };
    if (model->net != NULL) {
        tensors_of_net(model, out);
        return PLAIT_OK;
    }
    if (fits) {
        out->narrow = pli_array((size_t)n, sizeof(float));
        if (out->narrow == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to write %lld weights", (long long)n);
        for (int64_t i = 0; i < n; i++) out->narrow[i] = (float)s->weight[i];
    }
    out->tensor[out->n++] = (pli_tensor){ .name = "bias", .type = "F64", .dims = 1, .shape = { k }, .data = s->bias,
                                          .bytes = (size_t)k * sizeof(double) };
    if (s->key != NULL)
        out->tensor[out->n++] = (pli_tensor){ .name = "key", .type = "U64", .dims = 1, .shape = { s->rows },
                                              .data = s->key, .bytes = (size_t)s->rows * sizeof *s->key };
    out->tensor[out->n++] = (pli_tensor){ .name = "weight",
                                          .type = fits ? "F32" : "F64",
                                          .dims = 2,
                                          .shape = { s->rows, k },
                                          .data = fits ? (const void *)out->narrow : (const void *)s->weight,
                                          .bytes = (size_t)n * (fits ? sizeof(float) : sizeof(double)) };
    return PLAIT_OK;
}

void plait_model_hash(const plait_model *model, char hex[65]) {
    model_tensors t;
    if (hex == NULL) return;
    hex[0] = '\0';
    if (model == NULL) return;
    if (tensors_of(model, &t, NULL) < 0) return;
    pli_tensors_hash(t.tensor, t.n, hex);
    pli_free(t.narrow);
}

plait_status plait_model_save(const plait_model *model, const char *path, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, path));
    pli_text     schema = { 0 };
    char         classes[24], features[24], parameter[32];
    plait_status status = pli_schema_write_model(model->schema, &schema, error_out);
    if (status == PLAIT_OK && schema.failed) status = pli_fail(error_out, PLAIT_ENOMEM, "no memory to write a model");
    if (status < 0) {
        pli_text_free(&schema);
        return status;
    }
    snprintf(classes, sizeof classes, "%lld", (long long)model->linear.classes);
    snprintf(features, sizeof features, "%lld", (long long)model->linear.features);
    pli_format_f64(model->linear.parameter, parameter);
    const char *metadata[] = { "plait.format", FORMAT_VERSION,
                               "plait.model", model->name,
                               "plait.parameter", parameter,
                               "plait.intercept", model->linear.intercept ? "1" : "0",
                               "plait.features", features,
                               "plait.classes", classes,
                               "plait.description", model->description,
                               "plait.schema", schema.data,
                               model->net != NULL ? "plait.loss" : NULL, model->linear.loss->model,
                               model->net != NULL && model->net->text != NULL ? "plait.graph" : "plait.layers",
                               model->net != NULL ? pli_net_form(model->net) : NULL,
                               NULL };
    model_tensors t;
    status = tensors_of(model, &t, error_out);
    if (status == PLAIT_OK) status = pli_safetensors_write(path, t.tensor, t.n, metadata, error_out);
    pli_free(t.narrow);
    pli_text_free(&schema);
    return status;
}

static plait_status not_a_model(const char *path, const char *why, plait_error *err) {
    return pli_fail(err, PLAIT_EFORMAT, "%s: not a model of plait: %s", path, why);
}

static bool number(const pli_safetensors *file, const char *key, int64_t most, int64_t *out) {
    const char *text = pli_safetensors_metadata(file, key);
    return text != NULL && pli_parse_i64(text, out) && *out >= 0 && *out <= most;
}

static plait_status read_solution(const pli_safetensors *file, const char *path, int64_t columns,
                                  pli_solution *solution_out, plait_error *err) {
    const pli_tensor *weight = pli_safetensors_find(file, "weight"), *bias = pli_safetensors_find(file, "bias");
    const pli_tensor *key = pli_safetensors_find(file, "key");
    if (weight == NULL || weight->dims != 2 || weight->shape[1] != columns)
        return not_a_model(path, "no weights of the form that it declares", err);
    if (strcmp(weight->type, "F32") != 0 && strcmp(weight->type, "F64") != 0)
        return not_a_model(path, "weights are neither F32 nor F64", err);
    if (bias == NULL || bias->dims != 1 || bias->shape[0] != columns || strcmp(bias->type, "F64") != 0)
        return not_a_model(path, "no intercepts", err);
    int64_t rows = weight->shape[0];
    if (key != NULL && (key->dims != 1 || key->shape[0] != rows || strcmp(key->type, "U64") != 0))
        return not_a_model(path, "keys do not go with the weights", err);
    PLI_TRY(pli_solution_make(rows, columns, key != NULL, solution_out, err));
    for (int64_t i = 0; i < rows * columns; i++) {
        float narrow;
        if (weight->type[1] == '3') {
            memcpy(&narrow, (const char *)weight->data + i * 4, 4);
            solution_out->weight[i] = (double)narrow;
        } else {
            memcpy(&solution_out->weight[i], (const char *)weight->data + i * 8, 8);
        }
    }
    memcpy(solution_out->bias, bias->data, (size_t)columns * sizeof(double));
    if (key != NULL) memcpy(solution_out->key, key->data, (size_t)rows * sizeof *solution_out->key);
    if (key == NULL || pli_is_increasing_u64(rows, solution_out->key)) return PLAIT_OK;
    pli_solution_free(solution_out);
    return not_a_model(path, "keys are out of order", err);
}

/* A net's values, in the order of its variables: those of the file that are named like one, whose sizes the net is then held to. */
static plait_status read_net(const pli_safetensors *file, const char *path, const pli_model_form *form, const pli_schema *schema,
                             pli_solution *solution_out, plait_error *err) {
    pli_linear   linear = { .features = form->features, .columns = form->classes > 2 ? form->classes : 1, .classes = form->classes };
    pli_net     *net = NULL;
    pli_solution s = { 0 };
    PLI_TRY(pli_net_create(pli_net_kind_find(form->name), form->layers, schema, &linear, 1, &net, err));
    plait_status status = PLAIT_OK;
    s.rows = net->values;
    s.net = pli_array((size_t)net->values, sizeof *s.net);
    if (s.net == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for %lld values", (long long)net->values);
    for (int32_t p = 0; status == PLAIT_OK && p < net->n_params; p++) {
        const pli_tensor *t = pli_safetensors_find(file, net->param[p].name);
        const size_t      bytes = (size_t)(net->param[p].rows * net->param[p].cols) * sizeof(float);
        if (t == NULL || strcmp(t->type, "F32") != 0 || t->bytes != bytes)
            status = not_a_model(path, "a layer is missing, or not of the form that it declares", err);
        else memcpy(s.net + net->param[p].at, t->data, bytes);
    }
    pli_net_destroy(&net);
    if (status < 0) pli_solution_free(&s);
    else *solution_out = s;
    return status;
}

static plait_status read_model(const pli_safetensors *file, const char *path, plait_model **model_out, plait_error *err) {
    const char *format = pli_safetensors_metadata(file, "plait.format");
    const char *name = pli_safetensors_metadata(file, "plait.model");
    const char *schema_text = pli_safetensors_metadata(file, "plait.schema");
    const char *description = pli_safetensors_metadata(file, "plait.description");
    const char *parameter_text = pli_safetensors_metadata(file, "plait.parameter");
    int64_t     version, features, classes, intercept;
    double      parameter;
    if (format == NULL) return not_a_model(path, "a safetensors file of something else", err);
    if (!pli_parse_i64(format, &version) || version < 1) return not_a_model(path, "its version is no number", err);
    if (version > 1)
        return pli_fail(err, PLAIT_EVERSION, "%s: model format %s is newer than this program knows (1)", path, format);
    if (name == NULL || schema_text == NULL || description == NULL || parameter_text == NULL ||
        !pli_parse_f64(parameter_text, &parameter) || !number(file, "plait.features", INT64_MAX, &features) ||
        !number(file, "plait.classes", 1 << 20, &classes) || !number(file, "plait.intercept", 1, &intercept))
        return not_a_model(path, "its description is incomplete", err);
    pli_schema *schema = NULL;
    PLI_TRY(pli_schema_read(schema_text, strlen(schema_text), &schema, err));
    const char          *loss = pli_safetensors_metadata(file, "plait.loss"), *layers = pli_safetensors_metadata(file, "plait.layers");
    if (layers == NULL) layers = pli_safetensors_metadata(file, "plait.graph");
    const pli_model_form form = { .name = name, .loss = loss != NULL ? loss : name, .layers = layers, .parameter = parameter,
                                  .intercept = intercept != 0, .features = features, .classes = classes };
    const bool           is_net = pli_net_kind_find(name) != NULL;
    bool                 is_class;
    pli_solution         solution = { 0 };
    plait_status         status = pli_loss_is_class(form.loss, &is_class, err);
    if (status == PLAIT_OK && (is_class != (classes > 0) || (is_class && classes != pli_schema_labels(schema))))
        status = not_a_model(path, "its labels do not go with its form", err);
    if (status == PLAIT_OK && is_net && (layers == NULL || features != pli_schema_features(schema)))
        status = not_a_model(path, "its layers do not go with its features", err);
    if (status == PLAIT_OK)
        status = is_net ? read_net(file, path, &form, schema, &solution, err)
                        : read_solution(file, path, classes > 2 ? classes : 1, &solution, err);
    if (status == PLAIT_OK && !is_net && solution.key == NULL && solution.rows != features)
        status = not_a_model(path, "its weights do not go with its features", err);
    if (status < 0) {
        pli_solution_free(&solution);
        pli_schema_destroy(&schema);
        return status;
    }
    return pli_model_make(&form, &solution, schema, description, model_out, err);
}

/* Does it begin as ONNX files do: field 1, a small version, then one of the model's other fields (onnx.proto)? */
static bool is_onnx(const char *path) {
    pli_mapped file;
    if (pli_map_file(path, &file, NULL) < 0) return false;
    const unsigned char *at = file.data;
    const bool is = file.bytes > 2 && at[0] == 0x08 && at[1] > 0 && at[1] < 0x80 && (at[2] == 0x12 || at[2] == 0x3a || at[2] == 0x42);
    pli_unmap_file(&file);
    return is;
}

plait_status plait_model_load(const char *path, plait_model **model_out, plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, path));
    PLI_TRY(PLI_GIVEN(error_out, model_out));
    pli_safetensors *file = NULL;
    plait_status     opened = pli_safetensors_open(path, &file, error_out);
    if (opened < 0 && is_onnx(path))
        return pli_fail(error_out, PLAIT_EFORMAT, "%s: an ONNX file, not a model of plait; 'plait train --graph FILE' trains the graph in it",
                        path);
    if (opened < 0) return opened;
    plait_status status = read_model(file, path, model_out, error_out);
    pli_safetensors_close(&file);
    return status;
}
