/* What a cross-validation shows: a line for each fold, the mean and the spread over them. A classification also shows
 * what the rows that were held out came to, class by class. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cv.h"

/* --- figures ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name, *title;
    size_t      at;
} own[] = {
    { "test_loss", "loss", offsetof(plait_report, test_loss) },
    { "test_accuracy", "accuracy", offsetof(plait_report, test_accuracy) },
    { "test_auc", "AUC", offsetof(plait_report, test_auc) },
    { "test_rmse", "RMSE", offsetof(plait_report, test_rmse) },
    { "test_mae", "MAE", offsetof(plait_report, test_mae) },
};
enum { OWN = sizeof own / sizeof *own };

double pli_cv_value(const pli_cv_fold *fold, const char *name) {
    const plait_report *r = &fold->report;
    for (size_t i = 0; i < OWN; i++)
        if (pli_is(name, own[i].name)) return *(const double *)((const char *)r + own[i].at);
    for (int32_t i = 0; i < r->n_figures; i++)
        if (pli_is(name, r->figures[i].name)) return r->figures[i].value;
    return (double)NAN;
}

/* false: no fold has the figure. */
static bool summarize(const pli_cv *cv, const char *name, pli_cv_figure *out) {
    double sum = 0, squares = 0;
    int32_t n = 0;
    for (int32_t f = 0; f < cv->n; f++) {
        const double x = cv->fold[f].done ? pli_cv_value(&cv->fold[f], name) : (double)NAN;
        if (isfinite(x)) sum += x, n++;
    }
    if (n == 0) return false;
    const double mean = sum / n;
    for (int32_t f = 0; f < cv->n; f++) {
        const double x = cv->fold[f].done ? pli_cv_value(&cv->fold[f], name) : (double)NAN;
        if (isfinite(x)) squares += (x - mean) * (x - mean);
    }
    *out = (pli_cv_figure){ .mean = mean, .deviation = n > 1 ? sqrt(squares / (n - 1)) : (double)NAN };
    snprintf(out->name, sizeof out->name, "%s", name);
    return true;
}

static const pli_cv_fold *first_done(const pli_cv *cv) {
    for (int32_t f = 0; f < cv->n; f++)
        if (cv->fold[f].done) return &cv->fold[f];
    return NULL;
}

/* 0: the model has no classes, or no fold is done. */
static int64_t classes_of(const pli_cv *cv) {
    const pli_cv_fold *fold = first_done(cv);
    return fold != NULL ? fold->report.classes : 0;
}

int32_t pli_cv_figures(const pli_cv *cv, pli_cv_figure figures[PLI_CV_FIGURES]) {
    const pli_cv_fold *fold = first_done(cv);
    int32_t            n = 0;
    for (size_t i = 0; i < OWN; i++) n += summarize(cv, own[i].name, &figures[n]);
    for (int32_t i = 0; fold != NULL && i < fold->report.n_figures; i++) {
        const char *name = fold->report.figures[i].name;
        if (strncmp(name, "test_", 5) == 0) n += summarize(cv, name, &figures[n]);
    }
    return n;
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static const char *title_of(const char *name) {
    for (size_t i = 0; i < OWN; i++)
        if (pli_is(name, own[i].name)) return own[i].title;
    return name + strlen("test_");
}

static void add_line(pli_text *text, const char *name, const pli_cv_figure *figures, int32_t n, size_t field) {
    pli_text_add(text, "%9s %10s", name, "");
    for (int32_t i = 0; i < n; i++) {
        const double x = *(const double *)((const char *)&figures[i] + field);
        if (isfinite(x)) pli_text_add(text, " %12.6g", x);
        else pli_text_add(text, " %12s", "-");
    }
    pli_text_add(text, "\n");
}

static void add_fold(pli_text *text, const pli_cv *cv, int32_t f, const pli_cv_figure *figures, int32_t n) {
    const pli_cv_fold *fold = &cv->fold[f];
    char               name[40];
    snprintf(name, sizeof name, "%" PRId32, f + 1);
    pli_text_add(text, "%9.30s %10" PRId64, cv->name != NULL ? cv->name[f] : name, fold->held_out);
    for (int32_t i = 0; i < n; i++) {
        const double x = pli_cv_value(fold, figures[i].name);
        if (isfinite(x)) pli_text_add(text, " %12.6g", x);
        else pli_text_add(text, " %12s", "-");
    }
    if (fold->report.converged == 0) pli_text_add(text, "  not converged");
    pli_text_add(text, "\n");
}

void pli_cv_text(const pli_cv *cv, pli_text *text) {
    pli_cv_figure figures[PLI_CV_FIGURES];
    const int32_t n = pli_cv_figures(cv, figures);
    pli_text_add(text, "%-18s %s\n%-18s %" PRId64 "\n%-18s %" PRId64 "\n", "model", cv->model, "rows", cv->rows,
                 "features", cv->features);
    if (classes_of(cv) > 0) pli_text_add(text, "%-18s %" PRId64 "\n", "classes", classes_of(cv));
    pli_text_add(text, "%-18s %" PRId32 ", %s%s%s\n\n%9s %10s", "folds", cv->n, cv->way,
                 cv->group != NULL ? " of column " : "", cv->group != NULL ? cv->group : "", "fold", "held out");
    for (int32_t i = 0; i < n; i++) pli_text_add(text, " %12s", title_of(figures[i].name));
    pli_text_add(text, "\n");
    for (int32_t f = 0; f < cv->n; f++)
        if (cv->fold[f].done) add_fold(text, cv, f, figures, n);
    add_line(text, "mean", figures, n, offsetof(pli_cv_figure, mean));
    add_line(text, "deviation", figures, n, offsetof(pli_cv_figure, deviation));
    if (cv->by_class.classes <= PLI_CLASSES_SHOWN) pli_by_class_text(&cv->by_class, text);
}

/* --- JSON --------------------------------------------------------------------------------------------------------- */

static void json_fold(const pli_cv *cv, int32_t f, const pli_cv_figure *figures, int32_t n, pli_text *text) {
    const pli_cv_fold  *fold = &cv->fold[f];
    const plait_report *r = &fold->report;
    pli_json_object(text, NULL);
    pli_json_i64(text, "fold", f + 1);
    pli_json_text(text, "name", cv->name != NULL ? cv->name[f] : NULL);
    pli_json_i64(text, "rows", r->rows);
    pli_json_i64(text, "held_out", fold->held_out);
    pli_json_text(text, "optimizer", r->optimizer);
    pli_json_i64(text, "epochs", r->epochs);
    pli_json_f64(text, "objective", r->objective);
    pli_json_f64(text, "train_loss", r->train_loss);
    pli_json_f64(text, "gap", r->gap);
    if (r->converged < 0) pli_json_null(text, "converged");
    else pli_json_bool(text, "converged", r->converged > 0);
    for (int32_t i = 0; i < n; i++) pli_json_f64(text, figures[i].name, pli_cv_value(fold, figures[i].name));
    pli_json_f64(text, "train_seconds", r->train_seconds);
    pli_json_text(text, "model_hash", r->model_hash);
    pli_json_end(text);
}

static void json_figures(const char *key, const pli_cv_figure *figures, int32_t n, size_t field, pli_text *text) {
    pli_json_object(text, key);
    for (int32_t i = 0; i < n; i++)
        pli_json_f64(text, figures[i].name, *(const double *)((const char *)&figures[i] + field));
    pli_json_end(text);
}

static void json_seen(const pli_cv *cv, pli_text *text) {
    const pli_seen **seen = pli_calloc((size_t)cv->n, sizeof *seen);
    for (int32_t f = 0; seen != NULL && f < cv->n; f++) seen[f] = cv->fold[f].done ? &cv->fold[f].seen : NULL;
    if (seen != NULL) pli_seen_json(seen, cv->n, cv->by_class.label, text);
    else text->failed = true;
    pli_free(seen);
}

void pli_cv_json(const pli_cv *cv, pli_text *text) {
    pli_cv_figure figures[PLI_CV_FIGURES];
    const int32_t n = pli_cv_figures(cv, figures);
    pli_json_begin(text);
    pli_json_text(text, "model", cv->model);
    pli_json_i64(text, "rows", cv->rows);
    pli_json_i64(text, "features", cv->features);
    if (classes_of(cv) > 0) pli_json_i64(text, "classes", classes_of(cv));
    else pli_json_null(text, "classes");
    pli_json_i64(text, "folds", cv->n);
    pli_json_text(text, "split", cv->way);
    pli_json_text(text, "group", cv->group);
    pli_json_u64(text, "seed", cv->seed);
    json_figures("mean", figures, n, offsetof(pli_cv_figure, mean), text);
    json_figures("deviation", figures, n, offsetof(pli_cv_figure, deviation), text);
    pli_json_list(text, "fold");
    for (int32_t f = 0; f < cv->n; f++)
        if (cv->fold[f].done) json_fold(cv, f, figures, n, text);
    pli_json_list_end(text);
    pli_by_class_json(&cv->by_class, text);
    json_seen(cv, text);
    pli_json_raw(text, "options", cv->options.data);
    pli_json_end(text);
    pli_text_add(text, "\n");
}
