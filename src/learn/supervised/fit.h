/* learn/supervised/fit.h - a run of a supervised learner: what learners of labelled rows share. Its state begins with a
 * pli_fit.
 *
 *     labels.c    what the labels are, classes or numbers; counted and weighed
 *     scale.h     training's units
 *     judged.c    are there rows that cannot be judged?
 *     fit.c       validation and its best weights, what the trained model is worth, what went wrong
 */
#ifndef PLI_LEARN_FIT_H
#define PLI_LEARN_FIT_H

#include "learn/learner.h"
#include "learn/supervised/judge.h"
#include "learn/supervised/scale.h"

/* A learner's side. */
typedef struct pli_fit_ops {
    /** What its tables hold, past a barrier: the same on every worker. Collective. */
    plait_status (*extract)(pli_run *run, pli_solution *solution_out);
    /** The solution that values [run->weights] in training's units are. */
    plait_status (*solution)(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out);
    /** l2/2 ||w||^2 + l1 ||w||_1, in the data's units. */
    double (*penalty)(const pli_run *run, const pli_solution *solution);
    /** Tells the caller's weights() what each table holds, by pli_fit_tell. */
    void (*tell)(const pli_run *run, const pli_solution *solution);
    /** How rows are scored by a solution. */
    pli_scoring (*scoring)(const pli_run *run, const pli_solution *solution);
} pli_fit_ops;

typedef struct pli_fit {
    const pli_fit_ops *ops;
    const char        *wanted; /* the loss that was asked for by name; NULL: what the labels allow       */
    const char        *loss;   /* by name */
    pli_goal           goal;
    bool               intercept;
    bool               raw;    /* the features go in as they are, because it was asked for               */
    double            *class_weight;
    double             label_mean, label_spread; /* of numbers, mean 0 without intercept; else 0 and 1   */
    pli_scale          scale;
    pli_solution       solution, best; /* in the data's units */
} pli_fit;

static inline pli_fit *pli_fit_of(const pli_run *run) { return run->state; }

/** Settles what the labels are, whether classes or numbers, and counts them, over the rows or a stream's sample: loss,
 *  classes and their weights, rows. Tells it. Errors: EFORMAT labels that the model cannot learn, all weights 0.
 *  Collective over the workers. */
plait_status pli_labels_settle(pli_run *run);
/** Can every row of what is judged be judged? EFORMAT, with the row. */
plait_status pli_fit_check_judged(pli_run *run, const pli_dataset *data, const char *name);

/** Measures scale from the rows. Not where --normalize says none. Collective. */
plait_status pli_fit_measure_scale(pli_run *run);
/** What follows from the options once batch and epochs have a default: batch, clocks, schedule, penalties. epochs:
 *  asked when the clocks are known. */
void pli_fit_settle(pli_run *run, int64_t batch, int64_t (*epochs)(const pli_run *run));
/** A rate for adagrad and its like that suits the labels; of rules without a metric of their own a quarter, but for the
 *  logistic loss, which curves by at most 1/4. 0: the rule's own. Measured (docs/models.md). */
double pli_fit_rate(const pli_run *run);
/** EMISMATCH, where the model to start from has other features or labels than the data. */
plait_status pli_fit_check_start(const pli_run *run, const pli_goal *goal, int64_t features);

/** One array of what the caller's weights() hears. */
void pli_fit_tell(const pli_run *run, const char *table, plait_type type, int64_t n, const void *values);

/** EDIVERGED with the remedy, unless the loss is finite. */
plait_status pli_fit_finite(const pli_run *run, double loss, int64_t clock);
/** Loss and (of classes) accuracy of a solution on what is held back, of all workers; NaN without any. Collective. */
plait_status pli_fit_validate(const pli_run *run, const pli_solution *solution, double *loss_out, double *accuracy_out);

/* What the loop asks of a learner, the same for all of these: solve/loop.h, learner.h. */
plait_status pli_fit_told(pli_run *run);
plait_status pli_fit_epoch(pli_run *run, int64_t epoch, bool *end_out);
plait_status pli_fit_finish(pli_run *run);
void         pli_fit_end(pli_run *run);
int32_t      pli_fit_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
plait_status pli_fit_restore(pli_run *run);
plait_status pli_fit_worth(pli_run *run, plait_type type, const void *values, double *loss, double *weight,
                           double *penalty);
/** Is the solution finite? */
plait_status pli_fit_solved(pli_run *run);
/** L-BFGS has ended at these values. */
plait_status pli_fit_solved_at(pli_run *run, plait_type type, const void *values);
plait_status pli_fit_judge(pli_run *run, const plait_model *model, plait_report *report);
void         pli_fit_report(const pli_run *run, plait_report *report);

#endif
