/* learn/solve/lbfgs_run.h - a run of L-BFGS on one worker, and a model's part of it: passes over the worker's rows.
 *
 *     lbfgs.c            iterations: the two loops, line search, ends
 *     lbfgs_functions.c  the vectors, on their shards
 *     lbfgs_blocks.c     with blocks of the Hessian as metric, for few weights
 *     lbfgs_rows.c       whose rows the worker passes over, and what becomes of a dead worker's
 *     lbfgs_kept.c       what a checkpoint holds beside the vectors' tables; lbfgs_blocks_kept.c of the other
 *     linear/, net/      the passes of a model
 */
#ifndef PLI_LEARN_LBFGS_RUN_H
#define PLI_LEARN_LBFGS_RUN_H

#include <math.h>

#include "learn/keep/keep.h"
#include "learn/solve/doors.h"
#include "learn/solve/inherit.h"
#include "learn/solve/lbfgs.h"
#include "learn/solve/progress.h"

typedef struct pli_lbfgs {
    pli_run       *run;
    plait_type     type;
    int64_t        rows, columns, values; /* of a table; rows x columns */
    plait_table   *w;
    plait_table   *table[6 + 2 * PLI_LBFGS_MEMORY_MAX], *g, *h;
    int32_t        tables;
    pli_lbfgs_args args;
    pli_batches   *batches;
    pli_batch      batch;  /* the rows that the pass at hand goes over */
    pli_heir       heir;   /* of a run that goes on when a worker dies; part NULL: of any other        */
    int32_t       *held;   /* [n_held] the blocks whose rows it went over in the clock at hand, save those that fell
                            * to it in that clock                                                      */
    int32_t        n_held;
    bool           looks;  /* the pass at hand pushes nothing: only the losses are wanted              */
    const struct pli_lbfgs_pass *pass;
    void          *own; /* of the pass */
    pli_meter      meter;
    /* dot products of the slots, see pli_lbfgs_dots */
    double sy[PLI_LBFGS_MEMORY_MAX][PLI_LBFGS_MEMORY_MAX], yhy[PLI_LBFGS_MEMORY_MAX][PLI_LBFGS_MEMORY_MAX];
    pli_lbfgs_dots  dots;
    pli_lbfgs_slope slope;
    pli_lbfgs_moved moved;
    int32_t         age[PLI_LBFGS_MEMORY_MAX], pairs; /* slots, oldest first */
    double          objective, loss;
    double          length;         /* of the last step; 0: none */
    double          first_stretch;  /* of a stage: how much flatter its loss's curvature is than the metric's */
    double          stretch;        /* factor of the metric's step, while no pair tells the curvature */
    double         *fallen; /* [iterations so far + 1] objectives: how it fell */
    int64_t         fallen_capacity;
    bool            is_soft; /* the loss stands for one with a kink, and is made sharper by stages (pass->sharpen)  */
    double          excess;  /* of such a loss, at the point at hand: what the smoothing adds to the objective's gap */
    int64_t         stage;   /* iterations done when this stage began; 0: the only one */
    int64_t         sharpened; /* how often the loss was made sharper */
    int64_t         iteration; /* how many there were, those without an accepted step included */
    double         *kept;      /* the numbers of the last checkpoint (lbfgs_kept.c) */
    int64_t         kept_capacity;
    bool            stop, by_blocks;
    pli_loop        doors; /* workers come and go between two iterations (doors.h) */
    bool            differences; /* losses see no more of a row's scores than their differences, and w starts so, too */
    bool            single; /* the model computes in float32, whatever the tables have */
} pli_lbfgs;

/* A model's part. Its passes go over l->batch: all rows of the worker, or those of a dead one that fall to it. */
typedef struct pli_lbfgs_pass {
    /** Sets rows, columns, values, type and args' memory, packed and free_row; makes memory. end follows in any
     *  case. */
    plait_status (*begin)(pli_lbfgs *l);
    void (*end)(pli_lbfgs *l);
    /** initial: the first weights; penalty: the penalty's factors; both [rows, columns] in the type of the tables. The
     *  caller frees them. NULL: all weights 0, all factors 1. */
    plait_status (*initial)(const pli_lbfgs *l, void **initial_out);
    plait_status (*penalty)(const pli_lbfgs *l, void **penalty_out);
    /** Pushes this batch's part of the metric's diagonal, whose sum is never 0, to table h. */
    plait_status (*metric)(pli_lbfgs *l);
    /** Pushes the mean gradient of the losses at these values of w to table g, and adds the losses to total; under
     *  --reduce exact block by block. l->looks: it pushes nothing. */
    plait_status (*compute)(pli_lbfgs *l, const void *values, pli_total *total);
    /** NULL: never. Else: are the blocks of the Hessian few enough, and do these settings go with them? Asked after
     *  begin. */
    bool (*has_blocks)(const pli_lbfgs *l);
    /** Pushes the blocks [blocks, rows, rows] of the Hessian of the losses at these values to table h, blocks = 1 or
     *  columns; left of their diagonals, zeros. */
    plait_status (*blocks)(pli_lbfgs *l, const void *values, int64_t blocks);
    /** Of a smoothed loss (is_soft): makes it sharper by a stage. Returns the new width as a share of the old one; 1:
     *  it is as sharp as it gets. compute leaves the excess of its losses in the sums' `absolute`. */
    double (*sharpen)(pli_lbfgs *l);
    /** EDIVERGED with the remedy, unless the loss is finite. */
    plait_status (*finite)(const pli_run *run, double loss, int64_t iteration);
    /** The iterations are over: takes these values as the solution. Collective. */
    plait_status (*solved)(pli_run *run, plait_type type, const void *values);
} pli_lbfgs_pass;

/** Trains: makes tables, iterates, takes the solution. The job has the functions of pli_lbfgs_add_functions. */
plait_status pli_lbfgs_run(pli_run *run, const pli_lbfgs_pass *pass);

/** The same by blocks of the Hessian (lbfgs_blocks.c), up to the solution; pli_lbfgs_run calls it once the pass has
 *  begun and l has its batch. Ends the pass. */
plait_status pli_lbfgs_run_by_blocks(pli_lbfgs *l);

/** Notes the objective after run->epochs_done iterations. Errors: ENOMEM. */
plait_status pli_lbfgs_keep_objective(pli_lbfgs *l);
/** How much the objective fell in the last n iterations of this stage; infinite if there were not so many. */
double pli_lbfgs_fell(const pli_lbfgs *l, int64_t n);

/** The iterations of this stage. */
static inline int64_t pli_lbfgs_done(const pli_lbfgs *l) { return l->run->epochs_done - l->stage; }
/** The excess as a share of the objective. */
static inline double pli_lbfgs_excess(const pli_lbfgs *l) {
    return l->objective > 0 ? l->excess / l->objective : l->excess > 0 ? (double)INFINITY : 0;
}
/** Makes a smoothed loss sharper by a stage, as pass->sharpen. */
double pli_lbfgs_sharpen(pli_lbfgs *l);
/** Is the solver's own gap (a share of the objective) so small beside the excess that the next stage may begin? */
bool pli_lbfgs_may_sharpen(const pli_lbfgs *l, double own);

/* --- rows: lbfgs_rows.c ------------------------------------------------------------------------------------------- */

/** Makes batches, and l->batch. end follows in any case. */
plait_status pli_lbfgs_rows_begin(pli_lbfgs *l);
void         pli_lbfgs_rows_end(pli_lbfgs *l);
/** Does `add` over the worker's rows (l->batch), and ends the clock. If a worker has died in it, does `add` over the
 *  rows that fall to this one, too: once the clock has ended, the tables have what all rows add, each once. */
typedef plait_status pli_lbfgs_add(pli_lbfgs *l, void *arg);
plait_status pli_lbfgs_clock(pli_lbfgs *l, pli_lbfgs_add *add, void *arg);
/** A clock whose `add` is pass->compute at these values; NULL: at those of w. *own_out: the sums over the own rows.
 *  Sets l->loss, excess and stop by the sums over all rows. Collective. */
plait_status pli_lbfgs_evaluate(pli_lbfgs *l, const void *values, pli_sums *own_out);

/* --- checkpoints: lbfgs_kept.c ------------------------------------------------------------------------------------ */

/* A checkpoint is cut between two iterations. */

/** The tables are there: the run may write checkpoints of them and of what `keeps` names. Resumes from one, if it is
 *  to: *resumed_out. Collective. */
plait_status pli_lbfgs_keep_begin(pli_lbfgs *l, const pli_solver_keeps *keeps, bool *resumed_out);
/** After an iteration: takes a checkpoint if one is due, and notes in l->stop whether all end now. Collective. */
plait_status pli_lbfgs_keep(pli_lbfgs *l);
/** Does this worker wish to stop at once? With checkpoints it stops after an iteration. */
static inline bool pli_lbfgs_stops_here(const pli_lbfgs *l) { return pli_run_stops_here(l->run); }
/** Training is over, well or not: completes the checkpoint under way if it went well. Collective then. */
plait_status pli_lbfgs_keep_end(pli_lbfgs *l, plait_status status);

/** Workers come and go from here on; it is past pli_lbfgs_keep_begin, and iterations follow. *came_out: this worker was
 *  away, and has come between two of them. PLAIT_END: the others have ended. Collective. */
plait_status pli_lbfgs_doors_begin(pli_lbfgs *l, bool *came_out);
/** After an iteration: workers come and go; *came_out: this one has gone, and come again. PLAIT_END: it has gone, and
 *  the others have ended. Collective. */
plait_status pli_lbfgs_door(pli_lbfgs *l, bool *came_out);

/** What checkpoints hold beside the tables of vectors. */
pli_solver_keeps pli_lbfgs_keeps(pli_lbfgs *l);
/** Writes numbers [n] and the objectives so far to l->kept; returns how many there are. NULL: no memory. */
const double *pli_lbfgs_write_numbers(pli_lbfgs *l, int64_t n, const double *numbers, int64_t *all_out);
/** Reads them back: numbers [n], and the objectives to l->fallen. name: of the array. */
plait_status pli_lbfgs_read_numbers(pli_lbfgs *l, const char *name, int64_t n, double *numbers);

/** Writes the server functions that the run needs, for pli_learner_more.functions; returns how many. They run on the
 *  pool of comm. */
int32_t pli_lbfgs_add_functions(plait_comm *comm, bool exact, plait_function *functions_out);

#endif
