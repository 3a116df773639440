/* comm - ranks, messages, collectives, membership events, over a transport chosen at start.
 *
 * Users see plait/comm.h. The rooms above see this file: ports, to which a room binds its state machines, and the wait,
 * which every blocking call goes through, with a deadline and a reason.
 *
 * threads: no service thread. A sender puts its message into the receiving port's inbox and, if the port is free,
 * runs the port's machine itself; if the port is busy, its holder finds the message when it leaves. mpi: one service
 * thread for each rank owns all MPI calls, and runs the machines of its rank. */
#ifndef PLI_COMM_COMM_H
#define PLI_COMM_COMM_H

#include <plait/comm.h>
#include <plait/group.h>

#include "base/base.h"
#include "comm/blocked.h"
#include "comm/hosts.h"
#include "comm/machine.h"
#include "comm/msg.h"
#include "comm/stream.h"

/** The names of the collectives in plait_comm_opts and for --collective. */
enum { PLI_COLLECTIVES = 7 };
extern const char *const pli_collectives[PLI_COLLECTIVES];
/** Checks a name; NULL means auto. at_out (may be NULL) is its place in pli_collectives. Errors: ENAME, with the
 *  nearest. */
plait_status pli_collective_find(const char *name, int32_t *at_out, plait_error *err);

/* --- ports ---------------------------------------------------------------------------------------- */

enum {
    PLI_PORT_USER = 1,
    PLI_PORT_COLLECTIVE = 2,
    PLI_PORT_SERVER = 3,
    PLI_PORT_CLIENT = 4,
    PLI_PORT_GOSSIP = 5,
    PLI_PORT_REPLICA = 6, /* the second replica of another rank's shards */
    PLI_PORT_CHANNEL = 7, /* values between the parts of a cut graph */
    PLI_PORT_LOCKS = 8,   /* locks on the scopes of vertices */
    PLI_PORT_AGREED = 9,  /* sums that go on without the dead */
    PLI_PORT_MAX = 10,
    PLI_GROUPS_MAX = 4096, /* of a run, with that of all workers */
    PLI_PORTS_ALL = PLI_PORT_MAX * PLI_GROUPS_MAX /* port p of group g is number g * PLI_PORT_MAX + p */
};

typedef struct pli_port pli_port;

/** Begins a new job on this rank. Ports of rooms above that are opened from now on do not hand messages of earlier
 *  jobs to their machines; all messages of the last job have arrived by then. All ranks begin the same jobs in the
 *  same order. Errors: EINVAL the rank is in a job that has not ended; those of pli_comm_wait. The rank's own
 *  thread. */
plait_status pli_comm_next_job(plait_comm *comm);
/** The rank's part in its job has ended, well or not. */
void pli_comm_end_job(plait_comm *comm);
/** The number of the current job in the run, 1, 2, ..., the same on all ranks. */
int32_t pli_comm_job(const plait_comm *comm);

/** Binds a machine to (this rank, port). Messages that came before are handed to it now. state is borrowed until
 *  pli_port_close; after that, messages for the port are dropped. */
plait_status pli_port_open(plait_comm *comm, uint32_t port, const pli_machine_ops *ops, void *state,
                           pli_port **port_out, plait_error *err);
void         pli_port_close(pli_port **port);
/** The same for a port that the members of a group have for themselves (comm/group.h). The machine behind it knows the
 *  group's numbers alone: the members are 0 .. n - 1 in order of rank, and the run's servers follow. The port
 *  translates them in messages and news of members; it hides ranks that are neither. group NULL: as pli_port_open. */
plait_status pli_port_open_in(plait_comm *comm, plait_group *group, uint32_t port, const pli_machine_ops *ops,
                              void *state, pli_port **port_out, plait_error *err);

/** The rank's own thread calls into its machine: enter (takes the port), work on the state, leave (gives the port
 *  back, sends what is in out, runs what has come in the meantime). Sending never blocks on a peer. Do not wait
 *  between enter and leave. Any thread of the rank. */
void pli_port_enter(pli_port *port, uint64_t *now_ns, pli_out *out);
void pli_port_leave(pli_port *port, pli_out *out);

/* --- waiting -------------------------------------------------------------------------------------- */

/* Why a rank waits. It is told only on demand (expiry, SIGUSR1, doctor), perhaps from another thread, so tell and
 * show must only read what is safe to read then. */
typedef struct pli_reason {
    void (*tell)(const void *arg, char *text, size_t bytes); /* "clock 7 of table w, held up by rank 0" */
    void (*show)(const void *arg, pli_wait *wait_out);       /* the same as data (zeroed before the call); NULL:
                                                              * PLI_WAIT_OTHER */
    const void *arg;
} pli_reason;

/** Waits until ready(arg) is true, and runs the rank's due wake-ups. ready is asked whenever a machine of this rank
 *  has rung (pli_out.ring). Returns ETIMEOUT after the comm's timeout_ns, EPEER or ECOMM when the job is lost,
 *  EDEADLOCK or EMISMATCH when the doctor has found that the wait cannot end (err has the text with the reason).
 *  ready is called with no lock held; it must read atomics (acquire) that the machine wrote (release), or enter the
 *  port itself. */
typedef bool pli_ready_fn(void *arg);
plait_status pli_comm_wait(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                           plait_error *err);
/** The same without a deadline: how long it takes is wholly the affair of others, who may never bring it. */
plait_status pli_comm_wait_long(plait_comm *comm, pli_ready_fn *ready, void *arg, const pli_reason *reason,
                                plait_error *err);
/** Says that the rank waits for something outside of the job, such as rows of a pipe; NULL: it goes on. For those who
 *  ask what the rank waits for; the doctor knows that such a wait may end any time. The rank's own thread. reason is
 *  borrowed until the next call. */
void pli_comm_awaits(plait_comm *comm, const pli_reason *reason);
/** If the job is lost: fills err and returns the status that ends a wait; else PLAIT_OK. reason may be NULL. */
plait_status pli_comm_is_lost(plait_comm *comm, const pli_reason *reason, plait_error *err);

/** Mark where a public call that may wait begins and ends: texts of waits and failures name the outermost such
 *  call. leave returns status; if that is the failure of a wait, it adds the call to the rank's last error. The
 *  rank's own thread. */
void         pli_comm_enter(plait_comm *comm, const char *call);
plait_status pli_comm_leave(plait_comm *comm, plait_status status);

/* --- deaths ----------------------------------------------------------------------------------------- */

/** From now on a rank's death does not lose the job. Machines hear of it as an event (pli_machine_ops.on_member,
 *  PLI_MEMBER_DIED), and a receive that only dead ranks could end fails with EPEER; all else goes on.
 *  A collective cannot do without dead members: one that is under way when a worker dies, or is begun later, ends with
 *  EPEER at every survivor, soon after the news. At some survivors it may have ended well just before, so ranks that
 *  need to know must agree on it by messages. That stays so for the rest of the run, except for carried collectives
 *  (pli_comm_carry). A run whose survivors end well has ended well.
 *  Every process of the job calls this before work that relies on it; an earlier death has lost the job for good.
 *  Any thread. */
void pli_comm_survive(plait_comm *comm);
/** Of such a run whose ranks may be started anew (sim): the body runs again on a worker that was killed in the job at
 *  hand, once the others have it in a view again, in its next life (pli_comm_incarnation). Machines hear of it by
 *  JOINED. It takes part in that job's messages alone: collectives that are not carried, and tagged messages, know it
 *  as dead. Without this call it votes, and no more. Any thread. */
void pli_comm_renews(plait_comm *comm);

/** The rank dies with any of these others (ranks [n], copied), whether one has died already or dies later: its waits
 *  end with EPEER, whose text names who died and whose rank is its own, its machines say no more, and the others hear
 *  of its death when its body has returned. So ranks that can do nothing without each other, such as those of a cut
 *  graph, are one to all others. n 0: it dies with nobody any more. Needs pli_comm_survive. The rank's own thread.
 *  Errors: ENOMEM. */
plait_status pli_comm_die_with(plait_comm *comm, int32_t n, const int32_t *ranks, plait_error *err);

/** The deaths that this process has heard of, in that order. *next starts at 0. false: there is no further one yet.
 *  Any thread. */
bool pli_comm_next_death(const plait_comm *comm, int32_t *next, plait_error *why_out);

/* Carries the collectives of a job's workers (comm/carried.h). gather brings this worker's bytes to all workers, and
 * receives what each has brought: came [workers], with data NULL for a worker that is gone; lent until held_out is
 * freed. All workers call it in the same order, and the same call gives all of them the same. */
typedef struct pli_carried {
    const void *data;
    size_t      bytes;
} pli_carried;
typedef struct pli_carrier {
    plait_status (*gather)(void *user, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                           plait_error *err);
    void *user;
} pli_carrier;
/* What carries the collectives of all workers, or of a group, whose members are then meant by workers. */
typedef struct pli_carriage {
    pli_carrier carrier; /* gather NULL: none */
    uint8_t    *absent;  /* [workers] 1: absent; NULL: collectives are not carried, and never were */
    int32_t     n_absent;
} pli_carriage;
/** From now on this worker's collectives are carried: when a worker dies they go on without it. All workers call
 *  this between the same two collectives; the same holds for its end. The rank's own thread. Errors: ENOMEM. */
plait_status pli_comm_carry(plait_comm *comm, const pli_carrier *carrier, plait_error *err);
void         pli_comm_carry_no_more(plait_comm *comm);
/** How many workers have been missing from a carried collective so far; and was this worker? All workers get the
 *  same answer between the same two collectives. The rank's own thread. */
int32_t pli_comm_absent(const plait_comm *comm);
bool    pli_comm_is_absent(const plait_comm *comm, int32_t worker);
const uint8_t *pli_comm_absentees(const plait_comm *comm); /* [workers] 1: absent; NULL: nobody was carried */
/** The workers that are not absent: how many there are, and the caller's place among them (0 ..), in their order. */
void pli_comm_living(const plait_comm *comm, int32_t *place_out, int32_t *living_out);

/** Treats the rank as dead from this instant: its machines stop, its messages are dropped, the others hear that it
 *  died, and its own waits end with EPEER and why. For transports whose ranks are threads or simulated, where no
 *  process can be killed. Any thread. */
void pli_comm_kill(plait_comm *comm, const plait_error *why);

/* --- time ------------------------------------------------------------------------------------------- */

/** The transport's time in nanoseconds: real or simulated. Every time that a run shows is read here. */
uint64_t pli_comm_now(const plait_comm *comm);
/** The same inside an event, where a simulated rank cannot pay for its work first: work not yet paid for does not
 *  count. */
uint64_t pli_comm_stamp(const plait_comm *comm);

/** Says that this rank has done work that takes time: sim charges it by its cost model; with other transports the
 *  time has really passed. */
void pli_comm_work(plait_comm *comm, pli_work_kind kind, uint64_t amount);

/** Inside a public call: all work charged so far is the caller's own, not the call's. The rank's own thread. */
void pli_comm_computed(plait_comm *comm);

bool pli_comm_charges(const plait_comm *comm); /* must work be counted for pli_comm_work? */
/** The simulated cluster (comm/cluster.h); NULL: time is real. */
const struct pli_cluster *pli_comm_cluster(const plait_comm *comm);

/** Where this rank's time in public calls that may wait went so far: wait, until others had done their part;
 *  network, while messages were on their way or being made or taken in. The rest is the rank's own work. in_flight
 *  false: ranks are processes, so nobody knows when a message set off, and all waiting counts as wait. The rank's
 *  own thread. */
typedef struct pli_comm_times {
    uint64_t wait_ns, network_ns;
    bool     in_flight;
} pli_comm_times;
void pli_comm_tell_times(plait_comm *comm, pli_comm_times *times_out);
/** The rank's own time so far, in nanoseconds: now, less wait and network. Only differences mean something. The rank's
 *  own thread. */
static inline uint64_t pli_comm_own_ns(plait_comm *comm) { /* inline, so that tests can set pli_comm_now */
    pli_comm_times times;
    pli_comm_tell_times(comm, &times);
    return pli_comm_now(comm) - times.wait_ns - times.network_ns;
}

/** How long this rank's waits have lasted in all. */
uint64_t pli_comm_waited_ns(const plait_comm *comm);

/** If messages may be lost, a machine's last answer may have to be sent again when its room is done with it. So the
 *  room leaves the machine's state to the rank: its ports stay open until the rank ends or begins its next job; then
 *  release(state) closes them. Once a job. false: no message is lost here, and the caller keeps the state. */
bool pli_comm_retire(plait_comm *comm, void *state, void (*release)(void *state));

/** Has the rank lost its part in the job, by its own failure or death or with the whole job? Any thread. */
bool pli_comm_has_failed(plait_comm *comm);

/* --- what rooms above need to know ----------------------------------------------------------------- */

bool     pli_comm_shares_process(const plait_comm *comm); /* all ranks are in this process, as threads or not */
bool     pli_comm_is_worker(const plait_comm *comm);
int32_t  pli_comm_lead(const plait_comm *comm);   /* the worker that prints, saves and coordinates: the lowest that
                                                   * is not absent */
bool     pli_comm_leads(const plait_comm *comm);  /* is the caller the lead? */
uint32_t pli_comm_epoch(const plait_comm *comm);
uint32_t pli_comm_incarnation(const plait_comm *comm);
uint64_t pli_comm_resend_after_ns(const plait_comm *comm); /* 0: the transport is reliable and ordered */
pli_pool *pli_comm_pool(plait_comm *comm);                 /* of opts.threads threads; NULL: one */
const plait_log *pli_comm_log(const plait_comm *comm);
plait_error *pli_comm_error(plait_comm *comm);             /* the rank's last error, to be filled */

/* The event log of a run, as far as a job knows it (plait/events.h): the room that writes logs lies above. record makes
 * the rank's jobs raise their events into it. Collective over all ranks. */
struct plait_events {
    plait_status (*record)(struct plait_events *events, plait_comm *comm);
};

/** Where the rank's jobs raise events; NULL: nowhere. Set it before a job is created; the sink outlives the run. */
void                  pli_comm_set_events(plait_comm *comm, const pli_event_sink *sink);
const pli_event_sink *pli_comm_events(const plait_comm *comm);

/** Where the rank's calls, waits and steps are traced (base/span.h); NULL: nowhere. Set it before the work to be
 *  traced; the sink outlives the run. */
void                 pli_comm_set_spans(plait_comm *comm, const pli_span_sink *sink);
const pli_span_sink *pli_comm_spans(const plait_comm *comm);
/** A span of the rank's own thread. begin returns the time, or 0 without a look at the clock if there is no sink.
 *  end hands the span to the sink and returns its end, where the next may begin. Simulated work up to there is paid
 *  first, so that it lies within the span. */
uint64_t pli_comm_span_begin(const plait_comm *comm);
uint64_t pli_comm_span_end(const plait_comm *comm, pli_span_kind kind, const char *name, int64_t number,
                           uint64_t begin_ns);

/** plait_comm_send and plait_comm_recv for rooms above. Their tags are below 0, so they never take a user's message.
 *  Arguments are not checked. */
plait_status pli_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes);
plait_status pli_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity, size_t *bytes_out,
                           int32_t *from_out);

/* Collectives of tables. They are collective over the workers or, with a group, over its members: "workers" are these
 * then, numbered as the group numbers them. */

/** Merges cells [n] (tensor/exact_cells.h) of all workers of the run; each gets the result. */
plait_status pli_comm_sum_cells(plait_comm *comm, bool wide, int64_t n, void *cells);
/** Reduces buf [n] of a clock's tables (of cells: by PLAIT_SUM). With request_out it is begun, as by
 *  plait_comm_allreduce_begin; with NULL it waits. spares_bytes: collective.h. It never meets a caller's own
 *  collective: EMISMATCH if the workers' order differs. */
plait_status pli_comm_sum_tables(plait_comm *comm, plait_group *group, plait_type type, plait_reduce op, int64_t n,
                                 void *buf, bool spares_bytes, plait_request **request_out);
/** Does a sum of n (type may be one of cells) go by messages even if it is waited for at once? Then a begun sum
 *  costs no more, and goes on while its worker computes. */
bool pli_comm_sums_by_messages(const plait_comm *comm, const plait_group *group, int64_t n, plait_type type);
/** Does a reduce-scatter of n (PLAIT_SUM; type may be one of cells) add in the same order as an allreduce, so that
 *  it gives the same bits? */
bool pli_comm_scatters_alike(const plait_comm *comm, const plait_group *group, int64_t n, plait_type type);
/** plait_comm_reduce_scatter of cells. */
plait_status pli_comm_scatter_cells(plait_comm *comm, plait_group *group, bool wide, int64_t n, void *cells);
/** Each worker has its slice of buf [n] and gets the others'. The slices are those of `cut` >= n elements; the
 *  elements past n do not exist. */
plait_status pli_comm_gather_slices(plait_comm *comm, plait_group *group, void *buf, int64_t n, int64_t cut,
                                    size_t element_bytes);
/** Which workers share a host. */
const pli_hosts *pli_comm_hosts(const plait_comm *comm);
/** How sums are made here: a name of pli_collectives. */
const char *pli_comm_collective(const plait_comm *comm);
/** Waits for the next message with this tag from a rank and hands it over, whatever its length; the caller frees it. */
plait_status pli_comm_take(plait_comm *comm, int32_t from, int32_t tag, pli_msg **msg_out);
/** Like pli_comm_send, for a message that the caller made (taken): where ranks share memory its body is not copied. */
plait_status pli_comm_send_msg(plait_comm *comm, int32_t to, int32_t tag, pli_msg *msg);
/** How many bytes all ranks have sent so far, including servers; a server gets 0. Collective over all ranks. */
plait_status pli_comm_bytes_of_all(plait_comm *comm, uint64_t *bytes_out);

/** plait_comm_allgatherv_begin for pieces of tables (they never meet a caller's own). A piece is handed over as it
 *  is, without a copy within a process. mine is taken in any case, and nobody may write to it any more. piece
 *  [workers] must be NULL before and is lent; a wait that returns PLAIT_OK fills it. The caller frees the pieces,
 *  and may only read them. */
plait_status pli_comm_pieces_begin(plait_comm *comm, plait_group *group, pli_msg *mine, pli_msg **piece,
                                   plait_request **request_out);

/** Each worker has a message for each other: given [workers], NULL for the caller itself, all taken in any case, and
 *  nobody may write to them any more. piece [workers] must be NULL before and is lent; a wait that returns PLAIT_OK
 *  fills it with what each other worker has sent to this one. The caller frees the pieces, and may only read them.
 *  Workers whose collectives are carried cannot: EREFUSED. */
plait_status pli_comm_exchange_begin(plait_comm *comm, plait_group *group, pli_msg **given, pli_msg **piece,
                                     plait_request **request_out);

/** Memory that all ranks of the process see. The first rank that asks for `name` makes it (zeroed, 64-byte aligned);
 *  it is freed with the last release, or when all ranks have ended. NULL: ranks are not in one process, or out of
 *  memory. */
void *pli_comm_shared(plait_comm *comm, const char *name, size_t bytes);
void  pli_comm_shared_release(plait_comm *comm, void *memory);

/** Gives up a collective that was begun: its memory is free at once, and all collectives begun after it fail here.
 *  For a rank that fails and cannot wait. Sets *request to NULL; NULL is fine. */
void pli_comm_drop(plait_request **request);

/* A request of any room: wait is called once, frees the request and returns the outcome. */
struct plait_request {
    plait_status (*wait)(plait_request *request); /* fills the comm's error */
};

#ifdef PLI_TESTING
extern _Atomic uint64_t pli_doctor_haste, pli_doctor_rounds; /* tests: the doctor's times are divided by haste;
                                                              * rounds counts his rounds (comm/rounds.c) */
#endif

#endif
