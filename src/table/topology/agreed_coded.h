/* table/topology/agreed_coded.h - the filtered sums of a clock that goes on when a worker dies (agreed_clock.h).
 *
 * Stripes (copies/coded.h) take two steps of the agreement, since an owner cannot encode a stripe's sum before it has
 * all parts of it:
 *
 *   the first   exchanges the parts. It has nothing else in it, and nothing is applied after it
 *   the last    is that of the clock's other sums, and gathers the stripes' sums. With it the clock ends
 *
 * Of a table in slices (agreed_slices.h) the last step has no sums for all: each owner gives its stripe's sum to the
 * other holders of that slice, as it is.
 *
 * If a worker dies in between, all others drop the last step, so the parts of the first are of no use, and both steps
 * are made again, among those who live: agreed.h does not ask what is in a step. Whoever drops a step has filters keep
 * what they kept before, and cuts the table anew. All do that between the same two steps, since all of an attempt have
 * stood in for the same dead. */
#ifndef PLI_TABLE_TOPOLOGY_AGREED_CODED_H
#define PLI_TABLE_TOPOLOGY_AGREED_CODED_H

#include "comm/agreed_run.h"
#include "table/topology/coded_making.h"

enum { PLI_AGREED_CODED_PARTS = 3 };

/* The sums of a clock that are made of filtered parts: in both forms. */
typedef struct pli_agreed_coded {
    pli_making striped, whole;
    pli_msg   *sums, *parts; /* this worker's, of the last step */
    pli_msg  **held, **heard; /* [workers] sums of stripes, for their other holders; NULL: there are none */
    uint8_t   *hears;         /* [workers] 1: this worker holds that one's stripe, too                    */
} pli_agreed_coded;

/** Before the worker's parts are taken: for whom it stands in is known. Errors: ENOMEM. */
plait_status pli_agreed_coded_cut(plait_job *job, plait_error *err);
/** They are taken. Makes the first step, if one is needed. PLAIT_STAND_IN: as pli_agreed_run_step. Errors: ENOMEM,
 *  EFORMAT, those of a step. pli_agreed_coded_close follows in any case. */
plait_status pli_agreed_coded_begin(pli_agreed_coded *c, plait_job *job, plait_error *err);
/** Writes what the last step has to gather into parts [PLI_AGREED_CODED_PARTS]; returns how many there are. */
int64_t      pli_agreed_coded_parts(pli_agreed_coded *c, pli_agreed_part *parts);
/** The last step has ended: the mirrors have their sums, to be applied. Errors: EFORMAT, ENOMEM. */
plait_status pli_agreed_coded_end(pli_agreed_coded *c);
void         pli_agreed_coded_close(pli_agreed_coded *c);

#endif
