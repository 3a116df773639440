/* A model of naive Bayes that has been fitted: its scores, its tensors, its form in ONNX.
 *
 *     weight [rows, K], bias [K]                     linear scores: multinomial, complement, bernoulli
 *     mean, variance [rows, K], bias [K]             gaussian
 *     key [rows]                                     where features are few of many */
#include <math.h>
#include <string.h>

#include "graph/form/export.h"
#include "learn/bayes/bayes.h"

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* What all rows have in common. */
typedef struct common {
    pli_keymap *map;  /* of a solution with keys           */
    double     *half; /* [rows, K] gaussian: -1 / 2v       */
    double     *base; /* [2, K] the score but for the features; and that of a row of zeros */
} common;

static void close(void *scorer) {
    common *c = scorer;
    if (c == NULL) return;
    pli_solution_unmap(c->map);
    pli_free(c->half);
    pli_free(c->base);
    pli_free(c);
}

static plait_status prepare_moments(const pli_solution *s, int64_t k, common *c, plait_error *err) {
    const double *mean = s->weight, *variance = mean + s->rows * k;
    c->half = pli_array((size_t)(s->rows * k), sizeof *c->half);
    c->base = pli_array((size_t)k, 2 * sizeof *c->base);
    if (c->half == NULL || c->base == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    double *zeros = c->base + k;
    for (int64_t i = 0; i < k; i++) {
        c->base[i] = s->bias[i];
        zeros[i] = 0;
    }
    for (int64_t i = 0; i < s->rows * k; i++) {
        c->half[i] = -0.5 / variance[i];
        c->base[i % k] -= 0.5 * log(2 * M_PI * variance[i]);
        zeros[i % k] += mean[i] * mean[i] * c->half[i];
    }
    for (int64_t i = 0; i < k; i++) zeros[i] += c->base[i];
    return PLAIT_OK;
}

static plait_status open(const void *form, const pli_solution *solution, void **scorer_out, plait_error *err) {
    const pli_bayes_scorer *scorer = form;
    common                 *c = *scorer_out = pli_calloc(1, sizeof *c);
    if (c == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    plait_status status = pli_solution_map(solution, &c->map, err);
    if (status >= 0 && scorer->events == PLI_EVENTS_GAUSSIAN)
        status = prepare_moments(solution, scorer->classes, c, err);
    if (status >= 0) return PLAIT_OK;
    close(c);
    *scorer_out = NULL;
    return status;
}

/* A row's entries, by rows of the solution; UINT32_MAX, or one beyond them: a feature that the model does not know. */
typedef struct entries {
    int64_t         n;
    const uint32_t *index;
    const float    *value; /* NULL: all 1 */
} entries;

static double value_at(const entries *row, int64_t e) { return row->value != NULL ? (double)row->value[e] : 1; }

static void score_linear(const pli_bayes_scorer *scorer, const pli_solution *s, const entries *row, double *score) {
    const int64_t k = scorer->classes;
    memcpy(score, s->bias, (size_t)k * sizeof *score);
    for (int64_t e = 0; e < row->n; e++) {
        double x = value_at(row, e);
        if ((int64_t)row->index[e] >= s->rows) continue;
        if (scorer->events == PLI_EVENTS_BERNOULLI) x = x > 0;
        const double *weight = s->weight + (int64_t)row->index[e] * k;
        for (int64_t i = 0; i < k; i++) score[i] += x * weight[i];
    }
}

/* A row with few values moves the score of a row of zeros: (x - m)^2 - m^2 = x (x - 2m). */
static void score_few(const pli_solution *s, int64_t k, const common *c, const entries *row, double *score) {
    memcpy(score, c->base + k, (size_t)k * sizeof *score);
    for (int64_t e = 0; e < row->n; e++) {
        const int64_t at = (int64_t)row->index[e] * k;
        const double  x = value_at(row, e);
        for (int64_t i = 0; i < k && row->index[e] < s->rows; i++)
            score[i] += x * (x - 2 * s->weight[at + i]) * c->half[at + i];
    }
}

/* One with many is scored feature by feature: large means do not cancel. */
static void score_many(const pli_solution *s, int64_t k, const common *c, const entries *row, double *score) {
    int64_t e = 0;
    memcpy(score, c->base, (size_t)k * sizeof *score);
    for (int64_t j = 0; j < s->rows; j++) {
        const bool    given = e < row->n && row->index[e] == j;
        const double  x = given ? value_at(row, e) : 0;
        const double *mean = s->weight + j * k, *half = c->half + j * k;
        e += given;
        for (int64_t i = 0; i < k; i++) score[i] += (x - mean[i]) * (x - mean[i]) * half[i];
    }
}

static void score_row(const pli_bayes_scorer *scorer, const pli_solution *s, const common *c, const entries *row,
                      double *score) {
    if (scorer->events != PLI_EVENTS_GAUSSIAN) score_linear(scorer, s, row, score);
    else if (row->n * 4 < s->rows) score_few(s, scorer->classes, c, row, score);
    else score_many(s, scorer->classes, c, row, score);
    if (scorer->classes == 2) score[0] = score[1] - score[0]; /* one column: the log odds */
}

static plait_status score_block(const void *form, const pli_solution *solution, void *scorer, const pli_block *block,
                                pli_score_fn *each, void *user, plait_error *err) {
    const pli_bayes_scorer *how = form;
    const common           *c = scorer;
    double                 *score = pli_array((size_t)how->classes, 3 * sizeof *score);
    uint32_t               *local = NULL;
    plait_status            status = score != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for scores");
    if (status == PLAIT_OK && (c->map != NULL || block->col == NULL))
        status = pli_solution_find(solution, c->map, block, &local, err);
    const uint32_t *index = local != NULL ? local : block->col;
    for (int64_t r = 0; status == PLAIT_OK && r < block->rows; r++) {
        const int64_t at = block->row_start[r];
        const entries row = { block->row_start[r + 1] - at, index + at,
                              block->value != NULL ? block->value + at : NULL };
        score_row(how, solution, c, &row, score);
        if (!each(user, block, r, block->label[r], score, score + how->classes)) break;
    }
    pli_free(score);
    pli_free(local);
    return status;
}

const pli_scoring_ops pli_bayes_scoring = { .open = open, .close = close, .block = score_block };

/* --- its file ----------------------------------------------------------------------------------------------------- */

static const pli_bayes_scorer *scorer_of(const plait_model *model) {
    return &((const pli_bayes_model *)model->own)->scorer;
}
static bool is_gaussian(const plait_model *model) { return scorer_of(model)->events == PLI_EVENTS_GAUSSIAN; }

static pli_tensor matrix(const char *name, int64_t rows, int64_t k, const double *values) {
    return (pli_tensor){ .name = name, .type = "F64", .dims = 2, .shape = { rows, k }, .data = values,
                         .bytes = (size_t)(rows * k) * sizeof *values };
}

static plait_status tensors(const plait_model *model, pli_model_tensors *out, plait_error *err) {
    const pli_solution *s = pli_fitted_solution(model);
    const int64_t       k = model->classes;
    (void)err;
    out->tensor[out->n++] = (pli_tensor){ .name = "bias", .type = "F64", .dims = 1, .shape = { k }, .data = s->bias,
                                          .bytes = (size_t)k * sizeof *s->bias };
    if (s->key != NULL)
        out->tensor[out->n++] = (pli_tensor){ .name = "key", .type = "U64", .dims = 1, .shape = { s->rows },
                                              .data = s->key, .bytes = (size_t)s->rows * sizeof *s->key };
    out->tensor[out->n++] = matrix(is_gaussian(model) ? "mean" : "weight", s->rows, k, s->weight);
    if (is_gaussian(model)) out->tensor[out->n++] = matrix("variance", s->rows, k, s->weight + s->rows * k);
    return PLAIT_OK;
}

static void metadata(const plait_model *model, pli_model_meta *meta) {
    pli_fitted_metadata(model, meta);
    pli_model_meta_add(meta, "plait.events", pli_events_name[scorer_of(model)->events]);
}

/* A tensor of doubles [rows, columns], or [columns] where rows is 0; NULL: it is missing, or of another shape. */
static const void *find_values(const pli_safetensors *file, const char *name, int64_t rows, int64_t columns) {
    const pli_tensor *t = pli_safetensors_find(file, name);
    const int32_t     dims = rows > 0 ? 2 : 1;
    if (t == NULL || strcmp(t->type, "F64") != 0 || t->dims != dims) return NULL;
    return t->shape[dims - 1] == columns && (rows == 0 || t->shape[0] == rows) ? t->data : NULL;
}

static plait_status read_keys(const pli_safetensors *file, const char *path, pli_solution *solution, plait_error *err) {
    const pli_tensor *key = pli_safetensors_find(file, "key");
    if (key == NULL) return PLAIT_OK;
    if (key->dims != 1 || key->shape[0] != solution->rows || strcmp(key->type, "U64") != 0)
        return pli_not_a_model(path, "its keys do not match its weights", err);
    memcpy(solution->key, key->data, (size_t)solution->rows * sizeof *solution->key);
    return pli_is_increasing_u64(solution->rows, solution->key) ? PLAIT_OK
                                                                : pli_not_a_model(path, "keys are out of order", err);
}

static plait_status read_solution(const pli_safetensors *file, const char *path, plait_model *model, bool gaussian,
                                  plait_error *err) {
    const int64_t     k = model->classes;
    const pli_tensor *first = pli_safetensors_find(file, gaussian ? "mean" : "weight");
    const int64_t     rows = first != NULL && first->dims == 2 ? first->shape[0] : 0;
    const void       *weight = rows > 0 ? find_values(file, first->name, rows, k) : NULL,
               *variance = rows > 0 && gaussian ? find_values(file, "variance", rows, k) : weight,
               *bias = find_values(file, "bias", 0, k);
    const bool        keyed = pli_safetensors_find(file, "key") != NULL;
    pli_solution     *s = &pli_fitted_of(model)->solution;
    if (weight == NULL || variance == NULL || bias == NULL)
        return pli_not_a_model(path, "its weights do not have the form that it declares", err);
    if (!keyed && rows != model->features) return pli_not_a_model(path, "its weights do not match its features", err);
    PLI_TRY(pli_solution_make(rows, k * (gaussian ? 2 : 1), keyed, s, err));
    memcpy(s->weight, weight, (size_t)(rows * k) * sizeof(double));
    if (gaussian) memcpy(s->weight + rows * k, variance, (size_t)(rows * k) * sizeof(double));
    memcpy(s->bias, bias, (size_t)k * sizeof(double));
    return read_keys(file, path, s, err);
}

static plait_status load(const pli_safetensors *file, const char *path, plait_model *model, plait_error *err) {
    const char   *name = pli_safetensors_metadata(file, "plait.events");
    const int32_t events = name != NULL ? pli_events_find(name) : -1;
    if (events < 0 || model->classes < 2) return pli_not_a_model(path, "its description is incomplete", err);
    PLI_TRY(pli_fitted_read(file, path, model, "logistic", err));
    PLI_TRY(read_solution(file, path, model, events == PLI_EVENTS_GAUSSIAN, err));
    pli_bayes_open_model(model, (pli_events)events);
    return PLAIT_OK;
}

void pli_bayes_open_model(plait_model *model, pli_events events) {
    pli_bayes_model *own = model->own;
    own->scorer = (pli_bayes_scorer){ events, model->classes };
    own->fitted.scoring = &pli_bayes_scoring;
    own->fitted.form = &own->scorer;
    own->fitted.row_labels = 1;
}

/* --- its weights: of gaussian the means, and behind them the variances -------------------------------------------- */

static int64_t rows(const plait_model *model) { return pli_fitted_solution(model)->rows; }
static int64_t columns(const plait_model *model) { return model->classes * (is_gaussian(model) ? 2 : 1); }

static uint64_t key(const plait_model *model, int64_t row) {
    const pli_solution *s = pli_fitted_solution(model);
    return s->key != NULL ? s->key[row] : (uint64_t)row;
}

static double weight(const plait_model *model, int64_t row, int64_t column) {
    const pli_solution *s = pli_fitted_solution(model);
    const int64_t       k = model->classes;
    return s->weight[(column / k * s->rows + row) * k + column % k];
}

static double intercept(const plait_model *model, int64_t column) {
    return column < model->classes ? pli_fitted_solution(model)->bias[column] : 0;
}

static void feature(const plait_model *model, int64_t row, pli_text *text) {
    pli_schema_feature_name(model->schema, key(model, row), text);
}

/* --- export ------------------------------------------------------------------------------------------------------- */

/* What scores are of two matrices: x [rows, d] times linear [d, C], x^2 times square [d, C] (NULL: none), and bias [C].
 * x is measured from centre [d] (NULL: 0). C is 1 for two classes, else K. */
typedef struct exported {
    int64_t d, columns;
    double *linear, *square, *bias, *centre;
} exported;

static void free_exported(exported *e) {
    pli_free(e->linear);
    pli_free(e->square);
    pli_free(e->bias);
    pli_free(e->centre);
}

static plait_status make_exported(int64_t d, int64_t columns, bool gaussian, exported *e, plait_error *err) {
    *e = (exported){ .d = d, .columns = columns };
    e->linear = pli_calloc((size_t)(d * columns), sizeof(double));
    e->bias = pli_calloc((size_t)columns, sizeof(double));
    e->square = gaussian ? pli_calloc((size_t)(d * columns), sizeof(double)) : NULL;
    e->centre = gaussian ? pli_calloc((size_t)d, sizeof(double)) : NULL;
    if (e->linear != NULL && e->bias != NULL && (!gaussian || (e->square != NULL && e->centre != NULL)))
        return PLAIT_OK;
    free_exported(e);
    return pli_fail(err, PLAIT_ENOMEM, "no memory to export a model");
}

/* Adds class k's part to the columns that it is in: of two classes the second counts for the score, the first
 * against. */
static void add_class(exported *e, int64_t k, double *to, int64_t row, double x) {
    if (e->columns == 1) to[row] += k == 1 ? x : -x;
    else to[row * e->columns + k] += x;
}

/* (x - m)^2 in terms of x - c, c the middle of the means: means far from 0 do not cancel. */
static void fill_moments(const pli_solution *s, int64_t classes, exported *e) {
    const double *mean = s->weight, *variance = mean + s->rows * classes;
    for (int64_t j = 0; j < s->rows; j++)
        for (int64_t k = 0; k < classes; k++) e->centre[j] += mean[j * classes + k] / (double)classes;
    for (int64_t i = 0; i < s->rows * classes; i++) {
        const int64_t j = i / classes, k = i % classes;
        const double  m = mean[i] - e->centre[j], v = variance[i];
        add_class(e, k, e->square, j, -0.5 / v);
        add_class(e, k, e->linear, j, m / v);
        add_class(e, k, e->bias, 0, -0.5 * (log(2 * M_PI * v) + m * m / v));
    }
}

static const char *array(pli_export *to, const char *name, plait_shape shape, const double *values) {
    const plait_tensor t = plait_tensor_of(PLAIT_F64, shape, (void *)(uintptr_t)values);
    return pli_export_array(to, name, &t, false);
}

static const char *write_scores(pli_export *to, pli_events events, const exported *e) {
    const char *x = pli_export_cast(to, pli_export_input(to, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, e->d), "rows"),
                                    PLAIT_F64);
    if (events == PLI_EVENTS_BERNOULLI)
        x = pli_export_cast(to, pli_export_2(to, "Greater", x, pli_export_number(to, PLAIT_F64, 0)), PLAIT_F64);
    if (e->centre != NULL) x = pli_export_2(to, "Sub", x, array(to, "centre", plait_shape_1(e->d), e->centre));
    const char *scores =
        pli_export_2(to, "MatMul", x, array(to, "weight", plait_shape_2(e->d, e->columns), e->linear));
    if (e->square != NULL) {
        const char *square = array(to, "square", plait_shape_2(e->d, e->columns), e->square);
        scores = pli_export_2(to, "Add", scores, pli_export_2(to, "MatMul", pli_export_2(to, "Mul", x, x), square));
    }
    return pli_export_2(to, "Add", scores, array(to, "bias", plait_shape_1(e->columns), e->bias));
}

plait_status pli_bayes_export(const plait_model *model, pli_export *to, plait_error *err) {
    const pli_solution *s = pli_fitted_solution(model);
    const int64_t       k = model->classes, columns_of = pli_fitted_of(model)->goal.columns;
    exported            e;
    if (s->key != NULL)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "a model whose weights are stored by key is refused: its %lld of %lld features would become a dense "
            "matrix; train with --hash-bits 20",
            (long long)s->rows, (long long)model->features);
    PLI_TRY(make_exported(s->rows, columns_of, is_gaussian(model), &e, err));
    for (int64_t c = 0; c < k; c++) add_class(&e, c, e.bias, 0, s->bias[c]);
    if (is_gaussian(model)) fill_moments(s, k, &e);
    for (int64_t i = 0; i < s->rows * k && !is_gaussian(model); i++)
        add_class(&e, i % k, e.linear, i / k, s->weight[i]);
    pli_fitted_export(model, to, PLAIT_F64, write_scores(to, scorer_of(model)->events, &e));
    free_exported(&e);
    return PLAIT_OK;
}

const pli_model_ops pli_bayes_model_ops = {
    .tensors = tensors, .metadata = metadata, .load = load, .predict = pli_fitted_predict, .eval = pli_fitted_eval,
    .rows = rows, .columns = columns, .key = key, .weight = weight, .intercept = intercept, .feature = feature
};
