/* train - fits a model. Every rank of this process runs work(). The leading rank, the lowest living worker, reports,
 * saves the model and fills the record, which train_end.c then prints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/members.h"
#include "cli/record.h"
#include "cli/train.h"
#include "comm/launcher.h"

typedef pli_train_run run;

/* What the run is, for a dashboard. progress: NULL: nothing was chosen yet. */
static void tell_run(const run *r, const plait_progress *progress, pli_text *line) {
    const pli_train_settings *s = r->settings;
    const char               *data = s->in.data.n > 0 ? s->in.data.item[0] : NULL;
    const char *topology = progress != NULL ? progress->topology : s->topology;
    const char *consistency = progress != NULL ? progress->consistency : s->consistency;
    const char *optimizer = progress != NULL ? progress->optimizer : s->optimizer;
    pli_json_begin(line);
    pli_json_text(line, "event", "run");
    pli_json_text(line, "model", pli_train_model(s, r->opts));
    if (data != NULL) pli_json_text(line, "data", data);
    pli_json_text(line, "run", r->id);
    pli_json_i64(line, "workers", pli_train_workers(r));
    if (s->servers > 0) pli_json_i64(line, "servers", s->servers);
    if (topology != NULL) pli_json_text(line, "topology", topology);
    if (consistency != NULL) pli_json_text(line, "consistency", consistency);
    if (optimizer != NULL && !pli_is(optimizer, "auto")) pli_json_text(line, "optimizer", optimizer);
    if (s->filter != NULL) pli_json_text(line, "filter", s->filter);
    pli_json_end(line);
}

static plait_status lead_dashboard(run *r, bool again, plait_error *err) {
    pli_text line = { 0 };
    tell_run(r, NULL, &line);
    const plait_status status = pli_dash_feed_lead(&r->dash, again, &line, &r->metrics, err);
    pli_text_free(&line);
    return status;
}

/* Once training has begun, the dashboard hears what was chosen. */
static void tell_choice(run *r, const plait_progress *progress) {
    pli_text line = { 0 };
    if (!pli_dash_feed_is_on(&r->dash) || r->told_optimizer == progress->optimizer) return;
    r->told_optimizer = progress->optimizer;
    tell_run(r, progress, &line);
    pli_dash_feed_run(&r->dash, &line);
    pli_text_free(&line);
}

static void on_progress(void *user, const plait_progress *progress) {
    run *r = user;
    r->epochs = progress->epochs;
    pli_train_say_notes(r);
    tell_choice(r, progress);
    pli_metrics_progress(r->metrics, progress);
    pli_board_progress(r->board, progress);
    if (r->dash.linked && r->comm != NULL) pli_sample_progress(r->comm, progress);
    pli_talk_progress(&r->talk, progress);
}

/* Makes this rank the leading one, after the former leader has died; it opens the outputs again for itself. */
static void take_lead(run *r) {
    if (r->lead_failed.code < 0) return;
    if (r->settings->metrics != NULL && r->metrics == NULL)
        (void)pli_metrics_go_on(r->settings->metrics, &r->metrics, &r->lead_failed);
    if (r->settings->tensorboard != NULL && r->board == NULL && r->lead_failed.code >= 0)
        (void)pli_board_open(r->settings->tensorboard, &r->board, &r->lead_failed);
    if (r->lead_failed.code >= 0) (void)lead_dashboard(r, true, &r->lead_failed);
}

static void on_lost(void *user, int32_t rank, const char *why) {
    run *r = user;
    r->survived = true;
    take_lead(r);
    pli_text becomes = { 0 };
    pli_lost_add(&r->lost, rank, pli_train_workers(r), r->plan.train.spares, &becomes);
    if (rank < pli_train_workers(r)) pli_lost_with(&r->plan.train, &becomes);
    const char *then = becomes.data != NULL ? becomes.data : "the run goes on without it";
    pli_metrics_lost(r->metrics, rank, why, then);
    pli_talk_say(&r->talk, "%s; %s", why, then);
    pli_text_free(&becomes);
}

static void on_checkpointed(void *user, const plait_checkpointed *checkpointed) {
    run *r = user;
    pli_metrics_checkpoint(r->metrics, checkpointed);
}

static void on_shares(void *user, const plait_shares *shares) {
    run *r = user;
    pli_metrics_shares(r->metrics, shares);
}

static void on_point(void *user, const plait_point *point) {
    run *r = user;
    pli_metrics_point(r->metrics, point);
}

static void on_penalty(void *user, const plait_penalty *penalty) {
    run *r = user;
    pli_path_add(&r->path, penalty);
    pli_metrics_penalty(r->metrics, penalty);
}

static void on_loaded(void *user) {
    run *r = user;
    pli_waiting_is_over(&r->waiting);
    pli_signals_begun(&r->signals);
}

static void on_weights(void *user, const plait_weights *weights) {
    run *r = user;
    pli_board_weights(r->board, weights);
}

static void on_graph(void *user, const plait_graph *graph) {
    run *r = user;
    pli_board_graph(r->board, graph);
}

/* --- the pair ---------------------------------------------------------------------------------------- */

static void take_choice(run *r) {
    const pli_chosen *c = r->chosen;
    if (c->columns.columns > 0) r->chosen_settings->columns = r->plan.train.columns = c->columns.columns;
    if (c->pair.topology[0] == '\0') return;
    r->chosen_settings->topology = r->plan.train.topology = c->pair.topology;
    r->chosen_settings->consistency = r->plan.train.consistency = c->pair.consistency;
}

static void say_choice(run *r, const pli_chosen *c) {
    if (c->columns.columns > 0)
        pli_talk_say(&r->talk, "chosen: columns %d: %s", (int)c->columns.columns, c->columns.why);
    if (c->pair.topology[0] != '\0')
        pli_talk_say(&r->talk, "chosen: %s x %s: %s", c->pair.topology, c->pair.consistency, c->why);
}

/* Chooses in the process that has rank 0, or all ranks. The others get its choice when the ranks have met, and so does
 * its failure. false: nothing was chosen, and no other process waits for it; it has printed why. */
static bool choose(run *r, pli_chosen *chosen, int *code) {
    const pli_launcher launcher = pli_launcher_find();
    const char        *transport = r->settings->transport;
    const bool         launched = launcher.name != NULL && (transport == NULL || pli_is(transport, "mpi"));
    if (!pli_chosen_is_wanted(r->settings)) return true;
    r->chosen = chosen;
    r->asks = launched && launcher.size != 1;
    if (r->asks && launcher.rank > 0) return true;
    pli_chosen_find(r->settings, &r->plan, chosen);
    if (chosen->status >= 0) {
        take_choice(r);
        say_choice(r, chosen);
    } else if (!r->asks) {
        *code = pli_cli_fail(&chosen->err);
        return false;
    }
    return true;
}

/* Takes what rank 0's process has chosen, which may be an error. */
static plait_status share_choice(run *r, plait_comm *comm, plait_error *err) {
    if (!r->asks) return PLAIT_OK;
    if (pli_chosen_share(comm, r->chosen) < 0) {
        *err = *plait_comm_error(comm);
        return err->code;
    }
    take_choice(r);
    if (r->chosen->status < 0) *err = r->chosen->err;
    return r->chosen->status;
}

/* --- one rank --------------------------------------------------------------------------------------- */

/* Checks before the work, not after it, that outputs can be written. (Each process checks event logs and traces in
 * train.) */
static plait_status prepare(run *r, plait_comm *comm, plait_error *err) {
    const pli_train_settings *s = r->settings;
    PLI_TRY(share_choice(r, comm, err));
    PLI_TRY(pli_train_check(comm, &r->plan.train, err)); /* before any file is opened */
    if (!pli_comm_leads(comm)) return PLAIT_OK;
    if (s->out != NULL) PLI_TRY(pli_check_replaceable(s->out, " (--out)", err));
    if (s->metrics != NULL) PLI_TRY(pli_check_writable(s->metrics, " (--metrics)", err));
    if (s->tensorboard != NULL) PLI_TRY(pli_check_directory(s->tensorboard, " (--tensorboard)", err));
    if (s->dry_run) return PLAIT_OK;
    if (s->out != NULL) pli_done_remove(s->out);
    if (s->tensorboard != NULL) PLI_TRY(pli_board_open(s->tensorboard, &r->board, err));
    return s->metrics != NULL ? pli_metrics_open(s->metrics, &r->metrics, err) : PLAIT_OK;
}

/* Opens the dashboard, or begins to feed that of a launch. Collective over the workers. */
static plait_status begin_dashboard(run *r, plait_comm *comm, plait_error *err) {
    const int32_t rank = plait_comm_rank(comm), workers = plait_comm_workers(comm);
    if (!pli_dash_feed_is_on(&r->dash) || r->settings->dry_run) return PLAIT_OK;
    if (r->alone >= 0)
        pli_dash_feed_rank(&r->dash, rank, plait_comm_host(comm),
                           rank >= workers ? "server" : rank >= workers - r->plan.train.spares ? "spare" : "worker");
    if (pli_comm_leads(comm)) PLI_TRY(lead_dashboard(r, false, err));
    return pli_dash_feed_share(&r->dash, comm, err);
}

/* Tells the leading rank's lines which ranks there are. Collective over all ranks. */
static plait_status tell_members(run *r, plait_comm *comm, plait_error *err) {
    if (r->settings->dry_run || (r->settings->metrics == NULL && !pli_dash_feed_is_on(&r->dash))) return PLAIT_OK;
    const bool         keeps = r->dash.own && r->alone >= 0; /* any worker may come to lead */
    const plait_status status =
        pli_members_tell(comm, r->plan.train.spares, pli_comm_leads(comm) ? r->metrics : NULL,
                         keeps ? &r->dash.member : NULL);
    if (keeps && r->dash.member != NULL) r->dash.members = plait_comm_size(comm);
    if (status < 0) *err = *plait_comm_error(comm);
    return status;
}

static plait_status save(run *r, const plait_model *model, plait_error *err) {
    const char *out = r->settings->out;
    if (out == NULL || model == NULL) return PLAIT_OK;
    PLI_TRY(plait_model_save(model, out, err));
    r->saved = true;
    if (r->report.interrupted) return PLAIT_OK; /* it is not done: a later run may continue it */
    return pli_done_write(out, r->id, r->report.clocks, r->report.model_hash, &r->lost, err);
}

/* In a run that survives dead ranks: saves the model before any rank ends. */
static void on_trained(void *user, const plait_report *report, const plait_model *model) {
    run *r = user;
    r->report = *report;
    r->save_failed = (plait_error){ .rank = -1 };
    (void)save(r, model, &r->save_failed);
}

/* Saves the model after a failure that came after the training. */
static void save_unjudged(run *r, const plait_model *model) {
    plait_error why = { .rank = -1 };
    if (r->settings->out == NULL || model == NULL) return;
    r->saved = plait_model_save(model, r->settings->out, &why) >= 0;
}

/* Collects what all ranks know of themselves. Not in a run that has gone on without a rank: a rank that learns of the
 * death only now would also learn that the others have left. */
static plait_status gather(run *r, plait_comm *comm, const plait_report *report, plait_error *err) {
    int32_t      deaths = 0;
    plait_error  death;
    const bool   survives = r->settings->replicas > 1, whole = !pli_comm_next_death(comm, &deaths, &death);
    plait_status status = PLAIT_OK;
    if (r->settings->dry_run) return PLAIT_OK;
    if (whole && r->settings->metrics != NULL && plait_comm_rank(comm) < plait_comm_workers(comm)) {
        status = pli_members_tell_times(comm, report, pli_comm_leads(comm) ? r->metrics : NULL);
        if (status < 0) *err = *plait_comm_error(comm);
    }
    if (status >= 0 && whole && r->settings->trace != NULL)
        status = pli_run_trace_gather(&r->trace, comm, r->settings->trace, err);
    return status == PLAIT_EPEER && survives ? PLAIT_OK : status;
}

/* Begins to wait for data, after the ranks have met and nothing was refused. */
static void begin_waiting(run *r) {
    const pli_train_settings *s = r->settings;
    const char               *paths[8] = { s->test, s->validation, s->graph };
    int64_t                   n = 3;
    for (int64_t i = 0; i < s->in.data.n && n < 8; i++) paths[n++] = s->in.data.item[i];
    pli_waiting_begin(&r->waiting, &r->talk, paths, n);
}

/* Trains, and collects what the ranks know about it. */
static plait_status fit(run *r, plait_comm *comm, plait_report *report, plait_model **model_out, plait_error *err) {
    plait_train_opts opts = r->plan.train;
    opts.user = r;
    opts.loaded = on_loaded;
    if (r->settings->tensorboard != NULL) opts.weights = on_weights; /* on all ranks */
    if (pli_comm_leads(comm)) begin_waiting(r);
    if (pli_comm_leads(comm) || opts.replicas > 1) { /* with replicas any rank may come to lead */
        opts.graph = on_graph;
        opts.lost = on_lost;
        opts.trained = opts.replicas > 1 ? on_trained : NULL;
        opts.progress = on_progress;
        opts.shares = on_shares;
        opts.checkpointed = on_checkpointed;
        opts.point = on_point;
        opts.penalty = on_penalty;
    }
    plait_status status = plait_train(comm, &opts, report, model_out);
    if (status >= 0) return gather(r, comm, report, err);
    *err = *plait_comm_error(comm);
    return status;
}

/* Saves the model, unless that was done before the job ended. */
static plait_status save_at_last(run *r, const plait_model *model, plait_status status, plait_error *err) {
    const bool tried = r->saved || r->save_failed.code < 0; /* by on_trained */
    if (status >= 0 && !tried) return save(r, model, err);
    if (status >= 0 && r->save_failed.code < 0) {
        *err = r->save_failed;
        return err->code;
    }
    if (!tried) save_unjudged(r, model);
    return status;
}

/* The work of the leading rank at the end. */
static plait_status lead_out(run *r, const plait_model *model, const plait_report *report, plait_status status,
                             plait_error *err) {
    r->led = true;
    r->report = *report;
    if (r->survived) take_lead(r);
    status = save_at_last(r, model, status, err);
    if (status == PLAIT_EPEER && err->rank >= 0) pli_metrics_lost(r->metrics, err->rank, err->text, NULL);
    if (status >= 0) pli_board_end(r->board, report);
    pli_metrics_end(r->metrics, plait_status_text(report->interrupted ? PLAIT_EINTERRUPTED : status),
                    status >= 0 ? report : NULL);
    return status;
}

static plait_status work(plait_comm *comm, void *user) {
    run         *r = user;
    plait_error  err = { .rank = plait_comm_rank(comm) };
    plait_model *model = NULL;
    plait_report report;
    pli_record_init(&report);
    r->size = plait_comm_size(comm);
    r->alone = pli_comm_shares_process(comm) ? -1 : plait_comm_rank(comm);
    if (r->alone >= 0) r->comm = comm;
    pli_signals_enter(&r->signals, comm);
    if (r->alone >= 0 && !pli_comm_is_worker(comm)) on_loaded(r); /* a server loads nothing */
    plait_status status = prepare(r, comm, &err);
    if (status >= 0) status = begin_dashboard(r, comm, &err);
    if (status >= 0) status = tell_members(r, comm, &err);
    if (status >= 0 && r->settings->events != NULL && !r->settings->dry_run) {
        status = plait_events_record(comm, r->events);
        if (status < 0) err = *plait_comm_error(comm);
    }
    if (status >= 0 && pli_comm_leads(comm)) r->prepared = true;
    const bool traces = r->settings->trace != NULL && !r->settings->dry_run;
    if (status >= 0 && traces) status = pli_run_trace_open(&r->trace, comm, &err);
    if (status >= 0) status = fit(r, comm, &report, &model, &err);
    int32_t     deaths = 0;
    plait_error death;
    if (r->settings->replicas > 1 && pli_comm_next_death(comm, &deaths, &death)) r->survived = true;
    /* Was this rank itself taken for lost? Then another rank leads, and writes. */
    const bool outcast = r->settings->replicas > 1 && status == PLAIT_EPEER && err.rank == plait_comm_rank(comm);
    if (outcast && r->alone >= 0) r->survived = r->outcast = true;
    if (pli_comm_leads(comm) && !outcast) status = lead_out(r, model, &report, status, &err);
    plait_model_destroy(&model);
    pli_signals_leave(&r->signals, comm);
    if (status < 0) *pli_comm_error(comm) = err;
    return status;
}

/* --- the command ------------------------------------------------------------------------------------ */

static int run_all(run *r) {
    plait_error err = { .rank = -1 };
    r->plan.comm.simulated = &r->simulated;
    plait_status status = plait_comm_run(&r->plan.comm, work, r, &err);
    pli_waiting_end(&r->waiting);
    return pli_train_end(r, status, &err);
}

static int train(int argc, char *const *argv) {
    pli_train_settings settings = { 0 };
    pli_opts          *opts = NULL;
    plait_error        err = { .rank = -1 };
    pli_chosen         chosen;
    int                code = PLI_EXIT_USAGE;
    if (!pli_train_settings_read(&pli_command_train, argc, argv, &settings, &opts, &code)) return code;
    run r = { .settings = &settings,
              .opts = opts,
              .argc = argc,
              .argv = argv,
              .alone = -1,
              .epochs = settings.epochs,
              .trace = PLI_RUN_TRACE_INIT,
              .dash = PLI_DASH_FEED_INIT };
    pli_run_id(r.id);
    pli_record_init(&r.report);
    pli_talk_open(&r.talk, settings.quiet);
    r.talk.simulated = settings.transport != NULL && strcmp(settings.transport, "sim") == 0;
    if (!pli_train_plan_make(&settings, opts, &r.talk.log, &r.plan)) goto close_talk;
    r.chosen_settings = &settings;
    if (!choose(&r, &chosen, &code)) goto close_talk;
    if (settings.events != NULL &&
        pli_check_writable(settings.events, " (--events)", &err) < 0) { /* by each rank's process */
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    if (settings.events != NULL && pli_events_create(settings.events, r.id, &r.events, &err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    if (settings.trace != NULL && pli_check_writable(settings.trace, " (--trace)", &err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    if (settings.tensorboard != NULL && pli_board_check(&err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    if (!settings.dry_run && pli_dash_feed_init(&r.dash, pli_opts_is_given(opts, "dashboard"), settings.dashboard,
                                                &r.signals, &r.talk, &err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    if (pli_signals_open(&r.signals, &r.talk, pli_train_say_unbegun, &r, &err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    r.plan.train.stop = &r.signals.stop;
    code = run_all(&r);
close_talk:
    pli_dash_feed_close(&r.dash, -1);
    (void)plait_events_close(&r.events, NULL);
    pli_talk_close(&r.talk);
    pli_opts_free(&opts);
    pli_free(r.path.at);
    return code;
}

const pli_command pli_command_train = {
    .name = "train",
    .usage = "train --data D [options]",
    .summary = "fit a model",
    .details =
        "Four settings are independent: how updates travel (--topology), what a read may miss (--consistency), how "
        "many workers compute (--workers) and what carries the bytes (--transport). 'plait help pairs' shows which "
        "values go together.\n\n"
        "On SIGINT or SIGTERM the run finishes its clock, saves the model, writes a checkpoint (with --checkpoint "
        "DIR), prints the command that resumes it and exits with 75. A second signal, at least one second later, ends "
        "the run at once. While the data are being read there is nothing to save, so the first signal ends the run "
        "(75). On SIGUSR1 the run prints who waits for what.",
    .rows = pli_train_rows,
    .trains = true,
    .run = train,
};
