/* table/copies/replicas.h - the second replica of a server's shards, kept on another rank, so that any one rank can
 * die.
 *
 * The replicas of server s lie on its own rank (place 0) and on the next of the servers' ranks (place 1), each as a
 * machine of its own: the same state machine, server.h's. The first of them that lives *serves*: which that is follows
 * from who is dead alone, so that all ranks come to the same map with no coordinator. The other takes its log and says
 * nothing. When one of the two has died, the one that is left makes a new replica at the next place that lives (below).
 *
 * The log (one stream, comm/stream.h, from who serves to the other) holds what changes shards, and in which order:
 *   CREATE      as a worker has sent it
 *   SUM         tables that apply at clocks: of a clock all workers' pushes, added up, once they are complete: one
 *               message a clock, whatever the number of workers
 *   PUSH, CLOCK tables that apply at once: as the worker has sent it
 *   MET         a barrier was complete, and with it what is prepared; with what workers brought to it (GATHER, by which
 *               collectives go: comm/carried.h)
 *   SNAP        the first of its number: the pieces of a snapshot are here, too, when who serves dies; and when they
 *               have all been taken
 *   END         all workers have said good-bye
 * It says of each worker up to which message of its stream it goes. What the other replica has confirmed is *safe*:
 * SAFE tells the worker, who keeps until then what it has sent. `clock` returns when the worker's updates are safe with
 * all servers.
 *
 * When who serves dies, the other goes on: the worker's stream goes on with it where the log ends, so the worker sends
 * again what is not safe, and of that nothing was applied there. (So an update is applied once, whatever the rule keeps
 * beside the values: rules run at both replicas, over the same sums in the same order.) A log that comes from the dead
 * is refused, and who was only cut off has nothing safe any more: no clock ends by it.
 *
 * bsp, and the death of a worker in the middle of clock c. A server *prepares* c when all workers have ended it: the
 * SUM is fixed and goes into the log, but the shards stay as they are, until a message of a later clock comes: its
 * worker's clock c was safe everywhere, so all servers have prepared it. Therefore, when a worker dies, either
 *   all servers have prepared c, with its pushes; the next clock needs none of it, but others for its rows; or
 *   some have not: then nobody has passed c, every shard still has the values that c began with, and who takes over the
 *   dead one's rows computes their part of c anew. Servers that have prepared c take no notice of it; the others drop
 *   what the dead one had pushed, and prepare c when each worker that is left has said (VIEW) that its part of the dead
 *   one's rows is there. Under exact sums the bits are those of a run in which nobody died, whoever has computed what.
 *   All this needs heirs that push what the dead one had pushed: servers that have prepared c compare the rows
 *   (replicas_same.c).
 *
 * A new replica. Its log begins with all that the log before would have told: the tables (CREATE) and their rows
 * (RESTORE) as they are, the SUM that is prepared, then WHOLE: clocks, barriers, and of each worker how far its stream
 * is logged. What is not logged yet is not sent; it is logged as ever, behind that. What the dead one had not confirmed
 * becomes safe when the new replica is whole, as does whatever follows, so the workers' next clock ends then. Should
 * who serves die before, the shards are lost: the new replica then answers NONE to whoever asks for them. A snapshot
 * that was under way is not copied: its pieces are refused should it come to that.
 *
 * Papers: Schneider, "Implementing fault-tolerant services using the state machine approach", Computing Surveys 1990;
 * van Renesse and Schneider, "Chain replication", OSDI 2004 (here of length 2); Li et al., "Scaling distributed machine
 * learning with the parameter server", OSDI 2014, section 4.3 (replication after aggregation).
 *
 * Invariants, beside the server's:
 *   7 Whatever is safe is in the log of the other replica, or there is no other replica, nor any rank left for one.
 *   8 Only who serves answers workers; a passive replica keeps their messages (of those who have heard sooner) until it
 *     serves.
 *   9 replicas->sum is the SUM of clock `applied`, prepared and not applied; no message of a later clock has been acted
 *     upon.
 *  10 What a worker is told of values is of updates that are safe: under bsp by 9; else what is said waits until the
 *     log is confirmed as far as it went then. So what was read once is not lost by a death.
 */
#ifndef PLI_TABLE_REPLICAS_H
#define PLI_TABLE_REPLICAS_H

#include "table/server/server.h"

enum { PLI_PLACES_MAX = 64 };

/* Which message of which worker an entry of the log is: its arg64. */
enum { PLI_LOG_SEQ_BITS = 40 };
static inline uint64_t pli_log_whose(int32_t worker, uint64_t seq) {
    return (uint64_t)worker << PLI_LOG_SEQ_BITS | seq;
}

/* Of a worker, in the log. */
enum { PLI_LOG_HERE, PLI_LOG_DEAD /* the others have stood in */, PLI_LOG_LEFT };

/* Where replicas of a server's shards may lie, its *places*: on its own rank (0), on the next of the servers' ranks
 * (1), then on the spares, then on the other servers' ranks. Two of them have one: at first 0 and 1, and when one has
 * died the first behind them that lives gets one. So nobody needs to be told where replicas are: who looks for one goes
 * on to the next place that is not dead, as the replica does that is left alone. */
static inline int32_t pli_replica_places(const pli_layout *layout) {
    const int32_t places = layout->servers + layout->spares;
    return layout->replicas < 2 ? 1 : places < PLI_PLACES_MAX ? places : PLI_PLACES_MAX;
}
static inline int32_t pli_replica_rank(const pli_layout *layout, int32_t server, int32_t place) {
    const int32_t near = layout->servers > 1 ? 2 : 1, spare = place - near;
    if (place < near) return layout->first_server + (server + place) % layout->servers;
    if (spare < layout->spares) return layout->workers - layout->spares + spare;
    return layout->first_server + (server + place - layout->spares) % layout->servers;
}
/** Which of the server's places the rank is; -1: none. */
static inline int32_t pli_replica_place(const pli_layout *layout, int32_t server, int32_t rank) {
    const int32_t places = pli_replica_places(layout);
    for (int32_t place = 0; place < places; place++)
        if (pli_replica_rank(layout, server, place) == rank) return place;
    return -1;
}
static inline uint16_t pli_replica_port(int32_t place) { return place == 0 ? PLI_PORT_SERVER : PLI_PORT_REPLICA; }

/* An entry of the log that the other replica has not confirmed. */
typedef struct pli_entry {
    struct pli_entry *next;
    bool              ends;   /* END */
    uint64_t          number; /* in the log                                                        */
    int32_t           worker; /* whose messages up to seq are safe with it; -1: see all            */
    uint64_t          seq;
    uint64_t         *all;      /* [workers], a SUM's; 0: none of that worker's. NULL: see worker */
    pli_msg          *requests; /* to be answered then, each with the answer of the same place  */
    pli_msg          *answers;
} pli_entry;

/* Which rows were pushed. */
typedef struct pli_extent {
    int64_t  n, most;   /* rows, in all and of one part */
    uint64_t low, high; /* the first and the last       */
    uint64_t digest;    /* of keys                      */
} pli_extent;

/* What is known of the clock that was prepared last: replicas_same.c. */
typedef struct pli_same {
    int64_t     clocks; /* that clock + 1; 0: nothing is known of one               */
    int64_t     tables;
    pli_extent *pushed; /* [tables, workers]; owns the next two as well             */
    pli_extent *said;   /* [tables, workers] to stand in; not yet said to be all    */
    pli_extent *stood;  /* [tables] the same of all workers, and it was all         */
    int64_t    *viewed; /* [workers] `clocks` as it was when the worker last said so */
} pli_same;

typedef struct pli_replicas {
    int32_t    place;
    bool       serves;
    bool       whole;       /* it has all that its log is the sequel of                               */
    bool       empty;       /* and never will: who could have made it so is dead                      */
    bool       over;        /* all workers have said good-bye                                         */
    int32_t    other;       /* rank of the other replica, the log's other end; -1: there is none (yet)   */
    int32_t    other_place; /* its place, or that of the last one                                     */
    uint64_t   died, left;  /* bit p: the rank of place p has, as far as it was heard                 */
    bool abandoned; /* its rank has ended in good order and had not confirmed all: the others went on without this one,
                             which they took for dead; nothing becomes safe by it any more */
    pli_tx     tx;    /* the log: who serves */
    pli_rx     rx;    /* who does not        */
    pli_entry *first, **last; /* not yet confirmed, in order */
    uint64_t  *safe;          /* [workers] */
    uint64_t  *in_log;        /* [workers] its messages up to here are in the log, if not yet with the other replica */
    uint64_t  *ended; /* [workers] number of the message that ended the worker's last clock, or of its VIEW since */
    uint64_t  *again; /* [workers] below it a pull is served though it was taken before: its answer may be lost   */
    pli_waiting_push **redo; /* [2, workers] pushes of dead ones' rows in the clock to be prepared: VIEWed, not yet */
    uint8_t   *views;         /* [workers, workers] w has said that it stands in for the dead v       */
    uint8_t   *dead;          /* [workers] died before they left: others must stand in for them       */
    uint8_t   *logged;        /* [workers] here, dead or left, as the log's last SUM has it           */
    int32_t    deaths;
    pli_msg   *sum;           /* see 9 */
    pli_wire_summed
                *listed; /* [n_listed] of which the SUM that is being made is the sum: where there is an event log */
    int64_t      n_listed, listed_capacity;
    bool         unlisted;      /* there was no memory for one */
    pli_same   same;
    uint64_t   met;           /* barriers that were complete */
    pli_msg   *gathered;      /* what the last of them is answered with; NULL: with what was dropped */
    int64_t    created;       /* tables in the log */
    pli_msg     *early, **early_last; /* see 8 */
    pli_msg     *held, **held_last; /* see 10: said to workers, in order; note: the entry that it waits for */
    pli_member_event *events;       /* [n_events] of workers, while it did not serve */
    int64_t    n_events, events_capacity;
} pli_replicas;

/* --- between the replicas' files ---------------------------------------------------------------------------------- */

/** NULL: out of memory. worker -1: it makes no message safe by itself. */
pli_entry *pli_entry_of(int32_t worker, uint64_t seq);
void       pli_entry_free(pli_entry *entry);
/** The request is answered so (taken; NULL: out of memory) when the entry is safe. false: out of memory. */
bool       pli_entry_answer(pli_entry *entry, const pli_msg *request, pli_msg *answer);
/** The next entry of the log: msg (taken; NULL: no memory), and what it makes safe (taken; NULL: no memory). */
void pli_replicas_append(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_entry *entry, pli_out *out);
/** The entry, which has its number, waits to be confirmed behind all others. */
void pli_replicas_await(pli_replicas *replicas, pli_entry *entry);
/** What is said to a worker waits until the log is confirmed: true, and taken. */
bool pli_replicas_hold(pli_server *server, pli_msg *msg);
/** Entries up to this number are with the other replica, or there is none. */
void pli_replicas_release(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out);
/** A message of the log, or its confirmation, is for the other replica. */
void pli_replicas_address(const pli_server *server, pli_msg *msg);
/** A SUM of the log is prepared here: true, and kept. */
bool pli_replicas_take_sum(pli_server *server, pli_msg *msg, pli_out *out);

/* replicas_same.c: do those who stand in push the rows of the dead? */

void pli_same_close(pli_same *same);
/** The clock is being prepared: its parts follow. false: out of memory. */
bool pli_same_begin(pli_server *server, int64_t clock);
void pli_same_pushed(pli_server *server, int64_t table, int32_t worker, const pli_push_part *part);
/** Pushes of a dead one's rows that come when the clock is prepared, or did just before. */
void pli_same_redone(pli_server *server, const pli_waiting_push *push);
/** The worker has said of the clock that its part of the dead ones' rows is there. What differs ends the run. */
void pli_same_viewed(pli_server *server, int32_t worker, int64_t clock, pli_out *out);

/* replicas_new.c: making a new replica, and becoming one */

/** The state as the log has it goes out, as entries that nobody waits for. */
void pli_replicas_tell_all(pli_server *server, uint64_t now_ns, pli_out *out);
/** An entry of that; with the last one the replica is whole. Errors: EFORMAT, ENOMEM. */
plait_status pli_replicas_hear(pli_server *server, const pli_msg *entry, plait_error *err);

/** Which replica of a server's shards `server` is. Errors: ENOMEM. */
plait_status pli_replicas_open(pli_server *server, int32_t place, plait_error *err);
void         pli_replicas_close(pli_server *server);

/** A message that is no worker's to a server, or comes to a replica that does not serve: true, and taken. */
bool pli_replicas_take(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** A member event, before the server acts upon it: true, and it is not to (yet). */
bool pli_replicas_member(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out);
void pli_replicas_wakeup(pli_server *server, uint64_t now_ns, pli_out *out);

/** A worker's message has been acted upon that goes into the log as it is. */
void pli_replicas_log(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** The same of a CREATE, whose answer (taken) waits until it is safe. */
void pli_replicas_created(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out);

/** A worker has all of a snapshot that is here, by msg: the other replica need not keep it any longer. It may come amid
 *  a clock, so it makes nothing safe that the worker has said before. */
void pli_replicas_released(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);

/** And of a RESTORE. */
void pli_replicas_restored(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out);

/** A message of this clock is about to be acted upon: what is prepared is applied where that shows it to be so
 *  everywhere. */
bool pli_replicas_reach(pli_server *server, int64_t clock, pli_out *out);
/** A part of msg goes into the SUM that is being made. */
void pli_replicas_list(const pli_server *server, const pli_msg *msg, pli_server_table *table);
/** The worker has ended its clock by msg. */
void pli_replicas_ended(pli_server *server, const pli_msg *msg);
/** How many clocks are prepared. */
static inline int64_t pli_replicas_prepared(const pli_server *server);
/** Prepares the clocks below target that can be. */
bool pli_replicas_prepare(pli_server *server, uint64_t now_ns, int64_t target, pli_out *out);
/** Pushes of a dead one's rows, of the clock that the worker has ended last: true: kept. */
bool pli_replicas_redo(pli_server *server, pli_msg *msg, pli_out *out);
void pli_replicas_view(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** A worker died that had not left: its pushes of clocks that are not prepared are dropped. */
void pli_replicas_bury(pli_server *server, int32_t worker);
/** Was the worker buried? What it sent is dropped, whenever it comes. */
static inline bool pli_replicas_buried(const pli_server *server, int32_t worker) {
    return server->replicas != NULL && server->replicas->dead[worker] != 0;
}

/** Is the message, taken before, a request whose answer may have been lost with the other replica? */
bool pli_replicas_serves_again(const pli_server *server, const pli_msg *msg);
/** The same, and it is only to be answered. */
bool pli_replicas_was_restored(const pli_server *server, const pli_msg *msg);

/** Answers barriers that are complete, or were before the other replica died. */
void pli_replicas_meet(pli_server *server, uint64_t now_ns, pli_out *out);
/** Answers who has said BYE, if all have. */
void pli_replicas_end(pli_server *server, uint64_t now_ns, pli_out *out);

static inline int64_t pli_replicas_prepared(const pli_server *server) {
    return server->applied + (server->replicas->sum != NULL);
}

#endif
