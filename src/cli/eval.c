/* eval - prints losses and scores of a model on labelled data, and what they are of each class. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/by_class.h"
#include "cli/record.h"
#include "cli/settings.h"
#include "cli/waiting.h"

typedef struct eval_settings {
    pli_input   in;
    const char *model_file;
    bool        by_class, json, quiet;
} eval_settings;

#define AT(field) offsetof(eval_settings, field)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE", "the model, as train --out wrote it", 0, 0, "model" },
    { "data", PLI_OPT_LIST, AT(in.data), NULL, "D", "file, directory, quoted pattern, or - for standard input", 0, 0,
      "data" },
    { "format", PLI_OPT_CHOICE, AT(in.format), "auto", "auto|libsvm|csv|tsv|idx|text|vw|ratings|npy",
      "format of the data; auto looks at the content", 0, 0, "data" },
    { "header", PLI_OPT_CHOICE, AT(in.header), "auto", "auto|yes|no", "does csv or tsv data begin with column names?",
      0, 0, "data" },
    { "delimiter", PLI_OPT_TEXT, AT(in.delimiter), NULL, "C",
      "what separates the cells of csv data: a character, or tab, space, comma, semicolon, pipe; default: the one that "
      "gives every line the same number of cells",
      0, 0, "data" },
    { "label", PLI_OPT_TEXT, AT(in.label), NULL, "COLUMN|FILE|none",
      "column of the label; default: as in training; none: rows have no label", 0, 0, "data" },
    { "weight-column", PLI_OPT_TEXT, AT(in.weight_column), NULL, "C", "column that holds the weight of each row",
      0, 0, "data" },
    { "spill-limit", PLI_OPT_BYTES, AT(in.spill_limit), "0", "BYTES",
      "largest total size of temporary files of unpacked or received data, for each data set in each process (K, M, G, "
      "T); 0: half of the free space",
      0, 0, "data" },
    { "threads", PLI_OPT_I64, AT(in.threads), NULL, "N", "compute threads; default: one for each core",
      1, 4096, "run" },
    { "by-class", PLI_OPT_FLAG, AT(by_class), NULL, NULL,
      "precision, recall and F1 of each class, and which class is taken for which; without --json they are printed in "
      "any case for up to 20 classes",
      0, 0, "run" },
    { "json", PLI_OPT_FLAG, AT(json), NULL, NULL, "print one JSON object, with the keys of train --json", 0, 0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors and the result", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* What eval has found; by_class belongs to the model. */
typedef struct found_figures {
    plait_model *model;
    plait_report report;
    pli_by_class by_class;
} found_figures;

/* Are the figures of each class asked for, or few enough to print them to people? */
static bool wants_classes(const eval_settings *set, const plait_model *model) {
    return set->by_class || (!set->json && plait_model_classes(model) <= PLI_CLASSES_SHOWN);
}

static plait_status measure(const eval_settings *set, pli_talk *talk, found_figures *to, plait_error *err) {
    plait_report   *report = &to->report;
    plait_data     *data = NULL;
    plait_data_opts opts;
    pli_waiting     waiting;
    PLI_TRY(plait_model_load(set->model_file, &to->model, err));
    const plait_model *model = to->model;
    pli_input_opts(&set->in, &talk->log, &opts);
    uint64_t begin = pli_now_ns();
    pli_waiting_begin(&waiting, talk, set->in.data.item, set->in.data.n);
    plait_status status = plait_model_read(model, &opts, &data, err);
    pli_waiting_end(&waiting);
    plait_report found = { 0 };
    if (status >= 0) {
        report->load_seconds = (double)(pli_now_ns() - begin) / 1e9;
        status = plait_model_eval(model, data, &found, err);
        if (status >= 0 && wants_classes(set, model)) status = pli_by_class_count(model, data, &to->by_class, err);
        if (status == PLAIT_EFORMAT && set->in.data.n == 1)
            pli_fail_at(err, "%s", set->in.data.item[0]); /* the error is about a row of this file */
    }
    if (status >= 0) {
        report->rows = found.rows;
        report->test_loss = found.test_loss;
        report->test_accuracy = found.test_accuracy;
        report->test_auc = found.test_auc;
        report->test_rmse = found.test_rmse;
        report->test_mae = found.test_mae;
        report->objective = found.objective;
        report->n_figures = found.n_figures;
        memcpy(report->figures, found.figures, sizeof report->figures);
        report->n_options = found.n_options;
        memcpy(report->options, found.options, sizeof report->options);
        memcpy(report->label, found.label, sizeof report->label);
        snprintf(report->model, sizeof report->model, "%s", plait_model_name(model));
        report->features = plait_model_features(model);
        report->classes = plait_model_classes(model);
        report->cpu_seconds = (double)pli_cpu_ns() / 1e9;
        report->peak_rss_bytes = pli_peak_rss_bytes();
        plait_model_hash(model, report->model_hash);
    }
    plait_data_destroy(&data);
    return status;
}

static int show(const eval_settings *set, const found_figures *found) {
    pli_text text = { 0 };
    if (set->json) {
        pli_json_begin(&text);
        pli_record_keys(&found->report, NULL, NULL, NULL, &text);
        if (set->by_class) pli_by_class_json(&found->by_class, &text);
        pli_json_end(&text);
        pli_text_add(&text, "\n");
    } else {
        pli_record_text(&found->report, NULL, NULL, &text);
        pli_by_class_text(&found->by_class, &text);
    }
    return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
}

static int eval(int argc, char *const *argv) {
    eval_settings set = { 0 };
    pli_opts     *opts = NULL;
    plait_error   err = { .rank = -1 };
    pli_talk      talk;
    found_figures found = { 0 };
    int           code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_eval, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.model_file == NULL) {
        pli_cli_usage("eval: no model; name it with --model-file FILE");
    } else if (set.in.data.n == 0) {
        pli_cli_usage("eval: no data; name a file with --data D");
    } else {
        if (set.in.threads == 0) set.in.threads = pli_cores();
        pli_record_init(&found.report);
        pli_talk_open(&talk, set.quiet);
        code = measure(&set, &talk, &found, &err) < 0 ? pli_cli_fail(&err) : show(&set, &found);
        pli_by_class_free(&found.by_class);
        plait_model_destroy(&found.model);
        pli_talk_close(&talk);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_eval = {
    .name = "eval",
    .usage = "eval --model-file FILE --data D [--by-class] [--json]",
    .summary = "measure a model: losses and scores",
    .rows = rows,
    .run = eval,
};
