/* learn/solve/inherit.h - a run that goes on when a worker dies (plait_train_opts.replicas): who computes its blocks.
 *
 * The tables outlive any rank (table/copies/replicas.h). Only blocks of rows were the dead worker's alone, and anybody
 * can read them again. So each block of a dead worker falls to a living one. There are two lists of the dead:
 *
 *   in training     the list of this worker's clocks (plait_job_holder). If plait_job_clock answers PLAIT_STAND_IN, the
 *                   clock has another batch, of the blocks that the worker inherits in it. So under bsp each clock has
 *                   all its rows once, whoever computes them, and with --reduce exact the model has the bits of a run
 *                   in which nobody died.
 *   in sums of all  the list of the collectives, the same on all workers (comm/carried.h). A sum that lacks a worker's
 *                   part is made again, over the blocks as they lie then: pli_run_again.
 *
 * A stream (--epochs 1) is read once, but each block has a cursor: the heir reads the dead worker's blocks from the
 * clock on in which they fall to it (data/dataset/stream_guest.c).
 *
 * Spares (plait_train_opts.spares) are workers without blocks. The blocks of the dead fall to them first: while a spare
 * lives, nobody else gets more to do.
 *
 * A model in stages (learn/net/stages.h) has K ranks a replica, which live and die together: the first of them has the
 * replica's rows, and its stage's tables tell what it inherits.
 *
 * What cannot be computed again is left out: the progressive loss of the dead worker's rows, and its share of the
 * seconds that a report adds up. */
#ifndef PLI_LEARN_INHERIT_H
#define PLI_LEARN_INHERIT_H

#include "learn/learner.h"

typedef struct pli_heir {
    pli_run     *run;
    pli_batches *batches;
    pli_part    *part; /* [blocks] */
    const int32_t *home; /* [blocks] whose they are in the clock at hand, the dead's too; NULL: each is its bringer's */
} pli_heir;

plait_status pli_heir_begin(pli_heir *heir, pli_run *run, pli_batches *batches);
/** The worker's batch of a clock; inherited: only the blocks that it stands in for in the clock that is ending. */
plait_status pli_heir_batch(pli_heir *heir, int64_t epoch, int64_t clock, bool inherited, pli_batch *batch_out);
/** A clock's batch of the blocks whose home is this worker, dead or not. */
plait_status pli_heir_batch_of(pli_heir *heir, int32_t home, int64_t epoch, int64_t clock, pli_batch *batch_out);
void         pli_heir_end(pli_heir *heir);

/** Is the block this worker's, in sums of all: its own, or one that falls to it from the dead? */
bool pli_living_is_mine(const pli_run *run, const pli_dataset *data, int32_t block);

/* The blocks of a data set that are this worker's now: its own, and those that fall to it from the dead. */
typedef struct pli_living {
    int32_t           n, borrowed;
    const pli_block **block; /* [n] */
    pli_borrowed    **lent;  /* [borrowed] */
} pli_living;

/** Finds them, in sums of all; reads those of the dead once more. free follows in any case. */
plait_status pli_living_blocks(const pli_run *run, const pli_dataset *data, pli_living *held);
void         pli_living_blocks_free(pli_living *held);

#endif
