/* learn/solve/solver.h - solvers: ways to train that are not an update rule of the tables. Each says what it demands of
 * the other settings, and when `--optimizer auto` takes it; solvers.c lists them. A learner says which of them it has
 * (pli_learner_more.solvers); its train() runs the one of the run (pli_run.solver).
 *
 *     online   one pass, row by row                            each row is seen once
 *     lbfgs    whole passes, server functions                  reads are whole clocks
 *     newton   whole passes, sums of quadratic models          reads may be stale; few weights
 *     cd       whole passes, row by row in the dual problem    a loss with a kink and a dual, and l2 > 0
 *     cd       whole passes, weight by weight                  a smooth loss of one score, and l1 > 0
 *     als      of factorisations: one side's rows in turn      reads are whole clocks
 *
 * Two solvers may have one name. A learner has one of them at most.
 */
#ifndef PLI_LEARN_SOLVER_H
#define PLI_LEARN_SOLVER_H

#include "learn/learner.h"

struct pli_solver {
    const char *name;   /* as --optimizer knows it                                          */
    const char *why;    /* why auto takes it: "reads are whole clocks, so ..."              */
    const char *why_mirrors; /* the same, where workers average mirrors; NULL: as why           */
    pli_demand  demand; /* of the other settings (table/pairs/)                             */
    bool        passes; /* each clock is a pass over all rows                               */
    bool        settles; /* with --balance dynamic rows change hands where all workers meet (settled.h)      */
    bool        adds;   /* its tables have no update rule                                   */
    bool        draws;  /* it goes through the rows in an order that the seed decides      */
    bool        by_data; /* auto takes it only where the learner, once it knows the data, prefers it       */
    const char *of;         /* what it is written for: "linear models" */
    /** Does auto consider it for these options? why_out: else why not. It is asked before the data are read. */
    bool (*suits)(const pli_run *run, const char **why_out);
};

extern const pli_solver pli_solver_online, pli_solver_lbfgs, pli_solver_newton, pli_solver_cd, pli_solver_coordinates,
    pli_solver_als;

/** All solvers, NULL-ended. */
const pli_solver *const *pli_solvers(void);
/** A solver of this name; NULL: none. */
const pli_solver *pli_solver_find(const char *name);

/** Is the option a solver's that finds its own steps, so that auto leaves it to an update rule? Says which. NULL: no
 *  such option was given. */
const char *pli_solver_steps_given(const pli_run *run);

#endif
