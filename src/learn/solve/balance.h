/* learn/solve/balance.h - `--balance dynamic`: which blocks a worker computes follows how fast it is.
 *
 * The shares of a clock are a property of the data; only who computes a block's share changes. table/server/leases.h
 * decides, at clocks that both sides know beforehand, and this is its asker: it measures how many rows the worker
 * computes a second, asks every PLI_LEASE_EVERY clocks and at the beginning of an epoch, and makes a clock's batch of
 * the blocks that the worker's leases cover. What a clock costs besides its rows (messages, waits) is left out: it
 * would make a worker look the faster the more rows it has, and so draw ever more to it.
 */
#ifndef PLI_LEARN_BALANCE_H
#define PLI_LEARN_BALANCE_H

#include "learn/learner.h"
#include "table/server/leases.h"

typedef struct pli_balance {
    pli_run        *run;
    pli_batches    *batches;
    pli_lease_terms terms;
    pli_lease      *lease; /* [blocks], n of them */
    int64_t         n;
    uint8_t        *held;  /* [blocks] in the leases; scratch */
    pli_part       *part;  /* [blocks] */
    pli_pace        pace;  /* since it last asked */
    int64_t        *computed; /* [epochs] rows */
    int64_t         epoch, batch_rows; /* of the clock at hand  */
    uint64_t        work_ns;    /* when its computation began */
} pli_balance;

/** Can the run's blocks change hands? EREFUSED with the reason. */
plait_status pli_balance_check(const pli_run *run);

plait_status pli_balance_begin(pli_balance *balance, pli_run *run, pli_batches *batches);
/** The worker's batch of a clock. */
plait_status pli_balance_batch(pli_balance *balance, int64_t epoch, int64_t clock, pli_batch *batch_out);
/** Around what computes over the batch's rows, and waits for nobody. */
void pli_balance_begin_work(pli_balance *balance);
void pli_balance_end_work(pli_balance *balance);
void pli_balance_end(pli_balance *balance);

#endif
