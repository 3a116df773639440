/* train - fits a model. Every rank of this process runs work(); the leading one (the lowest living worker) reports,
 * saves and leaves the record, which this file then prints. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/events.h"
#include "cli/record.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/trace.h"
#include "cli/verdict.h"
#include "comm/comm.h"
#include "learn/learn.h"
#include "watch/board/board.h"
#include "watch/watch.h"

enum { TAG_START = 0x7001 };

typedef struct run {
    const pli_train_settings *settings;
    const pli_opts           *opts;
    int                       argc; /* the words of the command */
    char *const              *argv;
    pli_train_plan            plan;
    pli_talk                  talk;
    pli_signals               signals;
    char                      id[17];
    _Atomic int32_t           size;  /* of the job; each rank writes the same                    */
    _Atomic int32_t           alone; /* the rank, where it has the process for itself; else -1   */
    pli_run_events            events;
    pli_run_trace             trace;
    /* Written by the leading rank's thread, read when all ranks are done. */
    bool         led; /* the leading rank lives in this process */
    pli_metrics *metrics; /* read by the signals' thread, too, once `prepared` */
    _Atomic bool prepared;
    pli_board   *board;
    plait_report report;
    plait_simulated simulated;
    plait_error     save_failed; /* what kept the model from being saved before the job ended */
    bool         saved, noted;
    bool            outcast;  /* this process's rank was taken for dead */
    bool         survived; /* a rank has died, and the run went on; any rank's */
    plait_error     lead_failed; /* what a rank that came to lead could not go on writing */
    int32_t        *lost;        /* [n_lost] who; the leading rank's */
    int64_t         n_lost, lost_capacity;
    int64_t      epochs; /* planned: as asked for, then as last told; 0: not known */
} run;

/* Once, and only when what has been asked for is under way: a mistake is told without them. */
static void say_notes(run *r) {
    if (r->noted) return;
    r->noted = true;
    pli_text notes = { 0 };
    char    *rest = NULL;
    pli_train_notes(r->settings, r->opts, &notes);
    for (char *note = notes.data != NULL ? strtok_r(notes.data, "\n", &rest) : NULL; note != NULL;
         note = strtok_r(NULL, "\n", &rest)) {
        pli_talk_say(&r->talk, "note: %s", note);
    }
    pli_text_free(&notes);
}

static void on_progress(void *user, const plait_progress *progress) {
    run *r = user;
    r->epochs = progress->epochs;
    say_notes(r);
    pli_metrics_progress(r->metrics, progress);
    pli_board_progress(r->board, progress);
    pli_talk_progress(&r->talk, progress);
}

/* Once a rank that leads has died, another does: what the first had open is its own. */
static void take_lead(run *r) {
    if (r->lead_failed.code < 0) return;
    if (r->settings->metrics != NULL && r->metrics == NULL)
        (void)pli_metrics_go_on(r->settings->metrics, &r->metrics, &r->lead_failed);
    if (r->settings->tensorboard != NULL && r->board == NULL && r->lead_failed.code >= 0)
        (void)pli_board_open(r->settings->tensorboard, &r->board, &r->lead_failed);
}

static void on_lost(void *user, int32_t rank, const char *why) {
    run *r = user;
    r->survived = true;
    take_lead(r);
    if (pli_grow((void **)&r->lost, &r->lost_capacity, r->n_lost + 1, sizeof *r->lost)) r->lost[r->n_lost++] = rank;
    pli_metrics_lost(r->metrics, rank, why);
    pli_talk_say(&r->talk, "%s; the run goes on without it", why);
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

static void on_loaded(void *user) {
    run *r = user;
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

/* --- the metrics' first lines: who takes part ------------------------------------------------------- */

typedef struct member {
    int32_t rank, pid;
    char    host[256];
} member;

static plait_status tell_members(plait_comm *comm, int32_t spares, pli_metrics *metrics) {
    member mine = { .rank = plait_comm_rank(comm), .pid = pli_pid() };
    snprintf(mine.host, sizeof mine.host, "%s", plait_comm_host(comm));
    int32_t workers = plait_comm_workers(comm), holders = workers - spares;
    if (mine.rank >= workers) return plait_comm_send(comm, pli_comm_lead(comm), TAG_START, &mine, sizeof mine);
    member *all = pli_array((size_t)workers, sizeof *all);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, &mine, sizeof mine, all);
    for (int32_t i = 0; i < workers && status >= 0; i++)
        pli_metrics_start(metrics, all[i].rank, all[i].host, all[i].pid, i < holders ? "worker" : "spare");
    for (int32_t i = workers; i < plait_comm_size(comm) && pli_comm_leads(comm) && status >= 0; i++) {
        size_t bytes = 0;
        status = plait_comm_recv(comm, i, TAG_START, &mine, sizeof mine, &bytes, NULL);
        if (status >= 0) pli_metrics_start(metrics, mine.rank, mine.host, mine.pid, "server");
    }
    pli_free(all);
    return status;
}

/* Where each worker's time went. Collective over the workers. */
static plait_status tell_times(plait_comm *comm, const plait_report *report, pli_metrics *metrics) {
    double  mine[3] = { report->compute_seconds, report->wait_seconds, report->network_seconds };
    int32_t workers = plait_comm_workers(comm);
    double *all = pli_array((size_t)workers, sizeof mine);
    if (all == NULL) return PLAIT_ENOMEM;
    plait_status status = plait_comm_allgather(comm, mine, sizeof mine, all);
    for (int32_t i = 0; i < workers && status >= 0; i++)
        pli_metrics_rank(metrics, i, all[3 * i], all[3 * i + 1], all[3 * i + 2]);
    pli_free(all);
    return status;
}

/* --- one rank --------------------------------------------------------------------------------------- */

/* What cannot be written is told before the work, not after it. (Event logs and traces: by each process, in train.) */
static plait_status prepare(run *r, plait_comm *comm, plait_error *err) {
    const pli_train_settings *s = r->settings;
    PLI_TRY(pli_train_check(comm, &r->plan.train, err)); /* before a file is touched */
    if (!pli_comm_leads(comm)) return PLAIT_OK;
    if (s->out != NULL) PLI_TRY(pli_check_replaceable(s->out, " (--out)", err));
    if (s->metrics != NULL) PLI_TRY(pli_check_writable(s->metrics, " (--metrics)", err));
    if (s->tensorboard != NULL) PLI_TRY(pli_check_directory(s->tensorboard, " (--tensorboard)", err));
    if (s->dry_run) return PLAIT_OK;
    if (s->out != NULL) pli_done_remove(s->out);
    if (s->tensorboard != NULL) PLI_TRY(pli_board_open(s->tensorboard, &r->board, err));
    return s->metrics != NULL ? pli_metrics_open(s->metrics, &r->metrics, err) : PLAIT_OK;
}

static plait_status save(run *r, const plait_model *model, plait_error *err) {
    const char *out = r->settings->out;
    if (out == NULL || model == NULL) return PLAIT_OK;
    PLI_TRY(plait_model_save(model, out, err));
    r->saved = true;
    if (r->report.interrupted) return PLAIT_OK; /* not done: it goes on */
    return pli_done_write(out, r->id, r->report.clocks, r->report.model_hash, r->lost, (int32_t)r->n_lost, err);
}

/* Where a run goes on when a rank dies: the model is there before any rank ends. */
static void on_trained(void *user, const plait_report *report, const plait_model *model) {
    run *r = user;
    r->report = *report;
    r->save_failed = (plait_error){ .rank = -1 };
    (void)save(r, model, &r->save_failed);
}

/* What failed came behind the training. */
static void save_unjudged(run *r, const plait_model *model) {
    plait_error why = { .rank = -1 };
    if (r->settings->out == NULL || model == NULL) return;
    r->saved = plait_model_save(model, r->settings->out, &why) >= 0;
}

/* What all ranks know of themselves comes together. Where a run has gone on without one, it does not: who hears of a
 * death only now hears, too, that the others have left. */
static plait_status gather(run *r, plait_comm *comm, const plait_report *report, plait_error *err) {
    int32_t      deaths = 0;
    plait_error  death;
    const bool   survives = r->settings->replicas > 1, whole = !pli_comm_next_death(comm, &deaths, &death);
    plait_status status = PLAIT_OK;
    if (r->settings->dry_run) return PLAIT_OK;
    if (whole && r->settings->metrics != NULL && plait_comm_rank(comm) < plait_comm_workers(comm)) {
        status = tell_times(comm, report, pli_comm_leads(comm) ? r->metrics : NULL);
        if (status < 0) *err = *plait_comm_error(comm);
    }
    if (status >= 0 && whole && r->settings->trace != NULL)
        status = pli_run_trace_gather(&r->trace, comm, r->settings->trace, err);
    return status == PLAIT_EPEER && survives ? PLAIT_OK : status;
}

/* Trains, and brings together what ranks know of it. */
static plait_status fit(run *r, plait_comm *comm, plait_report *report, plait_model **model_out, plait_error *err) {
    plait_train_opts opts = r->plan.train;
    opts.user = r;
    opts.loaded = on_loaded;
    if (r->settings->tensorboard != NULL) opts.weights = on_weights; /* on all ranks */
    if (pli_comm_leads(comm) || opts.replicas > 1) { /* it may come to lead */
        opts.graph = on_graph;
        opts.lost = on_lost;
        opts.trained = opts.replicas > 1 ? on_trained : NULL;
        opts.progress = on_progress;
        opts.shares = on_shares;
        opts.checkpointed = on_checkpointed;
        opts.point = on_point;
    }
    plait_status status = plait_train(comm, &opts, report, model_out);
    if (status >= 0) return gather(r, comm, report, err);
    *err = *plait_comm_error(comm);
    return status;
}

/* The model is saved, if it has not been before the job ended. */
static plait_status save_at_last(run *r, const plait_model *model, plait_status status, plait_error *err) {
    const bool tried = r->saved || r->save_failed.code < 0; /* on_trained */
    if (status >= 0 && !tried) return save(r, model, err);
    if (status >= 0 && r->save_failed.code < 0) {
        *err = r->save_failed;
        return err->code;
    }
    if (!tried) save_unjudged(r, model);
    return status;
}

/* What the leading rank has to do at the end. */
static plait_status lead_out(run *r, const plait_model *model, const plait_report *report, plait_status status,
                             plait_error *err) {
    r->led = true;
    r->report = *report;
    if (r->survived) take_lead(r);
    status = save_at_last(r, model, status, err);
    if (status == PLAIT_EPEER && err->rank >= 0) pli_metrics_lost(r->metrics, err->rank, err->text);
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
    pli_signals_enter(&r->signals, comm);
    if (r->alone >= 0 && !pli_comm_is_worker(comm)) pli_signals_begun(&r->signals); /* it ends when the workers do */
    plait_status status = prepare(r, comm, &err);
    if (status >= 0 && r->settings->metrics != NULL && !r->settings->dry_run) {
        status = tell_members(comm, r->plan.train.spares, pli_comm_leads(comm) ? r->metrics : NULL);
        if (status < 0) err = *plait_comm_error(comm);
    }
    if (status >= 0 && r->settings->events != NULL && !r->settings->dry_run)
        status = pli_run_events_open(&r->events, comm, r->settings->events, r->id, &err);
    if (status >= 0 && pli_comm_leads(comm)) r->prepared = true;
    const bool traces = r->settings->trace != NULL && !r->settings->dry_run;
    if (status >= 0 && traces) status = pli_run_trace_open(&r->trace, comm, &err);
    if (status >= 0) status = fit(r, comm, &report, &model, &err);
    int32_t     deaths = 0;
    plait_error death;
    if (r->settings->replicas > 1 && pli_comm_next_death(comm, &deaths, &death)) r->survived = true;
    /* Was it itself taken for lost? Then another leads, and writes. */
    const bool outcast = r->settings->replicas > 1 && status == PLAIT_EPEER && err.rank == plait_comm_rank(comm);
    if (outcast && r->alone >= 0) r->survived = r->outcast = true;
    if (pli_comm_leads(comm) && !outcast) status = lead_out(r, model, &report, status, &err);
    plait_model_destroy(&model);
    pli_signals_leave(&r->signals, comm);
    if (status < 0) *pli_comm_error(comm) = err;
    return status;
}

/* --- after the run ---------------------------------------------------------------------------------- */

static void quote(pli_text *text, const char *word) {
    if (word[0] != '\0' &&
        strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%") == strlen(word)) {
        pli_text_add(text, " %s", word);
        return;
    }
    pli_text_add(text, " '");
    for (const char *c = word; *c != '\0'; c++) pli_text_add(text, *c == '\'' ? "'\\''" : "%c", *c);
    pli_text_add(text, "'");
}

/* Options that the command which goes on sets anew; from a checkpoint the first two stay as they are. */
static bool is_set_anew(const char *word, bool from_checkpoint, bool *with_value) {
    static const char *const names[] = { "--init-model", "--epochs", "--metrics", "--events", "--trace", "--resume" };
    for (size_t i = from_checkpoint ? 2 : 0; i < sizeof names / sizeof names[0]; i++) {
        size_t length = strlen(names[i]);
        *with_value = word[0] != '\0' && strncmp(word, names[i], length) == 0 && word[length] == '=';
        if (*with_value || strcmp(word, names[i]) == 0) return true;
    }
    return false;
}

static bool is_taken(const char *path) {
    char *of_rank = pli_format("%s.0", path);
    bool  taken = pli_file_exists(path) || of_rank == NULL || pli_file_exists(of_rank);
    pli_free(of_rank);
    return taken;
}

/* A name that is not taken, so that what this run has written stays: m.2, m.3, ...; m-2 where m.2 may be a rank's. */
static void add_written(const char *option, const char *path, char sign, pli_text *text) {
    char *name = NULL;
    if (path == NULL) return;
    for (int n = 2; n < 1000; n++) {
        pli_free(name);
        name = pli_format("%s%c%d", path, sign, n);
        if (name == NULL || !is_taken(name)) break;
    }
    pli_text_add(text, " %s", option);
    quote(text, name != NULL ? name : path);
    pli_free(name);
}

/* The command as it was given, from a checkpoint, or for the epochs that are left (0: as many as by default) from what
 * was saved. */
static void add_command(const run *r, int argc, char *const *argv, bool from_checkpoint, int64_t left, pli_text *text) {
    pli_text_add(text, "plait train");
    for (int i = 0; i < argc; i++) {
        bool with_value = false;
        if (!is_set_anew(argv[i], from_checkpoint, &with_value))
            quote(text, argv[i]);
        else if (!with_value)
            i++;
    }
    if (!from_checkpoint && left > 0) pli_text_add(text, " --epochs %" PRId64, left);
    pli_text_add(text, from_checkpoint ? " --resume" : " --init-model");
    quote(text, from_checkpoint ? r->settings->checkpoint : r->settings->out);
    add_written("--metrics", r->settings->metrics, '.', text);
    if (!from_checkpoint) add_written("--events", r->settings->events, r->alone >= 0 ? '-' : '.', text);
    add_written("--trace", r->settings->trace, r->alone >= 0 ? '-' : '.', text);
}

/* From what the run goes on best: a checkpoint, save where a later one failed and the weights are newer. */
static bool goes_on_from_checkpoint(const run *r) {
    const plait_report *report = &r->report;
    if (report->checkpoint < 0) return false;
    return report->checkpoint == report->clocks || !r->saved || report->features == 0;
}

static void say_how_to_go_on(run *r, int argc, char *const *argv) {
    if (!r->saved && r->report.checkpoint < 0) {
        pli_talk_say(&r->talk, "interrupted; nothing was saved, since there is no --checkpoint DIR or --out FILE");
        return;
    }
    const plait_report *report = &r->report;
    int64_t             left = r->epochs - report->epochs > 0 ? r->epochs - report->epochs : r->epochs > 0;
    pli_text            text = { 0 };
    pli_text_add(&text, "interrupted after clock %" PRId64 ", %" PRId64, report->clocks, report->epochs);
    if (r->epochs > 0) pli_text_add(&text, " of %" PRId64, r->epochs);
    pli_text_add(&text, " epochs done; ");
    if (goes_on_from_checkpoint(r)) {
        pli_text_add(&text, "to go on from the checkpoint%s%s: ",
                     report->checkpoint == report->clocks ? "" : " before",
                     strcmp(report->transport, "mpi") == 0 ? ", under any launcher" : "");
        add_command(r, argc, argv, true, left, &text);
    } else if (report->features == 0) {
        pli_text_add(&text,
                     "what was learnt is in %s, but a model whose features grow by key cannot be started from (hash "
                     "them: --hash-bits 22)",
                     r->settings->out);
    } else {
        pli_text_add(&text, "to go on from the saved weights (step sizes and the optimizer's memory begin anew)%s: ",
                     strcmp(report->transport, "mpi") == 0 ? ", under the same launcher" : "");
        add_command(r, argc, argv, false, left, &text); /* the last, so that the line's end can be pasted */
    }
    pli_talk_tell(&r->talk, "%s", text.failed ? "interrupted; out of memory for more" : text.data);
    pli_text_free(&text);
}

/* A signal has come while the data were read, maybe from a pipe that gives none. On the signals' thread. */
static void say_unbegun(void *user, const char *what) {
    run     *r = user;
    pli_text text = { 0 };
    pli_text_add(&text, "%s before the first clock: nothing was learnt%s; the same command %s: plait train", what,
                 r->settings->dry_run ? ", nor was to be" : "",
                 r->settings->resume != NULL ? "goes on where this one would have" : "begins anew");
    for (int i = 0; i < r->argc; i++) quote(&text, r->argv[i]);
    pli_talk_tell_once(&r->talk, "%s", text.failed ? "interrupted before the first clock" : text.data);
    pli_text_free(&text);
    if (r->prepared) pli_metrics_end(r->metrics, plait_status_text(PLAIT_EINTERRUPTED), NULL);
}

/* What has ended the run; where a peer was lost, with the command that goes on from what the run has kept. */
static void tell_end(run *r, int argc, char *const *argv, plait_status status, const char *why) {
    pli_text text = { 0 };
    pli_text_add(&text, "%s", why);
    if (status == PLAIT_EPEER && r->settings->checkpoint != NULL) {
        pli_text_add(&text, "; to go on from the newest checkpoint: ");
        add_command(r, argc, argv, true, 0, &text);
    }
    pli_talk_tell_once(&r->talk, "%s", text.data != NULL ? text.data : why);
    pli_text_free(&text);
}

static int show(run *r) {
    pli_text               text = { 0 };
    const plait_simulated *simulated = r->simulated.trace_hash[0] != '\0' ? &r->simulated : NULL;
    if (r->settings->dry_run) {
        pli_talk_say(&r->talk, "dry run: options, files and memory are in order");
        if (!r->settings->json) return pli_cli_end(PLI_EXIT_DONE);
    }
    if (r->settings->json) {
        pli_record_json(&r->report, simulated, &text);
    } else {
        pli_record_text(&r->report, simulated, &text);
    }
    return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
}

/* What was written beside the model: what kept each from being written to its end. */
typedef struct logs {
    plait_error lead, metrics, events, trace, board; /* code 0: nothing */
    uint64_t    dropped;                             /* spans */
} logs;

static logs close_logs(run *r) {
    logs ended = { .lead = r->lead_failed };
    (void)pli_metrics_close(&r->metrics, &ended.metrics);
    (void)pli_run_events_close(&r->events, &ended.events);
    (void)pli_board_close(&r->board, &ended.board);
    (void)pli_run_trace_close(&r->trace, r->settings->trace, &ended.dropped, &ended.trace);
    return ended;
}

/* false: something was not written to its end. */
static bool tell_logs(run *r, const logs *ended) {
    const plait_error *const all[] = { &ended->lead, &ended->metrics, &ended->events, &ended->trace, &ended->board };
    bool                     whole = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i]->code >= 0) continue;
        pli_talk_tell(&r->talk, "%s", all[i]->text);
        whole = false;
    }
    if (ended->dropped > 0)
        pli_talk_tell(&r->talk,
                      "%s: %" PRIu64 " spans are missing at the ends of its tracks: what a trace may hold was spent "
                      "(fewer --epochs)",
                      r->settings->trace, ended->dropped);
    return whole;
}

/* The last checkpoint that was due could not be written. What was trained is kept all the same, where there is --out; a
 * run that was interrupted can go on from that, or from an earlier one. */
static int tell_unkept(run *r, int code) {
    const plait_report *report = &r->report;
    if (report->checkpoint_failed[0] == '\0') return code;
    pli_talk_tell(&r->talk, "%s", report->checkpoint_failed);
    if (code == PLI_EXIT_INTERRUPTED && (r->saved || report->checkpoint >= 0)) return code;
    return code == PLI_EXIT_DONE || code == PLI_EXIT_INTERRUPTED ? PLI_EXIT_FAILED : code;
}

/* Talks of the run's end, by who is to; the exit code. */
static int tell_outcome(run *r, int argc, char *const *argv, plait_status status, plait_error *err) {
    int  code = status < 0 ? pli_cli_exit_code(status) : PLI_EXIT_DONE;
    bool of_one = code != PLI_EXIT_USAGE || status == PLAIT_EMISMATCH; /* usage is wrong on all ranks alike */
    if (status < 0 && err->rank >= 0 && r->size > 1 && of_one) pli_fail_at(err, "rank %" PRId32, err->rank);
    bool told = r->alone >= 0 && err->rank >= 0 && err->rank < r->alone; /* by that rank, for all that failed alike */
    if (status < 0 && status != PLAIT_EINTERRUPTED) {
        const char *text = err->text[0] != '\0' ? err->text : plait_status_text(status);
        if (r->alone >= 0 && !r->outcast) pli_verdict_why(r->alone, text);
        if (!told && !pli_talk_has_heard(&r->talk, text)) tell_end(r, argc, argv, status, text);
        if (r->saved) pli_talk_tell(&r->talk, "the model was trained before that: it is in %s", r->settings->out);
    } else if (r->led) {
        bool interrupted = r->report.interrupted || status == PLAIT_EINTERRUPTED;
        if (interrupted) say_how_to_go_on(r, argc, argv);
        if (status >= 0) say_notes(r);
        code = status < 0 ? code : show(r);
        if (interrupted) code = PLI_EXIT_INTERRUPTED;
        code = tell_unkept(r, code);
    }
    return code;
}

/* A process that has gone on without another ends at once, with its verdict given. */
static int end_after_a_death(const run *r, int code) {
    /* One that has died, to the others; a code of its own would have mpirun end them. */
    if (r->outcast) return PLI_EXIT_DONE | PLI_EXIT_AT_ONCE;
    pli_verdict_give(code);
    if (r->led && code == PLI_EXIT_DONE) pli_verdict_survived();
    return code | PLI_EXIT_AT_ONCE;
}

static int run_all(run *r, int argc, char *const *argv) {
    plait_error err = { .rank = -1 };
    r->plan.comm.simulated = &r->simulated;
    plait_status status = plait_comm_run(&r->plan.comm, work, r, &err);
    const logs   ended = close_logs(r);
    pli_signals_close(&r->signals);
    pli_talk_clear(&r->talk);
    int code = tell_outcome(r, argc, argv, status, &err);
    if (!tell_logs(r, &ended) && code == PLI_EXIT_DONE) code = PLI_EXIT_FAILED;
    pli_free(r->lost);
    return r->survived && r->alone >= 0 ? end_after_a_death(r, code) : code;
}

static int train(int argc, char *const *argv) {
    pli_train_settings settings = { 0 };
    pli_opts          *opts = NULL;
    plait_error        err = { .rank = -1 };
    int                code = PLI_EXIT_USAGE;
    if (!pli_train_settings_read(&pli_command_train, argc, argv, &settings, &opts, &code)) return code;
    run r = { .settings = &settings,
              .opts = opts,
              .argc = argc,
              .argv = argv,
              .alone = -1,
              .epochs = settings.epochs,
              .events = PLI_RUN_EVENTS_INIT,
              .trace = PLI_RUN_TRACE_INIT };
    pli_run_id(r.id);
    pli_record_init(&r.report);
    pli_talk_open(&r.talk, settings.quiet);
    r.talk.simulated = settings.transport != NULL && strcmp(settings.transport, "sim") == 0;
    if (!pli_train_plan_make(&settings, opts, &r.talk.log, &r.plan)) goto close_talk;
    if (settings.events != NULL &&
        pli_check_writable(settings.events, " (--events)", &err) < 0) { /* by each rank's process */
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
    if (pli_signals_open(&r.signals, &r.talk, say_unbegun, &r, &err) < 0) {
        code = pli_cli_fail(&err);
        goto close_talk;
    }
    r.plan.train.stop = &r.signals.stop;
    code = run_all(&r, argc, argv);
close_talk:
    pli_talk_close(&r.talk);
    pli_opts_free(&opts);
    return code;
}

const pli_command pli_command_train = {
    .name = "train",
    .usage = "train --data D [options]",
    .summary = "fit a model",
    .details =
        "How updates travel (--topology), what a read may miss (--consistency), how many compute (--workers) and what "
        "carries the bytes (--transport) are independent settings; 'plait help pairs' shows which go together.\n\n"
        "SIGINT and SIGTERM end the run after its clock, save the model, write a checkpoint (--checkpoint DIR) and print "
        "the command that goes on (exit code 75); a signal that comes a second later, or more, ends it at once. While "
        "the data are read there is nothing to save: the first signal ends the run (75). SIGUSR1 prints who waits for "
        "what.",
    .rows = pli_train_rows,
    .run = train,
};
