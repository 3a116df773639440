/* threads: ranks are threads of one process. Messages need no transport: the sender puts them into the receiver's
 * inbox. Only collectives remain to be done, in shared memory (collective.c). */
#ifndef PLI_COMM_THREADS_H
#define PLI_COMM_THREADS_H

#include "comm/world.h"

enum { PLI_SLOT_BYTES = 2048 }; /* up to this size data travels in the slot */

/* What a worker shows to the others for one call; there are two slots, for even and odd calls. */
typedef struct pli_slot {
    _Alignas(64) pli_coll call; /* written by the worker before it arrives; all read it once the call is complete */
    _Alignas(64) unsigned char data[PLI_SLOT_BYTES]; /* likewise */
} pli_slot;

typedef struct pli_seat {
    _Alignas(64) uint64_t started; /* number of calls; the worker's own */
    uint64_t         large;        /* how many of them had a second meeting; the worker's own */
    const void     **term;         /* [workers] for exact sums; NULL before the first one; the worker's own */
    _Atomic uint64_t arrived;      /* number of the last call that it has come to; release        */
    _Atomic uint64_t work;         /* 4 * call + what it does there: see collective.c              */
    pli_slot         slot[2];
} pli_seat;

struct pli_transport {
    int32_t  workers;
    _Alignas(64) _Atomic uint64_t in;  /* arrivals of all workers at all calls; bit 63: broken */
    _Atomic int32_t resting; /* workers that a ring must wake: see pli_comm_watch */
    _Alignas(64) _Atomic uint64_t out; /* arrivals at second meetings, likewise */
    pli_seat *seat; /* [workers] */
    pli_world *world;
    pthread_mutex_t finding_lock; /* guards finding: what the doctor told the first worker that gave up; code 0:
                                   * nothing */
    plait_error     finding;
};

bool         pli_threads_takes(const pli_transport *t, const pli_coll *coll);
plait_status pli_threads_begin(pli_transport *t, pli_call *call, plait_error *err);
plait_status pli_threads_wait(pli_transport *t, pli_call *call, plait_error *err);

#endif
