/* learn/run/run.h - the order of a run, as one rank sees it while plait_train lasts. Learners see learner.h instead.
 *
 *     train.c    the order of the run
 *     options.c  checks names, ranges and pairs; agrees on options between ranks
 *     choose.c   which optimizer trains
 *     settings.c the learner's own options
 *     above.c    what is set besides tables, for table/pairs/, which decides what goes together
 *     tables.c   how each table of the model travels
 *     prepare.c  everything between options and tables: data, schema, clocks
 *     open.c     opens and reads one data set
 *     rows.c     counts rows and numbers classes, if the learner leaves that to the run
 *     judged.c   opens the test and the validation set
 *     sample.c   keeps the first rows of a stream's blocks
 *     report.c   fills the record
 */
#ifndef PLI_LEARN_RUN_H
#define PLI_LEARN_RUN_H

#include "learn/learner.h"
#include "table/pairs/pairs.h"

/** The learner's own memory: run->state. free calls the learner's end first. */
plait_status pli_run_make_state(pli_run *run);
void         pli_run_free_state(pli_run *run);
/** Checks names and ranges. Errors: ENAME, EINVAL, EREFUSED. */
plait_status pli_options_check(pli_run *run);
/** Sets run->solver and run->optimizer as they were named; with auto, for now, to the learner's rule. Errors: ENAME;
 *  EREFUSED a solver that the model does not have. */
plait_status pli_run_name_optimizer(pli_run *run);
/** With auto: chooses, when all other options are known. The data are not read yet: a learner may leave the solver in
 *  its prepare (pli_run_leave_solver). */
void pli_run_choose_optimizer(pli_run *run);
/** Checks that the learner's own options are known and in range. Errors: ENAME, EINVAL. */
plait_status pli_settings_check(const pli_run *run);
/** The run's settings that its tables do not see. Borrows from the run and its options. */
pli_above pli_run_above(const pli_run *run);
/** Can each table train with its topology and consistency? Asked before the layout of the tables is known. */
plait_status pli_tables_check(const pli_run *run);
/** The table that the run's own topology, consistency and filter describe: the learner's first. */
const char *pli_run_first_table(const pli_run *run);

/** Everything between the options and the tables. Collective over the workers. */
plait_status pli_prepare(pli_run *run);

/** Does the run stream its data? A single pass does, unless the files are small. */
bool pli_run_streams(const pli_run *run);
/** Opens a data set of the run, loads it (or scans it, for a stream), and logs its notes. fixed: the schema that it
 *  must follow, or NULL. Only blocks of run->data are dealt over the files. Collective over the workers. */
plait_status pli_run_open(pli_run *run, const plait_data_opts *files, const plait_data *memory, const pli_schema *fixed,
                          bool stream, pli_dataset **data_out);
/** Joins what all workers found in a data set into one schema, and numbers the set by it. whole: the set is in memory,
 *  and its schema is complete. Collective over the workers. */
plait_status pli_run_agree_schema(const pli_run *run, pli_dataset *data, bool whole, pli_schema **schema_out);
/** Opens run->test and run->validation by the run's schema. Errors: as pli_run_open, and the learner's. Collective over
 *  the workers. */
plait_status pli_run_open_judged(pli_run *run);
void         pli_sample_free(pli_run *run);

/** Adds the model's figures on the rows trained on ("inertia") and on the test set ("test_inertia"), by
 *  learner->measure. Collective. */
plait_status pli_report_measure(pli_run *run, const plait_model *model, plait_report *report);
/** Fills the rest of the record. Collective. */
plait_status pli_report_fill(pli_run *run, plait_report *report);

/* named.c */
/** Gives the model's schema the names behind its hashed features, on the leading worker; others keep hashes. */
void pli_run_name_features(pli_run *run, plait_model *model);

#endif
