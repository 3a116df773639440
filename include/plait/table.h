/* plait/table.h - parameter tables: all shared state of every algorithm.
 *
 * A *job* is what a worker (or server) takes part in; it owns *tables* and their common clock. A table is
 * rows of fixed width, dense (rows 0 .. rows-1) or sparse (any 64-bit key, growing by key), of float32,
 * float64 or 64-bit whole numbers. A worker reads with `get`, updates with `inc`, and ends an iteration with
 * `clock`, which ticks all tables of the job. How an update travels is the table's *topology* (local, allreduce,
 * ps; hybrid is allreduce for a dense table and ps for a sparse or keyed one), what a get may miss is its
 * *consistency* (bsp, ssp:S, async and others, see plait/consistency.h); an algorithm does not see either.
 *
 * A table is *additive* (no rule: an inc is a delta; own incs are visible at once) or *ruled* (an inc is a
 * gradient for an update rule; a get in clock c holds the worker's own pushes of clocks before c).
 *
 * Papers: Li et al., "Scaling Distributed Machine Learning with the Parameter Server", OSDI 2014 (keys,
 * push and pull, server functions); Ho et al., "More Effective Distributed ML via a Stale Synchronous
 * Parallel Parameter Server", NIPS 2013 (get, inc, clock).
 *
 * Threads: a job and its tables belong to the rank's thread, as its plait_comm does; under `async` over `local` get and
 * inc may be called by several threads of the rank at once (Hogwild). There an additive table loses no inc; on a ruled
 * one a step may overwrite those that others take on the same value meanwhile (docs/consistency.md counts them).
 * Errors not listed at a call: EINVAL, ENOMEM, EPEER a rank that is needed is lost, ETIMEOUT a wait has
 * expired (the text says who held it up), ECOMM. The text is in plait_comm_error().
 */
#ifndef PLAIT_TABLE_H
#define PLAIT_TABLE_H

#include <plait/group.h>
#include <plait/job.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct plait_table plait_table;

/* --- update rules -------------------------------------------------------------------------------- */

/* Which rule an owner applies to pushed gradients, and its numbers; docs/optimizers.md has the formulas. The struct
 * lies inside plait_table_opts and never grows: new numbers become fields at the end of plait_table_opts. */
typedef struct plait_rule_opts {
    size_t      size;            /* set by plait_rule_opts_init                                        */
    const char *name; /* "sgd" | "momentum" | "adagrad" | "adam" | "ftrl", or one of the job's; NULL: additive */
    double      learning_rate;   /* > 0; default per rule: 0 means the rule's own                      */
    double      momentum;        /* momentum: 0.9; in [0, 1)                                           */
    double      beta1, beta2;    /* adam: 0.9, 0.999                                                   */
    double      epsilon;         /* adam, adagrad: 1e-8                                                */
    double      ftrl_beta;       /* ftrl: 1.0                                                          */
    double      l1, l2;          /* of the objective's penalty; default 0                              */
    const char *schedule;        /* "constant" | "invsqrt" | "cosine"; NULL: constant                  */
    int         staleness_aware; /* 1: a push counts as 1 / (1 + lag) of itself, lag being the clocks' worth of other
                                    workers' pushes applied since the values were fetched that it was computed on
                                    (Zhang et al. 2016); on servers, where pushes are applied one by one, and where
                                    no values come unasked (essp), only */
    int64_t     schedule_clocks; /* clocks until cosine reaches 0; the clock at which invsqrt halves   */
} plait_rule_opts;

PLAIT_API void plait_rule_opts_init(plait_rule_opts *opts);

/* --- tables -------------------------------------------------------------------------------------- */

/* What a table makes of the values that are pushed to a row: its *combine*, value by value.
 *
 *   add  their sum. A row begins with 0
 *   min  the least of them. It begins with infinity (PLAIT_I64: INT64_MAX)
 *   max  the greatest. It begins with minus infinity (INT64_MIN)
 *   last the row of the latest clock; of one clock that of the worker with the highest number. It begins with 0
 *
 * inc pushes a value, so under min "inc of 5" says: 5 at most. A get holds what the consistency says of which incs it
 * holds, combined; own incs are seen at once. Where "zeros" is said of a row that nobody has pushed to, it holds what
 * its combine begins with.
 *
 * min and max are idempotent and monotone: it does not matter in which order incs come, nor how often. So a doubled or
 * late one does no harm, and what a worker reads of a row never goes up again (min), or down (max), under any policy,
 * save where an update of its own was dropped (plait_job_opts.backup).
 * They are exact. A NaN that is pushed is passed over, and -0 is 0. Refused with them are an update rule, averages of
 * copies (gossip, local-sgd), bounds on what is added (vap), and filters that look at values.
 *
 * Under last an inc replaces the whole row; of a worker's incs of one clock the one that it made last counts, and a key
 * that is named twice counts as named last. A dense table is keyed then. What holds under every policy: a get holds the
 * last of the incs that the consistency says it holds, save that a worker's own inc of its clock is what it reads until
 * that has been sent; it never reads an earlier one again. Refused are, beside what min and max refuse: async over
 * local, policies that push several clocks as one (downpour), opts.aggregate and opts.replicas 2. */
typedef struct plait_table_opts {
    size_t          size;         /* set by plait_table_opts_init                                      */
    const char     *name;         /* unique in the job; used in messages and files                     */
    plait_type      type;         /* PLAIT_F32 (default), PLAIT_F64 or PLAIT_I64. Whole numbers count exactly: a sum is
                                     the same in any order, and wraps around. Additive tables only, not under gossip */
    const char     *combine;      /* "add" | "min" | "max" | "last"; NULL: add. See above              */
    int64_t         rows;         /* dense: > 0; 0: sparse, grows by key                               */
    int64_t         cols;         /* values of a row, > 0; default 1                                   */
    int             keyed;        /* 1: a dense table whose updates are sparse and are pushed by key   */
    const char     *topology;     /* NULL: the job's                                                   */
    const char     *consistency;  /* NULL: the job's                                                   */
    const char     *filter;       /* NULL: the job's; "": none                                         */
    int             exact;        /* 1 (or the job's is): a clock's updates are summed exactly, as PLAIT_SUM_EXACT
                                     does: each delta of an inc is a term, and the values' bits depend on neither the
                                     topology nor on which worker pushed what. Under bsp without backup workers only;
                                     filters that look at values are refused. An update takes 4 times the memory and
                                     bytes, save one of whole numbers, whose sums are exact as they are. */
    int             sharded;      /* 1: each worker holds the rule's state of its part of the values only, applies the
                                     rule there, and the values are gathered: less memory, the same bits
                                     (docs/collectives.md).
                                     Ruled dense tables that are not keyed, under allreduce x bsp.     */
    plait_rule_opts rule;         /* rule.name NULL: additive                                          */
    const void     *penalty;      /* dense, ruled: [rows, cols] factors on l1 and l2 of each value (type
                                     of the table; 0: not penalised); NULL: all 1. Copied.             */
    const void     *initial;      /* dense: [rows, cols] first values, the same on every worker; NULL: 0, or what the
                                     combine begins with. Copied. */
    plait_group    *group;        /* whose table it is (docs/groups.md); NULL: all workers'                       */
    int32_t         shards;       /* topology ps, dense: the most shards; 0: one on every server, of 4 KiB or more. Each
                                     worker sends each shard a message a clock. So if many workers read a small part of
                                     the rows each, few shards are faster                                          */
} plait_table_opts;

PLAIT_API void plait_table_opts_init(plait_table_opts *opts);
/** The same for a struct of `size` bytes: that of a program that was compiled for an older or newer version. */
PLAIT_API void plait_table_opts_init_sized(plait_table_opts *opts, size_t size);
#define plait_table_opts_init(opts) plait_table_opts_init_sized(opts, sizeof(plait_table_opts))

/* Only its members read and update a group's table. Read "workers", here and in plait/job.h, as "members". They alone
 * create, zero and drop it and call its server functions, and only their clocks count for its
 * consistency; they may end other numbers of clocks than the rest of the job, if that has no table that needs more. Its
 * rows lie on the members' ranks. `last` and turns go by the members' order of rank.
 * With opts.replicas 2 the other replica of a member's shards lies with the next member. Refused are groups in a job
 * with servers of their own ranks, backup workers or opts.aggregate, and of one rank with replicas 2. */

/** Adds a table to the job, which frees it at its end. Errors: EREFUSED topology and consistency do not go
 *  together, or not with this transport (the text has the reason and the nearest); ENAME unknown topology,
 *  consistency, rule (the nearest is named); EMISMATCH the workers' options differ; with opts.group also EREFUSED the
 *  caller is no member.
 *  Collective over the workers, in the same order on each. Behind the first clock: at a clock's edge, by all workers in
 *  the same clock (EMISMATCH), and a barrier as well; not with opts.replicas 2, nor where workers average copies
 *  (EREFUSED). */
PLAIT_API plait_status plait_table_create(plait_job *job, const plait_table_opts *opts, plait_table **table_out);

/** Frees a table and its rows everywhere; its name may be taken again. *table may be NULL, and is NULL afterwards. At a
 *  clock's edge: before the caller's first inc to it in the clock, by all workers in the same clock; a barrier as well
 *  (plait_job_barrier), so what was pushed to it has arrived, and nothing of it is under way. Errors: EINVAL behind an
 *  inc of the clock, after plait_job_leave, or while a checkpoint is taken; EMISMATCH a worker calls it in another
 *  clock or for another table; EREFUSED with opts.replicas 2, or where workers average copies. With an error the table
 *  stays. Collective over the workers. */
PLAIT_API plait_status plait_table_drop(plait_table **table);

PLAIT_API const char *plait_table_name(const plait_table *table);
PLAIT_API int64_t     plait_table_rows(const plait_table *table); /* 0: sparse */
PLAIT_API int64_t     plait_table_cols(const plait_table *table);
PLAIT_API const char *plait_table_topology(const plait_table *table);    /* its own: never hybrid */
PLAIT_API const char *plait_table_consistency(const plait_table *table); /* with parameters, "ssp:2" */

/** get: copies the rows keys [n], in the given order (repeats allowed), to values [n, cols]. A key that a
 *  sparse table does not hold reads as zeros. Strictly increasing keys are fastest.
 *  Waits where the consistency says so. _begin: keys and values are lent until the wait. Not collective. */
PLAIT_API plait_status plait_table_get(plait_table *table, int64_t n, const uint64_t *keys, void *values);
PLAIT_API plait_status plait_table_get_begin(plait_table *table, int64_t n, const uint64_t *keys, void *values,
                                             plait_request **request_out);

/** get of the rows first .. first+n-1 of a dense table, to values [n, cols]. */
PLAIT_API plait_status plait_table_get_range(plait_table *table, int64_t first, int64_t n, void *values);
PLAIT_API plait_status plait_table_get_range_begin(plait_table *table, int64_t first, int64_t n, void *values,
                                                   plait_request **request_out);

/** The same without a copy where none is needed: *values_out [n, cols] is borrowed, read-only, and valid
 *  until the worker's next clock, barrier, inc, update-type call or destroy. */
PLAIT_API plait_status plait_table_read(plait_table *table, int64_t first, int64_t n, const void **values_out);

/** inc: adds delta [n, cols] to the rows keys [n] (repeats add up); on a ruled table delta is a gradient,
 *  summed over `examples` rows of data (0 on an additive table; a worker that pushes one batch in pieces
 *  counts its rows once). Waits only where the consistency says so (a turn, a bound on values). _begin + wait: sent at
 *  once (while a get of the table is under way: after it, by the wait), acknowledged when the wait returns; keys and
 *  delta are lent until then. Not collective. */
PLAIT_API plait_status plait_table_inc(plait_table *table, int64_t n, const uint64_t *keys, const void *delta,
                                       int64_t examples);
PLAIT_API plait_status plait_table_inc_begin(plait_table *table, int64_t n, const uint64_t *keys, const void *delta,
                                             int64_t examples, plait_request **request_out);

/** inc of the rows first .. first+n-1 of a dense table by delta [n, cols]. */
PLAIT_API plait_status plait_table_inc_range(plait_table *table, int64_t first, int64_t n, const void *delta,
                                             int64_t examples);
PLAIT_API plait_status plait_table_inc_range_begin(plait_table *table, int64_t first, int64_t n, const void *delta,
                                                   int64_t examples, plait_request **request_out);

/** No inc of the table follows in this clock (one is refused, EINVAL). On a ruled table what the worker has pushed
 *  leaves now, while it computes on, as the gradients of a net's last layers do: to servers as a push (small ones
 *  together); under allreduce, where sums go by messages, as sums, begun from the table that was created last to the
 *  first, whichever is flushed first: so create a net's tables in the order in which it reads them. Else it leaves with
 *  the clock: additive tables, sharded ones, policies that hold updates back, hosts that add up, backup workers, a
 *  program's own policies that end clocks without some workers or, at clocks, show the worker its own updates, and
 *  memory that is shared; where threads may update it side by side (async over local) the call does nothing, and
 *  refuses no inc. Values and bits are the same in any case. A worker need not flush what others do; but until the
 *  clock has ended it calls no collective, and no table_create, barrier, leave or destroy (EINVAL). ENOMEM: it is as if
 *  the call had not been made, or the clock fails. Not collective; does not wait for others.
 *  Paper: Li et al., "PyTorch Distributed", VLDB 2020. */
PLAIT_API plait_status plait_table_flush(plait_table *table);

/** plait_job_holder and plait_job_inherits (plait/job.h) for this table. With opts.replicas 2 a group's table knows the
 *  deaths of its members alone, and each group's tables decide for themselves what counts of a dead member's clock. So
 *  after PLAIT_STAND_IN a program asks each table; tables whose clock has ended already inherit nothing in it, and show
 *  the next clock's values. So no item may depend on a table of another group: what stands in for it, computed from
 *  later values, would differ from what the dead worker added, and nobody would notice. The same holds of items of a
 *  table of all workers, whose clock ends after the groups'. home: the rank of a worker. holder returns a rank: home
 *  itself if it is no member, -1 if table is NULL. Not collective; the rank's own thread. */
PLAIT_API int32_t plait_table_holder(const plait_table *table, int32_t home, uint64_t item);
PLAIT_API int     plait_table_inherits(const plait_table *table, int32_t home, uint64_t item);

/** Zeroes the table: every value, and the rule's state; a sparse one holds no rows any more. No inc that any worker has
 *  made before it survives, one of earlier clocks that a policy or a filter has kept back included, and the next get
 *  sees zeros (or what the combine begins with); each inc behind it counts. It is a barrier as well
 *  (plait_job_barrier). At a clock's edge: before the caller's first inc to the table in its clock, by all workers in
 *  the same clock; under async over local no other thread calls meanwhile. Initial values do not come back.
 *  Errors: EINVAL behind an inc of the clock, or after plait_job_leave; EMISMATCH a worker calls it in another clock.
 *  Collective over the workers. */
PLAIT_API plait_status plait_table_zero(plait_table *table);

/** Runs the server function `name` (plait/server_function.h) over all rows of the tables, merges the shards' answers in
 *  order and copies them to answer. Several tables must be dense, and equal in rows, cols, type, topology, consistency.
 *  The function sees what a get of the caller would fetch (no copy of the worker's), less those of the caller's incs
 *  that have not been sent. get-type: not collective. update-type: collective over the workers with equal arguments;
 *  runs once a shard, after the updates of all clocks before the caller's, and every worker gets the same answer; only
 *  where reads have whole clocks, as under bsp, and not with workers that may join (EREFUSED). With opts.replicas 2 it
 *  runs at both replicas, and the call returns when both have run it. Errors: ENAME; ESHAPE the tables
 *  differ; EMISMATCH workers' calls of an update-type function differ; what the function returned. */
PLAIT_API plait_status plait_table_call(plait_table *const *tables, int32_t n_tables, const char *name,
                                        const void *args, size_t args_bytes, void *answer, size_t answer_bytes);

/** The same over rows [first, first + n) of dense tables. The function runs on the shards that own some of them, and
 *  sees and updates no other row; a get-type call sends the other shards no message. n 0: it runs nowhere, and answer
 *  is zeroed. Errors besides: EINVAL the range is not within the tables, or a table is sparse. */
PLAIT_API plait_status plait_table_call_range(plait_table *const *tables, int32_t n_tables, int64_t first, int64_t n,
                                              const char *name, const void *args, size_t args_bytes, void *answer,
                                              size_t answer_bytes);

/** Every row that a table holds (of a sparse one: in increasing order of keys): *keys_out [n], *values_out
 *  [n, cols], freed with plait_comm_free. The values are those that a get of all keys would copy at this moment: from
 *  the worker's own copies, where the consistency lets it read them, and with its own incs, as a get has them. A key
 *  that is not among them reads as zeros. Filters that round answers do not round a dump. Not collective. */
PLAIT_API plait_status plait_table_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out);

/** Notes where the next call stands in the caller's source, as plait_comm_at does. */
PLAIT_API plait_table *plait_table_at(plait_table *table, const char *file, int32_t line);

#ifndef PLAIT_NO_SITES
#define plait_table_create(job, ...)      plait_table_create(plait_job_at(job, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_table_zero(table)           plait_table_zero(plait_table_at(table, PLAIT_FILE, __LINE__))
#define plait_table_get(table, ...)       plait_table_get(plait_table_at(table, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_table_get_range(table, ...) \
    plait_table_get_range(plait_table_at(table, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_table_read(table, ...)      plait_table_read(plait_table_at(table, PLAIT_FILE, __LINE__), __VA_ARGS__)
#define plait_table_dump(table, ...)      plait_table_dump(plait_table_at(table, PLAIT_FILE, __LINE__), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
