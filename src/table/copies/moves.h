/* table/copies/moves.h - shards that move from rank to rank while the job runs.
 *
 * Where workers come and go (roster.h), ranks come to share the shards, and ranks that leave hand over theirs. Servers
 * are *logical* there: a job has several for each worker that it may have (pli_layout.servers), and each is a chain of
 * replicas (replicas.h) of its own, which lies where its log says. At the beginning all lie on the first `homes`
 * ranks.
 *
 * The places of a server have no end: place p is on rank p % workers. (There are none below `workers`.) Its *list* has
 * those, in order, that have a replica, or are to have one. A new replica comes behind all others that there ever
 * were, at the next place of its rank. So a rank may come, go, and come again, each time at another place, and a place
 * says which replica was there sooner. The replica that serves decides, and changes the list one place at a time:
 *
 *   a place more   1 It tells all living workers, and the rank, which list there will be (PLACES). The rank opens a
 *                    machine for it. All answer (PLACED).
 *                  2 The list goes into the log (LIST). The last replica, when it takes that, makes the new one, as if
 *                    one had died (replicas.h): state, slices, WHOLE. LOGGED says, from replica to replica, that all
 *                    behind are whole.
 *   a place less   Only when all replicas are whole, and confirm all that was logged. The list without it goes into the
 *                  log. When that is confirmed, whoever was before it goes on with whoever is behind it, as if it had
 *                  died. The replica that is out has nothing more to do then, and drops its rows. It stays if all that
 *                  the list has die before: the list before counts again, since nobody lives who has acted on the
 *                  other.
 *
 * So a move is a new replica, then the end of an old one, and the shards have at no time fewer replicas than before. If
 * the one that serves puts itself out, LIST is the last that it appends: from then on it acts upon no worker's
 * message. The next one takes LIST, comes first, and goes on as after a death: what is not safe, workers send again.
 *
 * Workers do not look for replicas here. Whoever begins to serve tells all living workers so (PLACES), those that are
 * away, too, and where messages may be lost repeats it until each has answered. By 1 every worker knows all places
 * where replicas may be, so it knows when all are dead. If a replica is left that is not whole, it says NONE with the
 * number of its list; a worker that has heard of a later list takes no notice.
 *
 * States of a place:  planned (1) -> in the list, begins -> whole -> serves
 *                                        out at any later time: RETIRED
 * By event, the replica that serves:
 *   a worker came or left, a rank died, LOGGED: all is whole and confirmed
 *                         If the list is not what it should be (pli_moves_next), the next step towards it begins.
 *   PLACED from all       The planned place goes into the log.
 *   the planned rank dies The plan is dropped; nothing stood in the log.
 * one that does not:
 *   LIST comes            It is the list from here on. If nobody is before it: it comes first. If a place is behind the
 *                         last: the last makes it. The log still goes to the place that the list lacks, since that must
 *                         hear of it before any other.
 *   LIST is confirmed     If this place is out: it drops its rows, and passes on what still comes. If the one behind is
 *                         out, the log goes to the one behind that.
 *   who serves dies       The first that lives comes first, by the list in its own log. If LIST had not come to it, the
 *                         list is as if it had never been.
 *
 * What should be (pli_moves_next): server s on rank s % workers, if that is in; else on one of those who are in,
 * another one for each of the absent rank's servers. Its other replicas on the next who are in. So if one comes or
 * goes, little moves, and each has its share. Slices of all that move from a rank together keep to layout.move_rate.
 *
 * Invariants, beside those of replicas.h:
 *  12 All replicas of a server that have the same log have the same list. Places only grow.
 *  13 A replica that is out acts upon nothing. Of two that are in, at most one serves: the other lacks the end of the
 *     log.
 *  14 Each living worker has heard of each place that is in a list of the log.
 *
 * Papers: DeCandia et al., "Dynamo: Amazon's highly available key-value store", SOSP 2007 (many more parts than
 * machines, and who has which is a table); van Renesse, Schneider, OSDI 2004, section 3 (a chain is extended at its
 * tail); Harlap et al., EuroSys 2017. */
#ifndef PLI_TABLE_MOVES_H
#define PLI_TABLE_MOVES_H

#include "table/server/server.h"

enum {
    PLI_ENDED = 2,
    PLI_CHAIN_MAX = 8,       /* places of a list */
    PLI_MOVED_MAX = 1 << 20, /* places are below: no server moves further */
    PLI_LIFE_BIT = 12,       /* of head.server in the log's messages: from here on, which time the receiver's rank has a
                              * replica of it, by its last bits; a late message of an earlier time is dropped */
    PLI_LOGICAL_MAX = 1 << PLI_LIFE_BIT
};

typedef struct pli_list {
    int32_t n, at[PLI_CHAIN_MAX]; /* at [n]: places, ascending */
    int32_t last;                 /* the last place that there ever was: no place comes twice */
} pli_list;

/* The body of PLACES and LIST. */
typedef struct pli_wire_list {
    uint64_t key; /* later lists have higher ones: the place of who has made it, and a number */
    int32_t  n, at[PLI_CHAIN_MAX], last; /* as pli_list */
} pli_wire_list;

/* What all replicas on a rank have in common. The counts are written by the rank's machines, and read by anybody. */
typedef struct pli_moved {
    _Atomic uint64_t moves, bytes; /* how often a server has moved from here to another rank; bytes of rows sent */
    uint64_t         slice_at_ns;  /* with layout.move_rate: the next slice may be sent */
} pli_moved;

typedef struct pli_moves {
    pli_moved *moved;     /* the rank's; NULL: shards do not move                        */
    pli_list  list;
    uint64_t  key, entry; /* of the list; number of the log's entry that has it; 0: the first list, or one that was
                           * told */
    bool      linked;     /* that entry is confirmed, and the log goes where the list says */
    pli_list  before;     /* the list before; while !linked it may have to count again */
    bool      leaving;    /* this place is no longer in the list, which is not confirmed yet: it acts upon no worker's
                           * message, and keeps all */
    bool      out;        /* it is confirmed: it has nothing more to do */
    bool      busy;       /* it is just taking over: no step begins */
    bool      whole_behind; /* all replicas behind are whole */
    uint8_t  *gone;       /* [workers] 1: the rank has died; PLI_ENDED: it has ended in good order */
    /* of who serves: */
    int32_t   plan;       /* a place that was told, and is not in the list yet; -1: none */
    bool      opened;     /* its rank has answered                               */
    pli_list  told;       /* to workers ...                                      */
    uint64_t  told_key;   /* ... with this key                                   */
    uint64_t *heard;      /* [workers] the highest key that each has answered    */
    uint64_t  again_at_ns; /* when to tell once more those who have not          */
} pli_moves;

static inline bool pli_moves_are_on(const pli_layout *layout) { return layout->homes > 0; }
static inline uint16_t pli_moves_life(const pli_layout *layout, int32_t place) {
    return (uint16_t)((place / layout->workers) << PLI_LIFE_BIT);
}
static inline bool pli_list_has(const pli_list *list, int32_t place) {
    for (int32_t i = 0; i < list->n; i++)
        if (list->at[i] == place) return true;
    return false;
}

/** Into how many shards a table is cut that could be cut into `large` ones without paying for it. As many as there are
 *  homes, so that nobody pays while nobody comes; or so many for each worker that the homes have even shares. */
int32_t  pli_moves_cut(const pli_layout *layout, int64_t large);
/** Where the shards of a table lie. Tables of equally many shards share their servers. */
pli_placement pli_moves_placement(const pli_layout *layout, const pli_spec *spec);
/** Where the server's replicas lie at first. */
pli_list pli_moves_first(const pli_layout *layout, int32_t server);
/** The place of the list that is on the rank; -1: none. */
int32_t  pli_list_on(const pli_layout *layout, const pli_list *list, int32_t rank);
/** Reads the body of PLACES or LIST. false: it makes no sense. */
bool     pli_list_read(const pli_layout *layout, const pli_msg *msg, pli_list *list_out, uint64_t *key_out);

/* What is to be done to a list. */
typedef struct pli_step {
    enum { PLI_STEP_NONE, PLI_STEP_ADD, PLI_STEP_DROP } kind;
    int32_t place; /* to be dropped */
    int32_t rank;  /* that gets a new place */
} pli_step;
/** The next step from this list, all of whose places live and are whole. in, lives [workers]: takes part; may hold
 *  shards for want of others. */
pli_step pli_moves_next(const pli_layout *layout, int32_t server, const pli_list *list, const uint8_t *in,
                        const uint8_t *lives);

bool pli_moves_open(pli_server *server);
void pli_moves_close(pli_server *server);

/** The replica that serves looks whether something is to be done. */
void pli_moves_look(pli_server *server, uint64_t now_ns, pli_out *out);
/** It has begun to serve. */
void pli_moves_serve(pli_server *server, uint64_t now_ns, pli_out *out);
/** PLACED has come. */
void pli_moves_placed(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** LIST has come by the log. */
void pli_moves_take(pli_server *server, uint64_t now_ns, const pli_msg *msg, pli_out *out);
/** More of the log is confirmed. */
void pli_moves_confirmed(pli_server *server, uint64_t now_ns, pli_out *out);
void pli_moves_wakeup(pli_server *server, uint64_t now_ns, pli_out *out);
/** A rank is gone. ended: in good order. */
void pli_moves_gone(pli_server *server, int32_t rank, bool ended);
/** Answers PLACES, which has come from a place: head.clock is one. */
void pli_moves_answer(const pli_layout *layout, int32_t rank, const pli_msg *places, pli_out *out);
/** All workers hear that no replica can become whole any more. */
void pli_moves_tell_none(pli_server *server, pli_out *out);
/** May the next slice be sent now? Else a wake-up is asked for. bytes: of the last one. */
bool pli_moves_may_slice(pli_server *server, uint64_t now_ns, pli_out *out);
void pli_moves_sliced(pli_server *server, uint64_t now_ns, int64_t bytes);

#endif
