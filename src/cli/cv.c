/* cv - cross-validation: for each fold, a model that has not seen it, and how good that model is on it. The data are
 * read once. Folds are run side by side, each as a job of its own on threads of this process. */
#include "cli/cv.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/job_words.h"
#include "cli/record.h"
#include "cli/signals.h"
#include "comm/comm.h"
#include "watch/page/page.h"

typedef struct cv_settings {
    int64_t     folds, jobs;
    const char *split, *folds_from, *group, *report;
} cv_settings;

typedef struct cv_run {
    cv_settings        set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    pli_train_plan     plan;
    pli_talk           talk;
    pli_signals        signals;
    plait_data        *data;
    pli_folds          folds;
    pli_fold_groups    groups; /* of --group */
    pli_cv             result;
    pthread_mutex_t    mutex; /* guards result.by_class */
} cv_run;

#define AT(field) offsetof(cv_settings, field)

static const pli_opt rows[] = {
    { "folds", PLI_OPT_I64, AT(folds), "5", "K", "how many folds; each is held out once", 2, PLI_FOLDS_MAX, "cv" },
    { "split", PLI_OPT_CHOICE, AT(split), "auto", "auto|stratified|rows|ordered",
      "which rows make a fold: stratified: each class is spread evenly over the folds; rows: at random, by --seed; "
      "ordered: the data's order is time, and each fold is judged by a model of the rows before it; auto: stratified "
      "for classes, else rows",
      0, 0, "cv" },
    { "folds-from", PLI_OPT_TEXT, AT(folds_from), NULL, "FILE",
      "read the folds instead: the number or the name of a fold for each row, a line each", 0, 0,
      "cv" },
    { "group", PLI_OPT_TEXT, AT(group), NULL, "COLUMN",
      "csv, tsv: rows with the same cell in this column stay in one fold, and the column is no feature", 0, 0, "cv" },
    { "jobs", PLI_OPT_I64, AT(jobs), NULL, "N",
      "folds that run side by side; default: as many as the cores have room for", 1, 1024, "cv" },
    { "report", PLI_OPT_TEXT, AT(report), NULL, "FILE", "write one HTML page that needs no network", 0, 0, "cv" },
    { NULL, PLI_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0, NULL },
};

/* --- options ------------------------------------------------------------------------------------------------------ */

/* Options that make sense for a single run only; cv judges models, and keeps none. */
static const char *const refused[] = { "test", "out", "cache", "checkpoint", "resume", "cluster", NULL };

static bool check(const cv_run *run) {
    const char         *transport = run->job.transport;
    const pli_job_files files = { .report = run->set.report, .folds_from = run->set.folds_from };
    if (pli_job_words_refuse(&pli_command_cv, run->job_opts, refused) ||
        !pli_job_words_check_data(&pli_command_cv, &run->job))
        return false;
    if (transport != NULL && !pli_is(transport, "threads")) {
        pli_cli_usage("cv: --transport %s is refused: folds are jobs on threads of one process, which reads the data "
                      "once; take --transport threads", transport);
        return false;
    }
    if (!pli_job_words_check_alone(&pli_command_cv, &run->job, "folds are jobs on threads of one process") ||
        !pli_job_words_check_files(&pli_command_cv, &run->job, &files))
        return false;
    return pli_folds_check(&pli_command_cv, run->own_opts, run->set.group, run->set.folds_from, run->set.split,
                           run->job.in.text_columns);
}

/* --- a fold ------------------------------------------------------------------------------------------------------- */

/* One job: a fold's data, and what its ranks leave. */
typedef struct fold_job {
    cv_run          *run;
    int32_t          number;
    plait_train_opts train;
    plait_data      *trained, *held_out;
    plait_model     *model;
} fold_job;

static plait_status work(plait_comm *comm, void *user) {
    fold_job    *job = user;
    plait_report report;
    plait_model *model = NULL;
    pli_record_init(&report);
    pli_signals_enter(&job->run->signals, comm);
    const plait_status status = plait_train(comm, &job->train, &report, &model);
    pli_signals_leave(&job->run->signals, comm);
    if (status >= 0 && pli_comm_leads(comm)) {
        job->run->result.fold[job->number].report = report;
        job->model = model;
        model = NULL;
    }
    plait_model_destroy(&model);
    return status;
}

static plait_status count_classes(fold_job *job, plait_error *err) {
    pli_by_class by = { 0 };
    PLI_TRY(pli_by_class_count(job->model, job->held_out, &by, err));
    pthread_mutex_lock(&job->run->mutex);
    const plait_status status = pli_by_class_add(&job->run->result.by_class, &by, err);
    pthread_mutex_unlock(&job->run->mutex);
    pli_by_class_free(&by);
    return status;
}

static void tell(cv_run *run, const pli_cv_fold *fold, int32_t number) {
    const double loss = fold->report.test_loss, rmse = fold->report.test_rmse;
    if (isfinite(loss))
        pli_talk_say(&run->talk, "fold %" PRId32 " of %" PRId32 ": loss %.6g on %" PRId64 " rows held out", number + 1,
                     run->folds.n, loss, fold->held_out);
    else
        pli_talk_say(&run->talk, "fold %" PRId32 " of %" PRId32 ": RMSE %.6g on %" PRId64 " rows held out", number + 1,
                     run->folds.n, rmse, fold->held_out);
}

static plait_status run_job(fold_job *job, pli_cv_fold *fold, plait_error *err) {
    cv_run         *run = job->run;
    plait_comm_opts comm = run->plan.comm;
    PLI_TRY(pli_folds_take(&run->folds, run->data, job->number, false, &job->trained, err));
    PLI_TRY(pli_folds_take(&run->folds, run->data, job->number, true, &job->held_out, err));
    fold->held_out = plait_data_rows(job->held_out);
    comm.transport = "threads"; /* the default of a process that a launcher has started is mpi */
    if (job->number > 0) comm.log = NULL; /* what it would say of the data was said of the first fold's */
    job->train = run->plan.train;
    job->train.data = job->train.test = NULL;
    job->train.checkpoint = job->train.resume = NULL; /* of a single run; a variable or a config file may name them */
    job->train.memory = job->trained;
    job->train.test_memory = job->held_out;
    job->train.stop = &run->signals.stop;
    PLI_TRY(plait_comm_run(&comm, work, job, err));
    if (fold->report.interrupted) return PLAIT_OK;
    if (run->job.json || run->set.report != NULL)
        PLI_TRY(pli_seen_make(job->model, job->held_out, isfinite(fold->report.test_rmse), &fold->seen, err));
    return count_classes(job, err);
}

static void run_fold(void *user, int64_t number, int32_t thread) {
    cv_run      *run = user;
    pli_cv_fold *fold = &run->result.fold[number];
    fold_job     job = { .run = run, .number = (int32_t)number };
    (void)thread;
    fold->error = (plait_error){ .rank = -1 };
    if (__atomic_load_n(&run->signals.stop, __ATOMIC_ACQUIRE) != 0) return;
    const plait_status status = run_job(&job, fold, &fold->error);
    fold->done = status >= 0 && !fold->report.interrupted;
    if (fold->done) tell(run, fold, (int32_t)number);
    plait_model_destroy(&job.model);
    plait_data_destroy(&job.trained);
    plait_data_destroy(&job.held_out);
}

/* --- all folds ---------------------------------------------------------------------------------------------------- */

static pli_fold_words words_of(const cv_run *run) {
    return (pli_fold_words){ &pli_command_cv, run->set.group, run->set.folds_from, run->set.split, run->set.folds,
                             run->job.seed };
}

static plait_status make_folds(cv_run *run, plait_error *err) {
    const int64_t n = plait_data_rows(run->data);
    const pli_fold_words words = words_of(run);
    const char          *model = run->plan.train.model;
    PLI_TRY(pli_folds_of(&words, model, &run->groups, run->data, &run->folds, err));
    pli_cv *cv = &run->result;
    cv->model = model;
    cv->way = run->set.folds_from != NULL ? run->set.folds_from
              : run->set.group != NULL    ? "groups"
                                          : pli_folds_way(run->data, pli_folds_settle(model, run->set.split));
    cv->group = run->set.group;
    cv->rows = n;
    cv->features = plait_data_features(run->data);
    cv->n = run->folds.n;
    cv->name = run->folds.name;
    cv->seed = (uint64_t)run->job.seed;
    cv->fold = pli_calloc((size_t)cv->n, sizeof *cv->fold);
    for (int32_t f = 0; cv->fold != NULL && f < cv->n; f++) pli_record_init(&cv->fold[f].report);
    return cv->fold != NULL ? PLAIT_OK : pli_fail(err, PLAIT_ENOMEM, "no memory for %d folds", cv->n);
}

/* Sets how many folds run side by side, and the threads of each worker. */
static int32_t settle_jobs(cv_run *run) {
    const int64_t cores = pli_cores(), workers = run->job.workers > 0 ? run->job.workers : 1;
    const int64_t room = cores / workers > 0 ? cores / workers : 1;
    int64_t       jobs = run->set.jobs > 0 ? run->set.jobs : room;
    if (jobs > run->folds.n) jobs = run->folds.n;
    if (run->job.in.threads == 0) run->plan.comm.threads = (int32_t)(room / jobs > 0 ? room / jobs : 1);
    return (int32_t)jobs;
}

/* The first fold that failed; NULL: none. */
static const plait_error *failure_of(const pli_cv *cv) {
    for (int32_t f = 0; f < cv->n; f++)
        if (cv->fold[f].error.code < 0) return &cv->fold[f].error;
    return NULL;
}

static bool all_done(const pli_cv *cv) {
    for (int32_t f = 0; f < cv->n; f++)
        if (!cv->fold[f].done) return false;
    return true;
}

static plait_status write_report(const cv_run *run, plait_error *err) {
    pli_text json = { 0 };
    pli_cv_json(&run->result, &json);
    const plait_status status = pli_page_write(run->set.report, "cv", &json, err);
    pli_text_free(&json);
    return status;
}

static int show(cv_run *run) {
    pli_text      text = { 0 };
    plait_error   err = { .rank = -1 };
    pli_cv       *cv = &run->result;
    const bool    whole = all_done(cv);
    pli_cv_figure figures[PLI_CV_FIGURES];
    const bool    some = whole || pli_cv_figures(cv, figures) > 0;
    if (!whole)
        pli_talk_say(&run->talk, some ? "interrupted; the folds that were finished are shown"
                                      : "interrupted; no fold was finished");
    if (!some && !run->job.json) return PLI_EXIT_INTERRUPTED;
    if (some && run->set.report != NULL && write_report(run, &err) < 0) return pli_cli_fail(&err);
    if (run->job.json) pli_cv_json(cv, &text);
    else pli_cv_text(cv, &text);
    if (!pli_cli_print(&text)) return PLI_EXIT_FAILED;
    if (some && run->set.report != NULL) pli_talk_say(&run->talk, "the page: %s", run->set.report);
    return pli_cli_end(whole ? PLI_EXIT_DONE : PLI_EXIT_INTERRUPTED);
}

static plait_status run_all(cv_run *run, plait_error *err) {
    pli_pool *pool = NULL;
    if (run->set.report != NULL) PLI_TRY(pli_page_check(run->set.report, err));
    const pli_fold_words words = words_of(run);
    PLI_TRY(pli_folds_load(&words, &run->plan, &run->groups, &run->data, err));
    PLI_TRY(make_folds(run, err));
    pli_job_words_json(run->job_opts, &run->job, NULL, &run->result.options);
    pli_signals_begun(&run->signals);
    PLI_TRY(pli_pool_create(settle_jobs(run), &pool, err));
    pli_pool_for(pool, run->folds.n, run_fold, run);
    pli_pool_destroy(&pool);
    const plait_error *why = failure_of(&run->result);
    if (why == NULL) return PLAIT_OK;
    *err = *why;
    return why->code;
}

static void say_unbegun(void *user, const char *what) {
    cv_run *run = user;
    pli_talk_say(&run->talk, "%s while the data were read; nothing was learnt", what);
}

static int cv_with(cv_run *run) {
    plait_error err = { .rank = -1 };
    if (!pli_train_plan_make(&run->job, run->job_opts, &run->talk.log, &run->plan)) return PLI_EXIT_USAGE;
    if (pli_signals_open(&run->signals, &run->talk, say_unbegun, run, &err) < 0) return pli_cli_fail(&err);
    const plait_status status = run_all(run, &err);
    pli_signals_ended(&run->signals);
    const int code = status < 0 ? pli_cli_fail(&err) : show(run);
    pli_signals_close(&run->signals);
    return code;
}

static int cv(int argc, char *const *argv) {
    cv_run run = { .mutex = PTHREAD_MUTEX_INITIALIZER };
    int    code = PLI_EXIT_USAGE;
    if (pli_job_words_read(&pli_command_cv, argc, argv, &run.set, &run.own_opts, &run.job, &run.job_opts, &code) &&
        check(&run)) {
        pli_talk_open(&run.talk, run.job.quiet);
        code = cv_with(&run);
        pli_talk_close(&run.talk);
    }
    plait_data_destroy(&run.data);
    pli_folds_free(&run.folds);
    pli_fold_groups_free(&run.groups);
    for (int32_t f = 0; run.result.fold != NULL && f < run.result.n; f++) pli_seen_free(&run.result.fold[f].seen);
    pli_free(run.result.fold);
    pli_text_free(&run.result.options);
    pli_by_class_free(&run.result.by_class);
    pli_opts_free(&run.job_opts);
    pli_opts_free(&run.own_opts);
    return code;
}

const pli_command pli_command_cv = {
    .name = "cv",
    .usage = "cv [options of train] [--folds K] [--split WAY] [--group COLUMN] [--report FILE] [--jobs N]",
    .summary = "cross-validation: how good is such a model on rows that it has not seen",
    .details = "Holds each fold out once, trains the model that train's options describe on the other rows, and "
               "measures it on the fold. Prints the figures of each fold, their mean and standard deviation, and, of a "
               "classification, the figures of each class over all rows. Which row is in which fold depends on the "
               "data and --seed alone.\n\n"
               "The rows of a query (qid:) stay in one fold, and so do those of a group (--group). "
               "With --validation each fold's model is chosen by rows of "
               "its own training rows. Ctrl-C ends the folds that run, shows the finished ones and exits with 75.",
    .rows = rows,
    .run = cv,
};
