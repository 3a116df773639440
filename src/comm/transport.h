/* comm/transport.h - what a transport must provide. One folder each: threads/, mpi/, sim/. A transport
 * that needs a library is a module, plait-<name>.so, whose one entry symbol returns its ops.
 *
 * A transport moves messages between processes, and may fulfil collectives natively. It knows nothing of what
 * messages mean. Everything above (ports, inboxes, waits, reasons, membership, bytes counted) is in comm and is the
 * same for all; it is one pli_world per plait_comm_run in a process.
 */
#ifndef PLI_COMM_TRANSPORT_H
#define PLI_COMM_TRANSPORT_H

#include "comm/collective.h"
#include "comm/comm.h"

#define PLI_TRANSPORT_ABI 8u /* of what plait-<name>.so gives, a pli_transport_ops */

enum { PLI_HOST_NAME_BYTES = 64 };

typedef struct pli_transport pli_transport; /* a transport's own state in this process */
typedef struct pli_world     pli_world;     /* comm's state of one run in this process */

/* Where this process stands in the job; filled by open. */
typedef struct pli_place {
    int32_t workers, servers; /* of the whole job                       */
    int32_t first, count;     /* the ranks that live in this process    */
    int32_t ranks_on_host;
    int32_t *host_of;         /* [workers] equal where they share a host, the same in all processes; pli_malloc'ed, comm
                               * frees it; NULL: all do             */
    uint64_t resend_after_ns; /* 0: reliable and ordered              */
    char    host[256];
    char  (*host_name)[PLI_HOST_NAME_BYTES]; /* [workers + servers] of every rank's host, as texts name it;
                                                pli_malloc'ed, comm frees it; NULL: all are on `host` */
} pli_place;

/* A collective of one rank, between its beginning and the end of its wait. */
typedef struct pli_call {
    plait_request    request; /* of those that were begun */
    plait_comm      *comm;
    struct pli_call *next;    /* of the rank's list, or on the rank's stack and of none */
    pli_coll         coll;
    pli_coll_run     run;     /* of the message form, also where a native one meets by messages */
    uint64_t         number;  /* of the rank's calls: 1, 2, ... */
    bool             native, carried; /* carried: comm/carried.h; done when it has begun */
    size_t          *sizes;   /* pieces: where the outcome goes, one after the other ... */
    void           **all_out;
    pli_msg        **piece_out; /* ... or as they are */
    void            *flight;  /* the transport's, where it is native */
    void            *cells;   /* an exact sum by messages: what travels in place of ... */
    void            *exact;   /* ... the caller's buf, floats or (wide) doubles, that receives the sums */
    bool             wide;
} pli_call;

typedef struct pli_transport_ops {
    uint32_t    abi; /* PLI_TRANSPORT_ABI */
    const char *name;
    bool        shares_memory;     /* ranks are threads of this process and use each other's memory (local topology) */
    bool        carries_local;     /* messages between two ranks of this process go through send, too                */
    bool        meets_by_messages; /* before a native collective that was begun the workers meet in the collective
                                      machine */

    /** Joins the job and says where this process stands; checks the counts of opts against the launcher's and
     *  against the other processes'. Nothing may be delivered before start. */
    plait_status (*open)(const plait_comm_opts *opts, pli_world *world, pli_place *place_out,
                         pli_transport **transport_out, plait_error *err);
    /** The world is ready: messages may be delivered from now on. */
    plait_status (*start)(pli_transport *transport, plait_error *err);
    /** Sends msg (taken) to another rank that is not in this process, or to any other where carries_local; in order for
     *  each pair of ranks, unless resend_after_ns > 0. Never blocks on a peer, cannot fail (what goes wrong later is
     *  told by pli_world_fail). Called with the sending port held: a transport that cannot act then queues until
     *  progress, which follows. NULL where no message takes this way. Any thread. */
    void (*send)(pli_transport *transport, pli_msg *msg);
    /** A waiting thread lends its time: moves what can be moved now. true: something has happened. NULL: what
     *  happens rings the waiter's bell. Any thread. */
    bool (*progress)(pli_transport *transport);
    /** A waiting rank has nothing to do for ns: sleeps for it, until what the transport alone sees has come. false:
     *  there is no such thing, and the rank sleeps on its bell. NULL: never. The rank's thread. */
    bool (*nap)(pli_transport *transport, uint64_t ns);
    /** Native collectives. takes: is this one natively done? The answer depends on what is equal on all workers only.
     *  It is not asked where the user has named a form, so coll.form is NULL.
     *  begin never blocks; then exactly one wait, by the same rank, which must not return before buf is free
     *  again. Calls with coll.begun may be several, and others may begin and end between. NULL: the message form
     *  serves. */
    bool (*takes)(const pli_transport *transport, const pli_coll *coll);
    plait_status (*begin)(pli_transport *transport, pli_call *call, plait_error *err);
    plait_status (*wait)(pli_transport *transport, pli_call *call, plait_error *err);
    /** Instead of wait, of a call that was begun: nobody wants it any more, buf is free at once. NULL: takes no such
     *  calls. */
    void (*drop)(pli_transport *transport, pli_call *call);
    /** A transport whose time is its own (sim) brings the seven that follow; all are NULL where time is the machine's.
     *  now: nanoseconds, never backwards. run: pli_world_run_rank for every rank that lives here, on one thread of the
     *  system; returns when all are done. sleep: the rank rests until its bell is no more `bell`, or until_ns; may
     *  return early. ring: the rank's bell has changed; a port may be held. work: something that takes time was done;
     *  the rank pays for it before it sends or sleeps again. drain: the rank ends; in good order, returns when nothing
     *  that it has sent is on its way. silent_since: from when on nothing of rank has reached observer (the same: from
     *  when on it has stood still); 0: it is heard. */
    uint64_t (*now)(const pli_transport *transport);
    plait_status (*run)(pli_transport *transport, plait_error *err);
    void (*sleep)(pli_transport *transport, plait_comm *comm, uint32_t bell, uint64_t until_ns);
    void (*ring)(pli_transport *transport, int32_t rank);
    void (*work)(pli_transport *transport, int32_t rank, pli_work_kind kind, uint64_t amount);
    void (*drain)(pli_transport *transport, int32_t rank, bool in_good_order);
    uint64_t (*silent_since)(const pli_transport *transport, int32_t observer, int32_t rank);
    /** Ends. all_ended: every rank of the job has said that it is done, so that nobody needs to be waited for. */
    void (*close)(pli_transport **transport, bool all_ended);
} pli_transport_ops;

/* --- what a transport calls ------------------------------------------------------------------------ */

/** Hands in a message (taken) that came for a rank of this process, and runs its machine if that is free. */
void pli_world_deliver(pli_world *world, pli_msg *msg);
/** The transport itself has failed (why->code: ECOMM, ENOMEM, EPEER): every wait of this process ends so. */
void pli_world_fail(pli_world *world, const plait_error *why);
/** A rank of another process has died without a word of its own, or is taken for dead: all machines here are told, and
 *  the job is lost unless it goes on without its dead (pli_comm_survive). how goes on where "rank 2 on host b" begins:
 *  "has died: its process is gone". Twice is once. Any thread. */
void pli_world_died(pli_world *world, int32_t rank, const char *how);
/** Of a transport whose ranks are processes, by its own thread, again and again, also while the rank computes, and
 *  after it has taken in what had come: tells the others that this process lives, and finds out who of them does not.
 *  Returns when it wants to be called again; later is no harm. (comm/heartbeat.h) */
uint64_t pli_world_beat(pli_world *world, uint64_t now_ns);
/** Wakes the waiting threads of a rank that lives here. */
void pli_world_ring(pli_world *world, int32_t rank);
/** Runs the due wake-ups of this process's machines; returns when the next one is due (PLI_NEVER: none). */
uint64_t pli_world_wakeups(pli_world *world, uint64_t now_ns);
/** Runs the body of a rank that lives here, from opening its ports to telling that it has ended. */
void pli_world_run_rank(pli_world *world, int32_t rank);
/** The handle of a rank that lives here. */
plait_comm *pli_world_comm(pli_world *world, int32_t rank);
/** Has this rank ended, in good order or not? */
bool pli_world_has_ended(const pli_world *world, int32_t rank);

/** A header and body from a wire, checked: version, kind of port, ranks, lengths. data [bytes] is the header, with or
 *  without the body behind it (then the message comes with an unfilled body of its own, *rest_out tells how many
 *  bytes are to follow). src: the rank that the transport knows as the sender.
 *  Errors: EFORMAT, EVERSION, ENOMEM. */
plait_status pli_msg_decode(const void *data, size_t bytes, int32_t src, int32_t size, int32_t first, int32_t count,
                            pli_msg **msg_out, size_t *rest_out, plait_error *err);

extern const pli_transport_ops pli_threads_ops;

#endif
