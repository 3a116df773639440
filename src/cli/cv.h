/* cv.h - a cross-validation, shared by the files of its command: cv.c reads the options and runs the folds, cv_folds.c
 * and cv_groups.c say which row is in which fold, cv_seen.c what the rows that are held out show, and cv_show.c prints
 * what came of it. */
#ifndef PLI_CLI_CV_H
#define PLI_CLI_CV_H

#include <plait/model.h>

#include "base/base.h"
#include "cli/by_class.h"
#include "cli/cli.h"
#include "cli/cv_seen.h"
#include "cli/settings.h"
#include "data/data.h"

enum { PLI_FOLDS_MAX = 1000, PLI_CV_FIGURES = 5 + PLAIT_FIGURES };

/* Which fold each row is in. */
typedef struct pli_folds {
    int32_t n;
    int64_t rows;
    int32_t *of;      /* [rows] from 0; -1: in none, so it is never held out                        */
    char  **name;     /* [n] as a file of folds names them; NULL: they are numbered from 1           */
    bool    in_order; /* a fold's model is trained on the folds before it alone, and on rows of none */
} pli_folds;

/* Which group each row is in, by a column (--group). */
typedef struct pli_fold_groups {
    const char *column;
    int64_t     rows, n; /* n: how many groups */
    int64_t    *of;      /* [rows] from 0      */
} pli_fold_groups;

/** Reads the column's cells. Errors: those of plait_data_read. */
plait_status pli_fold_groups_read(const plait_data_opts *files, const char *column, pli_fold_groups *out,
                                  plait_error *err);
void         pli_fold_groups_free(pli_fold_groups *groups);
/** Puts whole groups into n folds of about equal numbers of rows. Random numbers are keyed by seed and row. Errors:
 *  EINVAL fewer groups than folds; ENOMEM. */
plait_status pli_folds_group(const pli_fold_groups *groups, int32_t n, uint64_t seed, pli_folds *out, plait_error *err);

/** Puts the rows into n folds. way: "stratified": each class is spread evenly; "rows": at random; "ordered": n + 1 runs
 *  of rows in their order, the first in no fold; "auto": stratified for at most 1,000 classes, else rows. The rows of
 *  a query stay together. Random numbers are keyed by seed and row. Errors: EINVAL fewer rows than folds; ENOMEM. */
plait_status pli_folds_make(const plait_data *data, const char *way, int32_t n, uint64_t seed, pli_folds *out,
                            plait_error *err);
/** The way for a model: "auto" of one that takes labels for numbers, or ignores them, is "rows", since there are no
 *  classes. */
const char *pli_folds_settle(const char *model, const char *way);
/** The way that "auto" means for these data. */
const char *pli_folds_way(const plait_data *data, const char *way);
/** Reads the folds from a file with a line for each row; equal lines are one fold, in increasing order if all are
 *  numbers, else in the order of their texts. Errors: EIO; EFORMAT "file:line: ...". */
plait_status pli_folds_read(const char *path, int64_t rows, pli_folds *out, plait_error *err);
void         pli_folds_free(pli_folds *folds);
/** Checks the options of folds together. own: the command's own options. false: it has printed an error. */
bool pli_folds_check(const pli_command *command, const pli_opts *own, const char *group, const char *from,
                     const char *split, const char *text_columns);

/* What a command's own options say of folds. */
typedef struct pli_fold_words {
    const pli_command *command;
    const char        *group, *from, *split;
    int64_t            n, seed;
} pli_fold_words;
/** Reads the data of --data, all of them at once, and the groups of --group. Errors: those of plait_data_read,
 *  pli_folds_check_files and pli_folds_check_data. */
plait_status pli_folds_load(const pli_fold_words *words, const pli_train_plan *plan, pli_fold_groups *groups,
                            plait_data **data_out, plait_error *err);
/** Puts its rows into folds as the words say. Errors: those of pli_folds_read, _group and _make. */
plait_status pli_folds_of(const pli_fold_words *words, const char *model, const pli_fold_groups *groups,
                          const plait_data *data, pli_folds *out, plait_error *err);

/** Refuses what has no rows of its own to put into folds: the windows of a text. check_files: before the data are read,
 *  by what is known of the files; check_data: afterwards. Errors: EREFUSED. */
plait_status pli_folds_check_files(const pli_command *command, const char *model, const plait_data_opts *files,
                                   plait_error *err);
plait_status pli_folds_check_data(const pli_command *command, const char *model, const plait_data *data,
                                  plait_error *err);

/** Makes a data set of the rows that fold f's model is trained on, or of those that are held out of it. Errors: EINVAL
 *  there are none; ENOMEM. */
plait_status pli_folds_take(const pli_folds *folds, const plait_data *data, int32_t f, bool held_out,
                            plait_data **data_out, plait_error *err);
/** Makes a data set of a share of the rows that fold f's model is trained on (f -1: of all rows). The rows of a smaller
 *  share are among those of a larger one. Errors: EINVAL there are none; ENOMEM. */
plait_status pli_folds_take_share(const pli_folds *folds, const plait_data *data, int32_t f, double share,
                                  uint64_t seed, plait_data **data_out, plait_error *err);

/* What one fold came to. */
typedef struct pli_cv_fold {
    bool         done;
    int64_t      held_out; /* rows */
    plait_report report;
    plait_error  error; /* code < 0: it failed */
    pli_seen     seen;  /* empty unless --json or --report asks for it */
} pli_cv_fold;

typedef struct pli_cv {
    const char  *model, *way, *group; /* group: the column whose groups make the folds; NULL: none */
    int64_t      rows, features;
    int32_t      n;
    uint64_t     seed;
    pli_cv_fold *fold;     /* [n] */
    char *const *name;     /* [n] of the folds; NULL: they have none */
    pli_by_class by_class; /* of all rows that were held out */
    pli_text     options;  /* those of train that were given, as JSON */
} pli_cv;

/* A figure of all folds. */
typedef struct pli_cv_figure {
    char   name[32]; /* as in the record: "test_loss" */
    double mean, deviation; /* over the folds that are done; deviation: of a sample, NaN for one fold */
} pli_cv_figure;

/** The value of the figure in a fold; NaN: it has none. */
double pli_cv_value(const pli_cv_fold *fold, const char *name);
/** Fills figures; returns how many. */
int32_t pli_cv_figures(const pli_cv *cv, pli_cv_figure figures[PLI_CV_FIGURES]);
void    pli_cv_text(const pli_cv *cv, pli_text *text);
void    pli_cv_json(const pli_cv *cv, pli_text *text);

#endif
