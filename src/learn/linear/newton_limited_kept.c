/* Checkpoints of a run by sums of models with a limited memory. See newton_state.h. */
#include <string.h>

#include "learn/linear/newton_state.h"
#include "table/table.h"

#define NUMBERS "newton.limited"
#define POINT "newton.point"
#define VECTORS "newton.vectors"
#define PUSHED "newton.pushed"
#define TOLD "newton.told"
#define SCORES "newton.scores"

enum {
    PAIRS = PLI_KEPT_FIRST, NEWEST, IN_STEP, IS_DUE, IDLE_LOOKS, LOOSE_LOOKS, LEAST_GAP, KEPT_OBJECTIVE, BASE, DESCENT,
    RENEWALS, RENEWALS_SEEN, RENEWALS_PAIRED, LOSS, OBJECTIVE, BEST, STRETCH, GAP, HAS_DIAGONAL, HAS_BEFORE, WHOLE,
    FIRST_SUM
};
enum { FIRST_SY = FIRST_SUM + sizeof(pli_sums) / sizeof(double) };
_Static_assert(FIRST_SY + (int)PLI_LIMITED_PAIRS <= (int)PLI_LIMITED_NUMBERS, "the numbers of a checkpoint");

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static void write_numbers(const pli_run *run, pli_limited *n) {
    double *to = n->numbers;
    to[PLI_KEPT_PLACE] = pli_keep_place(run);
    to[PLI_KEPT_HAS_MODEL] = n->has_model;
    to[PAIRS] = n->pairs;
    to[NEWEST] = n->newest;
    to[IN_STEP] = n->in_step;
    to[IS_DUE] = n->is_due;
    to[IDLE_LOOKS] = n->idle_looks;
    to[LOOSE_LOOKS] = n->loose_looks;
    to[LEAST_GAP] = n->least_gap;
    to[KEPT_OBJECTIVE] = n->kept_objective;
    to[BASE] = n->base;
    to[DESCENT] = n->descent;
    to[RENEWALS] = n->renewals;
    to[RENEWALS_SEEN] = n->renewals_seen;
    to[RENEWALS_PAIRED] = n->renewals_paired;
    to[LOSS] = n->loss;
    to[OBJECTIVE] = n->objective;
    to[BEST] = n->best;
    to[STRETCH] = n->stretch;
    to[GAP] = n->gap;
    to[HAS_DIAGONAL] = n->has_diagonal;
    to[HAS_BEFORE] = n->has_before;
    to[WHOLE] = n->whole;
    memcpy(to + FIRST_SUM, &n->sums, sizeof n->sums);
    memcpy(to + FIRST_SY, n->sy, sizeof n->sy);
}

static void read_numbers(pli_limited *n) {
    const double *from = n->numbers;
    n->has_model = from[PLI_KEPT_HAS_MODEL] > 0;
    n->pairs = (int32_t)from[PAIRS];
    n->newest = (int32_t)from[NEWEST];
    n->in_step = from[IN_STEP] > 0;
    n->is_due = from[IS_DUE] > 0;
    n->idle_looks = (int32_t)from[IDLE_LOOKS];
    n->loose_looks = (int32_t)from[LOOSE_LOOKS];
    n->least_gap = from[LEAST_GAP];
    n->kept_objective = from[KEPT_OBJECTIVE];
    n->base = from[BASE];
    n->descent = from[DESCENT];
    n->renewals = from[RENEWALS];
    n->renewals_seen = from[RENEWALS_SEEN];
    n->renewals_paired = from[RENEWALS_PAIRED];
    n->loss = from[LOSS];
    n->objective = from[OBJECTIVE];
    n->best = from[BEST];
    n->stretch = from[STRETCH];
    n->gap = from[GAP];
    n->has_diagonal = from[HAS_DIAGONAL] > 0;
    n->has_before = from[HAS_BEFORE] > 0;
    n->whole = from[WHOLE] > 0;
    memcpy(&n->sums, from + FIRST_SUM, sizeof n->sums);
    memcpy(n->sy, from + FIRST_SY, sizeof n->sy);
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

static int32_t kept(void *state, pli_kept kept_out[PLI_KEPT]) {
    static const double none = 0;
    const pli_limited  *n = pli_linear_fit_of(state)->limited;
    kept_out[0] = (pli_kept){ TOLD, "F64", n->looks, 0, n->told != NULL ? n->told : &none };
    return 1;
}

static int32_t own(void *state, pli_kept kept_out[PLI_KEPT]) {
    const pli_run *run = state;
    pli_limited   *n = pli_linear_fit_of(run)->limited;
    write_numbers(run, n);
    kept_out[0] = (pli_kept){ NUMBERS, "F64", PLI_LIMITED_NUMBERS, 0, n->numbers };
    kept_out[1] = (pli_kept){ POINT, "F64", 1, n->values, n->at };
    kept_out[2] = (pli_kept){ VECTORS, "F64", pli_limited_vectors(n), n->values, n->diagonal };
    kept_out[3] = (pli_kept){ PUSHED, "F64", n->table_values, 0, n->last };
    kept_out[4] = pli_newton_scores_kept(n->rows, SCORES, pli_linear_fit_of(run)->linear.goal.columns);
    return 5;
}

static plait_status restore_same(pli_run *run) {
    pli_limited *n = pli_linear_fit_of(run)->limited;
    PLI_TRY(pli_resume_own(run, NUMBERS, PLI_LIMITED_NUMBERS, 8, n->numbers));
    PLI_TRY(pli_resume_own(run, VECTORS, pli_limited_vectors(n), n->values * 8, n->diagonal));
    PLI_TRY(pli_resume_own(run, PUSHED, n->table_values, 8, n->last));
    PLI_TRY(pli_newton_scores_read(run, SCORES, &n->scores));
    if (!pli_resume_has(run, TOLD, &n->looks) ||
        !pli_grow((void **)&n->told, &n->told_capacity, n->looks + 1, sizeof *n->told))
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a run's objectives");
    PLI_TRY(pli_resume_array(run, TOLD, n->looks, 8, n->told));
    read_numbers(n);
    return PLAIT_OK;
}

static plait_status restore(void *state) {
    pli_run     *run = state;
    pli_limited *n = pli_linear_fit_of(run)->limited;
    bool         same;
    PLI_TRY(pli_resume_is_same(run, NUMBERS, PLI_LIMITED_NUMBERS, &same));
    if (same) return restore_same(run);
    n->moved = true;
    PLI_TRY(pli_newton_take_point(run, NUMBERS, POINT, n->values, n->at));
    PLI_TRY(plait_table_zero(n->table));
    return plait_table_zero(n->diagonal_table);
}

pli_solver_keeps pli_limited_keeps(pli_run *run) {
    return (pli_solver_keeps){ .state = run, .kept = kept, .own = own, .restore = restore };
}
