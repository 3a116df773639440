/* vertex/async/async.h - the asynchronous engine: vertex by vertex, in the order of a queue, under locks.
 *
 *     queue.c     which vertex comes next
 *     holders.c   which workers have edges along which a vertex is gathered
 *     update.c    one update: what it sees, what it changes, whom it tells
 *     async.c     a worker's loop; rounds, which end when all are at rest
 *     rounds.c    rounds that are made again when a worker dies
 *
 * A worker asks for the scopes of some vertices at once (../locks), updates those that are granted, gives them back,
 * and tells the workers whose vertices gather from what has changed: these put them into their queues. Values lie with
 * their owners meanwhile. When all workers are at rest a *round* ends: owners push their values to the table, and the
 * job's clock ticks. Without a limit there is one round. */
#ifndef PLI_VERTEX_ASYNC_H
#define PLI_VERTEX_ASYNC_H

#include "vertex/async/queue.h"
#include "vertex/locks/locks.h"
#include "vertex/vertex.h"

typedef struct pli_async {
    pli_vertex_run *run;
    pli_locks       locks;
    pli_port       *port;
    pli_queue       queue;          /* of own vertices, by number less the first one's */
    uint32_t        mode;           /* of neighbors in a scope */
    int64_t         depth, budget;  /* scopes to ask for at once; updates of a round */
    int64_t         made;           /* updates in this round */
    int64_t         updates;        /* in all */
    double          most;           /* the largest change of this round */
    bool            lost;           /* a worker has died: the round comes to no end */
    int64_t        *holder_start;   /* [owned + 1] */
    int32_t        *holder;         /* workers that gather from an own vertex, by increasing rank */
    double         *unsaid;         /* [owned] changes that were too small to tell */
    /* of one scope: a row has `longest` edges at most */
    int64_t            longest;
    pli_lock_entry    *entry;    /* [longest + 1] */
    uint32_t          *place;    /* [longest] which entry is the edge's far end */
    uint32_t           me;       /* which entry is the vertex */
    uint32_t          *straight; /* [longest] 0, 1, 2, ... */
    plait_vertex      *other;    /* [longest] */
    plait_vertex_edge *edge;     /* [longest] */
    char              *before;   /* [longest + 1] values that were granted */
    char              *told;     /* [longest + 2] */
    char              *sum, *value;
    pli_event_use     *use;      /* [longest + 1] for the event log */
} pli_async;

/** Finds the ranks that gather from the own vertices. Errors: ENOMEM, without a text; where each process has a part
 *  alone also those of collectives. Collective over the workers. */
plait_status pli_async_holders(pli_async *a);
/** Lays out the scope of an own row: a->entry [returned], a->place, a->me. */
int64_t pli_async_lay(pli_async *a, int64_t row);
/** Updates the vertex of a granted scope, and gives the scope back. Errors: ENOMEM. */
plait_status pli_async_update(pli_async *a, pli_lock_scope *s);
/** A vertex has changed: signals own vertices that gather from it. Frees the notice. Errors: ENOMEM. */
plait_status pli_async_hear(pli_async *a, pli_lock_notice *notice);

#endif
