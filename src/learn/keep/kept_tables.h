/* learn/kept_tables.h - tables as parts of a checkpoint: which tensors they are, and how they come back. */
#ifndef PLI_LEARN_KEPT_TABLES_H
#define PLI_LEARN_KEPT_TABLES_H

#include "learn/keep/writer.h"
#include "table/state/state.h"

/** The tensors of what this worker takes, in the order in which it does. */
void pli_kept_plan(const pli_capture *capture, plait_table *const *table, pli_part_plan *plan);
/** "units": {"w": 12, ...}: up to where each table's penalties go. */
void pli_kept_units(const pli_capture *capture, plait_table *const *table, int32_t n, pli_text *json);

/** Puts what a checkpoint has of `name` back into a new table: each worker its share. where: the checkpoint, for
 *  errors. A barrier must follow; where a collective behind it is the first from which a worker is missing, all put
 *  once more. Errors: EMISMATCH, ECHECKSUM, EIO, ENOMEM. Collective over the workers. */
plait_status pli_kept_put(plait_comm *comm, pli_checkpoint *checkpoint, const char *where, const char *name,
                          plait_table *table, plait_error *err);

#endif
