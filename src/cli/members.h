/* members.h - what a run's metrics tell of its ranks: who takes part, and where each one's time went. */
#ifndef PLI_CLI_MEMBERS_H
#define PLI_CLI_MEMBERS_H

#include "comm/comm.h"
#include "watch/watch.h"

/** A line a rank at the beginning: rank, host, process and role. Collective over all ranks; metrics: the leading one's,
 *  else NULL. spares: the last so many of the workers. */
plait_status pli_members_tell(plait_comm *comm, int32_t spares, pli_metrics *metrics);
/** A line a worker at the end: seconds computing, waiting, on the network. Collective over the workers. */
plait_status pli_members_tell_times(plait_comm *comm, const plait_report *report, pli_metrics *metrics);

#endif
