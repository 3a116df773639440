/* comm/shared.h - what a rank leaves to the others of its process when it ends before them. Memory that they share from
 * the first is pli_comm_shared (comm.h). */
#ifndef PLI_COMM_SHARED_H
#define PLI_COMM_SHARED_H

#include "comm/comm.h"

/** The rank ends, and others of its process may still read the state: release(state) is called when all ranks of the
 *  process have ended. false: out of memory; the caller keeps it. */
bool pli_comm_leave_behind(plait_comm *comm, void *state, void (*release)(void *state));

#endif
