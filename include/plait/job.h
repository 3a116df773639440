/* plait/job.h - what a worker (or server) takes part in: a job owns tables (plait/table.h) and their common clock.
 *
 *     plait_run(&comm_opts, &job_opts, work, user, &error)   work: creates tables; in a loop: get, inc, plait_job_clock
 *
 * A worker ends an iteration with plait_job_clock, which ticks all tables of the job; how long it waits there, or at a
 * later get, for the others is the tables' consistency.
 *
 * Threads: a job and its tables belong to the rank's thread, as its plait_comm does.
 * Errors not listed at a call: EINVAL, ENOMEM, EPEER a rank that is needed is lost, ETIMEOUT a wait has
 * expired (the text says who held it up), ECOMM. The text is in plait_comm_error().
 */
#ifndef PLAIT_JOB_H
#define PLAIT_JOB_H

#include <plait/comm.h>
#include <plait/consistency.h>
#include <plait/filter.h>
#include <plait/rule.h>
#include <plait/server_function.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_job plait_job;

typedef struct plait_job_opts {
    size_t                size;        /* set by plait_job_opts_init                                   */
    const char           *topology;    /* default of the job's tables; NULL: local, or ps where ranks are processes */
    const char           *consistency; /* default of the job's tables; NULL: bsp                       */
    int64_t               batch;       /* b: rows (examples) of all workers in a clock; default 1      */
    const plait_function *functions;   /* server functions [n_functions], the same on every rank       */
    int32_t               n_functions;
    const plait_consistency *policies; /* the program's own [n_policies], beside Plait's; the same on every rank */
    int32_t               n_policies;
    int32_t               backup;      /* bsp on servers only: a clock is complete without its `backup` slowest workers,
                                          whose late updates are dropped (Chen et al. 2016); default 0 */
    const char           *filter;      /* on messages, default of the job's tables: "key-cache,fixed8"; NULL: none */
    const plait_filter   *filters;     /* the program's own [n_filters], beside Plait's; the same on every rank */
    int32_t               n_filters;
    const plait_rule     *rules;       /* the program's own [n_rules], 16 at most, beside Plait's; alike on all ranks */
    int32_t               n_rules;
    uint64_t              seed;        /* of filters' random numbers; default 0                        */
    const char           *aggregate;   /* "host": the workers of a host add up their updates before anything leaves it
                                          (ps under bsp; allreduce by the hierarchical collective); NULL: each sends
                                          its own */
    int                   exact;       /* 1: default of the job's tables; default 0                    */
    int64_t               first_clock; /* the clock that the job begins in, the same on all workers: that of a
                                          checkpoint whose tables are to be restored (plait/checkpoint.h); default 0 */
    int32_t               replicas;    /* copies of each shard: 1 (default) or 2, which lie on ranks of which any one
                                          may die: topology ps, and what else docs/failures.md says; the workers'
                                          collectives go on, too (see plait/comm.h)                        */
    int32_t               spares;      /* with replicas 2: the last `spares` workers have no shards, and of the program
                                          no items; they take part in all clocks (ssp, essp: with a get in each, to keep
                                          in step; under async nothing does), barriers and collectives. What a dead
                                          worker held falls to spares that live first. 0 <= spares < workers */
} plait_job_opts;

PLAIT_API void plait_job_opts_init(plait_job_opts *opts);

/** Runs work on every worker, while servers serve; this is plait_comm_run, plait_job_create, work, plait_job_destroy
 *  (so work does not destroy its job: EINVAL). comm_opts and job_opts may be NULL. Collective over the job's
 *  processes. */
typedef plait_status plait_work_fn(plait_job *job, void *user);
PLAIT_API plait_status plait_run(const plait_comm_opts *comm_opts, const plait_job_opts *job_opts, plait_work_fn *work,
                                 void *user, plait_error *error_out);

/** Joins a job. opts may be NULL. A rank is in one job at a time (plait_train has one of its own); jobs that are to
 *  live side by side have a communicator each. Errors: EMISMATCH the ranks' options differ; EINVAL the rank is in a
 *  job that has not ended. Collective over all ranks. */
PLAIT_API plait_status plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out);

/** Leaves the job: returns when all workers have called it (a rank that holds shards serves until then), and frees its
 *  tables. Collective over all ranks; on a server rank this serves. */
PLAIT_API plait_status plait_job_destroy(plait_job **job);

PLAIT_API plait_comm *plait_job_comm(plait_job *job);

/** The caller's clock: the job's first, and how often it has called plait_job_clock. */
PLAIT_API int64_t plait_job_clock_now(const plait_job *job);

/** Ends the worker's clock: its incs of this clock leave, combined, one message a server. On return they
 *  are acknowledged (on a table without replicas: owned by the transport, delivered exactly once), and the
 *  worker is in the next clock. Whether a later get waits for other workers is the tables' consistency.
 *  Not collective by itself; every worker must tick as often as the others.
 *  With opts.replicas 2 it returns when both replicas hold them: under bsp a clock is complete then. Where meanwhile a
 *  worker has died that had not left, it returns (bsp) PLAIT_STAND_IN: the caller is still in the clock, adds what the
 *  dead one's items that plait_job_inherits gives it would have added (gets show this clock's values), and calls again,
 *  as often as it returns that. What the dead one had pushed in it counts, or what stands in for it, never both; which
 *  of the two, each shard decides by itself. So what stands in must be the same: of each item the same rows with the
 *  same values, whoever computes it, and a worker pushes nothing but items. A shard of a sparse or keyed table that
 *  sees other keys ends the run (EMISMATCH, with the table, the clock and the dead rank). Nobody sees other values, or
 *  other rows of a dense table that is not keyed.
 *  Under ssp:S, essp:S and async nobody stands in, others hold the items from their next clock on (plait_job_holder).
 *  The dead one's items of clocks between its last and the heir's are done by nobody: of up to S + 1 clocks, and of
 *  those that the heir ends before it hears of the death; where the heir was behind, they are done twice, of up to S
 *  clocks. Under async no number bounds either. */
PLAIT_API plait_status plait_job_clock(plait_job *job);

/** With opts.replicas 2: who computes what? An item is something of a worker's own (a block of its data, say), its home
 *  that worker. holder: the home while it lives, as far as the caller's clocks have shown. A dead worker's items are
 *  spread evenly over the spares that live, or, when no spare does, over all workers that live: alike for all who know
 *  of the same deaths, and a further death moves only what the dead had. inherits: after PLAIT_STAND_IN, is the item
 *  the caller's, and was not in this clock so far? From the next clock holder says so, too.
 *  Paper: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", ToN 1998. */
PLAIT_API int32_t plait_job_holder(const plait_job *job, int32_t home, uint64_t item);
PLAIT_API int     plait_job_inherits(const plait_job *job, int32_t home, uint64_t item);
/** plait_job_clock in two halves: what leaves, leaves; sums (allreduce) fly while the caller computes; the wait ends
 *  the clock. A call on the job or its tables in between ends it first. Where a table's topology is allreduce all
 *  workers end a clock by the same of the two calls (else EMISMATCH). Not overlapped: sums of sharded tables, gossip's
 *  averages. Refused with opts.replicas 2 (EREFUSED): a clock's end may have to be said again. */
PLAIT_API plait_status plait_job_clock_begin(plait_job *job, plait_request **request_out);

/** Is the worker's clock complete without it, as far as it has heard by a get? Its incs of this clock will be dropped
 *  (at some owners, perhaps not at all of them): it does better to end the clock at once. Only with opts.backup. */
PLAIT_API int plait_job_is_late(const plait_job *job);

/** Updates that owners have dropped, up to the last barrier: counted by table, shard, worker and clock. */
PLAIT_API int64_t plait_job_dropped(const plait_job *job);

/** Waits until every worker has called it and all updates of clocks ended before it are applied; gets
 *  until the next clock contain them all, whatever the consistency (under `sequential` those until the worker's next
 *  inc take no turn). Collective over the workers. */
PLAIT_API plait_status plait_job_barrier(plait_job *job);

/** This worker takes no further clock: nobody waits for it any more. Its incs of a clock that has not
 *  ended are dropped, as far as the consistency has not sent them already and does not hold them together with those of
 *  clocks that have. Afterwards only barrier, get, read, call and destroy are allowed. Not collective. Refused with
 *  opts.replicas 2 (EREFUSED): a dead worker's items might fall to one that has left; and where a part of each worker
 *  is needed (EREFUSED): sums, averages of copies, opts.aggregate. */
PLAIT_API plait_status plait_job_leave(plait_job *job);

/** Notes where the next call stands in the caller's source, as plait_comm_at does. */
PLAIT_API plait_job *plait_job_at(plait_job *job, const char *file, int32_t line);

#ifndef PLAIT_NO_SITES
#define plait_job_create(comm, ...)       plait_job_create(plait_comm_at(comm, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_job_clock(job)              plait_job_clock(plait_job_at(job, PLAIT_FILE, __LINE__))
#define plait_job_barrier(job)            plait_job_barrier(plait_job_at(job, PLAIT_FILE, __LINE__))
#endif

#ifdef __cplusplus
}
#endif
#endif
