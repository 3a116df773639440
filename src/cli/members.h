/* members.h - the lines about ranks in a run's metrics: who takes part, and how each spent its time. */
#ifndef PLI_CLI_MEMBERS_H
#define PLI_CLI_MEMBERS_H

#include "comm/comm.h"
#include "watch/watch.h"

typedef struct pli_told_member {
    int32_t rank, pid;
    char    host[256], role[8];
} pli_told_member;

/** Writes a line for each rank at the beginning: rank, host, process and role. Collective over all ranks; metrics is
 *  NULL on all but the leading rank. The last `spares` workers are spares. all_out: NULL on all workers, or each gets
 *  all members, [size of comm], freed by pli_free. */
plait_status pli_members_tell(plait_comm *comm, int32_t spares, pli_metrics *metrics, pli_told_member **all_out);
/** Writes a line for each worker at the end: seconds spent computing, waiting, on the network. Collective over the
 *  workers. */
plait_status pli_members_tell_times(plait_comm *comm, const plait_report *report, pli_metrics *metrics);

#endif
