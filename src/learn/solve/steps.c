/* The steps of a learner that is a plait_learner alone: fits its functions to the loop. */
#include "learn/solve/loop.h"

#include <math.h>

#include "learn/keep/row_values.h"
#include "learn/solve/settled.h"

static plait_status begin(pli_run *run) {
    PLI_TRY(pli_row_values_begin(run));
    return run->learner->begin != NULL ? run->learner->begin(run) : PLAIT_OK;
}

static plait_status step(pli_run *run, const pli_batch *batch, int64_t clock, pli_sums *sums_out) {
    plait_step_sums said = { 0 };
    uint64_t   at = pli_comm_span_begin(run->comm);
    (void)clock;
    PLI_TRY(pli_row_values_hold(run, batch));
    pli_loop_work_begin(run);
    pli_settled_begin_work(run);
    PLI_TRY(run->learner->step(run, (const plait_batch *)batch, &said));
    pli_settled_end_work(run, batch->rows);
    pli_loop_work_end(run);
    pli_run_step(run, "compute", &at);
    *sums_out = (pli_sums){ .loss = said.loss, .weight = said.weight, .rows = said.rows };
    if (run->exact) pli_total_add(&run->loop->total, sums_out);
    return PLAIT_OK;
}

/* A step whose batch has no rows only reads. */
static plait_status idle(pli_run *run) {
    plait_step_sums said;
    return run->learner->step(run, (const plait_batch *)&run->loop->batch, &said);
}

static plait_status check_finite(const pli_run *run, double loss, int64_t clock) {
    if (isfinite(loss)) return PLAIT_OK;
    return pli_fail(run->err, PLAIT_EDIVERGED, "the loss of model %s is not finite in clock %lld: look for huge values "
                    "in the data", run->learner->name, (long long)clock);
}

/* --balance dynamic: all decide whose each block is from here on, and the values of rows go where their rows go. */
static plait_status move_rows(pli_run *run, int64_t number) {
    pli_batch    held = { .part = NULL };
    bool         moved;
    plait_status status = pli_settled_meet(run, &moved);
    if (status < 0 || !moved) return status;
    held.part = pli_array((size_t)pli_dataset_blocks(run->data), sizeof *held.part);
    if (held.part == NULL) return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t b = 0; status >= 0 && b < pli_dataset_blocks(run->data); b++)
        if (pli_living_is_mine(run, run->data, b))
            status = pli_batches_part(run->loop->batches, b, number + 1, 0, &held.part[held.parts++], run->err);
    if (status >= 0) status = pli_row_values_hold(run, &held);
    if (status >= 0) status = pli_row_values_carry(run, pli_settled_before(run), run->homes);
    if (status >= 0) pli_row_values_keep(run, &held);
    pli_free(held.part);
    return status;
}

/* Ends the run if anybody was asked to stop, or if the learner says that this epoch was the last. */
static plait_status epoch(pli_run *run, int64_t number, bool *end_out) {
    double stopped = pli_run_stops_here(run);
    int    done = 0;
    PLI_TRY(plait_job_barrier(run->job));
    PLI_TRY(plait_comm_allreduce(run->comm, &stopped, 1, PLAIT_F64, PLAIT_MAX));
    *end_out = *end_out || stopped != 0; /* if one worker stops, all do, since the learner's epoch may be collective */
    if (run->learner->epoch != NULL && !*end_out) PLI_TRY(run->learner->epoch(run, number, &done));
    run->interrupted = run->interrupted || stopped != 0;
    run->converged = done != 0;
    *end_out = *end_out || done != 0;
    return *end_out || number + 1 >= run->epochs ? PLAIT_OK : move_rows(run, number);
}

const pli_steps pli_learner_steps = { .begin = begin,
                                      .end = pli_row_values_end,
                                      .step = step,
                                      .idle = idle,
                                      .finite = check_finite,
                                      .epoch = epoch };
