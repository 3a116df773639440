/* comm/carried.h - collectives that go on when a worker dies, since somebody else carries them.
 *
 * A collective by messages, or by the transport, needs each worker to the end. Where a room above has machines that
 * outlive any rank (the servers of a job with copies, table/copies/replicas.h), they can carry what each worker brings:
 * they decide once who has come, and all that live hear the same. From these pieces every collective follows:
 *
 *   reductions  what has come, in the order of the workers, is reduced by each worker alike
 *   broadcast   all bring their buffer; the root's counts, or, where the root is gone, the lowest worker's
 *   allgather   the place of who is gone is zeroed; pieces of who is gone are empty
 *
 * Who was missing is *absent* from then on: the same on every worker after the same collective, so that all can act
 * upon it alike (pli_comm_absent, pli_comm_lead), which the news of a death, that come to each when they come, do not
 * allow.
 *
 * Bytes: each worker hears what all bring, W times as much as a reduction by messages; it is for counts, votes and
 * figures, not for gradients. Paper: Birman and Joseph, "Exploiting virtual synchrony in distributed systems", SOSP
 * 1987 (all see the same members between the same messages). */
#ifndef PLI_COMM_CARRIED_H
#define PLI_COMM_CARRIED_H

#include "comm/comm.h"
#include "comm/collective.h"

/** The collective of a comm that has a carrier: done when it returns. The rank's own thread. Errors: the carrier's,
 *  EMISMATCH, ENOMEM; in the comm's error. */
plait_status pli_carried_run(plait_comm *comm, const pli_coll *coll);

#endif
