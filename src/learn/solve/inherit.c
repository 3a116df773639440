/* Finds and reads the blocks of workers that have died. See inherit.h. */
#include "learn/solve/inherit.h"

#include <string.h>

#include "table/table.h"

/* --- in training -------------------------------------------------------------------------------------------------- */

plait_status pli_heir_begin(pli_heir *heir, pli_run *run, pli_batches *batches) {
    *heir = (pli_heir){ .run = run, .batches = batches };
    heir->part = pli_array((size_t)pli_dataset_blocks(run->data), sizeof *heir->part);
    return heir->part != NULL ? PLAIT_OK : pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
}

void pli_heir_end(pli_heir *heir) {
    pli_free(heir->part);
    *heir = (pli_heir){ 0 };
}

/* A cut model's tables belong to the ranks of a stage, which know their own dead. */
static bool is_mine(const pli_heir *heir, int32_t block, bool inherited) {
    const pli_run *run = heir->run;
    const int32_t  home = heir->home != NULL ? heir->home[block] : pli_dataset_home(run->data, block);
    const int32_t  me = plait_comm_rank(run->comm);
    const uint64_t item = (uint64_t)block;
    if (pli_run_stages(run) > 1)
        return inherited ? plait_table_inherits(run->made[0], home, item) != 0
                         : plait_table_holder(run->made[0], home, item) == me;
    return inherited ? plait_job_inherits(run->job, home, item) != 0
                     : plait_job_holder(run->job, home, item) == me;
}

plait_status pli_heir_batch(pli_heir *heir, int64_t epoch, int64_t clock, bool inherited, pli_batch *batch_out) {
    const pli_run *run = heir->run;
    *batch_out = (pli_batch){ .part = heir->part };
    if (!pli_run_takes_rows(run)) return PLAIT_OK;
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
        if (!is_mine(heir, b, inherited)) continue;
        pli_part *part = &heir->part[batch_out->parts++];
        PLI_TRY(pli_batches_part(heir->batches, b, epoch, clock, part, run->err));
        batch_out->rows += part->rows;
    }
    return PLAIT_OK;
}

plait_status pli_heir_batch_of(pli_heir *heir, int32_t home, int64_t epoch, int64_t clock, pli_batch *batch_out) {
    const pli_run *run = heir->run;
    *batch_out = (pli_batch){ .part = heir->part };
    for (int32_t b = 0; b < pli_dataset_blocks(run->data); b++) {
        if (pli_dataset_home(run->data, b) != home) continue;
        pli_part *part = &heir->part[batch_out->parts++];
        PLI_TRY(pli_batches_part(heir->batches, b, epoch, clock, part, run->err));
        batch_out->rows += part->rows;
    }
    return PLAIT_OK;
}

/* --- in sums of all ----------------------------------------------------------------------------------------------- */

/* Before it has died, if it has. */
static int32_t home_of(const pli_run *run, const pli_dataset *data, int32_t block) {
    return run->homes != NULL && data == run->data ? run->homes[block] : pli_dataset_home(data, block);
}

bool pli_living_is_mine(const pli_run *run, const pli_dataset *data, int32_t block) {
    return pli_heir_of(pli_comm_absentees(run->comm), plait_comm_workers(run->comm), run->opts->spares,
                       home_of(run, data, block), (uint64_t)block) == plait_comm_rank(run->comm);
}

plait_status pli_living_blocks(const pli_run *run, const pli_dataset *data, pli_living *held) {
    const int32_t own = pli_dataset_own_blocks(data), blocks = pli_dataset_blocks(data);
    *held = (pli_living){ 0 };
    held->block = pli_array((size_t)(own + blocks) + 1, sizeof *held->block);
    held->lent = pli_calloc((size_t)blocks + 1, sizeof *held->lent);
    if (held->block == NULL || held->lent == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for a list of blocks");
    for (int32_t i = 0; i < own; i++)
        if (run->homes == NULL || pli_living_is_mine(run, data, pli_dataset_block(data, i)->number))
            held->block[held->n++] = pli_dataset_block(data, i);
    const bool others = pli_comm_absent(run->comm) > 0 || run->homes != NULL;
    for (int32_t b = 0; others && b < blocks; b++) {
        if (pli_dataset_home(data, b) == plait_comm_rank(run->comm) || !pli_living_is_mine(run, data, b)) continue;
        PLI_TRY(pli_dataset_borrow(data, b, &held->lent[held->borrowed], run->err));
        held->block[held->n++] = pli_borrowed_block(held->lent[held->borrowed++]);
    }
    return PLAIT_OK;
}

void pli_living_blocks_free(pli_living *held) {
    for (int32_t i = 0; i < held->borrowed; i++) pli_borrowed_free(&held->lent[i]);
    pli_free(held->lent);
    pli_free(held->block);
    *held = (pli_living){ 0 };
}
