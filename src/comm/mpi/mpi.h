/* mpi: one rank a process. plait-mpi.so, for any MPI 3.1.
 *
 * MPI is driven by one thread at a time, whoever holds `lock` (MPI_THREAD_SERIALIZED): a thread that waits drives it
 * itself, one that has just sent does so for a moment, and the service thread does when nobody else does. Like a port,
 * the lock is never waited for, and who lets it go looks at the queue once more (see struct pli_port).
 *
 * On the wire a message is its header, with the body behind it where that is small (TAG_HEAD); a larger body follows in
 * messages of its own (TAG_BODY), from and into the slab, without a copy. MPI keeps the order of each pair and tag, and
 * a fifo for each source the order of messages whose bodies are still coming.
 *
 * Large allreduces are MPI's own, save between hosts that have TCP only: there what counts is that links never wait,
 * and the ring of messages sees to that (comm/forms/ring.c). First the workers find out that all have come to the same
 * call; then whoever drives calls MPI_Allreduce, which cannot block for long: every other process is doing the same.
 * (An exact sum is an MPI_Alltoallv, which brings each the terms of its slice, and an MPI_Allgatherv of the slices'
 * sums: as many bytes as a ring.) Until then no MPI collective is open, so that a rank which fails leaves none behind.
 * The meeting, and whole collectives where they are small, are steps that go straight through MPI (direct.c), on a
 * communicator of their own: no header, inbox or machine, since there is one such call at a time and its caller is
 * waiting for it. A sum that was begun, to be waited for later, meets in the collective machine and is an
 * MPI_Iallreduce of a copy (a wait may end without it, and the buffer be gone, while MPI still has it). Those reach MPI
 * in the order in which they were begun, as it demands: who meets early waits for those before.
 *
 * Where all workers are on one host, what is waited for where it begins does not go through MPI at all, but through
 * memory that they share, the hall (hall.c): sums are in the order of ranks, and who sleeps is woken by who comes last.
 *
 * Where the MPI tells of dead processes (ULFM), the job outlives them: failure.c. What is under way with one of them
 * fails alone; the news is a membership event. After that MPI is not finalized any more. */
#ifndef PLI_COMM_MPI_H
#define PLI_COMM_MPI_H

#include <mpi.h>

#include "comm/world.h"

enum { TAG_HEAD = 1, TAG_BODY = 2, TAG_STEP = 3 };
enum { INLINE_BYTES = 3840, HEAD_BYTES = (int)sizeof(pli_head) + INLINE_BYTES, RING = 64 };
enum { CHUNK_BYTES = 1 << 30, TCP_BYTES = 60 << 10 }; /* Open MPI's limit is 64 KiB, with its header */
enum { DIRECT_BYTES = 16 << 10, DIRECT_HEAD = 24 }; /* a small collective, and what stands before its data */

/* Says of which call a step's message, or what lies in a seat, is. */
typedef struct pli_mpi_stamp {
    uint64_t number; /* of the worker's calls */
    int64_t  n;
    int32_t  root;
    uint8_t  kind, type, op, unequal; /* pieces */
} pli_mpi_stamp;

_Static_assert(sizeof(pli_mpi_stamp) == DIRECT_HEAD, "the data stand right behind it");

/* A message on its way: as long as MPI has a part of it. */
typedef struct flight {
    struct flight *next; /* of its source's fifo */
    pli_msg       *msg;
    int32_t        parts; /* still with MPI */
    int32_t        peer;
    bool           incoming;
    unsigned char  staged[]; /* outgoing: header and small body */
} flight;

/* A call's flight: MPI's part of it. */
typedef struct native {
    struct native *next; /* begun later */
    pli_call      *call; /* NULL: given up, nobody waits any more */
    _Atomic bool   done; /* release by the driver, acquire by who waits */
    bool           broken; /* by a death: it ends no more              */
    MPI_Request    request; /* MPI_REQUEST_NULL: not started          */
    void          *copy;    /* what MPI sums, of a call that was begun */
} native;

typedef struct recent_call {
    uint64_t number; /* of the rank's collectives */
    pli_coll coll;
} recent_call;

/* The call that is waited for where it begins. All but over is read and written under lock, or by the caller before. */
typedef struct direct {
    pli_call     *call; /* NULL: none is under way */
    pli_coll      coll; /* whose steps are taken: the call, or the meeting before it */
    recent_call   recent[PLI_COLL_RECENT]; /* for telling of mismatches */
    int64_t       step;
    pli_coll_move move; /* of this step, if it is posted */
    bool          posted;
    bool          broken; /* by a death: it ends no more, and who waits is told by the news of that */
    _Atomic bool  over;  /* release by the driver, acquire by who waits */
    void         *terms; /* of an exact sum: pli_mpi_terms; else NULL */
    plait_error   error; /* of the first call that failed: so do all later ones */
    uint64_t      sent;
    uint64_t      done;  /* number of the last call that has ended well */
    MPI_Request   receive, send[2]; /* MPI's as long as they are not null, with the memory below; sends in turns */
    unsigned char in[DIRECT_HEAD + DIRECT_BYTES], out[2][DIRECT_HEAD + DIRECT_BYTES];
} direct;

/* This worker's side of the memory that a host's workers share; its thread's. */
typedef struct pli_hall {
    struct pli_mpi_porch *porch; /* shared, as are ... */
    struct pli_mpi_seat  *seat;  /* ... [workers] what each lays out; NULL: there is no hall */
    const void **term;   /* [workers] */
    pli_call    *call;   /* NULL: none is under way */
    int          sort;   /* of the meeting that is waited for */
    uint64_t     meetings[2], came[2]; /* that it has come to, of each sort; as its seat says of the last */
    plait_error  error;  /* of the first call that failed: so do all later ones */
} pli_hall;

struct pli_transport {
    pli_world *world;
    int32_t    rank, size, workers;
    MPI_Comm   comm, workers_comm, direct_comm; /* all; the workers, twice (MPI_COMM_NULL on a server) */
    bool       by_tcp; /* between hosts: large sums go by messages */
    bool       tells;  /* MPI tells of dead processes */
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
    MPI_Status  *status;
    int64_t      n, capacity, owners, dones, statuses;
    bool        *dead;     /* [size] with them nothing is begun any more */
    bool         has_news; /* one of them was not told of yet            */
    struct fifo { flight *first, **last; } *fifo; /* [size] incoming, by source */
    native       *reducing; /* in the order of beginning; read and written under lock */
    _Atomic bool  gave_up;  /* one of them was given up: no other can start        */
    direct        direct;
    pli_hall      hall;
    uint64_t     *left_after; /* [size] direct.done of a rank that has left; written before the news of that is told */
    MPI_Request   ring[RING]; /* receives of headers, completed in this order */
    int32_t       at;
    _Atomic bool  failed; /* written by the driver, read by who would drive */
    unsigned char buffer[RING][HEAD_BYTES];
};

/* Tells an MPI that is about to start what its own launcher would have told it (settle.c). */
void         pli_mpi_settle(void);
/* Of an MPI that has started one process alone: takes the names of the files in memory away that nobody else would. */
void         pli_mpi_leave_nothing(void);
plait_status pli_mpi_begin_receiving(pli_transport *t, plait_error *err);
void         pli_mpi_end_receiving(pli_transport *t);
void         pli_mpi_send(pli_transport *t, pli_msg *msg);
bool         pli_mpi_progress(pli_transport *t);
bool         pli_mpi_is_idle(pli_transport *t); /* nothing of ours is on its way out */
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
bool         pli_mpi_step(pli_transport *t);      /* by the driver, as is the next */
bool         pli_mpi_end_steps(pli_transport *t); /* nothing is waited for; false: MPI keeps t's memory */
bool         pli_mpi_can_sum(const pli_transport *t, const pli_coll *coll);
int          pli_mpi_sum(pli_transport *t, const pli_coll *coll); /* MPI_Allreduce */
void *pli_mpi_terms(const pli_transport *t, const pli_coll *coll); /* for the next, of pli_malloc; NULL: no memory */
int          pli_mpi_sum_exactly(pli_transport *t, const pli_coll *coll, void *terms);

bool         pli_mpi_is_death(pli_transport *t, int code); /* by the driver, as is the next */
bool         pli_mpi_tell_deaths(pli_transport *t);
bool         pli_mpi_can_tell(void); /* of deaths */

bool         pli_mpi_reduce(pli_transport *t); /* by the driver: true: something has happened */
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
