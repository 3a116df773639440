/* comm/collective.h - collectives: a call, its steps, and a machine that takes the steps.
 *
 * A *call* says what all workers do together. Its *steps* say for one worker which part of the buffer it sends to whom,
 * and which part it receives from whom; they are a pure function of call, worker and number of workers. The machine on
 * PLI_PORT_COLLECTIVE takes the steps with messages. The same function tells how many bytes the call moves, so that a
 * transport with a collective of its own (shared memory, MPI) is charged the same.
 *
 *   barrier    dissemination: ceil(log2 W) rounds       Hensgen, Finkel, Manber 1988
 *   broadcast  binomial tree
 *   allreduce  by one of several *forms*, chosen once, when the call begins: comm/forms/forms.h
 *   scatter    reduce-scatter: an allreduce of which each worker gets a slice; by the forms that have one
 *   allgather  ceil(log2 W) rounds                      Bruck, Ho, Kipnis, Upfal, Weathersby 1997
 *   pieces     an allgather of pieces whose lengths only their owners know: each is a message of its own
 *   exchange   each worker has a piece for each other, of a length that only it knows: each is a message of its own.
 *              Along a graph only for its neighbours
 *
 * Several calls may be under way at a worker. They are numbered in the order in which they were begun, which is the
 * same on all workers, and each goes on as its own messages come.
 *
 * Any number of workers is possible. The order of a sum depends on (form, workers, hosts, n, type) only, and every
 * worker gets the same bits. */
#ifndef PLI_COMM_COLLECTIVE_H
#define PLI_COMM_COLLECTIVE_H

#include <stdatomic.h>

#include <plait/comm.h>
#include <plait/group.h>

#include "comm/hosts.h"
#include "comm/links.h"
#include "comm/machine.h"
#include "comm/reduce.h"

typedef enum pli_coll_kind {
    PLI_COLL_BARRIER = 1,
    PLI_ALLREDUCE = 2,
    PLI_BROADCAST = 3,
    PLI_ALLGATHER = 4,
    PLI_PIECES = 5,
    PLI_REDUCE_SCATTER = 6,
    PLI_EXCHANGE = 7
} pli_coll_kind;

typedef struct pli_coll_form pli_coll_form; /* comm/forms/forms.h */

typedef struct pli_coll {
    pli_coll_kind kind;
    plait_type    type;   /* reductions; else U8 */
    plait_reduce  op;     /* reductions only */
    const pli_coll_form *form; /* reductions by messages: pli_coll_choose sets it; else NULL */
    plait_group         *group; /* whose members call it; NULL: all workers */
    const pli_hosts     *hosts; /* for forms that need it; NULL: all workers are on one host */
    int32_t       root;   /* broadcast; reductions and pieces: PLI_COLL_OF_TABLES, or 0; else 0  */
    int64_t       n;      /* elements; allgather: of one worker, or of all if starts is given; pieces, exchange: 0 */
    void         *buf;    /* reductions, broadcast: [n]; allgather: all pieces, own one in place  */
    pli_msg     **piece;  /* pieces: [workers], the own one given, the others' received; exchange: [2 workers], those
                           * received and, behind them, those given to each; else NULL                 */
    const uint8_t *hears; /* exchange along a graph: [workers] 1: this one has a piece for the worker. It sends one to
                           * those to whom it gives one. NULL: all have one for each other */
    const size_t *starts; /* allgather of unequal pieces: [workers + 1] bytes; else NULL         */
    bool          begun;  /* it is waited for later; it only meets calls that are begun, too */
    bool          spares_bytes; /* reductions: a form that sends less suits better than one of fewer rounds */
    bool          meet;   /* only find out that all workers have come to this call, by a barrier's steps */
} pli_coll;

/* Ranks also compare the root, so that a clock's sums of tables never meet a caller's own collective of the same
 * shape. */
enum { PLI_COLL_OF_TABLES = 1 };

/** Bytes of the buffer of a reduction or a broadcast. */
static inline size_t pli_coll_buffer_bytes(const pli_coll *call) {
    return (size_t)call->n * pli_type_bytes(call->type);
}

/* One step of one worker: send first, then receive. */
typedef struct pli_coll_move {
    int32_t to, from; /* workers, or -1 */
    size_t  send_at, send_bytes, recv_at, recv_bytes; /* pieces, exchange: at is a place in piece */
    bool    reduce; /* the received bytes are reduced into buf; else copied */
} pli_coll_move;

/** Step i = 0, 1, ... of worker `me`; false: there are no more. */
bool pli_coll_step(const pli_coll *call, int32_t me, int32_t workers, int64_t i, pli_coll_move *step_out);

/** Sets form and hosts of a reduction that is about to begin: the form `named` or, if that is NULL, the form that
 *  suits. Does nothing for other collectives. */
void pli_coll_choose(pli_coll *call, const pli_coll_form *named, int32_t workers, const pli_hosts *hosts);

/** Does each of its messages have a length of its own? */
static inline bool pli_coll_in_pieces(const pli_coll *call) {
    return call->kind == PLI_PIECES || call->kind == PLI_EXCHANGE;
}

/** How many places has its `piece`, for those given and those received? */
static inline int32_t pli_coll_pieces(const pli_coll *call, int32_t workers) {
    return !pli_coll_in_pieces(call) ? 0 : call->kind == PLI_EXCHANGE ? 2 * workers : workers;
}

static inline bool pli_coll_reduces(const pli_coll *call) {
    return call->kind == PLI_ALLREDUCE || call->kind == PLI_REDUCE_SCATTER;
}

/** A reduction's vector is cut into slices. Where does this slice begin (in elements; pli_coll_slice_at: in bytes)? */
static inline int64_t pli_slice_first(int64_t n, int32_t slice, int32_t slices) {
    int64_t rest = n % slices;
    return n / slices * slice + (slice < rest ? slice : rest);
}
size_t pli_coll_slice_at(const pli_coll *call, int32_t slice, int32_t slices);

/** How many bytes worker `me` sends for this call in all, headers included. */
uint64_t pli_coll_bytes(const pli_coll *call, int32_t me, int32_t workers);

enum { PLI_COLL_TEXT = 160 };
/** Writes "allreduce of 100 f32 (sum) by ring of group odd"; what there is not is left out. */
void pli_coll_tell(const pli_coll *call, char *text, size_t bytes);
/** Fails with EPEER: this rank has left without taking part in the call. */
plait_status pli_coll_missed(const pli_coll *call, int32_t rank, plait_error *err);

/* --- the machine --------------------------------------------------------------------------------------- */

/* A call under way at one worker. The caller owns the memory; the machine uses it from begin until done. */
typedef struct pli_coll_run {
    struct pli_coll_run *next; /* the next call in the order of beginning */
    pli_coll        call;
    uint64_t        number;    /* 1, 2, ... in the order of beginning */
    int64_t         step;
    bool            sent;      /* this step's message has been sent */
    pli_msg        *passing;   /* the last message copied into buf, to be passed on as it is    */
    size_t          passing_at; /* where it was copied                                          */
    plait_error     error;
    _Atomic int32_t waits_for; /* the rank it waits for, or -1; read for the reason of a wait */
    _Atomic bool    done;      /* release after error, the machine's last touch; acquire by the waiting thread */
} pli_coll_run;

enum { PLI_COLL_RECENT = 16 };

typedef struct pli_collective {
    int32_t          me, workers;
    const int32_t   *rank;    /* [workers] how texts and waits name a member of a group; NULL: by its number */
    pli_links        links;
    struct pli_fifo { pli_msg *first, **last; } *come; /* [workers] messages received, not yet used, in order */
    bool            *left;    /* [workers] this worker will send nothing any more */
    pli_coll_run    *first, **last; /* under way, in order                                    */
    uint64_t         started; /* number of calls started */
    pli_coll         recent[PLI_COLL_RECENT]; /* the last calls by number, for errors about a mismatch */
    plait_error      error;   /* of the first call that failed: all that begin after it fail, too */
} pli_collective;

extern const pli_machine_ops pli_collective_ops;

/* false: no memory */
bool pli_collective_init(pli_collective *c, int32_t me, int32_t workers, uint64_t resend_after_ns);
void pli_collective_destroy(pli_collective *c);
/** Begins a call; run and buf are lent until run->done. Call it, like abort, between enter and leave of the port. */
void pli_collective_begin(pli_collective *c, uint64_t now_ns, const pli_coll *call, pli_coll_run *run, pli_out *out);
/** Gives a call that is not done back at once. It, all calls that were begun after it, and all later ones fail with
 *  why. */
void pli_collective_abort(pli_collective *c, pli_coll_run *run, const plait_error *why, pli_out *out);

static inline bool pli_coll_is_done(const pli_coll_run *run) {
    return atomic_load_explicit(&run->done, memory_order_acquire);
}

#endif
