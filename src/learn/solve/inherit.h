/* learn/solve/inherit.h - a run that goes on when a worker dies (plait_train_opts.replicas): who computes its blocks.
 *
 * The tables outlive any rank (table/copies/replicas.h). What a worker alone had are blocks of rows, and anybody can
 * read them again. Each block of the dead falls to one who lives; of the dead there are two lists:
 *
 *   in training     that of the worker's clocks (plait_job_holder). Where plait_job_clock answers PLAIT_STAND_IN, the
 *                   clock has another batch, of the blocks that the worker inherits in it; under bsp each clock so has
 *                   all its rows once, whoever computed them, and with --reduce exact the bits of a run in which
 *                   nobody died.
 *   in sums of all  that of the collectives, which all workers have alike (comm/carried.h). A sum from which somebody
 *                   was missing is made again, over the blocks as they lie then: pli_run_again.
 *
 * Spares (plait_train_opts.spares) are workers without blocks, to whom those of the dead fall first: while one lives,
 * nobody else gets more to do.
 *
 * What cannot be had again is left out: the progressive loss of the dead one's rows, its share of the seconds that a
 * report adds up. */
#ifndef PLI_LEARN_INHERIT_H
#define PLI_LEARN_INHERIT_H

#include "learn/learner.h"

typedef struct pli_heir {
    pli_run     *run;
    pli_batches *batches;
    pli_part    *part; /* [blocks] */
} pli_heir;

plait_status pli_heir_begin(pli_heir *heir, pli_run *run, pli_batches *batches);
/** The worker's batch of a clock; inherited: only what it stands in for in the clock that is ending. */
plait_status pli_heir_batch(pli_heir *heir, int64_t epoch, int64_t clock, bool inherited, pli_batch *batch_out);
void         pli_heir_end(pli_heir *heir);

/** Does the block fall to this worker, who is not its home, in sums of all? */
bool pli_heir_has(const pli_run *run, const pli_dataset *data, int32_t block);

/* The blocks of a data set that are this worker's now: its own, and of the dead those that fall to it. */
typedef struct pli_living {
    int32_t           n, borrowed;
    const pli_block **block; /* [n] */
    pli_borrowed    **lent;  /* [borrowed] */
} pli_living;

/** Blocks of the dead are read once more. free follows in any case. */
plait_status pli_living_blocks(pli_run *run, const pli_dataset *data, pli_living *held);
void         pli_living_blocks_free(pli_living *held);

#endif
