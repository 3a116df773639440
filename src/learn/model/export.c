/* Exports a model to other runtimes, as ONNX. Its input x [rows, features] is in the data's units; its outputs are the
 * answers of predict. Each learner writes its own nodes (plait_learner.export_onnx). */
#include <string.h>

#include "graph/form/export.h"
#include "learn/model/model.h"

plait_status plait_model_export(const plait_model *model, const char *format, const char *path,
                                plait_error *error_out) {
    static const char *const formats[] = { "onnx" };
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, format));
    PLI_TRY(PLI_GIVEN(error_out, path));
    if (strcmp(format, formats[0]) != 0) return pli_fail_unknown(error_out, "format", format, formats, 1);
    if (model->learner->export_onnx == NULL)
        return pli_fail(error_out, PLAIT_EREFUSED, "model %s is refused: it has no form in ONNX", model->name);
    pli_export to;
    pli_export_init(&to);
    plait_status status = model->learner->export_onnx(model, &to, error_out);
    pli_export_note(&to, "plait.model", model->name);
    pli_export_note(&to, "plait.description", model->description);
    if (status >= 0) status = pli_export_save(&to, path, "plait", error_out);
    pli_export_destroy(&to);
    return status;
}
