/* learn/solve/balance.h - `--balance dynamic`: a faster worker computes more blocks.
 *
 * The shares of a clock are a property of the data; only who computes a block's share changes. table/server/leases.h
 * decides who, at clocks that both sides know beforehand. The worker's side is here: it measures how many rows it
 * computes a second, asks for leases every PLI_LEASE_EVERY clocks and at the beginning of an epoch, and makes a clock's
 * batch of the blocks on its leases. It measures the computation alone, without messages and waits: these would make a
 * worker with more rows look faster, and so draw ever more rows to it. Where the model is cut, only the ranks of stage
 * 0 have rows and ask; each asks for its replica, whose speed is that of its slowest stage.
 *
 * A run that goes on when a worker dies (balance_copies.c) has no server that keeps the leases: it might die. Each
 * worker has a copy of the book. At the same clocks all tell each other their rows and seconds, by a collective from
 * which all living workers hear the same; then each asks its copy for all of them, in the order of ranks. So all know
 * at each clock whose each block is, the dead worker's too, and heirs compute those as they do without leases
 * (inherit.h). When all have heard that a worker is dead, its blocks go to the others by speed; where spares live they
 * stay its own, since spares inherit them.
 *
 * When workers come or go (turnover.h), all begin a new book, in which each block is its first owner's, and which who
 * comes so knows. Those who are away count as dead in it, so their blocks go to the others by speed.
 */
#ifndef PLI_LEARN_BALANCE_H
#define PLI_LEARN_BALANCE_H

#include "learn/solve/inherit.h"
#include "table/server/leases.h"

typedef struct pli_balance {
    pli_run        *run;
    pli_batches    *batches;
    pli_lease_terms terms;
    pli_lease      *lease; /* [blocks], n of them */
    int64_t         n;
    uint8_t        *held;  /* [blocks] in the leases; scratch */
    pli_part       *part;  /* [blocks] */
    pli_pace        pace;  /* rows and seconds since it last asked */
    int64_t        *computed; /* [epochs] rows */
    int64_t         epoch, batch_rows; /* of the clock at hand */
    uint64_t        work_ns;    /* when the computation of the clock began */
    struct {                    /* of a run that goes on when a worker dies; book NULL: of any other */
        pli_book *book;
        pli_heir  heir;
        int32_t  *home;         /* [blocks] whose they are in the clock at hand */
        pli_pace *told;         /* [workers] */
        double   *rows;         /* [blocks] */
    } copies;
} pli_balance;

/** EREFUSED, with the reason, if the run's blocks cannot change hands. */
plait_status pli_balance_check(const pli_run *run);

plait_status pli_balance_begin(pli_balance *balance, pli_run *run, pli_batches *batches);
/** The worker's batch of a clock; inherited: only the blocks that it stands in for in the clock that is ending. */
plait_status pli_balance_batch(pli_balance *balance, int64_t epoch, int64_t clock, bool inherited,
                               pli_batch *batch_out);
/** Call these around the computation over the batch's rows. Times in which it waits for others do not count, save
 *  within_ns: how long it waited for the ranks that compute for the same rows. */
void pli_balance_begin_work(pli_balance *balance);
void pli_balance_end_work(pli_balance *balance, uint64_t within_ns);
void pli_balance_end(pli_balance *balance);

/* balance_copies.c: the same of a run that goes on when a worker dies. Collective. */
plait_status pli_balance_copies_begin(pli_balance *balance);
plait_status pli_balance_copies_batch(pli_balance *balance, int64_t epoch, int64_t clock, bool inherited,
                                      pli_batch *batch_out);
void         pli_balance_copies_end(pli_balance *balance);
/** Workers have come or gone; clock is the next one. Called by all who are in; not collective. */
plait_status pli_balance_copies_anew(pli_balance *balance, int64_t clock);
/** All workers tell each other their rows and seconds; the copies of the book decide whose each block is in clock
 *  `now`. */
plait_status pli_balance_copies_agree(pli_balance *balance, int64_t now);

#endif
