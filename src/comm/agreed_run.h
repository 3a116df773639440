/* comm/agreed_run.h - a rank's worker makes the sums of its steps with those that live (agreed_sums.h).
 *
 *     while ((status = pli_agreed_run_step(run, n, parts, err)) == PLAIT_STAND_IN)
 *         for whom: pli_agreed_run_next; add to the parts what the dead would have given */
#ifndef PLI_COMM_AGREED_RUN_H
#define PLI_COMM_AGREED_RUN_H

#include "comm/agreed_sums.h"
#include "comm/comm.h"

typedef struct pli_agreed_run pli_agreed_run;

/** Opens the worker's machine for the sums of all workers or, with a group, of its members: "workers" are these then,
 *  numbered as the group numbers them. Every worker does so between the same two collectives, after pli_comm_survive.
 *  Errors: ENOMEM. */
plait_status pli_agreed_run_open(plait_comm *comm, plait_group *group, pli_agreed_run **run_out, plait_error *err);
/** No worker is in a step any more. */
void         pli_agreed_run_close(pli_agreed_run **run);

/** Makes the sums of the next step: parts [n] are lent until it returns. PLAIT_OK: the step has ended, on all living
 *  workers, with these sums. PLAIT_STAND_IN: no living worker has them, and the caller is still in the step; it stands
 *  in for the dead and calls again. Errors: ENOMEM; EMISMATCH the workers' parts differ; those of pli_comm_wait. The
 *  rank's own thread. */
plait_status pli_agreed_run_step(pli_agreed_run *run, int64_t n, const pli_agreed_part *parts, plait_error *err);

/** Whoever is 1 in dead [workers] has died: news that another machine of this rank has heard, and this one perhaps not
 *  yet. No step ends with their part any more, unless another worker has ended it so. Before a step. */
void pli_agreed_run_tell(pli_agreed_run *run, const uint8_t *dead);

/** Has a worker died for whom this one has not stood in yet? Then no step ends before it has. */
bool pli_agreed_run_lost(pli_agreed_run *run);

/** [workers] 1: after PLAIT_STAND_IN the caller takes over its share of what this dead worker had, or has done so. */
const uint8_t *pli_agreed_run_next(const pli_agreed_run *run);

#endif
