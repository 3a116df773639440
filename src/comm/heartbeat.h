/* comm/heartbeat.h - signs of life between processes, and which process has given none for too long.
 *
 * A process that was killed is noticed by the system that ran it. A process that is stopped, swapped out for good, or
 * behind a link that was cut, is not: its connections stay open, and nothing comes. So each process sends a beat every
 * second to those that watch it; a process from which nothing at all has come for some seconds, neither beat nor other
 * message, counts as lost. Up to PLI_HEARTBEAT_ALL processes each watches all others. Beyond that the ranks form a ring
 * in which each watches the PLI_HEARTBEAT_WATCHED living ranks before it, so that the number of beats of a process does
 * not grow with the job; the driver tells all others what one has seen.
 *
 * No false alarms: time counts only while this process listened. `listened_ns` is a clock that goes on with each turn,
 * by at most half a period, however late the turn comes. A process that was itself stopped, or was kept from its core
 * or its network by a long call, has not listened in that time, and first takes in what came meanwhile. So a rank is
 * named only when this process has looked many times through all of the patience and found nothing. If a thread of its
 * own sends the beats (in mpi, the service thread), it does not matter what a rank computes.
 *
 * Pure: no clock, no thread, no message; comm/member.c drives it, and heartbeat_test.c drives it by simulated networks.
 *
 * Papers: Chandra, Toueg, "Unreliable failure detectors for reliable distributed systems", JACM 1996 (what such a
 * detector can promise: a process that has stopped is named in the end; one that lives may be named if messages take
 * longer than the patience); Bosilca et al., "Failure detection and propagation in HPC systems", SC 2016 (a ring of
 * observers and a broadcast). */
#ifndef PLI_COMM_HEARTBEAT_H
#define PLI_COMM_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

enum { PLI_HEARTBEAT_ALL = 64, PLI_HEARTBEAT_WATCHED = 4 };

typedef struct pli_heartbeat {
    int32_t   size, me;
    uint64_t  period_ns, patience_ns;
    uint64_t  last_ns, next_beat_ns; /* the time of the last turn; when the next beat is due */
    uint64_t  listened_ns;           /* a clock that stands still while turn is not called */
    uint64_t *heard_ns;              /* [size] by that clock; unused for a rank that is not watched */
    bool     *watched, *gone;        /* [size]                                                       */
    bool     *missing;               /* [size] named, and not heard since */
} pli_heartbeat;

/* A turn's result; the arrays have room for all ranks. */
typedef struct pli_heartbeat_out {
    int32_t *beat, beats;     /* ranks to be told that this process lives; those that are missing may hear it */
    int32_t *silent, silents; /* ranks not heard for the patience; each is named once each time it falls silent */
} pli_heartbeat_out;

/** patience_ns is at least three periods. false: no memory. */
bool pli_heartbeat_init(pli_heartbeat *h, int32_t size, int32_t me, uint64_t period_ns, uint64_t patience_ns,
                        uint64_t now_ns);
void pli_heartbeat_destroy(pli_heartbeat *h);
/** Something has come from rank since the last turn. */
void pli_heartbeat_hear(pli_heartbeat *h, int32_t rank);
/** The rank has ended: it is neither watched nor told any more. */
void pli_heartbeat_forget(pli_heartbeat *h, int32_t rank);
/** Call it a few times a period, after hearing all that came. Returns when the next turn is due. */
uint64_t pli_heartbeat_turn(pli_heartbeat *h, uint64_t now_ns, pli_heartbeat_out *out);

#endif
