/* table/topology/averaged.h - a table that is averaged with neighbours, as the files of topology gossip share it. */
#ifndef PLI_TABLE_AVERAGED_H
#define PLI_TABLE_AVERAGED_H

#include "table/client/pending.h"
#include "table/copies/gossip.h"
#include "table/state/own.h"
#include "table/state/shard.h"
#include "table/table.h"

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
};

static inline struct pli_averaged *pli_averaged_of(const plait_table *table) { return table->state; }

/* gossip_kept.c: what checkpoints take of it. */
extern const pli_own_ops pli_averaged_own;

#endif
