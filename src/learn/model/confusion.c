/* Confusion of classes: the total weight of the rows of each class that a model takes for each class. What is said of
 * single classes (precision, recall) follows from it. */
#include "learn/model/model.h"

/* By halving: labels increase. */
int64_t pli_model_class(const plait_model *model, double label) {
    int64_t low = 0, high = model->classes;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (model->label[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low < model->classes && model->label[low] == label ? low : -1;
}

static plait_status count_block(const plait_model *model, const pli_block *block, const double *predicted,
                                double *weights, plait_error *err) {
    for (int64_t r = 0; r < block->rows; r++) {
        const int64_t truth = pli_model_class(model, block->label[r]);
        if (truth < 0)
            return pli_fail(err, PLAIT_EFORMAT, "row %lld has a label that the model does not know",
                            (long long)(block->first_row + r + 1));
        const double weight = block->weight != NULL ? (double)block->weight[r] : 1;
        weights[truth * model->classes + (int64_t)predicted[r]] += weight;
    }
    return PLAIT_OK;
}

static plait_status count_all(const plait_model *model, const pli_dataset *set, const double *predicted,
                              double *weights, plait_error *err) {
    for (int64_t i = 0; i < model->classes * model->classes; i++) weights[i] = 0;
    for (int32_t b = 0; b < pli_dataset_own_blocks(set); b++) {
        const pli_block *block = pli_dataset_block(set, b);
        PLI_TRY(count_block(model, block, predicted, weights, err));
        predicted += block->rows;
    }
    return PLAIT_OK;
}

plait_status plait_model_confusion(const plait_model *model, const plait_data *data, double *weights_out,
                                   plait_error *error_out) {
    PLI_TRY(PLI_GIVEN(error_out, model));
    PLI_TRY(PLI_GIVEN(error_out, data));
    PLI_TRY(PLI_GIVEN(error_out, weights_out));
    const int64_t rows = plait_data_rows(data);
    if (model->classes <= 0 || model->learner->labels == PLAIT_LABELS_NONE || rows != plait_data_labels(data))
        return pli_fail(error_out, PLAIT_EREFUSED, "model %s has no classes of rows, so none is taken for another",
                        model->name);
    PLI_TRY(pli_label_need(model->schema, model->name, error_out));
    double      *predicted = pli_array((size_t)rows, sizeof *predicted);
    pli_dataset *set = NULL;
    if (predicted == NULL)
        return pli_fail(error_out, PLAIT_ENOMEM, "no memory for %lld predicted labels", (long long)rows);
    plait_status status = plait_model_predict(model, data, 0, predicted, error_out);
    if (status >= 0) status = pli_dataset_of_memory(data, 0, 1, &set, error_out);
    if (status >= 0) status = count_all(model, set, predicted, weights_out, error_out);
    pli_dataset_destroy(&set);
    pli_free(predicted);
    return status;
}
