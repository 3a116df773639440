/* Which optimizer trains: the one that was asked for, or, with auto, the first of the learner's solvers that goes with
 * all other settings, else the learner's update rule. The settings are asked of table/pairs/, which decides for runs
 * that name the optimizer, too; so auto never chooses what would be refused. */
#include <stdio.h>
#include <string.h>

#include "learn/run/run.h"
#include "learn/solve/solver.h"

static const pli_solver *const no_solvers[] = { NULL };

static const pli_solver *const *solvers_of(const pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    return more != NULL && more->solvers != NULL ? more->solvers : no_solvers;
}

static void set(pli_run *run, const pli_solver *solver) {
    run->solver = solver;
    run->lbfgs = solver == &pli_solver_lbfgs;
    run->optimizer = solver != NULL ? solver->name : run->learner->optimizer;
}

static void because(pli_run *run, const char *why) {
    snprintf(run->optimizer_why, sizeof run->optimizer_why, "%s", why);
}

/* Says in a few words why a solver does not go, from a refusal, "X with Y is refused: REASON; nearest is Z": nobody has
 * asked for X. */
static void keep_reason(const pli_solver *solver, const char *refusal, char *why, size_t bytes) {
    static const char refused[] = " refused: ";
    const char       *reason = strstr(refusal, refused);
    reason = reason != NULL ? reason + sizeof refused - 1 : refusal;
    snprintf(why, bytes, "%s does not fit: %.*s", solver->name, (int)strcspn(reason, ";"), reason);
}

static plait_status check_name(const pli_run *run, const char *asked) {
    const char *names[64];
    size_t      n = 0;
    names[n++] = "auto";
    for (; pli_rules()[n - 1] != NULL && n < 24; n++) names[n] = pli_rules()[n - 1]->name;
    for (int i = 0; pli_solvers()[i] != NULL && n < 32; i++)
        if (pli_solver_find(pli_solvers()[i]->name) == pli_solvers()[i]) names[n++] = pli_solvers()[i]->name;
    for (int32_t i = 0; i < run->opts->n_rules && n < 64; i++) names[n++] = run->opts->rules[i].name;
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], asked) == 0) return PLAIT_OK;
    return pli_fail_unknown(run->err, "optimizer", asked, names, n);
}

static bool has(const pli_run *run, const pli_solver *solver) {
    for (int i = 0; solvers_of(run)[i] != NULL; i++)
        if (solvers_of(run)[i] == solver) return true;
    return false;
}

/* The learner's own solver of this name, or else any. */
static const pli_solver *find(const pli_run *run, const char *name) {
    for (int i = 0; solvers_of(run)[i] != NULL; i++)
        if (strcmp(solvers_of(run)[i]->name, name) == 0) return solvers_of(run)[i];
    return pli_solver_find(name);
}

plait_status pli_run_name_optimizer(pli_run *run) {
    const char *asked = run->opts->optimizer;
    PLI_TRY(pli_rules_check_own(run->opts->rules, run->opts->n_rules, run->err));
    if (run->learner->optimizer == NULL) {
        run->optimizer = "none";
        return PLAIT_OK;
    }
    run->chooses = asked == NULL || strcmp(asked, "auto") == 0;
    if (!run->chooses) PLI_TRY(check_name(run, asked));
    set(run, run->chooses ? NULL : find(run, asked));
    if (run->chooses) return PLAIT_OK;
    if (run->solver == NULL) run->optimizer = asked;
    else if (!has(run, run->solver))
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "optimizer %s with model %s is refused: it is written for %s; nearest is --optimizer "
                        "%s", asked, run->opts->model, run->solver->of != NULL ? run->solver->of : "linear models",
                        run->learner->optimizer);
    return PLAIT_OK;
}

/* Would the run be refused with this solver? *why_out: the reason, if so. */
static bool goes(pli_run *run, const pli_solver *solver, char *why, size_t bytes) {
    const char *unsuited = NULL;
    plait_error before = *run->err;
    set(run, solver);
    if (solver->suits != NULL && !solver->suits(run, &unsuited)) {
        snprintf(why, bytes, "%s", unsuited);
        return false;
    }
    const bool good = pli_tables_check(run) >= 0;
    if (!good) keep_reason(solver, run->err->text, why, bytes);
    *run->err = before;
    return good;
}

static const char *why_taken(const pli_run *run) {
    const bool mirrors = pli_pair_averages(pli_topology_find(run->topology), run->consistency, NULL);
    return mirrors && run->solver->why_mirrors != NULL ? run->solver->why_mirrors : run->solver->why;
}

/* If none goes, the reason is that of the solver that was meant for such a run: of a single pass the first. */
void pli_run_choose_optimizer(pli_run *run) {
    char why[sizeof run->optimizer_why] = "", last[sizeof why] = "";
    if (!run->chooses) return;
    for (int i = 0; solvers_of(run)[i] != NULL && !run->learner->more->by_name_only; i++) {
        if (solvers_of(run)[i]->by_data) continue;
        if (goes(run, solvers_of(run)[i], last, sizeof last)) {
            because(run, why_taken(run));
            return;
        }
        if (i == 0 || run->opts->epochs != 1) memcpy(why, last, sizeof why);
    }
    set(run, NULL);
    because(run, why[0] != '\0' ? why : "it is the default of this model");
}

bool pli_run_try_solver(pli_run *run, const pli_solver *solver, const char *why) {
    const pli_solver *before = run->solver;
    char              unused[sizeof run->optimizer_why];
    if (!has(run, solver) || !goes(run, solver, unused, sizeof unused)) {
        set(run, before);
        return false;
    }
    because(run, why);
    return true;
}

void pli_run_leave_solver(pli_run *run, const char *why) {
    set(run, NULL);
    because(run, why);
}

const char *pli_run_rule(const pli_run *run) {
    const pli_learner_more *more = run->learner->more;
    const bool adds = run->learner->optimizer == NULL || (more != NULL && more->adds) ||
                      (run->solver != NULL && run->solver->adds);
    return adds ? NULL : run->optimizer;
}
