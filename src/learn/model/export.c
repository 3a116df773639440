/* Exports a model to other programs.
 *
 *     onnx           any model. The input x [rows, features] is in the data's units, the outputs are the answers of
 *                    predict. Each learner writes its own nodes (plait_learner.export_onnx).
 *     xgboost-json   models of trees, as XGBoost's Booster.load_model reads them (pli_model_ops.xgboost) */
#include <string.h>

#include "graph/form/export.h"
#include "learn/model/model.h"

static plait_status export_onnx(const plait_model *model, const char *path, plait_error *err) {
    if (model->learner->export_onnx == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "model %s is refused: it has no form in ONNX", model->name);
    pli_export to;
    pli_export_init(&to);
    plait_status status = model->learner->export_onnx(model, &to, err);
    pli_export_note(&to, "plait.model", model->name);
    pli_export_note(&to, "plait.description", model->description);
    if (status >= 0) status = pli_export_save(&to, path, "plait", err);
    pli_export_destroy(&to);
    return status;
}

static plait_status export_xgboost(const plait_model *model, const char *path, plait_error *err) {
    const pli_model_ops *ops = pli_model_ops_of(model);
    pli_outfile         *file = NULL;
    pli_text             json = { 0 };
    if (ops == NULL || ops->xgboost == NULL)
        return pli_fail(err, PLAIT_EREFUSED, "model %s is refused: xgboost-json is a form of trees; take --format onnx",
                        model->name);
    plait_status status = ops->xgboost(model, &json, err);
    if (status >= 0) status = pli_outfile_open(path, &file, err);
    if (status >= 0) status = pli_outfile_write(file, json.data, json.length, err);
    if (file != NULL && status >= 0) status = pli_outfile_commit(&file, err);
    else if (file != NULL) pli_outfile_abandon(&file);
    pli_text_free(&json);
    return status;
}

plait_status plait_model_export(const plait_model *model, const char *format, const char *path,
                                plait_error *error_out) {
    static const char *const formats[] = { "onnx", "xgboost-json" };
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, format));
    PLI_TRY(PLI_GIVEN(error_out, path));
    if (strcmp(format, formats[0]) == 0) return export_onnx(model, path, error_out);
    if (strcmp(format, formats[1]) == 0) return export_xgboost(model, path, error_out);
    return pli_fail_unknown(error_out, "format", format, formats, 2);
}
