/* A fitted linear model: scores rows, writes and reads tensors, exports to ONNX. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/form/export.h"
#include "learn/linear/fit.h"
#include "tensor/tensor.h"

/* --- scores ------------------------------------------------------------------------------------------------------- */

static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    pli_keymap  *map;
    plait_status status = pli_solution_map(solution, &map, err);
    (void)form;
    *scorer_out = map;
    return status;
}

static void close(void *scorer) { pli_solution_unmap(scorer); }

static plait_status score_block(const void *form, const pli_solution *solution, void *scorer, const pli_block *block,
                                pli_score_fn *each, void *user, plait_error *err) {
    const pli_linear *linear = form;
    const pli_keymap *map = scorer;
    const int64_t     k = linear->goal.columns;
    pli_weights       weights = { .f64 = solution->weight, .bias = solution->bias };
    double           *score = pli_array((size_t)k, 3 * sizeof *score);
    uint32_t         *local = NULL;
    plait_status      status = score != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    if (status == PLAIT_OK && (map != NULL || block->col == NULL)) /* packed columns are looked up a block at a time */
        status = pli_solution_find(solution, map, block, &local, err);
    const uint32_t *index = local != NULL ? local : block->col;
    for (int64_t r = 0; status == PLAIT_OK && r < block->rows; r++) {
        int64_t at = block->row_start[r], n = block->row_start[r + 1] - at;
        pli_linear_score(linear, &weights, solution->rows, n, index + at,
                         block->value != NULL ? block->value + at : NULL, score);
        if (!each(user, block, r, block->label[r], score, score + k)) break;
    }
    pli_free(score);
    pli_free(local);
    return status;
}

const pli_scoring_ops pli_linear_scoring = { .open = open, .close = close, .block = score_block };

/* --- its file ----------------------------------------------------------------------------------------------------- */

/* If all weights are float32 numbers, they are written as F32, else as F64: nothing is lost. */
static plait_status tensors(const plait_model *model, pli_model_tensors *out, plait_error *err) {
    const pli_solution *s = pli_fitted_solution(model);
    int64_t             k = pli_fitted_of(model)->goal.columns, n = s->rows * k;
    bool                fits = true;
    for (int64_t i = 0; fits && i < n; i++) fits = (double)(float)s->weight[i] == s->weight[i];
    float *narrow = fits ? pli_array((size_t)n, sizeof(float)) : NULL;
    if (fits && narrow == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory to write %lld weights", (long long)n);
    for (int64_t i = 0; fits && i < n; i++) narrow[i] = (float)s->weight[i];
    out->scratch = narrow;
    out->tensor[out->n++] = (pli_tensor){ .name = "bias", .type = "F64", .dims = 1, .shape = { k }, .data = s->bias,
                                          .bytes = (size_t)k * sizeof(double) };
    if (s->key != NULL)
        out->tensor[out->n++] = (pli_tensor){ .name = "key", .type = "U64", .dims = 1, .shape = { s->rows },
                                              .data = s->key, .bytes = (size_t)s->rows * sizeof *s->key };
    out->tensor[out->n++] = (pli_tensor){ .name = "weight",
                                          .type = fits ? "F32" : "F64",
                                          .dims = 2,
                                          .shape = { s->rows, k },
                                          .data = fits ? (const void *)narrow : (const void *)s->weight,
                                          .bytes = (size_t)n * (fits ? sizeof(float) : sizeof(double)) };
    return PLAIT_OK;
}

static plait_status read_solution(const pli_safetensors *file, const char *path, int64_t columns,
                                  pli_solution *solution_out, plait_error *err) {
    const pli_tensor *weight = pli_safetensors_find(file, "weight"), *bias = pli_safetensors_find(file, "bias");
    const pli_tensor *key = pli_safetensors_find(file, "key");
    if (weight == NULL || weight->dims != 2 || weight->shape[1] != columns)
        return pli_not_a_model(path, "its weights do not have the form that it declares", err);
    if (strcmp(weight->type, "F32") != 0 && strcmp(weight->type, "F64") != 0)
        return pli_not_a_model(path, "weights are neither F32 nor F64", err);
    if (bias == NULL || bias->dims != 1 || bias->shape[0] != columns || strcmp(bias->type, "F64") != 0)
        return pli_not_a_model(path, "no intercepts", err);
    int64_t rows = weight->shape[0];
    if (key != NULL && (key->dims != 1 || key->shape[0] != rows || strcmp(key->type, "U64") != 0))
        return pli_not_a_model(path, "its keys do not match its weights", err);
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
    return pli_not_a_model(path, "keys are out of order", err);
}

static plait_status load(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err) {
    pli_fitted *fitted = pli_fitted_of(model);
    PLI_TRY(pli_fitted_read(file, path, model, model->name, err));
    PLI_TRY(read_solution(file, path, fitted->goal.columns, &fitted->solution, err));
    if (fitted->solution.key == NULL && fitted->solution.rows != model->features)
        return pli_not_a_model(path, "its weights do not match its features", err);
    return pli_linear_open_model(model);
}

plait_status pli_linear_open_model(plait_model *model) {
    pli_linear_model *own = model->own;
    own->linear = (pli_linear){
        .goal = own->fitted.goal, .features = model->features, .intercept = own->fitted.intercept
    };
    own->fitted.scoring = &pli_linear_scoring;
    own->fitted.form = &own->linear;
    own->fitted.row_labels = 1;
    return PLAIT_OK;
}

/* --- its weights -------------------------------------------------------------------------------------------------- */

static int64_t rows(const plait_model *model) { return pli_fitted_solution(model)->rows; }
static int64_t columns(const plait_model *model) { return pli_fitted_of(model)->goal.columns; }

static uint64_t key(const plait_model *model, int64_t row) {
    const pli_solution *s = pli_fitted_solution(model);
    return s->key != NULL ? s->key[row] : (uint64_t)row;
}

static double weight(const plait_model *model, int64_t row, int64_t column) {
    return pli_fitted_solution(model)->weight[row * columns(model) + column];
}

/* In the data's units: that of the features less their origins, less what the weights say of the origins. */
static double intercept(const plait_model *model, int64_t column) {
    double b = pli_fitted_solution(model)->bias[column];
    for (int64_t j = 0; pli_schema_origins(model->schema) > 0 && j < rows(model); j++)
        b -= weight(model, j, column) * pli_schema_origin(model->schema, key(model, j));
    return b;
}

static void feature(const plait_model *model, int64_t row, pli_text *text) {
    pli_schema_feature_name(model->schema, key(model, row), text);
}

/* --- export ------------------------------------------------------------------------------------------------------- */

static bool is_narrow(const pli_solution *s, int64_t columns) {
    bool narrow = true;
    for (int64_t i = 0; narrow && i < s->rows * columns; i++) narrow = (double)(float)s->weight[i] == s->weight[i];
    for (int64_t k = 0; narrow && k < columns; k++) narrow = (double)(float)s->bias[k] == s->bias[k];
    return narrow;
}

/* Adds an initialiser made of doubles, in the type of the scores. */
static const char *matrix(pli_export *to, const char *name, plait_type type, plait_shape shape, const double *values) {
    const int64_t n = plait_shape_elements(&shape);
    plait_tensor  t = { .type = type, .shape = shape, .data = pli_calloc((size_t)n, plait_type_bytes(type)) };
    if (t.data == NULL) return pli_export_fail(to, PLAIT_ENOMEM, "no memory to export a model");
    for (int64_t i = 0; i < n; i++) {
        if (type == PLAIT_F64)
            ((double *)t.data)[i] = values[i];
        else
            ((float *)t.data)[i] = (float)values[i];
    }
    const char *made = pli_export_array(to, name, &t, false);
    pli_free(t.data);
    return made;
}

/* Adds the nodes that compute scores [rows, K], of type *type_out. */
static plait_status linear_scores(const plait_model *model, pli_export *to, plait_type *type_out,
                                  const char **scores_out, plait_error *err) {
    const pli_solution *s = pli_fitted_solution(model);
    const int64_t       k = pli_fitted_of(model)->goal.columns;
    if (s->key != NULL)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "a model whose weights are stored by key is refused: its %lld of %lld features would become a dense "
            "matrix; train with --hash-bits 20",
            (long long)s->rows, (long long)model->features);
    *type_out = is_narrow(s, k) ? PLAIT_F32 : PLAIT_F64;
    const char *x = pli_fitted_export_rows(model, to, s->rows);
    if (*type_out == PLAIT_F64) x = pli_export_cast(to, x, PLAIT_F64);
    const char *w = matrix(to, "weight", *type_out, plait_shape_2(s->rows, k), s->weight);
    const char *b = matrix(to, "bias", *type_out, plait_shape_1(k), s->bias);
    *scores_out = pli_export_2(to, "Add", pli_export_2(to, "MatMul", x, w), b);
    return PLAIT_OK;
}

plait_status pli_linear_export(const plait_model *model, pli_export *to, plait_error *err) {
    plait_type  type = PLAIT_F32;
    const char *scores;
    PLI_TRY(linear_scores(model, to, &type, &scores, err));
    pli_fitted_export(model, to, type, scores);
    return PLAIT_OK;
}

const pli_model_ops pli_linear_model_ops = {
    .tensors = tensors, .metadata = pli_fitted_metadata, .load = load, .predict = pli_fitted_predict,
    .eval = pli_fitted_eval, .rows = rows, .columns = columns, .key = key, .weight = weight, .intercept = intercept,
    .feature = feature
};
