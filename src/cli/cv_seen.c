/* What rows that were held out show beyond single figures. A ROC curve has the share of the positive rows that are
 * found (true positives) by the share of the others that are taken for them (false positives), as the threshold falls
 * (Fawcett, "An introduction to ROC analysis", 2006). Its area is the AUC. A model is calibrated if, of rows with
 * probability p, the share p comes true. */
#include "cli/cv_seen.h"

#include <math.h>
#include <stdlib.h>

#include "data/data.h"
#include "learn/learner.h"

/* --- a ROC curve -------------------------------------------------------------------------------------------------- */

typedef struct scored {
    double score, weight;
    bool   positive;
} scored;

static int from_high_to_low(const void *left, const void *right) {
    const scored *a = left, *b = right;
    return a->score > b->score ? -1 : a->score < b->score;
}

/* Sets the rates at the false positive rates between two points of the curve; *at: the next that is not set. */
static void set_rates(double x0, double y0, double x1, double y1, int32_t *at, double rate[PLI_SEEN_POINTS]) {
    for (; *at < PLI_SEEN_POINTS; ++*at) {
        const double x = (double)*at / (PLI_SEEN_POINTS - 1);
        if (x >= x1) break;
        rate[*at] = x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
    }
}

/* Walks down the scores, rows [n] being sorted; totals: weights of the positive rows and of the others. */
static double walk(const scored *row, int64_t n, double positives, double others, double rate[PLI_SEEN_POINTS]) {
    double  found = 0, taken = 0, x = 0, y = 0, area = 0;
    int32_t at = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = i;
        for (; end < n && !(row[end].score < row[i].score); end++)
            *(row[end].positive ? &found : &taken) += row[end].weight;
        const double next_x = taken / others, next_y = found / positives;
        area += (next_x - x) * (y + next_y) / 2;
        set_rates(x, y, next_x, next_y, &at, rate);
        x = next_x;
        y = next_y;
        i = end;
    }
    for (; at < PLI_SEEN_POINTS; at++) rate[at] = 1;
    return area;
}

plait_status pli_seen_roc(int64_t n, const double *score, const bool *positive, const double *weight, double *auc_out,
                          double rate[PLI_SEEN_POINTS], plait_error *err) {
    double  positives = 0, others = 0;
    scored *row = pli_array((size_t)n + 1, sizeof *row);
    if (row == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a curve of %lld rows", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        row[i] = (scored){ score[i], weight != NULL ? weight[i] : 1, positive[i] };
        *(positive[i] ? &positives : &others) += row[i].weight;
    }
    qsort(row, (size_t)n, sizeof *row, from_high_to_low);
    *auc_out = (double)NAN;
    for (int32_t i = 0; i < PLI_SEEN_POINTS; i++) rate[i] = (double)NAN;
    if (positives > 0 && others > 0) *auc_out = walk(row, n, positives, others, rate);
    pli_free(row);
    return PLAIT_OK;
}

/* --- the rows of a fold ------------------------------------------------------------------------------------------- */

/* What is known of a fold's rows, in the order of predictions. */
typedef struct rows {
    int64_t  n, classes;
    double  *answer; /* [n, classes] probabilities, or [n] values */
    int64_t *truth;  /* [n] number of the class                   */
    double  *label, *weight;
    bool    *positive; /* [n] of the curve at hand */
    double  *score;
} rows;

static void free_rows(rows *r) {
    pli_free(r->answer);
    pli_free(r->truth);
    pli_free(r->label);
    pli_free(r->weight);
    pli_free(r->positive);
    pli_free(r->score);
}

static plait_status open_rows(int64_t n, int64_t classes, rows *out, plait_error *err) {
    const size_t room = (size_t)n + 1, wide = classes > 0 ? (size_t)classes : 1;
    *out = (rows){ .n = n, .classes = classes };
    out->answer = pli_array(room, wide * sizeof *out->answer);
    out->truth = pli_array(room, sizeof *out->truth);
    out->label = pli_array(room, sizeof *out->label);
    out->weight = pli_array(room, sizeof *out->weight);
    out->positive = pli_array(room, sizeof *out->positive);
    out->score = pli_array(room, sizeof *out->score);
    if (out->answer != NULL && out->truth != NULL && out->label != NULL && out->weight != NULL &&
        out->positive != NULL && out->score != NULL)
        return PLAIT_OK;
    return pli_fail(err, PLAIT_ENOMEM, "no memory for what %lld rows show", (long long)n);
}

static plait_status fill_rows(const plait_model *model, const plait_data *data, rows *r, plait_error *err) {
    pli_dataset *set = NULL;
    int64_t      at = 0;
    PLI_TRY(pli_dataset_of_memory(data, 0, 1, &set, err));
    for (int32_t b = 0; b < pli_dataset_own_blocks(set); b++) {
        const pli_block *block = pli_dataset_block(set, b);
        for (int64_t i = 0; i < block->rows; i++, at++) {
            r->label[at] = block->label[i];
            r->weight[at] = block->weight != NULL ? (double)block->weight[i] : 1;
            r->truth[at] = r->classes > 0 ? pli_model_class(model, block->label[i]) : 0;
        }
    }
    pli_dataset_destroy(&set);
    return PLAIT_OK;
}

/* --- classes ------------------------------------------------------------------------------------------------------ */

static plait_status make_curves(rows *r, pli_seen *out, plait_error *err) {
    const int64_t curves = r->classes == 2 ? 1 : r->classes;
    if (r->classes > PLI_SEEN_CURVES) return PLAIT_OK;
    out->auc = pli_calloc((size_t)curves, sizeof *out->auc);
    out->rate = pli_calloc((size_t)curves, PLI_SEEN_POINTS * sizeof *out->rate);
    if (out->auc == NULL || out->rate == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for curves");
    out->curves = curves;
    for (int64_t c = 0; c < curves; c++) {
        const int64_t k = r->classes == 2 ? 1 : c;
        for (int64_t i = 0; i < r->n; i++) {
            r->positive[i] = r->truth[i] == k;
            r->score[i] = r->answer[i * r->classes + k];
        }
        PLI_TRY(pli_seen_roc(r->n, r->score, r->positive, r->weight, &out->auc[c], &out->rate[c * PLI_SEEN_POINTS],
                             err));
    }
    return PLAIT_OK;
}

static void calibrate(const rows *r, pli_seen *out) {
    for (int64_t i = 0; i < r->n; i++) {
        const double *p = &r->answer[i * r->classes];
        int64_t       k = 1;
        if (r->classes > 2)
            for (int64_t other = k = 0; other < r->classes; other++)
                if (p[other] > p[k]) k = other;
        if (isnan(p[k])) continue; /* a model that has diverged says nothing */
        const int32_t bin = (int32_t)(fmin(fmax(p[k], 0) * PLI_SEEN_BINS, PLI_SEEN_BINS - 1));
        out->bin[bin].weight += r->weight[i];
        out->bin[bin].predicted += r->weight[i] * p[k];
        if (r->truth[i] == k) out->bin[bin].right += r->weight[i];
    }
    out->calibrated = true;
}

/* --- a fold ------------------------------------------------------------------------------------------------------- */

static void take_values(rows *r, pli_seen *out) {
    out->values = r->n;
    out->predicted = r->answer;
    out->residual = r->label;
    for (int64_t i = 0; i < r->n; i++) out->residual[i] -= out->predicted[i];
    r->answer = r->label = NULL;
}

plait_status pli_seen_make(const plait_model *model, const plait_data *data, bool values, pli_seen *out,
                           plait_error *err) {
    rows          r = { .n = 0 };
    const int64_t n = plait_data_rows(data), classes = plait_model_classes(model);
    *out = (pli_seen){ .curves = 0 };
    if (n != plait_data_labels(data) || classes == 1 || (classes <= 0 && !values)) return PLAIT_OK;
    if (classes > 0 && plait_model_width(model, PLAIT_ANSWER_PROBABILITIES) != classes) return PLAIT_OK;
    plait_error  why = { .rank = -1 };
    plait_status status = open_rows(n, classes, &r, err);
    if (status >= 0) status = plait_model_predict(model, data, classes > 0, r.answer, &why);
    if (why.code == PLAIT_ENOMEM) *err = why;
    else if (why.code < 0) return free_rows(&r), PLAIT_OK; /* it was measured on the rows, so it lacks probabilities */
    if (status >= 0) status = fill_rows(model, data, &r, err);
    if (status >= 0 && classes > 0) {
        status = make_curves(&r, out, err);
        calibrate(&r, out);
    } else if (status >= 0) {
        take_values(&r, out);
    }
    free_rows(&r);
    if (status < 0) pli_seen_free(out);
    return status;
}

void pli_seen_free(pli_seen *seen) {
    pli_free(seen->auc);
    pli_free(seen->rate);
    pli_free(seen->predicted);
    pli_free(seen->residual);
    *seen = (pli_seen){ .curves = 0 };
}
