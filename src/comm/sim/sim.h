/* sim: ranks are actors of SimGrid (Casanova et al., "Versatile, scalable, and accurate simulation of distributed
 * applications and platforms", JPDC 2014), in one process, in virtual time. plait-sim.so.
 *
 * A rank is a *body*, and *lanes*, which take what comes: as a process has a thread, and a card with its driver. Actors
 * take turns on one thread of the system and change only where one of them sleeps or waits in SimGrid, which here is
 * never while a port of comm is held: sending and ringing only note what is to be done; `settle` does it. Before a rank
 * sends, sleeps or reads the time it pays for what it has computed since: cost model, host's speed and script say how
 * long. Each actor pays for its own: what it has sent leaves, and those that it rings for see what it has changed, when
 * it has paid, whatever others settle meanwhile. What another actor of the rank sends to the same receiver after that,
 * leaves after it.
 *
 *     a message:  settle -> latency of its way -> FIFO before the receiver -> the links' bandwidth, shared by SimGrid's
 *                 flow model with all that flows now -> FIFO -> overhead -> the machine of comm's port
 *
 * As over TCP, messages of several senders flow to a rank at once, those of one sender one after the other; then a rank
 * takes one at a time, first come, first served. Those that come at the same instant begin in an order that the seed
 * draws. A rank lets in FLOWS at once and no more, so that a thousand pushes need a thousand small solutions and not
 * one of a thousand flows each time; and latency lies before the FIFO and not in SimGrid's links, so that it overlaps
 * (measured: 52 us a message otherwise, 6 us with one flow).
 *
 * Nor do a thousand answers that a rank sends at once share its link: beyond the first CROWD they leave one behind the
 * other at the link's rate, as a card sends what is queued. Each end of a flow changes the rates of all that share a
 * link with it, which took 600 us a message.
 *
 * Lanes are alike. Whichever is free does what is to be done next (lanes.c): take a message that has arrived, let one
 * flow, watch for the next; all but the first are born when first needed.
 *
 * Nothing depends on the machine's time, on addresses or on threads: same seed, same bits.
 */
#ifndef PLI_COMM_SIM_H
#define PLI_COMM_SIM_H

#include <simgrid/actor.h>
#include <simgrid/engine.h>
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
    SIM_MAPPINGS = 2,          /* of an actor: its stack and the guard below it */
};

typedef struct sim_list {
    pli_msg *first, **last;
} sim_list;

/* The body of a rank, or a lane. */
typedef struct sim_actor {
    struct sim_rank *rank;
    bool             is_lane, idle /* or not yet born */;
    int32_t          from;   /* whose message flows here; -1: nobody's                 */
    double           owed;   /* seconds of work on a host of speed 1, not yet paid for */
    int64_t          clocks; /* ended, not yet counted                                 */
    sim_list         out;    /* sent, not yet paid for                                 */
    uint64_t         batch;  /* which of all actors' lists this is, in the order in which they were begun */
    bool             rings;  /* its rank's body is to look, when this one has paid       */
    sg_sem_t         bell;
    bool             asleep; /* in bell: who wakes it clears this first              */
    struct sim_actor *next;  /* of those to be woken                                  */
    bool              listed;
} sim_actor;

/* A message on its way. */
typedef struct sim_letter {
    pli_msg *msg;
    uint64_t due_ns, order, number; /* the FIFO's order: due, then drawn, then as sent */
} sim_letter;

typedef struct sim_rank {
    pli_transport *sim;
    int32_t        rank, host;
    sg_host_t      place;
    sim_actor      body, lane[SIM_LANES];
    sim_actor     *watcher;    /* rests until the next letter is due; NULL: none      */
    bool           takes;      /* a lane is at it                                     */
    bool           rung;       /* since the watcher asked when to wake up              */
    sim_list       due, arrived; /* to flow; to be taken                              */
    sim_letter    *letter; /* [letters] a heap: what is to come to this rank        */
    int64_t        letters, capacity;
    int64_t        on_the_way; /* of what this rank has sent                          */
    uint64_t       sent;       /* messages so far                                     */
    double         departed;   /* the first byte of the last of these                 */
    double         sent_by;    /* all of them, had they the link alone                */
    int64_t        clock;
    double         dies; /* INFINITY: not                                           */
    bool           dead, done;
} sim_rank;

struct pli_transport {
    pli_world   *world;
    pli_cluster  cluster;
    uint64_t     seed;
    plait_simulated *report; /* may be NULL */
    int32_t      size, living, standing; /* bodies that have not ended; of them frozen for good */
    plait_error  stood; /* code 0, or how it came that all did */
    int64_t      mappings_left; /* of memory; an actor's stack is MAPPINGS of them */
    int64_t      stacks_left;   /* for which there is address space */
    sim_rank    *rank; /* [size] */
    sim_actor    widths; /* changes links by the script; only where it does */
    sim_actor   *wake, **wake_last;
    uint64_t     number, batches; /* letters, and lists of what was sent, so far */
    bool         over, failed;
    pli_sha256   trace;
    int64_t      delivered; /* messages, of which the trace is */
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
/** Until it is woken, or until `until` (INFINITY: no end). */
void pli_sim_rest(sim_actor *me, double until);
/** Notes that the actor is to be woken, or born; pli_sim_wake_all does it, and may change actors. */
void pli_sim_wake(pli_transport *sim, sim_actor *actor);
void pli_sim_wake_all(pli_transport *sim);
/** Pays for what the actor owes. */
void pli_sim_pay(sim_actor *me);
/** A frozen rank does nothing until it thaws, save that it ends with the job. */
void pli_sim_thaw(sim_rank *r, sim_actor *me);
/** Ends the rank if its hour has come. */
void pli_sim_die(sim_rank *r);
/** A message from src has been taken. */
void pli_sim_taken(pli_transport *sim, sim_rank *src);

/* lanes.c: what comes to a rank */
void pli_sim_list_init(sim_list *list);
void pli_sim_list_add(sim_list *list, pli_msg *msg);
/** msg comes to the rank at due_ns; false: no memory. */
bool pli_sim_post(sim_rank *r, pli_msg *msg, uint64_t due_ns);
void pli_sim_run_lane(sim_actor *me);

#endif
