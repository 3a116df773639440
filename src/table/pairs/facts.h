/* table/pairs/facts.h - what is known of a run when its settings are looked at; for this folder. */
#ifndef PLI_TABLE_FACTS_H
#define PLI_TABLE_FACTS_H

#include "table/combine/combine.h"
#include "table/pairs/pairs.h"

/* Settings of the run that are on, one bit each. */
enum pli_on {
    /* of the job */
    PLI_ON_BACKUPS,    /* --backup                                          */
    PLI_ON_REPLICAS,   /* --replicas 2 or more                              */
    PLI_ON_MORE_REPLICAS, /* --replicas 4 or more                           */
    PLI_ON_FEW_RANKS,  /* --replicas 3, of less than 3 ranks                */
    PLI_ON_SPARES,
    PLI_ON_SLOTS,      /* --workers MIN:MAX                                 */
    PLI_ON_HOST_SUMS,  /* --aggregate host                                  */
    PLI_ON_EVENTS,
    PLI_ON_ONE_SERVER, /* one rank has all shards                           */
    PLI_ON_SERVERS,    /* some ranks only have shards                       */
    PLI_ON_FLAT_SUMS,  /* a collective is named that does not know of hosts */
    /* of who computes */
    PLI_ON_ALL_ROWS, PLI_ON_OWN_STEPS, PLI_ON_OWN_END, PLI_ON_COMPARES,
    PLI_ON_SMOOTH, PLI_ON_SHARE, PLI_ON_SEQUENCE, PLI_ON_ANEW,
    /* above the tables */
    PLI_ON_KEPT,       /* a checkpoint, or a resumed run */
    PLI_ON_CHECKPOINT, PLI_ON_RESUME, PLI_ON_BALANCED, PLI_ON_STREAM, PLI_ON_STDIN, PLI_ON_PIPE,
    PLI_ON_PROCESSES, PLI_ON_NET, PLI_ON_NO_INTERCEPT, PLI_ON_KERNELS, PLI_ON_KINKED, PLI_ON_DROPOUT, PLI_ON_PATIENCE,
    PLI_ON_SCHEDULE, PLI_ON_CLASS_BALANCE, PLI_ON_ADDS, PLI_ON_ONE_PASS, PLI_ON_WHOLE_PASSES, PLI_ON_OPTIMIZER,
    PLI_ON_RATE, PLI_ON_PENALTY, PLI_ON_VALIDATION, PLI_ON_START, PLI_ON_NET_OPTIONS, PLI_ON_EPOCHS, PLI_ON_BATCH,
    PLI_ON_CUT, PLI_ON_COLUMNS, PLI_ON_MICRO_BATCHES, PLI_ON_CURVE, PLI_ON_INTERCEPT,
    PLI_ON_UNJUDGED, PLI_ON_CLASSLESS, PLI_ON_EACH_UPDATE, PLI_ON_TWO_PASSES, PLI_ON_SINGLE
};
#define PLI_ON(name) (UINT64_C(1) << PLI_ON_##name)

/* Settings of one table and of its pair. A rule that names one of these is about that table. */
enum pli_of {
    PLI_OF_STALE_STEPS, /* --staleness-aware                                            */
    PLI_OF_EXACT,
    PLI_OF_SHARDED,    /* --optimizer-state sharded                                      */
    PLI_OF_ADDITIVE,   /* no rule                                                        */
    PLI_OF_RULED,      /* a rule                                                         */
    PLI_OF_INTEGERS,   /* values are whole numbers                                       */
    PLI_OF_PICKS,      /* its combine does not add: min, max, last                       */
    PLI_OF_REPLACES,   /* ... and the latest push counts: last                           */
    PLI_OF_GATHERS,    /* the policy may push updates of several clocks as one           */
    PLI_OF_LATE,       /* it is created behind the first clock, or dropped                */
    PLI_OF_AVERAGED,   /* owners add to averages, as workers move copies by the rule     */
    PLI_OF_DERIVES,    /* the rule makes its values from its state                       */
    PLI_OF_BY_KEY,     /* updates are of some rows, by key                               */
    PLI_OF_GROWS,      /* rows come with their keys                                      */
    PLI_OF_NORMS,      /* the policy bounds what is added                                */
    PLI_OF_FILTERS,    /* any                                                            */
    PLI_OF_LOSSY,      /* one loses something ...                                        */
    PLI_OF_SKIPPING,   /* ... by omitting what would change nothing                      */
    PLI_OF_CHANGING,   /* one makes other bits of values on their way                    */
    PLI_OF_SHARED,     /* the topology is one process's memory                           */
    PLI_OF_SERVED,     /* the topology has rows lie on servers, or in that memory        */
    PLI_OF_NEIGHBOURS, /* the topology averages with neighbours                          */
    PLI_OF_MIRRORS,    /* each worker has the whole table, and clocks end with sums over all workers */
    PLI_OF_GROUP       /* its workers are a group's members                              */
};
#define PLI_OF(name) (UINT64_C(1) << PLI_OF_##name)

typedef struct pli_facts {
    const pli_pair          *pair;
    const pli_above         *above; /* never NULL: zeroed where there is none */
    const pli_topology_kind *kind;
    pli_policy               policy;
    plait_properties         promises, has; /* promises: the policy's; has: the pair's */
    pli_filters_list         filters;
    const pli_combine       *combine;
    uint64_t                 on, of; /* PLI_ON, PLI_OF */
} pli_facts;

/** Reads names and parameters. kind: one whose tables travel by itself. Errors: ENAME, EINVAL, EREFUSED filters that do
 *  not go in this order. */
plait_status pli_facts_make(const pli_pair *pair, const pli_topology_kind *kind, pli_facts *facts_out,
                            plait_error *err);
/** The same for what does not depend on a table's pair. Nothing to free. */
pli_facts    pli_facts_of_job(const pli_pair *pair);
void         pli_facts_free(pli_facts *facts);

/** The learner or solver whose traits turn one of these settings on; NULL: none does. */
const pli_demand *pli_facts_demand(const pli_facts *facts, uint64_t on);
/** A filter that turns one of these settings of a table on; NULL: none does. */
const plait_filter *pli_facts_filter(const pli_facts *facts, uint64_t of);

plait_status pli_matrix_check(const pli_facts *facts, plait_error *err);

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* A rule refuses a run if all settings of `on` and `of` are on, none of `off` and `not_of` is, and (if the rule names
 * properties) the policy lacks one of `promise`, or the pair lacks one of `needs` or has one of `bars`. Braces in the
 * texts stand for what the run has: check.c lists the words. */
typedef struct pli_pair_rule {
    uint64_t         on, off;    /* PLI_ON: of the run           */
    uint64_t         of, not_of; /* PLI_OF: of the table         */
    plait_properties promise, needs, bars;
    const char      *what;   /* "backup workers with topology {topology} are" (refused) */
    const char      *why;    /* "a sum needs every worker's part"                       */
    const char      *remedy; /* "nearest is ps"                                         */
} pli_pair_rule;

/** All rules, in the order in which they are checked; the last has the text NULL. */
const pli_pair_rule *pli_pair_rules(void);

/** Is the rule about one table's pair, rather than the whole run? */
static inline bool pli_rule_is_of_table(const pli_pair_rule *rule) {
    return (rule->of | rule->not_of) != 0 || (rule->promise | rule->needs | rule->bars) != 0;
}

#endif
