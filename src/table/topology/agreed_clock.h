/* table/topology/agreed_clock.h - the clock of a job whose tables are mirrors, and which goes on when a worker dies
 * (plait_job_opts.replicas): all living workers end it with the same sums, or none does (comm/agreed_run.h).
 *
 * Each worker has the whole of every table, so a death loses nothing of them. Only the dead worker's part of the clock
 * that is under way may be missing. If it is, no sum of that clock is applied; plait_job_clock answers PLAIT_STAND_IN,
 * the heirs add what the dead worker would have added, and the sums are made again. Else it is in all sums, and nobody
 * stands in.
 *
 * The sums of all tables are one step of the agreement, so a clock ends for all of them or for none. They are made at
 * the end of the clock: nothing leaves before, and nothing is applied before all are there. Sums in stripes of filtered
 * parts have a step before that, of which nothing is applied (agreed_coded.h).
 *
 * The job's own collectives (comm/carried.h) are steps, too. Nobody adds anything to them for a dead worker, who is
 * absent from then on; the heirs take its items over in the clock that ends next. So they need no server, and go on as
 * long as one worker lives.
 *
 * Where other tables lie on servers (hybrid), a clock ends in two parts. The first is the step; the sums are not
 * applied yet. A worker's push goes to the servers when it has ended its part of the step: when the step has ended, or
 * as it is dropped. The second part is that of any clock on servers (copies/replicas.h). When that has ended, the sums
 * are applied. So gets show the clock's values as long as anybody may stand in, and:
 *
 *     a worker dies before the step has ended     no server has its push: others stand in for both kinds of tables
 *     behind it, and a server lacks its push      others stand in for the tables on servers. The dead one's part is in
 *                                                 the sums: what is added to summed tables now counts for nothing
 *     behind that                                 its clock counts
 *
 * Servers may stand in a clock later than sums, and one worker later than another; each item is added once to each
 * table all the same, since whoever has stood in for a dead one holds its items from then on, and no step ends with the
 * part of a dead one for whom a worker has stood in (pli_agreed_run_tell).
 *
 * Where the rule's state lies in slices, the clock's values are gathered in one more step (agreed_slices.h).
 *
 * Where a clock may start without the sums before it (bounded-delay:T), a sum is made in its clock all the same, so
 * that what the clock's end has acknowledged outlives every death; only its application waits. Where only some clocks
 * end with sums (local-sgd:H), the others are steps too, without any: so all deal with a death in the same clock. */
#ifndef PLI_TABLE_TOPOLOGY_AGREED_CLOCK_H
#define PLI_TABLE_TOPOLOGY_AGREED_CLOCK_H

#include "table/table.h"

/** Before the job's first table of that kind is opened. All workers do so between the same two collectives. clocks: the
 *  job's clocks are steps, and not only its collectives. Errors: ENOMEM. */
plait_status pli_agreed_clock_open(plait_job *job, bool clocks, plait_error *err);
void         pli_agreed_clock_close(plait_job *job);
/** Ends the worker's clock: makes and applies the sums of all tables. PLAIT_STAND_IN: nothing was applied, and the
 *  worker is still in the clock; what pli_client_holder says of `next` falls to it. Errors: ENOMEM, EMISMATCH, those of
 *  a wait. */
plait_status pli_agreed_clock_end(plait_job *job, plait_error *err);

/** Where clocks are no steps (agreed_clocks): tables give what those who live need of each other to go on without the
 *  dead, in a step of its own. All do so after any step that answers PLAIT_STAND_IN, whatever it was, so it is the same
 *  on all; a worker begins it when it hears of a death first. Errors: as of a step. */
plait_status pli_agreed_meet(plait_job *job, plait_error *err);

/** A collective of the living workers: each brings mine [bytes], and gets what all have brought in came [workers], lent
 *  until held_out is freed; of a worker that is absent, NULL. Errors: ENOMEM, EMISMATCH, those of a wait. */
plait_status pli_agreed_gather(plait_job *job, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                               plait_error *err);

#endif
