/* table/topology/topology.h - where does an update go?
 *
 * A topology realises get, inc and clock of the tables that chose it: `local` (the process's memory), `ps`
 * (messages to shards), `allreduce` (a copy in each rank, summed by collectives). It knows a consistency
 * policy only through the policy interface, and whoever deals with a topology asks its kind and never its
 * name. One line a kind in topologies.c. Which goes with which consistency, and with which settings: table/pairs/.
 */
#ifndef PLI_TABLE_TOPOLOGY_H
#define PLI_TABLE_TOPOLOGY_H

#include "optim/optim.h"
#include "table/consistency/consistency.h"
#include "table/filter/filter.h"

struct pli_topology_ops; /* table/table.h: what it does for a table */

typedef struct pli_topology_kind {
    const char *name;
    const char *parameters; /* the words of which one follows the name and a colon, as "ring|torus|exp"; "": takes
                               none */
    const char *summary;     /* one line, for help */
    bool        one_process; /* workers share a process's memory: one shard a table, no byte counts as sent    */
    bool        on_servers;  /* rows lie on servers, which hear of the table                                   */
    bool        averages;    /* each worker has a copy that differs from the others': rounds or async            */
    plait_properties keeps;  /* of what a policy promises, what a table that travels so keeps to               */
    plait_properties gives;  /* what it has whatever the policy is; averages and shared memory take some away  */
    const struct pli_topology_kind *dense, *sparse; /* its tables travel by one of these, after their updates' form;
                                                       else NULL */
    const struct pli_topology_ops *ops;
    const struct pli_topology_ops *unlocked; /* instead, under a policy that shares memory: get and inc by any thread of
                                                the rank; NULL: has no such form */
} pli_topology_kind;

enum { PLI_TOPOLOGY_TEXT = 32 };

/* Are a table's updates of whole ranges, or of some rows by key? ANY: it is not known yet. */
typedef enum pli_fill { PLI_FILL_ANY, PLI_FILL_DENSE, PLI_FILL_SPARSE } pli_fill;

/* The topology of a table. */
typedef struct pli_topology {
    const pli_topology_kind *kind;
    int32_t word;                     /* which of the kind's parameters: 0, 1, ...              */
    char    text[PLI_TOPOLOGY_TEXT]; /* "ps": as users write it, and as it travels and is logged */
} pli_topology;

/** All kinds, NULL-terminated. */
const pli_topology_kind *const *pli_topologies(void);
/** The kind that a text names, whatever its parameter; NULL: none. */
const pli_topology_kind *pli_topology_find(const char *text);
/** The topology of a job that names none. */
const pli_topology_kind *pli_topology_default(bool one_process);

/** How a user writes the kind, with the first of its parameters if it takes one: "gossip:ring". */
void pli_topology_example(const pli_topology_kind *kind, char text[PLI_TOPOLOGY_TEXT]);

/** "ps" -> topology; for a table whose fill is known "hybrid" -> the one that it travels by. Errors: ENAME (the
 *  nearest is named), EINVAL a parameter that it does not take. */
plait_status pli_topology_make(const char *text, pli_fill fill, pli_topology *topology_out, plait_error *err);

/** What the pair keeps to, as bits of plait/property.h. If the tables of a topology travel by one of two others: what
 *  both keep to. 0: there is no such policy, or its parameters are wrong. */
plait_properties pli_pair_properties(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope);
/** How many clocks' updates of others a read may miss under a pair with these properties: the first parameter of the
 *  policies that bound it, as in ssp:2. 0: none; -1: nothing bounds it. */
int64_t pli_pair_staleness(plait_properties has, const char *consistency);
/** pli_pair_properties for a policy that has been made. */
plait_properties pli_policy_properties(const pli_topology_kind *kind, const pli_policy *policy);
/** Does each worker under this pair, which trains, have a copy of its own that is averaged with those of others? */
bool pli_pair_averages(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope);
/** Do the workers of this pair, which trains, write the values themselves, unlocked (Hogwild)? */
bool pli_pair_is_unlocked(const pli_topology_kind *kind, const char *consistency, const pli_scope *scope);

#endif
