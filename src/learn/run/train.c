/* plait_train: the order of a run, from options to report. */
#include "learn/run/inherit.h"
#include "learn/keep/keep.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/table.h"

void plait_train_opts_init(plait_train_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_train_opts){
        .size = sizeof *opts, .model = "logistic", .l2 = NAN, .momentum = 0.9, .huber_delta = 1, .normalize = "auto",
        .checkpoint_seconds = 300, .checkpoint_keep = 2
    };
}

/* --- deaths that the run goes on from ----------------------------------------------------------------------- */

void pli_run_tell_lost(pli_run *run) {
    plait_error why;
    if (run->opts->lost == NULL || !pli_comm_leads(run->comm)) return;
    while (pli_comm_next_death(run->comm, &run->deaths, &why)) run->opts->lost(run->opts->user, why.rank, why.text);
}

/* --- progress -------------------------------------------------------------------------------------------- */

void pli_meter_start(pli_meter *meter, pli_run *run) {
    *meter = (pli_meter){ .run = run, .begun_ns = pli_comm_now(run->comm), .told_ns = pli_comm_now(run->comm) };
}

/* How many workers have rows: spares stand in for who has died as far as they go. */
static int32_t computing(const pli_run *run) {
    const int32_t living = plait_comm_workers(run->comm) - pli_comm_absent(run->comm);
    return living < pli_run_holders(run) ? living : pli_run_holders(run);
}

void pli_meter_tell(pli_meter *meter, const pli_sums *sums, int64_t epoch, int64_t clock, bool epoch_ended) {
    pli_run *run = meter->run;
    if (run->opts->progress == NULL || !pli_comm_leads(run->comm)) return;
    meter->rows += sums->rows;
    pli_sums_add(&meter->lately, sums);
    uint64_t now = pli_comm_now(run->comm);
    if (!epoch_ended && now - meter->told_ns < 100000000) return;
    double  seconds = (double)(now - meter->begun_ns) * 1e-9, lately = (double)(now - meter->told_ns) * 1e-9;
    int64_t done = epoch * run->clocks + clock + 1, all = run->clocks * run->epochs;
    int64_t before = run->resume != NULL ? run->resume->clock : 0; /* done by an earlier run */
    plait_progress p = { .epoch = epoch + 1,
                         .epochs = run->epochs,
                         .clock = done,
                         .clocks = all,
                         .loss = pli_sums_loss(&meter->lately),
                         .validation_loss = run->validation_loss,
                         .rows_per_second = (meter->rows - meter->told_rows) * computing(run) / lately,
                         .seconds = seconds,
                         .seconds_left = done > before && all > 0
                                             ? seconds / (double)(done - before) * (double)(all - done)
                                             : NAN,
                         .epoch_ended = epoch_ended,
                         .validation_accuracy = run->validation_accuracy,
                         .learning_rate = run->rule.ops == NULL ? (double)NAN
                                              : run->rule.learning_rate * pli_schedule_factor(&run->rule, done - 1),
                         .bytes = (double)(plait_comm_bytes_sent(run->comm) - run->training_bytes) };
    run->opts->progress(run->opts->user, &p);
    meter->told_ns = now;
    meter->told_rows = meter->rows;
    if (meter->lately.rows > 0) meter->lately = (pli_sums){ 0 };
}

/* The features go in as they are, because it was asked for. */
static bool is_unscaled(const pli_run *run) {
    return run->opts->normalize != NULL && strcmp(run->opts->normalize, "none") == 0 && run->file.text == NULL;
}

plait_status pli_run_finite(const pli_run *run, double loss, int64_t clock) {
    if (isfinite(loss)) return PLAIT_OK;
    if (run->lbfgs)
        return pli_fail(run->err, PLAIT_EDIVERGED,
                        "the loss is not finite in iteration %lld: look for huge values in the "
                        "data, or take --normalize auto",
                        (long long)clock);
    const double rate = run->rule.ops != NULL ? run->rule.learning_rate : run->rate;
    return pli_fail(run->err, PLAIT_EDIVERGED, "the loss is not finite in clock %lld: %stake a smaller step, as "
                    "--learning-rate %g, or --optimizer lbfgs", (long long)clock,
                    is_unscaled(run) ? "the features are not scaled: take --normalize auto; or " : "", rate / 2);
}

static int64_t entries_of(const pli_batch *batch) {
    int64_t entries = 0;
    for (int32_t p = 0; p < batch->parts; p++) {
        const pli_part *part = &batch->part[p];
        for (int64_t i = 0; i < part->rows; i++) {
            int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
            entries += part->block->row_start[r + 1] - part->block->row_start[r];
        }
    }
    return entries;
}

void pli_run_charge(const pli_run *run, const pli_batch *batch, int64_t values) {
    if (!pli_comm_charges(run->comm)) return;
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(entries_of(batch) * run->linear.columns));
    pli_comm_work(run->comm, PLI_WORK_SUMS, (uint64_t)values);
}

void pli_run_charge_parsed(const pli_run *run, const pli_batch *batch) {
    if (pli_comm_charges(run->comm)) pli_comm_work(run->comm, PLI_WORK_PARSED, (uint64_t)entries_of(batch));
}

/* --- pieces of a run ------------------------------------------------------------------------------------- */

/* All that must be the same on every rank, a line each. */
static plait_status agree_options(pli_run *run) {
    const plait_train_opts *o = run->opts;
    pli_text                text = { 0 };
    pli_text_add(&text, "--model %s\n--optimizer %s\n--topology %s\n--consistency %s\n", o->model, run->optimizer,
                 o->topology != NULL ? o->topology : "default",
                 o->consistency != NULL ? o->consistency : PLI_CONSISTENCY_DEFAULT);
    pli_text_add(&text, "--layers %s\n--loss %s\n", o->layers != NULL ? o->layers : "default",
                 o->loss != NULL ? o->loss : "default");
    pli_text_add(&text, "--kernels %s\n", pli_run_kernels(run) != NULL ? o->kernels : "own");
    pli_text_add(&text, "tells weights %s\n", o->weights != NULL ? "yes" : "no");
    pli_text_add(&text, "--checkpoint %s, every %lld clocks or %g s\n--resume %s\n",
                 o->checkpoint != NULL ? o->checkpoint : "none", (long long)o->checkpoint_clocks, o->checkpoint_seconds,
                 o->resume != NULL ? o->resume : "none");
    pli_text_add(&text, "--aggregate %s\n", o->aggregate != NULL ? o->aggregate : "none");
    pli_text_add(&text, "--filter %s\n--reduce %s\n--backup %d\n--spares %d\n--staleness-aware %d\n",
                 o->filter != NULL ? o->filter : "none", o->exact != 0 ? "exact" : "plain", (int)o->backup,
                 (int)o->spares, o->staleness_aware != 0);
    pli_text_add(&text, "--optimizer-state %s\n", run->sharded ? "sharded" : "whole");
    pli_text_add(&text, "--epochs %lld\n--batch %lld\n--learning-rate %.17g\n--momentum %.17g\n--schedule %s\n",
                 (long long)o->epochs, (long long)o->batch, o->learning_rate, o->momentum,
                 o->schedule != NULL ? o->schedule : "constant");
    pli_text_add(&text, "--l1 %.17g\n--l2 %.17g\n--no-intercept %d\n--huber-delta %.17g\n--class-weight %s\n", o->l1,
                 o->l2, o->no_intercept != 0, o->huber_delta, o->class_weight != NULL ? o->class_weight : "none");
    pli_text_add(
        &text,
        "--normalize %s\n--patience %lld\n--seed %llu\n--validation %s\n--init-model %s\n--test %d\n--balance %s\n",
        o->normalize != NULL ? o->normalize : "auto", (long long)o->patience, (unsigned long long)o->seed,
        o->validation != NULL ? o->validation : "none", o->init_model != NULL ? o->init_model : "none",
        o->test != NULL || o->test_memory != NULL, run->balanced ? "dynamic" : "static");
    for (int32_t i = 0; i < o->n_tables; i++)
        pli_text_add(&text, "--table %s:topology=%s,consistency=%s,filter=%s\n", o->tables[i].name,
                     o->tables[i].topology != NULL ? o->tables[i].topology : "as the run's",
                     o->tables[i].consistency != NULL ? o->tables[i].consistency : "as the run's",
                     o->tables[i].filter != NULL ? o->tables[i].filter : "as the run's");
    plait_status status = text.failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on options")
                                      : pli_agree_text(run->comm, "options", text.data, run->err);
    pli_text_free(&text);
    return status;
}

/* Tables travel as w does unless they say otherwise. */
static plait_status create_job(plait_comm *comm, const plait_train_opts *o, int64_t batch, int64_t first_clock,
                               plait_job **job_out) {
    const pli_travel w = pli_run_travel(&(pli_run){ .comm = comm, .opts = o }, "w");
    plait_job_opts   j;
    plait_job_opts_init(&j);
    j.topology = w.topology;
    j.consistency = w.consistency;
    j.batch = batch;
    j.first_clock = first_clock;
    j.backup = o->backup;
    j.replicas = o->replicas;
    j.spares = o->spares;
    j.filter = w.filter;
    j.aggregate = o->aggregate;
    j.exact = o->exact;
    j.seed = o->seed;
    plait_function functions[PLI_LBFGS_FUNCTIONS];
    for (int32_t i = 0; i < PLI_LBFGS_FUNCTIONS; i++) {
        functions[i] = pli_lbfgs_functions[i];
        functions[i].user = pli_comm_pool(comm);
        if (o->exact != 0) functions[i].merge = pli_lbfgs_merge_exactly;
    }
    j.rules = o->rules;
    j.n_rules = o->n_rules;
    j.functions = functions;
    j.n_functions = PLI_LBFGS_FUNCTIONS;
    return plait_job_create(comm, &j, job_out);
}

static plait_status describe(const pli_run *run, pli_text *text) {
    const plait_train_opts *o = run->opts;
    char                    l1[32], l2[32];
    pli_format_f64(run->l1, l1);
    pli_format_f64(run->l2, l2);
    pli_text_add(
        text,
        "{\"model\": \"%s\", \"optimizer\": \"%s\", \"l1\": %s, \"l2\": %s, \"intercept\": %s, \"epochs\": %lld, ",
        o->model, run->optimizer, l1, l2, run->linear.intercept ? "true" : "false", (long long)run->epochs_done);
    if (run->best_epoch > 0) pli_text_add(text, "\"best_epoch\": %lld, ", (long long)run->best_epoch);
    if (run->net != NULL && run->net->text == NULL) pli_text_add(text, "\"layers\": \"%s\", ", run->net->layers);
    if (run->net != NULL) pli_text_add(text, "\"loss\": \"%s\", ", run->loss);
    pli_text_add(text, "\"batch\": %lld, \"rows\": %lld, \"seed\": %llu}", (long long)run->batch,
                 (long long)run->train_rows, (unsigned long long)o->seed);
    return text->failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a model") : PLAIT_OK;
}

double pli_run_penalty_of(const pli_run *run, const pli_solution *solution) {
    if (run->net != NULL) return pli_net_penalty(run->net, solution->net, run->l1, run->l2);
    double  square = 0, absolute = 0;
    int64_t n = solution->rows * run->linear.columns;
    for (int64_t i = 0; i < n; i++) {
        square += solution->weight[i] * solution->weight[i];
        absolute += fabs(solution->weight[i]);
    }
    return run->l2 / 2 * square + run->l1 * absolute;
}

/* Loss of the model that knows nothing: its scores are 0, a number's the mean label. Of the rows trained on. */
static plait_status loss_of_nothing(pli_run *run, double *loss_out) {
    int64_t  k = run->linear.columns;
    double  *score = pli_calloc((size_t)k, 2 * sizeof *score);
    pli_sums sums = { 0 };
    if (score == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for scores");
    for (int64_t c = 0; c < k; c++) score[c] = run->label_mean;
    for (int32_t b = 0; b < pli_dataset_own_blocks(run->data); b++) {
        const pli_block *block = pli_dataset_block(run->data, b);
        for (int64_t r = 0; r < block->rows; r++) {
            double weight = block->weight != NULL ? (double)block->weight[r] : 1;
            if (run->fraction > 0 && pli_run_holds_back(run, block->first_row + r)) continue;
            (void)pli_linear_judge(&run->linear, score, block->label[r], weight, score + k, &sums);
        }
    }
    pli_free(score);
    PLI_TRY(pli_sums_agree(run->comm, &sums));
    *loss_out = sums.loss / (double)run->train_rows; /* one label stands for a window's */
    return PLAIT_OK;
}

/* A finite loss may still be that of a run which went astray, or has not come far. Which of them, tells the loss at its
 * beginning: where that was higher (a net's first weights are drawn, a model to start from may be another's) the steps
 * were not too large. */
static plait_status warn_if_astray(pli_run *run, double objective, double train_loss) {
    double   nothing = 0;
    pli_sums first = run->first;
    PLI_TRY(loss_of_nothing(run, &nothing));
    PLI_TRY(pli_sums_agree(run->comm, &first));
    const double began = first.rows > 0 ? pli_sums_loss(&first) : (double)NAN;
    const bool whole = pli_comm_absent(run->comm) == 0; /* else the rows of who has died are missing above */
    if (run->interrupted || !whole || !pli_comm_leads(run->comm)) return PLAIT_OK;
    if (!(objective > nothing * (1 + 1e-6))) return PLAIT_OK;
    const bool stale = strcmp(run->consistency, "bsp") != 0;
    if (run->lbfgs || train_loss < began)
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "the objective is %.4g, that of a model that knows nothing %.4g: the loss was still falling; take more "
                "--epochs%s", objective, nothing, run->lbfgs ? "" : ", or a larger --learning-rate");
    else
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_WARN, -1, "learn",
                "the objective is %.4g, that of a model that knows nothing %.4g: steps were too large%s%s; take %sa "
                "smaller --learning-rate%s", objective, nothing,
                is_unscaled(run) ? " for features that are not scaled" : "", stale ? ", or updates too stale" : "",
                is_unscaled(run) ? "--normalize auto, or " : "", stale ? ", or --consistency bsp" : "");
    return PLAIT_OK;
}

/* Losses at the end: train_loss and objective by one more pass over the rows trained on, then the test. */
static plait_status judge(pli_run *run, const pli_solution *solution, double penalty, plait_report *report) {
    pli_total   total;
    pli_sums    sums;
    pli_ranking ranking = { 0 };
    double      auc = NAN;
    pli_linear  linear = run->linear;
    if (!run->stream) {
        PLI_TRY(pli_run_judge(run, &linear, solution, run->data, run->fraction > 0 ? pli_run_trains : NULL, &total,
                              NULL));
        pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(run->own_entries * linear.columns));
        sums = pli_total_sums(&total);
        PLI_TRY(pli_pace_judge(run, &sums));
        PLI_TRY(pli_total_agree(run->comm, &total, &sums));
        report->train_loss = pli_sums_loss(&sums);
        report->objective = sums.loss / (double)run->train_labels + penalty;
        PLI_TRY(warn_if_astray(run, report->objective, report->train_loss));
    }
    linear.class_weight = NULL;
    if (run->test == NULL) return PLAIT_OK;
    plait_status status = pli_run_judge(run, &linear, solution, run->test, NULL, &total, &ranking);
    if (status == PLAIT_OK) status = pli_total_agree(run->comm, &total, &sums);
    if (status == PLAIT_OK) status = pli_sums_check(&sums, "the test set", run->err);
    if (status == PLAIT_OK && linear.loss->target == PLI_TWO_CLASSES)
        status = pli_ranking_auc(&ranking, run->comm, &auc, run->err);
    if (status == PLAIT_OK) pli_report_test(report, &linear, &sums, auc);
    pli_ranking_free(&ranking);
    return status;
}

static plait_status fill_report(pli_run *run, plait_report *r) {
    const bool ready = pli_run_is_spare(run); /* it stands still on purpose */
    double sums[4] = { (double)(pli_cpu_ns() - run->cpu_ns) * 1e-9, ready ? 0 : run->idle_seconds,
                       ready ? 0 : run->train_seconds, (double)run->clocks_skipped };
    double peak = (double)pli_peak_rss_bytes();
    r->rows = run->rows;
    r->features = run->linear.features;
    r->classes = run->linear.classes;
    r->workers = plait_comm_workers(run->comm);
    r->spares = run->opts->spares;
    r->epochs = run->epochs_done;
    r->clocks = run->clocks_done;
    snprintf(r->model, sizeof r->model, "%s", run->opts->model);
    snprintf(r->label, sizeof r->label, "%s", run->label_text);
    snprintf(r->transport, sizeof r->transport, "%s", plait_comm_transport(run->comm));
    snprintf(r->optimizer, sizeof r->optimizer, "%s", run->optimizer);
    snprintf(r->collective, sizeof r->collective, "%s", pli_comm_collective(run->comm));
    snprintf(r->topology, sizeof r->topology, "%s", run->topology);
    snprintf(r->consistency, sizeof r->consistency, "%s", run->consistency);
    r->n_tables = run->n_tables;
    memcpy(r->tables, run->table, sizeof r->tables);
    r->validation_loss = run->validation_loss;
    r->load_seconds = run->load_seconds;
    r->train_seconds = run->train_seconds;
    r->wait_seconds = (double)(run->times.wait_ns + (run->times.in_flight ? 0 : run->times.network_ns)) * 1e-9;
    r->network_seconds = run->times.in_flight ? (double)run->times.network_ns * 1e-9 : NAN;
    r->compute_seconds = run->train_seconds - (double)(run->times.wait_ns + run->times.network_ns) * 1e-9;
    const int64_t clocks = run->clocks_done - (run->resume != NULL ? run->resume->clock : 0);
    r->clocks_per_second = run->train_seconds > 0 ? (double)clocks / run->train_seconds : NAN;
    r->best_epoch = run->best_epoch > 0 ? run->best_epoch : -1;
    r->stopped_early = run->validation == NULL && !(run->fraction > 0) ? -1 : run->stopped_early;
    r->converged = run->lbfgs && !run->interrupted ? run->converged : -1;
    r->checkpoint = run->kept;
    if (run->unkept.code < 0) snprintf(r->checkpoint_failed, sizeof r->checkpoint_failed, "%s", run->unkept.text);
    r->interrupted = run->interrupted;
    PLI_TRY(plait_comm_allreduce(run->comm, sums, 4, PLAIT_F64, PLAIT_SUM));
    PLI_TRY(plait_comm_allreduce(run->comm, &peak, 1, PLAIT_F64, PLAIT_MAX));
    if (run->opts->backup > 0) {
        r->updates_dropped = plait_job_dropped(run->job);
        r->clocks_skipped = (int64_t)sums[3];
    }
    r->idle_share = sums[2] > 0 ? sums[1] / sums[2] : NAN;
    r->cpu_seconds = pli_comm_shares_process(run->comm) ? sums[0] / plait_comm_workers(run->comm) : sums[0];
    r->peak_rss_bytes = (int64_t)peak;
    return PLAIT_OK;
}

static plait_status make_model(pli_run *run, plait_model **model_out) {
    pli_text     description = { 0 };
    plait_status status = describe(run, &description);
    if (status == PLAIT_OK) {
        pli_schema *schema = run->schema;
        run->schema = NULL;
        const pli_model_form form = { .name = run->opts->model,
                                      .loss = run->loss,
                                      .layers = run->net != NULL ? pli_net_form(run->net) : NULL,
                                      .parameter = run->linear.parameter,
                                      .intercept = run->linear.intercept,
                                      .features = run->linear.features,
                                      .classes = run->linear.classes };
        status = pli_model_make(&form, &run->solution, schema, description.data, model_out, run->err);
    }
    pli_text_free(&description);
    return status;
}

/* The model comes first: what goes wrong in judging it does not lose it. A run that was asked to stop ends with its clock:
 * what it has reached is not judged. Of that the leading worker, which saves and reports, decides for all. */
static plait_status finish(pli_run *run, plait_report *report_out, plait_model **model_out) {
    plait_report report;
    pli_sums     sums;
    double       penalty = pli_run_penalty_of(run, &run->solution);
    bool         ends = run->interrupted;
    pli_report_init(&report);
    PLI_TRY(pli_run_finite(run, penalty, run->clocks_done));
    PLI_TRY(make_model(run, model_out));
    PLI_TRY(plait_comm_broadcast(run->comm, &ends, sizeof ends, pli_comm_lead(run->comm)));
    PLI_TRY(pli_total_agree(run->comm, &run->progressive, &sums));
    if (run->stream) PLI_TRY(pli_sums_check(&sums, "the stream", run->err));
    report.progressive_loss = pli_sums_loss(&sums);
    int32_t absent = pli_comm_absent(run->comm);
    do {
        if (!ends) PLI_TRY(judge(run, &(*model_out)->solution, penalty, &report));
    } while (pli_run_again(run, &absent));
    PLI_TRY(fill_report(run, &report));
    if (!ends) PLI_TRY(pli_curve_measure(run, &report));
    bool first = pli_comm_leads(run->comm) || !pli_comm_shares_process(run->comm);
    if (report_out != NULL && first) plait_model_hash(*model_out, report.model_hash);
    if (report_out != NULL) *report_out = report;
    do {
        pli_run_tell_lost(run);
        if (run->opts->trained == NULL) return PLAIT_OK;
        if (pli_comm_leads(run->comm)) run->opts->trained(run->opts->user, &report, *model_out);
        PLI_TRY(plait_comm_barrier(run->comm));
    } while (pli_run_again(run, &absent));
    return PLAIT_OK;
}

static void clean(pli_run *run) {
    pli_resume_close(run);
    pli_sample_free(run);
    pli_dataset_destroy(&run->data);
    pli_dataset_destroy(&run->validation);
    pli_dataset_destroy(&run->test);
    pli_schema_destroy(&run->schema);
    plait_model_destroy(&run->start);
    pli_scale_destroy(&run->scale);
    pli_solution_free(&run->solution);
    pli_net_destroy(&run->net);
    pli_net_file_free(&run->file);
    pli_free(run->label);
    pli_free(run->class_weight);
    pli_curve_free(&run->curve);
}

/* How many deaths this process has heard of. */
static int64_t deaths_of(const plait_comm *comm) {
    int64_t     n = 0;
    int32_t     next = 0;
    plait_error why;
    while (pli_comm_next_death(comm, &next, &why)) n++;
    return n;
}

/* On servers, too: what they have sent counts. With copies a rank may have died, or die even now: then it is what the
 * workers that lived until here have sent. */
static plait_status end_job(plait_comm *comm, bool survives, plait_job **job, plait_report *report_out) {
    int64_t  known[2] = { (int64_t)plait_comm_bytes_sent(comm), deaths_of(comm) };
    uint64_t bytes = 0;
    if (survives && pli_comm_is_worker(comm)) PLI_TRY(plait_comm_allreduce(comm, known, 2, PLAIT_I64, PLAIT_SUM));
    PLI_TRY(plait_job_destroy(job));
    const bool   one_died = survives && pli_comm_is_worker(comm) && known[1] > 0; /* all know it */
    plait_status status = one_died ? PLAIT_EPEER : pli_comm_bytes_of_all(comm, &bytes);
    if (status == PLAIT_EPEER && survives) bytes = (uint64_t)known[0];
    else if (status < 0) return status;
    if (report_out != NULL) report_out->bytes_sent = (int64_t)bytes;
    return PLAIT_OK;
}

static plait_status train_worker(pli_run *run, plait_report *report_out, plait_model **model_out) {
    PLI_TRY(pli_options_check(run));
    PLI_TRY(agree_options(run));
    PLI_TRY(pli_keep_probe(run));
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(pli_resume_open(run));
    PLI_TRY(pli_prepare(run));
    if (run->opts->loaded != NULL) run->opts->loaded(run->opts->user);
    pli_run_phase(run, "load", -1, &at);
    const int64_t batch = run->rowwise ? 1 : run->batch * (run->net != NULL ? run->net->row_labels : 1);
    PLI_TRY(pli_resume_check(run));
    PLI_TRY(pli_keep_room(run));
    run->clocks_done = run->resume != NULL ? run->resume->clock : 0;
    PLI_TRY(create_job(run->comm, run->opts, batch, run->clocks_done, &run->job));
    pli_comm_times before;
    uint64_t       waited_ns = pli_comm_waited_ns(run->comm);
    pli_comm_tell_times(run->comm, &before);
    run->training_bytes = plait_comm_bytes_sent(run->comm);
    run->training_ns = pli_comm_now(run->comm);
    plait_status status = PLAIT_OK;
    if (!run->opts->dry_run) {
        at = pli_comm_span_begin(run->comm);
        if (run->net != NULL && run->opts->graph != NULL && pli_comm_leads(run->comm))
            run->opts->graph(run->opts->user, run->net->graph);
        status = run->lbfgs ? pli_lbfgs_train(run) : pli_sgd_train(run);
        pli_run_phase(run, "train", -1, &at);
        run->train_seconds = (double)(pli_comm_now(run->comm) - run->training_ns) * 1e-9;
        pli_comm_tell_times(run->comm, &run->times);
        run->times.wait_ns -= before.wait_ns;
        run->times.network_ns -= before.network_ns;
        pli_curve_end(run);
        run->idle_seconds = (double)(pli_comm_waited_ns(run->comm) - waited_ns) * 1e-9;
        at = pli_comm_span_begin(run->comm);
        if (status == PLAIT_OK) status = finish(run, report_out, model_out);
        pli_run_phase(run, "judge", -1, &at);
    } else if (report_out != NULL) {
        pli_report_init(report_out);
        status = fill_report(run, report_out);
    }
    if (status == PLAIT_OK) status = end_job(run->comm, run->opts->replicas > 1, &run->job, report_out);
    if (status < 0) pli_job_abandon(&run->job); /* a rank that fails waits for nobody */
    return status;
}

plait_status plait_train(plait_comm *comm, const plait_train_opts *opts, plait_report *report_out,
                         plait_model **model_out) {
    if (comm == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), opts));
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), model_out));
    *model_out = NULL;
    if (!pli_comm_is_worker(comm)) {
        plait_job *job = NULL;
        PLI_TRY(create_job(comm, opts, 1, 0, &job));
        return end_job(comm, opts->replicas > 1, &job, NULL);
    }
    pli_run run = { .comm = comm,
                    .opts = opts,
                    .err = pli_comm_error(comm),
                    .pool = pli_comm_pool(comm),
                    .kept = -1,
                    .validation_loss = NAN,
                    .validation_accuracy = NAN,
                    .begun_ns = pli_comm_now(comm),
                    .cpu_ns = pli_cpu_ns() };
    plait_status status = train_worker(&run, report_out, model_out);
    clean(&run);
    return status;
}
