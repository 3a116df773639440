/* Checkpoints of a run by sums of quadratic models. See newton_state.h. */
#include <string.h>

#include "learn/linear/newton_state.h"
#include "table/table.h"

#define NUMBERS "newton.numbers"
#define POINT "newton.point"
#define SCORES "newton.scores"
#define SHARPNESS "newton.sharpened"

enum { WHOLE = PLI_KEPT_FIRST, SHARPER, RENEWALS_SEEN, SHARPENED, CONFIRMS, FIRST_NOTE };
_Static_assert(FIRST_NOTE + (int)PLI_NEWTON_NOTES <= (int)PLI_NEWTON_NUMBERS, "the numbers of a checkpoint");

static int64_t values_of(const pli_newton *n) { return n->sum.rows * n->sum.columns; }

/* --- what both ways share ----------------------------------------------------------------------------------------- */

plait_status pli_newton_take_point(const pli_run *run, const char *numbers, const char *point, int64_t values,
                                   double *at) {
    for (int32_t w = 0; w < run->resume->workers; w++) {
        char    name[PLI_CHECKPOINT_NAME];
        double  first[PLI_KEPT_FIRST];
        int64_t rows = 0;
        pli_kept_own_name(numbers, w, name);
        if (!pli_resume_has(run, name, &rows)) continue; /* it had died */
        PLI_TRY(pli_resume_rows(run, name, 0, PLI_KEPT_FIRST, rows, sizeof *first, first));
        if (first[PLI_KEPT_HAS_MODEL] == 0) continue;
        pli_kept_own_name(point, w, name);
        return pli_resume_rows(run, name, 0, 1, 1, values * (int64_t)sizeof *at, at);
    }
    return PLAIT_OK;
}

pli_kept pli_newton_scores_kept(pli_newton_rows *rows, const char *name, int64_t columns) {
    static const double none = 0;
    int64_t             n = 0;
    const double       *score = rows != NULL ? pli_newton_scores(rows, &n) : &none;
    return (pli_kept){ name, "F64", n * columns + 1, 0, score }; /* one more, so that there is always one */
}

plait_status pli_newton_scores_read(const pli_run *run, const char *name, double **scores_out) {
    char    own[PLI_CHECKPOINT_NAME];
    int64_t n = 0;
    pli_kept_own_name(name, plait_comm_rank(run->comm), own);
    if (!pli_resume_has(run, own, &n))
        return pli_fail(run->err, PLAIT_EMISMATCH, "the checkpoint has no scores of the rows of rank %d",
                        (int)plait_comm_rank(run->comm));
    double *scores = pli_array((size_t)n + 1, sizeof *scores);
    if (scores == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for the scores of %lld rows", (long long)n);
    scores[0] = (double)n;
    *scores_out = scores;
    return pli_resume_array(run, own, n, sizeof *scores, scores + 1);
}

plait_status pli_newton_scores_give(const pli_run *run, pli_newton_rows *rows, int64_t columns, double **scores) {
    int64_t       n;
    double       *to = pli_newton_scores(rows, &n), *from = *scores;
    const int64_t all = (int64_t)from[0];
    *scores = NULL;
    if (all == n * columns + 1) memcpy(to, from + 1, (size_t)(n * columns) * sizeof *to);
    pli_free(from);
    return all == n * columns + 1
               ? PLAIT_OK
               : pli_fail(run->err, PLAIT_EMISMATCH, "the checkpoint has %lld scores of rows, and this run has %lld",
                          (long long)all - 1, (long long)(n * columns));
}

/* --- whole curvature ---------------------------------------------------------------------------------------------- */

static int32_t kept(void *state, pli_kept kept_out[PLI_KEPT]) {
    pli_newton *n = pli_linear_fit_of(state)->newton;
    n->numbers[SHARPENED] = (double)n->sharpened;
    kept_out[0] = (pli_kept){ SHARPNESS, "F64", 1, 0, &n->numbers[SHARPENED] };
    return 1;
}

static int32_t own(void *state, pli_kept kept_out[PLI_KEPT]) {
    const pli_run *run = state;
    pli_newton    *n = pli_linear_fit_of(run)->newton;
    n->numbers[PLI_KEPT_PLACE] = pli_keep_place(run);
    n->numbers[PLI_KEPT_HAS_MODEL] = n->has_model;
    n->numbers[WHOLE] = n->whole;
    n->numbers[SHARPER] = n->sharper;
    n->numbers[RENEWALS_SEEN] = n->renewals_seen;
    n->numbers[SHARPENED] = (double)n->sharpened;
    n->numbers[CONFIRMS] = n->confirms;
    memcpy(n->numbers + FIRST_NOTE, n->own_notes, sizeof n->own_notes);
    kept_out[0] = (pli_kept){ NUMBERS, "F64", PLI_NEWTON_NUMBERS, 0, n->numbers };
    kept_out[1] = (pli_kept){ POINT, "F64", 1, values_of(n), n->at };
    kept_out[2] = pli_newton_scores_kept(n->rows, SCORES, n->sum.columns);
    return 3;
}

static plait_status restore_same(pli_run *run) {
    pli_newton *n = pli_linear_fit_of(run)->newton;
    double      sharpened;
    PLI_TRY(pli_resume_array(run, SHARPNESS, 1, 8, &sharpened));
    while (n->sharpened < (int64_t)sharpened) pli_newton_sharpen(run);
    PLI_TRY(pli_resume_own(run, NUMBERS, PLI_NEWTON_NUMBERS, 8, n->numbers));
    PLI_TRY(pli_resume_own(run, POINT, 1, values_of(n) * 8, n->at));
    PLI_TRY(pli_newton_scores_read(run, SCORES, &n->scores));
    n->has_model = n->numbers[PLI_KEPT_HAS_MODEL] > 0;
    n->whole = n->numbers[WHOLE] > 0;
    n->sharper = n->numbers[SHARPER] > 0;
    n->renewals_seen = n->numbers[RENEWALS_SEEN];
    n->confirms = n->numbers[CONFIRMS] > 0;
    memcpy(n->own_notes, n->numbers + FIRST_NOTE, sizeof n->own_notes);
    memcpy(n->last_notes, n->own_notes, sizeof n->own_notes);
    return PLAIT_OK;
}

/* Where the rows are others, a smoothed loss begins with its first width (see revive in newton.c). */
static plait_status restore(void *state) {
    pli_run    *run = state;
    pli_newton *n = pli_linear_fit_of(run)->newton;
    bool        same;
    PLI_TRY(pli_resume_is_same(run, NUMBERS, PLI_NEWTON_NUMBERS, &same));
    if (same) return restore_same(run);
    n->moved = true;
    PLI_TRY(pli_newton_take_point(run, NUMBERS, POINT, values_of(n), n->at));
    return plait_table_zero(n->table);
}

pli_solver_keeps pli_newton_keeps(pli_run *run) {
    return (pli_solver_keeps){ .state = run, .kept = kept, .own = own, .restore = restore };
}

/* The model follows from the point and the scores. */
plait_status pli_newton_take_up(pli_run *run) {
    pli_newton *n = pli_linear_fit_of(run)->newton;
    if (n->scores == NULL || n->rows == NULL) return PLAIT_OK;
    PLI_TRY(pli_newton_scores_give(run, n->rows, n->sum.columns, &n->scores));
    if (!n->has_model) return PLAIT_OK;
    PLI_TRY(pli_newton_model(n->rows, &n->held.batch, n->at, &n->own, &n->sums));
    memcpy(n->last.h, n->own.h, (size_t)pli_quadratic_values(&n->own) * sizeof *n->own.h);
    memcpy(n->last.r, n->own.r, (size_t)values_of(n) * sizeof *n->own.r);
    return PLAIT_OK;
}
