/* cv.h - a cross-validation, shared by the files of its command: cv.c reads the options and runs the folds, cv_folds.c
 * says which row is in which fold, cv_show.c shows what came of it. */
#ifndef PLI_CLI_CV_H
#define PLI_CLI_CV_H

#include <plait/model.h>

#include "base/base.h"
#include "cli/by_class.h"
#include "data/data.h"

enum { PLI_FOLDS_MAX = 1000, PLI_CV_FIGURES = 5 + PLAIT_FIGURES };

/* Which fold each row is in. */
typedef struct pli_folds {
    int32_t n;
    int64_t rows;
    int32_t *of;      /* [rows] from 0; -1: in none, so it is never held out                        */
    bool    in_order; /* a fold's model is trained on the folds before it alone, and on rows of none */
} pli_folds;

/** Puts the rows into n folds. way: "stratified": each class is spread evenly; "rows": at random; "ordered": n + 1 runs
 *  of rows in their order, the first in no fold; "auto": stratified for at most 1,000 classes, else rows. The rows of
 *  a query stay together. Random numbers are keyed by seed and row. Errors: EINVAL fewer rows than folds; ENOMEM. */
plait_status pli_folds_make(const plait_data *data, const char *way, int32_t n, uint64_t seed, pli_folds *out,
                            plait_error *err);
/** The way that "auto" means for these data. */
const char *pli_folds_way(const plait_data *data, const char *way);
/** Reads the folds from a file with a number for each row, a line each; equal numbers are one fold, in increasing
 *  order. Errors: EIO; EFORMAT "file:line: ...". */
plait_status pli_folds_read(const char *path, int64_t rows, pli_folds *out, plait_error *err);
void         pli_folds_free(pli_folds *folds);
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
} pli_cv_fold;

typedef struct pli_cv {
    const char  *model, *way;
    int64_t      rows, features;
    int32_t      n;
    uint64_t     seed;
    pli_cv_fold *fold;     /* [n] */
    pli_by_class by_class; /* of all rows that were held out */
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
