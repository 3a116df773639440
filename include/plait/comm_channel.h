/* plait/comm_channel.h - the channel of a cut graph (plait_cut) over ranks: each rank has a part, or several.
 *
 *     const int32_t ranks[] = { 0, 1, 2, 3 };
 *     plait_comm_channel_create(comm, 4, ranks, 0, &channel);
 *     cut.parts = 4, cut.own = plait_comm_rank(comm), cut.channel = plait_comm_channel_calls(channel);
 *     ... plait_session_create, plait_session_run or plait_session_run_batches ...
 *     plait_comm_channel_destroy(&channel);
 *
 * A sent tensor is copied once, into a message; a reader of the same process reads it there, without another copy.
 * Waits have a reason, so a timeout and `plait doctor` name producer, reader, value and micro-batch. If a rank that is
 * waited for has left, the wait ends with EPEER; if ranks wait for each other, with EDEADLOCK.
 * Threads: the rank's own.
 */
#ifndef PLAIT_COMM_CHANNEL_H
#define PLAIT_COMM_CHANNEL_H

#include <plait/comm.h>
#include <plait/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_comm_channel plait_comm_channel;

/** Opens the channel of a rank; a rank has one at a time. ranks [n_ranks] (copied): part p lies on ranks[p % n_ranks];
 *  all of them open the channel with the same list, within the same job. Replicas of a graph have ranks of their own.
 *  grants: how many tensors of an edge of the graph may be sent and not yet received, the same on all ranks; 0: 8. An
 *  edge that skips parts may make its producer wait, unless grants is at least parts + 1.
 *  Errors: EINVAL a rank that is none, one that is listed twice, or a channel that is open already; ENOMEM. The text is
 *  in plait_comm_error. Not collective: what others send before is kept. */
PLAIT_API plait_status plait_comm_channel_create(plait_comm *comm, int32_t n_ranks, const int32_t *ranks,
                                                 int32_t grants, plait_comm_channel **channel_out);
/** What a plait_cut takes; valid as long as the channel. */
PLAIT_API const plait_channel *plait_comm_channel_calls(const plait_comm_channel *channel);
/** Call it after the sessions that use it are destroyed, and when its ranks have received what this one has sent:
 *  copies that a lossy network may need again go with it. A rank that opens another channel in the same run calls
 *  plait_comm_barrier before it destroys the first and after it has created the next, as all ranks of the two do; else
 *  tensors of one may be dropped for those of the other. *channel may be NULL. */
PLAIT_API void plait_comm_channel_destroy(plait_comm_channel **channel);

#ifdef __cplusplus
}
#endif
#endif
