/* table/copies/hosted.h - the replicas of other servers' shards that lie on one rank, behind one port.
 *
 * At first that is one, of the server before it (place 1, replicas.h). Others come when somebody has died: the first
 * message for one, the log of who serves or what a worker asks, opens it. Each is a machine of its own, the server's;
 * this one hands each its messages, and all of them what becomes of ranks, also what was before they were opened. */
#ifndef PLI_TABLE_HOSTED_H
#define PLI_TABLE_HOSTED_H

#include "table/copies/replicas.h"

typedef struct pli_hosted {
    pli_layout            layout;
    int32_t               rank;
    uint32_t              epoch, incarnation;
    pli_server          **replica;   /* [servers]; NULL: no message has come for one */
    int32_t              *opened; /* [n_opened] of these                          */
    int32_t               n_opened;
    pli_member_event     *events; /* [n_events], of all ranks */
    int64_t               n_events, events_capacity;
    const pli_event_sink *sink;
    _Atomic bool          all_gone; /* of all of them; release, pairs with the acquire of who waits for the end */
} pli_hosted;

extern const pli_machine_ops pli_hosted_ops;

/** Of this rank, a server's or a spare. sink may be NULL. Errors: ENOMEM. */
plait_status pli_hosted_open(pli_hosted *hosted, const pli_layout *layout, int32_t rank, uint32_t epoch,
                              uint32_t incarnation, const pli_event_sink *sink, plait_error *err);
void         pli_hosted_close(pli_hosted *hosted);

#endif
