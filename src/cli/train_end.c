/* The end of a train: closes the outputs beside the model; prints the outcome, and the command that continues the run
 * if that is possible; prints the record. */
#include "cli/train.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/again.h"
#include "cli/record.h"
#include "cli/verdict.h"
#include "learn/learner.h"
#include "learn/solve/solver.h"

typedef pli_train_run run;

void pli_train_say_notes(run *r) {
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

static pli_again command_of(const run *r) {
    return (pli_again){ .settings = r->settings, .opts = r->opts, .argc = r->argc, .argv = r->argv,
                        .processes = r->alone >= 0 };
}

/* Is a checkpoint the best place to continue from? Yes, unless a later one failed and the saved weights are newer. */
static bool goes_on_from_checkpoint(const run *r) {
    const plait_report *report = &r->report;
    if (report->checkpoint < 0) return false;
    return report->checkpoint == report->clocks || !r->saved || report->features == 0;
}

/* What cannot begin from a saved model, because it needs more than the model holds: "model gbdt"; "": the run can. */
static void find_no_start(const plait_report *report, char text[64]) {
    const plait_learner *learner = pli_learner_find(report->model, NULL, 0);
    const pli_solver    *solver = pli_solver_find(report->optimizer);
    text[0] = '\0';
    const bool           adds = learner != NULL && (learner->optimizer == NULL || (learner->more != NULL &&
                                                                                   learner->more->adds));
    if (adds && (learner->ways & PLAIT_LEARNER_STARTS) == 0)
        snprintf(text, 64, "model %s", report->model);
    else if (solver != NULL && (solver->demand.traits & PLAIT_IN_SEQUENCE) != 0)
        snprintf(text, 64, "optimizer %s", report->optimizer);
}

static bool has_pipe(const run *r) {
    for (int64_t i = 0; i < r->settings->in.data.n; i++)
        if (pli_is_pipe(r->settings->in.data.item[i])) return true;
    return false;
}

/* A run that sees each row once cannot begin from a model, nor be resumed with a pipe, whose rows are gone. Another
 * optimizer can learn those that come later. */
static void tell_of_later_rows(const run *r, pli_again again, pli_text *text) {
    again.optimizer = "adagrad";
    pli_text_add(text, "what came is learnt and is in %s; to go on with rows that come later (%s does not begin from a "
                       "model, adagrad does): ", r->settings->out, r->report.optimizer);
    pli_again_from_model(&again, 1, text);
}

static void say_how_to_go_on(run *r) {
    if (!r->saved && r->report.checkpoint < 0) {
        pli_talk_say(&r->talk, "interrupted; nothing was saved, since there is no --checkpoint DIR or --out FILE");
        return;
    }
    const plait_report *report = &r->report;
    int64_t             left = r->epochs - report->epochs > 0 ? r->epochs - report->epochs : r->epochs > 0;
    const pli_again     again = command_of(r);
    pli_text            text = { 0 };
    char                no_start[64];
    find_no_start(report, no_start);
    if (r->saved && r->epochs > 0 && report->epochs >= r->epochs) { /* while it was judged */
        pli_talk_tell(&r->talk,
                      "interrupted after all %" PRId64 " epochs, while the model was judged: it is whole in %s, and "
                      "its figures are missing; 'plait eval' finds them", r->epochs, r->settings->out);
        return;
    }
    pli_text_add(&text, "interrupted after clock %" PRId64 ", %" PRId64, report->clocks, report->epochs);
    if (r->epochs > 0) pli_text_add(&text, " of %" PRId64, r->epochs);
    pli_text_add(&text, " epochs done; ");
    if (goes_on_from_checkpoint(r)) {
        pli_text_add(&text, "to go on from the checkpoint%s%s: ",
                     report->checkpoint == report->clocks ? "" : " before",
                     strcmp(report->transport, "mpi") == 0 ? ", under any launcher" : "");
        pli_again_from_checkpoint(&again, &text);
    } else if (report->features == 0) {
        pli_text_add(&text,
                     "what was learnt is in %s, but a model whose features grow by key cannot be started from (hash "
                     "them: --hash-bits 22)",
                     r->settings->out);
    } else if (r->settings->path > 0) {
        pli_text_add(&text, "what was learnt is in %s, but a path begins at weights 0; the same command begins anew: ",
                     r->settings->out);
        pli_again_same(&again, &text);
    } else if (no_start[0] != '\0' && strncmp(no_start, "optimizer", 9) == 0 && has_pipe(r)) {
        tell_of_later_rows(r, again, &text);
    } else if (no_start[0] != '\0') {
        pli_text_add(&text,
                     "what was learnt is in %s, but %s does not begin from a model; a run with --checkpoint DIR can be "
                     "resumed",
                     r->settings->out, no_start);
    } else {
        pli_text_add(&text, "to go on from the saved weights (step sizes and the optimizer's state start anew)%s: ",
                     strcmp(report->transport, "mpi") == 0 ? ", under the same launcher" : "");
        pli_again_from_model(&again, left, &text); /* last, so that the end of the line can be pasted */
    }
    pli_talk_tell(&r->talk, "%s", text.failed ? "interrupted; out of memory for more" : text.data);
    pli_text_free(&text);
}

void pli_train_say_unbegun(void *user, const char *what) {
    run            *r = user;
    const pli_again again = command_of(r);
    pli_text        text = { 0 };
    pli_text_add(&text, "%s before the first clock: nothing was learnt%s; the same command %s: ", what,
                 r->settings->dry_run ? ", nor was to be" : "",
                 r->settings->resume != NULL ? "goes on where this one would have" : "begins anew");
    pli_again_same(&again, &text);
    pli_talk_tell_once(&r->talk, "%s", text.failed ? "interrupted before the first clock" : text.data);
    pli_text_free(&text);
    if (r->prepared) pli_metrics_end(r->metrics, plait_status_text(PLAIT_EINTERRUPTED), NULL);
}

/* Prints why the run has ended; if a peer was lost, also the command that continues the run. */
static void tell_end(run *r, plait_status status, const char *why) {
    const pli_again again = command_of(r);
    pli_text        text = { 0 };
    pli_text_add(&text, "%s", why);
    if (status == PLAIT_EPEER && r->settings->checkpoint != NULL) {
        /* With two replicas others may well go on: this rank has died with another, or hears no majority. */
        pli_text_add(&text, r->settings->replicas > 1 ? "; if no others go on, start from the newest checkpoint: "
                                                      : "; to go on from the newest checkpoint: ");
        pli_again_from_checkpoint(&again, &text);
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
    r->report.columns = r->plan.train.columns > 1 ? r->plan.train.columns : 1;
    if (r->chosen != NULL) {
        snprintf(r->report.pair_why, sizeof r->report.pair_why, "%s", r->chosen->why);
        snprintf(r->report.columns_why, sizeof r->report.columns_why, "%s", r->chosen->columns.why);
    }
    if (r->settings->json) {
        pli_record_json(&r->report, simulated, &r->path, &r->lost, &text);
    } else {
        pli_record_text(&r->report, simulated, &r->path, &text);
        pli_lost_row(&r->lost, pli_train_workers(r), r->plan.train.spares, &text);
    }
    return pli_cli_print(&text) ? pli_cli_end(PLI_EXIT_DONE) : PLI_EXIT_FAILED;
}

/* The outputs beside the model: for each the reason why it is not complete. */
typedef struct logs {
    plait_error lead, metrics, events, trace, board; /* code 0: it is complete */
    uint64_t    dropped;                             /* number of dropped spans */
} logs;

static logs close_logs(run *r) {
    logs ended = { .lead = r->lead_failed };
    (void)pli_metrics_close(&r->metrics, &ended.metrics);
    (void)plait_events_close(&r->events, &ended.events);
    (void)pli_board_close(&r->board, &ended.board);
    (void)pli_run_trace_close(&r->trace, r->settings->trace, &ended.dropped, &ended.trace);
    return ended;
}

/* Prints what is not complete. false: something is not. */
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
                      "%s: %" PRIu64 " spans are missing at the ends of its tracks: the trace was full (take fewer "
                                     "--epochs)",
                      r->settings->trace, ended->dropped);
    return whole;
}

/* Prints that the last checkpoint that was due could not be written. With --out the model is saved nevertheless; an
 * interrupted run can continue from it, or from an earlier checkpoint. */
static int tell_unkept(run *r, int code) {
    const plait_report *report = &r->report;
    if (report->checkpoint_failed[0] == '\0') return code;
    pli_talk_tell(&r->talk, "%s", report->checkpoint_failed);
    if (code == PLI_EXIT_INTERRUPTED && (r->saved || report->checkpoint >= 0)) return code;
    return code == PLI_EXIT_DONE || code == PLI_EXIT_INTERRUPTED ? PLI_EXIT_FAILED : code;
}

/* Says that no checkpoint was due, because a user of --checkpoint may look for one. */
static void say_none_was_due(run *r) {
    const pli_train_settings *s = r->settings;
    const bool asked = s->checkpoint != NULL && !s->dry_run;
    if (!asked || r->report.checkpoint >= 0 || r->report.checkpoint_failed[0] != '\0') return;
    const bool clocks = s->checkpoint_every[strspn(s->checkpoint_every, "0123456789")] == '\0';
    pli_talk_say(&r->talk, "note: the run was too short for a checkpoint: --checkpoint-every is %s%s",
                 s->checkpoint_every, clocks ? " clocks" : "");
}

/* Prints how the run ended, if this process has to; returns the exit code. */
static int tell_outcome(run *r, plait_status status, plait_error *err) {
    int  code = status < 0 ? pli_cli_exit_code(status) : PLI_EXIT_DONE;
    bool of_one = code != PLI_EXIT_USAGE || status == PLAIT_EMISMATCH; /* wrong usage is the same on all ranks */
    if (status < 0 && err->rank >= 0 && r->size > 1 && of_one) pli_fail_at(err, "rank %" PRId32, err->rank);
    bool told = r->alone >= 0 && err->rank >= 0 && err->rank < r->alone; /* that rank prints it for all */
    if (status < 0 && status != PLAIT_EINTERRUPTED) {
        const char *text = err->text[0] != '\0' ? err->text : plait_status_text(status);
        if (r->alone >= 0 && !r->outcast) pli_verdict_why(r->alone, text);
        if (!told && !pli_talk_has_heard(&r->talk, text)) tell_end(r, status, text);
        if (r->saved) pli_talk_tell(&r->talk, "the model was trained before that: it is in %s", r->settings->out);
    } else if (r->led) {
        bool interrupted = r->report.interrupted || status == PLAIT_EINTERRUPTED;
        if (interrupted) say_how_to_go_on(r);
        if (status >= 0) pli_train_say_notes(r);
        if (status >= 0 && !interrupted) say_none_was_due(r);
        code = status < 0 ? code : show(r);
        if (interrupted) code = PLI_EXIT_INTERRUPTED;
        code = tell_unkept(r, code);
    }
    return code;
}

/* A process that has gone on without another gives its verdict and ends at once. */
static int end_after_a_death(const run *r, int code) {
    /* The others take this process for dead; with another exit code mpirun would end them. */
    if (r->outcast) return PLI_EXIT_DONE | PLI_EXIT_AT_ONCE;
    pli_verdict_give(code);
    if (r->led && code == PLI_EXIT_DONE) pli_verdict_survived();
    return code | PLI_EXIT_AT_ONCE;
}

int pli_train_end(run *r, plait_status status, plait_error *err) {
    pli_signals_ended(&r->signals);
    const logs ended = close_logs(r);
    pli_talk_clear(&r->talk);
    int code = tell_outcome(r, status, err);
    if (!tell_logs(r, &ended) && code == PLI_EXIT_DONE) code = PLI_EXIT_FAILED;
    fflush(stdout); /* the result is out before a signal may end the process; who ends the command sees failures */
    pli_dash_feed_close(&r->dash, r->outcast ? -1 : r->alone);
    pli_signals_close(&r->signals);
    pli_lost_free(&r->lost);
    return r->survived && r->alone >= 0 ? end_after_a_death(r, code) : code;
}
