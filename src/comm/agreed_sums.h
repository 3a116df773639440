/* comm/agreed_sums.h - sums over all workers, in steps that all living workers end or none does: a collective that goes
 * on without the dead.
 *
 * agreed.h decides which sums may be used. This is the rest: in each attempt the machine runs the collectives of a step
 * (collective.h) among the workers that live, by messages. A death ends the attempt. Then there are other collectives,
 * of the remaining workers, and what comes for the former ones is dropped: head.server of their messages is the number
 * of the dead that they leave out, plus 1. It is 0 in messages of the agreement, which outlast all attempts.
 *
 *     while ((status = pli_agreed_sums_run(sums, n, parts, err)) == PLAIT_STAND_IN)
 *         for whom: pli_agreed_sums_next; add to the parts what the dead would have given
 *
 * A worker stands in for the dead before it takes part in an attempt that leaves them out. From then on it has what
 * falls to it from them (pli_agreed_sums_stood), and after another death it gets more. So the parts of an attempt are
 * the same whatever a worker heard first, and the workers of a committed attempt have shared out the same dead.
 *
 * The machine goes on while its worker computes, or is in another call: it answers for the last step that the worker
 * has ended. So a worker that is alone in a step learns from the others whether they have ended it. */
#ifndef PLI_COMM_AGREED_SUMS_H
#define PLI_COMM_AGREED_SUMS_H

#include "comm/comm.h"

typedef struct pli_agreed_sums pli_agreed_sums;

/* A part of a step's sums: values, or a list (list not NULL), which is gathered. */
typedef struct pli_agreed_part {
    plait_type   type; /* may be one of cells */
    plait_reduce op;
    int64_t      n;
    const void  *given;  /* [n] this worker's values; they are not changed */
    void        *values; /* [n] the sum, once the step has ended           */
    pli_msg     *list;   /* this worker's list; lent, and nobody writes to it any more */
    pli_msg    **piece;  /* [workers] the lists of all, once the step has ended; the caller frees them. Of a worker that
                          * the step left out: an empty message                                                      */
} pli_agreed_part;

/** Opens the worker's machine. Every worker does so between the same two collectives, after pli_comm_survive. Errors:
 *  ENOMEM. */
plait_status pli_agreed_sums_open(plait_comm *comm, pli_agreed_sums **sums_out, plait_error *err);
/** No worker is in a step any more. */
void         pli_agreed_sums_close(pli_agreed_sums **sums);

/** Makes the sums of the next step: parts [n] are lent until it returns. All workers give parts of the same kinds.
 *  PLAIT_OK: the step has ended, on all living workers, with these sums. PLAIT_STAND_IN: no living worker has them, and
 *  the caller is still in the step; it stands in for the dead and calls again. Errors: ENOMEM; EMISMATCH the workers'
 *  parts differ; those of pli_comm_wait. The rank's own thread. */
plait_status pli_agreed_sums_run(pli_agreed_sums *sums, int64_t n, const pli_agreed_part *parts, plait_error *err);

/** [workers] 1: the caller has taken over its share of what this dead worker had. Workers that have ended the same step
 *  have the same. */
const uint8_t *pli_agreed_sums_stood(const pli_agreed_sums *sums);
/** The same after PLAIT_STAND_IN: what stood will be when the caller has stood in. */
const uint8_t *pli_agreed_sums_next(const pli_agreed_sums *sums);

#endif
