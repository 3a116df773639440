/* learn - models fitted to data, on tables: the algorithms of plait_train and what they leave.
 *
 * plait/model.h is what users see, plait/learner.h what a learner is. learner.h shows how this room is built. This is
 * what the rooms above see besides. */
#ifndef PLI_LEARN_LEARN_H
#define PLI_LEARN_LEARN_H

#include <plait/model.h>

#include "base/base.h"

/** Would a run with these options begin? Checks what can be told before data are read: names, ranges, which topologies
 *  and consistencies go together, here. Errors as of plait_train. Not collective, any rank: all of a run hear the
 *  same. */
plait_status pli_train_check(plait_comm *comm, const plait_train_opts *opts, plait_error *err);

/** All learners of Plait's own, NULL-ended. */
const struct plait_learner *const *pli_learners(void);

#endif
