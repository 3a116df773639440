/* learn/solve/own_rows.h - the rows that a worker has, for solvers whose workers remember something of each row.
 *
 * A batch of the loop has the rows that fall to the worker in a clock, by the list of the dead of that clock
 * (inherit.h). What a worker remembers of its rows cannot change hands in the midst of a clock. So such a solver goes
 * over the rows that are held here instead. They are gathered where all workers meet, by the list of the collectives,
 * which is the same on all; and gathered anew where all find, after a sum over the workers, that one of them has died.
 * In between, nobody has the rows of the dead, and no sum without them decides anything. */
#ifndef PLI_LEARN_OWN_ROWS_H
#define PLI_LEARN_OWN_ROWS_H

#include "learn/solve/loop.h"
#include "learn/solve/settled.h"

typedef struct pli_own_rows {
    pli_batch batch;   /* own rows, and those of dead workers that have fallen to this one */
    bool     *gone;    /* [workers] had died when the rows were gathered                   */
    int32_t   taken;   /* how many of them                                                 */
    int32_t   holders; /* living workers that have rows                                    */
    int32_t   place;   /* of this one among them; -1: it has none                          */
    int64_t   clock;   /* 1 + the clock of the last step                                   */
} pli_own_rows;

/** Finds them. The loop has its batches. Collective. Errors: ENOMEM, and those of reading blocks again. */
plait_status pli_own_rows_gather(pli_run *run, pli_own_rows *held);
void         pli_own_rows_free(pli_own_rows *held);
/** This worker is away: others have its rows. */
void         pli_own_rows_leave(pli_own_rows *held);
/** Workers have come, and have no rows yet: they learn how many workers have some. Collective over those who are
 *  in. */
plait_status pli_own_rows_learn(pli_run *run, bool came, pli_own_rows *held);
/** Under --balance dynamic all decide whose each block is from here on (settled.h). If any changes hands, goes on by
 *  the solver's function for deaths. Collective. */
plait_status pli_own_rows_move(pli_run *run, plait_status (*revive)(pli_run *run));
/** Has a worker died since? After a collective all workers get the same answer. */
bool         pli_own_rows_died(const pli_run *run, const pli_own_rows *held);
/** Is there something to do in this call of the step? Not without rows, nor when the loop calls again for the rows of a
 *  worker that has died in the clock. */
bool         pli_own_rows_steps(const pli_run *run, pli_own_rows *held);

#endif
