/* learn/linear/newton_state.h - what a worker knows in a run by sums of quadratic models; for newton*.c.
 *
 * When a worker dies (--replicas 2), its last model stays in the tables, and nobody could take it back. So at the next
 * look, where all workers find that one is missing, the tables begin anew: each worker gathers its rows, those that it
 * has inherited included, and makes its next model at the point where it is. Nothing is lost but the curvature.
 *
 * A checkpoint is cut after a clock. What a worker knows beside the tables is its own: its point, the scores of
 * its rows there, with a limited memory the pairs, too. If each worker of a run that resumes has the rows that the
 * worker of its rank had, it takes all that up, so the run goes on to the same bits. Else the tables begin anew, and
 * all workers make their first models at the point of one of the workers before: no model is lost but its curvature. */
#ifndef PLI_LEARN_LINEAR_NEWTON_STATE_H
#define PLI_LEARN_LINEAR_NEWTON_STATE_H

#include "learn/keep/keep.h"
#include "learn/linear/newton.h"
#include "learn/solve/own_rows.h"

/* What a worker tells of its model in the table's last row. */
enum { PLI_NEWTON_MODELS, PLI_NEWTON_LOSS, PLI_NEWTON_RENEWALS, PLI_NEWTON_EXCESS, PLI_NEWTON_NOTES };
enum { PLI_LIMITED_PAIRS = 10 };
/* The numbers of a checkpoint begin with these two. */
enum { PLI_KEPT_PLACE, PLI_KEPT_HAS_MODEL, PLI_KEPT_FIRST };
enum { PLI_NEWTON_NUMBERS = 12, PLI_LIMITED_NUMBERS = 44 };

struct pli_newton {
    plait_table     *table;
    pli_newton_rows *rows; /* NULL: this worker has none */
    pli_own_rows         held;
    int64_t          columns;       /* of the table */
    int64_t          table_rows;
    pli_quadratic    sum, own, last; /* the model in the table; the own one; what of it was pushed */
    double           own_notes[PLI_NEWTON_NOTES], last_notes[PLI_NEWTON_NOTES];
    double          *at, *least, *scratch, *delta, *penalty;
    double           loss, excess; /* of the models in the table; excess: of a smoothed loss, else 0 */
    bool             sharper;  /* the loss has become sharper since the own model was made */
    double           renewals, renewals_seen; /* how often a model was renewed; the same when a clock last looked */
    double           gap;      /* how far the own point is above the least point, as a share of the objective */
    bool             has_model, whole, converged;
    bool             moved;    /* workers may be at points of their own, though nobody has a model */
    bool             rests;    /* mirrors are averaged in some clocks alone: sums are read behind barriers */
    bool             complete; /* rests: every worker's model is in the sum that was read last */
    bool             confirms; /* the next clock makes all models at one point, and a look follows it */
    bool             aimed;    /* least is the point on which the last look has agreed; not so in a run that resumes */
    int64_t          sharpened; /* how often the loss has become sharper */
    double           numbers[PLI_NEWTON_NUMBERS]; /* of the last checkpoint (newton_kept.c) */
    double          *scores;    /* of own rows, out of a checkpoint; NULL: none wait for the rows */
    pli_sums         sums;
};

struct pli_limited {
    plait_table     *table, *diagonal_table;
    pli_newton_rows *rows; /* NULL: this worker has none */
    pli_own_rows         held;
    int64_t          values;       /* weights */
    int64_t          table_values; /* of the table: slopes, masses, notes */
    int32_t          memory, pairs, newest;
    double          *vectors;      /* all vectors [values] of the point and the pairs, one behind the other */
    double          *diagonal;     /* [values] B, of all workers */
    double          *own_diagonal; /* [values] B_i */
    double          *penalty;      /* [values]; NULL: all 1 */
    double          *at, *to;      /* [values] v_i; where the next move aims */
    double          *x, *slope;    /* [values] the point of all, and the slope of the objective there */
    double          *x_before, *slope_before;
    double          *s, *y;        /* [memory, values] */
    double           sy[PLI_LIMITED_PAIRS];
    bool             averages;        /* reads are the sums behind a barrier alone */
    bool             in_step, is_due; /* workers go in step; the next clock is to go to `to` */
    int32_t          idle_looks;      /* looks in a row in which the gap has not become smaller */
    int32_t          loose_looks;     /* looks before the workers go in step */
    double           least_gap;       /* of all looks */
    double          *d;               /* [values] in step: the direction from x_before */
    double          *kept;            /* [values] the best point that all have looked at */
    double           kept_objective;
    double          *told;            /* [looks] the objective at each look */
    int64_t          looks, told_capacity;
    double           base, descent;   /* in step: the objective at x_before; slope times d */
    double          *last, *delta; /* [table_values] what of the own model was pushed; what it has become */
    double           renewals, renewals_seen, renewals_paired; /* of all models, ever */
    double           loss, objective, best, stretch, gap;
    double           numbers[PLI_LIMITED_NUMBERS]; /* of the last checkpoint (newton_limited_kept.c) */
    double          *scores;       /* of own rows, out of a checkpoint; NULL: none wait for the rows */
    bool             has_model, has_diagonal, has_before, whole, converged;
    bool             pushed_diagonal; /* the table has the own diagonal, or is to get it */
    bool             moved;           /* workers may be at points of their own, though nobody has a model */
    pli_sums         sums;
};

/* --- newton_kept.c ------------------------------------------------------------------------------------------------ */

pli_solver_keeps pli_newton_keeps(pli_run *run);
/** The rows are there: goes on with what a checkpoint holds of them, if anything. Errors: EMISMATCH. */
plait_status pli_newton_take_up(pli_run *run);
/** newton.c: makes the loss sharper, if it can be. */
void pli_newton_sharpen(pli_run *run);

/** Takes the point [values] of a worker of the run before that had a model, if any had. numbers, point: the names of
 *  own arrays of that run; the first begins with a place and with whether there is a model. */
plait_status pli_newton_take_point(const pli_run *run, const char *numbers, const char *point, int64_t values,
                                   double *at);
/** The array of own scores, for a checkpoint. rows NULL: this worker has none. */
pli_kept     pli_newton_scores_kept(pli_newton_rows *rows, const char *name, int64_t columns);
/** Reads it back. The caller frees *scores_out. */
plait_status pli_newton_scores_read(const pli_run *run, const char *name, double **scores_out);
/** Gives the rows the scores out of a checkpoint, and frees these. Errors: EMISMATCH. */
plait_status pli_newton_scores_give(const pli_run *run, pli_newton_rows *rows, int64_t columns, double **scores);

/* --- newton_limited_kept.c ---------------------------------------------------------------------------------------- */

pli_solver_keeps pli_limited_keeps(pli_run *run);
/** How many vectors of limited->vectors a checkpoint holds: all but the first. */
int64_t          pli_limited_vectors(const pli_limited *limited);

#endif
