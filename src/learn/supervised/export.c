/* Makes the answers of predict from scores, as nodes of ONNX:
 *
 *     probabilities [rows, classes]   of classes, as predict --proba; hinge has none, and gives scores instead
 *     label [rows]                    of classes, as the data wrote them: int64 if all are integers, else texts
 *     prediction [rows, 1]            of numbers
 */
#include "graph/form/export.h"
#include "learn/supervised/fitted.h"

/* --- rows -------------------------------------------------------------------------------------------------------- */

const char *pli_fitted_export_rows(const plait_model *model, pli_export *to, int64_t features) {
    const plait_shape shape = plait_shape_2(PLAIT_ANY, features);
    if (pli_schema_origins(model->schema) == 0) return pli_export_input(to, "x", PLAIT_F32, shape, "rows");
    double *origin = pli_array((size_t)features, sizeof *origin);
    if (origin == NULL) return pli_export_fail(to, PLAIT_ENOMEM, "no memory to export a model");
    for (int64_t j = 0; j < features; j++) origin[j] = pli_schema_origin(model->schema, (uint64_t)j);
    const plait_tensor t = plait_tensor_of(PLAIT_F64, plait_shape_1(features), origin);
    const char        *x = pli_export_input(to, "x", PLAIT_F64, shape, "rows");
    const char        *less = pli_export_2(to, "Sub", x, pli_export_array(to, "origin", &t, false));
    pli_free(origin);
    return pli_export_cast(to, less, PLAIT_F32);
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

/* The labels of the classes: as integers if all are, else as texts. */
static const char *labels_of(const plait_model *model, pli_export *to, bool *texts_out) {
    const int64_t n = model->classes;
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
    if (pli_fitted_of(model)->goal.columns > 1) return pli_export_node(to, "ArgMax", in, attrs, 2);
    const char *is_second = pli_export_2(to, "Greater", scores, pli_export_number(to, type, 0));
    return pli_export_2(to, "Squeeze", pli_export_cast(to, is_second, PLAIT_I64), pli_export_ints(to, 1, &second));
}

static const char *probabilities(const plait_model *model, pli_export *to, const char *scores) {
    const pli_onnx_attr axis = pli_export_int("axis", 1);
    const char *const   one[] = { scores, NULL };
    if (pli_fitted_of(model)->goal.columns > 1) return pli_export_node(to, "Softmax", one, &axis, 1);
    const char *const both[] = { pli_export_1(to, "Sigmoid", pli_export_1(to, "Neg", scores)),
                                 pli_export_1(to, "Sigmoid", scores), NULL };
    return pli_export_node(to, "Concat", both, &axis, 1);
}

/* Adds an output [rows, width]; for a net of text [rows, steps, width]. */
static void answer(const plait_model *model, pli_export *to, const char *value, plait_type type, const char *name,
                   int64_t width) {
    const int64_t steps = pli_fitted_of(model)->row_labels, lengths[] = { -1, steps, width };
    plait_shape   shape = plait_shape_2(PLAIT_ANY, width);
    if (type != PLAIT_F32) value = pli_export_cast(to, value, PLAIT_F32);
    if (steps > 1) {
        shape = (plait_shape){ .rank = 3, .dim = { PLAIT_ANY, steps, width } };
        value = pli_export_2(to, "Reshape", value, pli_export_ints(to, 3, lengths));
    }
    pli_export_output(to, value, name, PLAIT_F32, false, shape, "rows");
}

static void answer_label(const plait_model *model, pli_export *to, plait_type type, const char *scores) {
    const int64_t steps = pli_fitted_of(model)->row_labels, lengths[] = { -1, steps };
    bool          texts = false;
    const char   *labels = labels_of(model, to, &texts);
    const char   *value = pli_export_2(to, "Gather", labels, class_of(model, to, type, scores));
    if (steps > 1) value = pli_export_2(to, "Reshape", value, pli_export_ints(to, 2, lengths));
    pli_export_output(to, value, "label", PLAIT_I64, texts,
                      steps > 1 ? plait_shape_2(PLAIT_ANY, steps) : plait_shape_1(PLAIT_ANY), "rows");
}

void pli_fitted_export(const plait_model *model, pli_export *to, plait_type type, const char *scores) {
    const pli_goal *goal = &pli_fitted_of(model)->goal;
    if (goal->classes == 0) {
        if (goal->loss->log_mean) scores = pli_export_1(to, "Exp", scores);
        answer(model, to, scores, type, "prediction", 1);
    } else {
        if (goal->loss->probability != NULL)
            answer(model, to, probabilities(model, to, scores), type, "probabilities", goal->classes);
        else
            answer(model, to, scores, type, "scores", goal->columns);
        answer_label(model, to, type, scores);
    }
    pli_export_note(to, "plait.loss", goal->loss->model);
}
