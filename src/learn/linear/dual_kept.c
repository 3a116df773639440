/* Checkpoints of the dual method. The table is the sum that is w. What belongs to a row, its shares and how long it
 * pauses, is kept by block (keep/row_values.h), so another number of workers finds it, too. The rest is the same on all
 * workers. With as many workers as before a run goes on in the midst of a pass, to the same bits. Others have other
 * turns: they begin at the next pass. */
#include <string.h>

#include "learn/keep/row_values.h"
#include "learn/linear/dual_state.h"

#define NUMBERS "dual.numbers"
#define BASE "dual.base"
#define BEST "dual.best"

enum { TURNS, LEAST, BOUND, GAIN, OF_NUMBERS };
_Static_assert((int)OF_NUMBERS == (int)PLI_DUAL_NUMBERS, "the numbers of a checkpoint");

static pli_dual *dual_of(const pli_run *run) { return pli_linear_fit_of(run)->dual; }

static int32_t kept(void *state, pli_kept kept_out[PLI_KEPT]) {
    pli_dual     *n = dual_of(state);
    const int64_t k = n->point.columns;
    n->numbers[TURNS] = n->turns.turns;
    n->numbers[LEAST] = n->least;
    n->numbers[BOUND] = n->bound;
    n->numbers[GAIN] = n->gain;
    kept_out[0] = (pli_kept){ NUMBERS, "F64", OF_NUMBERS, 0, n->numbers };
    kept_out[1] = (pli_kept){ BASE, "F64", k, 0, n->point.base };
    kept_out[2] = (pli_kept){ BEST, "F64", n->point.features + 2, k, n->best };
    return 3;
}

/* The rows lie elsewhere than a checkpoint takes them from. */
static int32_t own(void *state, pli_kept kept_out[PLI_KEPT]) {
    const pli_dual *n = dual_of(state);
    (void)kept_out;
    if (n->rows != NULL) pli_dual_rows_save(n->rows, &n->held.batch);
    return 0;
}

/* Has the checkpoint the shares of all own rows? Not those of a worker that had died, if nobody had taken them over
 * yet. Collective. */
static plait_status see_torn(const pli_run *run, bool *torn_out) {
    double lacks = 0;
    for (int32_t i = 0; i < pli_dataset_own_blocks(run->data); i++) {
        char             name[PLI_ROW_VALUES_NAME];
        const pli_block *block = pli_dataset_block(run->data, i);
        pli_row_values_name((int32_t)block->number, name);
        if (block->rows > 0 && !pli_resume_has(run, name, NULL)) lacks = 1;
    }
    PLI_TRY(plait_comm_allreduce(run->comm, &lacks, 1, PLAIT_F64, PLAIT_MAX));
    *torn_out = lacks > 0;
    return PLAIT_OK;
}

/* What is the same on all workers. */
static plait_status take(void *state) {
    const pli_run *run = state;
    pli_dual      *n = dual_of(run);
    const int64_t  k = n->point.columns;
    PLI_TRY(pli_resume_array(run, NUMBERS, OF_NUMBERS, 8, n->numbers));
    PLI_TRY(pli_resume_array(run, BASE, k, 8, n->point.base));
    PLI_TRY(pli_resume_array(run, BEST, n->point.features + 2, k * 8, n->best));
    n->least = n->numbers[LEAST];
    n->bound = n->numbers[BOUND];
    n->gain = n->numbers[GAIN];
    return PLAIT_OK;
}

static plait_status restore(void *state) {
    PLI_TRY(take(state));
    return see_torn(state, &dual_of(state)->torn);
}

/* An epoch of the loop is one turn. */
static plait_status find_place(pli_run *run) {
    const int64_t turns = dual_of(run)->turns.turns;
    pli_resume   *r = run->resume;
    double        numbers[OF_NUMBERS];
    PLI_TRY(pli_resume_array(run, NUMBERS, OF_NUMBERS, 8, numbers));
    const int64_t before = numbers[TURNS] >= 1 ? (int64_t)numbers[TURNS] : 1;
    if (before == turns) return PLAIT_OK;
    const int64_t passes = (r->epoch + before) / before; /* that have begun */
    r->epoch = r->epochs_done = passes * turns;
    r->epoch_clock = 0;
    return PLAIT_OK;
}

plait_status pli_dual_keeps(pli_run *run) {
    const bool saves = run->opts->checkpoint != NULL || run->resume != NULL || run->opts->replicas > 1;
    if (!saves && !pli_settles(run)) return PLAIT_OK;
    run->solver_keeps = (pli_solver_keeps){ .state = run, .kept = kept, .own = own, .restore = restore,
                                            .take = take };
    PLI_TRY(pli_row_values_begin_with(run, PLAIT_F64, pli_dual_row_numbers(dual_of(run)->point.columns)));
    return run->resume != NULL ? find_place(run) : PLAIT_OK;
}
