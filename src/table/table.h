/* table - parameter tables: jobs, tables, and the ways in which tables live.
 *
 *     table.c        the public calls on tables: checked here, then handed to the table's topology; table_create.c,
 *                    table_call.c for server functions and dumps, zero.c and drop.c for plait_table_zero and _drop
 *     job.c          the public calls on jobs: creation (job_options.c) and end; job_clock.c: clock, barrier, departure
 *     events.h       what tables raise for the event log
 *
 *     state/         what a table is and holds, wherever it lives: its description (spec.h) and where its rows lie
 *                    (placement.h), a shard's rows and how pushes move them (shard.h, store.h, updates.h), snapshots of
 *                    them (snap.h), and what a checkpoint takes of tables (capture.c) and puts back (put_back.c)
 *     client/        a worker's side: the machine that talks with servers (client.h), what is pending (pending.h), gets
 *                    (ask.c), pushes (push.c), copies of values that were read (cache.c)
 *     server/        the other side: the machine that owns shards (server.h), the messages of both (wire.h), server
 *                    functions, and who computes which block of the data (leases.h)
 *     copies/        values that lie whole on several ranks. A *replica* is a copy of a server's shards (replicas.h;
 *                    hosted.h has those of other servers; client_replicas.c is the worker's part). A *mirror* is a
 *                    worker's own copy of a whole table under allreduce (mirror.h) or gossip (gossip.h). A *backup
 *                    worker* is no copy: a clock is complete without the updates of so many of the slowest workers
 *                    (consistency/bsp.c).
 *     consistency/   when a get may be served and a push applied: one policy a file
 *     topology/      which way updates travel: served.c (local and ps: messages to shards), allreduce.c (sums that
 *                    move mirrors; buckets.h), gossip.c, local_sgd.c, hogwild.c (async over local: the shared values
 *                    themselves); topologies.c is the list, pairs.c says what goes with what
 *     combine/       how what several workers push to a row comes together: one file each
 *     filter/        filters on messages, one a file; client_filter.c and server_filter.c put messages through them
 *
 * Only job.c, topology/ and what goes by client/exchange.h know of ports and waits; everything else is fed.
 */
#ifndef PLI_TABLE_TABLE_H
#define PLI_TABLE_TABLE_H

#include "comm/comm.h"
#include "comm/group.h"
#include "table/client/client.h"
#include "table/client/exchange.h"
#include "table/copies/hosted.h"
#include "table/copies/gossip.h"
#include "table/topology/topology.h"

/* Rows that a call names: keys [n], or first .. first + n - 1. Checked. */
typedef struct pli_rows {
    const uint64_t *keys; /* NULL: by range */
    int64_t         first, n;
} pli_rows;

struct pli_function_call; /* table/server/functions.h */
struct pli_rest;          /* table/state/rest.h */
struct pli_own_ops;       /* table/state/own.h */
struct pli_agreed_part;   /* comm/agreed_sums.h */

/* What a topology does for a table. All calls return with *err filled where they fail. */
typedef struct pli_topology_ops {
    bool any_thread; /* several threads of the rank may call get and inc at a time: they never wait, and are not
                      * noted */
    /** Collective over the workers, with equal options. initial, penalty as in plait_table_opts. */
    plait_status (*open)(plait_table *table, const void *initial, const void *penalty, plait_error *err);
    void (*close)(plait_table *table); /* also after a failed open */
    plait_status (*get)(plait_table *table, const pli_rows *rows, void *values, plait_error *err);
    /** NULL: the get is complete when it has begun. */
    plait_status (*get_begin)(plait_table *table, const pli_rows *rows, void *values, plait_request **request_out,
                              plait_error *err);
    plait_status (*read)(plait_table *table, int64_t first, int64_t n, const void **values_out, plait_error *err);
    plait_status (*inc)(plait_table *table, const pli_rows *rows, const void *delta, int64_t examples,
                        plait_error *err);
    /** Sends what inc has gathered. If a get of the table is under way, it comes first: the call waits for it, or
     *  (wait false) sends nothing yet. NULL: nothing to send. */
    plait_status (*flush)(plait_table *table, bool wait, bool *sent_out, plait_error *err);
    /** The worker makes no more incs to a ruled table in this clock, so what it has may leave now. NULL: it leaves
     *  with the clock. */
    plait_status (*depart)(plait_table *table, plait_error *err);
    /** The worker's clock is about to end: what the call adds leaves with it. NULL: nothing is added. */
    plait_status (*ends)(plait_table *table, plait_error *err);
    plait_status (*clock)(plait_table *table,
                          plait_error *err); /* the worker's clock has ended; NULL: nothing to do  */
    /** Replaces clock for tables whose clocks end together, in two halves. clock_begin: what others need is on its
     *  way, or in a bucket that will be (topology/buckets.h). clock_end: what the next clock needs has come. In between
     *  nobody makes any other call on the table. NULL: clock. */
    plait_status (*clock_begin)(plait_table *table, plait_error *err);
    plait_status (*clock_end)(plait_table *table, plait_error *err);
    /** The table whose sum this clock ends with, in buckets: the table itself, or one inside it. NULL, or NULL
     *  returned: none. */
    plait_table *(*summed)(plait_table *table);
    /** The same for a sum that waits to be made of filtered parts (topology/coded_sums.h). */
    plait_table *(*coded)(plait_table *table);
    /** With sums that go on without the dead (topology/agreed_clock.h), instead of clock and its halves: the mirror
     *  whose sum this clock ends with, or NULL; it is the same until the clock has ended. NULL: such sums are not of
     *  this topology, and its clock is ended otherwise. */
    struct pli_mirror *(*held)(plait_table *table);
    /** With them, of a table without such a mirror: give writes what the table has to give to the step that ends the
     *  clock to part, and counts it in *n; lent until `gave`, which hears what became of the step: PLAIT_OK, all have
     *  it; PLAIT_STAND_IN, nobody. It hears of a failure, too. give itself answers PLAIT_STAND_IN if another worker has
     *  died meanwhile, so that no step can end. NULL: nothing. */
    plait_status (*give)(plait_table *table, struct pli_agreed_part *part, int64_t *n, plait_error *err);
    plait_status (*gave)(plait_table *table, plait_status status, plait_error *err);
    /** With them: the clock has ended, but is not counted yet. NULL: nothing to do. */
    void (*ended)(plait_table *table);
    /** At a barrier or the end of the job: applies what is under way. NULL: nothing is. */
    plait_status (*settle)(plait_table *table, plait_error *err);
    void (*refresh)(
        plait_table *table);           /* at a barrier: copies held may be too old from now on; NULL: it holds none  */
    void (*leave)(plait_table *table); /* no clock follows: drops what was not sent; NULL: it keeps nothing          */
    /** Runs a server function (server/functions.h). NULL: the pair does not have PLAIT_FUNCTIONS. */
    plait_status (*call)(plait_table *const *tables, int32_t n, const struct pli_function_call *call, void *answer,
                         plait_error *err);
    /** Zeroes the rows, without bringing initial values back; called behind a barrier, and no worker goes on before
     *  all have done it. number: how many-th zeroing of the table this is. */
    plait_status (*zero)(plait_table *table, int64_t number, plait_error *err);
    /** Behind a barrier, and no worker goes on before all have done it: nobody else knows the table any more. close
     *  follows. NULL: only this worker knows its state. */
    plait_status (*drop)(plait_table *table, plait_error *err);
    /** keys, values: of pli_malloc. Sparse tables only; any order. */
    plait_status (*dump)(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out, plait_error *err);
    /** As pli_table_ahead. NULL: prefetching would gain nothing. */
    void (*ahead)(const plait_table *table, int64_t n, const uint64_t *keys);
    /** As pli_job_overlaps, for this table. NULL: it has no sums. */
    bool (*overlaps)(const plait_table *table);
    /** What filters keep of this worker's updates: state/rest.h. rest_out is empty, and has what is there after an
     *  error, too. NULL: nothing is ever kept. */
    plait_status (*rest_take)(plait_table *table, struct pli_rest *rest_out);
    plait_status (*rest_add)(plait_table *table, const struct pli_rest *rest);
    void (*rest_forget)(plait_table *table);
    /** All rows of the table, if the worker holds them itself and they are the same on all workers: a checkpoint takes
     *  and puts back rows there. NULL: shards on servers have the rows. */
    struct pli_shard *(*copy)(const plait_table *table);
    /** Of a table with copy that is sharded: sets the rule's state of the snapshot's rows aside (topology/sharded.h;
     *  snap NULL: there was no memory for it, which all hear; collective), and puts rows of a slot back. */
    plait_status (*keep_slices)(plait_table *table, struct pli_snap *snap, plait_error *err);
    void (*put_slices)(plait_table *table, int32_t slot, int64_t first, int64_t n, const void *rows);
    /** What a checkpoint takes of a worker's mirror, where mirrors differ. NULL: they do not. */
    const struct pli_own_ops *own;
} pli_topology_ops;

extern const pli_topology_ops pli_served_ops, pli_mirror_ops, pli_hogwild_ops, pli_averaged_ops, pli_local_sgd_ops;

typedef struct pli_get_request pli_get_request;
typedef struct pli_bucket pli_bucket;

/* A job has a *part* for each group that has tables: a job of the members alone, with machines, ports and clocks of its
 * own (group_part.c). All that a table's files know is their table's job, be it the whole or a part. */
struct plait_job {
    plait_comm     *comm;
    plait_group    *group; /* whose part it is; NULL: the whole job */
    plait_job     **part;  /* [parts] of the whole job, by the groups' numbers */
    int64_t         parts, parts_capacity;
    pli_event_group as_group; /* of a part: how its events say whose they are, and */
    pli_event_sink  sink;     /* where they go first */
    pli_layout      layout;
    char            topology[PLI_TOPOLOGY_TEXT], consistency[PLI_CONSISTENCY_TEXT], filter[PLI_FILTERS_TEXT];
    int64_t         batch;
    bool            exact;
    plait_function *functions; /* [layout.n_functions], a copy with its own names */
    plait_consistency *policies; /* [layout.n_policies], a copy                      */
    plait_rule        *rules;    /* [layout.n_rules], a copy                         */
    plait_filter   *filters;     /* [layout.n_filters], a copy                       */
    bool            worker, serves, left, ticking; /* ticking: between the halves of a clock */
    bool            quiet; /* in pli_job_pass */
    bool            revives; /* workers that have died may return (job_roster.c) */
    plait_group    *fellows; /* of a part: see pli_job_end_clocks_with; NULL: none. Lent */
    int64_t        *missing; /* [layout.workers] with fellows: for whom one of them must stand in */
    bool            lent; /* lent by plait_run to the program's work, which must not destroy it */
    int64_t         dropped; /* how many pushes were dropped, as of the last barrier */
    pli_server         server;
    pli_hosted         hosted; /* replicas of other servers' shards that lie on this rank */
    pli_client      client;
    pli_gossip      gossip; /* for tables that are averaged with neighbours */
    pli_port       *server_port, *replica_port, *client_port, *gossip_port;
    _Atomic int64_t clock; /* written by the worker's thread alone */
    plait_table   **table;
    int64_t         tables, tables_capacity;
    int32_t         next_id;
    pli_get_request *gets; /* begun and not yet complete */
    bool            laid;    /* this clock's buckets are laid out       */
    int64_t         flushed; /* how many tables get no more incs in this clock */
    struct pli_agreed_run *agreed; /* sums that go on without the dead (topology/agreed_clock.h); NULL: none */
    bool            agreed_clocks; /* clocks are such steps; else only collectives are */
    bool            agreed_carries; /* all workers have them, and they carry the job's collectives, too */
    bool            sums_made; /* beside tables on servers: the clock's sums are made, and are applied when servers
                                * have the clock, too */
    pli_bucket     *bucket; /* the buckets of sums, in the order in which they go: topology/buckets.c */
    int32_t         captures; /* how many have begun and not ended: state.c                */
};

/* Where a table lies in a larger one, of which groups have a piece each: its first row and column there, and the
 * larger one's size. rows 0: the table is whole. Only checkpoints and descriptions look at it. */
typedef struct pli_piece {
    int64_t rows, cols, row0, col0;
} pli_piece;

struct plait_table {
    plait_job              *job;
    pli_spec                spec;
    const pli_topology_ops *ops;
    plait_properties        has;     /* the properties that its pair has */
    bool                    flushed; /* no inc follows in this clock */
    bool                    spares_bytes; /* its sums take a form of few bytes, though others take fewer rounds; set
                                           * before the first clock, alike on all workers                          */
    int64_t                 updated; /* 1 + the clock of the last inc; 0: none. Unused for shared memory */
    int64_t                 zeros;   /* how many times it was zeroed, and */
    int64_t                *zeroed, zeroed_capacity; /* [zeros] in which clocks */
    pli_msg                *pins;    /* what read() has lent, newest first */
    void                   *state;   /* what the ops keep for it, from open to close */
    pli_piece               whole;   /* of which it is a piece */
    pli_sheet_row          *shown;   /* what others see of it (shown.h); NULL: nothing */
};

/** Was the rank started anew, so that the others have had the job for a while? */
static inline bool pli_job_lives_anew(const plait_job *job) { return pli_comm_incarnation(job->comm) > 1; }

/** Behind a clock with which workers have come: those hear how many times each table was zeroed, and in which clocks.
 *  came: this is one of them. (If all who were in have died since, nobody can tell.) Collective over those who are in.
 *  Errors: EFORMAT; ENOMEM; those of a wait. */
plait_status pli_job_tell_zeros(plait_job *job, bool came, plait_error *err);

/** Does a clock need a part of every worker? Then none may leave or stop by itself. */
static inline bool pli_table_needs_all(const plait_table *table) {
    return (table->has & PLAIT_LEAVING) == 0 || table->job->layout.aggregates;
}

/** The table's mirror whose sum this clock ends with, as its topology says; NULL: none. */
static inline struct pli_mirror *pli_table_held(plait_table *table) {
    return table->ops->held != NULL ? table->ops->held(table) : NULL;
}

/** Is the table summed, and has the worker its clock's sum already, though tables on servers still lack the clock? Then
 *  what is added in a dead one's stead counts for nothing here (topology/agreed_clock.h). */
static inline bool pli_table_has_ended(const plait_table *table) {
    return table->job->sums_made && !table->spec.topology.kind->on_servers;
}

/** The state of a table under pli_served_ops, and under pli_mirror_ops; only for the files of these ops. */
static inline pli_client_table *pli_served_of(const plait_table *table) { return table->state; }
static inline struct pli_mirror *pli_mirror_of(const plait_table *table) { return table->state; }

/* --- leases: who computes which block ----------------------------------------------------------------------- */

/** Asks for the worker's leases, at the clocks of the job that pli_lease_next names, and says what the worker has done
 *  since it last asked. The first call brings lease [*n], the blocks that the worker begins with. Then lease
 *  [terms->blocks] holds the *n leases from this clock on. Needs no table. Waits for one answer, and for no other
 *  worker. Not collective. */
plait_status pli_job_lease(plait_job *job, const pli_lease_terms *terms, const pli_pace *pace, pli_lease *lease,
                           int64_t *n, plait_error *err);

/* --- for job.c, table.c and the topologies ------------------------------------------------------------------ */

/** Raises that the worker has the answers of its update-type call, ran [n]; n 0: it has failed. */
void pli_table_raise_call(plait_table *const *tables, int32_t n_tables, const struct pli_function_call *call, int32_t n,
                          const pli_event_ran *ran);

/** Entered and left around each public call on a table. If several threads may call, nobody waits, so nothing is
 *  noted. */
static inline void pli_table_enter(plait_table *table, const char *call) {
    if (!table->ops->any_thread) pli_comm_enter(table->job->comm, call);
}
static inline plait_status pli_table_leave(plait_table *table, plait_status status) {
    return table->ops->any_thread ? status : pli_comm_leave(table->job->comm, status);
}

/** May the table be created or dropped now, behind the first clock? table_create.c. */
plait_status pli_table_check_late(const plait_table *table, plait_error *err);

/* The job's workers are those of the run or, in a part, the group's members. */

/** This rank's number among the job's workers (behind them: its servers). */
static inline int32_t pli_job_me(const plait_job *job) {
    return job->group != NULL ? plait_group_rank(job->group) : plait_comm_rank(job->comm);
}
/** The rank of the worker or server with this number. */
static inline int32_t pli_job_rank_of(const plait_job *job, int32_t number) {
    return pli_numbers_rank(pli_group_numbers(job->group), number);
}
/** pli_comm_absentees and pli_comm_is_absent by the numbers of the job's workers. */
static inline const uint8_t *pli_job_absentees(const plait_job *job) {
    return job->group != NULL ? pli_group_absentees(job->group) : pli_comm_absentees(job->comm);
}
static inline bool pli_job_is_absent(const plait_job *job, int32_t worker) {
    const uint8_t *absent = pli_job_absentees(job);
    return absent != NULL && absent[worker];
}
/** As pli_comm_absent: how many of the job's workers are absent. */
static inline int32_t pli_job_absent(const plait_job *job) {
    return job->group != NULL ? job->group->carriage.n_absent : pli_comm_absent(job->comm);
}
/* Collectives of the job's workers (group_part.c). */
plait_status pli_job_meet(plait_job *job); /* a barrier */
/** From now on a policy may tell this worker to leave out clocks, since it is slow (consistency asp): it is then late,
 *  as with backup workers (plait_job_is_late), until it has ended them. false: no policy does so. */
bool pli_job_may_leap(plait_job *job);
/** Where the job's machines raise events; NULL: nowhere. Those of a part say whose they are. */
const pli_event_sink *pli_job_events(const plait_job *job);
/** The rank's part in the job, and in its parts, has ended well. */
void pli_job_raise_done(plait_job *job);
plait_status pli_job_allgather(plait_job *job, const void *mine, size_t bytes, void *all);
plait_status pli_job_allreduce(plait_job *job, void *buf, int64_t n, plait_type type); /* sums */
void         pli_job_slice(const plait_job *job, int64_t n, int32_t worker, int64_t *first_out, int64_t *count_out);

/** The job's part for a group of which the rank is a member; it is made if there is none yet. Collective over the
 *  group's members. Errors: EMISMATCH a member is in another clock. */
plait_status pli_job_part(plait_job *job, plait_group *group, plait_job **part_out, plait_error *err);
/** Opens the machines of this rank: a server if it has shards, a client if it is a worker. job.c */
plait_status pli_job_open_machines(plait_job *job, plait_error *err);
/** Frees a job without a word to others, and its parts. job.c */
void pli_job_free(void *job);

/** Where calls of this rank leave their errors. */
static inline plait_error *pli_job_error(const plait_job *job) { return pli_comm_error(job->comm); }

/** Is there a job, and does no server function make this call? Else EINVAL, without a text. Any thread. */
plait_status pli_job_usable(const plait_job *job, const char *call);
/** The same for a table. Calls look for NULL among their other arguments themselves, under the names of these. */
static inline plait_status pli_table_usable(const plait_table *table, const char *call) {
    return table == NULL ? PLAIT_EINVAL : pli_job_usable(table->job, call);
}

/** Does it pay to begin a clock, do something else and then wait? Values and messages are the same then, and sums
 *  travel meanwhile. false: there are no sums, or the transport sums by itself, which is faster than to overlap. */
bool pli_job_overlaps(const plait_job *job);
/** The options of a table as this library knows them: the caller may be older or newer (base/sized.h). given NULL:
 *  defaults. Errors: those of pli_sized_take. */
plait_status pli_table_opts_take(const plait_table_opts *given, plait_table_opts *own, plait_error *err);
/** Checks the options of a job that is being created, and copies them into it. */
plait_status pli_job_take_options(plait_job *job, const plait_job_opts *opts, plait_error *err);
/** Before a barrier, or the job's end: checks that gets are complete and the clock is over (else EINVAL, in the name
 *  of the call), applies sums under way, and sends what tables have kept back. Collective if tables have sums. */
plait_status pli_job_settle(plait_job *job, const char *call, plait_error *err);
/** Checks that nothing is flushed in this clock. Others may have a part of a flushed sum already, or count on one, and
 *  would meet another collective. Else EINVAL, in the name of the call. */
plait_status pli_job_must_have_ended(const plait_job *job, const char *call, plait_error *err);
/** Ends a clock that is between its halves; does nothing if there is none. */
plait_status pli_job_finish_clock(plait_job *job, plait_error *err);
/** A barrier behind which reads go on as before it: averages are made, but are not what is read, unless they were
 *  before (topology/gossip.c, local_sgd.c). So a checkpoint changes nothing. Collective over the job's workers. */
plait_status pli_job_pass(plait_job *job);
/** The worker goes on after a barrier: its gets take their turn again if the consistency has turns. */
void pli_job_resume(plait_job *job);
/* copies/job_replicas.c, if servers have replicas (replicas.h): */

/** Waits until both replicas of all shards hold the clock, and ends it. PLAIT_STAND_IN: a worker has died in it. */
plait_status pli_job_wait_until_safe(plait_job *job, plait_error *err);
/** From now on the worker's clocks in the table's part end together with those of the group's other members, in their
 *  own parts, which have as many workers: member i of one part belongs together with member i of the others, and they
 *  die together (pli_comm_die_with). A clock ends in all of their parts or in none: if one of them must stand in for a
 *  dead worker, so must all, for the same ones (replicas.h, "several parts"). group NULL: no more. Where shards have no
 *  replicas, clocks of these members end together by themselves, and only the event log hears of it. Errors: ENOMEM;
 *  EINVAL it has more than one part, or none, with replicas. */
plait_status pli_job_end_clocks_with(plait_job *job, plait_group *group, plait_error *err);
/** copies/job_roster.c, if servers have replicas (roster.h). may_go: may a worker leave? else EREFUSED in err.
 *  take_back: what filters have kept back is to go with the clock at hand. has_left: its last clock has ended. join: as
 *  plait_job_join; from INT64_MAX: waits for the job's end. */
bool         pli_job_may_go(const plait_job *job, plait_error *err);
plait_status pli_job_take_back(plait_job *job, plait_error *err);
plait_status pli_job_has_left(plait_job *job, plait_error *err);
plait_status pli_job_join(plait_job *job, int64_t from, plait_error *err);
/** Is the worker away in this worker's clock? How many are? Did anybody come or leave at the end of the last clock? The
 *  same on all workers that are in, at the same clock. */
bool         pli_job_is_away(const plait_job *job, int32_t worker);
int32_t      pli_job_away(const plait_job *job);
bool         pli_job_roster_changed(const plait_job *job);
/** shut: nobody is let in with the clocks that end from here on; all who are in say the same. */
void         pli_job_shut(plait_job *job, bool shut);
/** How many server functions that update tables the worker has called; one that has joined takes the number from one
 *  that was in, and may call such functions from then on. */
uint64_t     pli_job_calls(const plait_job *job);
void         pli_job_take_calls(plait_job *job, uint64_t calls);
/** Sends what was added since in a dead worker's stead. */
plait_status pli_job_give_stead(plait_job *job, plait_error *err);
/** The same, and waits again. */
plait_status pli_job_stand_in(plait_job *job, plait_error *err);
/** The job's collectives, by the first server or, where tables are summed, by the steps of their sums: the gather of
 *  comm/carried.h. */
plait_status pli_job_gather(void *job, const void *mine, size_t bytes, pli_carried *came, pli_msg **held_out,
                            plait_error *err);

/** Are these rows of the table? EINVAL by name if they are not, or if the table is sparse. */
plait_status pli_table_check_range(const plait_table *table, int64_t first, int64_t n, plait_error *err);
/** Completes the gets that are under way: a clock must not overtake them. */
void pli_served_finish_gets(plait_job *job);
/** Sends what tables have kept back when their clocks ended: no worker may miss it after a barrier or this worker's
 *  end. */
plait_status pli_served_send_kept(plait_job *job, plait_error *err);
/** For tables on shards: server functions (topology/served_call.c), dumps (served_dump.c). */
plait_status pli_served_call(plait_table *const *tables, int32_t n, const struct pli_function_call *call, void *answer,
                             plait_error *err);
/* served_rest.c */
plait_status pli_served_rest_take(plait_table *table, struct pli_rest *rest_out);
plait_status pli_served_rest_add(plait_table *table, const struct pli_rest *rest);
void         pli_served_rest_forget(plait_table *table);
plait_status pli_served_dump(plait_table *table, int64_t *n_out, uint64_t **keys_out, void **values_out,
                             plait_error *err);
/** Lends a message's body (taken) to a caller of read(), until unpin takes all back. */
void pli_table_pin(plait_table *table, pli_msg *msg);
void pli_table_unpin(plait_table *table);
/** For read() of rows that do not lie in memory as they are read: lends a copy, filled by the table's get. */
plait_status pli_table_read_copy(plait_table *table, int64_t first, int64_t n, const void **values_out,
                                 plait_error *err);

/** Do all workers bring the same? EMISMATCH if a worker's status is a failure or its hash differs. Collective. */
plait_status pli_job_agree(plait_job *job, const char *what, uint64_t hash, plait_status status, plait_error *err);

/** Ends a job whose worker has failed: waits for nobody. */
void pli_job_abandon(plait_job **job);

/** Prefetches rows that the calling thread will soon get and update: async over local; otherwise does nothing. */
void pli_table_ahead(const plait_table *table, int64_t n, const uint64_t *keys);

/** The memory of a dense table's values, row j at memory + j stride, which its workers and their threads may read and
 *  change in place, by relaxed atomics: async over local, float32, without a rule. What another thread stores meanwhile
 *  may be lost. false: the table is another. Valid until the table ends. */
bool pli_table_place(const plait_table *table, unsigned char **memory_out, int64_t *stride_out);

/** Makes such a table of a lone worker longer: new rows, behind the others, are 0, and the memory is another. Between
 *  clocks. Errors: ENOMEM, and nothing has changed. */
plait_status pli_table_place_grow(plait_table *table, int64_t rows, plait_error *err);

/** A request for something that is already done. NULL: out of memory. */
plait_request *pli_done_request(void);

#endif
