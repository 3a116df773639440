/* plait_train: the order of a run, from options to report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/keep/keep.h"
#include "learn/model/model.h"
#include "learn/run/run.h"
#include "learn/solve/loop.h"
#include "table/events.h"
#include "table/table.h"

void (plait_train_opts_init)(plait_train_opts *opts) {
    if (opts == NULL) return;
    *opts = (plait_train_opts){
        .size = sizeof *opts, .model = "logistic", .l2 = NAN, .momentum = 0.9, .tolerance = NAN, .huber_delta = 1,
        .quantile = 0.5, .interference = NAN, .names_bytes = 16 << 20,
        .normalize = "auto", .checkpoint_seconds = 300, .checkpoint_keep = 2
    };
}

void plait_train_opts_init_sized(plait_train_opts *opts, size_t size) {
    plait_train_opts all;
    (plait_train_opts_init)(&all);
    pli_sized_give(opts, size, &all, sizeof all);
}

/* --- deaths that the run survives -------------------------------------------------------------------------- */

void pli_run_tell_lost(pli_run *run) {
    plait_error why;
    if (run->opts->lost == NULL || !pli_comm_leads(run->comm)) return;
    while (pli_comm_next_death(run->comm, &run->deaths, &why)) run->opts->lost(run->opts->user, why.rank, why.text);
}

/* --- what computing costs, in a simulation ----------------------------------------------------------------------- */

int64_t pli_part_entries(const pli_part *part) {
    int64_t entries = 0;
    for (int64_t i = 0; i < part->rows; i++) {
        int64_t r = part->order != NULL ? (int64_t)part->order[i] : part->first + i;
        entries += part->block->row_start[r + 1] - part->block->row_start[r];
    }
    return entries;
}

static int64_t entries_of(const pli_batch *batch) {
    int64_t entries = 0;
    for (int32_t p = 0; p < batch->parts; p++) entries += pli_part_entries(&batch->part[p]);
    return entries;
}

void pli_run_charge(const pli_run *run, const pli_batch *batch, int64_t columns, int64_t values) {
    if (!pli_comm_charges(run->comm)) return;
    pli_comm_work(run->comm, PLI_WORK_ENTRIES, (uint64_t)(entries_of(batch) * columns));
    pli_comm_work(run->comm, PLI_WORK_SUMS, (uint64_t)values);
}

void pli_run_charge_parsed(const pli_run *run, const pli_batch *batch) {
    if (pli_comm_charges(run->comm)) pli_comm_work(run->comm, PLI_WORK_PARSED, (uint64_t)entries_of(batch));
}

/* --- pieces of a run ------------------------------------------------------------------------------------- */

/* One line for each option that must be the same on every rank. */
static plait_status agree_options(pli_run *run) {
    const plait_train_opts *o = run->opts;
    pli_text                text = { 0 };
    pli_text_add(&text, "--model %s\n--optimizer %s\n--topology %s\n--consistency %s\n", o->model, run->optimizer,
                 o->topology != NULL ? o->topology : "default",
                 o->consistency != NULL ? o->consistency : PLI_CONSISTENCY_DEFAULT);
    pli_text_add(&text, "--layers %s\n--loss %s\n", o->layers != NULL ? o->layers : "default",
                 o->loss != NULL ? o->loss : "default");
    pli_text_add(&text, "--exclude %s\n--train %s\n", o->exclude != NULL ? o->exclude : "nothing",
                 o->train != NULL ? o->train : "all");
    pli_text_add(&text, "--kernels %s\n", o->kernels != NULL ? o->kernels : "own");
    pli_text_add(&text, "--columns %d\n--cut %d\n--micro-batches %d\n--pipeline %s\n", o->columns, o->cut,
                 o->micro_batches, pli_run_pipeline(run));
    pli_text_add(&text, "--classes %lld\n--sampled %lld\n", (long long)o->classes, (long long)o->sampled);
    pli_text_add(&text, "--place %s\n", o->place != NULL ? o->place : "default");
    pli_text_add(&text, "tells weights %s\n", o->weights != NULL ? "yes" : "no");
    pli_text_add(&text, "--checkpoint %s, every %lld clocks or %g s\n--resume %s\n",
                 o->checkpoint != NULL ? o->checkpoint : "none", (long long)o->checkpoint_clocks, o->checkpoint_seconds,
                 o->resume != NULL ? o->resume : "none");
    pli_text_add(&text, "--aggregate %s\n", o->aggregate != NULL ? o->aggregate : "none");
    pli_text_add(&text, "--filter %s\n--reduce %s\n--backup %d\n--spares %d\n--staleness-aware %d\n",
                 o->filter != NULL ? o->filter : "none", o->exact != 0 ? "exact" : "plain", (int)o->backup,
                 (int)o->spares, o->staleness_aware != 0);
    pli_text_add(&text, "slots %d\n--scale %s\n", (int)o->slots, o->scale != NULL ? o->scale : "none");
    pli_text_add(&text, "--optimizer-state %s\n", run->sharded ? "sharded" : "whole");
    pli_text_add(&text, "--epochs %lld\n--batch %lld\n--tolerance %.17g\n--learning-rate %.17g\n--momentum %.17g\n"
                 "--schedule %s\n",
                 (long long)o->epochs, (long long)o->batch, o->tolerance, o->learning_rate, o->momentum,
                 o->schedule != NULL ? o->schedule : "constant");
    pli_text_add(&text, "--l1 %.17g\n--l2 %.17g\n--no-intercept %d\n--huber-delta %.17g\n--quantile %.17g\n", o->l1,
                 o->l2, o->no_intercept != 0, o->huber_delta, o->quantile);
    pli_text_add(&text, "--path %lld\n--together %lld\n--order %s\n--interference %.17g\n", (long long)o->path,
                 (long long)o->together, o->order != NULL ? o->order : "priority", o->interference);
    pli_text_add(&text, "--class-weight %s\n", o->class_weight != NULL ? o->class_weight : "none");
    pli_text_add(
        &text,
        "--normalize %s\n--patience %lld\n--seed %llu\n--validation %s\n--init-model %s\n--test %d\n--balance %s\n",
        o->normalize != NULL ? o->normalize : "auto", (long long)o->patience, (unsigned long long)o->seed,
        o->validation != NULL ? o->validation : "none", o->init_model != NULL ? o->init_model : "none",
        o->test != NULL || o->test_memory != NULL, run->balanced || run->shifts ? "dynamic" : "static");
    for (int32_t i = 0; i < o->n_tables; i++)
        pli_text_add(&text, "--table %s:topology=%s,consistency=%s,filter=%s\n", o->tables[i].name,
                     o->tables[i].topology != NULL ? o->tables[i].topology : "as the run's",
                     o->tables[i].consistency != NULL ? o->tables[i].consistency : "as the run's",
                     o->tables[i].filter != NULL ? o->tables[i].filter : "as the run's");
    pli_run_add_settings(run, &text);
    plait_status status = text.failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to agree on options")
                                      : pli_agree_text(run->comm, "options", text.data, run->err);
    pli_text_free(&text);
    return status;
}

/* A table travels as the first does unless --table names it. Servers call this, too. */
static plait_status create_job(plait_comm *comm, const plait_train_opts *o, int64_t batch, int64_t first_clock,
                               plait_job **job_out) {
    const plait_learner *learner = pli_learner_find(o->model, o->learners, o->n_learners);
    const pli_run        as = { .comm = comm, .opts = o, .learner = learner };
    plait_function       functions[PLI_LEARNER_FUNCTIONS];
    if (learner == NULL) return pli_learner_unknown(o->model, o->learners, o->n_learners, pli_comm_error(comm));
    const pli_travel w = pli_run_travel(&as, pli_run_first_table(&as));
    plait_job_opts   j;
    plait_job_opts_init(&j);
    j.topology = w.topology;
    j.consistency = w.consistency;
    j.batch = batch;
    j.first_clock = first_clock;
    j.backup = o->backup;
    j.replicas = o->replicas;
    j.spares = o->spares;
    j.slots = o->slots;
    j.move_rate = o->move_rate > 0 ? (uint64_t)o->move_rate : 0;
    j.filter = w.filter;
    j.aggregate = o->aggregate;
    j.exact = o->exact;
    j.seed = o->seed;
    j.rules = o->rules;
    j.n_rules = o->n_rules;
    j.functions = learner->functions;
    j.n_functions = learner->n_functions;
    if (learner->more != NULL && learner->more->functions != NULL) {
        j.functions = functions;
        j.n_functions = learner->more->functions(comm, o, functions);
    }
    return plait_job_create(comm, &j, job_out);
}

static plait_status describe(const pli_run *run, pli_text *text) {
    const plait_train_opts *o = run->opts;
    pli_json_begin(text);
    pli_json_text(text, "model", o->model);
    pli_json_text(text, "optimizer", run->optimizer);
    pli_json_short(text, "l1", run->l1);
    pli_json_short(text, "l2", run->l2);
    pli_json_i64(text, "epochs", run->epochs_done);
    if (run->best > 0) pli_json_i64(text, "best_epoch", run->best);
    if (run->learner->more != NULL && run->learner->more->describe != NULL) run->learner->more->describe(run, text);
    for (const plait_learner_option *own = run->learner->options; own != NULL && own->name != NULL; own++)
        if (own->kind != PLAIT_OPTION_FILE) pli_json_text(text, own->name, pli_run_shown(run, own->name));
    pli_json_i64(text, "batch", run->batch);
    pli_json_i64(text, "rows", run->train_rows);
    /* A single pass of one worker takes the rows in their order, whatever the blocks: a pipe's model is its file's. */
    if (run->epochs > 1 || plait_comm_workers(run->comm) > 1)
        pli_json_i64(text, "blocks", pli_dataset_blocks(run->data));
    pli_json_u64(text, "seed", o->seed);
    pli_json_end(text);
    return text->failed ? pli_fail(run->err, PLAIT_ENOMEM, "no memory to describe a model") : PLAIT_OK;
}

/* The schema becomes the model's. */
static plait_status make_model(pli_run *run, plait_model **model_out) {
    pli_text     description = { 0 };
    plait_model *model = NULL;
    plait_status status = describe(run, &description);
    if (status == PLAIT_OK) {
        pli_schema *schema = run->schema;
        run->schema = NULL;
        status = pli_model_create(run->learner, schema, run->classes, description.data, &model, run->err);
    }
    pli_text_free(&description);
    for (const plait_learner_option *o = run->learner->options; status >= 0 && o != NULL && o->name != NULL; o++)
        if (o->kind != PLAIT_OPTION_FILE)
            pli_text_add(&model->settings, "%s=%s\n", o->name, pli_run_shown(run, o->name));
    if (status >= 0) status = run->learner->finish(run, model);
    if (status >= 0) status = pli_model_open(model, run->err);
    if (status >= 0) pli_run_name_features(run, model);
    if (status < 0) plait_model_destroy(&model);
    else *model_out = model;
    return status;
}

static plait_status judge(pli_run *run, const plait_model *model, plait_report *report) {
    const pli_learner_more *more = run->learner->more;
    if (more != NULL && more->judge != NULL) PLI_TRY(more->judge(run, model, report));
    return pli_report_measure(run, model, report);
}

/* The model is made first, so that an error in judging does not lose it. A run that was asked to stop is not judged;
 * the leading worker, which saves and reports, decides for all whether it was. */
static plait_status finish(pli_run *run, plait_report *report_out, plait_model **model_out) {
    const pli_learner_more *more = run->learner->more;
    plait_report            report;
    pli_sums                sums;
    bool                    ends = run->interrupted;
    pli_report_init(&report);
    if (more != NULL && more->finite != NULL) PLI_TRY(more->finite(run));
    PLI_TRY(make_model(run, model_out));
    PLI_TRY(plait_comm_broadcast(run->comm, &ends, sizeof ends, pli_comm_lead(run->comm)));
    PLI_TRY(pli_total_agree(run->comm, &run->progressive, &sums));
    if (run->stream && more != NULL) PLI_TRY(pli_sums_check(&sums, "the stream", run->err));
    report.progressive_loss = pli_sums_loss(&sums);
    int32_t absent = pli_comm_absent(run->comm);
    if (more != NULL && more->judges_long != NULL && more->judges_long(run)) (*model_out)->stop = run->opts->stop;
    do {
        report.n_figures = 0;
        if (!ends && !run->interrupted) PLI_TRY(judge(run, *model_out, &report));
    } while (pli_run_again(run, &absent));
    (*model_out)->stop = NULL;
    ends = ends || run->interrupted;
    PLI_TRY(pli_report_fill(run, &report));
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
    pli_run_free_state(run);
    pli_resume_close(run);
    pli_sample_free(run);
    pli_dataset_destroy(&run->data);
    pli_dataset_destroy(&run->validation);
    pli_dataset_destroy(&run->test);
    pli_schema_destroy(&run->schema);
    plait_model_destroy(&run->start);
    pli_free(run->label);
    pli_curve_free(run);
}

/* How many deaths this process has heard of. */
static int64_t deaths_of(const plait_comm *comm) {
    int64_t     n = 0;
    int32_t     next = 0;
    plait_error why;
    while (pli_comm_next_death(comm, &next, &why)) n++;
    return n;
}

/* Servers call this, too, since the bytes that they sent count. With copies a rank may have died, or may die even now:
 * then only the bytes of the workers that live here are counted. in: the worker takes part in collectives; who was away
 * as the others ended does not, and may hear of a death as late as in the last sum. */
static plait_status end_job(plait_comm *comm, bool survives, bool in, plait_job **job, plait_report *report_out) {
    int64_t  known[2] = { (int64_t)plait_comm_bytes_sent(comm), deaths_of(comm) };
    uint64_t bytes = 0;
    if (survives && in) PLI_TRY(plait_comm_allreduce(comm, known, 2, PLAIT_I64, PLAIT_SUM));
    PLI_TRY(plait_job_destroy(job));
    const bool   one_died = survives && pli_comm_is_worker(comm) && known[1] > 0; /* on all alike */
    plait_status status = one_died ? PLAIT_EPEER : pli_comm_bytes_of_all(comm, &bytes);
    /* ECOMM: who died had come to this sum, and has left it again. */
    if (survives && (status == PLAIT_EPEER || status == PLAIT_ECOMM)) bytes = (uint64_t)known[0];
    else if (status < 0) return status;
    if (report_out != NULL) report_out->bytes_sent = (int64_t)bytes;
    return PLAIT_OK;
}

static plait_status train(pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    pli_comm_times          before;
    uint64_t                waited_ns = pli_comm_waited_ns(run->comm), at = pli_comm_span_begin(run->comm);
    pli_comm_tell_times(run->comm, &before);
    if (more != NULL && more->graph != NULL && run->opts->graph != NULL && pli_comm_leads(run->comm))
        run->opts->graph(run->opts->user, more->graph(run));
    plait_status status = run->learner->train != NULL ? run->learner->train(run)
                                                      : pli_loop_run(run, &pli_learner_steps);
    pli_run_phase(run, "train", -1, &at);
    run->train_seconds = (double)(pli_comm_now(run->comm) - run->training_ns) * 1e-9;
    pli_comm_tell_times(run->comm, &run->times);
    run->times.wait_ns -= before.wait_ns;
    run->times.network_ns -= before.network_ns;
    pli_curve_end(run);
    run->idle_seconds = (double)(pli_comm_waited_ns(run->comm) - waited_ns) * 1e-9;
    return status;
}

static plait_status train_worker(pli_run *run, plait_report *report_out, plait_model **model_out) {
    PLI_TRY(pli_options_check(run));
    PLI_TRY(agree_options(run));
    PLI_TRY(pli_keep_probe(run));
    uint64_t at = pli_comm_span_begin(run->comm);
    PLI_TRY(pli_resume_open(run));
    PLI_TRY(pli_prepare(run));
    if (run->opts->loaded != NULL) run->opts->loaded(run->opts->user);
    if (run->optimizer_why[0] != '\0' && pli_comm_leads(run->comm))
        pli_log(pli_comm_log(run->comm), PLAIT_LOG_INFO, -1, "learn", "optimizer: %s, since %s", run->optimizer,
                run->optimizer_why);
    pli_run_phase(run, "load", -1, &at);
    PLI_TRY(pli_resume_check(run));
    PLI_TRY(pli_keep_room(run));
    run->clocks_done = run->resume != NULL ? run->resume->clock : 0;
    PLI_TRY(create_job(run->comm, run->opts, run->examples, run->clocks_done, &run->job));
    if (run->resume != NULL)
        pli_raise_begin(pli_job_events(run->job), pli_job_me(run->job), run->clocks_done,
                        pli_checkpoint_origin(run->resume->checkpoint));
    run->training_bytes = plait_comm_bytes_sent(run->comm);
    run->training_ns = pli_comm_now(run->comm);
    plait_status status = PLAIT_OK;
    bool         over = false; /* the others have ended while this worker was away */
    if (!run->opts->dry_run) {
        status = train(run);
        over = status == PLAIT_END;
        at = pli_comm_span_begin(run->comm);
        if (status == PLAIT_OK) status = finish(run, report_out, model_out);
        else if (over) status = PLAIT_OK;
        pli_run_phase(run, "judge", -1, &at);
    } else if (report_out != NULL) {
        pli_report_init(report_out);
        status = pli_report_fill(run, report_out);
    }
    if (status == PLAIT_OK) status = end_job(run->comm, run->opts->replicas > 1, !over, &run->job, report_out);
    if (status < 0) pli_job_abandon(&run->job); /* a rank that fails waits for nobody */
    return status;
}

/* The options of a caller that may be older or newer (base/sized.h), with those of the data. */
typedef struct taken {
    plait_train_opts opts;
    plait_data_opts  data, test;
} taken;

static plait_status take_opts(const plait_train_opts *given, taken *t, plait_error *err) {
    plait_train_opts_init(&t->opts);
    PLI_TRY(pli_sized_take(&t->opts, sizeof t->opts, PLI_SIZED_END(plait_train_opts, names_bytes), given,
                           "plait_train_opts", err));
    PLI_TRY(pli_data_opts_take(t->opts.data, &t->data, err));
    PLI_TRY(pli_data_opts_take(t->opts.test, &t->test, err));
    if (t->opts.data != NULL) t->opts.data = &t->data;
    if (t->opts.test != NULL) t->opts.test = &t->test;
    return PLAIT_OK;
}

static plait_status serve(plait_comm *comm, const plait_train_opts *opts) {
    plait_job *job = NULL;
    PLI_TRY(create_job(comm, opts, 1, 0, &job));
    return end_job(comm, opts->replicas > 1, false, &job, NULL);
}

plait_status plait_train(plait_comm *comm, const plait_train_opts *opts, plait_report *report_out,
                         plait_model **model_out) {
    if (comm == NULL) return PLAIT_EINVAL; /* there is nowhere to put the text */
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), opts));
    PLI_TRY(PLI_GIVEN(pli_comm_error(comm), model_out));
    *model_out = NULL;
    taken own;
    PLI_TRY(take_opts(opts, &own, pli_comm_error(comm)));
    if (!pli_comm_is_worker(comm)) return serve(comm, &own.opts);
    pli_run run = { .comm = comm,
                    .opts = &own.opts,
                    .err = pli_comm_error(comm),
                    .pool = pli_comm_pool(comm),
                    .kept = -1,
                    .resume_layout = -1,
                    .best_loss = INFINITY,
                    .validation_loss = NAN,
                    .validation_accuracy = NAN,
                    .cpu_ns = pli_cpu_ns() };
    plait_status status = train_worker(&run, report_out, model_out);
    clean(&run);
    return status;
}
