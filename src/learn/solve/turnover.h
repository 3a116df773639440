/* learn/solve/turnover.h - what a run hands over when workers come and go (plait_train_opts.slots, table/copies/
 * roster.h).
 *
 * The tables outlive any worker's absence, and so do the rows, which the others read (inherit.h). The rest of what a
 * run knows lies with its workers, and is small:
 *
 *   before a worker leaves    it knows that alone: from the plan (scale_plan.h) or, in simulated time, the cluster's
 *       file. It drops its part of the checkpoint under way. If all parts are there and it is to complete the
 *       checkpoint, it does that first.
 *   after its last clock    all know from the roster who has left. What a leaver alone holds, the losses of its rows so
 *       far and the bytes that it has sent, it sends to the lowest worker that was in and has stayed. If one of the two
 *       dies, they are lost as those of any dead worker are.
 *   after a clock with which some have come or left    a checkpoint under way is completed if all its parts are there,
 *       or else dropped, and another follows at once.
 *   after a clock with which some have come    all bring what they know to one collective. A newcomer takes it from the
 *       lowest of those that were in: the best loss and its weights, and where checkpoints stand. The weights are the
 *       arrays that a checkpoint would hold beside the tables (pli_learner_more.kept), put back as it would put them
 *       back.
 *   after a clock with which some have left    the same collective, so that all count the same workers as absent from
 *       that clock on (comm/carried.h).
 *
 * So behind each change of the roster there is a collective of exactly those who are in, and whatever is collective
 * later finds only deaths besides. A clock in which nobody comes or goes costs nothing.
 *
 * Some solvers' workers know something of each row of theirs. Behind that collective they gather the rows that they
 * have now, as after a death (own_rows.h, pli_steps.turned). */
#ifndef PLI_LEARN_TURNOVER_H
#define PLI_LEARN_TURNOVER_H

#include "learn/solve/loop.h"

/** Is the clock at hand this worker's last one, for a while? Behind the last clock of the run all are in. */
bool pli_turnover_leaves(const pli_loop *loop);
/** Waits until the worker is in, at the end of clock *first_out of *epoch_out: what the others do behind that clock, it
 *  does as well. PLAIT_END: they have ended. */
plait_status pli_turnover_come(pli_loop *loop, int64_t *epoch_out, int64_t *first_out);

/** Those who are in begin: from here on the others are absent. Collective over those. end follows in any case. */
plait_status pli_turnover_begin(pli_loop *loop);
void         pli_turnover_end(pli_loop *loop);
/** Before a clock: notes who is in. */
void         pli_turnover_before(pli_loop *loop);
/** This worker has left with the clock: gives what it alone holds to one that has stayed. */
plait_status pli_turnover_give(pli_loop *loop);
/** Behind a clock's end; does nothing unless somebody has come or gone. came: this worker has come with it. Collective
 *  over those who are in. */
plait_status pli_turnover_after(pli_loop *loop, bool came);

/** For a learner with a loop of its own, which has a pli_loop of these alone: run, steps, clocks, away. clock ends a
 *  clock, and calls stand_in for the part of those who have died in it. If this worker leaves with it, clock waits
 *  until it is in again: *came_out. wait is that of a worker that is away at first. Then run->clocks_done and
 *  epochs_done are those of the others, and what they do behind that clock it does as well. PLAIT_END: they have
 *  ended. */
plait_status pli_turnover_clock(pli_loop *loop, plait_status (*stand_in)(pli_run *run), bool *came_out);
plait_status pli_turnover_wait(pli_loop *loop);

#endif
