/* comm/call.h - collectives from their caller's side: what comm.c does for the calls in collectives.c. coll->group, or
 * group, says whose they are; NULL: all workers'. Failures are in the comm's error. */
#ifndef PLI_COMM_CALL_H
#define PLI_COMM_CALL_H

#include "comm/handle.h"

static inline int32_t pli_call_workers(const plait_comm *comm, const plait_group *group) {
    return group != NULL ? group->numbers.members : comm->world->place.workers;
}
/** The caller's number among them; -1: it is none of them. */
static inline int32_t pli_call_me(const plait_comm *comm, const plait_group *group) {
    return group != NULL ? group->me : pli_comm_is_worker(comm) ? comm->rank : -1;
}

/** What carries the group's collectives, or, group NULL, those of all workers (comm/carried.h). */
static inline pli_carriage *pli_carriage_of(plait_comm *comm, plait_group *group) {
    return group != NULL ? &group->carriage : &comm->carriage;
}

/** Runs a collective and waits for it; name: of the public call. */
plait_status pli_call_run(plait_comm *comm, const pli_coll *coll, const char *name);
/** Begins a reduction; coll->begun is set. */
plait_status pli_call_begin_reduction(plait_comm *comm, pli_coll *coll, plait_request **request_out);
/** Begins an allgather of pieces. own is taken; to: where the result goes, whose call it is (coll.group) and, by its
 *  root, whether the pieces are of tables. */
plait_status pli_call_begin_pieces(plait_comm *comm, pli_msg *own, const pli_call *to, plait_request **request_out);
/** Begins an exchange: given [workers], a message for each worker (taken; NULL for the caller itself). to: as above;
 *  its piece_out receives what each has for the caller. */
plait_status pli_call_begin_exchange(plait_comm *comm, pli_msg **given, const pli_call *to,
                                     plait_request **request_out);

#endif
