/* sim: ranks are actors of SimGrid (Casanova et al., "Versatile, scalable, and accurate simulation of distributed
 * applications and platforms", JPDC 2014), in one process, in virtual time. plait-sim.so.
 *
 * A rank has a *body* and *lanes*, which take in messages: as a process has a thread and a network card with its
 * driver. Actors take turns on one thread of the system. They switch only where one of them sleeps or waits in SimGrid,
 * which never happens here while a port of comm is held: sending and ringing only note what is to be done, and `settle`
 * does it. Before a rank sends, sleeps or reads the time, it pays for what it has computed since: cost model, host's
 * speed and script say how long that takes. Each actor pays for its own work. Only when it has paid do its messages
 * leave, and only then do the actors that it rings for see its changes, whatever others settle meanwhile. Messages that
 * another actor of the rank sends to the same receiver later leave later.
 *
 *     a message:  settle -> latency of its way -> FIFO before the receiver -> the links' bandwidth, shared by SimGrid's
 *                 flow model with all that flows now -> FIFO -> overhead -> the machine of comm's port
 *
 * As over TCP, messages of several senders flow to a rank at the same time, those of one sender one after the other;
 * then the rank takes them one at a time, first come, first served. Messages that come at the same instant begin in an
 * order that the seed draws. At most SIM_FLOWS messages flow to a rank at once, so that a thousand pushes need a
 * thousand small solutions of the flow model, and not each time one with a thousand flows. Latency lies before the FIFO
 * and not in SimGrid's links, so that it overlaps (measured: 52 us a message otherwise, 6 us with one flow).
 *
 * A thousand answers that a rank sends at once do not share its link either: beyond the first SIM_CROWD they leave one
 * behind the other at the link's rate, as a network card sends its queue. The end of a flow changes the rates of all
 * flows that share a link with it, which took 600 us a message.
 *
 * If all hosts are parts of one machine, those that compute at a moment share its cores: what a core alone would take
 * becomes work on a host of SimGrid with so many cores.
 *
 * Lanes are alike. Any free lane does what is to be done next (lanes.c): take a message that has arrived, let one flow,
 * watch for the next. All but the first are created when first needed.
 *
 * Nothing depends on the machine's time, on addresses or on threads: the same seed gives the same bits. */
#ifndef PLI_COMM_SIM_H
#define PLI_COMM_SIM_H

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <simgrid/semaphore.h>

#include "comm/cluster.h"
#include "comm/world.h"

#define SIM_STACK_BYTES (8u << 20) /* as much as a rank has on threads; what is not used takes no memory */
enum { SIM_CROWD = 8 };
enum {
    SIM_FLOWS = 4,
    SIM_LANES = SIM_FLOWS + 2, /* one takes, one watches */
    SIM_BORN = 2,              /* actors of a rank from the start: its body and a lane */
    SIM_MAPPINGS = 2,          /* memory mappings of an actor: its stack and the guard below it */
};

typedef struct sim_list {
    pli_msg *first, **last;
} sim_list;

/* The body of a rank, or a lane. */
typedef struct sim_actor {
    struct sim_rank *rank;
    bool             is_lane, idle /* or not yet born */;
    int32_t          from;   /* the sender whose message flows here; -1: none */
    double           owed;   /* seconds of work on a host of speed 1, not yet paid for */
    int64_t          clocks; /* clocks ended, not yet counted */
    sim_list         out;    /* messages sent, not yet paid for */
    uint64_t         batch;  /* number of this list among all actors' lists, in the order in which they were begun */
    bool             rings;  /* its rank's body is to look when this actor has paid */
    sg_sem_t         bell;
    bool             asleep; /* in bell; the actor that wakes it clears this first */
    struct sim_actor *next;  /* next in the list of actors to be woken */
    bool              listed;
} sim_actor;

/* A message on its way. */
typedef struct sim_letter {
    pli_msg *msg;
    uint64_t due_ns, order, number; /* the FIFO's order: by due_ns, then a drawn number, then the order of sending */
} sim_letter;

typedef struct sim_rank {
    pli_transport *sim;
    int32_t        rank, host;
    sg_host_t      place;
    sim_actor      body, lane[SIM_LANES];
    sim_actor     *watcher;    /* rests until the next letter is due; NULL: none      */
    bool           takes;      /* a lane is taking a message */
    bool           rung;       /* rung since the watcher asked when to wake up */
    sim_list       due, arrived; /* messages ready to flow; messages ready to be taken */
    sim_letter    *letter; /* [letters] a heap of the messages that are to come to this rank */
    int64_t        letters, capacity;
    int64_t        on_the_way; /* messages of this rank that are on their way */
    uint64_t       sent;       /* messages sent so far */
    double         departed;   /* when the first byte of the last of these left */
    double         sent_by;    /* when all of them would be sent if they had the link alone */
    int64_t        clock;
    double         dies; /* when; INFINITY: never */
    bool           dead, done;
    bool           ended;   /* its body has returned */
    bool           revived; /* it was started anew: once at most */
} sim_rank;

struct pli_transport {
    pli_world   *world;
    pli_cluster  cluster;
    uint64_t     seed;
    plait_simulated *report; /* may be NULL */
    int32_t      size, living, standing; /* bodies that have not ended; how many of them are frozen for good */
    plait_error  stood; /* code 0, or why all were frozen */
    int64_t      mappings_left; /* memory mappings that are left; an actor's stack takes SIM_MAPPINGS */
    int64_t      stacks_left;   /* stacks for which there is address space */
    sim_rank    *rank; /* [size] */
    sg_host_t    machine; /* on whose cores all compute; NULL: each host has its own */
    struct sim_cuts *cuts; /* cuts.c; NULL: no link is cut for long */
    sim_actor    widths; /* the actor that changes links by the script; only if the script does */
    sim_actor   *wake, **wake_last;
    uint64_t     number, batches; /* how many letters, and lists of sent messages, there were so far */
    bool         over, failed;
    pli_sha256   trace;
    int64_t      delivered; /* messages, which the trace is made of */
};

/** The platform as SimGrid knows it. Errors: ENOMEM, EIO. */
plait_status pli_sim_platform(pli_transport *sim, plait_error *err);

/* actors.c: bodies, paying, sending, waking */
plait_status pli_sim_run(pli_transport *sim, plait_error *err);
uint64_t     pli_sim_now(const pli_transport *sim);
void         pli_sim_send(pli_transport *sim, pli_msg *msg);
bool         pli_sim_settle(pli_transport *sim);
void         pli_sim_sleep(pli_transport *sim, plait_comm *comm, uint32_t bell, uint64_t until_ns);
void         pli_sim_ring(pli_transport *sim, int32_t rank);
void         pli_sim_work(pli_transport *sim, int32_t rank, pli_work_kind kind, uint64_t amount);
void         pli_sim_drain(pli_transport *sim, int32_t rank, bool in_good_order);
uint64_t     pli_sim_silent_since(const pli_transport *sim, int32_t observer, int32_t rank);
double       pli_sim_clock(void);
/** Rests until another actor wakes it, or until `until` (INFINITY: no end). */
void pli_sim_rest(sim_actor *me, double until);
/** Notes that the actor is to be woken, or created; pli_sim_wake_all does it, and may switch to other actors. */
void pli_sim_wake(pli_transport *sim, sim_actor *actor);
void pli_sim_wake_all(pli_transport *sim);
/** Pays for the work that the actor owes. */
void pli_sim_pay(sim_actor *me);
/** A frozen rank does nothing until it thaws, except that it ends with the job. */
void pli_sim_thaw(sim_rank *r, sim_actor *me);
/** Ends the rank if the time of its death has come. */
void pli_sim_die(sim_rank *r);
/** The body of a rank that has died runs again, and dies no more. */
void pli_sim_run_again(sim_rank *r);
/** A message from src has been taken. */
void pli_sim_taken(pli_transport *sim, sim_rank *src);

/* lanes.c: what comes to a rank */
void pli_sim_list_init(sim_list *list);
void pli_sim_list_add(sim_list *list, pli_msg *msg);
/** Lets msg come to the rank at due_ns; false: no memory. */
bool pli_sim_post(sim_rank *r, pli_msg *msg, uint64_t due_ns);
void pli_sim_run_lane(sim_actor *me);

/* cuts.c: who is cut off, and what membership machines say to each other */
/** Fills place->cut_off_ns if a link is cut for so long that ranks suspect each other. Errors: ENOMEM. */
plait_status pli_sim_open_cuts(pli_transport *sim, uint64_t heartbeat_ns, pli_place *place, plait_error *err);
void         pli_sim_close_cuts(pli_transport *sim);
/** The actor that drives the machines; NULL: there is none. */
sim_actor *pli_sim_cuts_actor(pli_transport *sim);
void       pli_sim_run_cuts(sim_actor *me);
bool       pli_sim_hears(const pli_transport *sim, int32_t observer, int32_t rank);
void       pli_sim_vote(pli_transport *sim, pli_msg *msg);

#endif
