/* table/topology/topology.h - where does an update go?
 *
 * A topology realises get, inc and clock of the tables that chose it: `local` (the process's memory), `ps`
 * (messages to shards), `allreduce` (a copy in each rank, summed by collectives). It knows a consistency
 * policy only through the policy interface. Which pairs go together is one table in pairs.c (contract.md's);
 * every other is refused by name, with the reason and the nearest. One file a topology, listed in topologies.c.
 */
#ifndef PLI_TABLE_TOPOLOGY_H
#define PLI_TABLE_TOPOLOGY_H

#include "comm/comm.h"
#include "table/consistency/consistency.h"

struct pli_table_core; /* table/table.h: one table as its topology sees it */

/** Does topology x consistency train on this transport? EREFUSED with the reason and the nearest pair,
 *  ENAME for unknown names. Used by tables, by `train --dry-run`, and by the demo's and docs' matrix.
 *  one_process: all ranks are threads of one process. */
plait_status pli_pair_check(const char *topology, const char *consistency, bool one_process, plait_error *err);

/** Names of all topologies, NULL-terminated, "local", "allreduce", "ps". */
const char *const *pli_topology_names(void);

#endif
