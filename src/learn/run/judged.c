/* Opens what is judged besides the rows trained on: the test set, and a file for validation. */
#include <math.h>
#include <string.h>

#include "learn/run/run.h"

/* Can every row of the set be judged? Asked before the training, since a mistake found after it would cost all of it.
 */
static plait_status check(pli_run *run, const pli_dataset *data, const char *name) {
    const pli_learner_more *more = run->learner->more;
    return more != NULL && more->check_judged != NULL ? more->check_judged(run, data, name) : PLAIT_OK;
}

static const char *name_of(const plait_data_opts *files) {
    return files != NULL && files->n_paths == 1 ? files->paths[0] : "the test set";
}

/* A file of labels belongs to the rows trained on; other images have their own labels beside them. */
static plait_status open_beside(pli_run *run, const plait_data_opts *files, const plait_data *memory,
                                pli_dataset **data_out) {
    const plait_data_opts *trained = run->opts->data;
    plait_data_opts        own = files != NULL ? *files : (plait_data_opts){ 0 };
    bool                   same =
        trained != NULL && own.label != NULL && trained->label != NULL && strcmp(own.label, trained->label) == 0;
    if (same && pli_dataset_has_label_file(run->data) && strcmp(own.paths[0], trained->paths[0]) != 0) own.label = NULL;
    PLI_TRY(pli_run_open(run, files != NULL ? &own : NULL, memory, run->schema, false, data_out));
    if (memory != NULL || (run->opts->replicas <= 1 && !pli_dataset_has_weight_file(*data_out))) return PLAIT_OK;
    /* It says how many rows each part has: which weights of FILE.weight are a worker's own, and what another worker has
     * to read. */
    pli_schema  *joined = NULL;
    plait_status status = pli_run_agree_schema(run, *data_out, false, &joined);
    pli_schema_destroy(&joined);
    return status;
}

plait_status pli_run_open_judged(pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->validation != NULL && run->fraction == 0) {
        plait_data_opts file = *o->data;
        file.paths = &o->validation;
        file.n_paths = 1;
        file.blocks = 0;
        PLI_TRY(open_beside(run, &file, NULL, &run->validation));
        PLI_TRY(check(run, run->validation, o->validation));
    }
    if (o->test == NULL && o->test_memory == NULL) return PLAIT_OK;
    PLI_TRY(open_beside(run, o->test, o->test_memory, &run->test));
    return check(run, run->test, name_of(o->test));
}
