/* learn/keep/cuts.h - a cut through tables of a job, of which some may belong to groups.
 *
 * A group's tables are a part of the job with servers and barriers of its own, so each part has a capture
 * (table/state/state.h) of its own. All captures begin at one moment: each worker passes the barriers of its parts, in
 * the order of the groups' numbers, and updates nothing before it has begun the last. The workers name the tables in
 * which they take part, and so give different lists; what a checkpoint says of all tables is gathered. */
#ifndef PLI_LEARN_CUTS_H
#define PLI_LEARN_CUTS_H

#include "learn/keep/kept_tables.h"

typedef struct pli_cuts pli_cuts;

/** Passes barriers and begins captures of tables [n], those in which this worker takes part; n may be 0. Then all agree
 *  on which tables there are. Errors: EINVAL two groups have tables of the same name, or nobody gave a table;
 *  EMISMATCH workers are in different clocks; and those of pli_capture_begin. Collective over all workers. */
plait_status pli_cuts_begin(plait_job *job, int32_t n, plait_table *const *tables, pli_cuts **cuts_out,
                            plait_error *err);
/** As pli_kept_plan, of all captures, one after the other. */
void pli_cuts_plan(const pli_cuts *cuts, pli_part_plan *plan);
/** Writes "units": {"w": 12, ...}, of all workers' tables. */
void pli_cuts_units(const pli_cuts *cuts, pli_text *json);
/** As pli_capture_pump, in the order of the plan. */
plait_status pli_cuts_pump(pli_cuts *cuts, int64_t bytes, bool wait, pli_capture_take_fn *take, void *user,
                           bool *done_out, plait_error *err);
bool pli_cuts_are_torn(const pli_cuts *cuts);
/** Ends the captures, before the job ends. NULL is fine. */
void pli_cuts_end(pli_cuts **cuts);

#endif
