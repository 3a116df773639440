/* Runs trials: each is the job with a trial's values, trained on a share of the rows of each fold, one fold after the
 * other, and judged by the mean over the folds. Trials run side by side, each on a thread of the pool. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/record.h"
#include "cli/tune.h"
#include "comm/comm.h"
#include "watch/events.h"

/* --- a job -------------------------------------------------------------------------------------------------------- */

/* One training: its options, and what comes of it. */
typedef struct fit {
    pli_tune          *tune;
    pli_train_settings job;
    pli_opts          *opts, *own_opts;
    pli_tune_settings  own;
    pli_train_plan     plan;
    const char        *out; /* NULL: the model is not saved */
    plait_report       report;
    bool               unjudged; /* its report lacks the figure of --by */
} fit;

static plait_status save(fit *f, const plait_model *model, plait_error *err) {
    char id[17];
    PLI_TRY(plait_model_save(model, f->out, err));
    f->tune->saved = true;
    pli_run_id(id);
    return pli_done_write(f->out, id, f->report.clocks, f->report.model_hash, NULL, err);
}

static plait_status work(plait_comm *comm, void *user) {
    fit         *f = user;
    plait_report report;
    plait_model *model = NULL;
    pli_record_init(&report);
    pli_signals_enter(&f->tune->signals, comm);
    plait_status status = plait_train(comm, &f->plan.train, &report, &model);
    pli_signals_leave(&f->tune->signals, comm);
    if (status >= 0 && pli_comm_leads(comm)) {
        plait_error err = { .rank = -1 };
        f->report = report;
        if (f->out != NULL && !report.interrupted) status = save(f, model, &err);
        if (status < 0) f->tune->failed = err;
    }
    plait_model_destroy(&model);
    return status;
}

/* Reads the options again, with the trial's behind them: the last of a name counts. */
static bool open_fit(pli_tune *tune, int64_t trial, fit *f) {
    const int32_t n = tune->space.n;
    const int     argc = tune->argc + 2 * n;
    char        **argv = pli_calloc((size_t)argc + 1, sizeof *argv);
    char(*words)[2][PLI_TUNE_WORD + 8] = pli_calloc((size_t)n + 1, sizeof *words);
    int  code;
    bool ok = argv != NULL && words != NULL;
    *f = (fit){ .tune = tune };
    for (int i = 0; ok && i < tune->argc; i++) argv[i] = tune->argv[i];
    for (int32_t i = 0; ok && i < n; i++) {
        snprintf(words[i][0], sizeof words[i][0], "--%s", tune->space.range[i].name);
        pli_space_value(&tune->space, (uint64_t)tune->job.seed, trial, i, words[i][1]);
        argv[tune->argc + 2 * i] = words[i][0];
        argv[tune->argc + 2 * i + 1] = words[i][1];
    }
    ok = ok && pli_job_words_read(&pli_command_tune, argc, argv, &f->own, &f->own_opts, &f->job, &f->opts, &code);
    pli_free(argv);
    pli_free(words);
    return ok && pli_train_plan_make(&f->job, f->opts, NULL, &f->plan);
}

static void close_fit(fit *f) {
    pli_opts_free(&f->opts);
    pli_opts_free(&f->own_opts);
}

static plait_status train(fit *f, const plait_data *rows, const plait_data *held_out, plait_error *err) {
    plait_comm_opts   comm = f->plan.comm;
    plait_train_opts *t = &f->plan.train;
    const int64_t     cores = pli_cores(), workers = f->job.workers > 0 ? f->job.workers : 1;
    const int64_t     room = cores / (workers * f->tune->at_once);
    comm.transport = "threads";
    comm.log = f->out != NULL ? &f->tune->talk.log : NULL;
    if (f->job.in.threads == 0) comm.threads = (int32_t)(room > 0 ? room : 1);
    t->data = NULL;
    t->checkpoint = t->resume = NULL;
    t->memory = rows;
    t->test_memory = held_out;
    if (held_out != NULL) t->test = NULL;
    t->stop = &f->tune->signals.stop;
    pli_record_init(&f->report);
    return plait_comm_run(&comm, work, f, err);
}

/* --- a trial ------------------------------------------------------------------------------------------------------ */

/* The figure that the search makes least; one that should be great is turned over. */
static double judge(const pli_tune *tune, const plait_report *r) {
    pli_cv_fold fold = { .report = *r };
    const char *by = tune->set.by;
    char        name[40];
    if (tune->validates) return r->validation_loss;
    if (!pli_is(by, "loss")) {
        snprintf(name, sizeof name, "test_%s", by);
        const double x = pli_cv_value(&fold, name);
        return pli_is(by, "accuracy") || pli_is(by, "auc") ? -x : x;
    }
    return isfinite(r->test_loss) ? r->test_loss : r->test_rmse;
}

/* The held-out rows were measured, but by other figures than --by's (classes have no rmse): no trial can be judged. */
static plait_status check_by(fit *f, double loss, plait_error *err) {
    static const char *const names[] = { "accuracy", "auc", "rmse", "mae" };
    const plait_report      *r = &f->report;
    const pli_cv_fold        fold = { .report = *r };
    pli_text                 had = { 0 };
    if (isfinite(loss) || f->tune->validates || pli_is(f->tune->set.by, "loss")) return PLAIT_OK;
    if (isfinite(r->test_loss) || isfinite(r->test_rmse)) pli_text_add(&had, "loss");
    for (size_t i = 0; had.length > 0 && i < sizeof names / sizeof *names; i++) {
        char name[40];
        snprintf(name, sizeof name, "test_%s", names[i]);
        if (isfinite(pli_cv_value(&fold, name))) pli_text_add(&had, ", %s", names[i]);
    }
    f->unjudged = had.length > 0;
    const plait_status status =
        !f->unjudged ? PLAIT_OK
                     : pli_fail(err, PLAIT_EINVAL, "tune: --by %s: these rows and this model have none; they have %s",
                                f->tune->set.by, had.data);
    pli_text_free(&had);
    return status;
}

static plait_status run_fold(fit *f, int32_t fold, double share, double *loss_out, plait_error *err) {
    pli_tune    *tune = f->tune;
    plait_data  *rows = NULL, *held_out = NULL;
    const double of_rows = pli_is(tune->set.halve, "rows") ? share : 1;
    plait_status status = pli_folds_take_share(&tune->folds, tune->data, tune->validates ? -1 : fold, of_rows,
                                               (uint64_t)tune->job.seed, &rows, err);
    if (status >= 0 && !tune->validates)
        status = pli_folds_take(&tune->folds, tune->data, fold, true, &held_out, err);
    if (status >= 0) status = train(f, rows, held_out, err);
    *loss_out = judge(tune, &f->report);
    if (status >= 0 && f->report.interrupted <= 0) status = check_by(f, *loss_out, err);
    plait_data_destroy(&rows);
    plait_data_destroy(&held_out);
    return status;
}

/* Runs all folds; the mean of their losses, and its deviation. *stopped: a signal came. */
static plait_status run_folds(fit *f, double share, pli_tune_run *run, bool *stopped, plait_error *err) {
    const int32_t n = f->tune->validates ? 1 : f->tune->folds.n;
    double        sum = 0, squares = 0;
    if (pli_is(f->tune->set.halve, "epochs") && share < 1)
        f->plan.train.epochs = (int64_t)fmax(1, round(share * (double)f->job.epochs));
    for (int32_t fold = 0; fold < n; fold++) {
        double loss;
        PLI_TRY(run_fold(f, fold, share, &loss, err));
        *stopped = f->report.interrupted || __atomic_load_n(&f->tune->signals.stop, __ATOMIC_ACQUIRE) != 0;
        if (*stopped) return PLAIT_OK;
        sum += loss;
        squares += loss * loss;
    }
    run->loss = sum / n;
    run->deviation = n > 1 ? sqrt(fmax(0, squares - sum * sum / n) / (n - 1)) : (double)NAN;
    return PLAIT_OK;
}

static void tell(pli_tune *tune, int64_t trial, int32_t rung, const pli_tune_run *run) {
    pli_text      words = { 0 };
    int32_t       top;
    const int64_t best = pli_halving_best(&tune->halving, &top);
    pli_tune_words(tune, trial, &words);
    if (run->error[0] != '\0')
        pli_talk_say(&tune->talk, "trial %" PRId64 " (%s) failed: %s", trial + 1, words.data, run->error);
    else
        pli_talk_say(&tune->talk, "trial %" PRId64 " of %" PRId64 ", %.3g %% of the %s: %s %.6g (%s)%s", trial + 1,
                     tune->halving.trials, 100 * pli_halving_share(&tune->halving, rung), tune->set.halve, tune->set.by,
                     fabs(run->loss), words.data, best == trial && top == rung ? ", the best" : "");
    pli_text_free(&words);
}

/* false: a signal came, and the trial counts as not begun. *refused_out: why no trial can be judged. */
static bool run_trial(pli_tune *tune, int64_t trial, int32_t rung, pli_tune_run *run, plait_error *refused_out) {
    fit            *f = pli_calloc(1, sizeof *f);
    plait_error     err = { .rank = -1 };
    bool            stopped = false;
    const uint64_t  begun = pli_now_ns();
    plait_status    status = f != NULL ? PLAIT_OK : pli_fail(&err, PLAIT_ENOMEM, "no memory for a trial");
    if (status >= 0 && !open_fit(tune, trial, f)) status = pli_fail(&err, PLAIT_EINVAL, "its options are refused");
    if (status >= 0) status = run_folds(f, pli_halving_share(&tune->halving, rung), run, &stopped, &err);
    run->seconds = (double)(pli_now_ns() - begun) * 1e-9;
    if (status < 0) snprintf(run->error, sizeof run->error, "%s", err.text);
    else if (!isfinite(run->loss)) snprintf(run->error, sizeof run->error, "it has no finite %s", tune->set.by);
    if (status < 0 || !isfinite(run->loss)) run->loss = (double)INFINITY;
    if (f != NULL && f->unjudged) *refused_out = err;
    if (f != NULL) close_fit(f);
    pli_free(f);
    return !stopped;
}

/* --- the search --------------------------------------------------------------------------------------------------- */

/* Waits for a trial that may run. false: there is none. The caller holds the mutex. */
static bool take_trial(pli_tune *tune, int64_t *trial, int32_t *rung) {
    bool ended = false;
    for (;;) {
        if (tune->failed.code < 0 || __atomic_load_n(&tune->signals.stop, __ATOMIC_ACQUIRE) != 0) return false;
        if (pli_halving_next(&tune->halving, trial, rung, &ended)) return true;
        if (ended) return false;
        pthread_cond_wait(&tune->changed, &tune->mutex);
    }
}

static void run_trials(void *user, int64_t number, int32_t thread) {
    pli_tune *tune = user;
    int64_t   trial;
    int32_t   rung;
    (void)number;
    (void)thread;
    pthread_mutex_lock(&tune->mutex);
    while (take_trial(tune, &trial, &rung)) {
        pli_tune_run run = { .state = PLI_TUNE_DONE, .loss = (double)INFINITY, .deviation = (double)NAN };
        pthread_mutex_unlock(&tune->mutex);
        plait_error refused = { .rank = -1 };
        const bool  whole = run_trial(tune, trial, rung, &run, &refused);
        pthread_mutex_lock(&tune->mutex);
        if (refused.code < 0) {
            tune->failed = refused;
            break;
        }
        if (whole) run.order = ++tune->ended;
        *pli_halving_run(&tune->halving, trial, rung) = whole ? run : (pli_tune_run){ .state = PLI_TUNE_NONE };
        if (whole && pli_tune_lines_add(tune, trial, rung, &tune->failed) >= 0) tell(tune, trial, rung, &run);
        pthread_cond_broadcast(&tune->changed);
    }
    pthread_cond_broadcast(&tune->changed);
    pthread_mutex_unlock(&tune->mutex);
}

plait_status pli_tune_search(pli_tune *tune, plait_error *err) {
    pli_pool *pool = NULL;
    PLI_TRY(pli_pool_create(tune->at_once, &pool, err));
    pli_pool_for(pool, tune->at_once, run_trials, tune);
    pli_pool_destroy(&pool);
    if (tune->failed.code < 0) *err = tune->failed;
    return tune->failed.code < 0 ? tune->failed.code : PLAIT_OK;
}

plait_status pli_tune_refit(pli_tune *tune, int64_t trial, plait_error *err) {
    fit *f = pli_calloc(1, sizeof *f);
    if (f == NULL) return pli_fail(err, PLAIT_ENOMEM, "no memory for a model");
    plait_status status = open_fit(tune, trial, f) ? PLAIT_OK : pli_fail(err, PLAIT_EINVAL, "the options are refused");
    f->out = tune->job.out;
    tune->at_once = 1;
    if (status >= 0) status = train(f, tune->data, NULL, err);
    if (tune->failed.code < 0) *err = tune->failed;
    tune->refit = f->report;
    close_fit(f);
    pli_free(f);
    return status;
}
