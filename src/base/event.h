/* base/event.h - the one seam through which the event log sees what ranks do: rooms raise events into a sink that they
 * were given; without a sink an event costs one comparison. The state machines themselves raise the events, where the
 * thing happens.
 *
 * Numbers that tie events together:
 *   push     A worker counts its pushes of each table: 1, 2, ... A push goes in parts, one to each shard.
 *   seq      The sequence number of the message that carried a part, in the stream worker -> server.
 *   version  For a shard: how many parts it has applied, plus how often it was zeroed, plus how many server
 *            functions that update have run on it. For a mirror: how many sums it has applied. Each step is an event
 *            of its own, so one number stands for a vector: how many pushes of each worker the values contain.
 *
 * With two replicas of each server's shards (replicas 2), each replica raises events for what it has applied itself. A
 * replica is known by its *home*, the server whose shards it holds, and its *place* in the chain of ranks that may hold
 * replicas of them; the server's own rank is place 0. When one of the two has died, the other hands its state (HAND)
 * to a new replica at a later place, which goes on from there (REPLICA). Each replica counts its own version; a new
 * replica begins at the version that it was handed.
 *
 * The tables of a group (plait/group.h) are a job of the members alone. Its events say so (`group`), and all their
 * ranks are the group's numbers. */
#ifndef PLI_BASE_EVENT_H
#define PLI_BASE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pli_event_kind {
    PLI_EVENT_JOB = 1, /* a rank has joined a job: info.job */
    PLI_EVENT_TABLE,   /* the rank knows a table: info.table */
    PLI_EVENT_GET,     /* a worker was given values, in clock: incs, piece [n]                           */
    PLI_EVENT_INC,     /* a worker has called inc: rows, row, norm                                       */
    PLI_EVENT_PUSH,    /* a worker sends its incs since its last push as one push of the table, in clock */
    PLI_EVENT_SEND,    /* a message leaves for server peer: seq, clock, part [n]                         */
    PLI_EVENT_SUM,     /* a mirror has applied the sum of all workers' pushes of clock                  */
    PLI_EVENT_CLOCK,   /* a worker has ended clock; with replicas: both replicas have its updates          */
    PLI_EVENT_BARRIER, /* a worker has passed a barrier                                                  */
    PLI_EVENT_LEAVE,   /* a worker takes no further clock; incs that it had not pushed are dropped */
    PLI_EVENT_APPLY,   /* a shard has applied a part of worker peer: seq, clock, version after it        */
    PLI_EVENT_DROP,    /* a shard has dropped a part, by a backup rule */
    PLI_EVENT_TICK,    /* a server knows that worker peer has ended clock: seq                           */
    PLI_EVENT_GONE,    /* a server knows that worker peer is dead                                        */
    PLI_EVENT_DONE,    /* the rank's part in the job has ended in good order                             */
    PLI_EVENT_GIVE,    /* a worker sends its copy of the table, after clock, to worker peer               */
    PLI_EVENT_MIX,     /* a worker mixes, in clock, the copy that peer gave in its clock `seq` into its own */
    PLI_EVENT_STAND, /* a worker begins, in clock, to stand in for workers that have died; its pushes until the
                      * clock's end are theirs */
    PLI_EVENT_VIEW,  /* the worker has told server peer, in message seq of clock, that it stood in for worker `whom` */
    PLI_EVENT_SERVE, /* a replica of place > 0 serves from now on: the one that served before is dead */
    PLI_EVENT_HAND,  /* the serving replica begins to hand its present state to a new one: rank peer, place `whom` */
    PLI_EVENT_REPLICA, /* a new replica begins with the state that rank peer, place `whom` of its home, handed to it,
                        * and takes its log from then on. (Its rows may be on their way yet.) */
    PLI_EVENT_ZERO,  /* a worker has zeroed the table together with all others, before clock's updates; or a shard
                      * was zeroed, which is a version of its own */
    PLI_EVENT_TURN,  /* a worker takes its turn in step `seq` of a schedule, in clock: its variables, and the
                      * keys that they touch: touch [n]. row: 1, all workers take the same turn; 2, it is that of
                      * workers that have died in the clock; 3, the worker was away, and says so later. rows: the
                      * variables of the step, of all workers (0: not told) */
    PLI_EVENT_SCOPES, /* a rank begins to give locks on vertices, or all begin anew, after a death: info.scopes */
    PLI_EVENT_LOCK,   /* the owner of a vertex gives a rank its lock and its value: info.lock */
    PLI_EVENT_UNLOCK, /* the owner has it back: info.lock                                      */
    PLI_EVENT_USE,    /* a rank updates vertex `row` in its scope `seq`: use [n], before it gives the locks back */
    PLI_EVENT_REST,   /* the rank knows that round `seq` is over: no rank has a lock, no message is under way */
    PLI_EVENT_FELLOWS, /* from clock on the worker's clocks end together with those of the ranks fellow [n], which are
                        * the run's and ascend; n 0: no more */
    PLI_EVENT_BEGIN,   /* before its first table, or its first clock: the worker's job goes on at clock, from the
                        * checkpoint `from` ("": it is not said) */
    PLI_EVENT_CALL,    /* a server function that updates tables, the worker's call number `seq`, in clock: a worker has
                        * its answers, ran [n] by shard (n 0: it failed), or its own mirrors have run it (shard -1); or
                        * a shard has run it, ran [1], which is a version of its own: info.call */
    PLI_EVENT_OUT, /* where shards move: the replica has made way for those that are on other ranks, and ends */
    PLI_EVENT_KINDS
} pli_event_kind;

enum { PLI_ZERO_DROP = -2 }; /* the shard of a ZERO: the worker has dropped the table, together with all others */

/* How a table's updates travel, which decides the kinds of event that tell of them. */
typedef enum pli_event_way {
    PLI_WAY_SERVED, /* pushes go to shards: SEND, APPLY, TICK */
    PLI_WAY_SHARED, /* workers write the shared values in place; updates are not logged */
    PLI_WAY_SUMMED, /* each worker has a mirror, to which the sum of all pushes is applied: SUM */
    PLI_WAY_AVERAGED, /* each worker has a copy, changed by its own pushes and by neighbours' copies: GIVE, MIX */
    PLI_WAYS
} pli_event_way;

typedef struct pli_event_job {
    int32_t workers, servers, first_server, backup; /* clocks are complete without their `backup` slowest workers */
    int32_t replicas;                               /* of each server's shards                                */
    int32_t spares;                                 /* the last workers, which have no shards until a rank dies */
    int32_t homes; /* > 0: shards move, and lie on the first so many ranks at first (table/copies/moves.h) */
} pli_event_job;

/* A group in which a rank takes part. */
typedef struct pli_event_group {
    uint32_t       id;   /* 1, 2, ...: the same on all ranks */
    const char    *name;
    int64_t first_clock; /* the clock in which its first table was made; no member's event is of an earlier one */
    int32_t        n;
    const int32_t *rank; /* [n] the run's rank of each number, ascending: its members, and behind them the servers */
} pli_event_group;

typedef struct pli_event_table {
    const char *name, *topology, *consistency;
    int64_t     rows, cols; /* rows 0: sparse       */
    pli_event_way way;
    int32_t     shards;     /* SERVED; else 0       */
    bool        ruled;
    const char *combine;    /* how pushed values are combined: "add" */
} pli_event_table;

/* What a get took from one shard (-1: from the worker's mirror); all values have the same age. */
typedef struct pli_event_piece {
    int32_t         shard, place;    /* place: of the replica that answered */
    uint64_t        version;         /* of the shard when it answered */
    uint64_t        from, to;        /* own pushes from + 1 .. to were laid over the cached copy */
    int64_t         age;             /* clocks since the values were asked for                                */
    int64_t         first, rows;     /* first -1: by key, not by range */
    const uint64_t *keys;            /* [n_keys], at least one */
    int64_t         n_keys;
} pli_event_piece;

typedef struct pli_event_part {
    int32_t table, shard;
} pli_event_part;

/* A key that the update of a scheduled variable touches (plait/schedule.h). The touches of one variable stand together;
 * a variable without keys has one of space -1. */
typedef struct pli_event_touch {
    int64_t  variable;
    int32_t  space;
    bool     writes;
    uint64_t key;
} pli_event_touch;

/* Locks of a vertex program (vertex/locks/locks.h): its engine's scope, and how many rounds were good before. */
typedef struct pli_event_scopes {
    const char *program;
    int32_t     scope;  /* 0 vertex, 1 edge, 2 full: what it promises */
    int64_t     round;
} pli_event_scopes;

/* A lock that is given or given back. */
typedef struct pli_event_lock {
    uint64_t vertex, version; /* version: of the value when it is given; after it was stored when it is given back   */
    int32_t  origin;          /* the rank that has asked                                                            */
    uint32_t number, at;      /* of that rank's scope; how many locks of the scope were given before                */
    uint32_t mode;            /* 0 none, 1 read, 2 write                                                            */
    bool     wrote;           /* given back: with a new value                                                       */
} pli_event_lock;

/* A vertex that an update has read, and may have changed. */
typedef struct pli_event_use {
    uint64_t vertex, id, version; /* version: of the value that was read                           */
    uint32_t digest, fresh;       /* of that value; of the new one                                 */
    bool     wrote;
} pli_event_use;

/* What a server function has come to at one shard, or mirror (-1). Digests are of 32 bits. */
typedef struct pli_event_ran {
    int32_t  shard;
    uint32_t answer, wrote; /* of its answer; of what its rows hold behind it, in all tables of the call (a worker does
                             * not know that of a shard: 0) */
} pli_event_ran;

typedef struct pli_event_call {
    const char          *function;
    uint32_t             asked; /* digest of its range and arguments */
    int32_t              tables;
    const int32_t       *table; /* [tables] */
    const pli_event_ran *ran;   /* [n] of the event */
} pli_event_call;

typedef struct pli_event {
    pli_event_kind kind;
    bool           server; /* raised by the rank's server side, not by its worker */
    int32_t        home;   /* server side: number of the server whose shards these are; at place 0 it is the rank's
                            * own, set or not */
    int32_t        place;  /* server side: which replica of them */
    const pli_event_group *group; /* NULL: of all workers' tables */
    int32_t        rank, peer, table, shard, whom;
    int32_t        life;   /* JOB of a worker: which life of its rank begins, from 1 on (0: 1). A reader sets it in all
                            * events of the worker */
    int32_t        whose;  /* GONE: which life of peer, VIEW: which of whom (0: 1) */
    int64_t        clock, rows;
    uint64_t       seq, version, row;
    uint64_t       incs; /* get: the worker's own incs, not yet pushed, that are laid over the values */
    double         norm; /* inc: the largest magnitude of its values                   */
    int64_t        n;
    union {
        const pli_event_piece *piece;
        const pli_event_part  *part;
        const pli_event_touch *touch;
        const pli_event_job   *job;
        const pli_event_table *table;
        const pli_event_scopes *scopes;
        const pli_event_lock  *lock;
        const pli_event_use   *use;
        const pli_event_call  *call;
        const int32_t         *fellow;
        const char            *from;
    } info;
    bool     met;      /* get: asked after a barrier, before the worker went on, so it did not wait for a turn */
    uint64_t asked_ns; /* get: when it began; 0: not known */
    uint64_t time_ns;  /* the taker of the event sets it */
} pli_event;

typedef struct pli_event_sink {
    void (*raise)(void *user, const pli_event *event); /* Must not call back. Any thread, but one event at a time for
                                                        * each rank and side. */
    /** From now on the events that the side has raised about the group's tables (NULL: of all workers) must outlive
     *  the process; called before other ranks hear of what they tell. */
    void (*keep)(void *user, const pli_event_group *group, int32_t rank, int side);
    void *user;
} pli_event_sink;

static inline void pli_event_raise(const pli_event_sink *sink, const pli_event *event) {
    if (sink != 0 && sink->raise != 0) sink->raise(sink->user, event);
}

/* The sides of a rank, each an ordered stream of events: its worker, its server, all replicas of others' shards that it
 * holds, and its locks on vertices. */
enum { PLI_SIDE_LOCKS = 3, PLI_SIDES };
static inline bool pli_event_is_lock(pli_event_kind kind) {
    return kind >= PLI_EVENT_SCOPES && kind <= PLI_EVENT_REST;
}
static inline int pli_event_side(bool server, int32_t place) { return server ? 1 + (place != 0) : 0; }

#endif
