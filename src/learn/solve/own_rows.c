/* Gathers the rows that a worker has. See own_rows.h. */
#include "learn/solve/own_rows.h"

#include <string.h>

static plait_status gather_own(pli_run *run, pli_own_rows *held) {
    const int32_t blocks = pli_dataset_blocks(run->data);
    held->batch = (pli_batch){ .part = held->batch.part };
    for (int32_t b = 0; b < blocks; b++) {
        if (!pli_living_is_mine(run, run->data, b)) {
            if (run->homes != NULL) pli_batches_drop(run->loop->batches, b);
            continue;
        }
        pli_part *part = &held->batch.part[held->batch.parts++];
        PLI_TRY(pli_batches_part(run->loop->batches, b, 0, 0, part, run->err));
        held->batch.rows += part->rows;
    }
    return PLAIT_OK;
}

/* Counts the living workers that have rows. */
static plait_status count_holders(const pli_run *run, pli_own_rows *held, int64_t *has) {
    const int32_t workers = plait_comm_workers(run->comm), me = plait_comm_rank(run->comm);
    memset(has, 0, (size_t)workers * sizeof *has);
    has[me] = held->batch.rows > 0;
    PLI_TRY(plait_comm_allreduce(run->comm, has, workers, PLAIT_I64, PLAIT_SUM));
    held->holders = 0;
    held->place = -1;
    for (int32_t w = 0; w < workers; w++) {
        if (w == me && has[w] > 0) held->place = held->holders;
        held->holders += has[w] > 0;
    }
    return PLAIT_OK;
}

plait_status pli_own_rows_gather(pli_run *run, pli_own_rows *held) {
    const int32_t workers = plait_comm_workers(run->comm);
    PLI_TRY(pli_settled_begin(run, NULL)); /* until here the solver may look at rows that it no longer has */
    int64_t *has = pli_calloc((size_t)workers, sizeof *has);
    if (held->gone == NULL) held->gone = pli_calloc((size_t)workers, sizeof *held->gone);
    if (held->batch.part == NULL)
        held->batch.part = pli_array((size_t)pli_dataset_blocks(run->data) + 1, sizeof *held->batch.part);
    plait_status status = has != NULL && held->gone != NULL && held->batch.part != NULL
                              ? PLAIT_OK
                              : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    int32_t absent = pli_comm_absent(run->comm);
    do {
        if (status >= 0) status = gather_own(run, held);
        if (status >= 0) status = count_holders(run, held, has);
    } while (status >= 0 && pli_run_again(run, &absent));
    pli_free(has);
    for (int32_t w = 0; status >= 0 && w < workers; w++) held->gone[w] = pli_comm_is_absent(run->comm, w);
    held->taken = absent;
    return status;
}

void pli_own_rows_free(pli_own_rows *held) {
    pli_free(held->batch.part);
    pli_free(held->gone);
    *held = (pli_own_rows){ .gone = NULL };
}

void pli_own_rows_leave(pli_own_rows *held) {
    held->batch.rows = 0;
    held->batch.parts = 0;
    held->place = -1;
}

plait_status pli_own_rows_learn(pli_run *run, bool came, pli_own_rows *held) {
    int64_t holders = came ? 0 : held->holders;
    PLI_TRY(plait_comm_allreduce(run->comm, &holders, 1, PLAIT_I64, PLAIT_MAX));
    held->holders = (int32_t)holders;
    return PLAIT_OK;
}

plait_status pli_own_rows_move(pli_run *run, plait_status (*revive)(pli_run *run)) {
    bool moved;
    PLI_TRY(pli_settled_meet(run, &moved));
    return moved ? revive(run) : PLAIT_OK;
}

bool pli_own_rows_died(const pli_run *run, const pli_own_rows *held) {
    for (int32_t w = 0; run->opts->replicas > 1 && w < plait_comm_workers(run->comm); w++)
        if (!held->gone[w] && pli_comm_is_absent(run->comm, w)) return true;
    return false;
}

bool pli_own_rows_steps(const pli_run *run, pli_own_rows *held) {
    const bool again = held->clock == run->clocks_done + 1;
    held->clock = run->clocks_done + 1;
    return !again && held->batch.rows > 0;
}
