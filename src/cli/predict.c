/* predict - applies a model: one line a row of the data. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/paths.h"
#include "cli/settings.h"
#include "cli/waiting.h"

typedef struct predict_settings {
    pli_input   in;
    const char *model_file, *out;
    bool        proba, quiet;
} predict_settings;

#define AT(field) offsetof(predict_settings, field)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE", "the model, as train --out wrote it", 0, 0, "model" },
    { "proba", PLI_OPT_FLAG, AT(proba), NULL, NULL,
      "one probability a class, in the order of inspect, instead of the label", 0, 0, "model" },
    { "data", PLI_OPT_LIST, AT(in.data), NULL, "D", "file, directory, quoted pattern, or - for standard input", 0, 0,
      "data" },
    { "format", PLI_OPT_CHOICE, AT(in.format), "auto", "auto|libsvm|csv|tsv|idx|text",
      "format of the data; auto judges by content", 0, 0, "data" },
    { "header", PLI_OPT_CHOICE, AT(in.header), "auto", "auto|yes|no", "does csv or tsv data begin with column names?",
      0, 0, "data" },
    { "delimiter", PLI_OPT_TEXT, AT(in.delimiter), NULL, "C",
      "what parts the cells of csv data: a character, or tab, space, comma, semicolon, pipe; default what cuts all "
      "lines alike",
      0, 0, "data" },
    { "label", PLI_OPT_TEXT, AT(in.label), NULL, "COLUMN|FILE|none",
      "column of the label; default as the model was trained; none: rows have no label", 0, 0, "data" },
    { "spill-limit", PLI_OPT_BYTES, AT(in.spill_limit), "0", "BYTES",
      "most that temporary files of unpacked or received data may take, for each data set in each process (K, M, G, "
      "T); 0: half of what is free there",
      0, 0, "data" },
    { "threads", PLI_OPT_I64, AT(in.threads), NULL, "N", "compute threads; default the cores", 1, 4096, "run" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE", "write here, whole or not at all; - or none: to standard output", 0,
      0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "say nothing but errors", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* Where the lines go: a file that appears whole, or stdout. Filled in large pieces. */
typedef struct sink {
    pli_outfile *file; /* NULL: stdout */
    pli_text     text;
} sink;

enum { PIECE_BYTES = 1 << 16 };

static plait_status drain(sink *s, size_t at_least, plait_error *err) {
    if (s->text.failed) return pli_fail(err, PLAIT_ENOMEM, "predict: out of memory");
    if (s->text.length < at_least || s->text.length == 0) return PLAIT_OK;
    plait_status status = PLAIT_OK;
    if (s->file != NULL) {
        status = pli_outfile_write(s->file, s->text.data, s->text.length, err);
    } else if (fwrite(s->text.data, 1, s->text.length, stdout) != s->text.length) {
        status = PLAIT_END; /* pli_cli_end tells why */
    }
    s->text.length = 0;
    return status;
}

static void add_row(const plait_model *model, const double *scores, int64_t columns, bool proba, pli_text *text) {
    if (proba || plait_model_classes(model) == 0) {
        for (int64_t k = 0; k < columns; k++) pli_text_add(text, "%s%.9g", k > 0 ? " " : "", scores[k]);
        pli_text_add_bytes(text, "\n", 1);
    } else {
        const char *label = plait_model_label(model, (int64_t)scores[0]);
        pli_text_add_printable(text, label, strlen(label), "");
        pli_text_add_bytes(text, "\n", 1);
    }
}

static plait_status write_rows(const plait_model *model, const plait_data *data, bool proba, const double *scores,
                               sink *s, plait_error *err) {
    int64_t      columns = proba ? plait_model_classes(model) : 1;
    plait_status status = PLAIT_OK;
    for (int64_t i = 0; i < plait_data_labels(data) && status == PLAIT_OK; i++) {
        add_row(model, scores + i * columns, columns, proba, &s->text);
        status = drain(s, PIECE_BYTES, err);
    }
    return status == PLAIT_OK ? drain(s, 0, err) : status;
}

static plait_status write_all(const plait_model *model, const plait_data *data, const predict_settings *set,
                              plait_error *err) {
    sink    s = { 0 };
    int64_t columns = set->proba ? plait_model_classes(model) : 1;
    double *scores = pli_array((size_t)(plait_data_labels(data) * columns), sizeof *scores);
    if (scores == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "predict: no memory for %" PRId64 " rows", plait_data_labels(data));
    plait_status status = plait_model_predict(model, data, set->proba, scores, err);
    if (status >= 0 && set->out != NULL) status = pli_outfile_open(set->out, &s.file, err);
    if (status >= 0) status = write_rows(model, data, set->proba, scores, &s, err);
    if (s.file != NULL) {
        if (status >= 0) {
            status = pli_outfile_commit(&s.file, err);
        } else {
            pli_outfile_abandon(&s.file);
        }
    }
    pli_text_free(&s.text);
    pli_free(scores);
    return status;
}

static plait_status apply(const predict_settings *set, pli_talk *talk, plait_error *err) {
    plait_model    *model = NULL;
    plait_data     *data = NULL;
    plait_data_opts opts;
    pli_waiting     waiting;
    PLI_TRY(plait_model_load(set->model_file, &model, err));
    plait_status status = PLAIT_OK;
    if (set->proba && plait_model_classes(model) == 0) {
        status = pli_fail(err, PLAIT_EREFUSED,
                          "predict: --proba: %s is no classification, it has no probabilities; leave --proba out",
                          plait_model_name(model));
    }
    pli_input_opts(&set->in, &talk->log, &opts);
    pli_waiting_begin(&waiting, talk, set->in.data.item, set->in.data.n);
    if (status >= 0) status = plait_model_read(model, &opts, &data, err);
    pli_waiting_end(&waiting);
    if (status >= 0) status = write_all(model, data, set, err);
    plait_data_destroy(&data);
    plait_model_destroy(&model);
    return status;
}

static bool check_apart(const predict_settings *set) {
    const pli_path out = { "--out", set->out, false };
    const pli_path read[] = { { "--model-file", set->model_file, false },
                              { "--label", pli_input_label_file(&set->in), false } };
    return pli_paths_apart("predict", &out, 1, read, 2, &set->in.data);
}

static int predict(int argc, char *const *argv) {
    predict_settings set = { 0 };
    pli_opts        *opts = NULL;
    plait_error      err = { .rank = -1 };
    pli_talk         talk;
    int              code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_predict, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.out != NULL && strcmp(set.out, "-") == 0) set.out = NULL;
    if (set.model_file == NULL) {
        pli_cli_usage("predict: no model; name it with --model-file FILE");
    } else if (set.in.data.n == 0) {
        pli_cli_usage("predict: no data; name a file with --data D");
    } else if (check_apart(&set)) {
        if (set.in.threads == 0) set.in.threads = pli_cores();
        pli_talk_open(&talk, set.quiet);
        plait_status status = apply(&set, &talk, &err);
        code = status < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
        pli_talk_close(&talk);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_predict = {
    .name = "predict",
    .usage = "predict --model-file FILE --data D [--proba] [--out FILE]",
    .summary = "apply a model: one line a row",
    .details = "Of text there is a line for each character, foretold from those before it. A line is the label as the "
               "training data wrote it (a regression's value), or, with --proba, one probability a "
               "class, separated by one space, in the order in which inspect lists the labels; two for binary models.",
    .rows = rows,
    .run = predict,
};
