/* What a checkpoint says of its run, beside the tables: the options that its result depends on, which a resumed run
 * must have too, and where the run stood. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep_state.h"

plait_status pli_keep_options(const pli_run *run, pli_text *text) {
    const plait_train_opts *o = run->opts;
    const char             *schedule = run->schedule != NULL ? run->schedule : "constant";
    pli_text_add(text,
                 "data of %" PRId64 " rows in %d blocks\ndata of %" PRId64 " features, %" PRId64
                 " of them given, %" PRId64 " classes\n",
                 run->rows, (int)pli_dataset_blocks(run->data), run->features, run->entries,
                 run->classes);
    if (run->stream) pli_text_add(text, "data streamed\n");
    pli_text_add(text, "--model %s\n--optimizer %s\n--reduce %s\n--consistency %s\n", o->model, run->optimizer,
                 run->exact ? "exact" : "plain", run->consistency);
    for (int32_t i = 0; i < run->n_tables; i++)
        if (strcmp(run->table[i].consistency, run->consistency) != 0)
            pli_text_add(text, "--table %s:consistency=%s\n", run->table[i].name, run->table[i].consistency);
    pli_text_add(text, "--tolerance %.17g\n", o->tolerance);
    pli_text_add(text, "--batch %" PRId64 "\n--learning-rate %.17g\n--schedule %s\n--momentum %.17g\n", run->batch,
                 run->rate, schedule, o->momentum);
    if (strcmp(schedule, "cosine") == 0) pli_text_add(text, "--epochs %" PRId64 "\n", run->epochs);
    pli_text_add(text, "--l1 %.17g\n--l2 %.17g\n--no-intercept %d\n--huber-delta %.17g\n--quantile %.17g\n", run->l1,
                 run->l2, o->no_intercept != 0, o->huber_delta, o->quantile);
    pli_text_add(text, "--class-weight %s\n", o->class_weight != NULL ? o->class_weight : "none");
    pli_text_add(text, "--normalize %s\n--seed %" PRIu64 "\n--validation %s\n--backup %d\n--staleness-aware %d\n",
                 o->normalize != NULL ? o->normalize : "auto", o->seed, o->validation != NULL ? o->validation : "none",
                 (int)o->backup, o->staleness_aware != 0);
    if (o->filter != NULL) pli_text_add(text, "--filter %s\n", o->filter);
    if (run->learner->more != NULL && run->learner->more->options != NULL) run->learner->more->options(run, text);
    pli_run_add_settings(run, text);
    return text->failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a run") : PLAIT_OK;
}

/* Which workers are in. A resumed run goes on by its own plan, so it does not ask. */
static void add_who_is_in(const pli_run *run, pli_text *text) {
    pli_json_list(text, "in");
    for (int32_t w = 0; w < plait_comm_workers(run->comm); w++)
        if (!pli_comm_is_absent(run->comm, w)) pli_json_i64(text, NULL, w);
    pli_json_list_end(text);
}

/* Sums are written as cells: their bits do not depend on who had which rows, and the resumed run adds to them exactly.
 */
plait_status pli_keep_describe(const pli_run *run, int64_t epoch, int64_t clock, const pli_total *progressive,
                               pli_text *text) {
    const pli_keep   *k = run->keep;
    pli_text          options = { 0 };
    plait_status      status = pli_keep_options(run, &options);
    const plait_comm *comm = run->comm;
    char              words[PLI_SUMS * 4 * 16 + 1] = "";
    for (int32_t i = 0; i < PLI_SUMS * 4; i++)
        snprintf(words + 16 * i, 17, "%016" PRIx64, progressive->cell[i / 4][i % 4]);
    pli_json_begin(text);
    pli_json_text(text, "kind", "train");
    pli_json_i64(text, "version", 1);
    pli_json_i64(text, "clock", run->clocks_done);
    pli_json_i64(text, "epoch", epoch);
    pli_json_i64(text, "epoch_clock", clock + 1);
    pli_json_i64(text, "epochs_done", run->epochs_done);
    pli_json_i64(text, "workers", plait_comm_workers(comm));
    if (run->opts->slots > 0) add_who_is_in(run, text);
    pli_json_text(text, "topology", run->topology);
    pli_json_text(text, "transport", plait_comm_transport(comm));
    pli_json_i64(text, "layout", run->layout);
    pli_json_i64(text, "blocks", run->blocks);
    pli_json_i64(text, "in_order", epoch == 0 && run->in_order);
    if (run->lanes > 0) {
        pli_json_i64(text, "lanes", run->lanes);
        pli_json_i64(text, "tail", run->tail);
    }
    pli_json_f64(text, "best_loss", run->best_loss);
    pli_json_f64(text, "validation_loss", run->validation_loss);
    pli_json_f64(text, "validation_accuracy", run->validation_accuracy);
    pli_json_i64(text, "best_epoch", run->best_epoch);
    pli_cuts_units(k->cuts, text);
    pli_json_text(text, "progressive", words);
    pli_json_text(text, "options", status == PLAIT_OK ? options.data : NULL);
    pli_json_end(text);
    pli_text_free(&options);
    if (status == PLAIT_OK && text->failed) status = pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a run");
    return status;
}
