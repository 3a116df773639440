/* tune - searches for the options with which a job's model is best on rows that it has not seen. This file reads the
 * options and shows the result. */
#include "cli/tune.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/record.h"
#include "learn/learn.h"
#include "learn/learner.h"

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
      "read the folds instead: the number of a fold for each row, a line each", 0, 0, "tune" },
    { "trials-file", PLI_OPT_TEXT, AT(file), NULL, "FILE",
      "keep each outcome as a line of JSON; the same command goes on with what the file knows", 0, 0, "tune" },
    { "jobs", PLI_OPT_I64, AT(jobs), NULL, "N",
      "trials that run side by side; default: as many as the cores have room for", 1, 1024, "tune" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

enum { ROWS_LEAST = 100, SHOWN = 10 };

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Options of a single run; of these tune has only --out and --test, for the model of the best trial. */
static const char *const refused[] = { "cache", "checkpoint", "resume", "cluster", NULL };

/* An option that changes nothing is refused. */
static bool check_own(pli_tune *tune) {
    const pli_opts *own = tune->own_opts;
    const bool      folds = pli_opts_is_given(own, "folds") || pli_opts_is_given(own, "split");
    tune->validates = tune->job.validation != NULL && !folds && tune->set.folds_from == NULL;
    if (tune->set.folds_from != NULL && folds)
        pli_cli_usage("tune: --folds-from says which rows make a fold, and how many there are; leave --folds and "
                      "--split out");
    else if (!pli_is(tune->set.search, "halving") &&
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
    const char *transport = tune->job.transport;
    if (pli_job_words_refuse(&pli_command_tune, tune->job_opts, refused) ||
        !pli_job_words_check_data(&pli_command_tune, &tune->job))
        return false;
    if (transport != NULL && !pli_is(transport, "threads")) {
        pli_cli_usage("tune: --transport %s is refused: trials are jobs on threads of one process, which reads the "
                      "data once; take --transport threads", transport);
        return false;
    }
    return pli_job_words_check_alone(&pli_command_tune, &tune->job, "trials are jobs on threads of one process") &&
           check_own(tune) && pli_space_make(tune, &tune->space);
}

/* Reads the options with value `at` of each list and an end of each range (0: the low one), as a trial would, so that a
 * value that an option refuses is refused before the work. */
static bool check_value(pli_tune *tune, int64_t at) {
    char               words[PLI_TUNE_RANGES][PLI_TUNE_WORD + 48];
    char             **argv = pli_calloc((size_t)(tune->argc + PLI_TUNE_RANGES + 1), sizeof *argv);
    pli_train_settings job;
    pli_tune_settings  own;
    pli_opts          *job_opts = NULL, *own_opts = NULL;
    int                argc = tune->argc, code;
    bool               ok = argv != NULL;
    for (int i = 0; ok && i < argc; i++) argv[i] = tune->argv[i];
    for (int32_t i = 0; ok && i < tune->space.n; i++) {
        const pli_range *r = &tune->space.range[i];
        if (r->n > 0)
            snprintf(words[i], sizeof words[i], "--%s=%s", r->name, pli_range_word(r, at < r->n ? at : r->n - 1));
        else snprintf(words[i], sizeof words[i], "--%s=%.17g", r->name, at > 0 ? r->high : r->low);
        argv[argc++] = words[i];
    }
    ok = ok && pli_job_words_read(&pli_command_tune, argc, argv, &own, &own_opts, &job, &job_opts, &code);
    if (ok) ok = pli_train_plan_make(&job, job_opts, NULL, &tune->plan);
    pli_opts_free(&job_opts);
    pli_opts_free(&own_opts);
    pli_free(argv);
    return ok;
}

static bool check_values(pli_tune *tune) {
    int64_t most = 2; /* the ends of a range */
    for (int32_t i = 0; i < tune->space.n; i++)
        if (tune->space.range[i].n > most) most = tune->space.range[i].n;
    for (int64_t at = 0; at < most; at++)
        if (!check_value(tune, at)) return false;
    return true;
}

/* --- before the search -------------------------------------------------------------------------------------------- */

static plait_status read_data(pli_tune *tune, plait_error *err) {
    plait_data_opts files = tune->plan.data;
    PLI_TRY(pli_train_reads(&tune->plan.train, &files, err));
    files.threads = (int32_t)pli_cores();
    PLI_TRY(plait_data_read(&files, &tune->data, err));
    if (plait_data_labels(tune->data) != plait_data_rows(tune->data))
        return pli_fail(err, PLAIT_EINVAL, "model %s is refused with tune: the windows of a text are no rows of their "
                        "own", tune->plan.train.model);
    if (tune->validates) return PLAIT_OK;
    if (tune->set.folds_from != NULL)
        return pli_folds_read(tune->set.folds_from, plait_data_rows(tune->data), &tune->folds, err);
    return pli_folds_make(tune->data, tune->set.split, (int32_t)tune->set.folds, (uint64_t)tune->job.seed, &tune->folds,
                          err);
}

/* As many rungs as trials can climb and as leave the first rung enough rows, or one epoch. */
static plait_status make_halving(pli_tune *tune, plait_error *err) {
    pli_halving *h = &tune->halving;
    const bool   rows_count = pli_is(tune->set.halve, "rows");
    double       left = rows_count ? (double)plait_data_rows(tune->data) / ROWS_LEAST : (double)tune->job.epochs;
    int64_t      trials = tune->set.trials;
    if (pli_is(tune->set.search, "grid")) trials = pli_space_grid(&tune->space, trials);
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

static int64_t count_runs(const pli_tune *tune) {
    int64_t n = 0;
    for (int64_t i = 0; i < tune->halving.trials * tune->halving.rungs; i++)
        n += tune->halving.run[i].state == PLI_TUNE_DONE;
    return n;
}

static void add_json(const pli_tune *tune, int64_t best, int32_t rung, bool whole, pli_text *text) {
    const pli_halving *h = &tune->halving;
    pli_json_begin(text);
    pli_json_text(text, "model", pli_train_model(&tune->job, tune->job_opts));
    pli_json_text(text, "search", tune->set.search);
    pli_json_text(text, "by", tune->set.by);
    pli_json_i64(text, "trials", h->trials);
    pli_json_i64(text, "rungs", h->rungs);
    pli_json_i64(text, "runs", count_runs(tune));
    pli_json_bool(text, "interrupted", !whole);
    if (best >= 0) {
        pli_json_object(text, "best");
        pli_tune_json_trial(tune, best, rung, text);
        pli_json_end(text);
    } else {
        pli_json_null(text, "best");
    }
    pli_json_f64(text, "test_loss", tune->refit.test_loss);
    pli_json_f64(text, "test_accuracy", tune->refit.test_accuracy);
    pli_json_f64(text, "test_rmse", tune->refit.test_rmse);
    pli_json_text(text, "out", tune->job.out);
    pli_json_list(text, "runs_done");
    for (int64_t t = 0; t < h->trials; t++)
        for (int32_t r = 0; r < h->rungs; r++) {
            if (pli_halving_run(h, t, r)->state != PLI_TUNE_DONE) continue;
            pli_json_object(text, NULL);
            pli_tune_json_trial(tune, t, r, text);
            pli_json_end(text);
        }
    pli_json_list_end(text);
    pli_json_end(text);
    pli_text_add(text, "\n");
}

/* The next trial by rung, from the last down, and by loss, behind (rung, trial); false: there is none. */
static bool next_shown(const pli_halving *h, int32_t *rung, int64_t *trial) {
    for (; *rung >= 0; --*rung, *trial = -1) {
        const double from = *trial >= 0 ? pli_halving_run(h, *trial, *rung)->loss : -(double)INFINITY;
        int64_t      next = -1;
        for (int64_t t = 0; t < h->trials; t++) {
            const pli_tune_run *run = pli_halving_run(h, t, *rung);
            if (run->state != PLI_TUNE_DONE || !isfinite(run->loss)) continue;
            if (run->loss < from || (run->loss <= from && t <= *trial)) continue;
            if (next < 0 || run->loss < pli_halving_run(h, next, *rung)->loss) next = t;
        }
        if ((*trial = next) >= 0) return true;
    }
    return false;
}

static void add_text(const pli_tune *tune, int64_t best, pli_text *text) {
    const pli_halving *h = &tune->halving;
    int32_t            rung = h->rungs - 1;
    int64_t            trial = -1;
    pli_text_add(text, "%7s %7s %12s %12s  options\n", "trial", tune->set.halve, tune->set.by, "deviation");
    for (int i = 0; i < SHOWN && next_shown(h, &rung, &trial); i++) {
        const pli_tune_run *run = pli_halving_run(h, trial, rung);
        pli_text_add(text, "%7" PRId64 " %5.1f %% %12.6g ", trial + 1, 100 * pli_halving_share(h, rung),
                     fabs(run->loss));
        if (isfinite(run->deviation)) pli_text_add(text, "%12.4g  ", run->deviation);
        else pli_text_add(text, "%12s  ", "-");
        pli_tune_words(tune, trial, text);
        pli_text_add(text, "\n");
    }
    pli_text_add(text, "\nbest      ");
    pli_tune_words(tune, best, text);
    pli_text_add(text, "\n");
    if (isfinite(tune->refit.test_loss)) pli_text_add(text, "test loss %.6g\n", tune->refit.test_loss);
    if (isfinite(tune->refit.test_accuracy)) pli_text_add(text, "accuracy  %.6g\n", tune->refit.test_accuracy);
    if (isfinite(tune->refit.test_rmse)) pli_text_add(text, "test RMSE %.6g\n", tune->refit.test_rmse);
    if (tune->job.out != NULL) pli_text_add(text, "model     %s\n", tune->job.out);
}

static int show(pli_tune *tune, int64_t best, int32_t rung, bool whole) {
    pli_text text = { 0 };
    if (tune->job.json) add_json(tune, best, rung, whole, &text);
    else if (best >= 0) add_text(tune, best, &text);
    if (!whole && tune->set.file != NULL)
        pli_talk_say(&tune->talk, "interrupted; the same command goes on with what %s knows", tune->set.file);
    else if (!whole)
        pli_talk_say(&tune->talk, "interrupted; nothing is kept: --trials-file FILE keeps each outcome, so that the "
                     "same command goes on");
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    return pli_cli_end(whole ? PLI_EXIT_DONE : PLI_EXIT_INTERRUPTED);
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static plait_status search(pli_tune *tune, int64_t *best_out, int32_t *rung_out, bool *whole_out, plait_error *err) {
    if (tune->job.out != NULL) PLI_TRY(pli_check_replaceable(tune->job.out, " (--out)", err));
    PLI_TRY(read_data(tune, err));
    PLI_TRY(make_halving(tune, err));
    PLI_TRY(pli_tune_lines_open(tune, err));
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
    bool        whole = false;
    if (!check_values(tune)) return PLI_EXIT_USAGE;
    if (!pli_train_plan_make(&tune->job, tune->job_opts, &tune->talk.log, &tune->plan)) return PLI_EXIT_USAGE;
    if (pli_signals_open(&tune->signals, &tune->talk, say_unbegun, tune, &err) < 0) return pli_cli_fail(&err);
    const plait_status status = search(tune, &best, &rung, &whole, &err);
    pli_signals_ended(&tune->signals);
    const int code = status < 0 ? pli_cli_fail(&err) : show(tune, best, rung, whole);
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
    pli_free(tune->halving.run);
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
