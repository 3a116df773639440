/* table/topology/topology.h - where does an update go?
 *
 * A topology realises get, inc and clock of the tables that chose it: `local` (the process's memory), `ps`
 * (messages to shards), `allreduce` (a copy in each rank, summed by collectives). It knows a consistency
 * policy only through the policy interface, and whoever deals with a topology asks its pli_topology and never its
 * name. One line a topology in topologies.c. Which pairs go together is one table in pairs.c (contract.md's); every
 * other is refused by name, with the reason and the nearest.
 */
#ifndef PLI_TABLE_TOPOLOGY_H
#define PLI_TABLE_TOPOLOGY_H

#include "table/consistency/consistency.h"

struct pli_topology_ops; /* table/table.h: what it does for a table */

typedef struct pli_topology {
    const char *name;
    bool        one_process; /* workers share a process's memory: one shard a table, no byte counts as sent    */
    bool        on_servers;  /* rows lie on servers, which hear of the table                                   */
    bool        needs_all;   /* a clock needs a part of every worker: none may leave or stop by itself         */
    const struct pli_topology_ops *ops;
    const struct pli_topology_ops *unlocked; /* instead, under a policy that shares memory: get and inc by any thread of
                                                the rank; NULL: has no such form */
} pli_topology;

/** All topologies, NULL-terminated. */
const pli_topology *const *pli_topologies(void);
/** NULL: none of that name. */
const pli_topology *pli_topology_find(const char *name);
/** The topology of a job that names none. */
const pli_topology *pli_topology_default(bool one_process);

/** Does topology x consistency train on this transport? EREFUSED with the reason and the nearest pair,
 *  ENAME for unknown names. Used by tables, by `train --dry-run`, and by the demo's and docs' matrix.
 *  scope: where policies are found besides plait's own; may be NULL. one_process: all ranks are threads of one process. */
plait_status pli_pair_check(const char *topology, const char *consistency, const pli_scope *scope, bool one_process,
                            plait_error *err);
/** And with these options? staleness_aware: plait_rule_opts'; scope's setting has the backup workers. Asked of a pair that
 *  trains. EREFUSED. */
plait_status pli_pair_check_options(const char *topology, const char *consistency, const pli_scope *scope,
                                    bool staleness_aware, plait_error *err);
/** Do the workers of this pair, which trains, write the values themselves, unlocked (Hogwild)? */
bool pli_pair_is_unlocked(const pli_topology *topology, const char *consistency, const pli_scope *scope);

#endif
