/* export - writes a model for other runtimes. */
#include <string.h>

#include "cli/cli.h"
#include "cli/paths.h"

typedef struct export_settings {
    const char *model_file, *format, *out;
} export_settings;

#define AT(field) offsetof(export_settings, field)

static const pli_opt rows[] = {
    { "model-file", PLI_OPT_TEXT, AT(model_file), NULL, "FILE", "the model, as train --out wrote it", 0, 0, "model" },
    { "format", PLI_OPT_CHOICE, AT(format), "onnx", "onnx|xgboost-json",
      "format of the file; xgboost-json: models of trees, as XGBoost reads them", 0, 0, "run" },
    { "out", PLI_OPT_TEXT, AT(out), NULL, "FILE", "write to FILE, whole or not at all", 0, 0, "run" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

static plait_status apply(const export_settings *set, plait_error *err) {
    plait_model *model = NULL;
    PLI_TRY(plait_model_load(set->model_file, &model, err));
    plait_status status = plait_model_export(model, set->format, set->out, err);
    if (status < 0) pli_fail_at(err, "export");
    plait_model_destroy(&model);
    return status;
}

static bool check_apart(const export_settings *set) {
    const pli_path out = { "--out", set->out, false }, model = { "--model-file", set->model_file, false };
    return pli_paths_apart("export", &out, 1, &model, 1, &(pli_text_list){ 0 });
}

static int export(int argc, char *const *argv) {
    export_settings set = { 0 };
    pli_opts       *opts = NULL;
    plait_error     err = { .rank = -1 };
    int             code = PLI_EXIT_USAGE;
    if (!pli_cli_read(&pli_command_export, argc, argv, &set, NULL, &opts, &code)) return code;
    if (set.model_file == NULL) {
        pli_cli_usage("export: no model; name it with --model-file FILE");
    } else if (set.out == NULL || strcmp(set.out, "-") == 0) {
        pli_cli_usage("export: no file to write; name it with --out FILE");
    } else if (check_apart(&set)) {
        plait_status status = apply(&set, &err);
        code = status < 0 ? pli_cli_fail(&err) : pli_cli_end(PLI_EXIT_DONE);
    }
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_export = {
    .name = "export",
    .usage = "export --model-file FILE --format onnx|xgboost-json --out FILE",
    .summary = "write a model for other runtimes",
    .details = "The ONNX model (opset 17) takes a float input x [rows, features] in the data's own units; its columns "
               "are the features in the order of 'plait inspect'. A classifier gives probabilities [rows, classes], "
               "the same as predict --proba, and label [rows]; a hinge model gives scores and label; a regression "
               "gives prediction [rows, 1]. docs/onnx.md has more. With --format xgboost-json, a model of trees "
               "becomes a file that XGBoost's load_model reads; it predicts the same, in float32.",
    .rows = rows,
    .run = export,
};
