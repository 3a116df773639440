/* The list of solvers, and what each demands. See solver.h. */
#include "learn/solve/solver.h"

#include <string.h>

const char *pli_solver_steps_given(const pli_run *run) {
    const plait_train_opts *o = run->opts;
    if (o->learning_rate > 0) return "a learning rate was given, so an update rule takes steps of it";
    if (o->schedule != NULL) return "a schedule was given, so an update rule takes steps by it";
    if (o->batch > 0) return "a batch was given, so an update rule takes a step for each";
    return NULL;
}

/* A solver that passes over the rows again and again finds its steps, and its end, by itself. */
static bool suits_passes(const pli_run *run, const char **why_out) {
    *why_out = run->opts->epochs == 1    ? "a single pass was asked for"
               : run->opts->patience > 0 ? "--patience ends a run by validation losses, and solvers end by themselves"
                                         : pli_solver_steps_given(run);
    return *why_out == NULL;
}

/* One pass, and no step size is given. */
static bool suits_one_pass(const pli_run *run, const char **why_out) {
    const plait_train_opts *o = run->opts;
    *why_out = o->epochs != 1 ? "the rows are passed over more than once" : pli_solver_steps_given(run);
    return *why_out == NULL;
}

const pli_solver pli_solver_online = {
    .name = "online",
    .why = "each row is seen once: online learning needs no step size, whatever the features' scales (it applies no "
           "penalty; the objective counts it)",
    .adds = true,
    .suits = suits_one_pass,
    .demand = { .who = "online",
                .needs = PLAIT_ONE_COPY,
                .why = "its sums of what each row has taught must not be averaged",
                .traits = PLAIT_OWN_STEPS | PLAIT_IN_SEQUENCE }
};

const pli_solver pli_solver_lbfgs = {
    .name = "lbfgs",
    .why = "rows stay and reads are whole clocks, so L-BFGS converges, whatever the features' scales",
    .passes = true,
    .settles = true,
    .suits = suits_passes,
    .demand = { .who = "lbfgs",
                .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY | PLAIT_FUNCTIONS,
                .why = "a line search compares sums over all rows at one point",
                .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS | PLAIT_OWN_END |
                          PLAIT_COMPARES | PLAIT_SMOOTH }
};

const pli_solver pli_solver_newton = {
    .name = "newton",
    .why = "rows stay and reads may be stale: a sum of the workers' models needs no step size",
    .why_mirrors = "rows stay and workers average mirrors: a sum of the workers' models needs no step size",
    .passes = true,
    .settles = true,
    .adds = true,
    .suits = suits_passes,
    .demand = { .who = "newton",
                .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS | PLAIT_OWN_END | PLAIT_HOLDS_SHARE |
                          PLAIT_SUMS_ANEW | PLAIT_COMPARES | PLAIT_SMOOTH }
};

const pli_solver pli_solver_cd = {
    .name = "cd",
    .why = "rows stay and the penalty gives the loss a dual problem: ascent row by row needs no step size",
    .draws = true,
    .passes = true,
    .settles = true,
    .adds = true,
    .by_data = true,
    .suits = suits_passes,
    .demand = { .who = "cd",
                .needs = PLAIT_ONE_COPY,
                .why = "its sum of what each row weighs must not be averaged",
                .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS | PLAIT_OWN_END | PLAIT_HOLDS_SHARE |
                          PLAIT_SUMS_ANEW | PLAIT_COMPARES }
};

const pli_solver pli_solver_coordinates = {
    .name = "cd",
    .why = "a path of penalties was asked for, which coordinates take from one to the next",
    .passes = true,
    .settles = true,
    .adds = true,
    .by_data = true,
    .suits = suits_passes,
    .demand = { .who = "cd",
                .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
                .why = "all workers must move the same coordinate by the same sum",
                .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS | PLAIT_OWN_END | PLAIT_HOLDS_SHARE |
                          PLAIT_SUMS_ANEW | PLAIT_COMPARES }
};

const pli_solver pli_solver_als = {
    .name = "als",
    .why = "with one side's factors held, the other's are least squares",
    .adds = true,
    .draws = true,
    .by_data = true,
    .of = "factorisations",
    .demand = { .who = "als",
                .needs = PLAIT_WHOLE_CLOCKS | PLAIT_ONE_COPY,
                .why = "one side is solved while the other is held",
                .traits = PLAIT_ALL_ROWS | PLAIT_OWN_STEPS }
};

static const pli_solver *const solvers[] = { &pli_solver_online, &pli_solver_lbfgs, &pli_solver_newton,
                                             &pli_solver_cd, &pli_solver_coordinates, &pli_solver_als,
                                             NULL };

const pli_solver *const *pli_solvers(void) { return solvers; }

const pli_solver *pli_solver_find(const char *name) {
    for (int i = 0; solvers[i] != NULL; i++)
        if (strcmp(solvers[i]->name, name) == 0) return solvers[i];
    return NULL;
}
