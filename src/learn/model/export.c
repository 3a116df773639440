/* A model for other runtimes, as ONNX: from x [rows, features], in the data's own units, to what predict says.
 *
 *     probabilities [rows, classes]   as predict --proba has them; of hinge, which has none, scores
 *     label [rows]                    of classes, as the data wrote it: int64 where all are integers, else texts
 *     prediction [rows, 1]            of numbers
 *
 * A linear model's products are taken in double where its weights are no float32 numbers, as predict takes them. A
 * net's graph is written op by op (graph/form/export_ops.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/form/export.h"
#include "learn/model/model.h"

/* --- scores of a linear model ----------------------------------------------------------------------------------- */

static bool is_narrow(const pli_solution *s, int64_t columns) {
    bool narrow = true;
    for (int64_t i = 0; narrow && i < s->rows * columns; i++) narrow = (double)(float)s->weight[i] == s->weight[i];
    for (int64_t k = 0; narrow && k < columns; k++) narrow = (double)(float)s->bias[k] == s->bias[k];
    return narrow;
}

/* An initialiser of doubles, in the type that scores are taken in. */
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

/* Scores [rows, K] in *type_out. */
static plait_status linear_scores(const plait_model *model, pli_export *to, plait_type *type_out,
                                  const char **scores_out, plait_error *err) {
    const pli_solution *s = &model->solution;
    const int64_t       k = model->linear.columns;
    if (s->key != NULL)
        return pli_fail(
            err, PLAIT_EREFUSED,
            "a model whose weights lie by key is refused: its %lld of %lld features would be a dense matrix; "
            "train with --hash-bits 20",
            (long long)s->rows, (long long)model->linear.features);
    *type_out = is_narrow(s, k) ? PLAIT_F32 : PLAIT_F64;
    const char *x = pli_export_input(to, "x", PLAIT_F32, plait_shape_2(PLAIT_ANY, s->rows), "rows");
    if (*type_out == PLAIT_F64) x = pli_export_cast(to, x, PLAIT_F64);
    const char *w = matrix(to, "weight", *type_out, plait_shape_2(s->rows, k), s->weight);
    const char *b = matrix(to, "bias", *type_out, plait_shape_1(k), s->bias);
    *scores_out = pli_export_2(to, "Add", pli_export_2(to, "MatMul", x, w), b);
    return PLAIT_OK;
}

/* --- of a net --------------------------------------------------------------------------------------------------- */

static const char *net_scores(const plait_model *model, pli_export *to) {
    const pli_net     *net = model->net;
    const plait_tensor x = plait_graph_describe(net->graph, net->x);
    plait_tensor       variable[PLI_NET_PARAMS];
    const plait_type   type = net->symbols > 0 ? PLAIT_I64 : PLAIT_F32;
    int64_t            lengths[PLAIT_RANK_MAX] = { -1 };
    const char        *name = pli_export_input(to, "x", type, plait_shape_2(PLAIT_ANY, net->row_values), "rows");
    for (int32_t p = 0; p < net->n_params; p++) {
        variable[p] = plait_graph_variable_initial(net->graph, p);
        variable[p].data = model->solution.net + net->param[p].at;
    }
    for (int32_t i = 1; i < x.shape.rank; i++) lengths[i] = x.shape.dim[i];
    if (x.shape.rank > 2) name = pli_export_2(to, "Reshape", name, pli_export_ints(to, x.shape.rank, lengths));
    pli_export_begin(to, net->graph, variable);
    pli_export_bind(to, net->x, name);
    const char *scores = pli_export_value(to, net->scores);
    to->variable = NULL; /* their arrays are the model's, and stay */
    return scores;
}

/* --- what predict says ------------------------------------------------------------------------------------------ */

/* The labels, as integers where all of them are. */
static const char *labels_of(const plait_model *model, pli_export *to, bool *texts_out) {
    const int64_t n = model->linear.classes;
    int64_t      *number = pli_array((size_t)n, sizeof *number);
    const char   *name = "";
    if (number == NULL) return pli_export_fail(to, PLAIT_ENOMEM, "no memory to export labels");
    *texts_out = false;
    for (int64_t k = 0; k < n; k++) *texts_out = *texts_out || !pli_parse_i64(model->label_text[k], &number[k]);
    if (*texts_out) {
        name = pli_export_texts(to, n, (const char *const *)model->label_text);
    } else {
        const plait_tensor t = plait_tensor_of(PLAIT_I64, plait_shape_1(n), number);
        name = pli_export_array(to, "labels", &t, false);
    }
    pli_free(number);
    return name;
}

/* The class that the scores mean [rows]. */
static const char *class_of(const plait_model *model, pli_export *to, plait_type type, const char *scores) {
    const int64_t       second = 1;
    const pli_onnx_attr attrs[] = { pli_export_int("axis", 1), pli_export_int("keepdims", 0) };
    const char *const   in[] = { scores, NULL };
    if (model->linear.columns > 1) return pli_export_node(to, "ArgMax", in, attrs, 2);
    const char *is_second = pli_export_2(to, "Greater", scores, pli_export_number(to, type, 0));
    return pli_export_2(to, "Squeeze", pli_export_cast(to, is_second, PLAIT_I64), pli_export_ints(to, 1, &second));
}

static const char *probabilities(const plait_model *model, pli_export *to, const char *scores) {
    const pli_onnx_attr axis = pli_export_int("axis", 1);
    const char *const   one[] = { scores, NULL };
    if (model->linear.columns > 1) return pli_export_node(to, "Softmax", one, &axis, 1);
    const char *const both[] = { pli_export_1(to, "Sigmoid", pli_export_1(to, "Neg", scores)),
                                 pli_export_1(to, "Sigmoid", scores), NULL };
    return pli_export_node(to, "Concat", both, &axis, 1);
}

/* An output [rows, width]; of a net of text [rows, steps, width]. */
static void answer(const plait_model *model, pli_export *to, const char *value, plait_type type, const char *name,
                   int64_t width) {
    const int64_t steps = model->net != NULL ? model->net->row_labels : 1, lengths[] = { -1, steps, width };
    plait_shape   shape = plait_shape_2(PLAIT_ANY, width);
    if (type != PLAIT_F32) value = pli_export_cast(to, value, PLAIT_F32);
    if (steps > 1) {
        shape = (plait_shape){ .rank = 3, .dim = { PLAIT_ANY, steps, width } };
        value = pli_export_2(to, "Reshape", value, pli_export_ints(to, 3, lengths));
    }
    pli_export_output(to, value, name, PLAIT_F32, false, shape, "rows");
}

static void answer_label(const plait_model *model, pli_export *to, plait_type type, const char *scores) {
    const int64_t steps = model->net != NULL ? model->net->row_labels : 1, lengths[] = { -1, steps };
    bool          texts = false;
    const char   *labels = labels_of(model, to, &texts);
    const char   *value = pli_export_2(to, "Gather", labels, class_of(model, to, type, scores));
    if (steps > 1) value = pli_export_2(to, "Reshape", value, pli_export_ints(to, 2, lengths));
    pli_export_output(to, value, "label", PLAIT_I64, texts,
                      steps > 1 ? plait_shape_2(PLAIT_ANY, steps) : plait_shape_1(PLAIT_ANY), "rows");
}

static plait_status export_onnx(const plait_model *model, const char *path, pli_export *to, plait_error *err) {
    const int64_t classes = model->linear.classes;
    plait_type    type = PLAIT_F32;
    const char   *scores;
    if (model->net != NULL)
        scores = net_scores(model, to);
    else
        PLI_TRY(linear_scores(model, to, &type, &scores, err));
    if (classes == 0) {
        answer(model, to, scores, type, "prediction", 1);
    } else {
        if (model->linear.loss->probability != NULL)
            answer(model, to, probabilities(model, to, scores), type, "probabilities", classes);
        else
            answer(model, to, scores, type, "scores", model->linear.columns);
        answer_label(model, to, type, scores);
    }
    pli_export_note(to, "plait.model", model->name);
    pli_export_note(to, "plait.loss", model->linear.loss->model);
    pli_export_note(to, "plait.description", model->description);
    return pli_export_save(to, path, "plait", err);
}

plait_status plait_model_export(const plait_model *model, const char *format, const char *path,
                                plait_error *error_out) {
    static const char *const formats[] = { "onnx" };
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, format));
    PLI_TRY(PLI_GIVEN(error_out, path));
    if (strcmp(format, formats[0]) != 0) return pli_fail_unknown(error_out, "format", format, formats, 1);
    pli_export to;
    pli_export_init(&to);
    plait_status status = export_onnx(model, path, &to, error_out);
    pli_export_destroy(&to);
    return status;
}
