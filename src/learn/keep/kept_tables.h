/* learn/keep/kept_tables.h - tables as parts of a checkpoint: which tensors they are, and how they are put back. */
#ifndef PLI_LEARN_KEPT_TABLES_H
#define PLI_LEARN_KEPT_TABLES_H

#include "learn/keep/kept_pieces.h"
#include "learn/keep/writer.h"
#include "table/state/state.h"

/** Adds the tensors of this worker's part, in the order in which the capture hands them over. */
void pli_kept_plan(const pli_capture *capture, plait_table *const *table, pli_part_plan *plan);

/** Puts the tensors of `name` in a checkpoint back into a new table; each worker puts its share. where: the directory
 *  of the checkpoint, for errors. A barrier must follow; if a worker is missing from it, all must put once more.
 *  Errors: EMISMATCH, ECHECKSUM, EIO, ENOMEM. Collective over the workers, or
 *  the members of the table's group. */
plait_status pli_kept_put(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                          plait_error *err);
/** Could it be put back? The errors are the same; the table is left as it is. Of pieces each worker looks at its share
 *  alone. Not collective. */
plait_status pli_kept_check(pli_checkpoint *checkpoint, const char *where, const char *name, plait_table *table,
                            plait_error *err);

#endif
