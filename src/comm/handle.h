/* comm/handle.h - what public calls on a rank's handle have in common: their arguments are looked at, and a call that
 * fails says why in the handle. Of the files that make such calls alone. */
#ifndef PLI_COMM_HANDLE_H
#define PLI_COMM_HANDLE_H

#include "comm/world.h"

/** The error is in the handle: names its rank and, where the job is lost, the first cause and not who ended because of
 *  it. Returns the error's code. */
plait_status pli_comm_failed(plait_comm *comm);
/** Is the handle there, and does no server function call? */
plait_status pli_comm_usable(plait_comm *comm, const char *call);
/** Is an argument there that the call needs? EINVAL. */
plait_status pli_comm_given(plait_comm *comm, const char *call, const char *name, const void *argument);
/** The same of memory of so many bytes or elements, if it is some. */
plait_status pli_comm_given_memory(plait_comm *comm, const char *call, const char *name, const void *memory,
                                   bool some);
/** The most bytes of a call: the steps of a collective multiply by the number of workers, and by pieces of messages. */
int64_t      pli_comm_most_bytes(const plait_comm *comm);
plait_status pli_comm_at_most(plait_comm *comm, const char *call, size_t bytes, int64_t most);

#endif
