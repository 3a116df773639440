/* Blocks on lease. See balance.h. */
#include "learn/solve/balance.h"

#include <string.h>

#include "learn/keep/keep.h"
#include "learn/solve/settled.h"
#include "table/table.h"

plait_status pli_balance_check(const pli_run *run) {
    int32_t blocks = pli_dataset_blocks(run->data), workers = pli_run_holders(run);
    if (blocks < 2 * workers)
        return pli_fail(run->err, PLAIT_EREFUSED,
                        "balance dynamic with %d workers is refused: the data have %d blocks, and a worker with a "
                        "single block cannot give it away; take --blocks %d, --workers %d or fewer, or --balance "
                        "static",
                        workers, blocks, 2 * workers, blocks / 2);
    return PLAIT_OK;
}

plait_status pli_balance_begin(pli_balance *balance, pli_run *run, pli_batches *batches) {
    const pli_resume *r = run->resume;
    const int64_t     blocks = pli_dataset_blocks(run->data);
    const bool        settles = pli_settles(run); /* a clock of the book is a meeting */
    const int64_t     clocks = settles ? 1 : run->clocks;
    const bool        goes_on = !settles && r != NULL && r->epoch < run->epochs;
    const int64_t     begin = goes_on ? r->epoch * run->clocks + r->epoch_clock : 0;
    *balance = (pli_balance){ .run = run,
                              .batches = batches,
                              .terms = { .blocks = blocks,
                                         .clocks = clocks,
                                         .tenants = pli_run_holders(run),
                                         .first = pli_lease_first(begin, clocks) } };
    balance->lease = pli_array((size_t)blocks, sizeof *balance->lease);
    balance->held = pli_array((size_t)blocks, sizeof *balance->held);
    balance->part = pli_array((size_t)blocks, sizeof *balance->part);
    balance->computed = pli_calloc((size_t)run->epochs, sizeof *balance->computed);
    if (balance->lease == NULL || balance->held == NULL || balance->part == NULL || balance->computed == NULL)
        return pli_fail(run->err, PLAIT_ENOMEM, "no memory for leases of %lld blocks", (long long)blocks);
    for (int32_t i = 0; i < pli_dataset_own_blocks(run->data); i++) {
        const pli_block *block = pli_dataset_block(run->data, i);
        balance->lease[balance->n++] =
            (pli_lease){ .block = block->number, .rows = block->rows, .until = PLI_LEASE_OPEN };
    }
    return run->opts->replicas > 1 || settles ? pli_balance_copies_begin(balance) : PLAIT_OK;
}

void pli_balance_end(pli_balance *balance) {
    pli_balance_copies_end(balance);
    pli_free(balance->lease);
    pli_free(balance->held);
    pli_free(balance->part);
    pli_free(balance->computed);
    *balance = (pli_balance){ 0 };
}

/* Asks for leases, and drops the rows of blocks that are no longer on lease. */
static plait_status renew(pli_balance *balance) {
    pli_run *run = balance->run;
    PLI_TRY(pli_job_lease(run->job, &balance->terms, &balance->pace, balance->lease, &balance->n, run->err));
    balance->pace = (pli_pace){ 0, 0 };
    memset(balance->held, 0, (size_t)balance->terms.blocks);
    for (int64_t i = 0; i < balance->n; i++) {
        if (balance->lease[i].block < 0 || balance->lease[i].block >= balance->terms.blocks)
            return pli_fail(run->err, PLAIT_EFORMAT, "a lease of block %lld", (long long)balance->lease[i].block);
        balance->held[balance->lease[i].block] = 1;
    }
    for (int32_t b = 0; b < (int32_t)balance->terms.blocks; b++)
        if (!balance->held[b]) pli_batches_drop(balance->batches, b);
    return PLAIT_OK;
}

static plait_status batch_of(pli_balance *balance, int64_t epoch, int64_t clock, pli_batch *batch_out) {
    pli_run *run = balance->run;
    int64_t  now = epoch * balance->terms.clocks + clock;
    *batch_out = (pli_batch){ .part = balance->part };
    if (plait_comm_rank(run->comm) >= balance->terms.tenants) return PLAIT_OK;
    if (clock % PLI_LEASE_EVERY == 0) PLI_TRY(renew(balance));
    for (int64_t i = 0; i < balance->n; i++) {
        const pli_lease *lease = &balance->lease[i];
        if (now < lease->from || now >= lease->until) continue;
        pli_part *part = &balance->part[batch_out->parts++];
        PLI_TRY(pli_batches_part(balance->batches, (int32_t)lease->block, epoch, clock, part, run->err));
        batch_out->rows += part->rows;
    }
    return PLAIT_OK;
}

plait_status pli_balance_batch(pli_balance *balance, int64_t epoch, int64_t clock, bool inherited,
                               pli_batch *batch_out) {
    PLI_TRY(balance->copies.book != NULL ? pli_balance_copies_batch(balance, epoch, clock, inherited, batch_out)
                                         : batch_of(balance, epoch, clock, batch_out));
    balance->epoch = epoch;
    balance->batch_rows = batch_out->rows;
    return PLAIT_OK;
}

/* A net reads its tables, and sends gradients, while it computes. What it waits for others there is not its work. */
void pli_balance_begin_work(pli_balance *balance) { balance->work_ns = pli_comm_own_ns(balance->run->comm); }

void pli_balance_end_work(pli_balance *balance, uint64_t within_ns) {
    balance->computed[balance->epoch] += balance->batch_rows;
    balance->pace.rows += (double)balance->batch_rows;
    balance->pace.seconds += (double)(pli_comm_own_ns(balance->run->comm) + within_ns - balance->work_ns) * 1e-9;
}
