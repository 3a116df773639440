/* Which values of --try can never be had is found out before any trial: each value of a list and both ends of each
 * range are read as a trial would read them, and the run that they ask for is checked as train checks it before it
 * begins. */
#include <stdio.h>
#include <string.h>

#include "cli/tune.h"
#include "comm/comm.h"
#include "learn/learn.h"

/* A job with some values of --try. */
typedef struct attempt {
    pli_train_settings job;
    pli_tune_settings  own;
    pli_opts          *job_opts, *own_opts;
    pli_train_plan     plan;
    plait_error        err;
    bool               dry; /* a dry run on the data that were read, instead of a check without data */
    const plait_data  *data;
} attempt;

static int64_t values_of(const pli_range *r) { return r->n > 0 ? r->n : 2; }

static void add_word(const pli_range *r, int64_t at, char word[PLI_TUNE_WORD + 48]) {
    if (r->n > 0) snprintf(word, PLI_TUNE_WORD + 48, "--%s=%s", r->name, pli_range_word(r, at < r->n ? at : r->n - 1));
    else snprintf(word, PLI_TUNE_WORD + 48, "--%s=%.17g", r->name, at > 0 ? r->high : r->low);
}

/* Reads the job's options with value `at` of range i, and with the first of each other range if `others`. false: an
 * option refuses its value, which has been printed. */
static bool read_attempt(const pli_tune *tune, int32_t i, int64_t at, bool others, attempt *a) {
    char   words[PLI_TUNE_RANGES][PLI_TUNE_WORD + 48];
    char **argv = pli_calloc((size_t)(tune->argc + PLI_TUNE_RANGES + 1), sizeof *argv);
    int    argc = tune->argc, code;
    bool   ok = argv != NULL;
    for (int k = 0; ok && k < argc; k++) argv[k] = tune->argv[k];
    for (int32_t k = 0; ok && k < tune->space.n; k++) {
        if (k != i && !others) continue;
        add_word(&tune->space.range[k], k == i ? at : 0, words[k]);
        argv[argc++] = words[k];
    }
    ok = ok && pli_job_words_read(&pli_command_tune, argc, argv, &a->own, &a->own_opts, &a->job, &a->job_opts, &code) &&
         pli_train_plan_make(&a->job, a->job_opts, NULL, &a->plan);
    pli_free(argv);
    return ok;
}

static void free_attempt(attempt *a) {
    pli_opts_free(&a->job_opts);
    pli_opts_free(&a->own_opts);
    pli_free(a);
}

static plait_status work(plait_comm *comm, void *user) {
    attempt     *a = user;
    plait_model *model = NULL;
    plait_error  err = { .rank = -1 };
    if (a->dry) return plait_train(comm, &a->plan.train, NULL, &model);
    const plait_status status = pli_train_check(comm, &a->plan.train, &err);
    if (status < 0 && pli_comm_leads(comm)) a->err = err;
    return status;
}

/* Would a run with these values begin? Errors: why not. */
static plait_status begins(attempt *a, plait_error *err) {
    plait_comm_opts   comm = a->plan.comm;
    plait_train_opts *t = &a->plan.train;
    comm.transport = "threads";
    comm.log = NULL;
    t->checkpoint = t->resume = NULL;
    if (a->dry) {
        t->data = t->test = NULL;
        t->memory = a->data;
        t->dry_run = 1;
    }
    const plait_status status = plait_comm_run(&comm, work, a, err);
    if (a->err.code < 0) *err = a->err; /* without the words that comm_run adds */
    return status;
}

/* *had_out false: no run with value `at` of range i begins, neither with the others' first values nor without them. */
static bool try_value(const pli_tune *tune, int32_t i, int64_t at, bool *had_out, plait_error *err) {
    *had_out = false;
    for (int others = 1; others >= 0 && !*had_out; others--) {
        attempt *a = pli_calloc(1, sizeof *a);
        if (a == NULL) return pli_cli_usage("tune: out of memory"), false;
        a->data = tune->data;
        a->dry = tune->data != NULL;
        const bool read = read_attempt(tune, i, at, others != 0, a);
        *had_out = read && begins(a, err) >= 0;
        free_attempt(a);
        if (!read) return false;
    }
    return true;
}

bool pli_tune_check(const pli_tune *tune) {
    for (int32_t i = 0; i < tune->space.n; i++) {
        const pli_range *r = &tune->space.range[i];
        for (int64_t at = 0; at < values_of(r) && (tune->data == NULL || r->n > 0); at++) {
            plait_error err = { .rank = -1 };
            char        word[PLI_TUNE_WORD + 48];
            bool        had;
            if (!try_value(tune, i, at, &had, &err)) return false;
            if (had) continue;
            add_word(r, at, word);
            pli_cli_usage("tune: --try %s: no trial could have %s: %s", r->given, word, err.text);
            return false;
        }
    }
    return true;
}
