/* Applies a model to the rows of data, and writes one line a row. */
#include "cli/answers.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/join.h"
#include "cli/lines.h"
#include "cli/paths.h"
#include "cli/settings.h"
#include "cli/waiting.h"

typedef struct answer_settings {
    pli_input   in;
    const char *model_file, *out;
    bool        proba, contributions, join, quiet;
} answer_settings;

#define AT(field) offsetof(answer_settings, field)

const pli_opt pli_answer_rows[] = {
    { "proba", PLI_OPT_FLAG, AT(proba), NULL, NULL,
      "write one probability for each class, in the order of 'plait inspect', instead of the label", 0, 0, "model" },
    { "contributions", PLI_OPT_FLAG, AT(contributions), NULL, NULL,
      "of a model of trees: write what each feature adds to the score (SHAP values), and last the mean score; for more "
      "than two classes so many numbers for each", 0, 0, "model" },
    { "join", PLI_OPT_FLAG, AT(join), NULL, NULL,
      "write each line of the data, and what is predicted behind it: as further cells of csv and tsv, whose header "
      "gets their names; behind a tab for libsvm and vw", 0, 0, "model" },
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
    { "spill-limit", PLI_OPT_BYTES, AT(in.spill_limit), "0", "BYTES",
      "largest total size of temporary files of unpacked or received data, for each data set in each process (K, M, G, "
      "T); 0: half of the free space",
      0, 0, "data" },
    { "threads", PLI_OPT_I64, AT(in.threads), NULL, "N", "compute threads; default: one for each core", 1, 4096,
      "run" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE", "write to FILE, whole or not at all; default, and -: standard output",
      0, 0, "run" },
    { "quiet", PLI_OPT_FLAG, AT(quiet), NULL, NULL, "print only errors", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- lines ---------------------------------------------------------------------------------------------------- */

/* Nine digits are what a 32-bit number holds. Labels far from 0, such as times, are known in 64 bits. */
static void add_number(double x, pli_text *text) {
    char all[32];
    if (fabs(x) < 1e6 || !isfinite(x)) {
        pli_text_add(text, "%.9g", x);
        return;
    }
    pli_format_f64(x, all);
    pli_text_add(text, "%s", all);
}

void pli_answer_numbers(const double *values, int64_t width, char sign, pli_text *text) {
    for (int64_t k = 0; k < width; k++) {
        if (k > 0) pli_text_add_bytes(text, &sign, 1);
        add_number(values[k], text);
    }
}

/* Adds one row: a class by its name, or numbers. */
void pli_answer_add(const plait_model *model, plait_answer answer, const double *values, int64_t width,
                    pli_text *text) {
    if (answer == PLAIT_ANSWER_LABEL && plait_model_classes(model) > 0) {
        const char *label = plait_model_label(model, (int64_t)values[0]);
        pli_text_add_printable(text, label, strlen(label), "");
    } else {
        pli_answer_numbers(values, width, answer == PLAIT_ANSWER_TRANSFORM ? '\t' : ' ', text);
    }
    pli_text_add_bytes(text, "\n", 1);
}

/* join: NULL if answers stand alone. */
static plait_status write_rows(const plait_model *model, int64_t rows, plait_answer answer, const double *values,
                               pli_join *join, pli_lines *lines, plait_error *err) {
    const int64_t width = plait_model_width(model, answer);
    plait_status  status = PLAIT_OK;
    if (join != NULL) pli_join_header(join, &lines->text);
    for (int64_t i = 0; i < rows && status == PLAIT_OK; i++) {
        if (join != NULL) status = pli_join_add(join, values + i * width, width, &lines->text, err);
        else pli_answer_add(model, answer, values + i * width, width, &lines->text);
        if (status == PLAIT_OK) status = pli_lines_go(lines, err);
    }
    return status;
}

plait_status pli_answer_ask(const plait_model *model, const plait_data *data, plait_answer answer, double *values,
                            plait_error *err) {
    if (answer == PLAIT_ANSWER_TRANSFORM) return plait_model_transform(model, data, values, err);
    if (answer == PLAIT_ANSWER_CONTRIBUTIONS) return plait_model_contributions(model, data, values, err);
    return plait_model_predict(model, data, answer == PLAIT_ANSWER_PROBABILITIES, values, err);
}

static plait_status write_all(const plait_model *model, const plait_data *data, plait_answer answer, pli_join *join,
                              const char *out, plait_error *err) {
    pli_lines     lines = { 0 };
    const int64_t width = plait_model_width(model, answer), rows = plait_data_labels(data);
    const int64_t free_bytes = pli_memory_bytes();
    const bool    fits = free_bytes <= 0 || (double)rows * (double)width * sizeof(double) < (double)free_bytes;
    double       *values = fits ? pli_array((size_t)rows, (size_t)width * sizeof *values) : NULL;
    if (values == NULL)
        return pli_fail(err, PLAIT_ENOMEM, "no memory for %" PRId64 " rows of %" PRId64 " numbers", rows, width);
    plait_status status = pli_answer_ask(model, data, answer, values, err);
    if (status >= 0) status = pli_lines_open(&lines, out, err);
    if (status >= 0) status = write_rows(model, rows, answer, values, join, &lines, err);
    status = pli_lines_close(&lines, status, err);
    pli_free(values);
    return status;
}

/* --- the model ------------------------------------------------------------------------------------------------ */

/* Can the model give this answer? If not, the error names the command whose answer it can give. */
plait_status pli_answer_check(const plait_model *model, plait_answer answer, plait_error *err) {
    const char *name = plait_model_name(model);
    if (plait_model_width(model, answer) > 0) return PLAIT_OK;
    switch (answer) {
    case PLAIT_ANSWER_PROBABILITIES:
        if (plait_model_classes(model) > 0)
            return pli_fail(err, PLAIT_EREFUSED, "predict: --proba: model %s has no probabilities; leave --proba out",
                            name);
        if (plait_model_width(model, PLAIT_ANSWER_LABEL) > 0)
            return pli_fail(err, PLAIT_EREFUSED,
                            "predict: --proba: %s is not a classification and has no probabilities; leave --proba out",
                            name);
        /* fall through */
    case PLAIT_ANSWER_LABEL:
        return pli_fail(err, PLAIT_EREFUSED,
                        "predict: model %s predicts no label and no value; use 'plait transform' with it", name);
    case PLAIT_ANSWER_CONTRIBUTIONS:
        return pli_fail(err, PLAIT_EREFUSED,
                        "predict: --contributions: model %s is refused: only models of trees have them; 'plait inspect "
                        "--weights' lists the weights of a linear model", name);
    case PLAIT_ANSWER_TRANSFORM: break;
    }
    return pli_fail(err, PLAIT_EREFUSED,
                    "transform: model %s does not transform rows; use 'plait predict' with it",
                    name);
}

static plait_status apply(const answer_settings *set, plait_answer answer, pli_talk *talk, plait_error *err) {
    plait_model    *model = NULL;
    plait_data     *data = NULL;
    plait_data_opts opts;
    pli_waiting     waiting;
    pli_join        join;
    PLI_TRY(plait_model_load(set->model_file, &model, err));
    plait_status status = pli_answer_check(model, answer, err);
    pli_input_opts(&set->in, &talk->log, &opts);
    pli_waiting_begin(&waiting, talk, set->in.data.item, set->in.data.n);
    if (status >= 0) status = plait_model_read(model, &opts, &data, err);
    pli_waiting_end(&waiting);
    if (status >= 0 && set->join) status = pli_join_begin(model, data, answer, &join, err);
    if (status >= 0) status = write_all(model, data, answer, set->join ? &join : NULL, set->out, err);
    plait_data_destroy(&data);
    plait_model_destroy(&model);
    return status;
}

/* --- the command ---------------------------------------------------------------------------------------------- */

static bool check_apart(const answer_settings *set, const char *command) {
    const pli_path out = { "--out", set->out, false };
    const pli_path read[] = { { "--model-file", set->model_file, false },
                              { "--label", pli_input_label_file(&set->in), false } };
    return pli_paths_apart(command, &out, 1, read, 2, &set->in.data);
}

int pli_answers(const pli_command *command, plait_answer answer, int argc, char *const *argv) {
    answer_settings set = { 0 };
    pli_opts       *opts = NULL;
    plait_error     err = { .rank = -1 };
    pli_talk        talk;
    int             code = PLI_EXIT_USAGE;
    if (!pli_cli_read(command, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.out != NULL && strcmp(set.out, "-") == 0) set.out = NULL;
    if (set.proba) answer = PLAIT_ANSWER_PROBABILITIES;
    if (set.contributions) answer = PLAIT_ANSWER_CONTRIBUTIONS;
    if (set.proba && set.contributions) {
        pli_cli_usage("%s: --proba and --contributions are two different answers; ask for one", command->name);
    } else if (set.model_file == NULL) {
        pli_cli_usage("%s: no model; name it with --model-file FILE", command->name);
    } else if (set.in.data.n == 0) {
        pli_cli_usage("%s: no data; name a file with --data D", command->name);
    } else if (check_apart(&set, command->name)) {
        if (set.in.threads == 0) set.in.threads = pli_cores();
        pli_talk_open(&talk, set.quiet);
        plait_status status = apply(&set, answer, &talk, &err);
        code = status < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
        pli_talk_close(&talk);
    }
    pli_opts_free(&opts);
    return code;
}
