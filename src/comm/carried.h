/* comm/carried.h - collectives that go on when a worker dies, because other ranks carry them.
 *
 * A collective by messages, or by the transport, needs every worker until its end. But a room above may have machines
 * that outlive any rank (the servers of a job with replicas, table/copies/replicas.h). Such machines can carry what
 * each worker brings: they decide once who has come, and all living workers hear the same. Every collective can be
 * made from that:
 *
 *   reductions  each worker reduces the parts that came, in the order of the workers
 *   broadcast   all workers bring their buffer; the root's counts or, if the root is gone, that of the lowest worker
 *   allgather   the place of a worker that is gone is zeroed; its piece is empty
 *
 * A worker that was missing is *absent* from then on. After the same collective every worker knows the same absent
 * ones, so all can act on it alike (pli_comm_absent, pli_comm_lead). News of a death would not allow that, since it
 * reaches each rank at another time.
 *
 * Each worker receives the parts of all, W times as many bytes as in a reduction by messages. So this is for counts,
 * votes and figures, not for gradients. Paper: Birman and Joseph, "Exploiting virtual synchrony in distributed
 * systems", SOSP 1987 (all see the same members between the same messages). */
#ifndef PLI_COMM_CARRIED_H
#define PLI_COMM_CARRIED_H

#include "comm/comm.h"
#include "comm/collective.h"

/** Runs a collective of a comm that has a carrier; it is done on return. The rank's own thread. Errors: the
 *  carrier's, EMISMATCH, ENOMEM; in the comm's error. */
plait_status pli_carried_run(plait_comm *comm, const pli_coll *coll);

#endif
