/* mpi: one rank a process. plait-mpi.so, for any MPI 3.1.
 *
 * MPI is driven by one thread at a time, whoever holds `lock` (MPI_THREAD_SERIALIZED): a thread that waits drives it
 * itself, one that has just sent does so for a moment, and the service thread does when nobody else does. Like a port,
 * the lock is never waited for, and who lets it go looks at the queue once more (see struct pli_port).
 *
 * On the wire a message is its header, with the body behind it where that is small (TAG_HEAD); a larger body follows in
 * messages of its own (TAG_BODY), from and into the slab, without a copy. MPI keeps the order of each pair and tag, and a
 * fifo for each source the order of messages whose bodies are still coming.
 *
 * Large allreduces are MPI's own. The collective machine first finds out that all workers have come to the same call;
 * then whoever drives calls MPI_Allreduce, which cannot block for long: every other process is doing the same. Until
 * then no MPI collective is open, so that a rank which fails leaves none behind. A sum that was begun, to be waited for
 * later, is an MPI_Iallreduce of a copy (a wait may end without it, and the buffer be gone, while MPI still has it).
 * Calls reach MPI in the order in which they were begun, as it demands: who meets early waits for those before.
 */
#ifndef PLI_COMM_MPI_H
#define PLI_COMM_MPI_H

#include <mpi.h>

#include "comm/world.h"

enum { TAG_HEAD = 1, TAG_BODY = 2 };
enum { INLINE_BYTES = 3840, HEAD_BYTES = (int)sizeof(pli_head) + INLINE_BYTES, RING = 64 };
enum { CHUNK_BYTES = 1 << 30 };

/* A message on its way: as long as MPI has a part of it. */
typedef struct flight {
    struct flight *next; /* of its source's fifo */
    pli_msg       *msg;
    int32_t        parts; /* still with MPI */
    bool           incoming;
    unsigned char  staged[]; /* outgoing: header and small body */
} flight;

/* A call's flight: MPI's part of it. */
typedef struct native {
    struct native *next; /* begun later */
    pli_call      *call; /* NULL: given up, nobody waits any more */
    _Atomic bool   done; /* release by the driver, acquire by who waits */
    MPI_Request    request; /* MPI_REQUEST_NULL: not started          */
    void          *copy;    /* what MPI sums, of a call that was begun */
} native;

struct pli_transport {
    pli_world *world;
    int32_t    rank, size, workers;
    MPI_Comm   comm, workers_comm; /* all; the workers (MPI_COMM_NULL on a server) */
    bool       started;
    pthread_t  service;

    _Alignas(64) _Atomic(pli_msg *) out; /* newest first; any thread pushes, the driver takes all */
    _Alignas(64) _Atomic uint32_t lock;  /* 1: somebody drives                                   */
    _Atomic uint32_t lent;               /* counts turns of driving by others than the service     */
    _Atomic uint32_t stop;               /* the service thread sleeps on it                       */

    /* The driver's. */
    MPI_Request *request; /* [n] what MPI has, and [n] whose part it is */
    flight     **owner;
    int         *done;
    int64_t      n, capacity, owners, dones;
    struct fifo { flight *first, **last; } *fifo; /* [size] incoming, by source */
    native       *reducing; /* in the order of beginning; read and written under lock */
    _Atomic bool  gave_up;  /* one of them was given up: no other can start        */
    MPI_Request   ring[RING]; /* receives of headers, completed in this order */
    int32_t       at;
    _Atomic bool  failed; /* written by the driver, read by who would drive */
    unsigned char buffer[RING][HEAD_BYTES];
};

plait_status pli_mpi_begin_receiving(pli_transport *t, plait_error *err);
void         pli_mpi_end_receiving(pli_transport *t);
void         pli_mpi_send(pli_transport *t, pli_msg *msg);
bool         pli_mpi_progress(pli_transport *t);
bool         pli_mpi_is_idle(pli_transport *t); /* nothing of ours is on its way out */
void        *pli_mpi_service(void *transport);

bool         pli_mpi_reduce(pli_transport *t); /* by the driver: true: something has happened */
bool         pli_mpi_send_all(pli_transport *t);
void         pli_mpi_fail(pli_transport *t, plait_status code, int mpi_code, const char *what);
bool         pli_mpi_try_lock(pli_transport *t);
void         pli_mpi_unlock(pli_transport *t);

bool         pli_mpi_takes(const pli_transport *t, const pli_coll *coll);
plait_status pli_mpi_begin(pli_transport *t, pli_call *call, plait_error *err);
plait_status pli_mpi_wait(pli_transport *t, pli_call *call, plait_error *err);
void         pli_mpi_drop(pli_transport *t, pli_call *call);

#endif
