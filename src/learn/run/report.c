/* The record of a run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/model/model.h"
#include "learn/run/run.h"
#include "learn/solve/inherit.h"

/* --- figures of the learner's own --------------------------------------------------------------------------------- */

/* Adds up over the blocks that this worker has now, then over all workers. */
static plait_status measure(pli_run *run, const plait_model *model, const pli_dataset *data, pli_measured *measured) {
    pli_living     held;
    plait_status status = pli_living_blocks(run, data, &held);
    if (status >= 0) status = pli_model_measure(model, held.n, held.block, run->pool, measured, run->err);
    if (status >= 0 && model->stop != NULL) status = pli_run_hear(run, &run->interrupted);
    if (status >= 0) status = pli_comm_sum_cells(run->comm, true, measured->n, measured->cell);
    if (status >= 0) pli_measured_round(measured);
    pli_living_blocks_free(&held);
    return status;
}

static void add_figures(const plait_model *model, const double *sums, const char *prefix, plait_report *report) {
    plait_figure  found[PLAIT_FIGURES];
    const int32_t n = model->learner->figures(model, sums, found);
    for (int32_t i = 0; i < n && report->n_figures < PLAIT_FIGURES; i++) {
        if (pli_report_take(report, &found[i], prefix[0] != '\0')) continue;
        plait_figure *to = &report->figures[report->n_figures++];
        snprintf(to->name, sizeof to->name, "%s%.24s", prefix, found[i].name);
        to->value = found[i].value;
    }
}

static plait_status tell_figures(pli_run *run, const plait_model *model, const pli_dataset *data, const char *prefix,
                                 plait_report *report) {
    pli_measured measured;
    plait_status status = pli_measured_begin(model, &measured, run->err);
    if (status >= 0) status = measure(run, model, data, &measured);
    if (status >= 0 && !run->interrupted) add_figures(model, measured.sum, prefix, report);
    pli_measured_end(&measured);
    return status;
}

plait_status pli_report_measure(pli_run *run, const plait_model *model, plait_report *report) {
    if (model->learner->measure == NULL || model->learner->figures == NULL) return PLAIT_OK;
    if (!run->stream) PLI_TRY(tell_figures(run, model, run->data, "", report));
    return run->test != NULL && !run->interrupted ? tell_figures(run, model, run->test, "test_", report) : PLAIT_OK;
}

/* --- the rest ----------------------------------------------------------------------------------------------------- */

static void add_options(const pli_run *run, plait_report *r) {
    r->n_options = 0;
    for (const plait_learner_option *o = run->learner->options; o != NULL && o->name != NULL; o++) {
        if (r->n_options == PLAIT_OPTION_VALUES) return;
        plait_option_value *to = &r->options[r->n_options++];
        snprintf(to->name, sizeof to->name, "%s", o->name);
        snprintf(to->value, sizeof to->value, "%s", pli_run_shown(run, o->name));
    }
}

/* Rows that are left out count less than others, so the user should know. */
static void tell_left_out(const pli_run *run, const plait_report *r, int64_t clocks) {
    if (!run->leaps || r->clocks_skipped <= 0 || !pli_comm_leads(run->comm)) return;
    pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
            "workers that are slow for long left out %lld of %lld clocks, and what their rows would have added; "
            "--balance dynamic%s", (long long)r->clocks_skipped, (long long)clocks,
            run->balanced ? ", which is on, helps only as far as a clock's time comes from its rows"
                          : " gives such rows to others");
}

plait_status pli_report_fill(pli_run *run, plait_report *r) {
    const bool ready = pli_run_is_spare(run); /* a spare idles on purpose */
    double sums[6] = { (double)(pli_cpu_ns() - run->cpu_ns) * 1e-9, ready ? 0 : run->idle_seconds,
                       ready ? 0 : run->train_seconds, (double)run->clocks_skipped,
                       (double)plait_job_moved(run->job), (double)plait_job_moved_bytes(run->job) };
    double peak = (double)pli_peak_rss_bytes();
    r->rows = run->rows;
    r->features = run->features;
    r->classes = run->classes;
    r->workers = plait_comm_workers(run->comm);
    r->spares = run->opts->spares;
    r->replicas = run->opts->replicas > 1 ? run->opts->replicas : 1;
    r->epochs = run->epochs_done;
    r->clocks = run->clocks_done;
    snprintf(r->model, sizeof r->model, "%s", run->opts->model);
    snprintf(r->label, sizeof r->label, "%s", run->label_text);
    snprintf(r->transport, sizeof r->transport, "%s", plait_comm_transport(run->comm));
    snprintf(r->optimizer, sizeof r->optimizer, "%s", run->optimizer);
    snprintf(r->optimizer_why, sizeof r->optimizer_why, "%s", run->optimizer_why);
    snprintf(r->collective, sizeof r->collective, "%s", pli_comm_collective(run->comm));
    snprintf(r->topology, sizeof r->topology, "%s", run->topology);
    snprintf(r->consistency, sizeof r->consistency, "%s", run->consistency);
    add_options(run, r);
    r->n_tables = run->n_tables;
    memcpy(r->tables, run->table, sizeof r->tables);
    r->validation_loss = run->validation_loss;
    r->oob_loss = r->oob_accuracy = NAN;
    r->load_seconds = run->load_seconds;
    r->train_seconds = run->train_seconds;
    r->wait_seconds = (double)(run->times.wait_ns + (run->times.in_flight ? 0 : run->times.network_ns)) * 1e-9;
    r->network_seconds = run->times.in_flight ? (double)run->times.network_ns * 1e-9 : NAN;
    r->compute_seconds = run->train_seconds - (double)(run->times.wait_ns + run->times.network_ns) * 1e-9;
    const int64_t clocks = run->clocks_done - (run->resume != NULL ? run->resume->clock : 0);
    r->clocks_per_second = run->train_seconds > 0 ? (double)clocks / run->train_seconds : NAN;
    r->best_epoch = run->best > 0 ? run->best : -1;
    r->stopped_early = run->validation == NULL && !(run->fraction > 0) ? -1 : run->stopped_early;
    if (run->learner->more != NULL && run->learner->more->report != NULL) run->learner->more->report(run, r);
    r->checkpoint = run->kept;
    if (run->unkept.code < 0) snprintf(r->checkpoint_failed, sizeof r->checkpoint_failed, "%s", run->unkept.text);
    r->interrupted = run->interrupted;
    PLI_TRY(plait_comm_allreduce(run->comm, sums, 6, PLAIT_F64, PLAIT_SUM));
    PLI_TRY(plait_comm_allreduce(run->comm, &peak, 1, PLAIT_F64, PLAIT_MAX));
    if (run->opts->backup > 0) r->updates_dropped = plait_job_dropped(run->job);
    if (run->opts->backup > 0 || run->leaps) r->clocks_skipped = (int64_t)sums[3];
    r->shards_moved = run->opts->slots > 0 ? (int64_t)sums[4] : -1;
    r->moved_bytes = run->opts->slots > 0 ? (int64_t)sums[5] : -1;
    tell_left_out(run, r, clocks * plait_comm_workers(run->comm));
    r->idle_share = sums[2] > 0 ? sums[1] / sums[2] : NAN;
    r->cpu_seconds = pli_comm_shares_process(run->comm) ? sums[0] / plait_comm_workers(run->comm) : sums[0];
    r->peak_rss_bytes = (int64_t)peak;
    return PLAIT_OK;
}

