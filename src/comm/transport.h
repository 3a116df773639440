/* comm/transport.h - what a transport must provide. Each has a folder: threads/, mpi/, sim/. A transport
 * that needs a library is a module, plait-<name>.so, whose one entry symbol returns its ops.
 *
 * A transport moves messages between processes, and may have collectives of its own, called native. It does not know
 * what messages mean. Everything above (ports, inboxes, waits, reasons, membership, counting of bytes) is in comm
 * and is the same for all transports; it is one pli_world per plait_comm_run in a process. */
#ifndef PLI_COMM_TRANSPORT_H
#define PLI_COMM_TRANSPORT_H

#include "comm/collective.h"
#include "comm/comm.h"

#define PLI_TRANSPORT_ABI 10u /* of pli_transport_ops, which plait-<name>.so gives */

enum { PLI_HOST_NAME_BYTES = 64 };

typedef struct pli_transport pli_transport; /* a transport's own state in this process */
typedef struct pli_world     pli_world;     /* comm's state of one run in this process */

/* Where this process stands in the job; open fills it. */
typedef struct pli_place {
    int32_t workers, servers; /* of the whole job                       */
    int32_t first, count;     /* the ranks that live in this process    */
    int32_t ranks_on_host;
    int32_t *host_of;         /* [workers] a number for each host, the same in all processes; pli_malloc'ed, comm
                               * frees it; NULL: all workers share one */
    uint64_t resend_after_ns; /* 0: reliable and ordered              */
    uint64_t cut_off_ns;      /* all ranks live here, but links between them may be cut: each rank has a log of members
                               * of its own, and suspects whom it has not heard for so long. 0: they share one */
    char    host[256];
    char  (*host_name)[PLI_HOST_NAME_BYTES]; /* [workers + servers] the host of every rank, as texts name it;
                                              * pli_malloc'ed, comm frees it; NULL: all are on `host` */
} pli_place;

/* One rank's part in a collective, from its beginning to the end of its wait. */
typedef struct pli_call {
    plait_request    request; /* for calls that were begun */
    plait_comm      *comm;
    struct pli_call *next;    /* next in the rank's list; a call on the rank's stack is in no list */
    pli_coll         coll;
    pli_coll_run     run;     /* of the message form; a native call that meets by messages uses it, too */
    uint64_t         number;  /* number among the rank's calls: 1, 2, ... */
    bool             native, carried; /* carried: see comm/carried.h; it is done as soon as it has begun */
    size_t          *sizes;   /* pieces: where the result goes, one after the other ... */
    void           **all_out;
    pli_msg        **piece_out; /* ... or as they are */
    void            *flight;  /* the transport's own state, for a native call */
    void            *cells;   /* an exact sum by messages: the cells that are sent instead of ... */
    void            *exact;   /* ... the caller's buf of floats or (wide) doubles, which receives the sums */
    bool             wide;
} pli_call;

typedef struct pli_transport_ops {
    uint32_t    abi; /* PLI_TRANSPORT_ABI */
    const char *name;
    bool        shares_memory;     /* ranks are threads of this process and use each other's memory (local topology) */
    bool        carries_local;     /* send also takes messages between two ranks of this process */
    bool        meets_by_messages; /* before a native collective that was begun, the workers meet in the collective
                                    * machine */

    /** Joins the job and says where this process stands; checks the counts of opts against those of the launcher and
     *  of the other processes. No message may be delivered before start. */
    plait_status (*open)(const plait_comm_opts *opts, pli_world *world, pli_place *place_out,
                         pli_transport **transport_out, plait_error *err);
    /** The world is ready: messages may be delivered from now on. */
    plait_status (*start)(pli_transport *transport, plait_error *err);
    /** Sends msg (taken) to a rank of another process or, with carries_local, to any other rank; in order for each
     *  pair of ranks, unless resend_after_ns > 0. It never blocks on a peer and cannot fail (a later failure is told
     *  by pli_world_fail). It is called with the sending port held: a transport that cannot act then queues the
     *  message until progress, which follows. NULL: no message goes this way. Any thread. */
    void (*send)(pli_transport *transport, pli_msg *msg);
    /** A waiting thread lends its time: moves what can be moved now. true: something has happened. NULL: all that
     *  happens rings the waiter's bell. Any thread. */
    bool (*progress)(pli_transport *transport);
    /** A waiting rank has nothing to do for ns: sleeps that long, or until something has come that only the
     *  transport can see. false: the transport sees no such things, and the rank sleeps on its bell. NULL: never.
     *  The rank's thread. */
    bool (*nap)(pli_transport *transport, uint64_t ns);
    /** Native collectives. takes: does the transport run this one natively? The answer may depend only on what is
     *  equal on all workers. If the user has named a form it is not asked, so coll.form is NULL. begin never blocks;
     *  exactly one wait by the same rank follows, which must not return before buf is free again. There may be
     *  several calls with coll.begun, and other calls may begin and end in between. NULL: all collectives go by
     *  messages. */
    bool (*takes)(const pli_transport *transport, const pli_coll *coll);
    plait_status (*begin)(pli_transport *transport, pli_call *call, plait_error *err);
    plait_status (*wait)(pli_transport *transport, pli_call *call, plait_error *err);
    /** Replaces wait for a call that was begun and is given up: buf is free at once. NULL: the transport takes no
     *  begun calls. */
    void (*drop)(pli_transport *transport, pli_call *call);
    /** A transport with a time of its own (sim) brings the eight that follow; with real time all are NULL.
     *  now: nanoseconds, never backwards. run: calls pli_world_run_rank for every rank that lives here, on one
     *  thread of the system; returns when all are done. sleep: the rank rests until its bell differs from `bell`, or
     *  until_ns; may return early. ring: the rank's bell has changed; a port may be held. work: the rank did
     *  something that takes time; it pays for it before it sends or sleeps again. drain: the rank ends; if in good
     *  order, returns when nothing that it has sent is on its way. silent_since: since when nothing of rank has
     *  reached observer (if both are the same rank: since when it is frozen); 0: it is heard. */
    uint64_t (*now)(const pli_transport *transport);
    plait_status (*run)(pli_transport *transport, plait_error *err);
    void (*sleep)(pli_transport *transport, plait_comm *comm, uint32_t bell, uint64_t until_ns);
    void (*ring)(pli_transport *transport, int32_t rank);
    void (*work)(pli_transport *transport, int32_t rank, pli_work_kind kind, uint64_t amount);
    void (*drain)(pli_transport *transport, int32_t rank, bool in_good_order);
    uint64_t (*silent_since)(const pli_transport *transport, int32_t observer, int32_t rank);
    /** With place.cut_off_ns > 0. hears: does what rank says reach observer now? vote: carries a message (taken)
     *  between two machines of membership, and hands it to pli_world_vote unless a cut link loses it; NULL: something
     *  has happened that may need a turn. A port or a lock may be held. */
    bool (*hears)(const pli_transport *transport, int32_t observer, int32_t rank);
    void (*vote)(pli_transport *transport, pli_msg *msg);
    /** The simulated cluster, as long as the transport lives; NULL: time is real. */
    const struct pli_cluster *(*cluster)(const pli_transport *transport);
    /** Ends. all_ended: every rank of the job has said that it is done, so that this process need not wait for any. */
    void (*close)(pli_transport **transport, bool all_ended);
} pli_transport_ops;

/* --- what a transport calls ------------------------------------------------------------------------ */

/** Hands in a message (taken) that came for a rank of this process, and runs its machine if no thread is in it. */
void pli_world_deliver(pli_world *world, pli_msg *msg);
/** The transport itself has failed (why->code: ECOMM, ENOMEM, EPEER): every wait of this process ends with that. */
void pli_world_fail(pli_world *world, const plait_error *why);
/** A rank of another process has certainly died without a word of its own: the job is lost, unless it goes on without
 *  its dead (pli_comm_survive); then the next view lacks the rank, and all machines here are told. how continues a
 *  text that begins "rank 2 on host b": "has died: its process is gone". A second call for a rank does nothing. Any
 *  thread. */
void pli_world_died(pli_world *world, int32_t rank, const char *how);
/** The same for what a cut link may look like: a job that goes on without its dead does so only by a majority of the
 *  view. The rank may be heard again. */
void pli_world_missed_rank(pli_world *world, int32_t rank, const char *how);
/** A transport whose ranks are processes calls this again and again from its own thread, also while the rank
 *  computes, each time after it has taken in all messages. It tells the others that this process lives, and finds
 *  out which of them do not. Returns when it wants to be called again; later does no harm. (comm/heartbeat.h) */
uint64_t pli_world_beat(pli_world *world, uint64_t now_ns);
/** What a transport with place.cut_off_ns > 0 tells, and no other. learn: every rank learns which of those that it
 *  hears have ended. silent: observer has not heard rank for cut_off_ns. heard: it hears it. vote: a message (taken)
 *  of the machines of membership has come. turn: due work of the rank's machine; false: it needs no further turn. */
void pli_world_learn(pli_world *world);
/** revive: a rank that has died, and whose body has ended, was started anew: it votes again, once the others have it in
 *  a view. false: it was not, since the run does not go on without its dead, or for want of memory. renew: it has its
 *  vote again, and its body is to run once more, by pli_world_run_rank; false: not yet, or never (pli_comm_renews).
 *  decides: has the rank a machine of membership that takes part? */
bool pli_world_revive(pli_world *world, int32_t rank);
bool pli_world_renew(pli_world *world, int32_t rank);
bool pli_world_decides(const pli_world *world, int32_t rank);
void pli_world_silent(pli_world *world, int32_t observer, int32_t rank);
void pli_world_heard(pli_world *world, int32_t observer, int32_t rank);
void pli_world_vote(pli_world *world, pli_msg *msg);
bool pli_world_turn(pli_world *world, int32_t rank, uint64_t now_ns);
/** Wakes the waiting threads of a rank that lives here. */
void pli_world_ring(pli_world *world, int32_t rank);
/** Runs the due wake-ups of this process's machines; returns when the next is due (PLI_NEVER: none). */
uint64_t pli_world_wakeups(pli_world *world, uint64_t now_ns);
/** Runs the body of a rank that lives here, from opening its ports to telling that it has ended. */
void pli_world_run_rank(pli_world *world, int32_t rank);
/** The handle of a rank that lives here. */
plait_comm *pli_world_comm(pli_world *world, int32_t rank);
/** Has this rank ended, in good order or not? */
bool pli_world_has_ended(const pli_world *world, int32_t rank);

/** Decodes a header and body from a wire, and checks version, kind of port, ranks and lengths. data [bytes] is the
 *  header, with or without the body behind it. Without it, the message has an unfilled body of its own, and
 *  *rest_out tells how many bytes are to follow. src: the rank that the transport knows as the sender. Errors:
 *  EFORMAT, EVERSION, ENOMEM. */
plait_status pli_msg_decode(const void *data, size_t bytes, int32_t src, int32_t size, int32_t first, int32_t count,
                            pli_msg **msg_out, size_t *rest_out, plait_error *err);

extern const pli_transport_ops pli_threads_ops;

#endif
