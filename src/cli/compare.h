/* compare.h - a comparison, shared by the files of its command: compare.c reads the options and shows the result,
 * compare_pairs.c makes the settings and the job that they share, compare_runs.c runs them. */
#ifndef PLI_CLI_COMPARE_H
#define PLI_CLI_COMPARE_H

#include "cli/settings.h"
#include "cli/talk.h"
#include "watch/compare/compare.h"

typedef struct pli_compare_settings {
    const char *report;
    int64_t     repeats;
    double      target;
} pli_compare_settings;

typedef struct pli_compare_work {
    pli_compare_settings set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    pli_comparison     result;
    pli_talk           talk;
    bool              *out; /* [pairs] the pair does not run, or no longer */
    char             **env;
    char              *directory, *config, *metrics, *events, *printed, *said;
    char               program[4096 + 8];
    pli_text           settings, title;
    int64_t            done, planned; /* numbers of runs */
} pli_compare_work;

/** Makes the settings to compare: each topology with each consistency. false: it has printed an error. */
bool pli_compare_make_pairs(pli_compare_work *work);
/** Makes a temporary directory, and in it a configuration file with the job that all settings share. false: *err says
 *  why. */
bool pli_compare_make_place(pli_compare_work *work, plait_error *err);
/** Runs all settings: once with an event log, then timed, in turns. Errors: of memory and of files only; a failure of a
 *  run becomes a row of the result. */
plait_status pli_compare_run_all(pli_compare_work *work, plait_error *err);

#endif
