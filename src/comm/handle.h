/* comm/handle.h - what public calls on a rank's handle have in common: their arguments are checked, and a call that
 * fails says why in the handle. Only files with such calls use it. */
#ifndef PLI_COMM_HANDLE_H
#define PLI_COMM_HANDLE_H

#include "comm/world.h"

/** Completes the error in the handle: adds its rank and, if the job is lost, names the first cause, not a rank that
 *  ended because of it. Returns the error's code. */
plait_status pli_comm_failed(plait_comm *comm);
/** Is there a handle, and is the caller no server function? */
plait_status pli_comm_usable(plait_comm *comm, const char *call);
/** Is an argument given that the call needs? EINVAL if not. */
plait_status pli_comm_given(plait_comm *comm, const char *call, const char *name, const void *argument);
/** The same for memory, which is needed if `some` is true: some bytes or elements lie in it. */
plait_status pli_comm_given_memory(plait_comm *comm, const char *call, const char *name, const void *memory,
                                   bool some);
/** The most bytes that one call may move: the steps of a collective multiply them by the number of workers, and by
 *  pieces of messages. */
int64_t      pli_comm_most_bytes(const plait_comm *comm);
plait_status pli_comm_at_most(plait_comm *comm, const char *call, size_t bytes, int64_t most);

#endif
