/* comm - ranks, messages, collectives, membership events, over a transport chosen at start.
 *
 * plait/comm.h is what users see. This is what the rooms above see: ports, at which a room binds its state
 * machines, and the wait, through which every blocking passes, with a deadline and a reason.
 *
 * threads: no service thread. Who sends a message puts it in the receiving port's inbox and, if the port
 * is free, runs its machine in place; if it is busy, whoever has it finds the message when he leaves. mpi:
 * one service thread a rank owns all MPI calls, and runs the machines of its rank.
 */
#ifndef PLI_COMM_COMM_H
#define PLI_COMM_COMM_H

#include <plait/comm.h>

#include "base/base.h"
#include "comm/blocked.h"
#include "comm/hosts.h"
#include "comm/machine.h"
#include "comm/msg.h"
#include "comm/stream.h"

/** The collectives as plait_comm_opts names them; what --collective takes. */
enum { PLI_COLLECTIVES = 7 };
extern const char *const pli_collectives[PLI_COLLECTIVES];
/** at_out (may be NULL): where name stands in pli_collectives; NULL is auto. Errors: ENAME, with the nearest. */
plait_status pli_collective_find(const char *name, int32_t *at_out, plait_error *err);

/* --- ports ---------------------------------------------------------------------------------------- */

enum {
    PLI_PORT_USER = 1,
    PLI_PORT_COLLECTIVE = 2,
    PLI_PORT_SERVER = 3,
    PLI_PORT_CLIENT = 4,
    PLI_PORT_GOSSIP = 5,
    PLI_PORT_REPLICA = 6, /* the second copy of another rank's shards */
    PLI_PORT_MAX = 8
};

typedef struct pli_port pli_port;

/** Begins a new job on this rank: at the ports of rooms above that are opened from now on, what was sent in earlier
 *  ones is not handed to a machine. What the last one has sent has arrived before. All ranks begin the same jobs in the
 *  same order. Errors: EINVAL the rank is in a job that has not ended; those of pli_comm_wait. The rank's own
 *  thread. */
plait_status pli_comm_next_job(plait_comm *comm);
/** The rank's job has ended for it, well or not. */
void pli_comm_end_job(plait_comm *comm);
/** Which of the run's jobs that is, 1, 2, ..., the same on all ranks. */
int32_t pli_comm_job(const plait_comm *comm);

/** Binds a machine to (this rank, port). Messages that came before are handed to it now. state is borrowed
 *  until pli_port_close, after which messages for it are dropped. */
plait_status pli_port_open(plait_comm *comm, uint32_t port, const pli_machine_ops *ops, void *state,
                           pli_port **port_out, plait_error *err);
void         pli_port_close(pli_port **port);

/** The rank's own thread calls into its machine: enter (takes the port), work on the state, leave (gives the
 *  port back, sends what is in out, runs what has come in the meantime). Sending never blocks on a peer.
 *  Between the two no wait. Any thread of the rank. */
void pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out);
void pli_port_leave(pli_port *port, pli_out *out);

/* --- waiting -------------------------------------------------------------------------------------- */

/* Why a rank waits; told only when asked (expiry, SIGUSR1, doctor), from another thread perhaps: tell and show must
 * only read what is safe to read then. */
typedef struct pli_reason {
    void (*tell)(const void *arg, char *text, size_t bytes); /* "clock 7 of table w, held up by rank 0" */
    void (*show)(const void *arg, pli_wait *wait_out);       /* the same as data, zeroed before; NULL: PLI_WAIT_OTHER */
    const void *arg;
} pli_reason;

/** Waits until ready(arg) is true, which is asked whenever a machine of this rank has rung (pli_out.ring),
 *  and runs the rank's due wake-ups. Returns ETIMEOUT after the comm's timeout_ns, EPEER or ECOMM when the
 *  job is lost, EDEADLOCK or EMISMATCH when the doctor has found that it cannot end (err has the text with the reason).
 *  ready is called with no lock held and must read atomics (acquire) that the machine wrote (release), or enter the
 *  port itself. */
typedef bool pli_ready_fn(void *arg);
plait_status pli_comm_wait(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                           plait_error *err);
/** The status that ends a wait where the job is lost, and err filled; else PLAIT_OK. reason may be NULL. */
plait_status pli_comm_is_lost(plait_comm *comm, const pli_reason *reason, plait_error *err);

/** A public call that may wait begins and ends: texts of waits and of failures name the outermost. leave returns
 *  status, and where that is the failure of a wait, adds the call to the rank's last error. The rank's own thread. */
void         pli_comm_enter(plait_comm *comm, const char *call);
plait_status pli_comm_leave(plait_comm *comm, plait_status status);

/* --- deaths ----------------------------------------------------------------------------------------- */

/** From now on the death of a rank does not lose the job: it is an event to the machines (pli_machine_ops.on_member,
 *  PLI_MEMBER_DIED), and a receive that can be ended by the dead alone ends with EPEER; all else goes on. A collective
 *  has no dead members: one that is under way when a worker dies, or is begun later, ends with EPEER at every survivor,
 *  soon after the news; at some of them it may have ended well just before, so that who needs to know agrees on it by
 *  messages. That stays so for the rest of the run, save for collectives that are carried (pli_comm_carry). A run
 *  whose survivors end well has ended well. On every process of the job alike, before work is done that relies on
 *  it; an earlier death has lost the job for good. Any thread. */
void pli_comm_survive(plait_comm *comm);

/** The deaths that this process has heard of, in that order: *next from 0 on. false: no further one yet. Any thread. */
bool pli_comm_next_death(const plait_comm *comm, int32_t *next, plait_error *why_out);

/* Who carries the collectives of a job's workers (comm/carried.h). gather brings what this worker has to all, and
 * answers with what each has brought: came [workers], data NULL of who is gone; lent until held_out is freed. All
 * workers call it in the same order, and hear the same of the same call. */
typedef struct pli_carried {
    const void *data;
    size_t      bytes;
} pli_carried;
typedef struct pli_carrier {
    plait_status (*gather)(void *user, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                           plait_error *err);
    void *user;
} pli_carrier;
/** From now on this worker's collectives are carried: they go on when a worker dies, without it. On all workers,
 *  between the same two collectives, as is their end. The rank's own thread. Errors: ENOMEM. */
plait_status pli_comm_carry(plait_comm *comm, const pli_carrier *carrier, plait_error *err);
void         pli_comm_carry_no_more(plait_comm *comm);
/** How many workers were missing from a carried collective so far; was this one? The same on all workers between the
 *  same two collectives. The rank's own thread. */
int32_t pli_comm_absent(const plait_comm *comm);
bool    pli_comm_is_absent(const plait_comm *comm, int32_t worker);
const uint8_t *pli_comm_absentees(const plait_comm *comm); /* [workers] 1: absent; NULL: nobody was carried */
/** Of the workers that are not absent: how many there are, and which of them the caller is (0 ..), in their order. */
void pli_comm_living(const plait_comm *comm, int32_t *place_out, int32_t *living_out);

/** As if the rank had died at this instant: its machines stop, what it sends is dropped, the others hear that it died,
 *  and its own waits end with EPEER and why. For transports whose ranks are threads or simulated, where no process can
 *  be killed. Any thread. */
void pli_comm_kill(plait_comm *comm, const plait_error *why);

/* --- time ------------------------------------------------------------------------------------------- */

/** The transport's time in nanoseconds: the machine's, or a simulated one. Every clock that a run shows is read
 *  here. */
uint64_t pli_comm_now(const plait_comm *comm);
/** The same inside an event, where a simulated rank cannot pay for its work first: what it owes does not count yet. */
uint64_t pli_comm_stamp(const plait_comm *comm);

/** Says that this rank has done something that takes time: sim charges it by its cost model, all others live it. */
void pli_comm_work(plait_comm *comm, pli_work_kind kind, uint64_t amount);

/** Inside a public call: what was charged so far is the caller's own work, not the call's. The rank's own thread. */
void pli_comm_computed(plait_comm *comm);

bool pli_comm_charges(const plait_comm *comm); /* is it worth counting for pli_comm_work? */

/** Where this rank's time went so far, in public calls that may wait: wait until others had done their part, network
 *  while messages were on their way, were made or taken in. The rest is its own work. in_flight false: ranks are
 *  processes, so that nobody knows when a message set off, and the whole wait counts as wait. The rank's own thread. */
typedef struct pli_comm_times {
    uint64_t wait_ns, network_ns;
    bool     in_flight;
} pli_comm_times;
void pli_comm_tell_times(plait_comm *comm, pli_comm_times *times_out);

/** How long this rank's waits have lasted so far. */
uint64_t pli_comm_waited_ns(const plait_comm *comm);

/** Where messages may be lost, the last answer of a machine may have to be sent again when its room is done with it.
 *  The room leaves the machine's state to the rank: its ports stay open until the rank ends or begins its next job, and
 *  release(state) closes them. Once a job. false: nothing is lost here; the state is the caller's. */
bool pli_comm_retire(plait_comm *comm, void *state, void (*release)(void *state));

/** Is the rank's part in the job lost: by its own failure or death, or with the whole job? Any thread. */
bool pli_comm_has_failed(plait_comm *comm);

/* --- what rooms above need to know ----------------------------------------------------------------- */

bool     pli_comm_shares_process(const plait_comm *comm); /* all ranks are in this process, threads or not */
bool     pli_comm_is_worker(const plait_comm *comm);
int32_t  pli_comm_lead(const plait_comm *comm);   /* who prints, saves and coordinates: the lowest worker not absent */
bool     pli_comm_leads(const plait_comm *comm);  /* is it the caller? */
uint32_t pli_comm_epoch(const plait_comm *comm);
uint32_t pli_comm_incarnation(const plait_comm *comm);
uint64_t pli_comm_resend_after_ns(const plait_comm *comm); /* 0: the transport is reliable and ordered */
pli_pool *pli_comm_pool(plait_comm *comm);                 /* of opts.threads threads; NULL: 1          */
const plait_log *pli_comm_log(const plait_comm *comm);
plait_error *pli_comm_error(plait_comm *comm);             /* the rank's last error, to be filled        */

/** Where the rank's jobs raise events; NULL: nowhere. Set before a job is created; the sink outlives the run. */
void                  pli_comm_set_events(plait_comm *comm, const pli_event_sink *sink);
const pli_event_sink *pli_comm_events(const plait_comm *comm);

/** Where the rank's calls, waits and steps are traced (base/span.h); NULL: nowhere. Set before the work that is to be
 *  seen; the sink outlives the run. */
void                 pli_comm_set_spans(plait_comm *comm, const pli_span_sink *sink);
const pli_span_sink *pli_comm_spans(const plait_comm *comm);
/** A stretch of the rank's own thread: begin answers the time where there is a sink, else 0 without a look at the
 *  clock; end tells it, and answers its end, where the next may begin. Simulated work up to there is paid for, so that
 *  it lies within. */
uint64_t pli_comm_span_begin(const plait_comm *comm);
uint64_t pli_comm_span_end(const plait_comm *comm, pli_span_kind kind, const char *name, int64_t number,
                           uint64_t begin_ns);

/** plait_comm_send and plait_comm_recv for rooms above, whose tags are below 0: no user's message is mistaken for
 *  theirs. Arguments are not checked. */
plait_status pli_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes);
plait_status pli_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity, size_t *bytes_out,
                           int32_t *from_out);
/** Merges cells [n] (tensor/exact_cells.h) of all workers; each gets the result. Collective over the workers. */
plait_status pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells);
/** Sums buf [n] of a clock's tables (type may be one of cells), begun as plait_comm_allreduce_begin or, request_out
 *  NULL, waited for. It meets no collective of a caller: EMISMATCH where the workers' order differs. */
plait_status pli_comm_sum_tables(plait_comm *comm, plait_type type, int64_t n, void *buf, plait_request **request_out);
/** Does a sum of n (type may be one of cells) go by messages even where it is waited for at once? Then one that is
 *  begun costs no more, and goes on while its worker computes. */
bool pli_comm_sums_by_messages(const plait_comm *comm, int64_t n, plait_type type);
/** Does a reduce-scatter of n (PLAIT_SUM; type may be one of cells) sum in the order of an allreduce, so that it has
 *  the same bits? */
bool pli_comm_scatters_alike(const plait_comm *comm, int64_t n, plait_type type);
/** The same as cells: plait_comm_reduce_scatter of them. Collective over the workers. */
plait_status pli_comm_scatter_cells(plait_comm *comm, bool wide, int64_t n, void *cells);
/** Of buf [n] each worker has its slice and gets the others'. The slices are those of `cut` >= n elements, of which the
 *  last lie behind buf. Collective over the workers. */
plait_status pli_comm_gather_slices(plait_comm *comm, void *buf, int64_t n, int64_t cut, size_t element_bytes);
/** Which workers share a host. */
const pli_hosts *pli_comm_hosts(const plait_comm *comm);
/** How sums go here: a name of pli_collectives. */
const char *pli_comm_collective(const plait_comm *comm);
/** Waits for the next message with this tag from a rank and hands it over, whatever its length: the caller's. */
plait_status pli_comm_take(plait_comm *comm, int32_t from, int32_t tag, pli_msg **msg_out);
/** As pli_comm_send, of a message made by the caller (taken): where ranks share memory its body is not copied. */
plait_status pli_comm_send_msg(plait_comm *comm, int32_t to, int32_t tag, pli_msg *msg);
/** What all ranks have sent so far, those that only serve included; 0 at these. Collective over all ranks. */
plait_status pli_comm_bytes_of_all(plait_comm *comm, uint64_t *bytes_out);

/** plait_comm_allgatherv_begin of tables' pieces (they, too, meet no caller's) that are handed over as they are, within
 *  a process without a copy. mine is taken, whatever the outcome, and nobody writes to it any more; piece [workers],
 *  NULL before, is lent, and filled by a wait that returns PLAIT_OK: the caller's to free, and to read only. */
plait_status pli_comm_pieces_begin(plait_comm *comm, pli_msg *mine, pli_msg **piece, plait_request **request_out);

/** Memory that all ranks of the process see, made by the first that asks for `name` (zeroed, 64-byte
 *  aligned) and freed with the last release, or when all ranks have ended. NULL: not one process, or out of memory. */
void *pli_comm_shared(plait_comm *comm, const char *name, size_t bytes);
void  pli_comm_shared_release(plait_comm *comm, void *memory);

/** Gives up a collective that was begun: its memory is free at once, and all collectives begun after it fail here. For
 *  who fails and cannot wait. NULLs; NULL is nothing. */
void pli_comm_drop(plait_request **request);

/* A request of any room: wait is called once, frees the request and returns the outcome. */
struct plait_request {
    plait_status (*wait)(plait_request *request); /* fills the comm's error */
};

#ifdef PLI_TESTING
extern _Atomic uint64_t pli_doctor_haste, pli_doctor_rounds; /* his times are divided by it; his rounds:
                                                                comm/rounds.c */
#endif

#endif
