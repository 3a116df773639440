/* mpi: one rank for each process. plait-mpi.so, for any MPI 3.1.
 *
 * One thread at a time drives MPI, the one that holds `lock` (MPI_THREAD_SERIALIZED): a thread that waits drives it
 * itself, one that has just sent does so for a moment, and the service thread does when no other does. As with a port,
 * no thread waits for the lock, and a thread that releases it looks at the queue once more (see struct pli_port).
 *
 * On the wire a message is its header, with a small body right behind it (TAG_HEAD); a larger body follows in messages
 * of its own (TAG_BODY), from slab to slab without a copy. MPI keeps the order of each pair and tag; a fifo for each
 * source keeps the order of messages whose bodies are still coming.
 *
 * Large allreduces are MPI's own, except between hosts that have TCP only: there it matters that links never wait,
 * which the ring of messages takes care of (comm/forms/ring.c). First the workers find out that all have come to the
 * same call; then the driving thread calls MPI_Allreduce, which cannot block for long, because every other process is
 * doing the same. (An exact sum is an MPI_Alltoallv, which brings each worker the terms of its slice, and an
 * MPI_Allgatherv of the slices' sums: as many bytes as a ring.) Until then no MPI collective is open, so a rank that
 * fails leaves none behind. The meeting, and small collectives as a whole, are steps that go straight through MPI
 * (direct.c), on a communicator of their own: they need no header, inbox or machine, since there is one such call at a
 * time and its caller is waiting for it. A sum that is begun and waited for later meets in the collective machine, and
 * is an MPI_Iallreduce of a copy (the wait may end early and the buffer be gone while MPI still uses the copy). These
 * sums reach MPI in the order in which they were begun, as MPI demands: one that meets early waits for those before it.
 *
 * If all workers are on one host, collectives that are waited for at once do not go through MPI at all, but through
 * memory that the workers share, the hall (hall.c): sums are in the order of ranks, and the last worker to come wakes
 * those that sleep.
 *
 * If the MPI tells of dead processes (ULFM), the job outlives them: failure.c. Only messages to or from a dead
 * process fail; the news is a membership event. After that MPI is not finalized any more. */
#ifndef PLI_COMM_MPI_H
#define PLI_COMM_MPI_H

#include <mpi.h>

#include "comm/world.h"

enum { TAG_HEAD = 1, TAG_BODY = 2, TAG_STEP = 3 };
enum { INLINE_BYTES = 3840, HEAD_BYTES = (int)sizeof(pli_head) + INLINE_BYTES, RING = 64 };
enum { CHUNK_BYTES = 1 << 30, TCP_BYTES = 60 << 10 }; /* Open MPI's limit is 64 KiB, including its header */
enum { DIRECT_BYTES = 16 << 10, DIRECT_HEAD = 24 }; /* the most bytes of a small collective, and of the stamp before
                                                     * its data */

/* Tells which call a step's message, or the contents of a seat, belongs to. */
typedef struct pli_mpi_stamp {
    uint64_t number; /* number among the worker's calls */
    int64_t  n;
    int32_t  root;
    uint8_t  kind, type, op, unequal; /* unequal: of the pieces */
} pli_mpi_stamp;

_Static_assert(sizeof(pli_mpi_stamp) == DIRECT_HEAD, "the data stand right behind it");

/* A message on its way, as long as MPI has a part of it. */
typedef struct flight {
    struct flight *next; /* next in its source's fifo */
    pli_msg       *msg;
    int32_t        parts; /* parts that MPI still has */
    int32_t        peer;
    bool           incoming;
    unsigned char  staged[]; /* outgoing: header and small body */
} flight;

/* The state of a call that MPI sums. */
typedef struct native {
    struct native *next; /* the next in the order of beginning */
    pli_call      *call; /* NULL: given up, no thread waits any more */
    _Atomic bool   done; /* release by the driver, acquire by the waiting thread */
    bool           broken; /* a death has broken it: it will not end */
    MPI_Request    request; /* MPI_REQUEST_NULL: not started          */
    void          *copy;    /* what MPI sums, for a call that was begun */
} native;

typedef struct recent_call {
    uint64_t number; /* number among the rank's collectives */
    pli_coll coll;
} recent_call;

/* A call that is waited for at once. All fields but over are read and written under lock, or by the caller before. */
typedef struct direct {
    pli_call     *call; /* NULL: none is under way */
    pli_coll      coll; /* the collective whose steps are taken: the call, or the meeting before it */
    recent_call   recent[PLI_COLL_RECENT]; /* for errors about a mismatch */
    int64_t       step;
    pli_coll_move move; /* this step, if it is posted */
    bool          posted;
    bool          broken; /* a death has broken it: it will not end, and the waiting thread learns of the death */
    _Atomic bool  over;  /* release by the driver, acquire by the waiting thread */
    void         *terms; /* for an exact sum: pli_mpi_terms; else NULL */
    plait_error   error; /* of the first call that failed: all later ones fail, too */
    uint64_t      sent;
    uint64_t      done;  /* number of the last call that has ended well */
    MPI_Request   receive, send[2]; /* if not null, MPI has them and the memory below; sends take turns */
    unsigned char in[DIRECT_HEAD + DIRECT_BYTES], out[2][DIRECT_HEAD + DIRECT_BYTES];
} direct;

/* This worker's part of the memory that a host's workers share; used by its thread. */
typedef struct pli_hall {
    struct pli_mpi_porch *porch; /* shared, as are ... */
    struct pli_mpi_seat  *seat;  /* ... [workers] each worker's part; NULL: there is no hall */
    const void **term;   /* [workers] */
    pli_call    *call;   /* NULL: none is under way */
    int          sort;   /* 0: it waits for a first meeting, 1: for a second */
    uint64_t     meetings[2], came[2]; /* how many of each it has come to; what its seat said at the last of each */
    plait_error  error;  /* of the first call that failed: all later ones fail, too */
} pli_hall;

struct pli_transport {
    pli_world *world;
    int32_t    rank, size, workers;
    MPI_Comm   comm, workers_comm, direct_comm; /* all ranks; the workers, twice (MPI_COMM_NULL on a server) */
    bool       by_tcp; /* between hosts MPI uses TCP: large sums go by messages */
    bool       tells;  /* MPI tells of dead processes */
    bool       started;
    pthread_t  service;

    _Alignas(64) _Atomic(pli_msg *) out; /* newest first; any thread pushes, the driver takes all */
    _Alignas(64) _Atomic uint32_t lock;  /* 1: a thread drives */
    _Atomic uint32_t lent;               /* counts turns of driving by other threads than the service thread */
    _Atomic uint32_t stop;               /* the service thread sleeps on it */

    /* The driver's fields. */
    MPI_Request *request; /* [n] what MPI has, and [n] the message that each is a part of */
    flight     **owner;
    int         *done;
    MPI_Status  *status;
    int64_t      n, capacity, owners, dones, statuses;
    bool        *dead;     /* [size] nothing new is begun with these ranks */
    bool         has_news; /* the death of one of them was not told yet */
    struct fifo { flight *first, **last; } *fifo; /* [size] incoming, by source */
    native       *reducing; /* sums in the order of beginning; read and written under lock */
    _Atomic bool  gave_up;  /* one of them was given up: no other can start */
    direct        direct;
    pli_hall      hall;
    uint64_t     *left_after; /* [size] direct.done of a rank that has left; written before the news is told */
    MPI_Request   ring[RING]; /* receives of headers, completed in this order */
    int32_t       at;
    _Atomic bool  failed; /* written by the driver, read by threads that want to drive */
    unsigned char buffer[RING][HEAD_BYTES];
};

/* Gives an MPI that is about to start the settings that its own launcher would have given it (settle.c). */
void         pli_mpi_settle(void);
/* If the MPI was started without a launcher: removes the names of its files in memory, which nobody else would. */
void         pli_mpi_leave_nothing(void);
plait_status pli_mpi_begin_receiving(pli_transport *t, plait_error *err);
void         pli_mpi_end_receiving(pli_transport *t);
void         pli_mpi_send(pli_transport *t, pli_msg *msg);
bool         pli_mpi_progress(pli_transport *t);
bool         pli_mpi_is_idle(pli_transport *t); /* none of our messages is on its way out */
void        *pli_mpi_service(void *transport);

pli_mpi_stamp pli_mpi_stamp_of(const pli_call *call);
pli_coll      pli_mpi_stamped(const pli_mpi_stamp *stamp);

void         pli_mpi_open_hall(pli_transport *t, const int32_t *host_of); /* collective over the workers */
void         pli_mpi_close_hall(pli_transport *t);
bool         pli_mpi_goes_by_hall(const pli_transport *t, const pli_coll *coll);
plait_status pli_mpi_call_in_hall(pli_transport *t, pli_call *call, plait_error *err);
bool         pli_mpi_nap(pli_transport *t, uint64_t ns);

bool         pli_mpi_goes_directly(const pli_transport *t, const pli_coll *coll);
plait_status pli_mpi_begin_directly(pli_transport *t, pli_call *call, plait_error *err);
plait_status pli_mpi_wait_directly(pli_transport *t, pli_call *call, plait_error *err);
bool         pli_mpi_step(pli_transport *t);      /* called by the driver, like the next */
bool         pli_mpi_end_steps(pli_transport *t); /* no call waits any more; false: MPI keeps t's memory */
bool         pli_mpi_can_sum(const pli_transport *t, const pli_coll *coll);
int          pli_mpi_sum(pli_transport *t, const pli_coll *coll); /* MPI_Allreduce */
void *pli_mpi_terms(const pli_transport *t, const pli_coll *coll); /* memory for the next call, by pli_malloc; NULL:
                                                                    * no memory */
int          pli_mpi_sum_exactly(pli_transport *t, const pli_coll *coll, void *terms);

bool         pli_mpi_is_death(pli_transport *t, int code); /* called by the driver, like the next */
bool         pli_mpi_tell_deaths(pli_transport *t);
bool         pli_mpi_can_tell(void); /* can the MPI tell of deaths? */

bool         pli_mpi_reduce(pli_transport *t); /* called by the driver; true: something has happened */
bool         pli_mpi_is_reducing(pli_transport *t); /* MPI still has a sum, waited for or given up */
bool         pli_mpi_end_reducing(pli_transport *t); /* frees given-up sums that have ended; true: there is no other */
bool         pli_mpi_send_all(pli_transport *t);
void         pli_mpi_fail(pli_transport *t, plait_status code, int mpi_code, const char *what);
bool         pli_mpi_try_lock(pli_transport *t);
void         pli_mpi_lock(pli_transport *t);
void         pli_mpi_unlock(pli_transport *t);

bool         pli_mpi_takes(const pli_transport *t, const pli_coll *coll);
plait_status pli_mpi_begin(pli_transport *t, pli_call *call, plait_error *err);
plait_status pli_mpi_wait(pli_transport *t, pli_call *call, plait_error *err);
void         pli_mpi_drop(pli_transport *t, pli_call *call);

#endif
