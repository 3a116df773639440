/* The names of a model's hashed features, which the leading worker finds in the data once more. */
#include <math.h>

#include "learn/model/model.h"
#include "learn/run/run.h"

/* Does any class give the feature a weight? */
static bool has_weight(const plait_model *model, const pli_model_ops *ops, int64_t row) {
    for (int64_t k = 0; k < ops->columns(model); k++)
        if (ops->weight(model, row, k) != 0) return true;
    return false;
}

/* The keys of features that matter: those with a weight, or all of a model that has no weights. */
static int64_t wanted_keys(const plait_model *model, uint64_t **keys_out) {
    const pli_model_ops *ops = pli_model_ops_of(model);
    const int64_t        rows = ops != NULL ? ops->rows(model) : model->features;
    int64_t              n = 0;
    *keys_out = ops == NULL || !isnan(ops->intercept(model, 0)) ? pli_array((size_t)rows, sizeof **keys_out) : NULL;
    for (int64_t i = 0; *keys_out != NULL && i < rows; i++)
        if (ops == NULL || has_weight(model, ops, i)) (*keys_out)[n++] = ops != NULL ? ops->key(model, i) : (uint64_t)i;
    return n;
}

void pli_run_name_features(pli_run *run, plait_model *model) {
    pli_dataset *again = NULL;
    uint64_t    *keys = NULL;
    if (!pli_comm_leads(run->comm) || run->opts->data == NULL || run->opts->names_bytes == 0) return;
    if (!pli_schema_is_hashed(model->schema)) return;
    if (!pli_dataset_has_text(run->data)) { /* a cache */
        plait_data_opts plain = *run->opts->data;
        plain.cache = 0;
        plain.log = NULL;
        if (pli_dataset_open(&plain, model->schema, 0, 1, &again, NULL) < 0) return;
    }
    const int64_t n = wanted_keys(model, &keys);
    pli_dataset_name(again != NULL ? again : run->data, run->opts->names_bytes, n, keys, model->schema);
    pli_free(keys);
    pli_dataset_destroy(&again);
}
