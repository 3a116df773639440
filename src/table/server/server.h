/* table/server/server.h - the server: all shards of all tables that one rank owns, as one state machine.
 *
 * It holds one clock for each worker, the pushes that wait for a clock to end, and the pulls that wait until the
 * table's consistency lets them be served. Invariants, after each event:
 *   1 clocks[w] is the number of clocks that worker w has ended, INT64_MAX once it has left or died; slowest is the
 *     lowest of them, kept since every pull asks for it, and at_slowest how many workers are there.
 *   2 applied is how many clocks are complete: min(clocks) as far as a worker is left, unless all policies that apply
 *     at clocks say more, and the highest clock ended when none is left. Every push of a clock < applied to a table
 *     that applies at clocks is in the values, or was dropped since it came later; none of a later clock is in them.
 *   3 A push to a table that applies at once is in the values as soon as it was taken from its stream, or was dropped
 *     since the policy said so.
 *   4 Each message of a stream is acted upon once, in order (comm/stream.h).
 *   5 A parked pull is one that the policy lets wait; none that it would serve is parked. Of a thousand workers most
 *     are parked when one of them ends its clock, so they are asked for again only when asked_slowest or asked_applied,
 *     of the last time, is no longer so, or where some table's policy may serve after any change (restless).
 *   6 No slab that went out in a message is written again while somebody holds it.
 * A message whose sizes do not add up fails the job with EFORMAT; nothing of it is applied. From a failure on, that one
 * or for want of memory, the server is silent: its rank ends, and tells the others by that.
 */
#ifndef PLI_TABLE_SERVER_H
#define PLI_TABLE_SERVER_H

#include "comm/comm.h"
#include "comm/sheet.h"
#include "table/server/wire.h"
#include "table/state/shard.h"
#include "table/state/slice.h"

/* What a job is made of; the same on all ranks. */
typedef struct pli_layout {
    int32_t               workers, servers, first_server; /* server s is rank first_server + s */
    uint64_t              job_hash;
    uint64_t              resend_after_ns;
    const plait_function *functions; /* [n_functions], borrowed */
    int32_t               n_functions;
    const plait_consistency *policies; /* [n_policies], borrowed: the program's own */
    int32_t               n_policies;
    int32_t               backup;
    const plait_filter      *filters; /* [n_filters], borrowed: the program's own */
    int32_t               n_filters;
    const plait_rule        *rules; /* [n_rules], borrowed: the program's own */
    int32_t               n_rules;
    uint64_t              seed;
    bool                  aggregates; /* hosts add up before they push (aggregate.h) */
    int64_t               first_clock; /* the workers'; servers hear of it by CREATE */
    int32_t               replicas;   /* copies of each server's shards, 0 or 1: the one (replicas.h) */
    int32_t               spares;     /* the last of the workers, which hold no shards until somebody has died */
    int32_t               slots;      /* the last of the workers, without shards and away at first (roster.h)  */
    int32_t               homes;      /* > 0: shards move, and lie on the first so many ranks at first (moves.h) */
    bool                  cut_fine;   /* ... and tables have as many shards as there are servers, if each has 4 KiB */
    uint64_t              move_rate;  /* bytes of rows a second that a server sends to a new rank; 0: no bound */
} pli_layout;

/** How many ranks hold shards at first. */
static inline int32_t pli_layout_holders(const pli_layout *layout) {
    return layout->homes > 0 ? layout->homes : layout->servers;
}

/** Where the job's policies are looked up. */
static inline pli_scope pli_layout_scope(const pli_layout *layout) {
    return (pli_scope){ .own = layout->policies, .n_own = layout->n_policies, 
                        .setting = { .workers = layout->workers, .backup = layout->backup } };
}

static inline pli_rule_scope pli_layout_rules(const pli_layout *layout) {
    return (pli_rule_scope){ .own = layout->rules, .n_own = layout->n_rules };
}

static inline pli_filter_scope pli_layout_filters(const pli_layout *layout) {
    return (pli_filter_scope){ .own = layout->filters, .n_own = layout->n_filters };
}

typedef struct pli_server_table {
    pli_shard  shard;
    pli_policy policy;
    bool       at_clock; /* pushes are applied at clocks */
    struct pli_reader *reader; /* [readers]: the workers, where the policy refreshes them; server_refresh.c */
    int32_t    readers;
    struct pli_progress *progress; /* [workers], where the rule asks how stale a push is; server_push.c */
    pli_filters_list filters;
    pli_chain *chain; /* [chains]: the workers, where the table has filters; server_filter.c */
    int32_t    chains;
    uint64_t   hash;
    struct pli_snap *snap; /* that is being taken; NULL: none; server_state.c */
    uint64_t   state; /* parts of pushes applied, and zeroings: the version of the shard */
    int64_t    zeros; /* number of the last zeroing                                    */
    pli_slices slices; /* what a new replica that is being made has of it; replicas_new.c */
    pli_sheet_row *shown; /* what others see of it (shown.h); NULL: nothing            */
} pli_server_table;

/* One part of a push, as it was decoded when it came: it points into the message. */
typedef struct pli_decoded_part {
    pli_server_table *table;
    pli_push_part     part;
} pli_decoded_part;

/* A PUSH or CLOCK message whose parts for tables that apply at clocks wait for their clock's end: server_parts.c. */
typedef struct pli_waiting_push {
    struct pli_waiting_push *next;
    pli_msg                 *msg;
    int32_t                  n, at; /* at: where the next search among the parts begins */
    int32_t                  stead; /* the highest of the dead workers in whose stead it was made (replicas.h) */
    pli_decoded_part         part[]; /* [n], those that are not dropped */
} pli_waiting_push;

/* What the server knows of one worker. */
typedef struct pli_peer {
    pli_rx   rx;
    pli_tx   tx;
    uint32_t min_epoch; /* messages of an earlier epoch come from before its death */
    int64_t  ended;     /* clocks ended, also after it has left */
    bool     gone;      /* said BYE or died */
    bool     listens;   /* is told of which version values are, for its event log */
    pli_waiting_push *queue, **queue_last; /* in order, of clocks that are not applied yet */
    pli_msg *barrier, *call, *bye; /* said, and not yet answered */
    pli_msg *behind, **behind_last; /* said, but a list of keys must come first: filtered messages, and what follows */
    bool     asked;                 /* for that list */
} pli_peer;

typedef struct pli_server {
    pli_layout         layout;
    int32_t            rank;
    int32_t            home; /* the server's own rank, whose shards these are: a copy may be elsewhere */
    uint16_t                number; /* the server's */
    uint32_t           epoch, incarnation;
    struct pli_replicas *replicas; /* NULL: its shards have no second copy */
    pli_peer          *peer;   /* [workers] */
    int64_t           *clocks; /* [workers]; see 1 */
    int64_t            slowest, applied;
    int64_t            asked_slowest, asked_applied; /* see 5 */
    int32_t            at_slowest, present;          /* workers: in the slowest clock; not gone */
    bool               restless;
    bool               failed; /* it could not act upon a message, so it acts upon none: nobody reads half a clock */
    int64_t            dropped; /* parts of pushes that were */
    int64_t            first_clock; /* of the job: known with the first table */
    uint64_t           snapped;     /* number of the last snapshot            */
    pli_server_table **table; /* by id; NULL: no shard of it here */
    int64_t            tables, tables_capacity;
    pli_msg           *parked, **parked_last;
    pli_push_part     *parts;   /* [workers], scratch */
    pli_decoded_part  *decoded; /* of the push that is being taken, scratch */
    int64_t            decoded_capacity;
    pli_book          *book; /* who computes which block; NULL: nobody has asked here */
    const pli_event_sink *sink;
    pli_sheet         *sheet; /* where its shards are shown; NULL: nowhere */
    const char        *group; /* as what; "": all workers                  */
    const int32_t     *ranks; /* the ranks of the job's numbers; NULL: numbers are ranks; for what is shown */
    _Atomic bool       all_gone; /* release, pairs with the acquire of who waits for the end */
} pli_server;

extern const pli_machine_ops pli_server_ops;

plait_status pli_server_open(pli_server *server, const pli_layout *layout, int32_t rank, uint32_t epoch,
                             uint32_t incarnation, plait_error *err);
/** The same of a copy of a server's shards, given by its number, at that place (replicas.h). */
plait_status pli_server_open_replica(pli_server *server, const pli_layout *layout, int32_t number, int32_t place,
                                  uint32_t epoch, uint32_t incarnation, plait_error *err);
void         pli_server_close(pli_server *server);
/** Frees a table, by its number, of which nothing waits any more. */
void         pli_server_drop(pli_server *server, int64_t id);

/* --- between the server's files ------------------------------------------------------------------------ */

/** The shard's table that a message names, or NULL. */
static inline pli_server_table *pli_server_table_of(const pli_server *server, uint64_t id) {
    return id < (uint64_t)server->tables ? server->table[id] : NULL;
}
plait_view pli_server_view(const pli_server *server, uint64_t now_ns, int32_t worker, int64_t clock);

/** Sends answer (taken; NULL: out of memory, which fails the job) to a request. */
void pli_server_reply(pli_server *server, uint64_t now_ns, const pli_msg *request, pli_msg *answer, pli_out *out);
/** Tells a client that listens, before an answer, what the table's shard has applied. */
void pli_server_tell_state(pli_server *server, uint64_t now_ns, const pli_msg *request, uint64_t state, pli_out *out);
/** Tells the worker to go on with a later clock. */
void pli_server_tell_leap(pli_server *server, uint64_t now_ns, const pli_msg *request, int64_t clock, pli_out *out);
/** Asks a worker for a list of keys. */
void pli_server_ask_list(pli_server *server, uint64_t now_ns, const pli_msg *cause, uint32_t table, const void *token,
                         pli_out *out);
/** Acknowledges what the worker has said; with copies, what of it is safe. */
void pli_server_acknowledge(pli_server *server, int32_t to, pli_out *out);
/** Tells the asker of a WHY who holds its ticket up; nothing, where this server does not. */
void pli_server_answer_why(const pli_server *server, const pli_msg *msg, pli_out *out);
void pli_server_reply_failure(pli_server *server, uint64_t now_ns, const pli_msg *request, const plait_error *why,
                              pli_out *out);

/* server_create.c. Errors: EMISMATCH the job or the table is known with other options; EFORMAT; ENOMEM. */
plait_status pli_server_create(pli_server *server, const pli_msg *msg, plait_error *err);

/** The version of what is served. */
static inline int64_t pli_server_version(const pli_server *server, const pli_server_table *table) {
    return table->at_clock || server->slowest == PLAIT_LEFT ? server->applied : server->slowest;
}

/** Are there tables that apply at clocks? Others may apply at once. */
bool pli_server_has_clocks(const pli_server *server);
/** Applies the clocks that are complete, or, with copies, prepares them. false: it cannot, the job has failed. */
bool pli_server_apply_complete(pli_server *server, uint64_t now_ns, pli_out *out);
/** A worker has ended a clock: policies hear of it, and readers may get fresh rows. */
void pli_server_tell_clock(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out);
/** Looks at everything that waits once more. */
void pli_server_look_again(pli_server *server, uint64_t now_ns, pli_out *out);
/** Acts upon a worker's message (taken), whose turn has come. */
void pli_server_act(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** A worker takes no further clock. */
void pli_server_leave(pli_server *server, uint64_t now_ns, int32_t worker);
/** A worker asks for nothing more, or is dead: barriers and the end do without it. */
void pli_server_let_go(pli_server *server, int32_t worker);
/** A worker has died: nobody waits for it any more. */
void pli_server_lose(pli_server *server, uint64_t now_ns, int32_t worker);
/** All workers are gone, and have been told. */
void pli_server_end(pli_server *server, pli_out *out);
/** A worker is in this clock from now on. */
void pli_server_move_clock(pli_server *server, int32_t worker, int64_t clock);
/** The same of one that takes clocks again. */
void pli_server_enter_clock(pli_server *server, int32_t worker, int64_t clock);
/** A message to a worker beside the stream, with this in head.clock. */
void pli_server_tell(pli_server *server, int32_t worker, pli_kind kind, int64_t clock, pli_out *out);
/** The same with a body: msg is taken; NULL: out of memory. */
void pli_server_tell_with(pli_server *server, int32_t worker, pli_kind kind, int64_t clock, pli_msg *msg,
                          pli_out *out);

/* server_parts.c */
/** The i-th part of a PUSH, CLOCK or SUM. Offsets and sizes are checked against the body, nothing else is. Errors:
 *  EFORMAT. */
plait_status pli_server_part(const pli_server *server, const pli_msg *msg, uint32_t i, pli_decoded_part *part_out,
                             plait_error *err);
/** These of its parts [n] wait, with the message, which is taken. NULL: out of memory, and not taken. */
pli_waiting_push *pli_waiting_new(pli_msg *msg, int64_t n, const pli_decoded_part *parts);
/** Frees all that follow, their messages too, and leaves NULL. */
void pli_waiting_free_list(pli_waiting_push **list);
/** The push's part for the table; NULL: none. */
const pli_push_part *pli_waiting_part(pli_waiting_push *push, const pli_server_table *table);
/** The message is the last that waits of the worker. */
void pli_server_enqueue(pli_peer *peer, pli_waiting_push *push);
/** Forgets what queues hold of the clock. */
void pli_server_forget_clock(pli_server *server, int64_t clock);
/** Drops what the worker's queue holds of this clock and of later ones. */
void pli_server_forget_from(pli_peer *peer, int64_t clock);

/* server_push.c */
/** Decodes and checks all parts of a message into server->decoded, once for all that follows. Errors: EFORMAT,
 *  ENOMEM. */
plait_status pli_server_decode(pli_server *server, const pli_msg *msg, plait_error *err);
/** The pushes of a clock to a table that its queue holds: of every worker one (untouched where there is none). Where
 *  workers have redone a dead one's, those come behind all; or, if rows are replaced, in the place of the dead one's.
 *  parts: [workers], and as many more as there are messages in redo; whose (may be NULL): the worker of each. */
int32_t pli_server_parts_of(const pli_server *server, pli_waiting_push *const *redo, pli_server_table *table,
                            int64_t clock, pli_push_part *parts, int32_t *whose);
plait_status pli_server_progress_open(pli_server_table *table, int32_t workers, plait_error *err);
/** The worker has been served values, from which it computes what it pushes next. */
void pli_server_note_fetch(pli_server_table *table, int32_t worker);
/** With replicas, AGES: what the other one must know to find the worker's push, msg, as stale as it was found here.
 *  *ages_out NULL: nothing. false: no memory. */
bool         pli_server_ages_of_push(const pli_server *server, const pli_msg *msg, pli_msg **ages_out);
/** The same of the state: of all workers, so that a new replica finds their next pushes so. NULL: no memory. */
pli_msg     *pli_server_ages_of_table(const pli_server *server, const pli_server_table *table);
/** Takes either; whole: the second. Errors: EFORMAT. */
plait_status pli_server_take_ages(pli_server *server, const pli_msg *msg, bool whole, plait_error *err);
/** What waits for its clock's end (msg is taken then; NULL: nothing does). false: malformed or out of memory, the job
 *  has failed. */
bool pli_server_take_push(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_waiting_push **waits_out,
                          pli_out *out);
bool pli_server_apply_clock(pli_server *server, int64_t clock, pli_out *out);

/* server_pull.c: is the request well formed? then: may it be served now? then: serve it */
bool pli_server_check_pull(const pli_server *server, const pli_msg *msg, plait_error *err);
bool pli_server_may_serve(const pli_server *server, uint64_t now_ns, const pli_msg *msg);
void pli_server_serve(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);

/* server_filter.c */
/** The table as filters are told of it; rows first .. first + rows - 1 are the shard's. For clients, too. */
plait_filter_table pli_filters_describe(const pli_spec *spec, const pli_layout *layout, int64_t first, int64_t rows);
plait_status pli_server_filters_open(const pli_server *server, pli_server_table *table, const char *names,
                                     plait_error *err);
void         pli_server_filters_close(pli_server_table *table);
/** Takes msg (a filtered message, KEYS, or what comes behind those). */
void pli_server_take_filtered(pli_server *server, pli_msg *msg, pli_out *out);
/** The next message of a worker that can be acted upon, as if there were no filters (taken); NULL: none, or not yet. */
pli_msg *pli_server_next_unfiltered(pli_server *server, uint64_t now_ns, int32_t worker, pli_out *out);
/** The answer (taken) to a pull that asked for values, as it travels. NULL: it could not be made, which fails the
 *  job. */
pli_msg *pli_server_filter_answer(pli_server *server, pli_server_table *table, const pli_msg *request,
                                  const pli_wire_pull *pull, bool exact, pli_msg *answer, pli_out *out);

/* server_refresh.c */
plait_status pli_server_readers_open(pli_server_table *table, int32_t workers, plait_error *err);
void         pli_server_readers_close(pli_server_table *table);
/** A worker has been served rows: keys [n], or (NULL) a range. */
void         pli_server_note_reader(pli_server_table *table, int32_t worker, int64_t n, const uint64_t *keys);
/** Sends every reader that has not left fresh rows. */
void         pli_server_refresh(pli_server *server, uint64_t now_ns, const pli_server_table *table, pli_out *out);
/** Sends msg (taken; NULL: out of memory, nothing is sent) to a worker, unasked. */
void         pli_server_send_fresh(pli_server *server, uint64_t now_ns, const pli_server_table *table, int32_t worker,
                                   pli_kind kind, pli_msg *msg, pli_out *out);

/* server_state.c */
/** A table begins at this clock, in which all workers are: the job's first, if it is the first table here. false: it
 *  is neither that nor the clock that they are in. */
bool pli_server_begin_at(pli_server *server, int64_t clock);
bool pli_server_snap(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
bool pli_server_piece(pli_server *server, uint64_t now_ns, pli_msg *msg, pli_out *out);
/** Puts back what a RESTORE message has. Errors: EFORMAT, ENOMEM. */
plait_status pli_server_put_back(pli_server *server, const pli_msg *msg, plait_error *err);
void pli_server_snap_end(pli_server_table *table);

/* server_lease.c: true: well formed, and the book has taken it; then its answer, NULL: out of memory */
bool     pli_server_take_lease(pli_server *server, const pli_msg *msg, plait_error *err);
pli_msg *pli_server_leases(const pli_server *server, int32_t worker);

/* server_call.c */
bool pli_server_check_call(const pli_server *server, const pli_msg *msg, plait_error *err);
/** Runs the function that requests [n], all alike, ask for. Returns the answer, empty if no row of the range lies here.
 *  NULL: EMISMATCH they are not alike, ENOMEM, what the function returned. */
pli_msg *pli_server_call(pli_server *server, pli_msg *const *requests, int32_t n, plait_error *err);
/** Runs it, and answers each of them with what came out. */
void pli_server_run_call(pli_server *server, uint64_t now_ns, pli_msg *const *requests, int32_t n, pli_out *out);

#endif
