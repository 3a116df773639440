/* replicas_world.h - what the seeded schedules of servers with two replicas share (replicas_test.c).
 *
 *     replicas_world.c   the ranks of a schedule, their servers and tables, all drawn from the seed, and their deaths
 *     replicas_worker.c  what a worker does in a clock, one step at a time
 *     replicas_play.c    the turns of all, until all have ended
 *     replicas_oracle.c  what must be in the tables, and the verdict on what was read
 *
 * All random draws go through pick(), in the order of the events, so that a seed replays its schedule to the bit. */
#ifndef PLI_TESTS_TABLE_REPLICAS_WORLD_H
#define PLI_TESTS_TABLE_REPLICAS_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "direct/direct.h"
#include "table/client/client.h"
#include "table/copies/hosted.h"
#include "table/copies/roster.h"
#include "table/events.h"
#include "table/state/values.h"

#include "table/sure.h"
#include "table/witness.h"

enum {
    WORKERS_MAX = 5,
    RANKS_MAX = 10,
    TABLES_MAX = 2,
    ROWS = 520,
    HOT = 6, /* rows that are used */
    CLOCKS = 7,
    BAD = 20 /* the bit of what must count nowhere */
};

typedef enum state {
    READY, CALLING, READING, ADDING, ENDING, STANDING_IN, STANDING_READS, IN_BARRIER, LAST_READ, LEAVING, DONE, DEAD,
    AWAY /* it waits until it may join */
} state;

typedef struct worker {
    pli_client        client;
    pli_client_table *table[TABLES_MAX];
    state             state;
    int64_t           clock; /* ended: acknowledged */
    int32_t           reads; /* table being read */
    pli_ask           ask;
    pli_ticket        ticket;
    bool              asking, waiting;
    uint8_t           covers[WORKERS_MAX]; /* stands in for */
    bool              in_vain; /* in whose stead it reads was there after all */
    bool              left;
    int32_t           again; /* so many more reads before the clock is ended */
    int32_t           item, phase, want; /* of what it adds in a clock: which, how far, what the policy wants */
    int32_t           calls; /* tables whose values it has had changed by a server function in this clock */
    uint64_t          gathering; /* number of the barrier to which it has brought something; 0: to none */
    int32_t           goes; /* so many more times it leaves and asks to join again */
    bool              told; /* it asked to join in no clock, and then sooner */
    double            values[ROWS * WORKERS_MAX];
    uint64_t          seen[TABLES_MAX][HOT][WORKERS_MAX]; /* by its last get, unless under bsp */
    double            kept[CLOCKS + 1][TABLES_MAX][HOT][WORKERS_MAX]; /* by its filters, before the clock's push */
} worker;

typedef struct world {
    uint64_t   seed;
    direct    *d;
    pli_layout layout;
    int32_t    workers, tables, ranks;
    bool       bsp, dies; /* bsp: some tables apply at clocks */
    bool       stale[TABLES_MAX]; /* applies at once: all of them, or, beside bsp, the second */
    bool        elastic; /* workers come and go (table/copies/roster.h) */
    int64_t     sooner;  /* so many have come since they were told to come sooner */
    bool        moves;   /* ... and shards with them (table/copies/moves.h) */
    int32_t     anchor;  /* it neither dies nor leaves */
    bool        dies_again; /* another, once all shards have two replicas again */
    int32_t    victim;
    int64_t    death_at;
    int32_t    fellow; /* three replicas: dies at the same time, or soon after; -1: nobody */
    int64_t    fellow_at;
    int64_t    second_at; /* of a worker that holds no shards; -1: nobody */
    int32_t    second;
    bool       second_stands_in; /* it dies soon after it has said that it stands in for the victim */
    pli_spec   spec[TABLES_MAX];
    uint64_t   hot[HOT];
    pli_server  server[RANKS_MAX]; /* by rank */
    pli_hosted backups[RANKS_MAX];
    worker     worker[WORKERS_MAX];
    bool       back[WORKERS_MAX]; /* a dead one's rank was started anew, and lives: as a worker, without shards */
    bool       revives;
    uint32_t   lives[WORKERS_MAX]; /* so often its rank was started anew */
    int64_t    returned, returned_in; /* so many were started anew; and took part again */
    bool       dead[RANKS_MAX], zombie[RANKS_MAX]; /* zombie: taken for dead, and alive */
    bool       suspects; /* the victim is only taken for dead */
    uint64_t   barriers; /* bit c: behind clock c - 1 */
    plait_function function; /* that all call in some clocks ... */
    bool       strikes_calls; /* ... where ranks die around the first of these calls */
    bool       strikes_joins; /* the first server dies while somebody asks to join, or has just been answered */
    uint64_t   calls;    /* bit c: in clock c all call a server function that doubles what tables hold */
    double     answers[CLOCKS][TABLES_MAX][RANKS_MAX]; /* of each shard ... */
    bool       answered[CLOCKS][TABLES_MAX];           /* ... once somebody has heard it */
    uint64_t   gathers;  /* bit n: to the n-th barrier each brings something, if it is not the last */
    uint64_t   strikes_at; /* the victim, who gathers, dies soon after the last has come to that one; 0: whenever */
    uint32_t   came[CLOCKS + 2]; /* to which these have come; 0: nobody has heard yet */
    uint64_t   mixed;    /* bit c: in clock c somebody pushed what is not its own under its own number, or several
                          * died */
    uint32_t   fell[CLOCKS]; /* those for whom somebody stood in in the clock */
    int64_t    many_in;  /* that clock has many messages; -1: none */
    int32_t    leaver;   /* -1: nobody */
    int64_t    leaves_at;
    bool       opaque[TABLES_MAX]; /* adam, and filters that round: a value is no set */
    bool       rounds[TABLES_MAX]; /* filters that round, or keep rows back */
    bool       replaces[TABLES_MAX]; /* combine last */
    bool       ages[TABLES_MAX];     /* steps are divided by how stale a push is: a value is no set */
    int64_t    gathers_for[TABLES_MAX]; /* downpour's P; else 1 */
    witness    witness;
} world;

/* PLAIT_JUDGE=audit: the audit alone judges, so a schedule that seems wrong is only given up. */
extern bool    audit_judges;
extern jmp_buf gave_up;

#undef fail_msg
#define fail_msg(...)                                                                                                  \
    do {                                                                                                               \
        if (audit_judges) longjmp(gave_up, 1);                                                                         \
        print_error("ERROR: " __VA_ARGS__);                                                                            \
        print_error("\n");                                                                                             \
        fail();                                                                                                        \
    } while (0)

/* --- replicas_world.c --------------------------------------------------------------------------------------------- */

/** ELASTIC: workers come and go. */
typedef enum way { FIXED, ELASTIC, RETURNING /* and dead ones do so */, MOVING /* and shards with them */ } way;

/** lives: nobody dies, whatever the seed says. */
void open_world(world *w, uint64_t seed, int32_t replicas, bool lives, way how);
/** Has worker k died, and not returned? */
static inline bool is_dead(const world *w, int32_t k) { return w->dead[k] && (k >= w->workers || !w->back[k]); }
/** Now and then starts the rank of a dead worker anew. */
void revive_some(world *w);
void close_world(world *w);

/** A random number from 0 to below - 1. */
uint64_t              pick(world *w, uint64_t below);
const pli_event_sink *sink_of(const world *w);

/** Has the rank shards from the first, or at any time? */
bool              holds(const world *w, int32_t rank);
/** The replica of shards s at a place. NULL: nothing has come for one yet. */
const pli_server *copy_at(const world *w, int32_t s, int32_t place);
/** The replica that serves shards s, if it lives. NULL: all died. */
const pli_server *who_serves(const world *w, int32_t s);
/** The other replica of the same shards, if it lives; else NULL. */
const pli_server *other_of(const world *w, const pli_server *replica);
/** Is nothing lost if this rank dies, too? Not where all shards have two whole replicas; with three, where each has a
 *  whole one besides. */
bool              may_die(const world *w, int32_t rank);
/** Have all shards as many whole replicas again as there are ranks left for, up to the job's number? Of a world in
 *  which nobody has said good-bye. */
bool              all_are_made(void *world);
/** Prints how far the workers and the replicas are. */
void              tell(const world *w);

/** suspected: it is only taken for dead. */
void kill_rank(world *w, int32_t rank, bool suspected);
/** Now and then kills any rank, while a worker is left, once nothing can be lost by it. */
void kill_another(world *w);
/** Kills the rank that dies with the victim, if nothing is lost by it. */
void kill_fellow(world *w);

/* --- replicas_play.c ---------------------------------------------------------------------------------------------- */

/** Plays the seed's schedule, and judges it. */
void run_schedule(world *w, uint64_t seed, int32_t replicas, bool lives, way how);

/* --- replicas_worker.c -------------------------------------------------------------------------------------------- */

/** A worker that is away asks to join. */
void ask_join(world *w, int32_t k);
/** Lets worker k do the next thing. false: it waits. */
bool step_worker(world *w, int32_t k);

/* --- replicas_oracle.c -------------------------------------------------------------------------------------------- */

/** Forgets what gets of table t have had in earlier runs. */
void forget_gets(int32_t t);

/** Does what belongs to worker v's rows in the clock touch hot row h of table t? */
bool   adds(const world *w, int t, int32_t v, int64_t clock, int h);
/** What hot row h of table t gets in a clock, in units of 2^clock. The rows of a table
 *  whose filter rounds differ in it, so that something is rounded. */
double share(const world *w, int t, int h);

/** Does a server function change the values of table t? */
static inline bool is_called(const world *w, int32_t t) {
    return !w->stale[t] && !w->rounds[t] && !w->replaces[t];
}
/** Where rows are replaced: what belongs to worker v's rows in the clock, in all columns. */
static inline double mark_of(int32_t v, int64_t clock) { return (double)(8 * clock + v + 1); }
/** Judges what the shards of the table that worker k has called have answered. */
void check_call(world *w, int32_t k);

/** Judges what worker k has read. last: behind the last barrier. */
void     check_read(world *w, int32_t k, bool last);
/** Worker k is about to push what it has added in its clock. */
void     note_kept(world *w, int32_t k);
/** What worker v brings to the barrier of that number: v + 1 times the same. */
uint64_t brought(int32_t v, uint64_t number);
/** Judges what worker k has been told that all have brought. */
void     check_gathered(world *w, int32_t k);
/** Judges the replicas at the end. */
void     compare_copies(world *w);

#endif
