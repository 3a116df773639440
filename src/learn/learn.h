/* learn - models fitted to data, on tables: the algorithms of plait_train and what they leave.
 *
 * Users see plait/model.h; plait/learner.h says what a learner is; learner.h shows how this room is built. The rooms
 * above see this header besides. */
#ifndef PLI_LEARN_LEARN_H
#define PLI_LEARN_LEARN_H

#include <plait/model.h>

#include "base/base.h"

/** Would a run with these options begin? Checks what can be checked before the data are read: names, ranges, and
 *  whether the topology and the consistency go together. Errors: as plait_train. Not collective, any rank: all ranks of
 *  a run get the same answer. */
plait_status pli_train_check(plait_comm *comm, const plait_train_opts *opts, plait_error *err);

/** Sets in files what the learner of opts->model wants of its data (a missing number kept, pairs), as plait_train does
 *  when it opens files itself: for a caller that reads them into memory first. Errors: ENAME no such model. */
plait_status pli_train_reads(const plait_train_opts *opts, plait_data_opts *files, plait_error *err);

/** All of Plait's own learners, NULL-ended. */
const struct plait_learner *const *pli_learners(void);

#endif
