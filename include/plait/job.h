/* plait/job.h - jobs: workers (and servers) take part in a job, which owns tables (plait/table.h) and their common
 * clock.
 *
 *     plait_run(&comm_opts, &job_opts, work, user, &error)   work: creates tables; in a loop: get, inc, plait_job_clock
 *
 * A worker ends an iteration with plait_job_clock, which ends the clock of all tables of the job. The tables'
 * consistency decides how long it waits for the others, there or at a later get.
 *
 * Threads: a job and its tables belong to the rank's thread, as its plait_comm does.
 * Any call may also fail with EINVAL, ENOMEM, EPEER a rank that is needed is lost, ETIMEOUT a wait has expired (the
 * text says which ranks held it up), or ECOMM. The text is in plait_comm_error().
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
    const char           *topology;    /* default of the job's tables; NULL: local, or ps if ranks are processes */
    const char           *consistency; /* default of the job's tables; NULL: bsp                       */
    int64_t               batch;       /* b: rows (examples) that all workers together take in a clock; default 1 */
    const plait_function *functions;   /* server functions [n_functions], the same on every rank       */
    int32_t               n_functions;
    const plait_consistency *policies; /* the program's own [n_policies], beside Plait's; the same on every rank */
    int32_t               n_policies;
    int32_t               backup;      /* bsp on servers only: a clock is complete without its `backup` slowest workers,
                                          whose late updates are dropped (Chen et al. 2016); default 0 */
    const char           *filter;      /* default of the job's tables, on messages: "key-cache,fixed8"; NULL: none */
    const plait_filter   *filters;     /* the program's own [n_filters], beside Plait's; the same on every rank */
    int32_t               n_filters;
    const plait_rule     *rules;       /* the program's own [n_rules], at most 16, beside Plait's; alike on all ranks */
    int32_t               n_rules;
    uint64_t              seed;        /* of filters' random numbers; default 0                        */
    const char           *aggregate;   /* "host": the workers of a host add up their updates before a message leaves it
                                          (ps under bsp; allreduce by the hierarchical collective); NULL: each worker
                                          sends its own */
    int                   exact;       /* 1: default of the job's tables; default 0                    */
    int64_t               first_clock; /* the clock in which the job begins, the same on all workers: 0 (default), or
                                          that of a checkpoint whose tables will be restored (plait/checkpoint.h) */
    int32_t               replicas;    /* copies of each shard: 1 (default), or 2: any one rank may die, and the job and
                                          its collectives go on (plait/comm.h); or 3: any two at once. It needs
                                          topology ps, or allreduce, where 2 only says that the job goes on;
                                          docs/failures.md has the other conditions                        */
    int32_t               spares;      /* with replicas 2: the last `spares` workers have no shards, and get no items of
                                          the program. They take part in all clocks, barriers and collectives; under
                                          ssp and essp they get in each clock to keep in step (under async nothing
                                          does). Living spares are the first to take over what a dead worker held.
                                          0 <= spares < workers */
    struct plait_events  *events;      /* the log of what the ranks do (plait/events.h), of all ranks or of none; it is
                                          closed after the run. NULL: none                                 */
    int32_t               slots;       /* with replicas 2 under bsp: the last `slots` workers have no shards, and are
                                          away at first: they make the tables like all others, and may join
                                          (plait_job_join). 0 <= slots < workers; not with spares. Unless ranks only
                                          serve, shards then move: who joins gets a share, who leaves hands its own
                                          over (docs/elastic.md)                                           */
    int32_t               logical_servers; /* with slots: a table has so many shards for each worker, which move one by
                                          one, as long as each has 4 KiB. 0 (default): shards for the first ranks, and
                                          for those who join if each then has 64 KiB                        */
    uint64_t              move_rate;   /* with slots: so many bytes of rows a second leave a rank at most because shards
                                          move; 0 (default): no bound. A rank's death is made good without one       */
    int                   revives;     /* with slots, over sim: 1: the body runs again on a worker that has died and
                                          that the cluster's file starts anew (docs/simulation.md). It creates the
                                          job and the same tables again, without the others, holds no shards, is away
                                          and may join; no shard of the job moves. The run has no other job. Default 0:
                                          it votes, and no more */
} plait_job_opts;

PLAIT_API void plait_job_opts_init(plait_job_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_job_opts_init_sized(plait_job_opts *opts, size_t size);
#define plait_job_opts_init(opts) plait_job_opts_init_sized(opts, sizeof(plait_job_opts))

/** Runs work on every worker, while servers serve. It calls plait_comm_run, plait_job_create, work, plait_job_destroy;
 *  so work must not destroy its job (EINVAL). comm_opts and job_opts may be NULL. Collective over the job's
 *  processes. */
typedef plait_status plait_work_fn(plait_job *job, void *user);
PLAIT_API plait_status plait_run(const plait_comm_opts *comm_opts, const plait_job_opts *job_opts, plait_work_fn *work,
                                 void *user, plait_error *error_out);

/** Joins a job. opts may be NULL. A rank is in one job at a time (plait_train makes its own); jobs that live at the
 *  same time need a communicator each. Errors: EMISMATCH the ranks' options differ; EINVAL the rank is in a job that
 *  has not ended. Collective over all ranks. In a later life of the rank (plait_comm_life) it joins the job in which
 *  the former one died, by itself; servers compare the options when it creates tables. */
PLAIT_API plait_status plait_job_create(plait_comm *comm, const plait_job_opts *opts, plait_job **job_out);

/** Leaves the job: returns when all workers have called it, and frees the job's tables. Ranks that hold shards serve
 *  until then; a server rank serves in this call. Collective over all ranks. */
PLAIT_API plait_status plait_job_destroy(plait_job **job);

PLAIT_API plait_comm *plait_job_comm(plait_job *job);

/** The caller's clock: the job's first clock plus the number of clocks that the caller has ended. */
PLAIT_API int64_t plait_job_clock_now(const plait_job *job);

/** Ends the worker's clock: its incs of this clock leave, combined, in one message to each server. On return they are
 *  acknowledged (on a table without replicas: the transport has them and delivers them exactly once), and the worker is
 *  in the next clock. The tables' consistency decides whether a later get waits for other workers. The call is not
 *  collective, but all workers must end the same number of clocks.
 *  With opts.replicas 2 (3) it returns when all replicas hold the incs: under bsp the clock is then complete. If a
 *  worker that had not left has died meanwhile, the call returns PLAIT_STAND_IN under bsp. Then the caller is still in
 *  the clock: it adds the updates of those items of the dead worker that plait_job_inherits gives it (gets show this
 *  clock's values), and calls again, as often as it gets PLAIT_STAND_IN. Either the dead worker's pushes in this clock
 *  count or those that replace them, never both; each shard decides for itself. So the replacements must be equal: each
 *  item gives the same rows with the same values, whichever worker computes it, and a worker pushes updates of items
 *  only. If a shard of a sparse or keyed table gets other keys, the run ends (EMISMATCH, with the table, the clock and
 *  the dead rank). Other values, and other rows of a dense table that is not keyed, are not detected.
 *  Under allreduce the clock ends for all living workers with the same sums, or for none of them.
 *  Tables that apply updates at once (ssp:S, essp:S, async and the like; also beside tables of bsp) have no
 *  replacements: other workers, the heirs, hold the items from their next clock on (plait_job_holder). Items of clocks
 *  between the dead worker's last and its heir's are not computed: of up to S + 1 clocks, and of those that the heir
 *  ends before it hears of the death. If the heir was behind, they are computed twice, for up to S clocks. Under async,
 *  vap and downpour both numbers are unbounded. */
PLAIT_API plait_status plait_job_clock(plait_job *job);

/** With opts.replicas 2: which worker computes an item? An item is a part of a worker's work, such as a block of its
 *  data; that worker is the item's home. holder returns the home while it lives, as far as the caller's clocks have
 *  shown. A dead worker's items are spread evenly over the living spares or, without them, over all living workers.
 *  Callers that know of the same deaths get the same answer, and another death moves only the items of the dead worker.
 *  (In the same clock they may not: one that hears of a death before it hears that its clock is safe counts the dead
 *  worker out a clock sooner. So nothing that all workers must do alike may depend on the answer.)
 *  inherits, after PLAIT_STAND_IN: 1 if the item has become the caller's in this clock. From the next clock on, holder
 *  says so, too. Both are about the tables of all workers; for a group's see plait_table_holder (plait/table.h).
 *  Paper: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", ToN 1998. */
PLAIT_API int32_t plait_job_holder(const plait_job *job, int32_t home, uint64_t item);
PLAIT_API int     plait_job_inherits(const plait_job *job, int32_t home, uint64_t item);
/** plait_job_clock in two halves: this call sends the updates, sums (allreduce) are under way while the caller
 *  computes, and the wait for the request ends the clock. A call on the job or its tables in between ends it first. If
 *  a table's topology is allreduce, all workers must end a clock by the same one of the two calls (else EMISMATCH).
 *  Sums of sharded tables and gossip's averages do not overlap. Refused with opts.replicas 2 (EREFUSED), where the end
 *  of a clock may have to be repeated. */
PLAIT_API plait_status plait_job_clock_begin(plait_job *job, plait_request **request_out);

/** 1 if the worker's clock is complete without it, as far as its gets have shown. Then owners (some, or all of them)
 *  will drop its incs of this clock, and it should end the clock at once. Only with opts.backup. */
PLAIT_API int plait_job_is_late(const plait_job *job);

/** The number of updates that owners have dropped until the last barrier; one for each table, shard, worker and
 *  clock. */
PLAIT_API int64_t plait_job_dropped(const plait_job *job);

/** Waits until every worker has called it, and all updates of earlier clocks are applied. Gets until the next clock
 *  contain all these updates, whatever the consistency (under `sequential`, gets until the worker's next inc do not
 *  wait for a turn). Collective over the workers. */
PLAIT_API plait_status plait_job_barrier(plait_job *job);

/** Says that this worker ends no more clocks, so that no worker waits for it. Its incs of the clock that has not ended
 *  are dropped, unless the consistency has sent them already, or holds them together with incs of ended clocks.
 *  Afterwards only barrier, get, read, call and destroy are allowed. Not collective. EREFUSED if a part from each
 *  worker is needed (sums, averages of copies, opts.aggregate).
 *  With opts.replicas 2 the call takes the place of plait_job_clock in the worker's last clock, whose incs count, and
 *  may return PLAIT_STAND_IN like it; then it is called again. From the next clock on the others hold the worker's
 *  items (plait_job_holder), so nothing is lost and nothing done twice. The worker's rank keeps its shards until
 *  plait_job_destroy; until then no barrier or collective is allowed, which go without it. EREFUSED but for tables
 *  of bsp on servers, without filters or groups.
 *  opts.slots: its shards move to the others, and it may join again. */
PLAIT_API plait_status plait_job_leave(plait_job *job);

/** With opts.slots: a worker that is away (one of the last `slots`, or one that has left) takes part from clock `from`
 *  on, or, if the others are there already, from one of their next clocks on; if a simulated cluster's file says that
 *  it joins, from that time on, unless `from` comes first. The call waits until then, however long,
 *  and holds nobody up. On return the worker is at the end of the clock before: plait_job_clock_now is the clock where
 *  it begins, and all agree by plait_job_holder from that clock on. It takes part in barriers and collectives of the
 *  others that follow. PLAIT_END: all others have ended the job; what is left is plait_job_destroy. EINVAL if the
 *  worker is in; EREFUSED in a job without slots. Not collective. */
PLAIT_API plait_status plait_job_join(plait_job *job, int64_t from);

/** Should this worker be in? 0: the file of a simulated cluster (docs/simulation.md, `join` and `leave`) has it away by
 *  now: it then ends its clock by plait_job_leave, and calls plait_job_join. 1 in all other cases. */
PLAIT_API int plait_job_wanted(const plait_job *job);

/** How often a shard has moved from the caller's rank to another; how many bytes of rows it sent to new replicas. */
PLAIT_API int64_t plait_job_moved(const plait_job *job);
PLAIT_API int64_t plait_job_moved_bytes(const plait_job *job);

/** How many workers are in, and live, as far as the caller's clocks have shown. */
PLAIT_API int32_t plait_job_present(const plait_job *job);

/* --- the tables of a job, as any rank sees them: docs/doctor.md ------------------------------------------------- */

/* What one rank has to do with a table. */
typedef struct plait_table_part {
    char       name[64];  /* of the table; "": the rank has not answered, and the other fields say nothing          */
    char       group[64]; /* whose members alone have it; "": all workers                                           */
    char       topology[32], consistency[48];
    plait_type type;
    int32_t    rank, members; /* members: how many workers take part in the table                                   */
    int64_t    rows, cols;    /* of the table; rows 0: it is sparse                                                 */
    int64_t    first, held;   /* the rank has rows first .. first + held - 1; of a sparse table `held` of any keys   */
    int        copy;          /* 1: they are its own copy of the whole table; 0: its shard; others are elsewhere     */
    int64_t    bytes;         /* of their values, keys and rule's state                                             */
    int64_t    version; /* the shard has all updates of clocks before this one. A copy has its worker's clock, under
                           gossip and local-sgd without what has not come yet; -1: no rows are here, or all workers
                           share them without a lock (async over local)                                             */
    int64_t    clock;              /* in which the worker is; -1: the rank only serves                              */
    int64_t    last_get, last_push; /* the clock in which it last read, and last called inc; -1: never              */
    int32_t    replica_of; /* with opts.replicas: the rank of whose shard these rows are a further replica; -1: the
                              rows are the rank's own, and the other fields say what it is in the table             */
    int        serves;     /* of a second replica: 1: it serves in place of that rank, which is dead; 0: it follows */
} plait_table_part;

/** Says which ranks have what of which table: *parts_out [*n_out], sorted by name, group and rank, freed with
 *  plait_comm_free. Ranks are asked wherever they are; those of other processes have timeout_ns to answer, also while
 *  they compute. Each rank tells of its own moment, and goes on meanwhile; behind a barrier of all workers all is of
 *  that moment. A rank has one more part for each second replica of a shard (opts.replicas) that lies on it. Errors:
 *  ENOMEM. Any rank that has not ended, any thread, one call at a time of a process. Not collective. */
PLAIT_API plait_status plait_job_describe(const plait_comm *comm, uint64_t timeout_ns, int64_t *n_out,
                                          plait_table_part **parts_out, plait_error *error_out);

/** Notes the caller's source line for the next call, as plait_comm_at does. */
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
