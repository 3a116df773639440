/* table/topology/averaged.h - a table that is averaged with neighbours, as the files of topology gossip share it. */
#ifndef PLI_TABLE_AVERAGED_H
#define PLI_TABLE_AVERAGED_H

#include "comm/agreed_run.h"
#include "table/client/pending.h"
#include "table/copies/gossip.h"
#include "table/state/own.h"
#include "table/state/shard.h"
#include "table/table.h"

/* The mirrors of neighbours that came in a round; values are those of msg, or what filters have made of it. */
typedef struct pli_heard {
    int32_t     n;
    pli_msg    *msg[PLI_NEIGHBOURS_MAX];
    int32_t     from[PLI_NEIGHBOURS_MAX];
    const void *values[PLI_NEIGHBOURS_MAX];
} pli_heard;

/* With replicas: what the worker knows of the mirrors that met last (gossip_agreed.c). */
typedef struct pli_last {
    pli_slab *own;   /* as it went into the round; NULL: nothing is known */
    bool      equal; /* all mirrors were this one, and no round has been since */
    pli_heard heard;
} pli_last;

struct pli_averaged {
    pli_shard         shard; /* the copy */
    pli_pending       pending;
    pli_policy        policy;
    pli_graph         graph;
    pli_gossip_table *peers;
    pli_estimates    *estimates; /* with filters; NULL: none. The machine's, once it has the table */
    int64_t           n; /* values        */
    double            weight;
    int64_t           rounds, marks;
    uint64_t          incs, pushes; /* incs that are pending; pushes made of earlier ones */
    void             *average; /* [n + 1] the average of all copies, as of a barrier in this clock; NULL: none */
    bool              met;     /* it is what is read */
    int32_t          *living;  /* [among.n] who averages: all workers, at first */
    pli_among         among;
    /* with replicas: */
    uint8_t          *gone;    /* [workers] 1: it has died, and the others have met without it; NULL: no replicas */
    pli_last          last;
    bool              meets;   /* this step is such a meeting */
    void             *part, *sum;    /* [n + 1] of it: what the worker gives, and all have given; then the weight */
    pli_msg         **gives, **piece; /* [workers] of a round's step: the mirrors that go, and those that come */
    uint8_t          *hears;   /* [workers] from whom one comes */
};

static inline struct pli_averaged *pli_averaged_of(const plait_table *table) { return table->state; }

/* gossip.c, for the clock that goes on without the dead: */

/** A message for each of to [n]: the worker's mirror, as it goes into the round. Errors: ENOMEM, what a filter says. */
plait_status pli_averaged_copies(plait_table *table, int64_t clock, int32_t n, const int32_t *to, pli_msg **copy,
                                 plait_error *err);
/** Mixes what has come; heard has n, from and msg. The messages are the caller's. Errors: ENOMEM, EFORMAT. */
plait_status pli_averaged_mix(plait_table *table, int64_t clock, pli_heard *heard, plait_error *err);
/** The worker gives its mirror to a neighbour (kind PLI_EVENT_GIVE), or mixes one that was sent in clock `sent`. */
void pli_averaged_raise(const plait_table *table, pli_event_kind kind, int32_t peer, int64_t sent, int64_t clock);
/** Opens the table's filters, if it has any, among those who average now: all know that their mirrors are the own one.
 *  Those that were open are closed. Errors: ENOMEM, EREFUSED. */
plait_status pli_averaged_filters(plait_table *table, plait_error *err);
/** Without rounds: waits until all copies that were sent to this worker have come, as marks of this kind say, and
 *  mixes them. PLAIT_STAND_IN: a worker has died, and there is another thing to do first. Errors: ENOMEM, those of
 *  a wait. */
plait_status pli_averaged_gather(plait_table *table, pli_gossip_kind kind, int64_t number, plait_error *err);
/** The end of a clock without rounds: mixes what has come, and gives a part of the weight to the next neighbour. */
plait_status pli_averaged_pass_on(plait_table *table, int64_t clock, plait_error *err);
/** Does the clock end a round? */
bool         pli_averaged_meets(const plait_table *table, int64_t clock);

/* gossip_agreed.c: the clock that goes on without the dead. */

/** Makes room; behind open, with replicas. Errors: ENOMEM. */
plait_status pli_averaged_agree(plait_table *table, plait_error *err);
void         pli_averaged_forget(struct pli_averaged *a);
/** As the topology's give and gave. */
plait_status pli_averaged_give(plait_table *table, struct pli_agreed_part *part, int64_t *n, plait_error *err);
plait_status pli_averaged_gave(plait_table *table, plait_status status, plait_error *err);
/** Must those who live meet, since a worker has died? */
bool         pli_averaged_must_meet(const plait_table *table);
/** Sums the mirrors of those who live into sum [n + 1], times their weights, the weights behind them: with what is left
 *  of those who have died since. Collective. PLAIT_STAND_IN: without rounds, those who live have met; once more.
 *  Errors: ENOMEM, those of a step. */
plait_status pli_averaged_sum(plait_table *table, void *sum, plait_error *err);
/** All mirrors are as the own one from now on. */
void         pli_averaged_equal(struct pli_averaged *a);
/** All mirrors may be other ones now, so nothing is known of the last round. */
void         pli_averaged_unknown(struct pli_averaged *a);

/* gossip_kept.c: what checkpoints take of it. */
extern const pli_own_ops pli_averaged_own;

#endif
