/* watch/audit/model.h - an event log as the audit understands it, built in three passes, each linear in the log:
 *
 *     load.c     workers: what each has pushed, and which messages carried it       (push, part)
 *     history.c  servers: which parts each shard has applied, in what order         (part.at, state)
 *     reads.c    workers again: what each get was given, held against both          (promise)
 *     copies.c   where copies are averaged: each that was given was mixed, once and in order
 *     values.c   where norms are bounded: what the others had done when a get began
 *     zeros.c    what was made before a table was zeroed, and what behind it
 *     calls.c    server functions that update tables: each once, in one order, with one result
 *     lives.c    which numbers workers have whose ranks were started anew
 *     places.c   where shards have two replicas: on which ranks they lay, one after the other, and which of them counts
 *     dead.c     there, too: who died, what became of a dead one's share, and whether the replicas are the same
 *     fellows.c  workers of several groups whose clocks end together: as many of them, and for the same dead
 *     audit.c    all passes over the log of each job: of all workers, and of the members of each group
 *     report.c   the result in words, and as JSON
 *
 * The log of a shard tells the vector that a version stands for: how many pushes of each worker were applied when the
 * shard had applied `version` parts. Of the vector the audit keeps what promises speak of: the first push that it does
 * not contain, and the last that it does, once more without that worker, so that a reader's own can be left out.
 */
#ifndef PLI_WATCH_MODEL_H
#define PLI_WATCH_MODEL_H

#include <stdio.h>

#include "watch/audit/audit.h"
#include "watch/audit/promise.h"
#include "watch/eventlog.h"

enum { AUDIT_CELLS_MAX = 1 << 22 /* workers x shards of all tables */ };

#define AUDIT_NEVER INT64_MAX

typedef struct audit_push { /* push number i + 1 of a worker to a table */
    int64_t  clock;
    uint64_t incs;     /* incs of the worker up to this push, included */
    uint64_t time_ns;
    bool     stands; /* pushed in place of workers that have died */
} audit_push;

typedef struct audit_pusher { /* a worker's pushes of a table */
    audit_push *push;
    int64_t     n, capacity;
    uint64_t    incs;
    struct audit_inc { uint64_t time_ns; double norm; } *inc; /* [n_incs], of which n_timed have returned; only
                                                                  where the promise speaks of values */
    int64_t     n_incs, n_timed, incs_capacity;
    int64_t    *barrier; /* [barriers] pushes before each */
    int64_t     barriers, barrier_capacity;
    struct audit_zero { int64_t pushes, sums, clock; uint64_t time_ns; } *zero; /* [zeros] what was made before each */
    int64_t     zeros, zeros_capacity;
    uint64_t   *call; /* [calls] numbers of the worker's calls that change the table */
    int64_t     calls, calls_capacity;
    int64_t     dropped; /* 1 + the clock in which the worker has dropped the table; 0: it has not */
} audit_pusher;

enum { PART_LOST = 0, PART_DROPPED = -1, PART_DIED = -2 };
typedef struct audit_part { /* one part of a push, on its way to a shard */
    uint64_t seq;
    int64_t  push;  /* index                                                          */
    int64_t  at;    /* the first version of the shard that has it, or one of PART_ */
} audit_part;

typedef struct audit_sender { /* one worker, as a shard sees it */
    audit_part *part;
    int64_t     n, capacity;
    int64_t     next; /* while a pass runs: the part that is due */
    uint64_t    unknown; /* the last message that was applied and that the worker's log, which is cut, lacks */
} audit_sender;

enum { AUDIT_CALLED = -2 };
typedef struct audit_apply {
    int32_t  worker;
    int64_t  part; /* index, of the worker's; -1: it was never sent, or (worker -1) the shard was zeroed;
                    * AUDIT_CALLED or less, with worker -1: a call has run; one number for what it was and came to */
    uint64_t time_ns;
} audit_apply;

typedef struct audit_ran { /* a call of a server function, as a shard has run it */
    uint64_t number, time_ns;
    int64_t  at, clock; /* the version that it made */
    uint32_t asked, answer, wrote;
} audit_ran;

typedef struct audit_call { /* a call, as a worker has made it */
    uint64_t number, time_ns;
    int64_t  clock;
    int64_t  first_ran, n_ran;    /* among the worker's `ran`: what it was answered; n_ran 0: the call has failed */
    int64_t  first_table, tables; /* among the worker's `called` */
    uint32_t asked;
    bool     left; /* the worker had left */
    char     function[40];
} audit_call;

/* Turns order clocks and, in a clock, workers: clock * workers + worker. */
typedef struct audit_state {
    int64_t missing, missing_other; /* turn of the first push not contained; of the first of another worker */
    int64_t newest, newest_other;   /* turn of the last push contained, likewise; -1: none */
} audit_state;

typedef struct audit_holder { /* a shard, as one of its copies has it */
    struct audit_server *of;  /* the copy that has it; NULL: nothing was sent there */
    int32_t        shard;
    bool           counts;    /* every update must be in it once: there is no other replica, or it serves at the end */
    int64_t        led; /* a later copy's applications before it served, as its source's; AUDIT_NEVER: it never did */
    audit_sender **sender;  /* [workers]; NULL: has sent nothing */
    audit_apply   *apply;   /* [n] */
    int64_t        n, capacity;
    int64_t       *zero;    /* [zeros] versions with which it was zeroed */
    int64_t        zeros, zeros_capacity;
    audit_ran     *call;    /* [calls] that it has run */
    int64_t        calls, calls_capacity;
    audit_state   *state;   /* [n + 1] */
} audit_holder;

typedef struct audit_shard {
    int32_t       home;   /* the server that owns it; -1: nothing was sent there */
    int32_t       replicas; /* at first one, which gathers what workers have sent */
    audit_holder *replica;  /* [replicas], as audit_home's                        */
} audit_shard;

typedef struct audit_mirror { /* a worker's copy under allreduce */
    struct audit_sum { int64_t clock; uint64_t time_ns; } *sum; /* [n] applied */
    int64_t n, capacity;
} audit_mirror;

typedef struct audit_copy { /* a copy that was given to a worker, or received from one and mixed */
    int32_t  peer;
    int64_t  given, clock; /* the giver's clock; the own clock */
    uint64_t time_ns;
} audit_copy;

typedef struct audit_copies { /* the copies of one worker, if the table is AVERAGED */
    audit_copy *give, *mix; /* [gives], [mixes] in order */
    int64_t     gives, mixes, gives_capacity, mixes_capacity;
} audit_copies;

typedef struct audit_table {
    bool           known, ruled;
    pli_event_way  way;
    bool           own; /* judged by what the run itself promised */
    char           name[64], topology[32], consistency[64], combine[32];
    bool           replaces; /* the push of the latest clock and highest worker counts: last */
    bool           repeats; /* what is applied twice, or in another order, changes nothing: min, max */
    int64_t        rows;
    int32_t        shards;
    pli_promise    promise;
    bool              whole;   /* clocks are applied as a whole, by what the run itself promised */
    bool              sums;    /* with copies: updates are applied clock by clock, a dead one's share by others */
    audit_shard   *shard;   /* [shards] */
    audit_mirror *mirror; /* [workers], where SUMMED */
    audit_copies  *copies;  /* [workers], where AVERAGED */
    audit_pusher  *pusher;  /* [workers] */
    pli_audit_figures figures;
} audit_table;

typedef struct audit_worker {
    int32_t  stream; /* -1: not seen */
    int64_t  clocks; /* ended */
    uint64_t ended_ns; /* the last event */
    bool     done, left, dead;
    bool     cut;    /* its log is cut */
    bool     stands; /* while a pass runs: it stands in for others in this clock */
    int64_t  barriers;
    struct audit_view {
        int32_t  server, whom;
        int64_t  clock;
        uint64_t seq;
    } * view; /* [views] as told to servers */
    int64_t views, views_capacity;
    int32_t *fellow; /* [fellows] ranks of the run with whose this worker's clocks end */
    int32_t  fellows;
    audit_call    *call; /* [calls] of server functions that update */
    pli_event_ran *ran;
    int32_t       *called;
    int64_t        calls, n_ran, n_called, calls_capacity, ran_capacity, called_capacity;
    int64_t  parted; /* the clock from which on they end apart again; AUDIT_NEVER: to the end together */
} audit_worker;

typedef struct audit_ticks { /* the clocks of a worker that a server was told of */
    int64_t   n, told, capacity;
    int64_t   from; /* of a later life: the first that the server has told; those before were empty */
    uint64_t *seq; /* [told] the last message of each that counts in it; only where there are copies */
} audit_ticks;

typedef struct audit_server { /* a copy of a server's shards */
    int32_t      stream, rank, home, place; /* stream -1: not seen */
    bool         counts, cut;
    bool         served; /* it has served. If it is not the first, the replicas at all places before are dead, or out */
    bool         out;    /* it has made way for others, where shards move */
    bool         done;   /* at place 0: its rank has ended in good order           */
    bool         used;   /* has applied something, or knows of clocks           */
    int32_t      source; /* place of the copy that it has its log from; -1: of none */
    int64_t      copied; /* how often it was made anew: the last time counts        */
    int64_t      due;    /* passes: how many of them are to come                    */
    int64_t      hands;  /* copies that it has begun to make                        */
    bool         begun;  /* while a pass runs: it has what its source had when it handed over */
    audit_ticks *ticks;  /* [workers] */
    struct audit_gone { int32_t worker; int64_t hands; } *gone; /* [n_gone], told of when it had begun as many */
    int64_t      n_gone, gone_capacity;
} audit_server;

typedef struct audit_hand { /* one copy has handed its state to another */
    int32_t from, to;   /* places                                  */
    int64_t n, due;     /* how often; in passes: so often still    */
    int64_t hands;      /* of the source, with the last of them    */
} audit_hand;

typedef struct audit_home { /* the shards of one server, wherever they lay */
    audit_server *replica;  /* [n] by place, as far as a log tells of them; those that were never whole are left out
                               after the first pass */
    audit_hand   *hand;     /* [hands] */
    int64_t       n, capacity, hands, hands_capacity;
} audit_home;

/* The audit of one job: of all workers, or of a group's members, whose tables are a job of their own. Its ranks are
 * numbered as the job numbers them. */
struct pli_audit {
    const pli_logfile *file;
    pli_audit        **part;  /* [parts] of the groups, in the audit of all workers */
    int64_t            parts;
    uint32_t           group; /* 0: of all workers */
    char               group_name[64];
    int32_t           *rank;  /* [numbers] the run's rank of each of a group's numbers; NULL: they are the same */
    int32_t            numbers;
    int64_t            first_clock; /* in which the job began */
    bool               begins;      /* it goes on from a checkpoint, as its workers say */
    char               from[256];   /* which one; "": not known */
    const char        *as;
    pli_event_job      job; /* workers 0: not known yet. Each life of a rank but its first is a worker more */
    int32_t            ranked; /* workers as the job counts them: numbers below are of first lives */
    struct audit_life { int32_t rank, life; } *life; /* [lives] later lives of workers: number ranked + i */
    int32_t            lives;
    audit_worker      *worker;
    audit_home         *home;   /* [job.servers] */
    int32_t             places; /* where copies of a server may lie; 1: they have none */
    bool               *dead;   /* [ranks] by what later copies say: they served */
    bool                whole;  /* its log is judged as far as it goes: it lacks nothing but what a death has cut off */
    bool                ended;  /* with copies: some worker came to its end; else the run broke off */
    int32_t             ranks;
    audit_table       *table;
    int64_t            tables, tables_capacity;
    int64_t            cells, events;
    uint64_t           begun_ns;     /* the first event */
    pli_audit_verdict  verdict;
    bool               unlogged;     /* EMPTY, since its values are changed without a log */
    char               why[512];     /* of CUT and EMPTY */
    int64_t            violations;
    pli_audit_violation first;       /* the first in time */
};

/** Notes a violation; the first in time is kept. table may be NULL. */
void audit_violation(pli_audit *audit, audit_table *table, const pli_audit_violation *violation, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/** The run's rank of one of the job's numbers, and of a worker's number, whichever life of its rank that is. */
static inline int32_t audit_rank_at(const pli_audit *audit, int32_t number) {
    return audit->rank == NULL || number < 0 || number >= audit->numbers ? number : audit->rank[number];
}
static inline int32_t audit_rank(const pli_audit *audit, int32_t worker) {
    const bool later = worker >= audit->ranked && worker < audit->ranked + audit->lives;
    return later ? audit->life[worker - audit->ranked].rank : audit_rank_at(audit, worker);
}

/** Seconds since the log's begin. */
double audit_seconds(const pli_audit *audit, uint64_t time_ns);

/** The table of an event, or NULL: it was not declared. */
static inline audit_table *audit_table_of(const pli_audit *audit, int32_t table) {
    return table >= 0 && table < audit->tables && audit->table[table].known ? &audit->table[table] : NULL;
}

/** How many places have a replica when the job begins, if there are so many. */
static inline int32_t audit_first_places(const pli_audit *audit) {
    return audit->job.replicas < 2 ? 2 : audit->job.replicas;
}
/** The i-th place that has a replica when the job begins; -1: there are no more. */
int32_t audit_first_place(const pli_audit *audit, int32_t home, int32_t i);
/** Which of these the place is; -1: none of them. */
int32_t audit_is_first(const pli_audit *audit, int32_t home, int32_t place);
/** The copy at the place; NULL: there was none. */
static inline audit_server *audit_replica_at(const pli_audit *audit, int32_t home, int32_t place) {
    const audit_home *of = &audit->home[home];
    for (int64_t i = 0; i < of->n; i++)
        if (of->replica[i].place == place) return &of->replica[i];
    return NULL;
}

/** The shard as the copy at that place has it; NULL: there was none. If nothing was sent to the shard, all its copies
 *  are one. */
static inline audit_holder *audit_holder_of(const pli_audit *audit, const audit_table *table, int32_t shard,
                                            int32_t place) {
    const audit_shard *of = &table->shard[shard];
    if (of->home < 0) return &of->replica[0];
    for (int32_t i = 0; i < of->replicas; i++)
        if (audit->home[of->home].replica[i].place == place) return &of->replica[i];
    return NULL;
}

/** The job whose verdict is that of the whole log. */
const pli_audit *audit_decisive(const pli_audit *audit);

/** lives.c: before the first pass, finds the later lives. Errors: ENOMEM. */
plait_status audit_find_lives(pli_audit *audit, plait_error *err);
/** The number of a life of a worker's rank, once JOB has said how many workers there are; -1: that life has no log. */
int32_t audit_number_of(const pli_audit *audit, int32_t rank, int64_t life);
/** The event with the workers' numbers, but for JOB, perhaps in own; NULL: it tells of a life that left no log, and did
 *  nothing. */
const pli_event *audit_number(const pli_audit *audit, const pli_event *event, pli_event *own);

/** The number of the worker of whose clock a TICK tells; -1: of a life that left no log. */
struct audit_server;
int32_t audit_who_was_away(const pli_audit *audit, const struct audit_server *server, const pli_event *event);

/** Feeds every event of a stream to step, until one fails. */
typedef plait_status audit_step(pli_audit *audit, void *state, const pli_event *event, plait_error *err);
plait_status audit_stream(pli_audit *audit, int32_t stream, audit_step *step, void *state, plait_error *err);
plait_status audit_no_memory(plait_error *err);

plait_status audit_load(pli_audit *audit, plait_error *err);
plait_status audit_histories(pli_audit *audit, plait_error *err);
plait_status audit_reads(pli_audit *audit, plait_error *err);
plait_status audit_averages(pli_audit *audit, plait_error *err);

/* places.c */
/** The rank of a place of a server's shards. */
int32_t audit_rank_of(const pli_audit *audit, int32_t home, int32_t place);
/** The copy that an event of a server belongs to; enters it if it is new. Errors: EFORMAT there can be no such copy;
 *  ENOMEM. */
plait_status audit_replica_of(pli_audit *audit, const pli_event *event, audit_server **copy_out, plait_error *err);
/** In the first pass: takes what an event of a server says of copies. */
plait_status audit_load_replica(pli_audit *audit, int32_t stream, const pli_event *event, plait_error *err);
/** After the first pass: finds which copies there were, which ranks they say are dead, and which copy counts.
 *  *whole_out: logs tell of all of them. Errors: EFORMAT a copy was made of nothing. */
plait_status audit_places(pli_audit *audit, bool *whole_out, plait_error *err);
/** Before the second pass: makes a holder for each copy of each shard. */
plait_status audit_open_holders(pli_audit *audit, plait_error *err);
/** In the second pass: the copy hands over what it has to another, whose history begins with that. */
plait_status audit_hand_over(pli_audit *audit, const audit_server *source, const pli_event *event, plait_error *err);
/** "rank 4", or, if it is not at place 0, "rank 4 (place 1)". */
const char *audit_name_replica(const pli_audit *audit, const audit_server *copy, char text[48]);
/** Frees what a holder, or a copy, owns, but not itself. */
void audit_free_holder(const pli_audit *audit, audit_holder *shard);
void audit_free_places(pli_audit *audit);

/* zeros.c */
/** In the first pass: a worker has zeroed the table. In the second: a shard was zeroed. Errors: ENOMEM. */
plait_status audit_add_zero(audit_table *table, const pli_event *event, plait_error *err);
plait_status audit_zero_shard(pli_audit *audit, audit_table *table, const pli_event *event, plait_error *err);
/** After the second pass: have all zeroed it, and does each push lie on its side of each zeroing? */
void audit_check_zeros(pli_audit *audit);

/* calls.c */
/** In the first pass: a worker has its answers. In the second: a shard has run a call. Errors: ENOMEM. */
plait_status audit_add_call(pli_audit *audit, const pli_event *event, plait_error *err);
plait_status audit_run_call(pli_audit *audit, const pli_event *event, plait_error *err);
/** A replica begins with the calls of another. false: no memory. */
bool audit_inherit_calls(const audit_holder *from, audit_holder *to);
/** The call that made that version; NULL: none did. */
const audit_ran *audit_ran_as(const audit_holder *shard, int64_t version);
/** When all states are known: was each call made by all, and run once at each shard? */
plait_status audit_check_calls(pli_audit *audit, plait_error *err);

/* dead.c */
/** After audit_places, if there are copies: finds who died. *whole_out stays true if no log is cut but those of the
 *  dead. */
void audit_deaths(pli_audit *audit, bool *whole_out);
/** The worker has died, or a copy that lay before another that served. */
static inline bool audit_is_dead(const pli_audit *audit, int32_t rank) {
    return (rank < audit->ranked && audit->worker[rank].dead) || (rank < audit->ranks && audit->dead[rank]);
}
/** The number of the last message of the worker that counts in the clock at the server; 0: the worker has no part in
 *  it. */
static inline uint64_t audit_tick(const audit_server *server, int32_t worker, int64_t clock) {
    const audit_ticks *ticks = &server->ticks[worker];
    return clock >= 0 && clock < ticks->told ? ticks->seq[clock] : 0;
}
/** A part that the copy has not applied, if there are copies. true: it says what becomes of the part. */
bool audit_unapplied(pli_audit *audit, audit_table *table, audit_holder *shard, int32_t worker, audit_part *part);
/** A part that the copy has applied: does its worker count in that clock, so that nobody stood in for it? */
void audit_check_counted(pli_audit *audit, audit_table *table, const audit_holder *shard, int32_t worker,
                         const audit_part *part);
/** Have others stood in for the dead? Are the copies the same? */
void audit_check_copies(pli_audit *audit);

/* fellows.c */
/** In the first pass: with whose a worker's clocks end from now on. Errors: ENOMEM. */
plait_status audit_add_fellows(audit_worker *worker, const pli_event *event, plait_error *err);
/** When all groups are judged: do the workers that say so end their clocks together? */
void audit_check_fellows(pli_audit *whole);

/** How many of the pushes that a worker had made a version of the shard contains. *hint: where the last answer for it
 *  was found. */
int64_t audit_contained(const audit_holder *shard, int32_t worker, int64_t version, int64_t made, int64_t *hint);

/* What values.c remembers of one reader and table. */
typedef struct audit_unseen {
    int64_t *made, *hint; /* [workers], [shards * workers]: cursors */
} audit_unseen;
bool   audit_unseen_open(const pli_audit *audit, const audit_table *table, audit_unseen *unseen);
void   audit_unseen_close(audit_unseen *unseen);
/** The sum of the norms of the updates that the others had made by asked_ns and that the version lacks (or the
 *  largest, if each counts by itself). */
double audit_unseen_norm(const pli_audit *audit, const audit_table *table, audit_unseen *unseen,
                         const audit_holder *shard, int64_t version, int32_t reader, uint64_t asked_ns);

#endif
