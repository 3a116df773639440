/* solve/rotation.h - blocks that rotate over the workers (plait/schedule.h, order "rotate"), as learners of factors and
 * of topics cut them: so many that a stale read misses nothing. */
#ifndef PLI_LEARN_ROTATION_H
#define PLI_LEARN_ROTATION_H

#include <plait/schedule.h>

#include "learn/learner.h"
#include "table/topology/topology.h"

enum { PLI_ROTATION_MOST = 32768 }; /* blocks */

/** For how many clocks a read may miss updates, at most PLI_ROTATION_MOST; 0: none, or without bound. */
int64_t pli_rotation_staleness(const pli_topology_kind *topology, const char *consistency);
/** Makes the schedule of so many blocks; push and touches (plait_schedule_opts) get the run. Collective. */
plait_status pli_rotation_make(pli_run *run, const char *name, int64_t blocks,
                               plait_status (*push)(void *user, const plait_turn *turn),
                               int64_t (*touches)(void *user, int64_t block, int64_t room, plait_touch *touch),
                               plait_schedule **schedule_out);

#endif
