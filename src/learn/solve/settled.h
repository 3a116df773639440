/* learn/solve/settled.h - --balance dynamic of solvers and learners whose workers remember something of each row:
 * blocks change hands where all workers meet.
 *
 * Under an update rule a block changes hands from one clock to the next (balance.h). A solver by whole passes has sums
 * in its tables that stand for its workers' rows, or scores of these. So its rows stay from clock to clock, and change
 * hands only where it is about to look at all of them anyway: behind a sum over the workers. There all tell each other
 * their rows and seconds, and each asks its copy of the lease book, as in a run that goes on when a worker dies. If a
 * block has got another holder, the solver goes on as it does when a worker has died (own_rows.h): each gathers the
 * rows that it has now, and the sums are made anew.
 *
 * Nothing is lost but what the giver knew of the rows that it gave, and the time that new sums take. So after each move
 * they rest for twice as many meetings as after the one before: where speeds are noise, sums are made anew a few times,
 * and where they change for good, blocks follow.
 *
 * Learners with values of rows give them away with the row, between two epochs (solve/steps.c). Trees make what they
 * know of a row anew, between two rounds (trees/heirs.c).
 *
 * Between two such meetings all workers know whose each block is: run->homes, which the functions of inherit.h heed. */
#ifndef PLI_LEARN_SETTLED_H
#define PLI_LEARN_SETTLED_H

#include "learn/learner.h"

/** Do blocks change hands in this way? */
bool         pli_settles(const pli_run *run);
/** Begins it; nothing if blocks stay, or if it has begun. batches: whose memory of a block is dropped with it; may be
 *  NULL. Collective. */
plait_status pli_settled_begin(pli_run *run, pli_batches *batches);
/** From here on each block is its bringer's. */
void         pli_settled_end(pli_run *run);
/** Call these around the computation over `rows` rows. */
void         pli_settled_begin_work(pli_run *run);
void         pli_settled_end_work(pli_run *run, int64_t rows);
/** Decides anew whose each block is. *moved_out, the same on all workers: some block has another holder. Collective. */
plait_status pli_settled_meet(pli_run *run, bool *moved_out);
/** Workers have come or gone (turnover.h): each block is its bringer's again, and who is away has none by the lists of
 *  the absent, until all ask the book again. */
plait_status pli_settled_anew(pli_run *run);
/** [blocks] whose they were before the last meeting; NULL: blocks stay. */
const int32_t *pli_settled_before(const pli_run *run);

#endif
