/* table/copies/hosted.h - the replicas of other servers' shards that lie on one rank, behind one port.
 *
 * At first there is one, of the server before this rank (place 1, replicas.h). More come when a rank has died: a
 * replica is opened by the first message for it, from the log of the replica that serves or from a worker. Each is a
 * server's machine of its own. Where shards move (moves.h) the replicas that serve are here, too, a replica is opened
 * by PLACES, and one that is out makes way for another at a later place. This one hands each replica its messages, and
 * tells all of them what becomes of ranks, also what happened before they were opened. */
#ifndef PLI_TABLE_HOSTED_H
#define PLI_TABLE_HOSTED_H

#include "table/copies/replicas.h"

typedef struct pli_hosted {
    pli_layout            layout;
    int32_t               rank;
    uint32_t              epoch, incarnation;
    pli_server          **replica;   /* [servers]; NULL: no message has come for it */
    int32_t              *opened; /* [n_opened] the numbers of those that are open */
    int32_t               n_opened;
    pli_member_event     *events; /* [n_events], of all ranks */
    int64_t               n_events, events_capacity;
    const pli_event_sink *sink;
    pli_sheet            *sheet; /* where replicas are shown, and as what: server.h */
    const char           *group;
    const int32_t        *ranks;
    pli_moved             moved;    /* where shards move */
    _Atomic bool          all_gone; /* all workers are gone from all of them; release, pairs with the acquire of who
                                     * waits for the end */
} pli_hosted;

extern const pli_machine_ops pli_hosted_ops;

/** Opens it on this rank, a server's or a spare. sink may be NULL. Errors: ENOMEM. */
plait_status pli_hosted_open(pli_hosted *hosted, const pli_layout *layout, int32_t rank, uint32_t epoch,
                              uint32_t incarnation, const pli_event_sink *sink, plait_error *err);
/** From now on the tables that come are shown, as those of the group ("": of all workers); ranks: server.h. */
void         pli_hosted_show(pli_hosted *hosted, pli_sheet *sheet, const char *group, const int32_t *ranks);
/** Nobody is to see them any more. */
void         pli_hosted_hide(pli_hosted *hosted);
void         pli_hosted_close(pli_hosted *hosted);

#endif
