/* table/topology/agreed_recut.h - tables whose state lies in slices are cut anew when a worker has died, with the step
 * that ends the next clock (agreed_slices.h).
 *
 * What each worker's new slices need travels beside the sums of the first step in which the dead worker has no part. So
 * all living workers have cut the tables alike, or none has: a step that is dropped changes nothing, and the next one
 * begins from the old slices again, for whoever lives then. From then on each slice has all its copies again. If all
 * holders of a slice die before that, its state is lost, and the run ends with EPEER on all. */
#ifndef PLI_TABLE_AGREED_RECUT_H
#define PLI_TABLE_AGREED_RECUT_H

#include "comm/agreed_run.h"
#include "table/table.h"

typedef struct pli_agreed_recut {
    plait_job *job;
    uint8_t   *dead;          /* [workers]                                                           */
    pli_msg  **gives, **came; /* [workers] the states that others need; NULL: no table is cut anew  */
} pli_agreed_recut;

/** Before a clock's step, whose dead are known. pli_agreed_recut_close follows in any case. Errors: ENOMEM; EPEER all
 *  holders of a slice are dead, on all workers alike. */
plait_status pli_agreed_recut_begin(pli_agreed_recut *recut, plait_job *job, plait_error *err);
/** Writes what the step has to exchange; returns how many parts that are: 0 or 1. */
int64_t      pli_agreed_recut_parts(const pli_agreed_recut *recut, pli_agreed_part *part);
/** The step has ended: the tables are cut for those who live. Errors: EFORMAT, ENOMEM. */
plait_status pli_agreed_recut_end(pli_agreed_recut *recut, plait_error *err);
void         pli_agreed_recut_close(pli_agreed_recut *recut);

#endif
