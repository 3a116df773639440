/* comm/heartbeat.h - signs of life between processes, and who has given none for too long.
 *
 * A process that was killed is noticed by the system that ran it. One that is stopped, swapped out for good, or behind
 * a link that was cut, is not: its connections stay open, and nothing comes. So each process sends a beat every second
 * to those that watch it, and whoever has been heard of by nothing at all, beat or other message, for some seconds
 * counts as lost. Up to PLI_HEARTBEAT_ALL processes everybody watches everybody; beyond that ranks form a ring in which
 * each watches the PLI_HEARTBEAT_WATCHED living ones before it, so that beats per process do not grow with the job, and
 * what one sees is told to all (the driver does).
 *
 * No false alarms: time counts only while this process listened. `listened_ns` is a clock that goes on with each turn,
 * by at most half a period, however long the turn was in coming: a process that was stopped itself, or was kept from
 * its core, or from its network by a long call, has not listened in that time, and first takes in what came meanwhile.
 * So a rank is named only when this process looked, again and again through all of the patience, and there was nothing.
 * What a rank computes does not matter where a thread of its own beats (in mpi, the service thread).
 *
 * Pure: no clock, no thread, no message; comm/member.c drives it, and heartbeat_test.c by simulated networks.
 *
 * Papers: Chandra, Toueg, "Unreliable failure detectors for reliable distributed systems", JACM 1996 (what such a
 * detector can promise: who has stopped is named in the end; who has not, may be named where messages take longer than
 * the patience); Bosilca et al., "Failure detection and propagation in HPC systems", SC 2016 (a ring of observers and a
 * broadcast). */
#ifndef PLI_COMM_HEARTBEAT_H
#define PLI_COMM_HEARTBEAT_H

#include <stdbool.h>
#include <stdint.h>

enum { PLI_HEARTBEAT_ALL = 64, PLI_HEARTBEAT_WATCHED = 4 };

typedef struct pli_heartbeat {
    int32_t   size, me;
    uint64_t  period_ns, patience_ns;
    uint64_t  last_ns, next_beat_ns; /* the last turn; when the next beat is due                     */
    uint64_t  listened_ns;           /* a clock that stands still while nobody calls                 */
    uint64_t *heard_ns;              /* [size] by that clock; of who is not watched it is of no use */
    bool     *watched, *gone;        /* [size]                                                       */
} pli_heartbeat;

/* A turn's outcome; the arrays have room for all ranks. */
typedef struct pli_heartbeat_out {
    int32_t *beat, beats;     /* to be told that this process lives        */
    int32_t *silent, silents; /* were not heard for the patience: once each */
} pli_heartbeat_out;

/** patience_ns is at least three periods. false: no memory. */
bool pli_heartbeat_init(pli_heartbeat *h, int32_t size, int32_t me, uint64_t period_ns, uint64_t patience_ns,
                        uint64_t now_ns);
void pli_heartbeat_destroy(pli_heartbeat *h);
/** Something of rank has come since the last turn. */
void pli_heartbeat_hear(pli_heartbeat *h, int32_t rank);
/** Rank has ended: it is neither watched nor told any more. */
void pli_heartbeat_forget(pli_heartbeat *h, int32_t rank);
/** To be called a few times a period, after what came was heard. Returns when the next turn is due. */
uint64_t pli_heartbeat_turn(pli_heartbeat *h, uint64_t now_ns, pli_heartbeat_out *out);

#endif
