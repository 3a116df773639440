/* vertex/locks/locks.h - locks on scopes: which vertices an update may read and change while others wait.
 *
 * A vertex belongs to one rank, its *owner*, which has its lock, its value, and a count of how often that was changed,
 * its *version*. A rank that wants to update a vertex asks for a *scope*: some vertices, each with a mode:
 *
 *     none   the value is read as it is
 *     read   nobody may change it until the scope is released; several may read
 *     write  nobody else reads or changes it
 *
 * The request is one message, which visits the owners: owner by owner, in the order of the vertices' numbers. Each
 * owner takes its locks, in that order too, adds the values, and hands the message on; the last one hands it to the
 * rank that asked: the scope is *granted*. A request that meets a lock that is taken waits there, behind those that
 * came before.
 *
 *     rank 2 asks for 3, 8, 21        rank 0 locks 3, 8        rank 1 locks 21        rank 2 updates, releases
 *          |------ ACQUIRE ---------->|------ ACQUIRE -------->|------ GRANT -------->|
 *          |<------------------------ RELEASE (new values) ----------------------- to ranks 0 and 1
 *
 * What must hold:
 *     L1  a request that holds or waits for vertex v holds none above v; so requests never wait in a circle
 *     L2  a lock has readers, or one writer, or nobody
 *     L3  a value in a granted scope of mode read or write is the owner's until the scope is released
 *     L4  of requests that wait for a lock the first goes first: nobody waits for ever
 *
 * A rank may ask for many scopes before the first is granted, so messages and waits overlap (it *pipelines*).
 *
 * *Notices* tell the ranks that have a vertex's edges that its value has changed. *Rest*: all ranks are at rest when
 * none has anything to do and no message is on its way. The lead, the lowest rank, finds out: it asks every rank, which
 * answers when it has nothing to do, with the numbers of messages that it has sent and received. If in two rounds, one
 * after the other, all numbers are the same, and as many were received as were sent, nothing has happened in between
 * (Mattern, "Algorithms for distributed termination detection", Distributed Computing 2, 1987: the four counter
 * method).
 *
 * *Deaths*: what a dead rank had, and what was under way with it, is lost. Those who live agree elsewhere on who is
 * absent, and begin anew: without locks, scopes and notices, with other owners. Every message has the number of its
 * beginning, its *era*, and what is of an older one is dropped. All must have begun before one asks (a barrier).
 *
 * It is a machine (comm/machine.h): no thread, no clock. Papers: Low, Gonzalez, Kyrola, Bickson, Guestrin and
 * Hellerstein, "Distributed GraphLab: A Framework for Machine Learning and Data Mining in the Cloud", VLDB 2012,
 * section 4.2.2; Dijkstra, "Hierarchical ordering of sequential processes", Acta Informatica 1, 1971 (by number). */
#ifndef PLI_VERTEX_LOCKS_H
#define PLI_VERTEX_LOCKS_H

#include "comm/comm.h"
#include "comm/links.h"

typedef enum pli_lock_mode { PLI_LOCK_NONE, PLI_LOCK_READ, PLI_LOCK_WRITE, PLI_LOCK_MODES } pli_lock_mode;

/* A vertex of a scope, as it travels. */
typedef struct pli_lock_entry {
    uint64_t vertex;
    uint64_t version; /* of the value that was granted           */
    uint32_t mode;    /* pli_lock_mode                            */
    uint32_t wrote;   /* in a release: its value is a new one      */
} pli_lock_entry;

/* A scope: on its way, waiting, or granted. */
typedef struct pli_lock_scope {
    int32_t               origin; /* who asked                        */
    uint32_t              n, at;  /* how many vertices; which is next */
    uint32_t              number; /* of all that the origin has asked for in this era */
    uint64_t              tag;    /* of who asked: which of its scopes */
    pli_msg              *msg;    /* entry and value lie in it        */
    pli_lock_entry       *entry;  /* [n] by increasing vertex         */
    unsigned char        *value;  /* [n, value_bytes]                 */
    struct pli_lock_scope *next;
} pli_lock_scope;

typedef struct pli_lock {
    int32_t         readers; /* -1: a writer */
    uint64_t        version;
    pli_lock_scope *first, *last; /* those that wait */
} pli_lock;

/* A neighbor has changed. */
typedef struct pli_lock_notice {
    uint64_t       vertex, version;
    double         change;
    const void    *was, *value; /* [value_bytes] */
    pli_msg       *msg;
} pli_lock_notice;

typedef struct pli_locks {
    int32_t         rank, ranks;  /* the ranks that own vertices: 0 .. ranks - 1                     */
    const int64_t  *first;        /* [ranks + 1] rank r owns first[r] .. first[r + 1] - 1; borrowed  */
    size_t          value_bytes;
    const pli_event_sink *sink;   /* of LOCK, UNLOCK and what the rank raises under the port's lock; NULL: nobody */
    bool            keeps;        /* events outlive the process before others learn of what they tell            */
    pli_links       links;
    pli_lock       *lock;         /* [owned] */
    unsigned char  *value;        /* [owned, value_bytes] */
    pli_lock_scope *granted, **granted_last;
    pli_msg        *notice, **notice_last;
    int64_t         asked, held;  /* own scopes: in all; asked for and not released yet               */
    int64_t         waits;        /* how often a request has found a lock taken                        */
    uint64_t        sent, received; /* messages that others must have taken before all is at rest      */
    uint32_t        era;          /* how often it has begun anew                                       */
    int32_t         lead, living; /* the lowest rank that is not absent; how many are not              */
    uint8_t        *absent, *died; /* [ranks] in this era; as events have said                         */
    bool            passive;      /* the rank has said that it has nothing to do                       */
    bool            quiet;        /* all ranks are at rest                                             */
    uint64_t        probe;        /* of the lead: a probe that was not answered yet; 0: none    */
    struct {                      /* of the lead alone                                                 */
        uint64_t number, sent, received, was_sent, was_received;
        int32_t  answers;
        bool     under_way, has_last;
    } round;
} pli_locks;

#ifdef PLI_TESTING
typedef enum pli_lock_mistake {
    PLI_MISTAKE_NONE,
    PLI_MISTAKE_READS_WRITTEN,   /* a reader is let in beside a writer                  */
    PLI_MISTAKE_WRITES_READ,     /* a writer is let in beside readers                   */
    PLI_MISTAKE_TWO_WRITERS,     /* a writer is let in beside a writer                  */
    PLI_MISTAKE_SKIPS_LAST,      /* the last vertex of a scope is not locked             */
    PLI_MISTAKE_READS_EARLY,     /* the value is taken when a request begins to wait     */
    PLI_MISTAKE_WAKES_EARLY,     /* who waits is let in before the new value is there    */
    PLI_MISTAKE_LOSES_WRITE,     /* every 7th new value is dropped                       */
    PLI_MISTAKE_BACKWARDS,       /* every other scope is locked from the highest down: a circle */
    PLI_MISTAKE_FREES_TWICE,     /* a reader that goes takes another one's place along   */
    PLI_MISTAKE_FORGETS_WAITING, /* who waits is not looked for when a lock becomes free */
    PLI_MISTAKE_RESTS_EARLY,     /* one round is enough to call it rest                  */
    PLI_MISTAKE_TAKES_OLD,       /* messages of an older era are taken                   */
    PLI_MISTAKES
} pli_lock_mistake;
extern _Atomic int32_t pli_lock_planted; /* a pli_lock_mistake, for tests to find */
#endif

extern const pli_machine_ops pli_locks_ops;

/** Values are zeros, versions 0. false: no memory. */
bool pli_locks_init(pli_locks *l, int32_t rank, int32_t ranks, const int64_t *first, size_t value_bytes,
                    uint64_t resend_after_ns);
void pli_locks_destroy(pli_locks *l);
/** Begins anew with other owners, without the ranks that are absent [ranks], which own nothing: values are zeros,
 *  nothing is asked for. All living ranks do so as often as each other. false: no memory, and the machine can only be
 *  destroyed. */
bool pli_locks_begin_anew(pli_locks *l, const int64_t *first, const uint8_t *absent);
/** Has a rank died that is not absent in this era? */
bool pli_locks_lost(const pli_locks *l);
int32_t pli_lock_owner(const pli_locks *l, uint64_t vertex);
/** The value of a vertex that the rank owns. */
void *pli_locks_value(pli_locks *l, int64_t vertex);

/** Asks for a scope: entry [n], by increasing vertex, of mode; versions do not count. false: no memory. */
bool pli_locks_ask(pli_locks *l, uint64_t now_ns, uint64_t tag, int64_t n, const pli_lock_entry *entry, pli_out *out);
/** The next scope that was granted, or NULL. The caller releases it. Nobody but the caller reads scope->value now; only
 *  entries whose `wrote` is 1 carry it back. */
pli_lock_scope *pli_locks_next(pli_locks *l);
/** Gives a scope back, taken. A value that was written gets the next version. false: no memory. */
bool pli_locks_release(pli_locks *l, uint64_t now_ns, pli_lock_scope *scope, pli_out *out);

/** Tells a rank that a vertex changed by so much, from was to value, which has this version. false: no memory. */
bool pli_locks_notify(pli_locks *l, uint64_t now_ns, int32_t to, const pli_lock_notice *notice, pli_out *out);
/** The next notice that has come; false: there is none. The caller frees notice_out->msg. */
bool pli_locks_noticed(pli_locks *l, pli_lock_notice *notice_out);

/** The rank has nothing to do until a notice comes (or does not want to do more). If no rank has, all become quiet.
 *  active: it does something again. */
void pli_locks_rest(pli_locks *l, uint64_t now_ns, pli_out *out);
void pli_locks_active(pli_locks *l);
static inline bool pli_locks_is_quiet(const pli_locks *l) { return l->quiet; }

#endif
