/* table/server/wire.h - what clients and servers say to each other. A client is the machine of one worker, a server
 * that of one rank's shards. Every size in a body is checked by the machine that receives it (decode functions below).
 *
 * Header fields in every message: arg64 is the acknowledgement, the number of the last message of the other way's
 * stream that was taken in order. In a server's answer it therefore also says which of the client's pushes the
 * values contain, where pushes are applied at arrival. arg32 is the ticket: the client's number of the exchange.
 *
 * client -> server
 *   CREATE   clock: all workers'; pli_wire_create, initial values and penalty factors of this shard's rows -> REPLY
 *   PULL     clock: the reader's; pli_wire_pull, keys; of no rows: may it go on?      -> REPLY: values; clock: version
 *   PUSH     clock: the pusher's; arg32: parts; pli_wire_part [arg32], their data
 *   CLOCK    the same; ends the clock. Flag AHEAD: the worker has read all small tables here as a whole
 *   LEAVE    no further clock comes
 *   BARRIER  clock                                                   -> REPLY when all have come: int64_t dropped
 *   CALL     clock; pli_wire_call, numbers of tables, arguments                       -> REPLY: the answer
 *   LEASE    clock; pli_wire_lease, pli_lease [n] that the worker brings              -> REPLY: pli_lease, its leases
 *   BYE      no further message comes                                                 -> REPLY when all have said it
 *   WHY      arg32: a ticket still open; clock: how often it was asked; not in the stream
 *            (seq 0), asked now and then                                              -> HELD, if this server holds it
 *   KEYS     pli_wire_keys, a list of keys that the server has asked for by MISSING, filtered
 *   SNAP     number of the snapshot: all tables here as they are now, unless it has begun
 *                                                                -> REPLY: pli_wire_snap [tables]
 *            or pli_wire_taken: who takes it from here has all; where servers have copies
 *   PIECE    pli_wire_state: of the snapshot, a piece of a table's array (snap.h)             -> REPLY: its rows
 *   RESTORE  pli_wire_state, of a sparse table keys [n], rows; of UNITS an int64_t; of ZERO nothing, and `first` is the
 *            table's how many-th; of DROP nothing: the table is freed                          -> REPLY
 * server -> client
 *   REPLY    to a ticket, once from each server asked; flag FAILED: the body is pli_wire_failure
 *   HELD     clock: of the rank that holds the ticket up; pli_wire_held; not in the stream
 *   STATE    clock: how many pushes the shard had applied whose values the stream's next message holds. Sent to clients
 *            whose messages have the flag STATE: those with an event log
 *   FRESH, FRESH_KEYS   clock: version; arg32: the table. Unasked: all rows of this dense shard, or keys [n] that this
 *            client has read and their values [n, cols], where n follows from the body's size
 *   LEAP     clock: the worker is slow, and is to go on with this clock; before the REPLY to a PULL with the flag LEAPS
 *   MISSING  arg32: the table; token of a list of keys that the server does not know (it was started anew, or had no
 *            memory): what the worker says waits until the list has come
 * Where servers have copies (replicas.h):
 *   PUSH with flag REDO   of the clock that the worker has ended last: a part of a dead one's share of it
 *   VIEW     uint32_t [n], the dead ones for whom the worker stands in, with what it has pushed before
 *   VOID     in place of a request that is sent again though it was answered
 *   BARRIER  has a body: uint64_t, how many the worker has come to, with this one, those of GATHER counted
 *   GATHER   the same number, then bytes: a barrier to which each brings something -> REPLY when all have come:
 *            uint64_t [workers], how many bytes each has brought (PLI_GONE: it did not come), then these, each padded
 *            to 8
 *   CLOCK with flag LEAVES   the worker's last clock, for a while: it is away then (roster.h). LEAVE with it, where the
 *            server counts none of its clocks
 *   CLOCK with flag SHUT   nobody is let in with the end of this clock (roster.h)
 *   JOIN     int64_t: the worker, which is away, wants to take part from this clock on, or a later one. Sent once more
 *            with the same ticket if it is to be sooner
 *                     -> REPLY: clock: where it begins; uint64_t, how many barriers there were (PLI_GONE: the job is
 *            over, after `clock` clocks), uint64_t, how many without those of GATHER; uint8_t [workers]
 *            PLI_LOG_HERE .., padded to 8
 *   ROSTER   clock: the one that begins; uint8_t [workers], as in that answer: somebody has come. arg32: 1: the sender
 *            has, and stands in for those who are DEAD
 *   SAFE     server -> client, not in the stream; clock: all of the worker's messages up to here are safe. Either copy
 *            says it. arg32: bytes of the roster, uint8_t [workers] as above, that comes first; 0: nobody is away.
 *            What follows, if anything: for each small table that the worker has read whole, its values in
 *            the worker's next clock: pli_wire_ahead, they, padded to 8
 *   NONE     server -> client, not in the stream: no copy of these shards is left. clock: where shards move, the key of
 *            the list of places that the sender knows
 * Where shards move (moves.h):
 *   PLACES   server -> client, not in the stream; clock: the place that serves; pli_wire_list: where replicas are, or
 *            may be soon. With flag LOG, to the rank of its last place: it opens a replica there
 *   PLACED   the answer of either; clock: the key of that list
 * and between copies, with flag LOG; arg64 has worker and number (pli_wire_whose) of the message that is logged
 *   CREATE, RESTORE, SNAP, PUSH, CLOCK   a worker's, as it came; of a pli_wire_taken it does not have whose
 *   SUM      clock; arg32: parts; pli_wire_part [arg32], uint64_t [workers] numbers of the messages that ended the
 *            clock (0: the worker has no part in it), uint64_t [arg32] versions after it, uint8_t [workers] who is
 *            dead (1), has left (2), is away (3), or has said AHEAD (+ 128), padded to 8, uint64_t n,
 *            pli_wire_summed [n] the workers' parts of which it is the sum (0: there is no event log), the parts' data
 *   MET      clock: barriers that were complete; what the last was answered with, of a GATHER
 *   CALL     clock: clocks applied before it; the call, of no worker: all have called, and it has run
 *   END      all workers have said BYE
 *   AGES     pli_wire_age [n]: what of other workers' pushes a worker had seen when it computed the push that follows
 *            in the log, where the rule asks how stale that is; of the state, APART, the same of all workers
 *   WHOLE    ends what a new replica begins with (replicas.h); before it came CREATE and RESTORE of UNITS, of no
 *            worker, and the SUM that is prepared. arg32: tables; pli_wire_whole, pli_wire_logged [workers],
 *            uint64_t [arg32] versions, what the last GATHER was answered with, padded to 8, and the last CALL.
 *            Another one, without a body, behind the last SLICE
 *   SLICE    clock: how many are applied; pli_wire_slice, and what state/slice.h says
 *   BEGUN    workers may be told of what is in the log, though rows are still to come
 *   CHAIN    begins a stream to a replica that did not take the sender's log before; arg64: number of the next entry
 *            of the log (entries are counted, none carries its number); clock: place of the replica that serves. The
 *            messages of a stream that goes on with the state have the flag ANEW; what of it is no entry of the log,
 *            APART
 *   SERVES   clock: place of the replica that has made this entry, and makes those that follow
 *   LOGGED   the other way; arg64: messages taken; clock: all replicas behind have the entries up to this one
 *   LIST     pli_wire_list, from here on, where shards move
 *   LACKS    the other way, in answer to a message of a stream without the state: the replica is not whole
 *
 * both ways
 *   ACK      nothing but arg64; not itself in the stream (seq 0)
 *
 * Where a table has filters (filter/filter.h), messages with its values or keys have the flag FILTERED. In a PULL what
 * follows pli_wire_pull is a filtered part, in a REPLY all of the body is one; of a PUSH or CLOCK those parts are that
 * say so.
 */
#ifndef PLI_TABLE_WIRE_H
#define PLI_TABLE_WIRE_H

#include "comm/msg.h"
#include "table/server/leases.h"
#include "table/state/spec.h"

typedef enum pli_kind {
    PLI_CREATE = 1, PLI_PULL, PLI_PUSH, PLI_CLOCK, PLI_LEAVE, PLI_BARRIER, PLI_CALL, PLI_BYE, PLI_WHY,
    PLI_REPLY, PLI_HELD, PLI_STATE, PLI_FRESH, PLI_FRESH_KEYS, PLI_ACK, PLI_LEASE, PLI_KEYS, PLI_MISSING,
    PLI_SNAP, PLI_PIECE, PLI_RESTORE, PLI_VIEW, PLI_VOID, PLI_SAFE, PLI_SUM_ENTRY, PLI_MET, PLI_LOGGED, PLI_GATHER,
    PLI_END, PLI_WHOLE, PLI_NONE, PLI_LEAP, PLI_JOIN, PLI_ROSTER, PLI_SLICE, PLI_CHAIN, PLI_SERVES, PLI_LACKS,
    PLI_BEGUN, PLI_AGES, PLI_PLACES, PLI_PLACED, PLI_LIST, PLI_KINDS
} pli_kind;

enum { PLI_FLAG_FAILED = 0x100, PLI_FLAG_STATE = 0x200, PLI_FLAG_FILTERED = 0x400, PLI_FLAG_REDO = 0x10,
       PLI_FLAG_LOG = 0x20, PLI_FLAG_REPLICA = 0x40 /* its sender is at the port REPLICA */, PLI_FLAG_AHEAD = 0x80,
       PLI_FLAG_LEAVES = 0x800, PLI_FLAG_ANEW = 0x1000, PLI_FLAG_APART = 0x2000, PLI_FLAG_SHUT = 0x4000,
       PLI_FLAG_WHOLE = 0x8000 /* of LOGGED, where shards move: who says so is whole, and so are all behind */
}; /* of head.flags; 0x1 is comm's */

#define PLI_GONE UINT64_MAX /* bytes brought to a GATHER by who has gone */

typedef struct pli_wire_create {
    uint64_t      job_hash, spec_hash;
    uint64_t      initial_bytes, penalty_bytes; /* 0: none, else of the shard's rows; each padded to 8; then, where
                                                   the table has filters, their names as text, padded to 8   */
    pli_wire_spec spec;
} pli_wire_create;

enum {
    PLI_PULL_KEYS = 1,
    PLI_PULL_ALL = 2, /* sparse: keys [n], then values [n, cols] */
    PLI_PULL_MET = 4, /* besides: the worker has passed a barrier and not yet updated anything, so it takes no turn */
    PLI_PULL_LEAPS = 8 /* besides: the worker may leave out clocks                                               */
};
typedef struct pli_wire_pull {
    uint32_t table, flags;
    int64_t  first, n; /* keys [n] follow under PLI_PULL_KEYS */
} pli_wire_pull;

enum {
    PLI_PART_KEYED = 1,
    PLI_PART_FILTERED = 4 /* keys_at: where the filtered part lies; values_at: its bytes   */
};
typedef struct pli_wire_part {
    uint32_t table, flags;
    int64_t  examples, first, n;
    uint64_t keys_at, values_at; /* in the body; multiples of 8 */
} pli_wire_part;

typedef struct pli_wire_whole {
    int64_t  first_clock, applied;
    uint64_t log; /* entries */
    uint64_t met, barriers, snapped, created; /* barriers: met, without those of GATHER */
    uint64_t gathered; /* bytes; PLI_GONE: the last barrier was none of GATHER */
    uint64_t called, answered; /* calls that update: how many have run; bytes of the last one's answer */
} pli_wire_whole;

typedef struct pli_wire_logged { /* of a worker */
    uint64_t seq;   /* its messages up to here are in the log */
    int64_t  ended; /* clocks                                 */
    uint64_t state; /* PLI_LOG_HERE ..                        */
} pli_wire_logged;

typedef struct pli_wire_age {
    uint32_t table, worker;
    int64_t  applied, own; /* pushes: of all; of the worker. Of the state, else 0 */
    int64_t  fetched;      /* of others, when the worker last fetched values      */
} pli_wire_age;

typedef struct pli_wire_ahead {
    uint32_t table, zero;
    int64_t  clock; /* that begins with these values */
    uint64_t state, bytes;
} pli_wire_ahead;

typedef struct pli_wire_summed { /* a part of that message */
    uint32_t table, worker;
    uint64_t seq;
} pli_wire_summed;

typedef struct pli_wire_keys {
    uint32_t table;
    uint32_t place; /* of the replica that has asked for it (replicas.h); 0 without replicas */
    int64_t  n;     /* the filtered list follows */
} pli_wire_keys;

typedef struct pli_wire_call {
    uint32_t function, updates, n_tables, met; /* met: as PLI_PULL_MET */
    int64_t  first, rows;              /* dense: the range of rows; sparse: zeros, all rows */
    uint64_t number; /* of the worker's calls that update, with this one; 0: it does not update */
    uint64_t args_bytes, answer_bytes; /* uint32_t tables [n_tables], padded to 8, then args follow */
} pli_wire_call;

typedef struct pli_wire_held {
    int32_t  rank;
    uint32_t asked; /* of the WHY that this answers */
    uint32_t any;   /* 1: the policy may do without this rank, others may end the wait too */
} pli_wire_held;

typedef struct pli_wire_lease {
    pli_lease_terms terms;
    pli_pace        pace;
    int64_t         n;
} pli_wire_lease;

typedef struct pli_wire_snap {
    uint32_t table, zero;
    int64_t  rows, units; /* of this shard, and up to where penalties go (store.h) */
} pli_wire_snap;

typedef struct pli_wire_taken {
    uint64_t number, zero; /* of the snapshot */
} pli_wire_taken;

typedef struct pli_wire_state {
    uint32_t table, array; /* PLI_STATE_VALUES and so on (snap.h)                                    */
    int64_t  first, n;     /* dense: rows of the table; sparse: in a PIECE numbers of the shard's own */
} pli_wire_state;

enum {
    PLI_SLICE_LAST = 1,    /* all of the table's rows are there */
    PLI_SLICE_PENALTY = 2, /* the rows' penalty factors follow  */
    PLI_SLICE_STAMPS = 4   /* int64_t [n], the rows' stamps (store.h), stand in front of the arrays */
};
typedef struct pli_wire_slice {
    uint32_t table, flags;
    int64_t  first, n; /* rows, by the shard's own numbers   */
    int64_t  rows;     /* about so many it has in all        */
} pli_wire_slice;

typedef struct pli_wire_failure {
    int32_t code, rank;
    char    text[496];
} pli_wire_failure;

enum { PLI_CALL_TABLES_MAX = 64, PLI_ANSWER_BYTES_MAX = 1 << 30, PLI_LEASES_MAX = 1 << 20 };

/** The acknowledgement that a message for a machine which is no more gets, to the port of its sender: such a machine
 *  has ended in good order and lacks nothing, or its job has failed. NULL: out of memory. */
pli_msg *pli_wire_late(const pli_msg *msg, uint32_t port);

static inline uint64_t pli_pad8(uint64_t bytes) { return (bytes + 7) & ~UINT64_C(7); }

#endif
