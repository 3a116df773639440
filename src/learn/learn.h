/* learn - models fitted to data, on tables: the algorithms of plait_train and what they leave.
 *
 * plait/model.h is what users see. run.h is one run as one rank sees it, and lists the files; model.h the model. This
 * is what the rooms above see besides. */
#ifndef PLI_LEARN_LEARN_H
#define PLI_LEARN_LEARN_H

#include <plait/model.h>

#include "base/base.h"

/** Would a run with these options begin? Checks what can be told before data are read: names, ranges, which topologies
 *  and consistencies go together, here. Errors as of plait_train. Not collective, any rank: all of a run hear the
 *  same. */
plait_status pli_train_check(plait_comm *comm, const plait_train_opts *opts, plait_error *err);

/* A table of a model, for who says how it travels. */
typedef struct pli_model_table {
    const char *name, *what;
} pli_model_table;

/** Those of every model, to a name of NULL. */
const pli_model_table *pli_model_tables(void);

#endif
