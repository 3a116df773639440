/* learn/linear/coordinates.h - squared and logistic losses with --l1, coordinate by coordinate (--optimizer cd).
 *
 * The objective, with v_i = weight_i / n, is
 *
 *     P(w, b) = sum_i v_i loss(y_i, x_i w + b) + l2/2 |w|^2 + l1 |w|_1
 *
 * The best value of one weight, all others fixed, has a closed form for squares: with slope g_j = sum_i v_i x_ij r_i,
 * r the residuals, and curvature h_j,
 *
 *     w_j <- S(h_j w_j + g_j, l1) / (h_j + l2)         S(z, t) = sign(z) max(|z| - t, 0)
 *
 * (Friedman, Hastie and Tibshirani, "Regularization paths for generalized linear models via coordinate descent", JSS
 * 33(1), 2010). A logistic loss is replaced by its parabola at the weights at hand, whose least point is sought in the
 * same way; a line search then says how far to go. The intercept has no penalty. Columns count less their mean, so it
 * is at its best value after each step, and costs nothing.
 *
 * Most weights are 0 and stay so. A *look* computes all slopes at the weights at hand, and from them:
 *
 *   - a dual point: the residuals, made smaller until no slope is above l1. Its value is a certain bound from below, so
 *     the *duality gap* is a certain bound on what is left to gain. It is where training ends (--tolerance).
 *   - columns whose weights are 0 at the optimum for certain; they are left out until the penalty changes (gap safe
 *     rules: Ndiaye, Fercoq, Gramfort and Salmon, JMLR 18(128), 2017).
 *   - the *working set*: columns with a weight, and those whose slopes are too large for weight 0. On a path also those
 *     that the strong rule expects (Tibshirani et al., JRSS B 74(2), 2012), |g_j| >= 2 l1 - l1 before. Passes between
 *     two looks are over the working set alone. The next look finds what it lacks.
 *
 * A slope is found in one of two ways. By residuals: column j times the residuals, which are kept up to date; that
 * costs the column's entries. By products: slopes are kept up to date by the products of columns, computed once (Gram
 * matrix); that costs the number of columns for each weight that moves, and nothing for one that does not. So products
 * are taken where columns have more entries than there are columns, and the loss is squared.
 *
 *     coordinates.c          the path of penalties, the working set
 *     coordinates_turns.c    workers come and go
 *     coordinates_look.c     looks: slopes, the duality gap; line searches
 *     coordinates_pass.c     passes over the working set
 *     coordinates_steps.c    steps of several weights by a schedule, over several workers
 *     coordinates_joint.c    joint steps of all weights that are not 0
 *     coordinates_kept.c     what a checkpoint holds
 *     coordinates_rows.c     own rows; those of workers that die
 *     columns.c              own rows by columns; products of columns
 */
#ifndef PLI_LEARN_LINEAR_COORDINATES_H
#define PLI_LEARN_LINEAR_COORDINATES_H

#include "learn/linear/fit.h"
#include "learn/solve/doors.h"
#include "learn/solve/inherit.h"

/* --- columns.c ---------------------------------------------------------------------------------------------------- */

/* The own rows that are trained on, by columns; those of workers that have died included. */
typedef struct pli_columns {
    pli_living held;  /* the blocks that they are in                           */
    int64_t   rows, features;
    int64_t  *start; /* [features + 1] of each column, in row and value        */
    uint32_t *row;   /* [entries] increasing within a column                   */
    float    *value; /* [entries]; NULL: all ones                              */
    double   *y;     /* [rows] the target; a class is -1 or 1                  */
    double   *v;     /* [rows] the row's weight over n                         */
    bool      even;  /* all v are the same */
} pli_columns;

/** Copies the rows. Errors: ENOMEM. */
plait_status pli_columns_make(pli_run *run, pli_columns *columns);
void         pli_columns_free(pli_columns *columns);

/** Writes to gram [features, features] the products of all pairs of columns over own rows, each less its mean (NULL:
 *  0): sum v (x_j - mean_j) (x_k - mean_k). Errors: ENOMEM. */
plait_status pli_columns_products(pli_run *run, const pli_columns *columns, const double *mean, double *gram);

/** sum x_ij q_i. */
double pli_column_dot(const pli_columns *columns, int64_t j, const double *q);
/** to_i += factor x_ij, or omega_i times as much (NULL: 1). */
void pli_column_add(const pli_columns *columns, int64_t j, double factor, const double *omega, double *to);
/** sum omega_i x_ij and sum omega_i x_ij^2. */
void pli_column_sums(const pli_columns *columns, int64_t j, const double *omega, double *first, double *second);

/* --- the path ----------------------------------------------------------------------------------------------------- */

typedef struct pli_penalties {
    int64_t n, at;       /* how many; the one at hand             */
    double  most, least; /* the largest and the last              */
    double  before;      /* the one before that at hand           */
    double *values;      /* [features + 1] the weights chosen     */
    double  loss;        /* their validation loss                 */
    double  l1, gap;
    int64_t done;        /* at how many of the penalties the gap was small enough */
} pli_penalties;

/* --- the state ---------------------------------------------------------------------------------------------------- */

/* What a look finds. */
typedef struct pli_look {
    double loss;           /* sum v loss                                                              */
    double square, target; /* squared loss: sum v r^2, sum v r y                                      */
    double primal;         /* the objective                                                           */
    double gap;            /* how far it is above its least value, at most                            */
    double scale, radius;  /* the dual point is scale times the residuals; radius: how far from the best one */
} pli_look;

typedef struct pli_coordinates {
    pli_run     *run;
    plait_table *table; /* [features + 1, 2] the weights and the intercept; slopes (coordinates_steps.c) */
    struct pli_steps_by_weight *steps; /* NULL: passes */
    struct pli_coordinates_kept *kept;
    pli_penalties *penalties;
    bool           resumed; /* the point and the path are a checkpoint's */
    pli_columns  columns;
    bool         logistic, intercept;
    double       l1, l2;
    /* with products of columns; gram NULL: by residuals */
    double      *gram;         /* [features, features] of centred columns  */
    double      *label_slope;  /* [features] slopes at weights 0           */
    double       label_square; /* sum v (y - its mean)^2                   */
    /* the point at hand */
    double      *w, bias;
    double      *g;         /* [features] slopes, at the last look; with products always up to date            */
    double      *h, *first; /* [features] curvature; sum omega x                                               */
    double      *spread;    /* [features] sum v (x - mean)^2                                                   */
    double      *mean;      /* [features] of columns, by v; 0 without intercept                                */
    double       mass, all; /* sum omega, sum v                                                                */
    /* own rows */
    double      *score;     /* [rows]                                                                          */
    double      *omega;     /* [rows] curvature of the loss; NULL: all columns.v[0]                            */
    double      *q;         /* [rows] omega times residual, as if the intercept were lower by `lag` than it is */
    double       lag;
    double      *step;      /* [rows] by how much passes have moved the scores                                 */
    double      *before;    /* [features] weights at the last look                                             */
    /* the working set */
    bool        *out;       /* [features] left out: the weight is 0 at the optimum                             */
    bool        *in;        /* [features]                                                                      */
    int64_t     *working, *moving; /* columns of the set; those of them with a weight                          */
    int64_t      n_working;
    int64_t      updates;   /* how often a weight has moved                                                    */
    pli_look     look;
    /* with two replicas */
    pli_loop     doors;        /* workers come and go behind a look (solve/doors.h)                            */
    bool        *gone;      /* [workers] it had died when own rows were last gathered: they have its rows      */
} pli_coordinates;

/** coordinates.c: trains. */
plait_status pli_coordinates_train(pli_run *run);

/** The intercept at the point at hand. */
double pli_coordinates_intercept(const pli_coordinates *c);

/** Weights move by products of columns, by steps over several workers, or by passes. The first look is at weights 0,
 *  unless there is a model to start from. All of it again if a worker dies. Collective. */
plait_status pli_coordinates_choose_way(pli_coordinates *c);
/** Nothing is left out, and no column is in the working set. */
void pli_coordinates_begin_set(pli_coordinates *c);

/* --- coordinates_turns.c ------------------------------------------------------------------------------------------ */

/** Workers come and go from here on. *came_out: this one was away, and is at the penalty of the others, where they are
 *  about to look. PLAIT_END: they have ended. Collective. */
plait_status pli_coordinates_turns_begin(pli_coordinates *c, bool *came_out);
/** Behind a look, once a checkpoint could be cut. *changed_out: others are in than before; then c->penalties->at is the
 *  penalty at hand, and all look again, with an empty working set. PLAIT_END: this worker has gone, and the others have
 *  ended. Collective. */
plait_status pli_coordinates_turn(pli_coordinates *c, bool *changed_out);

/* --- coordinates_rows.c ------------------------------------------------------------------------------------------- */

/** Reads own rows, and measures the columns over all rows. Collective. Errors: ENOMEM, EIO, EFORMAT. */
plait_status pli_coordinates_gather(pli_coordinates *c);
/** Sets the scores of own rows to those of the point at hand. */
void pli_coordinates_score(pli_coordinates *c);
void pli_coordinates_rows_free(pli_coordinates *c);
/** Has a worker died whose rows are nobody's yet? All workers get the same answer at the same place. */
bool pli_coordinates_died(const pli_coordinates *c);
/** Others take over the rows of those that have died; what follows is a look. Collective. Errors: as of gather. */
plait_status pli_coordinates_revive(pli_coordinates *c);
/** Ends a clock in which nobody pushes. */
plait_status pli_coordinates_clock(pli_coordinates *c);
/** Ends a clock in which only the leading worker, or who stands in for it, adds values [features + 1, 2] to the table.
 *  The values are the same on all workers. Collective. */
plait_status pli_coordinates_lead_adds(pli_coordinates *c, const double *values);

/* --- coordinates_kept.c ------------------------------------------------------------------------------------------- */

plait_status pli_coordinates_kept_make(pli_coordinates *c);
void         pli_coordinates_kept_free(pli_coordinates *c);
/** Notes a penalty that is fitted, so that a run that resumes can tell of it. */
plait_status pli_coordinates_note(pli_coordinates *c, const plait_penalty *penalty);
/** Notes the step that has ended the last clock, if workers come and go: the event log of who comes wants to know. */
plait_status pli_coordinates_note_step(pli_coordinates *c);
/** After a look: takes a checkpoint if one is due. *stop_out: all end now. Collective. */
plait_status pli_coordinates_keep(pli_coordinates *c, bool *stop_out);
/** The arrays that a checkpoint holds beside the table, and back. */
int32_t      pli_coordinates_kept(const pli_coordinates *c, pli_kept kept_out[PLI_KEPT]);
plait_status pli_coordinates_restore(pli_coordinates *c);
/** The checkpoint's weights and intercept [features + 1]. */
const double *pli_coordinates_point(const pli_coordinates *c);
void          pli_coordinates_tell_again(const pli_coordinates *c);

/* --- coordinates_look.c ------------------------------------------------------------------------------------------- */

/** Moves the intercept to its best value, and computes all that a look finds. Collective. */
plait_status pli_coordinates_look(pli_coordinates *c);
/** Computes c->look.primal, gap, scale and radius, for c->l1, from the slopes and the sums of c->look. Collective. */
plait_status pli_coordinates_gap(pli_coordinates *c);
/** Takes what the passes have changed into the scores; of a logistic loss as much of it as lowers the objective.
 *  Collective. */
plait_status pli_coordinates_settle(pli_coordinates *c);
/** Adds up over the workers. Collective. */
plait_status pli_coordinates_sum(const pli_coordinates *c, double *sums, int64_t n);

/* --- coordinates_pass.c ------------------------------------------------------------------------------------------- */

/** Passes over the working set until one lowers the objective by `target` at most. */
void pli_coordinates_pass(pli_coordinates *c, double target);
/** The slope of column j at the weights at hand. */
double pli_coordinates_slope(const pli_coordinates *c, int64_t j);
/** Adds to a weight, and keeps residuals or slopes up to date. */
void pli_coordinates_move(pli_coordinates *c, int64_t j, double change);

/** The weight that is best for column j if its slope is g, all others fixed. */
double pli_coordinates_best(const pli_coordinates *c, int64_t j, double g);

/* --- coordinates_steps.c ------------------------------------------------------------------------------------------ */

/* Steps of several weights at once, of one worker or of several: a schedule decides which. All workers take them. */

/** Makes the schedule. Collective. */
plait_status pli_coordinates_steps_make(pli_coordinates *c);
void         pli_coordinates_steps_free(pli_coordinates *c);
/** Takes steps until as many as there are columns in the working set lower the objective by `target` at most. Errors:
 *  EDIVERGED the weights of a step drive each other up. Collective. */
plait_status pli_coordinates_steps_take(pli_coordinates *c, double target);
/** Own rows are others, and no sum of slopes is known. Collective. */
plait_status pli_coordinates_steps_anew(pli_coordinates *c);
/** Takes a column into the working set that it is not in. */
void         pli_coordinates_take_in(pli_coordinates *c, int64_t j);

/* --- coordinates_joint.c ------------------------------------------------------------------------------------------ */

/** Moves the weights of these columns [n], none of which is 0, towards the least point that they have while none
 *  changes its sign. Returns by how much the objective falls: 0 if no step goes downhill. */
double pli_coordinates_joint(pli_coordinates *c, int64_t n, const int64_t *column, double target);

#endif
