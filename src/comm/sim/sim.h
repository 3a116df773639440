/* sim: ranks are actors of SimGrid (Casanova et al., "Versatile, scalable, and accurate simulation of distributed
 * applications and platforms", JPDC 2014), in one process, in virtual time. plait-sim.so.
 *
 * A rank is two actors, as a process is two threads: its *body*, and its *port*, which takes what comes. Actors take
 * turns on one thread of the system and change only where one of them sleeps or waits in SimGrid, which here is never
 * while a port of comm is held: sending and ringing only note what is to be done; `settle` does it. Before a rank sends,
 * sleeps or reads the time it pays for what it has computed since: cost model, host's speed and script say how long.
 *
 *     a message:  settle -> latency of its way -> FIFO of the receiver's port -> the links' bandwidth, shared by
 *                 SimGrid's flow model with all that flows now -> overhead -> the machine of comm's port
 *
 * The port takes one message at a time, first come, first served; those that come at the same instant in an order that the
 * seed draws, though never one of a pair of ranks before its elder. Latency lies before the FIFO and not in SimGrid's
 * links, so that it overlaps; and flows end one by one, so that a thousand replies need a thousand small solutions and not
 * one of a thousand flows each time (measured: 52 us a message otherwise, 6 us so).
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

/* One of the two actors of a rank. */
typedef struct sim_actor {
    struct sim_rank *rank;
    bool             is_port;
    double           owed;   /* seconds of work on a host of speed 1, not yet paid for */
    int64_t          clocks; /* ended, not yet counted                                 */
    sg_sem_t         bell;
    bool             asleep; /* in bell: who wakes it clears this first              */
    struct sim_actor *next;  /* of those to be woken                                  */
    bool              listed;
} sim_actor;

/* A message on its way. */
typedef struct sim_letter {
    pli_msg *msg;
    uint64_t due_ns, order, number; /* the FIFO's order: due, then drawn, then as sent */
    double   sent;
} sim_letter;

typedef struct sim_rank {
    pli_transport *sim;
    int32_t        rank, host;
    sg_host_t      place;
    sim_actor      body, port;
    pli_msg       *out, **out_last; /* sent while a port was held                     */
    struct sim_rank *next_out;
    bool             out_listed;
    sim_letter    *letter; /* [letters] a heap: what is on its way to this rank     */
    int64_t        letters, capacity;
    int64_t        on_the_way; /* of what this rank has sent                          */
    uint64_t       sent;       /* messages so far                                     */
    int64_t        clock;
    double         dies; /* INFINITY: not                                           */
    bool           dead, done;
} sim_rank;

struct pli_transport {
    pli_world   *world;
    pli_cluster  cluster;
    uint64_t     seed;
    plait_simulated *report; /* may be NULL */
    int32_t      size, living;
    sim_rank    *rank; /* [size] */
    sim_actor    widths; /* changes links by the script; only where it does */
    sim_actor   *wake, **wake_last;
    sim_rank    *out, **out_last;
    uint64_t     number; /* letters so far */
    bool         over, failed;
    pli_sha256   trace;
};

/** The platform as SimGrid knows it. Errors: ENOMEM, EIO. */
plait_status pli_sim_platform(pli_transport *sim, plait_error *err);

/* actors.c */
plait_status pli_sim_run(pli_transport *sim, plait_error *err);
uint64_t     pli_sim_now(const pli_transport *sim);
void         pli_sim_send(pli_transport *sim, pli_msg *msg);
bool         pli_sim_settle(pli_transport *sim);
void         pli_sim_sleep(pli_transport *sim, plait_comm *comm, uint32_t bell, uint64_t until_ns);
void         pli_sim_ring(pli_transport *sim, int32_t rank);
void         pli_sim_work(pli_transport *sim, int32_t rank, pli_work_kind kind, uint64_t amount);
void         pli_sim_drain(pli_transport *sim, int32_t rank, bool in_good_order);

#endif
