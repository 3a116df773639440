/* tune.h - a search for a job's best options, shared by the files of its command: tune.c reads the options,
 * tune_space.c says which options are tried, tune_values.c draws a trial's values, tune_check.c says whether they can
 * be had, tune_halving.c which trial runs next; tune_run.c runs it, tune_lines.c keeps what is known in a file, and
 * tune_show.c shows the result. */
#ifndef PLI_CLI_TUNE_H
#define PLI_CLI_TUNE_H

#include <pthread.h>

#include "cli/cv.h"
#include "cli/job_words.h"
#include "cli/signals.h"

enum { PLI_TUNE_RANGES = 16, PLI_TUNE_RUNGS = 8, PLI_TUNE_TRIALS_MAX = 100000, PLI_TUNE_WORD = 160 };

typedef struct pli_tune_settings {
    pli_text_list tries;
    const char   *search, *halve, *by, *split, *folds_from, *group, *file, *report;
    int64_t       trials, factor, folds, jobs;
} pli_tune_settings;

/* The values that are tried of one option. */
typedef struct pli_range {
    char    name[40];
    bool    log, whole;
    double  low, high;
    int64_t n;               /* > 0: it is one of n words */
    char    words[512];      /* n of them, each ended by a zero byte */
    int64_t points;          /* in a grid: how many values of a range that is no list */
    char    given[256];      /* as the file of trials names it */
} pli_range;

typedef struct pli_space {
    int32_t   n;
    pli_range range[PLI_TUNE_RANGES];
    int64_t   points; /* > 0: a grid with so many values of each range that is no list */
    int32_t  *draw;   /* [trials] which draw of a trial was none of an earlier trial's; NULL: the first */
} pli_space;

/* What a trial has come to in a rung. */
typedef enum pli_tune_state { PLI_TUNE_NONE, PLI_TUNE_RUNS, PLI_TUNE_DONE } pli_tune_state;
typedef struct pli_tune_run {
    pli_tune_state state;
    double         loss, deviation, seconds; /* loss: what is made least; infinity: the trial failed */
    int64_t        order;                    /* of all outcomes, from 1 */
    char           error[200];
} pli_tune_run;

/* Trials and rungs: rung r trains on a share factor^(r + 1 - rungs) of the rows, or of the epochs. */
typedef struct pli_halving {
    int64_t       trials, begun, factor;
    int32_t       rungs;
    pli_tune_run *run; /* [trials * rungs] */
} pli_halving;

typedef struct pli_tune {
    pli_tune_settings  set;
    pli_train_settings job;
    pli_opts          *own_opts, *job_opts;
    int                argc;
    char *const       *argv;
    pli_train_plan     plan;
    pli_talk           talk;
    pli_signals        signals;
    plait_data        *data;
    pli_folds          folds;
    pli_fold_groups    groups;    /* of --group */
    bool               validates; /* the judge is --validation, and no folds */
    pli_space          space;
    pli_halving        halving;
    int32_t            at_once;   /* how many trials run side by side */
    int64_t            ended;     /* how many outcomes there are */
    int                lines;     /* the file of trials; -1: none     */
    plait_report       refit;
    bool               saved;     /* the model of the best trial is written to --out */
    pthread_mutex_t    mutex;     /* guards halving, lines, failed    */
    pthread_cond_t     changed;
    plait_error        failed;    /* of the file of trials, or of memory: it ends the search */
} pli_tune;

/** Fills the space: from --try, or from the model's default ranges without the options that are given. false: it has
 *  printed an error. */
bool pli_space_make(const pli_tune *tune, pli_space *space);
/** Draws the values of each trial until they are those of no earlier trial. Returns how many trials have values of
 *  their own: fewer than `trials` if the lists and ranges have no more; -1: no memory. What a trial has depends on the
 *  seed and on the trials before it alone. */
int64_t pli_space_draw(pli_space *space, uint64_t seed, int64_t trials);
void    pli_space_free(pli_space *space);
/** How many trials a grid of about `trials` has; sets points. -1: more than PLI_TUNE_TRIALS_MAX. */
int64_t pli_space_grid(pli_space *space, int64_t trials);
/** The value of option i in a trial. */
void pli_space_value(const pli_space *space, uint64_t seed, int64_t trial, int32_t i, char word[PLI_TUNE_WORD]);
/** Reads one range, as --try has it. whole: the option takes whole numbers. false: the text is none. */
bool pli_range_parse(const char *text, bool whole, pli_range *out);

/** Checks each value of a list and the ends of each range, as a trial would have them: before the data are read against
 *  the options, and afterwards, the values of lists, by a dry run. false: one can never be had, which has been printed.
 */
bool pli_tune_check(const pli_tune *tune);

/** Value i of a list, 0 <= i < n. */
const char *pli_range_word(const pli_range *range, int64_t i);

/** Which trial runs next, and in which rung. false: none can, now (*ended false: one that runs may change that). Marks
 *  it as running. */
bool pli_halving_next(pli_halving *h, int64_t *trial_out, int32_t *rung_out, bool *ended_out);
/** The best trial of the highest rung that has one, and that rung; -1: none has come to anything. */
int64_t pli_halving_best(const pli_halving *h, int32_t *rung_out);
double  pli_halving_share(const pli_halving *h, int32_t rung);
static inline pli_tune_run *pli_halving_run(const pli_halving *h, int64_t trial, int32_t rung) {
    return &h->run[trial * h->rungs + rung];
}

/** Runs trials until the search ends or a signal comes. */
plait_status pli_tune_search(pli_tune *tune, plait_error *err);
/** Trains the best trial's model on all rows, measures it on --test and saves it by --out. */
plait_status pli_tune_refit(pli_tune *tune, int64_t trial, plait_error *err);

/** Opens the file of trials, reads what it knows, and cuts off a line that was not finished. A new file gets a first
 *  line with the search's settings, which those of a later run must equal. */
plait_status pli_tune_lines_open(pli_tune *tune, plait_error *err);
/** Appends a line and waits until it is on the disk. */
plait_status pli_tune_lines_add(pli_tune *tune, int64_t trial, int32_t rung, plait_error *err);
/** Adds a trial's line, without a newline. */
void pli_tune_json_trial(const pli_tune *tune, int64_t trial, int32_t rung, pli_text *text);
/** Adds the whole result as one JSON object and a newline; best -1: no trial came to anything. */
void pli_tune_json(const pli_tune *tune, int64_t best, int32_t rung, bool whole, pli_text *text);
/** Adds a table of the best trials for a terminal. */
void pli_tune_text(const pli_tune *tune, int64_t best, pli_text *text);
/** Adds the options of a trial as words: "--l2 0.01 --depth 3". */
void pli_tune_words(const pli_tune *tune, int64_t trial, pli_text *text);

#endif
