/* table/client/client.h - the client: one worker's side of the tables whose rows lie on servers (ps, local).
 *
 * Two halves. The machine (client.c) keeps the streams to the servers and the tickets, the exchanges that are under
 * way; it is fed by the driver. The worker's half (ask.c, push.c, cache.c) keeps what belongs to the worker alone:
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
#include "table/server/server.h"

/* --- the machine ------------------------------------------------------------------------------------------- */

/* An exchange with one or more servers, owned by whoever waits for it. */
typedef struct pli_ticket {
    uint32_t           id;
    _Atomic int32_t    pending; /* see 1 */
    plait_error        failure; /* the first; code 0: none */
    pli_msg           *replies, **replies_last;
    uint64_t           why_at_ns; /* ask then who holds it up; PLI_NEVER: not (yet)   */
    _Atomic int32_t    held_rank; /* -1: not known. For the reason of a wait, any thread, as the next four */
    _Atomic int64_t    held_clock;
    _Atomic bool       held_any;
    _Atomic uint32_t   asked, answered; /* how often servers were asked, and which time they said so; answered:
                                           release */
    bool               wonders; /* the worker's alone: who holds it up is asked for now and then */
    struct pli_ask *ask; /* the get whose values are the answers; NULL: none */
    struct pli_ticket *next;
} pli_ticket;

enum { PLI_PLACE_AT_BIT = 56 }; /* of the number of a message that was taken, and of a state: which copy said it */

typedef struct pli_client_link { /* to one server */
    uint64_t state; /* what it has last said with STATE */
    pli_rx   rx;
    pli_tx   tx;
    bool     used, lost; /* used: holds a shard of some table          */
    int32_t          place;      /* of the copy that serves (replicas.h) */
    uint64_t closing;    /* number of the message that ended the last clock */
    _Atomic uint64_t safe; /* all up to here is; release, pairs with the acquire of who ends a clock */
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
    plait_error lost;    /* which server was lost first, and why; code 0: none */
    int64_t    clock;
    bool       left;
    bool       ending;   /* with copies: the clock's end is sent, and not yet safe everywhere */
    uint64_t   barriers; /* come to */
    uint8_t   *dead;     /* [workers], with copies: died, as far as it was heard */
    uint8_t                  *absent;   /* [ranks]: died, or ended in good order                */
    uint8_t   *replaced; /* [workers]: this worker stands in for them            */
    uint8_t   *next;     /* [workers]: and begins to for these                   */
    _Atomic int32_t deaths; /* release, pairs with the acquire of who ends a clock */
    int32_t    views;       /* deaths of which servers were told               */
    int64_t    complete; /* highest version heard of a table that applies at clocks */
    bool       met; /* has passed a barrier, and not updated anything since */
    uint16_t   flags; /* of what it sends: PLI_MSG_UNCOUNTED while all tables are local */
    struct pli_client_table **table; /* [tables]; borrowed */
    int64_t    tables, tables_capacity;
    bool       filtered; /* some table has filters                                     */
    bool       lossless; /* what is sent now goes without their losses                 */
    const pli_event_sink *sink;
} pli_client;

extern const pli_machine_ops pli_client_ops;

plait_status pli_client_open(pli_client *client, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err);
void         pli_client_close(pli_client *client);

/** A ticket that waits for nothing yet. After unlink no answer reaches it any more, and it may be closed already; the
 *  answers that have come are freed by pli_ticket_free, which is not the machine's business. */
void pli_ticket_open(pli_client *client, pli_ticket *ticket);
void pli_ticket_unlink(pli_client *client, pli_ticket *ticket);
void pli_ticket_free(pli_ticket *ticket);
static inline bool pli_ticket_done(const pli_ticket *ticket) {
    return __atomic_load_n((const int32_t *)&ticket->pending, __ATOMIC_ACQUIRE) == 0;
}
/** One answer fewer is to come. */
void pli_ticket_answered(pli_client *client, pli_ticket *ticket);
/** Asks who holds the ticket up, each PLI_WONDER_NS from so long after now on. */
#define PLI_WONDER_NS UINT64_C(250000000)
void pli_ticket_wonder(pli_client *client, uint64_t now_ns, pli_ticket *ticket, pli_out *out);

/** A server is lost, for this reason: the first that is is what later requests of a lost one fail with. what: "holds
 *  shards". fails: so does the rank. */
void pli_client_lose(pli_client *client, int32_t rank, const char *what, const char *why, bool fails, pli_out *out);
/** Sends msg (taken; NULL: out of memory) of a kind to a server, by its number. ticket may be NULL. Errors: ENOMEM,
 *  EPEER the server is lost. */
plait_status pli_client_send(pli_client *client, uint64_t now_ns, int32_t server, pli_kind kind, pli_msg *msg,
                             pli_ticket *ticket, pli_out *out, plait_error *err);
/** The same empty message to every server that holds a shard. BYE and LEAVE go to all others as well that wait for the
 *  workers' end: server ranks, and those with copies of others' shards; LEAVE also to the one that keeps the book of
 *  leases. Where one of a thousand workers holds all shards, most hear nothing. */
plait_status pli_client_send_all(pli_client *client, uint64_t now_ns, pli_kind kind, pli_ticket *ticket, pli_out *out,
                                 plait_error *err);
/** The server that keeps the book of leases: that of a key, as rows have theirs. */
int32_t pli_lease_keeper(const pli_layout *layout);
/** Does any server hear of this worker's end by a BYE? */
bool pli_client_says_bye(const pli_client *client);

/** With copies: brings bytes to a barrier of the first server (wire.h). */
plait_status pli_client_send_gather(pli_client *client, uint64_t now_ns, const void *mine, size_t bytes,
                                    pli_ticket *ticket, pli_out *out, plait_error *err);

/* client_replicas.c: servers with copies (replicas.h). All in the machine, save those that say so. */

/** Errors: ENOMEM. */
plait_status pli_client_replicas_open(pli_client *client, plait_error *err);
void         pli_client_replicas_close(pli_client *client);
static inline bool pli_client_has_replicas(const pli_client *client) { return client->layout.replicas > 1; }
/** The server that a message comes from, by its number, whichever copy; -1: it is to be dropped. */
int32_t pli_client_server_of(const pli_client *client, const pli_msg *msg);
/** A server's first answer to a ticket. */
void    pli_client_answered(pli_client *client, const pli_msg *reply);
void    pli_client_safe(pli_client *client, int32_t server, const pli_msg *msg, pli_out *out);
/** No copy of the server's shards is left. */
void    pli_client_none(pli_client *client, int32_t server, pli_out *out);
void    pli_client_member(pli_client *client, uint64_t now_ns, const pli_member_event *event, pli_out *out);
/** Is the end of the clock safe with all servers? Has a worker died for whom this one does not stand in? Any thread. */
bool    pli_client_is_safe(const pli_client *client);
bool    pli_client_must_stand_in(const pli_client *client);
/** The worker begins to stand in for those who have died by now. */
void pli_client_begin_standing_in(pli_client *client);
/** What it has pushed in their stead (which pli_client_build_push has built, of kind PUSH) goes out, and whom it is
 *  for. */
plait_status pli_client_send_view(pli_client *client, uint64_t now_ns, pli_out *out, plait_error *err);
/** The clock is safe everywhere: it has ended. */
void pli_client_end_clock(pli_client *client);
/** As plait_job_holder; next: with those whom the worker begins to stand in for. The worker's thread. */
int32_t pli_client_holder(const pli_client *client, int32_t home, uint64_t item, bool next);
/** Who holds the item of a worker (home) while these are dead [workers]; NULL: nobody is. A dead worker's items are
 *  spread over the spares that live, the last of the workers; over all workers that live when no spare does. Rendezvous
 *  hashing: a further death moves only what the dead one held (Thaler, Ravishankar, IEEE/ACM ToN 1998). */
int32_t pli_heir_of(const uint8_t *dead, int32_t workers, int32_t spares, int32_t home, uint64_t item);

/* --- the worker's tables -------------------------------------------------------------------------------------- */

/* What a copy is: version of its values, and the worker's clock when they came. */
typedef struct pli_age {
    int64_t version, fetched;
} pli_age;

typedef struct pli_held { /* a copy of a part of a dense shard; msg NULL: none */
    pli_msg *msg;
    int64_t  first, n;
    pli_age  age;
    uint64_t state, from, to; /* for the event log, see events.h */
} pli_held;

typedef struct pli_row_seen { /* the same of a row that is held; without `to`, which is the table's */
    uint64_t state, from;
} pli_row_seen;

/* A pushed copy of rows is taken where its stream's acknowledgement says that it contains all that the worker has sent,
 * and where it is no older than what was taken from the same server: so own writes stay seen and reads monotone. */
typedef struct pli_client_shard { /* what the worker has had to do with one shard */
    uint64_t sent;     /* number of the last message to its server with updates of the table */
    int64_t  admitted; /* the last clock in which it has answered a get; -1: none            */
    uint64_t taken;    /* number of its last message of which copies were taken              */
    pli_msg *fresh[2]; /* the machine's: what came last unasked, FRESH and FRESH_KEYS; NULL: nothing since it was
                          taken */
} pli_client_shard;

/* What of a keyed table's push goes to one shard, while it is built. */
typedef struct pli_push_way {
    int64_t        rows;
    uint64_t      *keys_to; /* where the next of them goes */
    unsigned char *values_to;
} pli_push_way;

typedef struct pli_client_table {
    pli_spec    spec;
    pli_policy  policy;
    bool        at_clock; /* pushes are applied at clocks                          */
    bool        reuses;   /* the policy may serve a copy in a later clock          */
    bool        keeps;    /* what is pending stays when the clock ends             */
    bool        departs;  /* nothing is added to pending in this clock: it may leave      */
    bool        kept;     /* some of what is pending is of a clock that has ended  */
    pli_pending pending;
    pli_client_shard *shard; /* [shards]        */
    pli_held   *held;        /* [shards], dense */
    pli_push_way *way;       /* [shards]        */
    uint16_t   *shard_of;    /* [pending.set.n] of the push that is being built, keyed */
    int64_t     shard_of_capacity;
    /* copies of single rows, where the policy reuses them */
    pli_rowset  rows;
    void       *row_values;  /* [rows.n, cols] */
    pli_age    *row_age;     /* [rows.n]       */
    int64_t     rows_capacity;
    /* for the event log */
    uint64_t      pushes, incs; /* so far; of what is pending                               */
    uint64_t      rows_to;      /* pushes that are laid over the rows held                  */
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
/** The table of that number, which is not its place: replicas are none of the client's. NULL: none. */
pli_client_table *pli_client_table_of(const pli_client *client, uint32_t id);
/** The client's clocks and pushes include the table from now on; links to its servers count as used. */
plait_status pli_client_add_table(pli_client *client, pli_client_table *table, plait_error *err);
/** What is sent from now on counts as bytes sent, if the table's shards are not this process's own memory. */
void pli_client_count_bytes(pli_client *client, const pli_client_table *table);

/* cache.c */
/** What of the worker's own updates is laid over what it reads: 1 all (additive tables), 0 nothing; under a policy that
 *  sees its own gradients at once, minus the table's rate over the batch, which is a plain step. */
double pli_client_own_scale(const pli_client *client, const pli_client_table *table);
bool pli_cache_serves(const pli_client *client, const pli_client_table *table, const pli_age *age, int64_t clock);
/** Pushed copies that contain all that this worker has sent become the ones held; others are dropped. In the
 *  machine. */
void pli_cache_take_fresh(const pli_client *client, pli_client_table *table);
/** Pushed copies are dropped: a barrier may have been passed since. In the machine. */
void pli_cache_drop_fresh(pli_client_table *table);
/** What a push does to the copies held; next_clock: the clock that will read them. */
void pli_cache_pushed(const pli_client *client, pli_client_table *table, int64_t next_clock);
void         pli_cache_forget(pli_client_table *table);
/** The worker goes on after a barrier. What it was given there it has waited no turn for, so that is kept no longer. */
void pli_client_resume(pli_client *client);
/** Fills the rows that may be served from copies; missing [n] receives the places of the others, whose number is
 *  returned. */
int64_t pli_cache_get(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys, void *values,
                      uint32_t *missing);
void    pli_cache_put(pli_client_table *table, int64_t n, const uint64_t *keys, const void *values, const pli_age *age);

/* A row of a get that a copy has served. */
typedef struct pli_taken {
    uint64_t     key, to;
    pli_row_seen seen;
    int64_t      fetched;
} pli_taken;

/* ask.c: a get that is under way */
typedef struct pli_ask {
    pli_client_table *table;
    bool              by_key, met; /* met: as the client when it was begun: its pulls take no turn */
    int64_t           first, n;
    const uint64_t   *keys;   /* lent */
    void             *values; /* lent */
    pli_ticket        ticket;
    pli_held         *piece; /* by range: [shards] */
    int64_t          *start; /* by key: [shards + 1], where each shard's keys begin below */
    uint64_t         *fetch; /* the keys asked for, by shard; == keys where nothing had to be moved */
    uint32_t         *place; /* the row of values that each belongs to; NULL: the same              */
    /* for the event log */
    uint64_t   asked_ns, incs; /* begun; own updates not yet pushed that were laid over the values */
    pli_taken *taken;          /* [n_taken] */
    int64_t    n_taken;
} pli_ask;
/** Checks and begins. It is ended by pli_ask_abandon, also where this fails. */
plait_status pli_ask_keys(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t n, const uint64_t *keys,
                          void *values, pli_ask *ask, pli_out *out, plait_error *err);
plait_status pli_ask_range(pli_client *client, uint64_t now_ns, pli_client_table *table, int64_t first, int64_t n,
                           void *values, pli_ask *ask, pli_out *out, plait_error *err);
/** Asks for no rows: of every shard that must still let the worker into this clock (PLAIT_TURN), or that has not yet
 *  acknowledged what was sent to it (PLAIT_SETTLE). Pending nothing: there was none. */
plait_status pli_ask_turn(pli_client *client, uint64_t now_ns, pli_client_table *table, int what, pli_ask *ask,
                          pli_out *out, plait_error *err);
/** When its ticket is done: values are filled, with the worker's own updates (additive tables). values NULL (by
 *  range): nothing is copied, the pieces stay. pli_ask_abandon follows, in any case. */
plait_status pli_ask_finish(pli_client *client, pli_ask *ask, plait_error *err);
/** Frees the ask's memory, answers included. The ticket is unlinked before (in the machine). */
void pli_ask_abandon(pli_ask *ask);

/* push.c */
/** An update of rows [n] (keys NULL: a range) is about to be accepted: what the policy wants done, PLAIT_TURN and
 *  others. Errors: ENOMEM. */
plait_status pli_client_on_inc(const pli_client *client, pli_client_table *table, int64_t n, const uint64_t *keys,
                               const void *delta, int *want_out, plait_error *err);
/** Bytes of values pending on tables that depart. */
int64_t pli_client_departing_bytes(const pli_client *client);
/** Sends what is pending on table (NULL: on all, or PUSH: on those that depart) to its owners; kind PLI_PUSH, or
 *  PLI_CLOCK, which also ends the clock.
 *  Nothing has changed where it fails with ENOMEM before the first message was sent. */
plait_status pli_client_build_push(pli_client *client, pli_client_table *table, pli_kind kind, plait_error *err);
plait_status pli_client_send_push(pli_client *client, uint64_t now_ns, pli_kind kind, pli_out *out, plait_error *err);

/* client_filter.c. All in the machine, save open and close. */
plait_status pli_client_filters_open(pli_client_table *table, const pli_layout *layout, plait_error *err);
void         pli_client_filters_close(pli_client_table *table);
/** Factors on the penalty [rows, cols], copied; NULL: all 1. */
plait_status pli_client_filters_penalty(pli_client_table *table, const void *penalty, plait_error *err);
/** A PULL, PUSH or CLOCK message as it travels to a server, in place of *msg. */
plait_status pli_client_filter(pli_client *client, int32_t server, pli_kind kind, pli_msg **msg, plait_error *err);
/** The answer to a get becomes what the server would have sent without filters. Errors: EFORMAT, ENOMEM. */
plait_status pli_client_unfilter(pli_client *client, const pli_ask *ask, pli_msg *msg, plait_error *err);
/** A server asks for a list of keys. */
void pli_client_send_list(pli_client *client, uint64_t now_ns, int32_t server, const pli_msg *msg, pli_out *out);
/** What filters keep back of the table's updates becomes pending again. Errors: ENOMEM. */
plait_status pli_client_take_back(pli_client_table *table, plait_error *err);
/** What filters keep back of the table's updates is forgotten. */
void pli_client_forget_rest(pli_client_table *table);

#endif
