/* table/topology/agreed_slices.h - tables whose state lies in slices (sharded.h), and which go on when a worker dies
 * (agreed_clock.h). copies/keepers.h says who holds which slice.
 *
 * A clock's sum is there as a whole on all living workers, when its step has ended; so all holders of a slice apply the
 * rule to it, and the copies of its state change alike. Then, in a step of its own, each slice's values go to all:
 *
 *     a worker dies   in the clock's step         as with other tables: the step is made again, or all have the sums
 *                     in the step of the values   the sums hold its part. That step is made again: the next holder
 *                                                 speaks for its slice, whose values it has computed as well
 *
 * Then the state is cut anew, with the next clock's step (agreed_recut.h).
 *
 * The step of the values costs the bytes of a gather, in addition to those of an allreduce: 3 M (W - 1)/W for M bytes
 * of values instead of 2 M (W - 1)/W. The state takes `replicas` times its share of memory.
 *
 * Filtered sums in stripes (agreed_coded.h) are cut as the slices are. There a stripe's sum is nowhere but at its
 * owner, which gives it to the other holders as it is, in the clock's last step. */
#ifndef PLI_TABLE_AGREED_SLICES_H
#define PLI_TABLE_AGREED_SLICES_H

#include "table/state/snap.h"
#include "table/table.h"

/** Makes the state of the slices that the worker holds. job->agreed is there. Errors: ENOMEM. */
plait_status pli_agreed_slices_open(const plait_table *table, plait_error *err);

/** Errors: EPEER all holders of one of the table's slices are among these dead: on all workers alike. */
plait_status pli_agreed_slices_must_live(const plait_table *table, const uint8_t *dead, plait_error *err);

/** The clock's step has ended, and its sums may be applied: applies those of tables in slices, on all workers between
 *  the same two steps. Errors: ENOMEM; EPEER as above; those of a step. */
plait_status pli_agreed_slices_apply(plait_job *job, plait_error *err);

/** As pli_sharded_keep, pli_sharded_put_back. */
plait_status pli_agreed_slices_keep(plait_table *table, pli_snap *snap, plait_error *err);
void         pli_agreed_slices_put_back(plait_table *table, int32_t slot, int64_t first, int64_t n, const void *rows);

#endif
