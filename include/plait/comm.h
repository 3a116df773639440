/* plait/comm.h - ranks, tagged messages and collectives behind one interface.
 *
 * A *rank* is one member of a job: a worker, which computes, or a server, which only holds shards. Ranks
 * 0 .. workers-1 are the workers, the servers follow. What carries the bytes, the *transport*, is an
 * option: `threads` (ranks are threads of this process), `mpi` (one rank a process) and `sim` (ranks are
 * actors of a simulated cluster), modules loaded on request. A program hands plait_comm_run a body; it runs once on
 * every rank that lives in this process.
 *
 * Every wait has a deadline (opts.timeout_ns) and a reason that can be printed. A wait that expires returns
 * PLAIT_ETIMEOUT, and its error text says which ranks held it up. A wait that can never end, because ranks wait for
 * each other, returns PLAIT_EDEADLOCK within a second. Ranks that call different collectives in the same place get
 * PLAIT_EMISMATCH. The text names each rank with its call. No call needs rank 0 in particular.
 *
 * Threads: a plait_comm belongs to its rank; its calls are made by one thread at a time, except where a
 * comment says "any thread".
 */
#ifndef PLAIT_COMM_H
#define PLAIT_COMM_H

#include <stddef.h>
#include <stdint.h>

#include <plait/log.h>
#include <plait/status.h>
#include <plait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_comm plait_comm;       /* one rank's handle; lives as long as its body runs */
typedef struct plait_request plait_request; /* a call that was begun; exactly one wait ends it */

typedef enum plait_reduce { PLAIT_SUM = 0, PLAIT_MIN = 1, PLAIT_MAX = 2, PLAIT_SUM_EXACT = 3 } plait_reduce;

/* The record of a simulated run. */
typedef struct plait_simulated {
    double  virtual_seconds; /* from its beginning to the end of the last rank                   */
    char    trace_hash[65];  /* hash of each delivered message's time, sender, receiver, tag, size */
    int64_t messages;        /* how many were delivered                                          */
} plait_simulated;

typedef struct plait_comm_opts {
    size_t           size;       /* set by plait_comm_opts_init                                      */
    const char      *transport;  /* "threads" | "mpi" | "sim"; NULL: mpi under an MPI launcher, else threads */
    int32_t          workers;    /* of the whole job; 0: 1 on threads and sim, processes less servers on mpi */
    int32_t          servers;    /* more ranks, which only hold shards; default 0                    */
    int32_t          threads;    /* compute threads of one worker; 0: cores / ranks on this host     */
    uint64_t         timeout_ns; /* deadline of each wait; default 300 s                             */
    const plait_log *log;        /* may be NULL                                                      */
    const char      *collective; /* algorithm of sums (docs/collectives.md). "auto" or NULL: the transport's own, if it
                                  * has one, else chosen by size, workers and hosts | "messages": chosen so, but never
                                  * the transport's own | "ring" | "tree" | "recursive" | "rabenseifner" |
                                  * "hierarchical": always this one, by messages */
    const char      *cluster;    /* sim: the file that describes the cluster (docs/simulation.md); NULL: equal hosts on
                                    one switch */
    uint64_t         seed;       /* sim: of random numbers, and of the order of messages of the same instant */
    plait_simulated *simulated;  /* sim: filled when the run ends; may be NULL                        */
    uint64_t         heartbeat_ns; /* mpi: a process that gives no sign of life for this long counts as lost, and so
                                    * does the job; at least 0.5 s, default 5 s, UINT64_MAX: never     */
} plait_comm_opts;

/** Fills the defaults. */
PLAIT_API void plait_comm_opts_init(plait_comm_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_comm_opts_init_sized(plait_comm_opts *opts, size_t size);
#define plait_comm_opts_init(opts) plait_comm_opts_init_sized(opts, sizeof(plait_comm_opts))

/** The function that runs on each rank. The status that it returns is the rank's result. A failure is announced to all
 *  other ranks, whose waits for this rank then end with PLAIT_EPEER. */
typedef plait_status plait_body_fn(plait_comm *comm, void *user);

/** Gives this process its ranks, runs body on each of them, and returns when all of them are done.
 *  On `threads` body runs opts.workers + opts.servers times at once, each on a thread of its own (stack
 *  8 MiB); on `mpi` once, on the calling thread; on `sim` as often as on threads, but in turns on the calling
 *  thread (stack 2 MiB), and in simulated time.
 *  Errors: EINVAL counts out of range, or that disagree with the launcher's; ENAME unknown transport;
 *  EMODULE the transport's module is missing (the text names the command that installs it); else the
 *  first failure of a body, with the lowest rank that failed with the same words. error_out may be NULL.
 *  Collective over all processes of the job. Several runs may live in one process at once on `threads`;
 *  a process can simulate once. */
PLAIT_API plait_status plait_comm_run(const plait_comm_opts *opts, plait_body_fn *body, void *user,
                                      plait_error *error_out);

/** plait_comm_run without a body: the calling thread becomes the only rank of this process, and *comm_out its handle,
 *  until plait_comm_close. For programs that own their threads, such as bindings. It starts no thread on `threads`
 *  (plait_train starts opts.threads - 1 that compute); on `mpi` the transport has its own, as under plait_comm_run.
 *  Errors: as plait_comm_run; EREFUSED more than one rank would live in this process, or `sim`. opts may be NULL.
 *  The handle's calls are made by one thread at a time, which may be another than the opener on `threads`; it needs
 *  8 MiB of stack. Several may be open at once on `threads`. Do not fork while one is open. Collective over all
 *  processes of the job. */
PLAIT_API plait_status plait_comm_open(const plait_comm_opts *opts, plait_comm **comm_out, plait_error *error_out);

/** Ends the rank: jobs, groups and requests of the handle must have ended. result: PLAIT_OK, or the failure that ended
 *  its work, which all other ranks are told as if a body had returned it. Waits for the job's other processes. *comm is
 *  NULL afterwards, whatever the outcome, save in a callback, and for a handle of plait_comm_run (EINVAL). comm or
 *  *comm NULL: PLAIT_OK. Returns what plait_comm_run would: result, or the failure of another process. Collective over
 *  all processes of the job. */
PLAIT_API plait_status plait_comm_close(plait_comm **comm, plait_status result, plait_error *error_out);

PLAIT_API int32_t plait_comm_rank(const plait_comm *comm);    /* 0 <= rank < size                     */
PLAIT_API int32_t plait_comm_size(const plait_comm *comm);    /* workers + servers                    */
PLAIT_API int32_t plait_comm_workers(const plait_comm *comm); /* ranks 0 .. workers-1 are workers     */
PLAIT_API int32_t plait_comm_servers(const plait_comm *comm); /* 0: shards live in the workers' ranks */
PLAIT_API int32_t plait_comm_threads(const plait_comm *comm); /* compute threads of this rank         */
PLAIT_API const char *plait_comm_transport(const plait_comm *comm);
PLAIT_API const char *plait_comm_host(const plait_comm *comm);

/** Which life of its rank this is: 1, or 2 if it has died and was started anew (plait_job_opts.revives). A later life
 *  sends and receives no tagged messages, and has no collectives outside of its job (EREFUSED). */
PLAIT_API int32_t plait_comm_life(const plait_comm *comm);

/** 1 if all ranks of the job are threads of this process, else 0. */
PLAIT_API int plait_comm_one_process(const plait_comm *comm);

/** The last failure of a call on this rank. Valid until the next failing call. Never NULL. */
PLAIT_API const plait_error *plait_comm_error(const plait_comm *comm);

/** Bytes (headers and payload) that this rank has sent to other ranks so far in messages and collectives, counted by
 *  the same rule on every transport. Any thread. */
PLAIT_API uint64_t plait_comm_bytes_sent(const plait_comm *comm);

/* --- tagged messages ----------------------------------------------------------------------------- */

/** Sends bytes to a rank, which may be the caller's own. Returns when data may be reused; never waits for the
 *  receiver. Messages of one sender with one tag arrive in order. tag >= 0.
 *  Errors: EINVAL; ENOMEM; EPEER the receiver is lost. Not collective. */
PLAIT_API plait_status plait_comm_send(plait_comm *comm, int32_t to, int32_t tag, const void *data, size_t bytes);

/** Waits for the next message with this tag from one rank (from = -1: from any) and copies it to data.
 *  bytes_out (its length) and from_out may be NULL. Errors: ESHAPE the message is longer than capacity (it stays
 *  there); ETIMEOUT; EPEER the sender is lost, and no message of it is left. Not collective. */
PLAIT_API plait_status plait_comm_recv(plait_comm *comm, int32_t from, int32_t tag, void *data, size_t capacity,
                                       size_t *bytes_out, int32_t *from_out);

/* --- collectives: among the workers, called by all of them in the same order --------------------- */

/* Between plait_job_create with opts.replicas 2 and plait_job_destroy, collectives go on when a worker dies: a sum is
 * over the living workers, the lowest living worker takes a dead root's place in a broadcast, and a dead worker's piece
 * is zeros in an allgather and empty in an allgatherv. There each worker receives the data of every other: use these
 * collectives for counts and figures, not for gradients. */

/** Returns when every worker has called it. */
PLAIT_API plait_status plait_comm_barrier(plait_comm *comm);

/** Reduces buf [n] element by element over all workers; each worker gets the same bits. The order of the sum is fixed
 *  for a setting (transport, number of workers, n). Types: F32, F64, I64.
 *  PLAIT_SUM_EXACT (F32, F64): the sum's bits depend on the terms alone, not on their order, nor on which worker holds
 *  which term. Each term loses less than 2^-22 (F64: 2^-62) of the element's largest term, and nothing else is lost
 *  before the last rounding.
 *  Paper: Demmel and Nguyen, "Parallel Reproducible Summation", IEEE Transactions on Computers 2015.
 *  Errors: EMISMATCH a worker called something else or with another n; ETIMEOUT; EPEER; EINVAL n is below 0, or so
 *  large that no memory could hold it (2^61 bytes / (workers + 1), as for all collectives). */
PLAIT_API plait_status plait_comm_allreduce(plait_comm *comm, void *buf, int64_t n, plait_type type, plait_reduce op);

/** Begins an allreduce: buf is lent until plait_request_wait returns. Any number may be in flight, and other
 *  collectives may be called between. Workers match calls by their order, so all workers begin them in the same order;
 *  they may wait in any order. If one fails, those that were begun after it fail too. Errors: also ENOMEM. */
PLAIT_API plait_status plait_comm_allreduce_begin(plait_comm *comm, void *buf, int64_t n, plait_type type,
                                                  plait_reduce op, plait_request **request_out);

/** The slice of a worker: elements [*first_out, *first_out + *count_out) of n. Slices are in order of workers, and as
 *  equal as possible. */
PLAIT_API void plait_comm_slice(const plait_comm *comm, int64_t n, int32_t worker, int64_t *first_out,
                                int64_t *count_out);

/** Reduces buf [n] as plait_comm_allreduce does, but each worker gets only its slice of the result (plait_comm_slice),
 *  at the slice's place in buf; the rest of buf is undefined afterwards. It sends about half the bytes of an allreduce.
 *  Errors: as plait_comm_allreduce. */
PLAIT_API plait_status plait_comm_reduce_scatter(plait_comm *comm, void *buf, int64_t n, plait_type type,
                                                 plait_reduce op);

/** Begins a reduce_scatter, with the rules of plait_comm_allreduce_begin. */
PLAIT_API plait_status plait_comm_reduce_scatter_begin(plait_comm *comm, void *buf, int64_t n, plait_type type,
                                                       plait_reduce op, plait_request **request_out);

/** Copies buf [bytes] of worker root to all workers. */
PLAIT_API plait_status plait_comm_broadcast(plait_comm *comm, void *buf, size_t bytes, int32_t root);

/** Gathers mine [bytes] of every worker into all [workers][bytes], ordered by worker. */
PLAIT_API plait_status plait_comm_allgather(plait_comm *comm, const void *mine, size_t bytes, void *all);

/** Gathers pieces of different lengths. sizes [workers] is filled; *all_out [sum of sizes] is allocated,
 *  ordered by worker, and freed by the caller with plait_comm_free. */
PLAIT_API plait_status plait_comm_allgatherv(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                             void **all_out);
PLAIT_API void plait_comm_free(void *memory);

/** Begins an allgatherv, with the rules of plait_comm_allreduce_begin. mine is copied. sizes [workers] is lent;
 *  plait_request_wait fills it and *all_out when it returns PLAIT_OK. */
PLAIT_API plait_status plait_comm_allgatherv_begin(plait_comm *comm, const void *mine, size_t bytes, size_t *sizes,
                                                   void **all_out, plait_request **request_out);

/** Waits until what was begun is done. *request is NULL afterwards, whatever the outcome. request or *request NULL:
 *  PLAIT_OK. */
PLAIT_API plait_status plait_request_wait(plait_request **request);

/* --- waits: docs/doctor.md ------------------------------------------------------------------------- */

/** Writes one line for each rank of this process that waits at this moment ("rank 2 waits for clock 7 of table w, held
 *  up by rank 0 (plait_table_get, call 12, fit.c:88; 0.4 s)") into text [bytes], where the last may be cut. Any thread.
 *  Returns the number of lines; 0 if text is NULL and bytes is not 0. */
PLAIT_API int32_t plait_comm_waits(const plait_comm *comm, char *text, size_t bytes);

/** Writes one line for every rank of the job, also for those that do not wait. Other processes are asked, and have
 *  timeout_ns to answer ("rank 3 does not answer"). Any thread. Returns the number of lines; 0 as plait_comm_waits. */
PLAIT_API int32_t plait_comm_doctor(const plait_comm *comm, uint64_t timeout_ns, char *text, size_t bytes);

/** Notes the caller's source line for the next call on comm, and returns comm. The macros below use it, so that waits
 *  and their failures name the line. Define PLAIT_NO_SITES to leave the macros out. */
PLAIT_API plait_comm *plait_comm_at(plait_comm *comm, const char *file, int32_t line);

#ifndef PLAIT_NO_SITES
#ifdef __FILE_NAME__
#define PLAIT_FILE __FILE_NAME__
#else
#define PLAIT_FILE __FILE__
#endif
#define plait_comm_recv(comm, ...)       plait_comm_recv(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_comm_barrier(comm)         plait_comm_barrier(plait_comm_at(comm, PLAIT_FILE, __LINE__))
#define plait_comm_allreduce(comm, ...)  plait_comm_allreduce(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_comm_reduce_scatter(comm, ...) \
    plait_comm_reduce_scatter(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_comm_broadcast(comm, ...)  plait_comm_broadcast(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_comm_allgather(comm, ...)  plait_comm_allgather(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_comm_allgatherv(comm, ...) plait_comm_allgatherv(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
