/* Counts rows and numbers their classes, if the learner leaves both to the run. */
#include <stdio.h>

#include "learn/run/run.h"

enum { TRAINED, ALL, ENTRIES, COUNTS };

static void count(pli_run *run, double *counts) {
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_run_block(run, b);
        counts[ALL] += (double)block->rows;
        counts[ENTRIES] += (double)block->entries;
        for (int64_t r = 0; r < block->rows; r++)
            counts[TRAINED] += !(run->fraction > 0 && pli_run_holds_back(run, block->first_row + r));
    }
}

plait_status pli_label_need(const pli_schema *schema, const char *name, plait_error *err) {
    if (pli_schema_has_labels(schema)) return PLAIT_OK;
    return pli_fail(
        err, PLAIT_EINVAL,
        "model %s needs labels, but these rows are read without; leave out --label none, or name the column or the "
        "file of their labels instead",
        name);
}

static plait_status number_classes(pli_run *run) {
    const int64_t n = pli_schema_labels(run->schema);
    if (run->learner->labels != PLAIT_LABELS_CLASSES) return PLAIT_OK;
    if (n < 2)
        return pli_fail(run->err, PLAIT_EFORMAT,
                        n < 0 ? "labels cannot be classes: they are numbers that are not integers, or too many"
                              : "all rows have the same label: there is nothing to learn");
    run->label = pli_array((size_t)n, sizeof *run->label);
    if (run->label == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for labels");
    for (int64_t k = 0; k < n; k++) run->label[k] = pli_schema_label_value(run->schema, k);
    run->classes = n;
    return PLAIT_OK;
}

plait_status pli_label_describe(const pli_dataset *data, int64_t classes, char text[PLI_LABEL_TEXT], plait_error *err) {
    pli_text line = { 0 };
    pli_dataset_label(data, &line);
    pli_text_add(&line, ", ");
    if (classes > 0) pli_text_add_count(&line, classes);
    pli_text_add(&line, classes > 0 ? " classes" : "numbers");
    const bool failed = line.failed;
    if (!failed) snprintf(text, PLI_LABEL_TEXT, "%s", line.data);
    pli_text_free(&line);
    return failed ? pli_fail(err, PLAIT_ENOMEM, "no memory to describe labels") : PLAIT_OK;
}

/* A learner without labels ignores the label column. If the user did not name that column, a note says so. */
static void tell_left_out(const pli_run *run) {
    const plait_data_opts *files = run->opts->data;
    pli_text               where = { 0 };
    if (files == NULL || files->label != NULL || pli_schema_label_name(run->schema) == NULL) return;
    pli_dataset_label(run->data, &where);
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn",
            "note: %s is read as the label, which model %s ignores; with --label none it is a feature",
            where.data != NULL ? where.data : "a column", run->learner->name);
    pli_text_free(&where);
}

/* Notes the label for the record, and logs it once. */
static plait_status tell_label(pli_run *run) {
    if (run->learner->labels == PLAIT_LABELS_NONE) {
        if (pli_comm_leads(run->comm) && pli_schema_has_labels(run->schema)) tell_left_out(run);
        return PLAIT_OK;
    }
    PLI_TRY(pli_label_describe(run->data, run->classes, run->label_text, run->err));
    if (pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "label: %s", run->label_text);
    return PLAIT_OK;
}

plait_status pli_rows_settle(pli_run *run) {
    double counts[COUNTS] = { 0 };
    if (run->learner->labels != PLAIT_LABELS_NONE)
        PLI_TRY(pli_label_need(run->schema, run->learner->name, run->err));
    run->features = pli_schema_features(run->schema);
    if (run->stream) PLI_TRY(pli_sample_take(run));
    count(run, counts);
    run->own_entries = (int64_t)counts[ENTRIES];
    pli_comm_work(run->comm, PLI_WORK_PARSED, (uint64_t)run->own_entries);
    PLI_TRY(plait_comm_allreduce(run->comm, counts, COUNTS, PLAIT_F64, PLAIT_SUM));
    run->seen_rows = run->train_rows = run->train_labels = (int64_t)counts[TRAINED];
    run->rows = (int64_t)counts[ALL];
    run->seen_entries = run->entries = (int64_t)counts[ENTRIES];
    if (run->train_rows == 0) return pli_fail(run->err, PLAIT_EFORMAT, "there is no row to train on");
    if (run->stream) {
        run->rows = run->train_rows = run->train_labels = pli_schema_rows(run->schema);
        run->entries = (int64_t)(counts[ENTRIES] / counts[TRAINED] * (double)run->rows);
    }
    PLI_TRY(number_classes(run));
    return tell_label(run);
}

int64_t plait_training_class(const plait_training *run, double label) {
    int64_t low = 0, high = run == NULL || run->label == NULL ? -1 : run->classes - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (run->label[middle] < label) low = middle + 1;
        else high = middle;
    }
    return high >= 0 && run->label[low] == label ? low : -1;
}
