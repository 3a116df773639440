/* learn/run/run.h - the order of a run, as one rank sees it, while plait_train lasts. What learners see of it is
 * learner.h.
 *
 *     options.c  names, ranges, pairs; equal on every rank
 *     settings.c the learner's own options
 *     above.c    what is set besides tables, for the one place that decides what goes together (table/pairs/)
 *     tables.c   how each table of the model travels
 *     prepare.c  data opened, a schema agreed
 *     open.c     data opened and read
 *     rows.c     how many rows there are; labels, where the learner leaves them to the run
 *     judged.c   test and validation: opened
 *     sample.c   the first rows of a stream's blocks
 *     report.c   the record
 *     train.c    the order of it all
 */
#ifndef PLI_LEARN_RUN_H
#define PLI_LEARN_RUN_H

#include "learn/learner.h"
#include "table/pairs/pairs.h"

/** The learner's own memory. */
plait_status pli_run_make_state(pli_run *run);
void         pli_run_free_state(pli_run *run);
/** Checks names and ranges. Errors: ENAME, EINVAL, EREFUSED. */
plait_status pli_options_check(pli_run *run);
/** The learner's own options: known, in range. */
plait_status pli_settings_check(const pli_run *run);
/** What the run has set that its tables do not see. Borrows from the run and its options. */
pli_above pli_run_above(const pli_run *run);
/** Do the pairs of all tables train, as far as it can be told before it is known how the tables lie? */
plait_status pli_tables_check(const pli_run *run);
/** The table that what is said of the run is said of. */
const char *pli_run_first_table(const pli_run *run);

/** Everything up to the tables. */
plait_status pli_prepare(pli_run *run);

/** A single pass streams what is not small. */
bool pli_run_streams(const pli_run *run);
/** One data set of the run, opened and loaded (or scanned, for a stream); its notes are told. fixed: the schema it must
 *  follow. Collective over the workers. */
plait_status pli_run_open(pli_run *run, const plait_data_opts *files, const plait_data *memory, const pli_schema *fixed,
                          bool stream, pli_dataset **data_out);
/** What all workers found in a data set, joined, and the set numbered by it; whole: it is in memory. Collective over
 *  the workers. */
plait_status pli_run_agree_schema(const pli_run *run, pli_dataset *data, bool whole, pli_schema **schema_out);
/** run->test and run->validation, by the run's schema. Errors: as pli_run_open, and what the learner says. Collective
 *  over the workers. */
plait_status pli_run_open_judged(pli_run *run);
void         pli_sample_free(pli_run *run);

/** Figures of the model on the rows trained on ("inertia") and on the test set ("test_inertia"), by learner->measure.
 *  Collective. */
plait_status pli_report_measure(pli_run *run, const plait_model *model, plait_report *report);
/** The rest of the record. Collective. */
plait_status pli_report_fill(pli_run *run, plait_report *report);

#endif
