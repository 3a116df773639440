/* base/event.h - the one seam through which the event log sees what ranks do: rooms raise events into a sink that they
 * were given; no sink costs one comparison. What is raised comes from the machines themselves, where the thing happens.
 *
 * Numbers that tie events together:
 *   push     a worker counts its pushes of each table: 1, 2, ... A push goes in parts, one to each shard.
 *   seq      of the message that carried a part, in the stream worker -> server
 *   version  of a shard: how many parts it has applied, and how often it was zeroed; of a mirror: how many sums. Each
 *            is an event, so a version stands for a vector, how many pushes of each worker the values contain, and
 *            costs one number.
 *
 * Where servers' shards have two replicas (replicas 2) each raises what it has applied itself. A replica is known by
 * its *home*, the server whose shards it holds, and its *place* in the chain of ranks on which copies of them may lie:
 * the server's own rank is place 0. When one of the two has died, the other hands its state over (HAND) to a new
 * replica at a later place, which goes on from there (REPLICA). A version is of one replica; a new replica begins at
 * the version that it was handed.
 */
#ifndef PLI_BASE_EVENT_H
#define PLI_BASE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum pli_event_kind {
    PLI_EVENT_JOB = 1, /* a rank has joined a job: info.job                                              */
    PLI_EVENT_TABLE,   /* it knows a table: info.table                                                   */
    PLI_EVENT_GET,     /* a worker was given values, in clock: incs, piece [n]                           */
    PLI_EVENT_INC,     /* a worker has called inc: rows, row, norm                                       */
    PLI_EVENT_PUSH,    /* its incs since the last are on their way as one push of the table, of clock    */
    PLI_EVENT_SEND,    /* a message leaves for server peer: seq, clock, part [n]                         */
    PLI_EVENT_SUM,     /* a mirror has applied the sum of all workers' pushes of clock                  */
    PLI_EVENT_CLOCK,   /* a worker has ended clock; with replicas: both replicas have its updates          */
    PLI_EVENT_BARRIER, /* a worker has passed a barrier                                                  */
    PLI_EVENT_LEAVE,   /* a worker takes no further clock; what it had not pushed is dropped             */
    PLI_EVENT_APPLY,   /* a shard has applied a part of worker peer: seq, clock, version after it        */
    PLI_EVENT_DROP,    /* a shard has dropped one by a backup rule                                       */
    PLI_EVENT_TICK,    /* a server knows that worker peer has ended clock: seq                           */
    PLI_EVENT_GONE,    /* a server knows that worker peer is dead                                        */
    PLI_EVENT_DONE,    /* the rank's part in the job has ended in good order                             */
    PLI_EVENT_GIVE,    /* a worker sends its copy of the table, after clock, to worker peer               */
    PLI_EVENT_MIX,     /* and, in clock, mixes the copy that peer gave in its clock `seq` into its own    */
    PLI_EVENT_STAND, /* a worker begins to stand in, in clock, for those who have died: what it pushes until it ends */
    PLI_EVENT_VIEW,  /* it has told server peer, in message seq of clock, that it did so for worker `whom`  */
    PLI_EVENT_SERVE, /* a copy of place > 0 serves from now on: who served before is dead                */
    PLI_EVENT_HAND,  /* who serves begins to hand its state, as it is now, to a new replica: rank peer, place `whom` */
    PLI_EVENT_REPLICA, /* a new replica is whole: rank peer, place `whom` of its home, has handed its state to it */
    PLI_EVENT_ZERO,  /* a worker has zeroed the table together with all others, before clock's updates; or a shard was:
                        a version of its own */
    PLI_EVENT_KINDS
} pli_event_kind;

/* How a table's updates travel, and so which events tell of them. */
typedef enum pli_event_way {
    PLI_WAY_SERVED, /* to shards: SEND, APPLY, TICK                                     */
    PLI_WAY_SHARED, /* workers write the shared values in place, and it is not logged   */
    PLI_WAY_SUMMED, /* each worker has a mirror, which sums of all pushes move: SUM    */
    PLI_WAY_AVERAGED, /* each has a copy, which its own pushes move and neighbours' copies: GIVE, MIX */
    PLI_WAYS
} pli_event_way;

typedef struct pli_event_job {
    int32_t workers, servers, first_server, backup; /* clocks are complete without their `backup` slowest workers */
    int32_t replicas;                               /* copies of each server's shards                         */
    int32_t spares;                                 /* the last of the workers: no shards until somebody dies */
} pli_event_job;

typedef struct pli_event_table {
    const char *name, *topology, *consistency;
    int64_t     rows, cols; /* rows 0: sparse       */
    pli_event_way way;
    int32_t     shards;     /* SERVED; else 0       */
    bool        ruled;
} pli_event_table;

/* What a get took from one shard (-1: from the worker's mirror), all of one age. */
typedef struct pli_event_piece {
    int32_t         shard, place;    /* place: of the copy that answered                                      */
    uint64_t        version;         /* of the shard, when it answered                                        */
    uint64_t        from, to;        /* own pushes from + 1 .. to were laid over the copy that was kept       */
    int64_t         age;             /* clocks since the values were asked for                                */
    int64_t         first, rows;     /* first -1: by key                                                      */
    const uint64_t *keys;            /* [n_keys] of them, at least one                                        */
    int64_t         n_keys;
} pli_event_piece;

typedef struct pli_event_part {
    int32_t table, shard;
} pli_event_part;

typedef struct pli_event {
    pli_event_kind kind;
    bool           server; /* raised by the rank's server, not by its worker */
    int32_t        home;   /* server: the number of whose shards it holds; at place 0 the rank's own, said or not */
    int32_t        place;  /* server: which copy of them it is               */
    int32_t        rank, peer, table, shard, whom;
    int64_t        clock, rows;
    uint64_t       seq, version, row;
    uint64_t       incs; /* get: own incs not yet pushed that are laid over the values */
    double         norm; /* inc: the largest magnitude of its values                   */
    int64_t        n;
    union {
        const pli_event_piece *piece;
        const pli_event_part  *part;
        const pli_event_job   *job;
        const pli_event_table *table;
    } info;
    bool     met;      /* get: after a barrier, and asked before the worker went on: it waited for no turn */
    uint64_t asked_ns; /* get: when it began; 0: not known       */
    uint64_t time_ns;  /* stamped by whoever takes the event     */
} pli_event;

typedef struct pli_event_sink {
    void (*raise)(void *user, const pli_event *event); /* must not call back; any thread, one at a time a rank and
                                                          side */
    /** What the side has raised is to outlive the process, from now on; before others hear of what it tells. */
    void (*keep)(void *user, int32_t rank, int side);
    void *user;
} pli_event_sink;

static inline void pli_event_raise(const pli_event_sink *sink, const pli_event *event) {
    if (sink != 0 && sink->raise != 0) sink->raise(sink->user, event);
}

/* Whose events follow one another: the rank's worker, its server, all the copies of others' shards that it holds. */
enum { PLI_SIDES = 3 };
static inline int pli_event_side(bool server, int32_t place) { return server ? 1 + (place != 0) : 0; }

#endif
