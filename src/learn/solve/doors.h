/* learn/solve/doors.h - workers come and go (turnover.h) only between certain clocks: where a door is opened.
 *
 * A solver by whole passes is often in the midst of something: a line search, a tree that grows, steps towards one
 * look. Nobody could hand a newcomer what the others know there. But now and then all know the same few things, those
 * that a checkpoint holds, and no clock is under way that means something. There the solver opens a *door*: a clock in
 * which nobody pushes. Leavers go with its end. A newcomer comes with it, takes what a checkpoint would hold from a
 * worker that was in, and goes on with the others. All other clocks are shut (table/copies/roster.h), so a plan's
 * "from clock 40 on" means the first door from there on.
 *
 * How many clocks such a run takes is not known before it ends. So who is away at the end is not called in: it hears
 * that the others have ended, and they judge its rows.
 *
 * A run whose workers do not come and go has no doors, and no clock for them. */
#ifndef PLI_LEARN_DOORS_H
#define PLI_LEARN_DOORS_H

#include "learn/solve/turnover.h"

/** Those who are in begin; those who are away wait until they are let in: *came_out. steps has `turned` and `left`, or
 *  neither; it is kept. PLAIT_END: the others have ended. end follows in any case. Collective; all tables are there. */
plait_status pli_doors_begin(pli_loop *doors, pli_run *run, const pli_steps *steps, bool *came_out);
/** A door, if there are any. *changed_out: others are in now than before, or this worker has just come: it has what
 *  those who were in have kept (pli_solver_keeps, pli_learner_more.kept). PLAIT_END: this worker has left, and the
 *  others have ended since. Collective over those who are in. */
plait_status pli_doors_open(pli_loop *doors, bool *came_out, bool *changed_out);
void         pli_doors_end(pli_loop *doors);

#endif
