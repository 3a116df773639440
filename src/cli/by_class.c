/* What eval says of each class. Precision is the share of the rows taken for a class that are of it. Recall is the
 * share of the rows of a class that are taken for it. F1 is their harmonic mean. Rows with weights count by weight. */
#include "cli/by_class.h"

#include <math.h>
#include <string.h>

#include "base/json.h"

typedef struct scores {
    double rows, precision, recall, f1;
} scores;

static double share(double part, double whole) { return whole > 0 ? part / whole : (double)NAN; }

static scores scores_of(const pli_by_class *by, int64_t k) {
    const int64_t n = by->classes;
    double        truly = 0, taken = 0;
    for (int64_t other = 0; other < n; other++) {
        truly += by->confusion[k * n + other];
        taken += by->confusion[other * n + k];
    }
    const double right = by->confusion[k * n + k];
    return (scores){ truly, share(right, taken), share(right, truly), share(2 * right, truly + taken) };
}

static plait_status make(int64_t classes, pli_by_class *out, plait_error *err) {
    const size_t n = (size_t)classes;
    *out = (pli_by_class){ .classes = classes, .label = pli_calloc(n, sizeof *out->label),
                           .confusion = pli_calloc(n, n * sizeof *out->confusion) };
    if (out->label != NULL && out->confusion != NULL) return PLAIT_OK;
    pli_by_class_free(out);
    return pli_fail(err, PLAIT_ENOMEM, "no memory for counts of %lld classes", (long long)classes);
}

plait_status pli_by_class_count(const plait_model *model, const plait_data *data, pli_by_class *out,
                                plait_error *err) {
    const int64_t n = plait_model_classes(model);
    *out = (pli_by_class){ 0 };
    if (n <= 0 || n > PLI_CLASSES_COUNTED || plait_data_rows(data) != plait_data_labels(data)) return PLAIT_OK;
    PLI_TRY(make(n, out, err));
    plait_status status = plait_model_confusion(model, data, out->confusion, err);
    for (int64_t k = 0; k < n && status >= 0; k++) {
        out->label[k] = pli_strdup(plait_model_label(model, k));
        if (out->label[k] == NULL) status = pli_fail(err, PLAIT_ENOMEM, "no memory for the label of a class");
    }
    if (status < 0) pli_by_class_free(out);
    return status;
}

plait_status pli_by_class_add(pli_by_class *to, const pli_by_class *more, plait_error *err) {
    if (more->confusion == NULL) return PLAIT_OK;
    if (to->confusion == NULL) {
        PLI_TRY(make(more->classes, to, err));
        for (int64_t k = 0; k < more->classes; k++)
            if ((to->label[k] = pli_strdup(more->label[k])) == NULL)
                return pli_fail(err, PLAIT_ENOMEM, "no memory for the label of a class");
    }
    for (int64_t i = 0; i < to->classes * to->classes; i++) to->confusion[i] += more->confusion[i];
    return PLAIT_OK;
}

void pli_by_class_free(pli_by_class *by) {
    for (int64_t k = 0; by->label != NULL && k < by->classes; k++) pli_free(by->label[k]);
    pli_free(by->label);
    pli_free(by->confusion);
    *by = (pli_by_class){ 0 };
}

static void add_label(const pli_by_class *by, int64_t k, int width, pli_text *text) {
    const char *label = by->label[k];
    const size_t length = strlen(label), most = length < (size_t)width ? length : (size_t)width;
    pli_text_add(text, "%*s", width - (int)most, "");
    pli_text_add_printable(text, label, most, "");
}

static void add_score(double value, pli_text *text) {
    if (isnan(value))
        pli_text_add(text, " %9s", "-");
    else
        pli_text_add(text, " %9.4f", value);
}

static void add_matrix(const pli_by_class *by, pli_text *text) {
    const int64_t n = by->classes;
    pli_text_add(text, "\n%18s  taken for\n%18s", "class", "");
    for (int64_t k = 0; k < n; k++) {
        pli_text_add(text, " ");
        add_label(by, k, 7, text);
    }
    for (int64_t i = 0; i < n; i++) {
        pli_text_add(text, "\n");
        add_label(by, i, 18, text);
        for (int64_t j = 0; j < n; j++) pli_text_add(text, " %7.6g", by->confusion[i * n + j]);
    }
    pli_text_add(text, "\n");
}

void pli_by_class_text(const pli_by_class *by, pli_text *text) {
    if (by->confusion == NULL) return;
    pli_text_add(text, "\n%18s %9s %9s %9s %9s\n", "class", "rows", "precision", "recall", "F1");
    for (int64_t k = 0; k < by->classes; k++) {
        const scores s = scores_of(by, k);
        add_label(by, k, 18, text);
        pli_text_add(text, " %9.8g", s.rows);
        add_score(s.precision, text);
        add_score(s.recall, text);
        add_score(s.f1, text);
        pli_text_add(text, "\n");
    }
    if (by->classes <= PLI_CLASSES_SHOWN) add_matrix(by, text);
}

static void add_list(const pli_by_class *by, const char *key, size_t field, pli_text *text) {
    pli_json_list(text, key);
    for (int64_t k = 0; k < by->classes; k++) {
        const scores s = scores_of(by, k);
        pli_json_f64(text, NULL, *(const double *)((const char *)&s + field));
    }
    pli_json_list_end(text);
}

void pli_by_class_json(const pli_by_class *by, pli_text *text) {
    const int64_t n = by->classes;
    if (by->confusion == NULL) {
        static const char *const keys[] = { "labels", "precision", "recall", "f1", "confusion" };
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) pli_json_null(text, keys[i]);
        return;
    }
    pli_json_list(text, "labels");
    for (int64_t k = 0; k < n; k++) pli_json_text(text, NULL, by->label[k]);
    pli_json_list_end(text);
    add_list(by, "precision", offsetof(scores, precision), text);
    add_list(by, "recall", offsetof(scores, recall), text);
    add_list(by, "f1", offsetof(scores, f1), text);
    pli_json_list(text, "confusion");
    for (int64_t i = 0; i < n; i++) {
        pli_json_list(text, NULL);
        for (int64_t j = 0; j < n; j++) pli_json_f64(text, NULL, by->confusion[i * n + j]);
        pli_json_list_end(text);
    }
    pli_json_list_end(text);
}
