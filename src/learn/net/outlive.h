/* learn/net/outlive.h - a net in stages that goes on when a rank dies (--cut K with --replicas 2).
 *
 * A dead rank takes its replica along: the other K - 1 ranks can compute nothing without it, and die with it. Every
 * stage's group then lacks one member, the same replica, and each group survives that as any group does
 * (table/copies/replicas.h): shards are served by the next member, and the dead one's rows fall to living replicas.
 *
 *            stage 0      stage 1
 *          +----------------------+
 *  r = 0   |  rank 0       rank 2 |  rank 2 is killed: rank 0 ends, too
 *  r = 1   |  rank 1       rank 3 |  goes on, with the rows of both and the only replica of all shards
 *          +----------------------+
 *
 * Spares (--spares) are whole replicas. They are members of the stages' groups as spares, so the new copy of a dead
 * member's shards is made there, from the living member's, and the dead replica's rows fall to them. With R = 2 and one
 * of them, both replicas may die, one after the other.
 *
 * What is left to arrange is that all K ranks of a living replica see the same dead. A group decides for itself whether
 * what the dead one had pushed in a clock counts. But a gradient of stage 0 is a function of the values of all stages;
 * if stage 0 had ended the clock while stage 1 was to stand in for the dead replica's rows in it, it could not compute
 * them again. So a replica's K ranks ask each other before a clock ends (pli_job_end_clocks_with):
 *
 *   none must stand in    all end the clock
 *   one must              all do, for all the dead that any of them has named, once each has heard that its own group
 *                         lacks them. The replica computes its share of their rows again, with the values of this
 *                         clock, and each rank pushes. Shards that have prepared the clock with what the dead had
 *                         pushed ignore that, as ever; then the ranks ask each other again
 *
 * Invariants, for each clock c and each replica r:
 *   1 A message of clock c + 1 in any group means that all shards of all groups have prepared c.
 *   2 Therefore, while any shard of any group still waits for somebody to stand in in clock c, all values of all stages
 *     are those with which c began: what is computed again is what the dead had computed, but for rounding.
 *   3 All ranks of a living replica begin c + 1 with the same replicas counted as dead, and all have told their groups'
 *     shards so before they push anything in c + 1. So the rows of r are in c + 1 either r's or its heirs', in every
 *     shard of every group alike: no shard counts both, none counts neither. */
#ifndef PLI_LEARN_OUTLIVE_H
#define PLI_LEARN_OUTLIVE_H

#include <plait/group.h>

#include "learn/learner.h"

/** May a run with two replicas of each shard, and the net cut so, go on when a rank dies? stage_of [n]: of the net's
 *  parameters. Errors: EREFUSED a stage has no variables, so no table would tell it who has died; or some tables apply
 *  at clocks and others at once. The same on all workers. */
plait_status pli_outlive_check(const pli_run *run, const int32_t *stage_of, int32_t n);
/** From now on the replica's ranks end their clocks together, which the event log tells; in a run with two replicas of
 *  each shard they die together, too. Called when the rank's tables are there. Errors: ENOMEM. */
plait_status pli_outlive_begin(pli_run *run, plait_group *replica);
/** The last clock has ended: a rank may go on, to judge, without the others of its replica. */
void         pli_outlive_end(pli_run *run);

#endif
