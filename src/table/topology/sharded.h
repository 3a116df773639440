/* table/topology/sharded.h - tables under allreduce of which each worker holds the rule's state of its slice only.
 *
 * A clock's sum is a reduce-scatter: each worker gets its slice of it, applies the rule there, and all gather the
 * values (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020, stage
 * 1): as many bytes as an allreduce, the same values bit for bit. The sum is cut into parts, as buckets.h says, and
 * each part into slices, one a worker.
 *
 * With filters each worker's part of a slice goes to the slice's owner filtered (copies/coded.h, whose stripes the
 * slices are), and the owner applies the sum as it is: no sum is filtered again, and the values are gathered as they
 * are. So a filter makes the half of the bytes fewer that updates are, and no reader sees a rounded value. Between two
 * workers each gets the other's whole part.
 *
 * In a checkpoint the state lies by row, whole, as that of any other table, so that a run goes on with other workers
 * and under other topologies. Slices end in the middle of rows. So at the cut the workers gather the state, part by
 * part, and each sets aside what belongs to the rows that it writes: for a moment that costs the bytes of one clock,
 * and the memory of one part and of a share of the state. Put back, each takes its slices out of the rows that it
 * reads.
 *
 * With replicas a slice has several holders, and its clocks go on when one of them dies: agreed_slices.h.
 *
 * Fed and asked by allreduce.c and state/; waits in collectives. */
#ifndef PLI_TABLE_TOPOLOGY_SHARDED_H
#define PLI_TABLE_TOPOLOGY_SHARDED_H

#include "table/state/snap.h"
#include "table/table.h"

/** Makes the state of the worker's slices. Errors: ENOMEM. */
plait_status pli_sharded_open(const plait_table *table, plait_error *err);

/** Ends the clock: makes the sum of the table's oldest clock, and applies it. Collective over the job's workers.
 *  Errors: ENOMEM, those of a collective. */
plait_status pli_sharded_clock_end(plait_table *table, plait_error *err);

/** Sets the rule's state of the snapshot's rows aside in it. snap: begun on the worker's copy; NULL: there was no
 *  memory for it, which all hear. Collective over the job's workers. Errors: ENOMEM, on all; those of a collective. */
plait_status pli_sharded_keep(plait_table *table, pli_snap *snap, plait_error *err);

/** Puts back a slot of the rule's state, as it was in the rows first .. first + n - 1: what of it is the worker's. */
void pli_sharded_put_back(plait_table *table, int32_t slot, int64_t first, int64_t n, const void *rows);

#endif
