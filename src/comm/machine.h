/* comm/machine.h - state machines, and the events that drive them.
 *
 * The protocol (a server's shards, a client's cache, a collective) is written as machines: a machine takes an event and
 * gives back messages and actions in a pli_out. It holds no thread, lock, socket or wall clock: events carry the
 * driver's time, and a machine asks for wake-ups. A *driver* feeds it: a transport of comm (threads, mpi, sim),
 * or the tests' direct driver, which picks the next event of many bare machines by seed. The driver calls a
 * machine from one thread at a time.
 *
 * A machine is addressed by (rank, port). */
#ifndef PLI_COMM_MACHINE_H
#define PLI_COMM_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "comm/msg.h"

#define PLI_NEVER UINT64_MAX

/* Kinds of work that take time, for transports that simulate time (pli_comm_work). */
typedef enum pli_work_kind {
    PLI_WORK_PARSED,  /* entries of rows that were read from a file */
    PLI_WORK_ENTRIES, /* entries in a pass over rows: score, slope and scatter of each */
    PLI_WORK_KEYS,    /* keys that were sorted or looked up */
    PLI_WORK_VALUES,  /* values that an update rule was applied to, or that were copied for a reader */
    PLI_WORK_SUMS,    /* values that were added, element by element */
    PLI_WORK_TAPS,    /* operations of a graph's convolutions ... */
    PLI_WORK_STEPS,   /* ... of its pooling and scattering ... */
    PLI_WORK_FLOPS,   /* ... and of its other nodes */
    PLI_WORK_MOVED,   /* bytes that a graph's nodes read and wrote */
    PLI_WORK_NODES,   /* nodes of a graph that were computed */
    PLI_WORK_CLOCKS,  /* clocks that a worker has ended */
    PLI_WORK_KINDS
} pli_work_kind;

/* A machine's answer. The machine fills it, the driver empties it. */
typedef struct pli_out {
    pli_msg    *first, **last; /* messages to send, in order                                  */
    uint64_t    wake_at_ns;    /* call on_wakeup then (the earliest request wins); PLI_NEVER: no wake-up */
    bool        ring;          /* something has changed that a waiting thread of this rank looks at */
    bool        keeps;         /* set by on_wakeup: a message that was sent is not acknowledged yet */
    plait_error error;         /* code < 0: this rank's job is lost, and all its waits fail with it */
    uint64_t    work[PLI_WORK_KINDS]; /* the work that the answer took */
} pli_out;

void pli_out_init(pli_out *out);
void pli_out_send(pli_out *out, pli_msg *msg); /* takes msg; dst and port are set               */
void pli_out_wake(pli_out *out, uint64_t at_ns);
void pli_out_ring(pli_out *out);
void pli_out_work(pli_out *out, pli_work_kind kind, uint64_t amount);
void pli_out_fail(pli_out *out, plait_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/** Fails with EPEER: the machine cannot go on without this rank. */
void pli_out_lost(pli_out *out, int32_t rank, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void pli_out_drop(pli_out *out); /* frees messages that were not taken */

typedef enum pli_member_kind {
    PLI_MEMBER_JOINED,
    PLI_MEMBER_LEFT /* in good order */,
    PLI_MEMBER_DIED
} pli_member_kind;
typedef struct pli_member_event {
    pli_member_kind kind;
    int32_t         rank;
    uint32_t        epoch; /* the number of the view from this event on */
    plait_error     why;
    uint32_t        life; /* which life of the rank it is about; 0 or 1: the first */
    bool            mute; /* it died without telling anything itself: why is what others saw */
} pli_member_event;

typedef struct pli_machine_ops {
    const char *name; /* "server", "client", "collective": for logs */
    /** A message has come; the machine owns it. */
    void (*on_message)(void *state, uint64_t now_ns, pli_msg *msg, pli_out *out);
    /** The time asked for with pli_out_wake has come or passed; may also be called early. May be NULL. */
    void (*on_wakeup)(void *state, uint64_t now_ns, pli_out *out);
    /** A rank came or went. May be NULL. */
    void (*on_member)(void *state, uint64_t now_ns, const pli_member_event *event, pli_out *out);
    /** A message has come for a machine of this kind that is no more: it has a number and belongs to a job that has
     *  ended, and messages may be lost. Returns an acknowledgement, so that it is not sent again. NULL: out of
     *  memory. May be NULL. */
    pli_msg *(*late)(const pli_msg *msg);
} pli_machine_ops;

#endif
