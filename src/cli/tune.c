/* tune - searches for the options with which a job's model is best on rows that it has not seen. This file reads the
 * options, and goes from step to step. */
#include "cli/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/record.h"
#include "learn/learn.h"
#include "learn/learner.h"
#include "watch/page/page.h"

#define AT(field) offsetof(pli_tune_settings, field)

static const pli_opt rows[] = {
    { "try", PLI_OPT_LIST, AT(tries), NULL, "NAME=LOW..HIGH",
      "values of an option that are tried: l2=1e-6..1 (by ratio), subsample=0.5..1:linear, or a list: leaves=15,31; "
      "may be given several times; default: the model's own ranges, without the options that are given", 0, 0, "tune" },
    { "trials", PLI_OPT_I64, AT(trials), "40", "N", "how many settings are tried; a grid has about as many", 1,
      PLI_TUNE_TRIALS_MAX, "tune" },
    { "search", PLI_OPT_CHOICE, AT(search), "halving", "halving|random|grid",
      "halving: all begin with few rows, and the best go on with more; random and grid: each has all rows at once",
      0, 0, "tune" },
    { "halve", PLI_OPT_CHOICE, AT(halve), "rows", "rows|epochs",
      "with halving: what a trial has little of at first: rows, or the --epochs that are given", 0, 0, "tune" },
    { "factor", PLI_OPT_I64, AT(factor), "3", "N", "with halving: one in N goes on, with N times the rows or epochs", 2,
      16, "tune" },
    { "by", PLI_OPT_CHOICE, AT(by), "loss", "loss|accuracy|auc|rmse|mae",
      "what makes a trial the best: the mean over the folds; loss: of numbers without one, RMSE", 0, 0, "tune" },
    { "folds", PLI_OPT_I64, AT(folds), "5", "K",
      "how many folds judge a trial, as in cv; with --validation alone: those rows judge it", 2, PLI_FOLDS_MAX,
      "tune" },
    { "split", PLI_OPT_CHOICE, AT(split), "auto", "auto|stratified|rows|ordered", "which rows make a fold, as in cv", 0,
      0, "tune" },
    { "folds-from", PLI_OPT_TEXT, AT(folds_from), NULL, "FILE",
      "read the folds instead: the number or the name of a fold for each row, a line each", 0, 0, "tune" },
    { "group", PLI_OPT_TEXT, AT(group), NULL, "COLUMN",
      "csv, tsv: rows with the same cell in this column stay in one fold, and the column is no feature", 0, 0, "tune" },
    { "trials-file", PLI_OPT_TEXT, AT(file), NULL, "FILE",
      "keep each outcome as a line of JSON; the same command goes on with what the file knows", 0, 0, "tune" },
    { "jobs", PLI_OPT_I64, AT(jobs), NULL, "N",
      "trials that run side by side; default: as many as the cores have room for", 1, 1024, "tune" },
    { "report", PLI_OPT_TEXT, AT(report), NULL, "FILE", "write one HTML page that needs no network", 0, 0, "tune" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

enum { ROWS_LEAST = 100 };

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Options of a single run; of these tune has only --out and --test, for the model of the best trial. */
static const char *const refused[] = { "cache", "checkpoint", "resume", "cluster", NULL };

/* An option that changes nothing is refused. */
static bool check_own(pli_tune *tune) {
    const pli_opts *own = tune->own_opts;
    const bool      folds = pli_opts_is_given(own, "folds") || pli_opts_is_given(own, "split");
    tune->validates = tune->job.validation != NULL && !folds && tune->set.folds_from == NULL && tune->set.group == NULL;
    if (!pli_is(tune->set.search, "halving") &&
        (pli_opts_is_given(own, "halve") || pli_opts_is_given(own, "factor")))
        pli_cli_usage("tune: --halve and --factor say how --search halving goes on; leave them out with --search %s",
                      tune->set.search);
    else if (pli_is(tune->set.halve, "epochs") && !pli_opts_is_given(tune->job_opts, "epochs"))
        pli_cli_usage("tune: --halve epochs: say by --epochs how many epochs the last trials have");
    else if (tune->validates && !pli_is(tune->set.by, "loss"))
        pli_cli_usage("tune: --by %s is refused with --validation alone, which measures the loss; add --folds K",
                      tune->set.by);
    else
        return true;
    return false;
}

static bool check(pli_tune *tune) {
    const char         *transport = tune->job.transport;
    const pli_job_files files = { .report = tune->set.report, .folds_from = tune->set.folds_from,
                                  .trials = tune->set.file, .out = tune->job.out };
    if (pli_job_words_refuse(&pli_command_tune, tune->job_opts, refused) ||
        !pli_job_words_check_data(&pli_command_tune, &tune->job))
        return false;
    if (transport != NULL && !pli_is(transport, "threads")) {
        pli_cli_usage("tune: --transport %s is refused: trials are jobs on threads of one process, which reads the "
                      "data once; take --transport threads", transport);
        return false;
    }
    return pli_job_words_check_alone(&pli_command_tune, &tune->job, "trials are jobs on threads of one process") &&
           pli_job_words_check_files(&pli_command_tune, &tune->job, &files) &&
           pli_folds_check(&pli_command_tune, tune->own_opts, tune->set.group, tune->set.folds_from, tune->set.split,
                           tune->job.in.text_columns) &&
           check_own(tune) && pli_space_make(tune, &tune->space);
}

/* --- before the search -------------------------------------------------------------------------------------------- */

static plait_status read_data(pli_tune *tune, plait_error *err) {
    const pli_fold_words words = { &pli_command_tune, tune->set.group, tune->set.folds_from, tune->set.split,
                                   tune->set.folds,   tune->job.seed };
    PLI_TRY(pli_folds_load(&words, &tune->plan, &tune->groups, &tune->data, err));
    if (tune->validates) return PLAIT_OK;
    return pli_folds_of(&words, tune->plan.train.model, &tune->groups, tune->data, &tune->folds, err);
}

/* As many rungs as trials can climb and as leave the first rung enough rows, or one epoch. */
static plait_status make_halving(pli_tune *tune, plait_error *err) {
    pli_halving *h = &tune->halving;
    const bool   rows_count = pli_is(tune->set.halve, "rows");
    double       left = rows_count ? (double)plait_data_rows(tune->data) / ROWS_LEAST : (double)tune->job.epochs;
    int64_t      trials = tune->set.trials;
    const bool grid = pli_is(tune->set.search, "grid");
    trials = grid ? pli_space_grid(&tune->space, trials)
                  : pli_space_draw(&tune->space, (uint64_t)tune->job.seed, trials);
    if (!grid && trials < 0) return pli_fail(err, PLAIT_ENOMEM, "no memory for %" PRId64 " trials", tune->set.trials);
    if (!grid && trials < tune->set.trials)
        pli_talk_say(&tune->talk, "note: there are only %" PRId64 " different settings; each is tried once", trials);
    if (trials < 0)
        return pli_fail(err, PLAIT_EINVAL, "--search grid: more than %d trials; list fewer values, or take --search "
                        "random", PLI_TUNE_TRIALS_MAX);
    *h = (pli_halving){ .trials = trials, .factor = tune->set.factor, .rungs = 1 };
    if (pli_is(tune->set.search, "halving"))
        for (double n = (double)trials; n >= (double)h->factor && left >= (double)h->factor &&
                                        h->rungs < PLI_TUNE_RUNGS; h->rungs++)
            n /= (double)h->factor, left /= (double)h->factor;
    h->run = pli_calloc((size_t)(trials * h->rungs), sizeof *h->run);
    return h->run != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for %" PRId64 " trials", trials);
}

static void settle_jobs(pli_tune *tune) {
    const int64_t workers = tune->job.workers > 0 ? tune->job.workers : 1, room = pli_cores() / workers;
    int64_t       jobs = tune->set.jobs > 0 ? tune->set.jobs : room;
    if (jobs > tune->halving.trials) jobs = tune->halving.trials;
    tune->at_once = (int32_t)(jobs > 0 ? jobs : 1);
}

/* --- the result --------------------------------------------------------------------------------------------------- */

static plait_status write_report(const pli_tune *tune, int64_t best, int32_t rung, bool whole, plait_error *err) {
    pli_text json = { 0 };
    pli_tune_json(tune, best, rung, whole, &json);
    const plait_status status = pli_page_write(tune->set.report, "tune", &json, err);
    pli_text_free(&json);
    return status;
}

static int show(pli_tune *tune, int64_t best, int32_t rung, bool whole) {
    pli_text    text = { 0 };
    plait_error err = { .rank = -1 };
    if (tune->set.report != NULL && write_report(tune, best, rung, whole, &err) < 0) return pli_cli_fail(&err);
    if (tune->job.json) pli_tune_json(tune, best, rung, whole, &text);
    else if (best >= 0) pli_tune_text(tune, best, &text);
    if (!whole && tune->set.file != NULL)
        pli_talk_say(&tune->talk, "interrupted; the same command goes on with what %s knows", tune->set.file);
    else if (!whole)
        pli_talk_say(&tune->talk, "interrupted; nothing is kept: --trials-file FILE keeps each outcome, so that the "
                     "same command goes on");
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (tune->set.report != NULL) pli_talk_say(&tune->talk, "the page: %s", tune->set.report);
    return pli_cli_end(whole ? PLI_EXIT_DONE : PLI_EXIT_INTERRUPTED);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

/* *checked_out false: a value of --try can never be had, which has been printed. */
static plait_status search(pli_tune *tune, int64_t *best_out, int32_t *rung_out, bool *whole_out, bool *checked_out,
                           plait_error *err) {
    if (tune->job.out != NULL) PLI_TRY(pli_check_replaceable(tune->job.out, " (--out)", err));
    if (tune->set.report != NULL) PLI_TRY(pli_page_check(tune->set.report, err));
    PLI_TRY(read_data(tune, err));
    *checked_out = pli_tune_check(tune);
    if (!*checked_out) return PLAIT_OK;
    PLI_TRY(make_halving(tune, err));
    PLI_TRY(pli_tune_lines_open(tune, err));
    if (tune->job.out != NULL) pli_done_remove(tune->job.out); /* of an earlier run */
    settle_jobs(tune);
    pli_signals_begun(&tune->signals);
    PLI_TRY(pli_tune_search(tune, err));
    *best_out = pli_halving_best(&tune->halving, rung_out);
    *whole_out = __atomic_load_n(&tune->signals.stop, __ATOMIC_ACQUIRE) == 0;
    if (!*whole_out) return PLAIT_OK;
    if (*best_out < 0)
        return pli_fail(err, PLAIT_EINVAL, "every trial failed, the first: %s", tune->halving.run[0].error);
    if (tune->job.out != NULL || tune->job.test != NULL) PLI_TRY(pli_tune_refit(tune, *best_out, err));
    *whole_out = tune->refit.interrupted <= 0;
    return PLAIT_OK;
}

static void say_unbegun(void *user, const char *what) {
    pli_tune *tune = user;
    pli_talk_say(&tune->talk, "%s while the data were read; nothing was tried", what);
}

static int run(pli_tune *tune) {
    plait_error err = { .rank = -1 };
    int64_t     best = -1;
    int32_t     rung = 0;
    bool        whole = false, checked = false;
    if (!pli_tune_check(tune)) return PLI_EXIT_USAGE;
    if (!pli_train_plan_make(&tune->job, tune->job_opts, &tune->talk.log, &tune->plan)) return PLI_EXIT_USAGE;
    if (pli_signals_open(&tune->signals, &tune->talk, say_unbegun, tune, &err) < 0) return pli_cli_fail(&err);
    const plait_status status = search(tune, &best, &rung, &whole, &checked, &err);
    pli_signals_ended(&tune->signals);
    const int code = status < 0 ? pli_cli_fail(&err) : checked ? show(tune, best, rung, whole) : PLI_EXIT_USAGE;
    pli_signals_close(&tune->signals);
    return code;
}

static int tune_command(int argc, char *const *argv) {
    pli_tune *tune = pli_calloc(1, sizeof *tune);
    int       code = PLI_EXIT_USAGE;
    if (tune == NULL) return pli_cli_usage("out of memory");
    pthread_mutex_init(&tune->mutex, NULL);
    pthread_cond_init(&tune->changed, NULL);
    pli_record_init(&tune->refit);
    tune->argc = argc;
    tune->argv = argv;
    tune->lines = -1;
    if (pli_job_words_read(&pli_command_tune, argc, argv, &tune->set, &tune->own_opts, &tune->job, &tune->job_opts,
                           &code) && check(tune)) {
        pli_talk_open(&tune->talk, tune->job.quiet);
        code = run(tune);
        pli_talk_close(&tune->talk);
    }
    if (tune->lines >= 0) close(tune->lines);
    plait_data_destroy(&tune->data);
    pli_folds_free(&tune->folds);
    pli_fold_groups_free(&tune->groups);
    pli_free(tune->halving.run);
    pli_space_free(&tune->space);
    pli_opts_free(&tune->job_opts);
    pli_opts_free(&tune->own_opts);
    pthread_cond_destroy(&tune->changed);
    pthread_mutex_destroy(&tune->mutex);
    pli_free(tune);
    return code;
}

const pli_command pli_command_tune = {
    .name = "tune",
    .usage = "tune [options of train] [--try NAME=LOW..HIGH ...] [--trials N] [--trials-file FILE]",
    .summary = "search for the options with which the model is best on rows that it has not seen",
    .details = "Tries settings of the model that train's options describe, each judged by folds as cv has them, or by "
               "--validation. By default all trials begin with a small share of the rows, and one in three goes on "
               "with three times as many (asynchronous successive halving). The best is trained on all rows, measured "
               "on --test and saved by --out.\n\n"
               "Which values a trial has depends on --seed alone. With --trials-file each outcome is kept at once: "
               "after Ctrl-C, which exits with 75, or a kill, the same command goes on.",
    .rows = rows,
    .run = tune_command,
};
