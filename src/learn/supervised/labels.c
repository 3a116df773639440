/* Decides whether labels are classes or numbers, counts the rows of each class, and weighs them. */
#include "learn/supervised/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/exact_cells.h"

/* --- classes or numbers ------------------------------------------------------------------------------------- */

enum { FEW_CLASSES = 100, ROWS_A_CLASS = 10, APART = 4 };

/* Why labels cannot be classes. */
typedef enum doubt {
    NO_DOUBT,
    NOT_INTEGERS, /* or more than can be kept                                      */
    ODD_NUMBERS,  /* texts that would be numbers if they were written otherwise    */
    TOO_MANY,     /* more than half as many as rows: names of rows, or numbers     */
    APART_NUMBERS /* many, with few rows each, and far apart, as prices are        */
} doubt;

static doubt doubt_of(const pli_run *run) {
    const pli_schema *schema = run->schema;
    const int64_t     n = pli_schema_labels(schema), rows = pli_schema_rows(schema);
    const bool        many = n < 0 || n > FEW_CLASSES || (n > 2 && n > rows / 2);
    if (many && run->start == NULL && pli_schema_odd_label(schema) != NULL) return ODD_NUMBERS;
    if (n < 0) return NOT_INTEGERS;
    if (run->opts->classes > 0) return NO_DOUBT; /* classes as they are declared */
    if (run->start != NULL || pli_schema_symbols(schema) > 0) return NO_DOUBT; /* classes as they are */
    if (n > 2 && n > rows / 2) return TOO_MANY;
    if (n <= FEW_CLASSES || n <= rows / ROWS_A_CLASS || pli_schema_label_is_text(schema)) return NO_DOUBT;
    const double range = pli_schema_label_value(schema, n - 1) - pli_schema_label_value(schema, 0);
    return range >= (double)APART * (double)n ? APART_NUMBERS : NO_DOUBT;
}

/* Does the model fix the loss? Nets have --loss instead. */
static bool is_of_model(const pli_run *run) { return run->learner->labels != PLAIT_LABELS_EITHER; }

static void add_remedy(const pli_run *run, doubt why, pli_text *text) {
    const char *column = pli_schema_label_name(run->schema),
               *option = is_of_model(run) ? "--model" : "--loss";
    const bool  numbers = !pli_schema_label_is_text(run->schema) || why == ODD_NUMBERS;
    if (why == ODD_NUMBERS)
        pli_text_add(text,
                     "cells such as %.40s look like numbers: write them like 1234.5, with a point, without separated "
                     "thousands and without a unit, and take %s squared", pli_schema_odd_label(run->schema), option);
    else if (numbers) pli_text_add(text, "for numbers take %s squared", option);
    if (column != NULL) pli_text_add(text, "%s--label COLUMN names another column", numbers ? "; " : "");
    if (column != NULL && numbers && why != TOO_MANY)
        pli_text_add(text, "; --text-columns %.40s reads them as names", column);
    if (column == NULL && why == APART_NUMBERS) pli_text_add(text, "; classes are numbered 0, 1, 2, ...");
}

static plait_status refuse_classes(const pli_run *run, const char *where, doubt why) {
    pli_text text = { 0 };
    if (why == NOT_INTEGERS && !pli_schema_label_is_text(run->schema)) {
        pli_text_add(&text, "label: %s: its numbers cannot be classes: not all are integers below 2^53, or there are "
                            "more than 65,536 different ones; ", where);
    } else {
        const int64_t n = pli_schema_labels(run->schema);
        pli_text_add(&text, "label: %s: %s", where, n < 0 ? "more than 65,536" : "");
        if (n >= 0) pli_text_add_count(&text, n);
        pli_text_add(&text, " classes in ");
        pli_text_add_count(&text, pli_schema_rows(run->schema));
        pli_text_add(&text, " rows%s are refused; ", why == APART_NUMBERS ? ", far apart," : "");
    }
    add_remedy(run, why, &text);
    plait_status status = pli_fail(run->err, PLAIT_EFORMAT, "%s", text.data != NULL ? text.data : "labels");
    pli_text_free(&text);
    return status;
}

static plait_status refuse_numbers(const pli_run *run, const char *where) {
    const char *odd = pli_schema_odd_label(run->schema);
    if (odd != NULL)
        return pli_fail(run->err, PLAIT_EFORMAT,
                        "label: %s: its cells are read as texts, since some, such as %.40s, are not written like "
                        "1234.5, with a point, without separated thousands and without a unit: write them that way",
                        where, odd);
    return pli_fail(run->err, PLAIT_EFORMAT,
                    "label: %s: its cells are texts, but %s %s learns numbers; --label COLUMN names another column, %s "
                    "logistic takes classes", where, is_of_model(run) ? "model" : "loss", pli_fit_of(run)->loss,
                    is_of_model(run) ? "--model" : "--loss");
}

/* Finds the run's loss. If none is asked for (a net), the labels choose. */
static plait_status find_loss(pli_run *run, const char *where, bool *classes_out) {
    const doubt why = doubt_of(run);
    pli_fit_of(run)->loss = pli_fit_of(run)->wanted;
    if (pli_fit_of(run)->loss == NULL)
        pli_fit_of(run)->loss = why == NO_DOUBT || pli_schema_label_is_text(run->schema) ? "logistic" : "squared";
    PLI_TRY(pli_loss_is_class(pli_fit_of(run)->loss, classes_out, run->err));
    if (*classes_out && why != NO_DOUBT) return refuse_classes(run, where, why);
    if (!*classes_out && pli_schema_label_is_text(run->schema)) return refuse_numbers(run, where);
    return PLAIT_OK;
}

/* Notes the label for the record, and logs it once. */
static plait_status tell_label(pli_run *run) {
    const int64_t classes = pli_fit_of(run)->goal.classes;
    const bool    chosen = classes == 0 && pli_fit_of(run)->wanted == NULL;
    PLI_TRY(pli_label_describe(run->data, classes, run->label_text, run->err));
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "label: %s%s", run->label_text,
                chosen ? ", so the loss is squared" : "");
    return PLAIT_OK;
}

/* A loss of counts takes none below 0. Of nets it would need targets that are not scaled. */
static plait_status check_counts(const pli_run *run, const char *where) {
    const pli_loss *loss = pli_fit_of(run)->goal.loss;
    const double    least = pli_schema_least_label(run->schema);
    if (!is_of_model(run) && run->learner->optimizer != NULL && loss->log_mean)
        return pli_fail(run->err, PLAIT_EINVAL, "loss %s is of linear models and trees: take --model %s", loss->model,
                        loss->model);
    if (!loss->log_mean || least >= 0) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EFORMAT, "label: %s: %s takes counts and other numbers of 0 or more, but there is "
                                             "%g; --model squared takes any", where, loss->model, least);
}

/* A loss of rankings needs a learner that takes queries whole, and labels that are grades. */
static plait_status check_grades(const pli_run *run, const char *where) {
    const pli_loss *loss = pli_fit_of(run)->goal.loss;
    const int64_t   n = pli_schema_labels(run->schema);
    if (loss->query == NULL) return PLAIT_OK;
    if (strcmp(run->learner->name, "gbdt") != 0)
        return pli_fail(run->err, PLAIT_EREFUSED, "loss %s with model %s is refused: only trees of --model gbdt learn "
                                                  "rankings", loss->model, run->learner->name);
    if (n > 0 && pli_schema_label_value(run->schema, 0) >= 0 &&
        pli_schema_label_value(run->schema, n - 1) <= PLI_QUERY_LABEL_MOST)
        return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EFORMAT, "label: %s: %s takes grades, whole numbers from 0 to %d", where,
                    loss->model, (int)PLI_QUERY_LABEL_MOST);
}

static plait_status find_classes(pli_run *run, const char *where) {
    bool is_class;
    if (run->opts->classes > 0 && pli_schema_declare_labels(run->schema, run->opts->classes, run->err) < 0)
        return pli_fail_at(run->err, "label: %s", where);
    PLI_TRY(find_loss(run, where, &is_class));
    if (!is_class && run->opts->classes > 0)
        return pli_fail(run->err, PLAIT_EINVAL, "classes %lld with loss %s: its labels are numbers; leave one of the "
                                                "two out", (long long)run->opts->classes, pli_fit_of(run)->loss);
    int64_t n = is_class ? pli_schema_labels(run->schema) : 0;
    if (is_class && n < 2)
        return pli_fail(run->err, PLAIT_EFORMAT,
                        "all rows have the same label: there is nothing to learn (in csv and tsv --label names its "
                        "column)");
    run->label = pli_array((size_t)n, sizeof *run->label);
    if (run->label == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for labels");
    for (int64_t k = 0; k < n; k++) run->label[k] = pli_schema_label_value(run->schema, k);
    run->features = pli_schema_features(run->schema);
    run->classes = n;
    pli_fit_of(run)->intercept = !run->opts->no_intercept;
    pli_goal *goal = &pli_fit_of(run)->goal;
    *goal = (pli_goal){ .columns = n > 2 ? n : 1, .classes = n, .label = run->label };
    PLI_TRY(pli_loss_find(pli_fit_of(run)->loss, n, &goal->loss, run->err));
    goal->parameter = goal->loss->parameter == PLI_PARAMETER_QUANTILE ? run->opts->quantile : run->opts->huber_delta;
    PLI_TRY(check_counts(run, where));
    PLI_TRY(check_grades(run, where));
    return tell_label(run);
}

static plait_status settle_classes(pli_run *run) {
    pli_text where = { 0 };
    pli_dataset_label(run->data, &where);
    plait_status status = where.data == NULL || where.failed
                              ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe labels")
                              : find_classes(run, where.data);
    pli_text_free(&where);
    return status;
}

/* --- counts and weights --------------------------------------------------------------------------------------- */

enum { COUNTS = 4 /* besides those of the classes */, MOMENTS = 3 };

typedef struct label_moments { /* exact sums: a model begins at the mean label, so it must not depend on the workers */
    uint64_t cell[MOMENTS][PLI_CELL_BYTES_F64 / 8];
} label_moments;

/* Counts the earlier labels of a text's window: class k is symbol k. */
static void count_earlier(const pli_run *run, const pli_block *block, int64_t row, double *counts) {
    const int64_t n = pli_fit_of(run)->goal.classes, end = block->row_start[row + 1];
    for (int64_t e = end + 1 - pli_block_labels(block, row); e < end; e++) {
        const int64_t symbol = (int64_t)(block->col[e] % ((uint32_t)pli_schema_symbols(run->schema) + 1));
        counts[n + 3]++;
        if (symbol < n) counts[symbol]++;
    }
}

/* How many counts count_rows makes. */
static int64_t counts_of(int64_t classes) { return 2 * classes + COUNTS + (classes == 0); }

/* Checks and counts the labels of own rows, or of a stream's sample. counts [counts_of]: the labels of each class; then
 * rows to train on, all rows, entries, labels to train on; then, for each class (or for numbers, once), rows with a
 * weight above 0. moments: for numbers, the sums of weights, of weighted labels and of their weighted squares. */
static plait_status count_rows(pli_run *run, double *counts, label_moments *moments) {
    const int64_t n = pli_fit_of(run)->goal.classes;
    double       *heavy = counts + n + COUNTS;
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_run_block(run, b);
        double           sum[MOMENTS] = { 0 };
        counts[n + 1] += (double)block->rows;
        counts[n + 2] += (double)block->entries;
        for (int64_t r = 0; r < block->rows; r++) {
            double y, weight;
            if (!pli_goal_target(&pli_fit_of(run)->goal, block->label[r], &y, &weight))
                return pli_fail(run->err, PLAIT_EFORMAT,
                                "row %lld has no label, or a label that the model does not know (%g)",
                                (long long)(block->first_row + r + 1), block->label[r]);
            if (run->fraction > 0 && pli_run_holds_back(run, block->first_row + r)) continue;
            counts[n]++;
            counts[n + 3]++;
            if (block->earlier > 0) count_earlier(run, block, r, counts);
            const double own = block->weight != NULL ? (double)block->weight[r] : 1;
            if (n > 0) {
                const int64_t k = pli_fit_of(run)->goal.loss->target == PLI_CLASSES ? (int64_t)y : y > 0;
                counts[k]++;
                heavy[k] += own > 0;
                continue;
            }
            weight *= own;
            heavy[0] += own > 0;
            sum[0] += weight;
            sum[1] += weight * y;
            sum[2] += weight * y * y;
        }
        pli_cells_add(true, MOMENTS, sum, moments->cell);
    }
    return PLAIT_OK;
}

/* Sets the weights of classes as --class-weight says. "balanced" is n / (classes n_k) (King and Zeng, "Logistic
 * Regression in Rare Events Data", 2001). */
static plait_status weigh_classes(pli_run *run, const double *counts) {
    int64_t n = pli_fit_of(run)->goal.classes;
    if (run->opts->class_weight == NULL) return PLAIT_OK;
    pli_fit_of(run)->class_weight = pli_array((size_t)n, sizeof *pli_fit_of(run)->class_weight);
    if (pli_fit_of(run)->class_weight == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for class weights");
    pli_fit_of(run)->goal.class_weight = pli_fit_of(run)->class_weight;
    if (strcmp(run->opts->class_weight, "balanced") == 0) {
        for (int64_t k = 0; k < n; k++)
            pli_fit_of(run)->class_weight[k] = counts[k] > 0 ? counts[n + 3] / ((double)n * counts[k]) : 1;
        return PLAIT_OK;
    }
    for (int64_t k = 0; k < n; k++) pli_fit_of(run)->class_weight[k] = 1;
    for (const char *at = run->opts->class_weight; *at != '\0';) {
        char        item[160];
        size_t      length = strcspn(at, ",");
        double      weight;
        snprintf(item, sizeof item, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
        char *colon = strrchr(item, ':');
        if (colon == NULL || !pli_parse_f64(colon + 1, &weight) || weight < 0)
            return pli_fail(run->err, PLAIT_EINVAL, "class-weight '%s': expected balanced, or label:weight,...", item);
        *colon = '\0';
        int64_t k = 0;
        for (; k < n; k++) {
            pli_text text = { 0 };
            pli_schema_label_text(run->schema, k, &text);
            bool same = text.data != NULL && strcmp(text.data, item[0] == '+' ? item + 1 : item) == 0;
            pli_text_free(&text);
            if (same) break;
        }
        if (k == n) return pli_fail(run->err, PLAIT_ENAME, "class-weight: no label is '%s'", item);
        pli_fit_of(run)->class_weight[k] = weight;
    }
    return PLAIT_OK;
}

/* A sampled softmax draws by them. Of a stream all classes count alike, since the first rows may not tell. */
static plait_status keep_counts(pli_run *run, const double *counts) {
    pli_fit      *fit = pli_fit_of(run);
    const size_t  n = (size_t)fit->goal.classes;
    if (run->opts->sampled == 0 || run->stream || n == 0) return PLAIT_OK;
    fit->class_rows = pli_array(n, sizeof *fit->class_rows);
    if (fit->class_rows == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the counts of classes");
    memcpy(fit->class_rows, counts, n * sizeof *counts);
    return PLAIT_OK;
}

/* Rows that all weigh 0 have no loss. Of a stream only a sample is known, so run/train.c checks it at the end. */
static plait_status check_weights(const pli_run *run, const double *counts) {
    const int64_t n = pli_fit_of(run)->goal.classes;
    const double *heavy = counts + n + COUNTS;
    double        rows = n == 0 ? heavy[0] : 0, own = rows;
    for (int64_t k = 0; k < n; k++) {
        own += heavy[k];
        if (pli_fit_of(run)->class_weight == NULL || pli_fit_of(run)->class_weight[k] > 0) rows += heavy[k];
    }
    if (rows > 0 || run->stream || !(counts[n] > 0)) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EFORMAT, "all rows to train on have weight 0%s: the sum of weights must be above 0",
                    own > 0 ? " by their class" : "");
}

/* The largest slope of the loss at the score for `mean`, where the label is a spread away. It is the spread for the
 * squared loss, at most delta for Huber's, a number below 1 for quantiles, and the spread of counts. */
static double slope_at(const pli_goal *goal, double mean, double spread) {
    const bool   counts = goal->loss->log_mean;
    const double score = !counts ? mean : mean > 0 ? log(mean) : 0;
    double       above = 0, below = 0;
    goal->loss->at(goal->parameter, 1, &score, mean + spread, &above);
    if (!counts) goal->loss->at(goal->parameter, 1, &score, mean - spread, &below);
    return fmax(fabs(above), fabs(below));
}

/* Measures mean and spread of numbers: scores begin at the mean (or at its logarithm), and the default rate follows the
 * spread, since rules with a metric of their own move by about the rate, whatever the unit of the labels. */
static void measure_labels(pli_run *run, const double sums[MOMENTS]) {
    pli_fit *fit = pli_fit_of(run);
    if (fit->goal.loss->target != PLI_NUMBER || !(sums[0] > 0)) return;
    const double mean = sums[1] / sums[0], square = sums[2] / sums[0];
    const double spread = fit->intercept ? square - mean * mean : square;
    const bool   spreads = spread > 1e-13 * square;
    if (spreads) fit->slope_spread = slope_at(&fit->goal, fit->intercept ? mean : 0, sqrt(spread));
    if (!(fit->slope_spread > 0)) fit->slope_spread = 1;
    if (fit->goal.loss->log_mean) { /* scores are logarithms, whose spread does not follow the labels' unit */
        if (fit->intercept && mean > 0) fit->label_mean = log(mean);
        return;
    }
    if (fit->intercept) fit->label_mean = mean;
    if (spreads) fit->label_spread = sqrt(spread);
}

plait_status pli_labels_settle(pli_run *run) {
    PLI_TRY(pli_label_need(run->schema, run->opts->model, run->err));
    PLI_TRY(settle_classes(run));
    int64_t n = pli_fit_of(run)->goal.classes;
    pli_fit_of(run)->label_spread = pli_fit_of(run)->slope_spread = 1;
    if (run->stream) PLI_TRY(pli_sample_take(run));
    double *counts = pli_calloc(2 * (size_t)counts_of(n), sizeof *counts), *own = counts + counts_of(n);
    if (counts == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory to count labels");
    label_moments  moments = { 0 };
    double         mine[MOMENTS], sums[MOMENTS];
    plait_status status = count_rows(run, counts, &moments);
    memcpy(own, counts, (size_t)counts_of(n) * sizeof *own);
    pli_cells_round(true, MOMENTS, moments.cell, mine);
    run->own_entries = (int64_t)counts[n + 2];
    pli_comm_work(run->comm, PLI_WORK_PARSED, (uint64_t)run->own_entries);
    if (status == PLAIT_OK) status = plait_comm_allreduce(run->comm, counts, counts_of(n), PLAIT_F64, PLAIT_SUM);
    if (status == PLAIT_OK) status = weigh_classes(run, counts);
    if (status == PLAIT_OK) status = check_weights(run, counts);
    if (status == PLAIT_OK) status = keep_counts(run, counts);
    run->seen_rows = run->train_rows = (int64_t)counts[n];
    run->rows = (int64_t)counts[n + 1];
    run->seen_entries = run->entries = (int64_t)counts[n + 2];
    run->train_labels = (int64_t)counts[n + 3];
    if (run->stream && run->seen_rows > 0) {
        run->rows = run->train_rows = pli_schema_rows(run->schema);
        run->train_labels = run->rows * pli_schema_row_labels(run->schema);
        run->entries = (int64_t)(counts[n + 2] / counts[n] * (double)run->rows);
    }
    if (status == PLAIT_OK) status = pli_comm_sum_cells(run->comm, true, MOMENTS, moments.cell);
    pli_cells_round(true, MOMENTS, moments.cell, sums);
    measure_labels(run, sums);
    if (status == PLAIT_OK) status = pli_shares_settle(run, n, n > 0 ? own : mine, n > 0 ? counts : sums, own[n]);
    pli_free(counts);
    if (status == PLAIT_OK && run->train_rows == 0)
        return pli_fail(run->err, PLAIT_EFORMAT, "there is no row to train on");
    return status;
}
