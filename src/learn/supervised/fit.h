/* learn/supervised/fit.h - a run of a supervised learner: what learners of labelled rows share. The learner's state
 * begins with a pli_fit.
 *
 *     labels.c    decides whether labels are classes or numbers; counts and weighs them
 *     shares.c    says where workers see different labels
 *     scale.h     training's units
 *     judged.c    finds rows that cannot be judged, before training
 *     fit.c       validates and keeps the best weights, judges the trained model, says what went wrong
 */
#ifndef PLI_LEARN_FIT_H
#define PLI_LEARN_FIT_H

#include "learn/learner.h"
#include "learn/supervised/judge.h"
#include "learn/supervised/scale.h"

/* A learner's part. */
typedef struct pli_fit_ops {
    /** Passes a barrier and reads the tables: the solution is the same on every worker. Collective. */
    plait_status (*extract)(pli_run *run, pli_solution *solution_out);
    /** Makes a solution of values [run->weights] in training's units. */
    plait_status (*solution)(const pli_run *run, plait_type type, const void *values, pli_solution *solution_out);
    /** l2/2 ||w||^2 + l1 ||w||_1, in the data's units. */
    double (*penalty)(const pli_run *run, const pli_solution *solution);
    /** Tells the caller's weights() what each table holds, by pli_fit_tell. */
    void (*tell)(const pli_run *run, const pli_solution *solution);
    /** How rows are scored by a solution. */
    pli_scoring (*scoring)(const pli_run *run, const pli_solution *solution);
    /** By what share of the least objective that it finds the solution's objective lies above it, at least. NaN: it
     *  cannot tell, or the run was too short to pay for it. Collective. NULL: the objective has many least points. */
    plait_status (*gap)(pli_run *run, const pli_solution *solution, double *gap_out);
    /** Makes a solution whole of which each worker has a part; nothing if it is. NULL: it always is. Collective. */
    plait_status (*whole)(const pli_run *run, pli_solution *solution);
    /** Judges the wanted rows of this worker, where rows have no scores because no worker has the whole solution.
     *  *done_out: it was so. NULL: never. Collective. */
    plait_status (*judged)(const pli_run *run, const pli_goal *goal, const pli_solution *solution,
                           const pli_dataset *data, bool (*want)(void *user, int64_t row), pli_total *total_out,
                           bool *done_out);
} pli_fit_ops;

/* The worker whose labels differ most from those of all rows. */
typedef struct pli_shares {
    int32_t worker; /* -1: none differs more than by chance, or enough to matter */
    int64_t label;  /* of classes: its share of own rows and of all rows follow; of numbers: the means follow */
    double  own, all;
} pli_shares;

typedef struct pli_fit {
    const pli_fit_ops *ops;
    const char        *wanted; /* the name of the loss that was asked for; NULL: the labels choose       */
    const char        *loss;   /* the name of the loss that is used */
    pli_goal           goal;
    bool               intercept;
    bool               raw;    /* --normalize none: features are not scaled                              */
    double            *class_weight;
    double            *class_rows; /* [classes] to train on; a sampled softmax alone asks for them; else NULL */
    double             label_mean, label_spread; /* of numbers (mean 0 without intercept); else 0 and 1  */
    double             slope_spread; /* of numbers: the loss's slope where the label is a spread away from the mean */
    pli_shares         shares;
    pli_scale          scale;
    pli_solution       solution, best; /* in the data's units */
} pli_fit;

static inline pli_fit *pli_fit_of(const pli_run *run) { return run->state; }

/** Decides whether labels are classes or numbers, and counts them over the rows or a stream's sample: sets loss,
 *  classes and their weights, rows. Logs the label. Errors: EFORMAT if the model cannot learn the labels, or all
 *  weights are 0. Collective over the workers. */
plait_status pli_labels_settle(pli_run *run);
/** Compares the own labels with those of all workers: counts [classes], or for numbers (0 classes) the sums of weights,
 *  of weighted labels and of their squares. Sets fit->shares. Collective over the workers. */
plait_status pli_shares_settle(pli_run *run, int64_t classes, const double *own, const double *all, double own_rows);
/** Notes what was found, if updates are applied as they come. */
void         pli_shares_tell(const pli_run *run);
/** Checks that every row of a set can be judged: pli_learner_more.check_judged. EFORMAT, with the row. */
plait_status pli_fit_check_judged(pli_run *run, const pli_dataset *data, const char *name);

/** Measures fit->scale from the rows. Collective. */
plait_status pli_fit_measure_scale(pli_run *run);
/** Sets batch, clocks, epochs, schedule and penalties. batch: as asked for, or the default. epochs: the default, called
 *  when the clocks are known. */
void pli_fit_settle(pli_run *run, int64_t batch, int64_t (*epochs)(const pli_run *run));
/** The default learning rate. Rules with a metric of their own get a rate that suits the spread of the labels; others a
 *  rate that suits the curvature of the loss. 0: the rule's own default. Measured (docs/models.md). */
double pli_fit_rate(const pli_run *run);
/** EMISMATCH if the model to start from has other features or labels than the data. */
plait_status pli_fit_check_start(const pli_run *run, const pli_goal *goal, int64_t features);

/** Gives one array to the caller's weights(). */
void pli_fit_tell(const pli_run *run, const char *table, plait_type type, int64_t n, const void *values);

/** EDIVERGED, with the remedy, unless the loss is finite. */
plait_status pli_fit_finite(const pli_run *run, double loss, int64_t clock);
/** Loss and (for classes) accuracy of a solution on the rows held back, of all workers; NaN if none are. Collective. */
plait_status pli_fit_validate(const pli_run *run, const pli_solution *solution, double *loss_out, double *accuracy_out);

/* Functions for a learner's pli_steps (solve/loop.h) and pli_learner_more (learner.h), the same for all of these. */
plait_status pli_fit_told(pli_run *run);
plait_status pli_fit_epoch(pli_run *run, int64_t epoch, bool *end_out);
plait_status pli_fit_finish(pli_run *run);
void         pli_fit_end(pli_run *run);
int32_t      pli_fit_kept(const pli_run *run, pli_kept kept_out[PLI_KEPT]);
plait_status pli_fit_restore(pli_run *run);
plait_status pli_fit_worth(pli_run *run, plait_type type, const void *values, double *loss, double *weight,
                           double *penalty);
/** EDIVERGED unless the solution is finite: pli_learner_more.finite. */
plait_status pli_fit_solved(pli_run *run);
/** L-BFGS has ended at these values: pli_lbfgs_pass.solved. */
plait_status pli_fit_solved_at(pli_run *run, plait_type type, const void *values);
plait_status pli_fit_judge(pli_run *run, const plait_model *model, plait_report *report);
void         pli_fit_report(const pli_run *run, plait_report *report);

#endif
