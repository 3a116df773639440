/* watch/audit/schedule.h - proves from an event log that scheduled steps did not get into each other's way.
 *
 * Each worker has logged which variables it had in each step, and all keys that their updates touch (plait/schedule.h).
 * Two turns of different workers *may have missed each other* if the consistency does not promise that the later one
 * sees the earlier: under bsp those of one clock, with a bound of S those at most S clocks apart. Where nothing is
 * bounded, as under async, only turns of one clock are judged. The audit proves
 *
 *     conflict  no two such turns touch the same key, one of them writing it; nor two variables of a step that all
 *               workers update together
 *     owner     a variable has one owner in a step, and is in it once
 *     same      a step that all workers take alike has the same variables on each of them
 *     steps     every worker takes every step, in order, at most one in a clock, and in the same clock as all others
 *     lost      all variables of a step have an owner whose turn counts
 *
 * With two replicas a worker may die in a clock. Then its turn does not count, unless a server has counted the worker
 * as one that has ended the clock; and a living worker takes a turn in its stead, which says so (PLI_EVENT_TURN). Such
 * a turn may touch what the dead worker's touched, and have its variables. A turn in the stead of somebody who lives is
 * refuted (owner).
 *
 * It knows neither the orders of schedules nor the program's conflict function. */
#ifndef PLI_WATCH_SCHEDULE_H
#define PLI_WATCH_SCHEDULE_H

#include "watch/audit/audit.h"

typedef struct pli_schedule_proof {
    pli_audit_verdict verdict;
    int32_t workers, dead; /* dead: of these */
    int64_t steps, turns, variables, keys; /* variables, keys: of all turns */
    int64_t apart;       /* turns so many clocks apart may have missed each other */
    bool    unbounded;   /* any may have, and only those of one clock were judged */
    char    consistency[64];
    pli_audit_violation first; /* of a refuted run: the earliest clock's */
} pli_schedule_proof;

/** as NULL: by the weakest consistency of the run's tables. Errors: as pli_audit_run. */
plait_status pli_schedule_prove(const pli_logfile *file, const char *as, pli_schedule_proof *proof_out,
                                plait_error *err);
void         pli_schedule_text(const pli_schedule_proof *proof, pli_text *text);
void         pli_schedule_json(const pli_schedule_proof *proof, pli_text *text);

#endif
