/* comm/world.h - comm's inside: the state of one plait_comm_run in this process, of its ranks and their ports. Only
 * comm's own files and its transports include it. */
#ifndef PLI_COMM_WORLD_H
#define PLI_COMM_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/figures.h"
#include "comm/sheet.h"
#include "comm/forms/forms.h"
#include "comm/group.h"
#include "comm/heartbeat.h"
#include "comm/launcher.h"
#include "comm/transport.h"
#include "comm/user.h"

typedef struct pli_members pli_members;

typedef enum pli_port_state { PLI_PORT_NOT_YET, PLI_PORT_OPEN, PLI_PORT_CLOSED } pli_port_state;

/* A machine's port. The thread that holds `lock` runs the machine; messages are pushed without the lock.
 *
 * Invariant (no message is left lying): a thread that pushes tries the lock afterwards; a thread that unlocks looks
 * at the inbox afterwards. Push, try, unlock and look are sequentially consistent: if the pusher's try fails, it
 * came before the holder's unlock in their one order, and so did the push before the holder's look. So either the
 * pusher gets the lock or the holder sees the message. The same holds for member events (pli_members.n_events) in place
 * of the inbox. */
struct pli_port {
    _Alignas(64) _Atomic(pli_msg *) inbox; /* newest first; any thread pushes, the holder takes all          */
    _Atomic uint32_t lock;                 /* 0 free, 1 held, 2 held and perhaps a thread sleeps for it */
    _Atomic uint32_t queued;               /* 1: on some thread's work list, which next_run links */
    pli_port        *next_run;             /* belongs to the thread that set queued */
    _Atomic uint32_t state;                /* pli_port_state; written by the holder                           */
    _Atomic int32_t  seen;                 /* member events handed on; written by the holder                  */
    _Atomic uint64_t wake_at_ns;           /* written by the holder                                           */
    _Atomic bool     owes;                 /* messages may be lost: one may not be acknowledged yet; written by the
                                            * holder */
    plait_comm      *comm;
    uint32_t         number; /* below PLI_PORTS_ALL */
    const pli_numbers *numbers; /* of the group whose port it is; NULL: ranks are numbered as the run numbers them.
                                 * The holder's */
    uint16_t         job; /* the holder's, like the next two; messages of an earlier job are dropped */
    const pli_machine_ops *ops;
    void                  *machine;
};

/* The ports of groups are made when the first message for one comes, or when the first of them is opened. */
typedef struct pli_group_ports {
    pli_port port[PLI_PORT_MAX];
} pli_group_ports;
enum { PLI_CHUNK = 64 };
typedef struct pli_group_chunk {
    _Atomic(pli_group_ports *) ports[PLI_CHUNK];
} pli_group_chunk;

struct plait_comm {
    pli_port   ports[PLI_PORT_MAX];
    _Atomic(pli_group_chunk *) chunk[PLI_GROUPS_MAX / PLI_CHUNK]; /* any thread adds, release; pairs with acquire */
    _Atomic uint32_t groups_to; /* all groups that have ports here are below; any thread raises it */
    pli_world *world;
    pli_members *members; /* what it knows of the others */
    int32_t    rank;

    _Alignas(64) _Atomic uint32_t bell; /* rung by any thread when a waiter should look again */
    _Atomic uint32_t sleepers;          /* waiters in the futex, or on their way into it */
    _Atomic uint64_t sent[PLI_PORT_MAX]; /* bytes, by the receiver's port; PLI_PORT_COLLECTIVE: native sums, too */
    _Atomic uint64_t waited_ns; /* in pli_comm_wait */
    _Atomic uint64_t cause_ns;  /* when the chain began that rang the bell last; relaxed: a figure, not a promise */
    _Atomic uint64_t in_flight_ns; /* part of waited_ns; written by the rank's thread, relaxed, like the next */
    _Atomic uint64_t in_calls_ns;  /* time in public calls */
    uint64_t entered_ns;        /* when the call began, plus the caller's own work in it; the rank's thread only */
    _Atomic uint64_t begun_ns;  /* when the rank began */
    uint64_t span_ns; /* when the call began */
    bool     spun_in_vain; /* the last spin was in vain: see watch; the rank's thread only */

    pli_sheet         sheet; /* what the rank shows */
    _Atomic(pli_sheet_row *) figures; /* its row of figures (figures.c); NULL until the first look */
    _Atomic uint64_t  told[PLI_TOLD]; /* doubles; relaxed, like all figures */
    _Atomic bool      has_told;       /* release, after the first numbers */
    pthread_mutex_t   reason_lock;
    const pli_reason *reason;      /* what the rank waits for; NULL: it works; under reason_lock, like the next three */
    pli_call_site          waits_at;
    uint64_t          waits;       /* counts the waits: the number of this one */
    uint64_t          waits_since_ns;
    _Atomic uint32_t  looked;      /* the bell at the waiter's last look that found nothing; written by the waiter */
    _Atomic uint64_t  doomed;      /* number of the wait that cannot end because of doomed_why; release, under
                                    * failed_lock */
    plait_error       doomed_why;
    _Atomic uint64_t  begun, joined; /* collectives that the rank has begun, and has begun to wait for; written by
                                      * its thread */

    uint16_t jobs;     /* number of jobs so far, the same on all ranks; the rank's thread only, like the next six */
    bool in_job; /* from a job's creation to its end */
    int32_t  depth;    /* nesting depth of public calls */
    pli_call_site site;     /* where the outermost public call was made */
    uint64_t calls;
    const char *at_file; /* set by the caller's macro, for the next call */
    int32_t  at_line;

    pthread_mutex_t   failed_lock; /* guards failed_why */
    plait_error       failed_why;
    _Atomic bool      failed; /* a machine of this rank has failed; release after failed_why */
    _Atomic bool      killed; /* see pli_comm_kill */
    int32_t          *fellows; /* [n_fellows] with whom it dies (pli_comm_die_with); under world->lock */
    int32_t           n_fellows;

    plait_error    error; /* the rank's last error; the rank's thread only */
    const pli_event_sink *events; /* the rank's thread only, like the next */
    const pli_span_sink  *spans;
    pli_user       user;
    pli_collective collective;
    pli_port      *user_port, *collective_port;
    void          *retired; /* see pli_comm_retire; the rank's thread only, like all fields up to under_way */
    void         (*release)(void *retired);
    pli_carriage   carriage; /* of collectives of all workers */
    pli_call      *under_way; /* begun and not waited for yet, newest first */
    plait_group   *groups;    /* made and not destroyed, newest first; the rank's thread only, like the next */
    uint32_t       n_groups;  /* how many were made, the same on all workers */
    pli_pool      *pool;

    pthread_t    thread; /* threads only */
    plait_status result;
    plait_error  result_why;

    uint32_t   life;  /* which life of its rank, from 1 on; changed between two lives */
    uint16_t   died_in; /* the job in which it was killed; 0: in none */
    pli_msg   *early; /* from lives of ranks that its log of members does not have yet, oldest first (apart.c) */
};

/* Membership, as one rank knows it: a log that only grows. An event is added after all messages of its rank were
 * pushed. All ranks of a process share one, unless the transport cuts them off from each other (pli_place.cut_off). */
enum { PLI_MEMBER_EVENTS = 3 /* of a rank at most: it dies, returns once, and ends */ };
struct pli_members {
    pli_world        *world;
    int32_t           me;       /* the rank that decides; the first of those that share it */
    pli_member_event *events;   /* [PLI_MEMBER_EVENTS size]; written under world->lock */
    _Atomic int32_t   n_events; /* seq_cst, see pli_port */
    _Atomic uint8_t  *ended;    /* [size] pli_member_kind + 1, or 0 while the rank lives */
    uint32_t         *life;     /* [size] which life of the rank that is about, from 1 on; under world->lock */
    _Atomic uint32_t  view;     /* the number of the view that the log has come to, from 1; written under world->lock */
    struct pli_views *views;    /* decides on views; NULL: nobody does */
    plait_error       lost_why; /* written under world->lock once */
    _Atomic bool      lost;     /* release after lost_why: every wait fails */
};

struct pli_world {
    const pli_transport_ops *ops;
    pli_transport           *transport;
    pli_place                place;
    int32_t                  size, threads;
    uint64_t                 timeout_ns;
    const plait_log         *log;
    bool                     by_messages; /* no native collectives       */
    const pli_coll_form     *form;        /* form of every allreduce, which then goes by messages; NULL: the form
                                           * that suits */
    pli_hosts                hosts;       /* of the workers              */
    bool                     may_spin;    /* the ranks here have a core each */
    plait_comm              *local;       /* [place.count]               */
    plait_body_fn           *body; /* NULL: the rank was opened by plait_comm_open */
    void                    *user;

    pthread_mutex_t   lock;
    pli_members      *members;   /* [n_members] the first is that of all ranks here, or each rank has one of its own */
    int32_t           n_members; /* 1 or size */
    struct pli_apart *apart;     /* how ranks have ended; NULL: all share a log */
    _Atomic bool      survives; /* see pli_comm_survive */
    _Atomic bool      renews;   /* see pli_comm_renews  */
    pli_heartbeat     heart;    /* used by the thread that calls pli_world_beat; size 0: there are no beats */
    int32_t          *beats;    /* [2 size] room for a turn's result; the same thread's */
    _Atomic uint32_t *heard;    /* [size] heard since the last turn: the sender's view; 0: not heard. Any thread sets
                                 * it, that thread clears it. NULL: all ranks are here */
    _Atomic int32_t   first_failed; /* the rank whose body failed first, or -1 */
    _Atomic int32_t   first_living; /* the first among those that were not killed */
    _Atomic uint32_t  go;       /* threads: 0 wait, 1 run the body, 2 end */
    struct pli_shared *shared; /* under lock */
    struct pli_doctor *doctor;
};

/** The life of a run. open: options, transport and memory; alone: refuses unless one rank has this process to itself.
 *  start: messages may come. await, where a rank is a process: stays until the others have ended; false: not all have.
 *  finish: closes the transport, and returns the status of the rank that speaks for this process. */
plait_status pli_world_open(const plait_comm_opts *given, bool alone, pli_world **world_out, plait_error *err);
plait_status pli_world_start(pli_world *world, plait_error *err);
bool         pli_world_await(pli_world *world);
plait_status pli_world_finish(pli_world *world, plait_status status, bool all_ended, plait_error *err);
void         pli_world_free(pli_world **world);
/** pli_world_run_rank in two halves, before and after the body, whose status the second gets. */
plait_status pli_world_begin_rank(plait_comm *comm);
void         pli_world_finish_rank(plait_comm *comm, plait_status status);

/* Ports that got something and are still to be run: a list through the ports, one list for each call on its stack,
 * so that a machine that sends to a machine does not recurse. */
typedef struct pli_work {
    pli_port *first, **last;
    bool      remote; /* something was handed to the transport, which may move it at once */
} pli_work;
void pli_work_init(pli_work *work);
void pli_work_run(pli_work *work, pli_world *world);

void pli_port_init(pli_port *port, plait_comm *comm, uint32_t number);
/** The port with this number, below PLI_PORTS_ALL; it is made if there is none yet. NULL: out of memory. Any thread. */
pli_port *pli_comm_port(plait_comm *comm, uint32_t number);
/** The rank's ports, one after the other: *at starts at 1, or at 0 for the one that is never opened,
 *  too. NULL: there are no more. Any thread. */
pli_port *pli_comm_next_port(plait_comm *comm, uint32_t *at);
/** Frees the ports of groups, which are closed. */
void pli_comm_free_ports(plait_comm *comm);
/** Tells the machines of the ranks that share the log of members that it has grown. */
void pli_members_announce(pli_members *members);
void pli_comm_ring(plait_comm *comm);
/** The same, for a change whose cause was at cause_ns: the start of a chain of messages, or the ringer's own act. */
void pli_comm_ring_since(plait_comm *comm, uint64_t cause_ns);
/** A machine of this rank has failed, or the rank alone is lost: its waits end. The first reason counts. */
void pli_comm_fail(plait_comm *comm, const plait_error *why);
/** Hands the work in out to a transport that charges for it. */
void pli_comm_charge(plait_comm *comm, const pli_out *out);
/** Runs this rank's due wake-ups; returns when the next is due. */
uint64_t pli_comm_wakeups(plait_comm *comm, uint64_t now_ns);

/** Has the rank sent a message that, as far as it knows, did not arrive yet? Only where messages may be lost. */
bool pli_comm_owes(plait_comm *comm);

/** pli_comm_wait that only ready and its own deadline (PLI_NEVER: none) can end: for things that end by themselves. */
bool pli_comm_wait_sure(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                        uint64_t timeout_ns);

/** pli_comm_wait for a condition that a load or two can tell: the waiter looks at ready itself for a moment. So a
 *  thread that makes it true, by a sequentially consistent store, needs to ring only if *resting is not 0
 *  afterwards. */
plait_status pli_comm_watch(plait_comm *comm, _Atomic int32_t *resting, pli_ready_fn *ready, void *arg,
                            const pli_reason *reason, plait_error *err);

/** A pli_reason's tell and show for a collective; arg is its pli_call. */
void pli_comm_tell_call(const void *call, char *text, size_t bytes);
void pli_comm_show_call(const void *call, pli_wait *wait);

/** comm/exact.c: turns an exact sum that goes by messages into a sum of cells, and back when it is over. */
plait_status pli_exact_begin(pli_call *call, plait_error *err);
void         pli_exact_end(pli_call *call, plait_status status);

/** Ends the collectives that were begun and not waited for: their owners get the memory back. */
void pli_comm_end_calls(plait_comm *comm, bool failed_itself);

/** Fills why with what the others hear of a rank that failed with text. */
void pli_member_reason(plait_error *why, int32_t rank, const char *text);
/** Adds an event to the log: it is in force from this view on; 0: a death makes the next one. DIED loses the job,
 *  unless it survives. JOINED begins the next life of a rank that has died. A second end of a life is ignored: false.
 *  Then tell all machines (pli_members_announce). */
bool pli_members_append(pli_members *members, pli_member_kind kind, int32_t rank, const plait_error *why, bool mute,
                        uint32_t view);
/** A rank has ended, as it says itself: adds the event and tells all machines of this process. A death in a job that
 *  survives is first decided on, if ranks are processes. */
void pli_world_member(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why);
/** A message (taken) for port 0, which tells how a rank of another process has ended. */
void pli_world_control(pli_world *world, pli_msg *msg);
/** Tells the other processes how a rank of this one has ended, then does pli_world_member. */
void pli_world_end_rank(pli_world *world, int32_t rank, plait_status status, const plait_error *why);

/** Has a rank below `below` died? Then fills why and returns the rank; else -1. */
int32_t pli_world_dead_below(pli_world *world, int32_t below, plait_error *why);
/** A worker that a collective needs has ended. If a worker has died, err has the first death; else this worker has
 *  left. */
plait_status pli_world_missed(pli_world *world, const pli_coll *coll, int32_t worker, plait_error *err);
/** Has the rank's process gone without a word, or been taken for gone? rank -1: has any? */
bool pli_world_is_gone(const pli_world *world, int32_t rank);
/** comm/apart.c: where each rank has a log of its own. open: the memory; close: frees it. end: a rank has ended, as
 *  pli_world_member. stop: the rank has no right to go on: it does nothing more, and ends. */
bool pli_apart_open(pli_world *world);
void pli_apart_stop(pli_members *members, const plait_error *why);
void pli_apart_close(pli_world *world);
void pli_apart_end(pli_world *world, pli_member_kind kind, int32_t rank, const plait_error *why);
/** comm/run.c: the handle of a rank whose body has ended becomes that of its next life. */
void pli_comm_begin_life(plait_comm *comm, uint32_t life);
/** Delivers what has come too early for this log of members, as far as it is not so any more. */
void pli_members_take_early(pli_members *members);

/** Writes how texts name a rank of another process: "rank 2 on host b". */
void pli_world_name(const pli_world *world, int32_t rank, char *text, size_t bytes);

/* Tests set pli_comm_shaken: between a change of one thread and a look of another, other threads then go first, so
 * that rare interleavings become common. */
#ifdef PLI_TESTING
extern _Atomic bool pli_comm_shaken;
void pli_comm_shake(void);
#endif

static inline uint32_t pli_world_view(const pli_world *world) {
    return atomic_load_explicit(&world->members->view, memory_order_relaxed);
}

/* Does the log have the end of this rank? */
static inline bool pli_members_have_end(const pli_members *members, int32_t rank) {
    return atomic_load_explicit(&members->ended[rank], memory_order_acquire) != 0;
}

static inline pli_members *pli_world_members(const pli_world *world, int32_t rank) {
    return &world->members[world->n_members > 1 ? rank : 0];
}

static inline uint64_t pli_world_now(const pli_world *world) {
    return world->ops->now != NULL ? world->ops->now(world->transport) : pli_now_ns();
}

/* With simulated time: pays for what the rank has computed, and sends its messages. No port is held. */
static inline void pli_world_settle(pli_world *world) {
    if (world->ops->now != NULL) (void)world->ops->progress(world->transport);
}

/* Adds to a figure that one thread alone writes. */
static inline void pli_tally(_Atomic uint64_t *figure, uint64_t more) {
    atomic_store_explicit(figure, atomic_load_explicit(figure, memory_order_relaxed) + more, memory_order_relaxed);
}

static inline bool pli_world_is_local(const pli_world *world, int32_t rank) {
    return rank >= world->place.first && rank - world->place.first < world->place.count;
}

/** Writes reason's text, or "something unnamed". */
void pli_comm_tell(const pli_reason *reason, char *text, size_t bytes);

void pli_shared_free_all(pli_world *world);

#endif
