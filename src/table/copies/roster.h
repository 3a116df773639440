/* table/copies/roster.h - which workers are in: workers leave a job and join it while it runs.
 *
 * A job has as many workers as slots. A worker that is *away* takes no clock, and nobody waits for it; its items are
 * held by the others, as a dead one's are (plait_job_holder). Its rank lives on: it hears, it votes, and it may join
 * again. The last `slots` workers are away from the first; any other may leave. Clocks with two replicas of each shard
 * (replicas.h) under bsp only.
 *
 * The *roster* says who is in. It changes at the end of a clock and is the same for all:
 *   leave   A worker ends its last clock with the flag LEAVES. Each server has this CLOCK before it prepares the clock,
 *           so the clock's SUM says AWAY in the log of each. All that the worker has pushed counts, and nothing is
 *           done again: the others hold its items from the next clock on.
 *           Nobody waits until it has heard that. If one dies before, it stands in for that one in a clock that is over
 *           everywhere: what it pushes is dropped, and what it reads may be of any later clock.
 *   join    A worker that is away asks the first server (JOIN). When that server prepares a clock c, the SUM says HERE
 *           of it: it takes part from clock c + 1 on. The word that clock c is safe (SAFE) brings the roster to all
 *           workers, so they all know before clock c + 1. Each tells each server (ROSTER), ahead of anything of clock
 *           c + 1; so no server prepares that clock without the new one. A worker that waits may be told to come
 *           sooner: its JOIN is sent once more, for the same answer, with an earlier clock (`soon_ns`: when). The
 *           answer to JOIN waits until a message of clock c + 1 has come: then all servers have prepared c
 *           (replicas.h), and what the new worker does cannot be too early. It tells the servers for which dead ones it
 *           stands in with the others.
 *   shut    Those who are in may end a clock with the flag SHUT, all of them: then nobody is let in with it, and a JOIN
 *           waits. So who knows between some clocks what nobody could hand over lets others in between other ones.
 * Servers and workers so go from one roster to the next at the same clock, without a message more in clocks in which
 * nobody comes or goes. Who decides is the first server alone, and its log has the decision before anybody acts upon
 * it, so its death changes nothing: the other replica knows the roster from the SUM, and JOIN is asked again. (For that
 * all workers end their clocks at the first server, whether or not it has a shard of their tables.) No JOIN is stale
 * then: until it is answered it is the worker's last message, so no log has a later one; of one that was answered only
 * the number is sent again.
 *
 * A worker that dies while it is away is missed by nobody. If it was just let in, and a server hears of its death
 * first, it is buried as it enters: the others then stand in for it in that clock.
 *
 * A worker that has died may be started anew, as another *life* of its rank (comm/apart.c): each machine hears that it
 * has JOINED. It has forgotten all. It tells no one what the job is: it creates the tables as it did, and each server
 * compares the options with those that it knows. It is away, once a SUM has said that the former life is dead, so that
 * all have stood in for that; then it asks to join, as one that has left would. Its rank has no shards any more.
 *   - Servers take messages of the life that they know of, and drop others. A worker numbers its messages above those
 *     of its former lives (pli_seq_before), and so do servers what they say to it. So what comes late, from the log,
 *     or again, is older than all that this life says.
 *   - SUM, WHOLE and the roster say of each worker of which life they speak. A machine that hears of the next life
 *     from them, before its own news, forgets the former one then. One that hears the news first still buries the
 *     former life, if the roster has let that in.
 *   - A death counts for the life that has died: one that the roster has let in since is not missed for it.
 *   - A life that comes when servers have ended has come too late, and ends (client_replicas.c).
 *
 * Collectives and barriers go without those who are away: at the first server from their JOIN on, or from their last
 * clock on. The answer to JOIN brings the number of the last barrier, so the new worker comes to the next one. When all
 * others have said BYE, JOIN is answered by that: the job is over. (If they have all died, it fails.)
 *
 * Server functions that update tables (replicas_calls.c) run when all who are in have called them: the roster changes
 * at a server before the first call of the next clock comes. Calls are numbered, and no server counts all of them. So a
 * worker that joins calls none until one that was in has told it the number (pli_job_take_calls).
 *
 * The event log shows a worker that is away as one whose clocks are empty: servers count its clocks with each SUM, and
 * the worker notes the barriers and clocks that it has missed when it joins, or hears of the end. Zeroings of tables
 * (plait_table_zero) it notes when it comes: behind a clock with which workers have come there is a collective of all
 * who are in, by which those hear of them (zero.c).
 *
 * Papers: Birman, Joseph, "Exploiting virtual synchrony in distributed systems", SOSP 1987 (who is in changes between
 * two messages that all take in one order); Harlap et al., "Proteus: agile ML elasticity through tiered reliability in
 * dynamic resource markets", EuroSys 2017 (workers come and go beside servers that stay). */
#ifndef PLI_TABLE_ROSTER_H
#define PLI_TABLE_ROSTER_H

#include "table/client/client.h"

/* --- servers: replicas_roster.c ----------------------------------------------------------------------------------- */

/* Who is away, as a replica of shards knows. */
typedef struct pli_roster {
    uint8_t  *away;   /* [workers] it takes no clock */
    uint8_t  *leaves; /* [workers] its last clock ended with LEAVES */
    uint8_t  *parked; /* [workers] barriers do without it */
    uint8_t  *life;   /* [workers] which life of its rank the server speaks to, from 1 on */
    uint8_t  *fell;   /* [workers] the life that others have stood in for last; 0: none */
    pli_msg **join;   /* [workers] JOIN, not yet answered; NULL: none */
    int32_t   n_away;
    bool      shut;    /* who has ended the clock at hand says that nobody is let in with it; all say the same */
    uint64_t  barriers; /* of tables, complete */
    bool      anew; /* some rank was started anew */
    bool      ends; /* somebody has said BYE, or has ended */
} pli_roster;

/** Bytes of a roster on the wire. */
static inline uint64_t pli_roster_size(const pli_layout *layout) { return pli_pad8(2 * (uint64_t)layout->workers); }
/** The last `slots` workers are away. false: no memory. */
bool pli_roster_open(pli_server *server);
void pli_roster_close(pli_server *server);

/** Has the server clocks to count, even without a table? The first one has, where workers may join. */
static inline bool pli_roster_counts(const pli_server *server) {
    return server->layout.slots > 0 && server->number == 0;
}
/** A server with clocks to count, but without a table, hears of the job's first clock by its first end. */
void pli_roster_begin_at(pli_server *server, int64_t clock);
/** What the SUM of clock says of a worker that has not died: is it away from the next clock on? */
bool pli_roster_is_away_after(const pli_server *server, int32_t worker, int64_t clock);
/** The SUM of clock says that the worker is away from the next clock on, or takes part from clock `from` on. */
void pli_roster_retire(pli_server *server, int32_t worker);
void pli_roster_admit(pli_server *server, int32_t worker, int64_t from);
/** The SUM says that the worker has died while it was in, of which this replica may not have heard. */
void pli_roster_was_in(pli_server *server, int32_t worker);
/** The worker's rank was started anew, in this life: what is said to the former one, or comes from it, counts no
 *  more. The new life is away, as soon as a SUM has said that the former one is dead. */
void pli_roster_return(pli_server *server, int32_t worker, uint32_t life);
/** Is the event about a life that the server knows to be over, or to have begun? */
bool pli_roster_is_past(const pli_server *server, const pli_member_event *event);
/** Is the message from another life of its rank than the one that the server knows of? */
bool pli_roster_is_stranger(const pli_server *server, const pli_msg *msg);
/** The worker has died and is buried, but its rank lives anew. */
bool pli_roster_has_returned(const pli_server *server, int32_t worker);
/** A worker has died, or ended: it is not let in. */
void pli_roster_forget(pli_server *server, int32_t worker);
bool pli_roster_is_parked(const pli_server *server, int32_t worker);

/** Messages of workers: JOIN (true: kept), ROSTER, and a LEAVE to a server that has no clocks of the worker's. */
bool pli_roster_join(pli_server *server, pli_msg *msg, pli_out *out);
void pli_roster_take(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** Answers each JOIN whose time has come. */
void pli_roster_answer(pli_server *server, uint64_t now_ns, pli_out *out);
/** Puts the roster before what SAFE brings, if anybody is away. msg is taken, and returned or replaced; NULL: no
 *  memory. */
pli_msg *pli_roster_before(const pli_server *server, pli_msg *msg);

/* --- workers: client_roster.c. All in the machine. ---------------------------------------------------------------- */

/** Bytes of a roster that a SAFE begins with. */
uint64_t pli_roster_bytes(const pli_client *client, const pli_msg *safe);
/** The first server says, with a clock of this worker safe, who is in. */
void         pli_client_hear_roster(pli_client *client, int32_t server, const pli_msg *safe);
/** The worker's clock has ended: it takes the roster, and tells the servers who is in, if somebody has come. */
plait_status pli_client_follow_roster(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err);
/** Asks to take part from clock `from` on, or from the earliest later one; and from soon_ns on (PLI_NEVER: never) from
 *  the next one at all. */
plait_status pli_client_ask_join(pli_client *client, uint64_t now_ns, int64_t from, uint64_t soon_ns,
                                 pli_ticket *ticket, pli_out *out, plait_error *err);
/** A wake-up: is it time to come sooner? */
void         pli_client_come_sooner(pli_client *client, uint64_t now_ns, pli_out *out);
/** Takes the answer: the worker is in the clock where it joins, and tells the servers. *over_out: the job is over
 *  instead. Errors: EFORMAT, ENOMEM. */
plait_status pli_client_take_join(pli_client *client, uint64_t now_ns, const pli_msg *reply, bool *over_out,
                                  pli_out *out, plait_error *err);
/** To a server that counts none of its clocks the worker says that it leaves. */
plait_status pli_client_say_leaves(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err);

#endif
