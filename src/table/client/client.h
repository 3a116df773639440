/* table/client/client.h - the client: one worker's side of the tables whose rows lie on servers (ps, local).
 *
 * It has two halves. The machine (client.c) keeps the streams to the servers, and the tickets: one for each exchange
 * under way. The driver feeds it. The worker's half (ask.c, push.c, cache.c) keeps what belongs to the worker alone:
 * updates not yet sent, copies of values; only the worker's thread touches it, and it enters the machine to send.
 * Invariants:
 *   1 A ticket's pending counts the servers that have not answered it; its answers are complete, and nobody but the
 *     worker looks at them, once the worker has seen 0 (acquire, pairs with the machine's release). The machine closes
 *     a ticket with its last answer, before it counts that one: behind the 0 the ticket's memory is the worker's.
 *   2 A copy held of version v contains every update of clocks < v and all that this worker has sent; where the
 *     latter cannot be laid over it (ruled tables), the copy is dropped when the worker pushes.
 *   3 A get is never under way while its table's updates are sent: a clock completes it first, and what is to be sent
 *     earlier waits for it. With 2 and the order of a stream it follows that an answer contains all that the worker
 *     has sent, or that its version says so (bsp).
 *   4 Before a CLOCK leaves, no copy is held that the next clock may not read, so that the owner may write its
 *     values in place.
 */
#ifndef PLI_TABLE_CLIENT_H
#define PLI_TABLE_CLIENT_H

#include "table/client/pending.h"
#include "table/copies/moves.h"
#include "table/server/server.h"

/* --- the machine ------------------------------------------------------------------------------------------- */

/* An exchange with one or more servers, owned by whoever waits for it. */
typedef struct pli_ticket {
    uint32_t           id;
    _Atomic int32_t    pending; /* see 1 */
    plait_error        failure; /* the first; code 0: none */
    pli_msg           *replies, **replies_last;
    uint64_t           why_at_ns; /* when to ask who holds the ticket up; PLI_NEVER: not yet, or not at all */
    _Atomic int32_t    held_rank; /* -1: not known. This and the next four are read by any thread that tells why a
                                   * worker waits */
    _Atomic int64_t    held_clock;
    _Atomic bool       held_any;
    _Atomic uint32_t   asked, answered; /* how often servers were asked, and to which of these times the holder
                                         * answered; answered: release */
    bool               wonders; /* only the worker's thread uses it: ask now and then who holds the ticket up */
    struct pli_ask *ask; /* the get whose values are the answers; NULL: none */
    struct pli_ticket *next;
} pli_ticket;

enum { PLI_PLACE_AT_BIT = 44 }; /* bit of a message's number, and of a state, from which on stands the place of the
                                 * replica that said it */

typedef struct pli_client_link { /* to one server */
    uint64_t state; /* what the server has last said with STATE */
    pli_rx   rx;
    pli_tx   tx;
    bool     used, lost; /* used: holds a shard of some table          */
    int32_t          place;      /* place of the replica that serves (replicas.h) */
    pli_list places;     /* where shards move: where replicas are, or may be (moves.h) */
    uint64_t places_key; /* the higher, the later */
    uint64_t closing;    /* number of the message that ended the last clock */
    _Atomic uint64_t safe; /* all messages up to this one are safe; release, pairs with the acquire of who ends a
                            * clock */
    uint32_t parts;      /* of the push that is being built (push.c)   */
    uint64_t bytes;
    pli_msg *push;
} pli_client_link;

struct pli_client_table;

typedef struct pli_client {
    pli_layout layout;
    int32_t    rank;
    uint32_t   epoch, incarnation, next_ticket;
    pli_client_link *link; /* [servers] */
    int32_t    *used;      /* [n_used] numbers of the servers that hold a shard of some table, in order */
    int64_t     n_used, used_capacity;
    pli_ticket *tickets;
    plait_error lost;    /* the server that was lost first, and why; code 0: none */
    int64_t    clock;
    bool       left;
    bool       ending;   /* with replicas: the clock's end is sent, but not yet safe everywhere */
    uint64_t   barriers; /* how many barriers the worker has come to */
    uint64_t   calls;    /* how many server functions that update it has called */
    uint64_t   passed;   /* ... of tables, and told the event log of */
    uint8_t   *dead;     /* [workers], with replicas: 1 for a worker that has died, as far as this one has heard */
    uint8_t                  *absent;   /* [ranks]: died, or ended in good order                */
    uint8_t   *replaced; /* [workers]: this worker stands in for them            */
    uint8_t   *next;     /* [workers]: and begins to stand in for these          */
    uint8_t   *away;     /* [workers]: takes no clock in this worker's clock (roster.h) */
    uint8_t   *heard;    /* [workers]: PLI_LOG_HERE .., as the first server says of the next clock */
    uint8_t   *heard_life; /* [workers]: and of which life of its rank                              */
    uint8_t   *life;     /* [workers]: the same of this clock                                       */
    uint8_t   *died;     /* [workers]: the last life that has died; 0: none                         */
    bool       leaving;  /* the clock that ends is its last one, for a while */
    bool       shut;     /* nobody is to be let in with the clock that ends */
    bool       lost_count; /* it has joined, and does not know how many calls there were (calls) */
    uint32_t   joining;  /* the ticket of the last JOIN; 0: none */
    uint64_t   soon_ns;  /* when it is sent once more; PLI_NEVER: it is not */
    bool       changed;  /* at the end of its last clock somebody came, or left */
    bool       joined;   /* ... came */
    _Atomic int32_t deaths; /* release, pairs with the acquire of who ends a clock */
    int32_t    views;       /* how many deaths the servers were told of        */
    int64_t    complete; /* the highest version heard of a table whose updates are applied at clocks */
    bool       leaps;   /* the worker may leave out clocks, and servers may tell it to */
    _Atomic int64_t leap; /* the highest clock with which it was told to go on; the ticket's answer orders it */
    bool       met; /* the worker has passed a barrier, and not updated anything since */
    uint16_t   flags; /* flags of its messages: PLI_MSG_UNCOUNTED while all tables are local */
    struct pli_client_table **table; /* [tables]; borrowed */
    int64_t    tables, tables_capacity;
    bool       filtered; /* some table has filters                                     */
    bool       lossless; /* filters must lose nothing of what is sent now              */
    const pli_event_sink *sink;
} pli_client;

extern const pli_machine_ops pli_client_ops;

plait_status pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err);
void         pli_client_close(pli_client *client);

/** Opens a ticket that waits for no answer yet. After unlink no answer reaches the ticket any more; it may be closed
 *  already. pli_ticket_free frees the answers that have come, which is not the machine's business. */
void pli_ticket_open(pli_client *client, pli_ticket *ticket);
void pli_ticket_unlink(pli_client *client, pli_ticket *ticket);
void pli_ticket_free(pli_ticket *ticket);
static inline bool pli_ticket_done(const pli_ticket *ticket) {
    return __atomic_load_n((const int32_t *)&ticket->pending, __ATOMIC_ACQUIRE) == 0;
}
/** The ticket waits for one answer fewer. */
void pli_ticket_answered(pli_client *client, pli_ticket *ticket);
/** After this time, and again each time that it has passed, the client asks who holds the ticket up. */
#define PLI_WONDER_NS UINT64_C(250000000)
void pli_ticket_wonder(pli_client *client, uint64_t now_ns, pli_ticket *ticket, pli_out *out);

/** Marks a server as lost. The first reason stays: later requests to a lost server fail with it. what: "holds shards".
 *  fails: the rank itself fails, too. */
void pli_client_lose(pli_client *client, int32_t rank, const char *what, const char *why, bool fails, pli_out *out);
/** Sends msg (taken; NULL: out of memory) of a kind to a server, by its number. ticket may be NULL. Errors: ENOMEM,
 *  EPEER the server is lost. */
plait_status pli_client_send(pli_client *client, uint64_t now_ns, int32_t server, pli_kind kind, pli_msg *msg,
                             pli_ticket *ticket, pli_out *out, plait_error *err);
/** Sends the same empty message to every server that holds a shard. BYE and LEAVE also go to the other servers that
 *  wait for the workers' end: server ranks, and ranks with replicas of others' shards. LEAVE also goes to the server
 *  that keeps the book of leases. If one of a thousand workers holds all shards, most workers hear nothing. */
plait_status pli_client_send_all(pli_client *client, uint64_t now_ns, pli_kind kind, pli_ticket *ticket, pli_out *out,
                                 plait_error *err);
/** The server that keeps the book of leases. It is found by hashing a key, as the server of a row is. */
int32_t pli_lease_keeper(const pli_layout *layout);
/** Does any server hear of this worker's end by a BYE? */
bool pli_client_says_bye(const pli_client *client);

/** With replicas: brings bytes to a barrier of the first server (wire.h). */
plait_status pli_client_send_gather(pli_client *client, uint64_t now_ns, const void *mine, size_t bytes,
                                    pli_ticket *ticket, pli_out *out, plait_error *err);

/* client_replicas.c: servers with replicas (replicas.h). All are called in the machine, except those that say
 * otherwise. */

/** Errors: ENOMEM. */
plait_status pli_client_replicas_open(pli_client *client, plait_error *err);
void         pli_client_replicas_close(pli_client *client);
static inline bool pli_client_has_replicas(const pli_client *client) { return client->layout.replicas > 1; }
/** The number of the server that a message comes from, whichever replica has sent it; -1: drop the message. */
int32_t pli_client_server_of(const pli_client *client, const pli_msg *msg);
/** Notes a server's first answer to a ticket. */
void    pli_client_answered(pli_client *client, const pli_msg *reply);
void    pli_client_safe(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out);
/** The messages that are built end the clock: says to which servers it has read all small tables as a whole. */
void    pli_client_ask_ahead(pli_client *client);
/** Keeps the next clock's values, which the message brings, until the clock has ended. */
void    pli_client_take_ahead(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out);
/** Is the body of a FRESH or FRESH_KEYS well formed? */
bool    pli_client_is_fresh(const struct pli_client_table *table, int32_t shard, const pli_msg *msg);
/** No replica of the server's shards is left. */
void    pli_client_none(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out);
/** Where shards move: a replica says that it serves, and where others are or may be. */
void    pli_client_hear_places(pli_client *client, uint64_t now_ns, int32_t server, const pli_msg *msg, pli_out *out);
void    pli_client_member(pli_client *client, uint64_t now_ns, const pli_member_event *event, pli_out *out);
/** Is the end of the clock safe with all servers? Has a worker died for whom this one does not stand in? Any thread. */
bool    pli_client_is_safe(const pli_client *client);
bool    pli_client_must_stand_in(const pli_client *client);
/** Do tables apply at clocks, so that somebody must stand in for a worker that died in one? */
bool    pli_client_has_clocks(const pli_client *client);
/** Marks in whom [workers] those who have died and for whom this worker has not stood in; leaves the other marks. */
void pli_client_mark_missing(const pli_client *client, int64_t *whom);
/** Has the client heard of the death of all that are marked? */
bool pli_client_knows_dead(const pli_client *client, const int64_t *whom);
/** The worker begins to stand in for those who are marked; whom NULL: who have died by now. */
void pli_client_begin_standing_in(pli_client *client, const int64_t *whom);
/** Sends what the worker has pushed in the dead ones' stead (built by pli_client_build_push, of kind PUSH), and for
 *  whom it stands in. */
plait_status pli_client_send_view(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err);
/** The clock is safe everywhere: it has ended. */
void pli_client_end_clock(pli_client *client);
/** As plait_job_holder. next: count those for whom the worker begins to stand in. Called by the worker's thread. */
int32_t pli_client_holder(const pli_client *client, int32_t home, uint64_t item, bool next);
/** The worker that holds an item whose home is worker `home`, while those marked in dead [workers] are dead; NULL:
 *  nobody is dead. The items of a dead worker are spread over the living spares, which are the last of the workers;
 *  over all living workers when no spare lives. Rendezvous hashing: a further death moves only the items of the one
 *  who died (Thaler, Ravishankar, IEEE/ACM ToN 1998). */
int32_t pli_heir_of(const uint8_t *dead, int32_t workers, int32_t spares, int32_t home, uint64_t item);

/* --- the worker's tables -------------------------------------------------------------------------------------- */

/* How old a copy is: the version of its values, and the worker's clock when they came. */
typedef struct pli_age {
    int64_t version, fetched;
} pli_age;

typedef struct pli_held { /* a copy of a part of a dense shard; msg NULL: none */
    pli_msg *msg;
    int64_t  first, n;
    pli_age  age;
    uint64_t state, from, to; /* for the event log, see events.h */
    bool     read; /* the worker has looked at all of it */
} pli_held;

typedef struct pli_row_seen { /* the same for one row that is held; without `to`, which is kept once for the table */
    uint64_t state, from;
} pli_row_seen;

/* A fresh copy of rows that a server has pushed is taken if it contains all that the worker has sent (its
 * acknowledgement says so) and is no older than what was taken from the same server. So the worker's own writes stay
 * visible and its reads monotone. */
typedef struct pli_client_shard { /* what one worker and one shard have exchanged */
    uint64_t sent;     /* number of the last message to the shard's server with updates of this table */
    int64_t  admitted; /* the last clock in which the shard has answered a get; -1: none     */
    uint64_t taken;    /* number of its last message from which copies were taken            */
    pli_msg *fresh[2]; /* the machine's: the last FRESH and FRESH_KEYS that came; NULL: none since the last was taken */
} pli_client_shard;

/* The part of a keyed table's push that goes to one shard, while it is built. */
typedef struct pli_push_way {
    int64_t        rows;
    uint64_t      *keys_to; /* where the next key is written */
    unsigned char *values_to;
} pli_push_way;

typedef struct pli_client_table {
    pli_spec    spec;
    pli_policy  policy;
    bool        at_clock; /* pushes are applied at clocks                          */
    bool        reuses;   /* the policy may serve a copy in a later clock          */
    bool        keeps;    /* what is pending stays pending when the clock ends     */
    bool        departs;  /* nothing more is added to pending in this clock, so it may leave */
    bool        kept;     /* part of what is pending is of a clock that has ended  */
    pli_pending pending;
    pli_client_shard *shard; /* [shards]        */
    pli_held   *held;        /* [shards], dense */
    pli_push_way *way;       /* [shards]        */
    uint16_t   *shard_of;    /* [pending.set.n] the shard of each row of the push that is being built; keyed tables */
    int64_t     shard_of_capacity;
    /* copies of single rows, where the policy reuses them */
    pli_rowset  rows;
    void       *row_values;  /* [rows.n, cols] */
    pli_age    *row_age;     /* [rows.n]       */
    int64_t     rows_capacity;
    /* for the event log */
    uint64_t      pushes, incs; /* pushes: how many so far; incs: how many are pending      */
    uint64_t      rows_to;      /* how many pushes are laid over the rows held              */
    pli_row_seen *row_seen;     /* [rows.n]; NULL: nobody listens                           */
    int64_t       row_seen_capacity;
    /* filters; in the machine */
    pli_filters_list filters;
    pli_chain    *chain;   /* [shards]; NULL: the table has none              */
    void         *penalty; /* [rows, cols], where there are some; NULL: all 1 */
} pli_client_table;

plait_status pli_client_table_open(const pli_spec *spec, const pli_layout *layout, pli_client_table **table_out,
                                   plait_error *err);
void         pli_client_table_close(pli_client_table **table);
/** The table with that number; its place in the array may be another. NULL: none. */
pli_client_table *pli_client_table_of(const pli_client *client, uint32_t id);
/** The client's clocks and pushes include the table from now on; links to its servers count as used. */
plait_status pli_client_add_table(pli_client *client, pli_client_table *table, plait_error *err);
/** They do no more. Its servers still hear of clocks. */
void pli_client_remove_table(pli_client *client, const pli_client_table *table);
/** From now on what is sent for the table counts as bytes sent, unless its shards are in this process's own memory. */
void pli_client_count_bytes(pli_client *client, const pli_client_table *table);

/* cache.c */
/** The factor by which the worker's own updates are added to what it reads: 1 on additive tables, 0 if they are not
 *  added. Under a policy that shows a worker its own gradients at once it is minus the table's rate divided by the
 *  batch, which is a plain gradient step. */
double pli_client_own_scale(const pli_client *client, const pli_client_table *table);
bool pli_cache_serves(const pli_client *client, const pli_client_table *table, const pli_age *age, int64_t clock);
/** Takes the fresh copies that servers have sent: those that contain all that this worker has sent become the copies
 *  held, the others are dropped. In the machine. */
void pli_cache_take_fresh(const pli_client *client, pli_client_table *table);
/** Drops the fresh copies that servers have sent: a barrier may have been passed since they were made. In the
 *  machine. */
void pli_cache_drop_fresh(pli_client_table *table);
/** Updates or drops the copies held after a push; next_clock: the clock that will read them. */
void pli_cache_pushed(const pli_client *client, pli_client_table *table, int64_t next_clock);
void         pli_cache_forget(pli_client_table *table);
/** The worker goes on after a barrier. Copies that it was given there, without waiting for a turn, are dropped. */
void pli_client_resume(pli_client *client);
/** Fills the rows that copies may serve; missing [n] receives the places of the other rows, whose number is
 *  returned. */
int64_t pli_cache_get(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys, void *values,
                      uint32_t *missing);
void    pli_cache_put(pli_client_table *table, int64_t n, const uint64_t *keys, const void *values, const pli_age *age);

/** Where a policy sends nothing unasked: of what came with the word that the last clock is safe, the values of this
 *  clock become the copies held. In the machine. */
void    pli_cache_take_ahead(const pli_client *client, pli_client_table *table);

/* A row of a get that was served from a copy. */
typedef struct pli_taken {
    uint64_t     key, to;
    pli_row_seen seen;
    int64_t      fetched;
} pli_taken;

/* ask.c: a get that is under way */
typedef struct pli_ask {
    pli_client_table *table;
    bool              by_key, met; /* met: the client's when the get was begun; its pulls take no turn */
    int64_t           first, n;
    const uint64_t   *keys;   /* lent */
    void             *values; /* lent */
    pli_ticket        ticket;
    pli_held         *piece; /* by range: [shards] */
    int64_t          *start; /* by key: [shards + 1], where each shard's keys begin below */
    uint64_t         *fetch; /* the keys to ask for, by shard; == keys if none had to be moved */
    uint32_t         *place; /* the row of values that each fetched key belongs to; NULL: the same order */
    /* for the event log */
    uint64_t   asked_ns, incs; /* asked_ns: when it was begun; incs: own updates not yet pushed that were added to the
                                * values */
    pli_taken *taken;          /* [n_taken] */
    int64_t    n_taken;
} pli_ask;
/** Checks and begins a get. pli_ask_abandon ends it, also if this call fails. */
plait_status pli_ask_keys(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t n, const uint64_t *keys,
                          void *values, pli_ask *ask, pli_out *out, plait_error *err);
plait_status pli_ask_range(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t first, int64_t n,
                           void *values, pli_ask *ask, pli_out *out, plait_error *err);
/** Asks for no rows, but for permission: of every shard that must still let the worker into this clock (PLAIT_TURN),
 *  or that has not yet acknowledged what was sent to it (PLAIT_SETTLE). If the ticket waits for nothing, no shard had
 *  to be asked. */
plait_status pli_ask_turn(pli_client *client, uint64_t now_ns, pli_client_table *table, int what, pli_ask *ask,
                          pli_out *out, plait_error *err);
/** Fills values when the ticket is done, with the worker's own updates (additive tables). values NULL (by range):
 *  nothing is copied, the pieces stay. pli_ask_abandon must follow in any case. */
plait_status pli_ask_finish(pli_client *client, pli_ask *ask, plait_error *err);
/** Frees the ask's memory, answers included. The ticket is unlinked before (in the machine). */
void pli_ask_abandon(pli_ask *ask);

/* push.c */
/** Asks the policy what to do before an update of rows [n] is accepted (keys NULL: a range): PLAIT_TURN and others.
 *  Errors: ENOMEM. */
plait_status pli_client_on_inc(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys,
                               const void *delta, int *want_out, plait_error *err);
/** Bytes of values pending on tables that depart. */
int64_t pli_client_departing_bytes(const pli_client *client);
/** Sends the pending updates of table (NULL: of all tables; with PUSH: of all that depart) to the servers. kind:
 *  PLI_PUSH, or PLI_CLOCK, which also ends the clock. If it fails with ENOMEM before the first message was sent,
 *  nothing has changed. */
plait_status pli_client_build_push(pli_client *client, pli_client_table *table, pli_kind kind, plait_error *err);
plait_status pli_client_send_push(pli_client *client, uint64_t now_ns, pli_kind kind, pli_out *out, plait_error *err);

/* client_filter.c. All are called in the machine, except open and close. */
plait_status pli_client_filters_open(pli_client_table *table, const pli_layout *layout, plait_error *err);
void         pli_client_filters_close(pli_client_table *table);
/** Factors on the penalty [rows, cols], copied; NULL: all 1. */
plait_status pli_client_filters_penalty(pli_client_table *table, const void *penalty, plait_error *err);
/** Replaces *msg, a PULL, PUSH or CLOCK message, by its filtered form, as it travels to a server. */
plait_status pli_client_filter(pli_client *client, int32_t server, pli_kind kind, pli_msg **msg, plait_error *err);
/** Turns the filtered answer to a get into what the server would have sent without filters. Errors: EFORMAT, ENOMEM. */
plait_status pli_client_unfilter(pli_client *client, const pli_ask *ask, pli_msg *msg, plait_error *err);
/** Sends a list of keys that a server has asked for. */
void pli_client_send_list(pli_client *client, uint64_t now_ns, int32_t server, const pli_msg *msg, pli_out *out);
/** Makes the updates that the table's filters keep back pending again. Errors: ENOMEM. */
plait_status pli_client_take_back(pli_client_table *table, plait_error *err);
/** Forgets the updates that the table's filters keep back. */
void pli_client_forget_rest(pli_client_table *table);

#endif
