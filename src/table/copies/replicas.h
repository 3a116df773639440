/* table/copies/replicas.h - the replicas of a server's shards, kept on other ranks, so that any one rank may die, or,
 * with three replicas, any two at once. With two of them:
 *
 * The replicas of server s lie on its own rank (place 0) and on the next of the servers' ranks (place 1), each as a
 * machine of its own: the same state machine, server.h's. The first living one *serves*. Which one that is depends only
 * on the view, and all ranks of a view come to the same map without a coordinator. The other takes the log in and sends
 * nothing. When one of the two has died, the other makes a new replica at the next living place (below).
 *
 * The log (one stream, comm/stream.h, from the replica that serves to the other) holds what changes shards, in order:
 *   CREATE      as a worker has sent it
 *   SUM         tables that apply at clocks: of a clock all workers' pushes, added up, once they are complete: one
 *               message a clock, whatever the number of workers
 *   PUSH, CLOCK tables that apply at once: as the worker has sent it. If the server has tables of both kinds, all of
 *               it, with the parts that wait for the clock's end; these wait in both replicas, until the SUM. The end
 *               of a clock is in the log then, and so never sent again; but it is not safe before the SUM is
 *   AGES        before a push to a table whose rule asks how stale it is: what of the others the worker had fetched by
 *               then. Gets are not in the log, so the other replica could not tell
 *   MET         a barrier was complete, and with it what is prepared; with what workers brought to it (GATHER, by which
 *               collectives go: comm/carried.h)
 *   CALL        all have called a server function that updates tables, and it has run (replicas_calls.c): what it does
 *               is a function of rows that both replicas have, so it runs at both, in the same place among the sums
 *   SNAP        the first of its number: the pieces of a snapshot are here, too, when who serves dies; and when they
 *               have all been taken
 *   END         all workers have said good-bye
 * For each worker the log says up to which message of its stream it goes. What the other replica has is *safe*: SAFE
 * tells the worker, which keeps what it has sent until then. `clock` returns when the worker's updates are safe with
 * all servers. Of a SUM, a PUSH and a CLOCK the other replica tells the workers itself, since who serves would hear of
 * it a message later; it confirms the log (LOGGED) besides. Should it die, some workers may lack what it told, so who
 * serves tells all of them. Of all else who serves tells them, once the log is confirmed.
 *
 * bsp, and tables of which a shard is small: a worker that has read them as a whole says so when it ends its clock
 * (AHEAD), and goes on to read them so, as a rule. So the other replica, which has the SUM but has not applied it,
 * works out what it will make of them, and SAFE brings that along: the worker's next get asks nobody. The worker takes
 * the values when its clock has ended, as if it had asked just then. They are those of any replica: what is in both is
 * applied. A worker to whom they do not come asks as ever. The event log is told of a SUM when it is prepared, so both
 * replicas' logs have what was worked out. (replicas_ahead.c)
 *
 * When the replica that serves dies, the other goes on: each worker's stream continues where the log ends. So the
 * worker sends again what is not safe, and the other replica has applied none of that. (So an update is applied once,
 * whatever the rule keeps beside the values: rules run at both replicas, over the same sums in the same order.) A log
 * from a dead rank is refused. A replica that was only cut off makes nothing safe any more, so no clock ends by it.
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
 * bsp with backup workers: a clock is prepared without those that had not ended it. What comes of it later is dropped,
 * in all replicas alike: so each push, and each end of a clock, is in the log as it comes, and the SUM stands where the
 * clock was complete. The end of a clock that comes behind its SUM is safe once it is logged. A server that prepares
 * needs all that live to have stood in, as above; a worker that is late stands in when it has caught up, and pushes all
 * that has fallen to it from then on. A dead worker stays one of the slowest. What heirs push is not compared, since
 * the dead one may have been too late for some shards.
 *
 * A new replica: its log begins with all that the former log would have told but for rows: the tables (CREATE), the
 * SUM that is prepared, then WHOLE: clocks, barriers, and of each worker how far its stream is logged. If some tables
 * apply at clocks and some at once, the parts that wait for the clock's end follow. Now it has *begun*: the log goes
 * on, and it takes each entry as any replica does. Rows come in slices (SLICE, state/slice.h), between the entries,
 * from each table's first row to its last; one at a time, the next when the last is confirmed, so that neither side
 * holds much and nobody waits for long. A slice holds the rows as they are when it is sent. What changes rows behind
 * it stands behind it in the log, too, and changes them there; what has changed them before is in it. So the new
 * replica leaves out, of what it applies, the rows that it does not have yet. Nothing must stand in the log before a
 * slice and change the rows only behind it, so a slice says how many clocks are applied in it: the new replica applies
 * the SUM that it has prepared first, if who serves has. When all slices are there another WHOLE, without a body, says
 * so.
 *
 * What the dead one had not confirmed becomes safe when the new replica has begun and has all that the log had until
 * then, as does whatever follows when it has that. Should who serves die before the last WHOLE, the shards are lost:
 * the new replica then answers NONE to whoever asks for them. A snapshot that is under way, or is begun before the
 * last WHOLE, is not copied: its pieces are refused should it come to that.
 *
 * Three replicas are a chain, in the order of their places: the first living three. (So who is in it depends only on
 * who has died, whatever a rank heard of first; a new replica always comes behind all others.) The first serves. Each
 * takes the log from the one before it and passes every entry on; an entry is safe when the last has it, which says
 * LOGGED, and LOGGED goes back along the chain. So each replica has all that those behind it have. The last one tells
 * the workers itself, as the other of two does. Each keeps what it has passed on until it is confirmed. What a replica
 * does, by event:
 *   an entry comes       It is numbered, by counting; one that is here already is dropped. It is passed on, and taken
 *                        in. The last replica confirms it.
 *   LOGGED comes         The entries are safe. It goes on to the replica before.
 *   the one before died  The next living one before that will send CHAIN. If there is none, this replica comes first,
 *                        and appends SERVES. It acts upon nothing before that is confirmed: so what it tells anybody is
 *                        known to the next one, too. (If that one is not whole yet, the shards would be lost with this
 *                        replica anyway, and it does not wait.)
 *   the one behind died  CHAIN goes to the next living one, and behind it what is not confirmed.
 *   CHAIN comes          A new stream begins: it says which number its next entry has, and which replica serves. Ranks
 *                        between the sender and this one are dead, then. A replica that is not whole answers LACKS to
 *                        all of such a stream.
 *   LACKS comes          The other gets the state: a stream with the flag ANEW, as above. If it has a part of the state
 *                        from one that died since, it forgets that (hosted.c opens it once more).
 *   WHOLE comes          The replica is whole. It makes the next one behind it, if the chain lacks one; else it is the
 *                        last, and tells all workers how far its log goes: nobody else told them of what came with the
 *                        state. (So does any replica that becomes the last, and who serves when a replica has died.)
 *   SERVES comes         The log is that of the replica at this place from now on: one before it is taken for dead,
 *                        whatever it sends.
 *   END comes            The rank may end its job when those behind have it, too.
 * With two replicas there is nobody behind the other one, so a new one gets the state without being asked.
 *
 * The tables of a group are a job of its members (group_part.c), with machines that know the members by their numbers.
 * So all of the above holds of a group, with its members for the workers and their ranks for the servers: the other
 * replica of member i's shards lies with the next member, a member's death is a matter of its groups alone, and a group
 * of one rank is refused, since that rank would hold the only copy. What "all workers" does elsewhere:
 *   clocks       Each group prepares and applies its clocks by itself. A worker of several groups ends its clock in one
 *                after the other (job_clock.c), so a death may find it ended here and open there: plait_table_inherits
 *                tells for each table what is to be redone.
 *   several      Where members of different groups belong together, as the ranks of a replica that is cut in
 *   parts        stages, what one pushes is a function of values that lie with the others. Such workers end their
 *                clocks together (pli_job_end_clocks_with): in all of their parts or in none, and who stands in does
 *                so in all, for the same dead. learn/net/outlive.h says why no update is lost or counted twice.
 *   collectives  The group's first member carries those of a group that has tables, from their creation on (GATHER).
 *                Those of a group without tables end with EPEER when a member dies.
 *   beginning    Members that die before the group's first table are absent from its creation; their shards are opened
 *                at the next member at once.
 *
 * Papers: Schneider, "Implementing fault-tolerant services using the state machine approach", Computing Surveys 1990;
 * van Renesse and Schneider, "Chain replication for supporting high throughput and availability", OSDI 2004; Li et al.,
 * "Scaling distributed machine learning with the parameter server", OSDI 2014, section 4.3 (replication after
 * aggregation).
 *
 * Invariants, beside the server's:
 *   7 Whatever is safe is in the log of all other replicas, or there is no other replica, nor any rank left for one. (A
 *     new replica that lacks rows has the log, but cannot serve.) What a replica has is in those before it.
 *   8 Only who serves answers workers; a passive replica keeps their messages (of those who have heard sooner) until it
 *     serves.
 *   9 replicas->sum is the SUM of clock `applied`, prepared and not applied; no message of a later clock has been acted
 *     upon.
 *  10 What a worker is told of values is of updates that are safe: under bsp by 9, and what comes ahead is taken once
 *     its clock is safe everywhere; if some table applies at once, what is said waits until the log is confirmed as far
 *     as it went then. So what was read once is not lost by a death.
 *  11 Where each push is logged and some tables apply at clocks, both replicas hold the same pushes of the clock that
 *     is under way, as far as the log goes; its SUM takes their place.
 */
#ifndef PLI_TABLE_REPLICAS_H
#define PLI_TABLE_REPLICAS_H

#include "table/copies/moves.h"
#include "table/copies/roster.h"
#include "table/server/server.h"

enum { PLI_PLACES_MAX = 64, PLI_REPLICAS_MAX = 3 };

/* arg64 of a log entry: which message of which worker it is. */
enum { PLI_LOG_SEQ_BITS = 40 };
/* A rank that was started anew numbers its messages above those of its former lives, so of two of a worker's messages
 * the later one has the higher number, whoever lived; and servers do so with what they send to it. */
enum { PLI_LIFE_SEQ_BITS = 32, PLI_LIVES_MAX = 255 };
static inline uint64_t pli_seq_before(uint32_t life) {
    return life < 2 ? 0 : (uint64_t)(life - 1) << PLI_LIFE_SEQ_BITS;
}
static inline uint64_t pli_log_whose(int32_t worker, uint64_t seq) {
    return (uint64_t)worker << PLI_LOG_SEQ_BITS | seq;
}

/* The state of a worker, in the log. */
enum { PLI_LOG_HERE, PLI_LOG_DEAD /* the others have stood in */, PLI_LOG_LEFT,
       PLI_LOG_AWAY /* see roster.h */, PLI_LOG_PARKED /* besides, in WHOLE: barriers do without it */,
       PLI_LOG_AHEAD = 128 /* besides, in a SUM: it wants the next clock's values */ };

/* Where replicas of a server's shards may lie, its *places*: its own rank (0), the next of the servers' ranks (1; 2 if
 * there are three replicas), then the spares, then the other servers' ranks. The first living places have a replica: at
 * first 0 and 1 (2). When one has died, the first living place behind all gets one. So nobody needs to be told where
 * replicas are: a worker that looks for one goes on to the next place that is not dead, and so does a replica. */
static inline int32_t pli_replica_places(const pli_layout *layout) {
    const int32_t places = layout->servers + layout->spares;
    return layout->replicas < 2 ? 1 : places < PLI_PLACES_MAX ? places : PLI_PLACES_MAX;
}
static inline int32_t pli_replica_rank(const pli_layout *layout, int32_t server, int32_t place) {
    if (pli_moves_are_on(layout)) return place % layout->workers;
    const int32_t near = layout->servers < layout->replicas ? layout->servers : layout->replicas, spare = place - near;
    if (place < near) return layout->first_server + (server + place) % layout->servers;
    if (spare < layout->spares) return layout->workers - layout->spares + spare;
    return layout->first_server + (server + place - layout->spares) % layout->servers;
}
/** Which of the server's places is on the rank; -1: none. Not where shards move. */
static inline int32_t pli_replica_place(const pli_layout *layout, int32_t server, int32_t rank) {
    const int32_t places = pli_replica_places(layout);
    for (int32_t place = 0; place < places; place++)
        if (pli_replica_rank(layout, server, place) == rank) return place;
    return -1;
}
/** Where shards move all replicas are behind one port. */
static inline uint16_t pli_replica_port(const pli_layout *layout, int32_t place) {
    return place == 0 && !pli_moves_are_on(layout) ? PLI_PORT_SERVER : PLI_PORT_REPLICA;
}

/* An entry of the log that the replicas behind have not confirmed yet. */
typedef struct pli_entry {
    struct pli_entry *next;
    bool              ends;   /* END */
    bool              waits;  /* for a SUM: seq is in the log by this entry, and safe by a later one */
    bool              told;   /* the last replica tells the workers itself that it is safe */
    uint64_t          number; /* in the log                                                        */
    pli_msg          *sent;   /* three replicas: for one further behind, should the next one die; else NULL */
    int32_t           worker; /* the worker whose messages up to seq it makes safe; -1: see all    */
    uint64_t          seq;
    uint64_t         *all;      /* [workers], for a SUM: the same for each worker; 0: none of its messages. NULL: see
                                 * worker */
    pli_msg          *requests; /* requests to be answered when it is safe, each with the answer at the same place */
    pli_msg          *answers;
} pli_entry;

/* A summary of which rows were pushed. */
typedef struct pli_extent {
    int64_t  n, most;   /* how many rows: in all; in the largest part */
    uint64_t low, high; /* the first and the last key   */
    uint64_t digest;    /* of the keys                  */
} pli_extent;

/* What is known of the clock that was prepared last (replicas_same.c). */
typedef struct pli_same {
    int64_t     clocks; /* that clock + 1; 0: no clock is known                     */
    int64_t     tables;
    pli_extent *pushed; /* [tables, workers]; owns the next two as well             */
    pli_extent *said;   /* [tables, workers] what stand-ins have pushed; not yet said to be all */
    pli_extent *stood;  /* [tables] the same of all workers, once said to be all    */
    int64_t    *viewed; /* [workers] `clocks` when the worker last said that its part was all; owns the next */
    int64_t    *in;     /* [workers] `clocks` of the last clock that the worker took part in */
} pli_same;

typedef struct pli_replicas {
    int32_t    place;
    bool       serves;
    bool       leads;       /* no replica before it lives: it serves, or will when `settles` is confirmed */
    bool       begun;       /* it has what the log continues from, but for rows: entries are taken as they come  */
    bool       whole;       /* it has the rows, too                                                   */
    bool       speaks;      /* if it is the last, it tells workers what is safe                       */
    bool       empty;       /* it will never be whole: no replica is left that could make it so       */
    bool       over;        /* all workers have said good-bye                                         */
    int32_t    from, from_place; /* where the log comes from: rank and place; -1: from nowhere (yet)  */
    int32_t    to, to_place;     /* where it goes; -1: nowhere (yet)                                  */
    int32_t    maker;            /* place of the replica that made the last entry                     */
    bool       takes_state, sends_state; /* the log that it takes, that it sends, has begun with a state (ANEW) */
    bool       heard;            /* something of a state has come                                     */
    bool       linked;           /* CHAIN has come, and is not answered                                */
    uint64_t   died, left;  /* bit p: the rank of place p has, as far as it was heard                 */
    bool abandoned; /* the rank behind has ended in good order although workers have not said good-bye here: the others
                     * went on without this one, which they took for dead; nothing becomes safe any more */
    uint64_t   log;       /* number of the last entry here                      */
    uint64_t   coming, opened; /* number of the next one that comes; of the first that came in this stream */
    uint64_t   confirmed; /* all replicas behind have the entries up to this one */
    uint64_t   settles;   /* see `leads`                                        */
    pli_tx     tx;    /* the log, as it goes on   */
    pli_rx     rx;    /* the log, as it comes     */
    pli_entry *first, **last; /* not yet confirmed, in order */
    bool       making;        /* the replica behind is new, and is not sent all rows yet: see replicas_new.c */
    uint64_t   taken;         /* it has taken this message of the stream, and all before                  */
    uint64_t   begins;        /* the message with which it has begun: behind it the log goes on           */
    uint64_t   slice;         /* the last slice that it was sent                                          */
    uint64_t  *safe;          /* [workers] */
    uint64_t  *in_log;        /* [workers] its messages up to here are in the log, if not yet with the other replica */
    uint64_t  *ended; /* [workers] number of the message that ended the worker's last clock, or of its VIEW since */
    uint64_t  *again; /* [workers] a pull below this number is served though it was taken before: its answer may be
                       * lost */
    pli_waiting_push **redo; /* [2, workers] pushes of dead ones' rows in the clock to be prepared: with their VIEW, and
                              * without yet */
    uint8_t   *views;         /* [workers, workers] w has said that it stands in for the dead v       */
    uint8_t   *dead;          /* [workers] 1: died before it left, so others must stand in for it     */
    uint8_t   *logged;        /* [workers] here, dead or left, as the last SUM of the log says        */
    uint8_t   *ahead;         /* [workers] 1: its last clock's end asks for the next one's values     */
    int32_t    deaths;
    pli_roster roster;
    pli_moves  moves;
    pli_msg   *sum;           /* see 9 */
    pli_wire_summed
                *listed; /* [n_listed] the parts that the SUM being made consists of, if there is an event log */
    int64_t      n_listed, listed_capacity;
    bool         unlisted;      /* there was no memory for a part of the list */
    pli_same   same;
    uint64_t   met;           /* how many barriers were complete */
    uint64_t   called;        /* how many calls of server functions that update have run */
    pli_msg   *answered;      /* the answer to the last of them; NULL: none has run */
    pli_msg   *gathered;      /* the answer to the last barrier, if it was a GATHER; NULL: it was not */
    int64_t    created;       /* how many tables are in the log */
    pli_msg     *parked, **parked_last; /* entries that wait, in order: a CALL, while the third replica is made, and all
                                         * behind it (replicas_calls.c) */
    uint64_t     n_parked;
    pli_msg     *early, **early_last; /* see 8 */
    pli_msg     *held, **held_last; /* see 10: messages to workers, in order; note: the entry that each waits for */
    pli_member_event *events;       /* [n_events] what became of workers while this replica did not serve */
    int64_t    n_events, events_capacity;
} pli_replicas;

/* --- between the replicas' files ---------------------------------------------------------------------------------- */

/** NULL: out of memory. worker -1: it makes no message safe by itself. */
pli_entry *pli_entry_of(int32_t worker, uint64_t seq);
void       pli_entry_free(pli_entry *entry);
/** When the entry is safe, sends this answer to the request (taken; NULL: out of memory). false: out of memory. */
bool       pli_entry_answer(pli_entry *entry, const pli_msg *request, pli_msg *answer);
/** Appends an entry to the log: msg (taken; NULL: no memory), and what it makes safe (taken; NULL: no memory). */
void pli_replicas_append(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_entry *entry, pli_out *out);
/** Puts the entry, which has its number, behind all others that wait to be confirmed. */
void pli_replicas_await(pli_replicas *replicas, pli_entry *entry);
/** Sends a message of the log to the replica behind (taken), with these flags. false: out of memory. */
bool pli_replicas_send(pli_server *server, uint64_t now_ns, pli_msg *msg, uint16_t flags, pli_out *out);
/** Makes a message to a worker wait until the log is confirmed. true: it was taken. */
bool pli_replicas_hold(pli_server *server, pli_msg *msg);
/** Does the replica that takes this entry of the log, and is whole, tell the workers itself that it is safe? */
bool pli_replicas_tells(const pli_server *server, const pli_msg *msg);
/** All replicas behind have all entries up to this number, or there is none. */
void pli_replicas_release(pli_server *server, uint64_t now_ns, uint64_t number, pli_out *out);
/** Sends a part of a state, or what begins a stream (taken; NULL: no memory): no entry of the log. */
void pli_replicas_say(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** Addresses a message of the log, or its confirmation, to the replica at that place. */
void pli_replicas_address(const pli_server *server, int32_t place, pli_msg *msg);
/** Tells all workers how far their messages are safe. */
void pli_replicas_tell_again(pli_server *server, pli_out *out);
/** Up to which message of the worker all is in the log. */
static inline uint64_t pli_replicas_logged(const pli_server *server, int32_t worker);
/** ... and up to which all is safe once it is logged: not the end of a clock whose SUM is not there. */
uint64_t pli_replicas_safe_by_log(const pli_server *server, int32_t worker);
/** Prepares a SUM that the log has brought; told: the event log knows of it. true: it was kept. */
bool pli_replicas_take_sum(pli_server *server, pli_msg *msg, bool told, pli_out *out);
/* What a SUM that was taken says of workers and parts. */
typedef struct pli_summed {
    const uint64_t *ended;   /* [workers] the number of the message that ended the clock; 0: the worker has not */
    const uint64_t *version; /* [parts] of the table, once it is applied  */
    const uint8_t  *gone;    /* [workers] PLI_LOG_HERE .., and LOG_AHEAD  */
} pli_summed;
pli_summed pli_replicas_summed(const pli_server *server, const pli_msg *sum);

/* replicas_ahead.c: the next clock's values come with the word that the last one is safe */

/** Tells the workers that have ended the clock of the SUM, which was just taken, that it is safe. */
void pli_replicas_tell_summed(pli_server *server, pli_out *out);

/* replicas_same.c: do those who stand in push the same rows as the dead did? */

void pli_same_close(pli_same *same);
/** The clock is being prepared: its parts follow. false: out of memory. */
bool pli_same_begin(pli_server *server, int64_t clock);
void pli_same_pushed(pli_server *server, int64_t table, int32_t worker, const pli_push_part *part);
/** Notes pushes of a dead one's rows that come after the clock is prepared, or came just before. */
void pli_same_redone(pli_server *server, const pli_waiting_push *push);
/** The worker has said that its part of the dead ones' rows in the clock is there. If the rows differ, the run ends. */
void pli_same_viewed(pli_server *server, int32_t worker, int64_t clock, pli_out *out);

/* replicas_relay.c: which replicas there are, and how the log goes from each to the next */

/** How many replicas shards have when nobody has died. */
static inline int32_t pli_relay_length(const pli_server *server) {
    return server->layout.replicas < 2 ? 2 : server->layout.replicas;
}
static inline bool pli_relay_is_long(const pli_server *server) {
    return pli_relay_length(server) > 2 || pli_moves_are_on(&server->layout);
}
/** Where the log comes from and goes to when the job begins. */
void pli_relay_open(pli_server *server);
/** May the log come from this rank? Not from one that is dead, nor from one that another has taken the place of. */
bool pli_relay_takes_from(const pli_server *server, int32_t rank);
/** A message of the log comes from a rank from which it may: true: it is to be taken. Else it was answered, or is
 *  late. */
bool pli_relay_admits(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** Takes CHAIN. */
void pli_relay_take_link(pli_server *server, const pli_msg *msg, pli_out *out);
/** An entry has come: counts it, and passes it on. false: it is here already. */
bool pli_relay_takes_entry(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** All that has come was taken in: says so to the replica before. */
void pli_relay_taken(pli_server *server, uint64_t now_ns, pli_out *out);
/** Takes LOGGED or LACKS. */
void pli_relay_take_answer(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** Begins to send the log to the next replica behind, if there is none to which it goes and the chain lacks one. Else,
 *  if it goes nowhere, all of it is confirmed. */
void pli_relay_look_behind(pli_server *server, uint64_t now_ns, pli_out *out);
/** The replica may tell workers what is safe from now on, and does. */
void pli_relay_speak(pli_server *server, pli_out *out);
/** The replica has become whole. */
void pli_relay_whole(pli_server *server, uint64_t now_ns, pli_out *out);
/** The rank of that place is gone. */
void pli_relay_gone(pli_server *server, uint64_t now_ns, const pli_member_event *event, int32_t place, pli_out *out);
/** The list of places has changed by the log (moves.h): the replica comes first, or makes the next one, if it is to. */
void pli_relay_follow_list(pli_server *server, uint64_t now_ns, pli_out *out);
/** Where shards move: a replica that is opened hears of the list, and of who serves. */
void pli_replicas_hear_list(pli_server *server, const pli_list *list, uint64_t key, int32_t maker);
/** A message of the log comes to one that leads: it says once more how far all is confirmed. */
void pli_relay_answer_late(pli_server *server, pli_out *out);
/** The one behind is out: the log goes to the one behind that. */
void pli_relay_pass_over(pli_server *server, uint64_t now_ns, pli_out *out);
/** Keeps a worker's message until the replica serves. */
void pli_replicas_keep_early(pli_server *server, pli_msg *msg);
/** Gives away what workers have said while the replica did not serve. */
pli_msg *pli_replicas_give_early(pli_server *server);
/** Is it the last replica, and so tells the workers what is safe? */
bool pli_relay_tells(const pli_server *server);
/** Does a state begin with msg, so that the replica must forget the part of another state that it has? */
bool pli_relay_starts_over(const pli_server *server, const pli_msg *msg);
/** replicas_follow.c: the replica is the first of the chain from now on, and so serves, or never will. */
void pli_replicas_come_first(pli_server *server, uint64_t now_ns, pli_out *out);
/** It acts upon messages from now on, if nothing of its log before could be lost with it alone. */
void pli_replicas_settle(pli_server *server, uint64_t now_ns, pli_out *out);

/* replicas_calls.c: server functions that update tables run at both replicas */

/** A call has run here, for all these requests [n] alike: it goes into the log, and its answer (taken) to all of them
 *  when it is safe. */
void pli_replicas_called(pli_server *server, uint64_t now_ns, pli_msg *const *requests, int32_t n, pli_msg *answer,
                         pli_out *out);
/** Takes a CALL that the log has brought: runs it. */
void pli_replicas_take_call(pli_server *server, pli_msg *msg, pli_out *out);
/** Must an entry of the log wait until the replica behind has all rows? true: it was taken. */
bool pli_replicas_park(pli_server *server, pli_msg *msg);
/** Gives back the first entry that waits, if it need not any longer; NULL: there is none. */
pli_msg *pli_replicas_unpark(pli_server *server);
/** What waits was made by a replica that has died: nobody else has it. */
void     pli_replicas_drop_parked(pli_server *server);
/** Answers who calls again what has run. */
void pli_replicas_answer_calls(pli_server *server, uint64_t now_ns, pli_out *out);

/* replicas_new.c: how a new replica is made, and how a rank becomes one */

/** Begins to make a new replica: tells it the state as the log has it, but for rows, which follow by slices. */
void pli_replicas_tell_all(pli_server *server, uint64_t now_ns, pli_out *out);
/** Sends the next slice, once the last one is confirmed. Nothing happens where no replica is being made. */
void pli_replicas_slice(pli_server *server, uint64_t now_ns, pli_out *out);
/** The new replica is gone. */
void pli_replicas_stop_making(pli_server *server);
/** Takes one of the entries that tell the state; after the last one the replica has begun. Errors: EFORMAT, ENOMEM. */
plait_status pli_replicas_hear(pli_server *server, const pli_msg *entry, plait_error *err);
/** Takes a slice. Errors: likewise. */
plait_status pli_replicas_take_slice(pli_server *server, const pli_msg *msg, pli_out *out, plait_error *err);
/** The last slice is there. Errors: EFORMAT. */
plait_status pli_replicas_complete(pli_server *server, plait_error *err);
/** Is it a new replica that is told its tables? Their rows will come by slices. */
static inline bool pli_replicas_begins(const pli_server *server) {
    return server->replicas != NULL && !server->replicas->begun;
}

/** Opens `server` as the replica at that place. Errors: ENOMEM. */
plait_status pli_replicas_open(pli_server *server, int32_t place, plait_error *err);
void         pli_replicas_close(pli_server *server);

/** Takes a message that is not from a worker to a server, or that comes to a replica that does not serve. true:
 *  taken. */
bool pli_replicas_take(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** Sees a member event before the server does. true: the server must not act upon it (yet). */
bool pli_replicas_member(pli_server *server, uint64_t now_ns, const pli_member_event *event, pli_out *out);
void pli_replicas_wakeup(pli_server *server, uint64_t now_ns, pli_out *out);

/** Does each push, and each end of a clock, go into the log as it comes? It does where a table applies at once; else a
 *  clock's SUM is enough. */
bool pli_server_logs_all(const pli_server *server);
/** Logs a worker's message as it is, after it was acted upon. */
void pli_replicas_log(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** Logs a CREATE; its answer (taken) waits until it is safe. */
void pli_replicas_created(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out);

/** A worker has all of a snapshot that is here, by msg, so the other replica need not keep it any longer. msg may come
 *  in the middle of a clock, so it makes nothing safe that the worker has sent before. */
void pli_replicas_released(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);

/** Logs a RESTORE. */
void pli_replicas_restored(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_msg *answer, pli_out *out);

/** A message of this clock is about to be acted upon. If that shows that the prepared clock is prepared everywhere, it
 *  is applied. */
bool pli_replicas_reach(pli_server *server, int64_t clock, pli_out *out);
/** Adds a part of msg to the list of the SUM that is being made. */
void pli_replicas_list(const pli_server *server, const pli_msg *msg, pli_server_table *table);
/** The worker has ended its clock, by msg. */
void pli_replicas_ended(pli_server *server, const pli_msg *msg);
/** How many clocks are prepared or applied. */
static inline int64_t pli_replicas_prepared(const pli_server *server);
/** Prepares those clocks below target that can be prepared. */
bool pli_replicas_prepare(pli_server *server, uint64_t now_ns, int64_t target, pli_out *out);
/** Takes pushes of a dead one's rows, in the clock that the worker has ended last. true: kept. */
bool pli_replicas_redo(pli_server *server, pli_msg *msg, pli_out *out);
void pli_replicas_view(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** A worker died before it left: drops its pushes of clocks that are not prepared. */
void pli_replicas_bury(pli_server *server, int32_t worker);
/** Was the worker buried? What it sent is dropped, whenever it comes. */
static inline bool pli_replicas_buried(const pli_server *server, int32_t worker) {
    return server->replicas != NULL && server->replicas->dead[worker] != 0;
}

/** The message was taken before. Is it a request whose answer may have been lost with the other replica? */
bool pli_replicas_serves_again(const pli_server *server, const pli_msg *msg);
/** The same for a RESTORE, which is only to be answered. */
bool pli_replicas_was_restored(const pli_server *server, const pli_msg *msg);

/** Answers barriers that are complete, or were so before the other replica died. */
void pli_replicas_meet(pli_server *server, uint64_t now_ns, pli_out *out);
/** Answers all that have said BYE, if all workers have. */
void pli_replicas_end(pli_server *server, uint64_t now_ns, pli_out *out);

static inline int64_t pli_replicas_prepared(const pli_server *server) {
    return server->applied + (server->replicas->sum != NULL);
}
static inline uint64_t pli_replicas_logged(const pli_server *server, int32_t worker) {
    return server->replicas->serves ? server->replicas->in_log[worker] : server->peer[worker].rx.expected - 1;
}

#endif
