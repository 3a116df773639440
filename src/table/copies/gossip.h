/* table/copies/gossip.h - the machine that averages with neighbours: it sends mirrors of tables to other workers and
 * receives theirs (a *copy* below is a mirror as it was sent). There is no wait or thread in here; topology/gossip.c
 * and tests drive it.
 *
 * Rounds (a policy that applies updates at clocks): at the end of a clock a worker sends its copy to each neighbour of
 * that round and waits for theirs; copies that come early, of a neighbour that is ahead, are kept. It mixes its own
 * copy and theirs with equal weights, in the order of workers, so a run repeats (D-PSGD).
 *
 * Without rounds (async) nobody waits: a worker sends its copy to one neighbour a clock, and a part of its *weight*
 * with it; a copy that comes is added, weighted, to a box, which the worker mixes into its own copy at its next clock:
 *     z <- (w z + sum of u y) / (w + sum of u),  w <- w + sum of u
 * Weights are 1 at first, and what is sent away is missing here, so their sum is always the number of workers, on their
 * way or not; the weighted average of all copies changes by updates alone, however late messages are. A worker that
 * nobody sends to keeps what it has. (Push-sum: here copies carry weights instead of sums, which is the same.)
 *
 * *Marks* say that all copies sent before have arrived, since they are in their order: before a barrier and at the end.
 * Marks of another kind, MET, say so before those who live meet, when a worker has died: head.clock is how many have
 * died. From then on a worker *holds* what comes, until it has met: it is of others who have.
 *
 * Papers: Lian et al., "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017, algorithm 1;
 * Assran et al., "Stochastic Gradient Push for Distributed Deep Learning", ICML 2019, algorithm 1 (push-sum); Kempe,
 * Dobra, Gehrke, "Gossip-Based Computation of Aggregate Information", FOCS 2003. */
#ifndef PLI_TABLE_GOSSIP_H
#define PLI_TABLE_GOSSIP_H

#include <stdatomic.h>

#include <plait/comm.h>

#include "comm/links.h"
#include "table/copies/estimates.h"
#include "table/copies/neighbours.h"

/* head.kind. head.arg32 is the table, head.clock the sender's clock. The body of a copy: its weight as a double, if it
 * has one; then the values, or with filters what pli_estimates_put has made of them. */
typedef enum pli_gossip_kind { PLI_GOSSIP_COPY = 1, PLI_GOSSIP_MARK = 2, PLI_GOSSIP_MET = 3 } pli_gossip_kind;

/* A copy that was mixed, for the event log. */
typedef struct pli_gossip_come {
    int32_t peer;
    int64_t clock; /* the sender's */
} pli_gossip_come;

typedef struct pli_gossip_table {
    struct pli_gossip_table *next;
    int32_t    id;
    plait_type type;
    int64_t    n;       /* values of a copy */
    bool       rounds;
    pli_msg   *first, **last; /* rounds: copies that have come and are not mixed yet; else those that are held */
    bool       holds;
    pli_estimates *estimates; /* owned: the table's filters; NULL: none. In rounds whoever mixes decodes */
    void      *box;     /* without rounds: the sum of weight x values [n] of the copies that have come; NULL before the
                         * first */
    double     box_weight;
    pli_gossip_come *come; /* [n_come] the copies in the box */
    int64_t    n_come, come_capacity;
    int64_t   *marked, *met; /* [workers] the clock of each worker's last mark, of either kind; -1: none. What is dead
                              * sends none, and is not awaited */
    /* what the worker waits for */
    pli_gossip_kind of;
    int64_t    clock;
    int32_t    from[PLI_NEIGHBOURS_MAX], n_from;
    _Atomic int32_t held_by; /* the first worker that is missing, or -1: release by the machine, acquire by the waiting
                              * worker */
} pli_gossip_table;

typedef struct pli_gossip {
    int32_t           me, workers;
    bool              survives; /* others go on when a worker has died */
    uint8_t          *dead;     /* [workers] */
    pli_links         links;
    pli_gossip_table *tables;
} pli_gossip;

extern const pli_machine_ops pli_gossip_ops;

bool pli_gossip_init(pli_gossip *gossip, int32_t me, int32_t workers, uint64_t resend_after_ns); /* false: no memory */
void pli_gossip_destroy(pli_gossip *gossip);

/* The following are called between enter and leave of the port. */

/** Adds a table of n values of which this worker keeps a copy. Called before any other worker can send it. NULL: no
 *  memory. */
pli_gossip_table *pli_gossip_add(pli_gossip *gossip, int32_t id, plait_type type, int64_t n, bool rounds);

/** Sends a copy (taken; NULL: there was no memory for it) to a neighbour. Errors: ENOMEM. */
plait_status pli_gossip_give(pli_gossip *gossip, const pli_gossip_table *table, uint64_t now_ns, int64_t clock,
                             int32_t to, pli_msg *copy, pli_out *out, plait_error *err);
/** Sends a mark, of either kind, to each of to [n]. Errors: ENOMEM. */
plait_status pli_gossip_mark(pli_gossip *gossip, const pli_gossip_table *table, uint64_t now_ns, pli_gossip_kind kind,
                             int64_t clock, int32_t n, const int32_t *to, pli_out *out, plait_error *err);
/** From now on the worker waits for a copy of this clock from each of from [n]; or for a mark of that kind, of this or
 *  a later clock. */
void pli_gossip_await(pli_gossip_table *table, pli_gossip_kind kind, int64_t clock, int32_t n, const int32_t *from);
/** The worker has met: what was held is in the box. */
void pli_gossip_release(pli_gossip_table *table, pli_out *out);
/** The copy of this clock from that neighbour; the caller owns it. NULL: it has not come. */
pli_msg *pli_gossip_take(pli_gossip_table *table, int64_t clock, int32_t from);

/** Mixes the copies that have come into the worker's values [n] and empties the box. come [n_come] stays until the
 *  next copy comes. */
void pli_gossip_mix(pli_gossip_table *table, double *weight, void *values);

/** Is all that the worker awaits there? Any thread. */
static inline bool pli_gossip_is_there(const pli_gossip_table *table) {
    return atomic_load_explicit(&table->held_by, memory_order_acquire) < 0;
}

#endif
