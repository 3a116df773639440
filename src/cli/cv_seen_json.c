/* What the rows of all folds showed, as keys of cv's JSON object: "roc", "calibration" and "residuals". */
#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/cv_seen.h"

enum { HISTOGRAM = 40 };

/* The folds that are done. */
typedef struct folds {
    const pli_seen *const *seen;
    int32_t                n;
} folds;

static const pli_seen *first(const folds *all) {
    for (int32_t f = 0; f < all->n; f++)
        if (all->seen[f] != NULL) return all->seen[f];
    return NULL;
}

static void add_mean(pli_text *text, const char *key, double sum, double n) {
    pli_json_f64(text, key, n > 0 ? sum / n : (double)NAN);
}

/* --- ROC ---------------------------------------------------------------------------------------------------------- */

/* Does the curve of a fold exist? */
static bool has(const pli_seen *seen, int64_t curve) { return seen != NULL && isfinite(seen->auc[curve]); }

static double rate_of(const pli_seen *seen, int64_t curve, int32_t point) {
    return seen->rate[curve * PLI_SEEN_POINTS + point];
}

/* A list of AUCs for each fold. */
static void add_areas(const folds *all, int64_t curves, pli_text *text) {
    pli_json_list(text, "auc");
    for (int32_t f = 0; f < all->n; f++) {
        if (all->seen[f] == NULL) continue;
        pli_json_list(text, NULL);
        for (int64_t c = 0; c < curves; c++) pli_json_f64(text, NULL, all->seen[f]->auc[c]);
        pli_json_list_end(text);
    }
    pli_json_list_end(text);
}

/* A curve for each fold: the mean over its classes. */
static void add_by_fold(const folds *all, int64_t curves, pli_text *text) {
    pli_json_list(text, "by_fold");
    for (int32_t f = 0; f < all->n; f++) {
        if (all->seen[f] == NULL) continue;
        pli_json_list(text, NULL);
        for (int32_t i = 0; i < PLI_SEEN_POINTS; i++) {
            double sum = 0, n = 0;
            for (int64_t c = 0; c < curves; c++)
                if (has(all->seen[f], c)) sum += rate_of(all->seen[f], c, i), n++;
            pli_json_short(text, NULL, n > 0 ? sum / n : (double)NAN);
        }
        pli_json_list_end(text);
    }
    pli_json_list_end(text);
}

/* A curve for each class, or one: the mean over the folds. */
static void add_by_class(const folds *all, int64_t curves, pli_text *text) {
    pli_json_list(text, "by_class");
    for (int64_t c = 0; c < curves; c++) {
        pli_json_list(text, NULL);
        for (int32_t i = 0; i < PLI_SEEN_POINTS; i++) {
            double sum = 0, n = 0;
            for (int32_t f = 0; f < all->n; f++)
                if (has(all->seen[f], c)) sum += rate_of(all->seen[f], c, i), n++;
            pli_json_short(text, NULL, n > 0 ? sum / n : (double)NAN);
        }
        pli_json_list_end(text);
    }
    pli_json_list_end(text);
}

static void add_roc(const folds *all, char *const *labels, pli_text *text) {
    const pli_seen *one = first(all);
    if (one == NULL || one->curves == 0 || labels == NULL) {
        pli_json_null(text, "roc");
        return;
    }
    pli_json_object(text, "roc");
    pli_json_list(text, "classes");
    for (int64_t c = 0; c < one->curves; c++) pli_json_text(text, NULL, labels[one->curves == 1 ? 1 : c]);
    pli_json_list_end(text);
    add_areas(all, one->curves, text);
    add_by_fold(all, one->curves, text);
    add_by_class(all, one->curves, text);
    pli_json_end(text);
}

/* --- calibration -------------------------------------------------------------------------------------------------- */

static void add_bins(const pli_seen_bin bin[PLI_SEEN_BINS], const char *key, size_t field, pli_text *text) {
    pli_json_list(text, key);
    for (int32_t i = 0; i < PLI_SEEN_BINS; i++) {
        const double sum = *(const double *)((const char *)&bin[i] + field);
        if (field == offsetof(pli_seen_bin, weight)) pli_json_f64(text, NULL, sum);
        else add_mean(text, NULL, sum, bin[i].weight);
    }
    pli_json_list_end(text);
}

static void add_calibration(const folds *all, char *const *labels, pli_text *text) {
    const pli_seen *one = first(all);
    pli_seen_bin    bin[PLI_SEEN_BINS] = { 0 };
    double          error = 0, weight = 0;
    if (one == NULL || !one->calibrated) {
        pli_json_null(text, "calibration");
        return;
    }
    for (int32_t f = 0; f < all->n; f++)
        for (int32_t i = 0; all->seen[f] != NULL && i < PLI_SEEN_BINS; i++) {
            bin[i].weight += all->seen[f]->bin[i].weight;
            bin[i].predicted += all->seen[f]->bin[i].predicted;
            bin[i].right += all->seen[f]->bin[i].right;
        }
    for (int32_t i = 0; i < PLI_SEEN_BINS; i++) {
        error += fabs(bin[i].predicted - bin[i].right);
        weight += bin[i].weight;
    }
    pli_json_object(text, "calibration");
    pli_json_text(text, "of", one->curves == 1 && labels != NULL ? labels[1] : NULL);
    add_bins(bin, "weight", offsetof(pli_seen_bin, weight), text);
    add_bins(bin, "predicted", offsetof(pli_seen_bin, predicted), text);
    add_bins(bin, "came_true", offsetof(pli_seen_bin, right), text);
    add_mean(text, "error", error, weight);
    pli_json_end(text);
}

/* --- residuals ---------------------------------------------------------------------------------------------------- */

/* All residuals, sorted; NULL: there are none, or no memory. */
static double *sorted(const folds *all, int64_t *n_out) {
    int64_t n = 0;
    for (int32_t f = 0; f < all->n; f++) n += all->seen[f] != NULL ? all->seen[f]->values : 0;
    *n_out = n;
    double *value = n > 0 ? pli_array((size_t)n, sizeof *value) : NULL;
    n = 0;
    for (int32_t f = 0; value != NULL && f < all->n; f++)
        for (int64_t i = 0; all->seen[f] != NULL && i < all->seen[f]->values; i++)
            value[n++] = all->seen[f]->residual[i];
    if (value != NULL) qsort(value, (size_t)n, sizeof *value, pli_order_f64);
    return value;
}

static void add_quantiles(const double *value, int64_t n, pli_text *text) {
    static const double at[] = { 0, 0.05, 0.25, 0.5, 0.75, 0.95, 1 };
    pli_json_list(text, "quantiles"); /* at 0, 5, 25, 50, 75, 95 and 100 % */
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        pli_json_f64(text, NULL, value[(int64_t)(at[i] * (double)(n - 1) + 0.5)]);
    pli_json_list_end(text);
}

static void add_histogram(const double *value, int64_t n, pli_text *text) {
    int64_t      many[HISTOGRAM] = { 0 };
    const double low = value[0], step = (value[n - 1] - low) / HISTOGRAM;
    for (int64_t i = 0; i < n; i++) {
        const double at = step > 0 ? (value[i] - low) / step : 0;
        many[at < HISTOGRAM - 1 ? (int32_t)at : HISTOGRAM - 1]++;
    }
    pli_json_f64(text, "low", low);
    pli_json_f64(text, "step", step);
    pli_json_list(text, "histogram");
    for (int32_t i = 0; i < HISTOGRAM; i++) pli_json_i64(text, NULL, many[i]);
    pli_json_list_end(text);
}

/* Every k-th row, so that about RESIDUALS are shown. */
static void add_points(const folds *all, int64_t rows, const char *key, bool predicted, pli_text *text) {
    const int64_t step = (rows + PLI_SEEN_RESIDUALS - 1) / PLI_SEEN_RESIDUALS;
    int64_t       at = 0;
    pli_json_list(text, key);
    for (int32_t f = 0; f < all->n; f++)
        for (int64_t i = 0; all->seen[f] != NULL && i < all->seen[f]->values; i++)
            if (at++ % step == 0)
                pli_json_f64(text, NULL, (predicted ? all->seen[f]->predicted : all->seen[f]->residual)[i]);
    pli_json_list_end(text);
}

static void add_residuals(const folds *all, pli_text *text) {
    int64_t n;
    double *value = sorted(all, &n);
    if (value == NULL) {
        text->failed = text->failed || n > 0;
        pli_json_null(text, "residuals");
        return;
    }
    pli_json_object(text, "residuals");
    pli_json_i64(text, "rows", n);
    add_quantiles(value, n, text);
    add_histogram(value, n, text);
    add_points(all, n, "predicted", true, text);
    add_points(all, n, "residual", false, text);
    pli_json_end(text);
    pli_free(value);
}

void pli_seen_json(const pli_seen *const *seen, int32_t n, char *const *labels, pli_text *text) {
    const folds all = { seen, n };
    add_roc(&all, labels, text);
    add_calibration(&all, labels, text);
    add_residuals(&all, text);
}
