/* tests/direct/direct.h - the direct driver: many ranks' bare state machines in one thread, a bag of messages in
 * flight, virtual time, and a seed that picks the next event. What a real network and scheduler may do in years, a test
 * does in seconds, and a failure is replayed by its seed.
 *
 *     direct *d = direct_new(seed, ranks, &(direct_opts){ .reorder = 0.3, .drop = 0.1, .twice = 0.1 });
 *     direct_add(d, rank, PLI_PORT_SERVER, &server_ops, server);
 *     pli_out *out = direct_enter(d, rank, PLI_PORT_CLIENT, &now);     the worker's own call into its machine
 *     client_push(client, now, ..., out);
 *     direct_leave(d, rank, PLI_PORT_CLIENT);
 *     assert_true(direct_run(d, 100000));                              until nothing is left to happen
 *     direct_free(&d);
 *
 * Like a real driver it stamps source, epoch and incarnation, keeps what comes for a machine that is not there yet, and
 * calls a machine for one event at a time. It keeps a body's hash while it travels: who writes a slab that was sent is
 * caught (the program aborts with the message's head). Link with plait_direct (every plait_test is).
 */
#ifndef DIRECT_H
#define DIRECT_H

#include "comm/comm.h"

typedef struct direct direct;

/* Zeros: a reliable, ordered network; only the order of events between different pairs of ranks is picked by seed.
 * Messages of a rank to itself are never lost, doubled or overtaken. Probabilities are per message. */
typedef struct direct_opts {
    double   reorder;    /* it may overtake earlier ones of its pair (threads and mpi never do)  */
    double   drop;       /* it is lost                                                           */
    double   twice;      /* it comes twice                                                       */
    double   delay;      /* it stays away for up to delay_ns                                     */
    uint64_t delay_ns;   /* 0: 1 ms                                                              */
    uint64_t event_ns;   /* virtual time an event takes, at most; 0: 1 us                        */
    double   early_wake; /* a wake-up is called before its time (per event)                      */
    bool     trace;      /* print every event to stderr                                          */
} direct_opts;

direct *direct_new(uint64_t seed, int32_t ranks, const direct_opts *opts); /* opts may be NULL; NULL: out of memory */
void    direct_free(direct **d);                                           /* what is in flight is dropped          */

/** Puts a machine (state borrowed) at (rank, port), or takes it away: later messages for it are dropped. */
void direct_add(direct *d, int32_t rank, uint32_t port, const pli_machine_ops *ops, void *state);
void direct_remove(direct *d, int32_t rank, uint32_t port);

/** The worker's own call: work on the state between the two, answering into the out that enter returns. */
pli_out *direct_enter(direct *d, int32_t rank, uint32_t port, uint64_t *now_ns);
void     direct_leave(direct *d, int32_t rank, uint32_t port);

/** One event: a delivery or a wake-up. false: nothing is left to happen. */
bool direct_step(direct *d);
/** Steps until nothing is left. false: still busy after max_events. */
bool direct_run(direct *d, int64_t max_events);
/** Steps until ready. false: nothing is left, or max_events have passed, and still not. */
bool direct_run_until(direct *d, pli_ready_fn *ready, void *arg, int64_t max_events);

/** A rank comes, leaves or dies: the machines of all others are told, each at some later event. A dead rank's machines
 *  are taken away at once; what it had sent still arrives. */
void direct_member(direct *d, pli_member_kind kind, int32_t rank, const plait_error *why);
/** All others take the rank for dead, but it lives on and knows nothing of it: it was cut off, or frozen, for a
 *  while. */
void direct_suspect(direct *d, int32_t rank, const plait_error *why);
/** The rank lives anew: its next messages carry the next incarnation. Add its machines again. */
void direct_restart(direct *d, int32_t rank);
/** The dead rank lives anew, and the machines of all others are told. Add its machines again, and then tell each of
 *  them what the others were told before. */
void direct_return(direct *d, int32_t rank);
void direct_retell(direct *d, int32_t rank, uint32_t port);

uint64_t           direct_now(const direct *d);
int64_t            direct_in_flight(const direct *d);
int64_t            direct_events(const direct *d); /* so far */
uint64_t           direct_hash(const direct *d);   /* of all events so far: equal for equal seeds */
uint64_t           direct_bytes(const direct *d, int32_t rank);
bool               direct_rung(direct *d, int32_t rank);        /* since last asked */
const plait_error *direct_error(const direct *d, int32_t rank); /* code 0: no machine of it has failed */

/** A number in [0, below) from the schedule's own stream, for what a test's workers choose. */
uint64_t direct_pick(direct *d, uint64_t below);

#endif
